# SPDX-License-Identifier: MIT
"""Fay for Linux: verify probe images, run checked native code of others, and trace live processes
by queries.

    import fay
    for row in fay.trace('cluster.Function("libc!malloc").Count()', command=['ls']):
        print(row)

Errors are exceptions, all of them `fay.Error`.
"""
from ._extension import Extension, Host, Instance, Limits
from ._trace import Row, Statistics, Tracer, Value, trace
from ._types import Error, Internal, Limit, Refused, Usage
from ._verify import Probe, Rejection, Verdict, verify

__all__ = ['Error', 'Extension', 'Host', 'Instance', 'Internal', 'Limit', 'Limits', 'Probe',
           'Refused', 'Rejection', 'Row', 'Statistics', 'Tracer', 'Usage', 'Value', 'Verdict',
           'trace', 'verify']
