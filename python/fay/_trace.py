# SPDX-License-Identifier: MIT
"""Traces: rows of a query as they come, and its result."""
from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ._native import ffi, lib
from ._types import Usage, check, text

# int, float, bool; str also for names of functions and places; a time is ns since the epoch. A
# histogram and quantiles are dicts by range and name, TopK's pairs of key and count, a stack and a
# sample lists of str. None: there is no value.
Value = Union[None, bool, int, float, str, Dict[str, int], Dict[str, float],
              List[Tuple[str, int]], List[str]]


def _bytes(cell: Any) -> str:
    return ffi.unpack(cell.bytes, cell.size).decode('utf-8', 'surrogateescape')


def _items(cell: Any) -> List[Any]:
    return [cell.items[i] for i in range(cell.size)]


_values: List[Callable[[Any], Value]] = [
    lambda cell: None,
    lambda cell: cell.i64,
    lambda cell: cell.u64,
    lambda cell: bool(cell.u64),
    lambda cell: cell.real,
    lambda cell: cell.u64,
    _bytes,
    lambda cell: {text(item.label): item.count for item in _items(cell)},
    lambda cell: {text(item.label): item.value for item in _items(cell)},
    lambda cell: [(text(item.label), item.count) for item in _items(cell)],
    lambda cell: [text(item.label) for item in _items(cell)],
    lambda cell: [text(item.label) for item in _items(cell)],
]


class Row(Dict[str, Value]):
    """Values by column. picture: 0 for a row of an event or a window; else which picture of the
    whole result it is a part of, each of which replaces the one before. final: of the last one.
    revised: of a window that came before, with other values."""
    picture = 0
    final = False
    revised = False


@dataclass(frozen=True)
class Statistics:
    """rows so far; threads whose events are counted; events that were lost, and why; events that
    came too late for their window."""
    rows: int
    threads: int
    lost_reentrant: int
    lost_full: int
    lost_no_slot: int
    lost_calls: int
    late: int


@ffi.def_extern()
def take_row(context: Any, row: Any) -> None:
    ffi.from_handle(context)._take(row)


@ffi.def_extern()
def take_message(context: Any, message: Any) -> None:
    ffi.from_handle(context).messages.append(text(message))


def _list(one_or_more: Any, kind: type) -> List[Any]:
    if one_or_more is None:
        return []
    return [one_or_more] if isinstance(one_or_more, kind) else list(one_or_more)


class Tracer:
    """A trace that runs: a context manager, and an iterator over its rows. Names and numbers of
    processes may be one or many; times are seconds; budget is a share of the processor time that
    the probes may take. One thread at a time uses it, but for stop()."""

    def __init__(self, query: str, *, pid: Union[int, Sequence[int], None] = None,
                 comm: Union[str, Sequence[str], None] = None,
                 command: Optional[Sequence[str]] = None, duration: Optional[float] = None,
                 every: Optional[float] = None, budget: float = 0.0,
                 policy: Union[str, 'os.PathLike[str]', None] = None) -> None:
        self.messages: List[str] = []
        self._rows: Deque[Row] = deque()
        self._finished = False
        self._tracer = None
        pids, comms = _list(pid, int), _list(comm, str)
        comms = [ffi.new('char[]', os.fsencode(name)) for name in comms]
        words = [ffi.new('char[]', os.fsencode(word)) for word in command or []]
        if command is not None and not words:
            raise Usage('no command')
        self._handle = ffi.new_handle(self)
        # all that the options point to
        self._kept = (ffi.new('char[]', query.encode()), ffi.new('pid_t[]', pids), comms,
                      ffi.new('char *[]', comms or 1), words,
                      ffi.new('char *[]', words + [ffi.NULL]),
                      ffi.new('char[]', os.fsencode(policy)) if policy is not None else ffi.NULL)
        options = ffi.new('struct fay_tracer_options *', {
            'size': ffi.sizeof('struct fay_tracer_options'), 'pids': self._kept[1],
            'pid_count': len(pids), 'comms': self._kept[3], 'comm_count': len(comms),
            'command': self._kept[5] if words else ffi.NULL,
            'duration_ns': round((duration or 0) * 1e9), 'every_ns': round((every or 0) * 1e9),
            'budget': budget, 'policy_path': self._kept[6], 'context': self._handle,
            'row': lib.take_row, 'message': lib.take_message})
        tracer = ffi.new('struct fay_tracer **')
        error = ffi.new('struct fay_error *')
        check(lib.fay_tracer_open(self._kept[0], options, tracer, error), error)
        self._tracer = tracer[0]

    def _take(self, row: Any) -> None:
        made = Row((text(lib.fay_tracer_column(self._tracer, row.result, i)),
                    _values[row.cells[i].kind](row.cells[i])) for i in range(row.count))
        made.picture, made.final, made.revised = row.picture, row.final, row.revised
        self._rows.append(made)

    def _open(self) -> Any:
        if self._tracer is None:
            raise Usage('the tracer is closed')
        return self._tracer

    def fileno(self) -> int:
        """A descriptor that can be read when it is time for step()."""
        return lib.fay_tracer_fd(self._open())

    def step(self, timeout: Optional[float] = None) -> List[Row]:
        """What has come; waits for `timeout` seconds at most, None: until it is time to look."""
        error = ffi.new('struct fay_error *')
        wait = -1 if timeout is None else round(timeout * 1000)
        check(lib.fay_tracer_step(self._open(), wait, error), error)
        rows = list(self._rows)
        self._rows.clear()
        return rows

    @property
    def over(self) -> Optional[str]:
        """Why it is over; None: it goes on."""
        why = lib.fay_tracer_over(self._open())
        return text(why) if why else None

    @property
    def process(self) -> Optional[int]:
        """The command's number while it has not ended: a child of this process, which goes on after
        close()."""
        return lib.fay_tracer_command(self._open()) or None

    def stop(self) -> None:
        lib.fay_tracer_stop(self._open())

    def finish(self) -> List[Row]:
        """Detaches; the final result's rows, and what had come and was not taken."""
        error = ffi.new('struct fay_error *')
        self._finished = True
        check(lib.fay_tracer_finish(self._open(), error), error)
        rows = list(self._rows)
        self._rows.clear()
        return rows

    @property
    def statistics(self) -> Statistics:
        error = ffi.new('struct fay_error *')
        s = ffi.new('struct fay_tracer_statistics *')
        s.size = ffi.sizeof('struct fay_tracer_statistics')
        check(lib.fay_tracer_statistics(self._open(), s, error), error)
        return Statistics(s.rows, s.threads, s.lost_reentrant, s.lost_full, s.lost_no_slot,
                          s.lost_calls, s.late)

    def close(self) -> None:
        """Detaches, if that was not done."""
        if self._tracer is not None:
            lib.fay_tracer_close(self._tracer)
            self._tracer = None

    def __iter__(self) -> Iterator[Row]:
        while self.over is None:
            yield from self.step()
        if not self._finished:
            yield from self.finish()

    def __enter__(self) -> 'Tracer':
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def trace(query: str, **options: Any) -> List[Row]:
    """Runs a trace to its end: its rows of events and windows, and the final result's. The options
    are those of Tracer."""
    with Tracer(query, **options) as tracer:
        return [row for row in tracer if row.final or not row.picture]
