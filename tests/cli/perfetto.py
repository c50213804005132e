#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""perfetto.py FILE: Chrome's trace as Perfetto's importer takes it (perfetto.dev, docs/faq: slices
of a thread must nest strictly, others are dropped as slice_drop_overlapping_complete_event; its
src/trace_processor/importers/json: numbers of processes and threads have 32 bits, times are
microseconds as doubles, a slice has a duration of 0 or more). Prints how many slices it has, and
how many of them it drops; one that begins or ends outside of others by more than a nanosecond,
which is what calls' beginnings are known to, is an error."""
import json
import sys

UINT32 = (1 << 32) - 1


def nanoseconds(value):
    """As CoerceToNs() does: a double, cut."""
    return int(float(value) * 1000)


def check(event):
    if event["ph"] != "X":
        sys.exit("another phase: %s" % event)
    if not isinstance(event["name"], str) or not event["name"]:
        sys.exit("no name: %s" % event)
    for key in ("pid", "tid"):
        if not isinstance(event[key], int) or not 0 <= event[key] <= UINT32:
            sys.exit("%s: %s" % (key, event))
    if nanoseconds(event["ts"]) < 0 or nanoseconds(event["dur"]) < 0:
        sys.exit("a time below 0: %s" % event)
    if not isinstance(event.get("args", {}), dict):
        sys.exit("args: %s" % event)


def dropped(slices):
    """Of one thread, as SliceTracker::MaybeCloseStack() does; the longer first."""
    stack, count = [], 0
    for begin, length, name in sorted(slices, key=lambda s: (s[0], -s[1])):
        end = begin + length
        while stack and stack[-1][1] <= begin:
            stack.pop()
        outside = [s for s in stack if end > s[1]]
        if any(begin - s[0] > 2 for s in outside):  # each of them is a nanosecond off, and cut
            sys.exit("%s overlaps %s by %d ns" % (name, outside[-1][2], end - outside[-1][1]))
        if outside:
            count += 1
        else:
            stack.append((begin, end, name))
    return count


events = json.load(open(sys.argv[1]))
threads = {}
for event in events:
    check(event)
    threads.setdefault((event["pid"], event["tid"]), []).append(
        (nanoseconds(event["ts"]), nanoseconds(event["dur"]), event["name"]))
print(len(events), sum(dropped(slices) for slices in threads.values()))
