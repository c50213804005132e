#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""trace.py IMAGE COMMAND...   what an image's probes can do; then which sizes the command asks
malloc for, with the module fay."""
import sys

import fay

verdict = fay.verify(sys.argv[1])
if verdict.rejection:
    sys.exit(f'{sys.argv[1]}: {verdict.outcome}: {verdict.rejection.what}')
for probe in verdict.probes:
    print(f'{probe.kind} {probe.pattern}: at most {probe.instructions} instructions')

query = """from f in cluster.Function("libc!malloc") group f by f.Arg(0)/1024 into g
           select new { kilobytes = g.Key, calls = g.Count() }"""
for row in fay.trace(query, command=sys.argv[2:]):
    print(row['kilobytes'], row['calls'])
