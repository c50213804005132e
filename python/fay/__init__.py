# SPDX-License-Identifier: MIT
"""Fay for Linux: verify probe images, and trace live processes by queries.

    import fay
    for row in fay.trace('cluster.Function("libc!malloc").Count()', command=['ls']):
        print(row)

Errors are exceptions, all of them `fay.Error`.
"""
from ._trace import Row, Statistics, Tracer, Value, trace
from ._types import Error, Internal, Limit, Refused, Usage
from ._verify import Probe, Rejection, Verdict, verify

__all__ = ['Error', 'Internal', 'Limit', 'Probe', 'Refused', 'Rejection', 'Row', 'Statistics',
           'Tracer', 'Usage', 'Value', 'Verdict', 'trace', 'verify']
