#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""perfetto.py FILE: Chrome's trace as Perfetto's importer takes it (perfetto.dev, docs/faq: slices
of a thread must nest strictly, others are dropped as slice_drop_overlapping_complete_event; its
src/trace_processor/importers/json: numbers of processes and threads have 32 bits, times are
microseconds as doubles, which versions before 2025 cut to nanoseconds and later ones round, a slice
has a duration of 0 or more). Prints how many slices it has, and how many of them it drops."""
import json
import sys

UINT32 = (1 << 32) - 1


def cut(value):
    """As CoerceToTs() does it, before 2025."""
    return int(float(value) * 1000)


def rounded(value):
    """And since."""
    return int(float(value) * 1000 + 0.5)


def check(event):
    if event["ph"] != "X":
        sys.exit("another phase: %s" % event)
    if not isinstance(event["name"], str) or not event["name"]:
        sys.exit("no name: %s" % event)
    for key in ("pid", "tid"):
        if not isinstance(event[key], int) or not 0 <= event[key] <= UINT32:
            sys.exit("%s: %s" % (key, event))
    if cut(event["ts"]) < 0 or cut(event["dur"]) < 0:
        sys.exit("a time below 0: %s" % event)
    if not isinstance(event.get("args", {}), dict):
        sys.exit("args: %s" % event)


def dropped(slices):
    """Of one thread, as SliceTracker::MaybeCloseStack() does; the longer first."""
    stack, count = [], 0
    for begin, length in sorted(slices, key=lambda s: (s[0], -s[1])):
        end = begin + length
        while stack and stack[-1] <= begin:
            stack.pop()
        if any(end > s for s in stack):
            count += 1
        else:
            stack.append(end)
    return count


events = json.load(open(sys.argv[1]))
count = 0
for nanoseconds in cut, rounded:
    threads = {}
    for event in events:
        check(event)
        threads.setdefault((event["pid"], event["tid"]), []).append(
            (nanoseconds(event["ts"]), nanoseconds(event["dur"])))
    count += sum(dropped(slices) for slices in threads.values())
print(len(events), count)
