# SPDX-License-Identifier: MIT
# stacks_compare.py FAY RESULT NOTES [BEFORE]: the stacks that `fay trace --json` gave against those that the program noted itself (stacks_oracle.c), address by address. BEFORE: so many functions of the former are not noted, 1 unless said.
# Where the result has a column `number`, that is of the note (interrupted_target.cc), and 999 of 1,000 have to be right, as far as they were asked for.
import collections, json, os, subprocess, sys

fay, result, notes = sys.argv[1:4]
before = int(sys.argv[4]) if len(sys.argv) > 4 else 1
expected = collections.Counter()
noted = []
files = set()
with open(notes) as lines:
    for line in lines:
        frames = []
        for frame in line.rstrip("\n").split(";"):
            path, address = frame.rsplit(" ", 1)
            frames.append((path if path == "?" else os.path.realpath(path), int(address, 16)))
        expected[tuple(frames)] += 1
        noted.append(frames)
        files.update(path for path, _ in frames if path != "?")

# What a frame's name may mean: all functions of that name, in all files that have it.
places = collections.defaultdict(list)
for path in files:
    listed = subprocess.run([fay, "list", "--json", path, "*!*"], stdout=subprocess.PIPE, check=True).stdout
    for line in listed.splitlines():
        function = json.loads(line)
        if function.get("type") == "function":
            places[function["module"] + "!" + function["function"]].append((path, int(function["address"], 16)))

def meanings(frame):
    if frame.startswith("0x"):
        return {("?", int(frame, 16))}
    name, _, offset = frame.rpartition("+0x")
    if "!" not in name:
        return {(path, int(offset, 16)) for path in files if os.path.basename(path).startswith(name)}
    module, _, function = name.partition("!")
    if function.startswith("fn_"):
        return {(path, int(function[3:], 16) + int(offset, 16)) for path in files if os.path.basename(path).startswith(module)}
    return {(path, address + int(offset, 16)) for path, address in places[name]}

cache = {}
def can_be(frame, place):
    if frame not in cache:
        cache[frame] = meanings(frame)
    return place in cache[frame]

def compare_numbered(rows):
    right, wrong = 0, []
    for values in rows:
        callers, note = values["stack"][before:], noted[values["number"]]
        asked = note[:STACK_ASKED - before]
        if len(callers) == len(asked) and all(map(can_be, callers, asked)):
            right += 1
        else:
            wrong.append((callers, note))
    kinds = {}  # of wrong ones, by the last frame that is right
    for callers, note in wrong:
        last = next((i for i, (frame, place) in enumerate(zip(callers, note)) if not can_be(frame, place)), min(len(callers), len(note)))
        kinds.setdefault(callers[last - 1] if last else "the first", []).append((callers, note))
    for kind, (first, *more) in kinds.items():
        print(f"wrong behind {kind}: {1 + len(more)} stacks, for example", *first[0], sep="\n    ")
        print("noted:", *(f"{os.path.basename(path)} {address:x}" for path, address in first[1]), sep="\n    ")
    print(f"{right} of {len(noted)} stacks are right")
    if len({values["number"] for values in rows}) != len(noted) or right < 0.999 * len(noted):
        sys.exit(1)

STACK_ASKED = 16
rows = []
with open(result) as lines:
    for line in lines:
        row = json.loads(line)
        if row["type"] == "row" and (row["final"] or "number" in row["values"]):
            rows.append(row["values"])
if rows and "number" in rows[0]:
    compare_numbered(rows)
    sys.exit()
frames_compared = 0
for values in rows:
    stack, n = values["stack"], values["n"]
    callers = stack[before:]
    found = [e for e in expected if len(e) == len(callers) and all(map(can_be, callers, e))]
    if len(found) != 1:
        sys.exit(f"{len(found)} noted stacks are like this one: {stack}")
    if expected[found[0]] != n:
        sys.exit(f"{n} events, {expected[found[0]]} noted: {stack}")
    del expected[found[0]]
    frames_compared += len(callers)
if expected:
    sys.exit(f"{len(expected)} noted stacks are missing, for example {next(iter(expected))}")
print(f"{len(rows)} different stacks, {frames_compared} frames, {sum(values['n'] for values in rows)} events")
