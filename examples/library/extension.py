#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""extension.py INTERFACE IMAGE ENTRY <PACKET   calls an entry of an extension, which takes a packet
and its own state, with the module fay; host.c is the same in C."""
import sys

import fay

extension = fay.Host(sys.argv[1]).load(sys.argv[2])
print(extension.call(sys.argv[3], sys.stdin.buffer.read(), None))
