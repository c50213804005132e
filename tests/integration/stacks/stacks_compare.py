# SPDX-License-Identifier: MIT
# stacks_compare.py FAY RESULT NOTES [BEFORE]: the stacks that `fay trace --json` gave against those that the program noted itself (stacks_oracle.c), address by address. BEFORE: so many functions of the former are not noted, 1 unless said.
import collections, json, os, subprocess, sys

fay, result, notes = sys.argv[1:4]
before = int(sys.argv[4]) if len(sys.argv) > 4 else 1
expected = collections.Counter()
files = set()
with open(notes) as lines:
    for line in lines:
        frames = []
        for frame in line.rstrip("\n").split(";"):
            path, address = frame.rsplit(" ", 1)
            frames.append((os.path.realpath(path), int(address, 16)))
        expected[tuple(frames)] += 1
        files.update(path for path, _ in frames)

# What a frame's name may mean: all functions of that name, in all files that have it.
places = collections.defaultdict(list)
for path in files:
    listed = subprocess.run([fay, "list", "--json", path, "*!*"], stdout=subprocess.PIPE, check=True).stdout
    for line in listed.splitlines():
        function = json.loads(line)
        if function.get("type") == "function":
            places[function["module"] + "!" + function["function"]].append((path, int(function["address"], 16)))

def meanings(frame):
    name, _, offset = frame.rpartition("+0x")
    module, _, function = name.partition("!")
    if function.startswith("fn_"):
        return {(path, int(function[3:], 16) + int(offset, 16)) for path in files if os.path.basename(path).startswith(module)}
    return {(path, address + int(offset, 16)) for path, address in places[name]}

rows = []
with open(result) as lines:
    for line in lines:
        row = json.loads(line)
        if row["type"] == "row" and row["final"]:
            rows.append((row["values"]["stack"], row["values"]["n"]))
frames_compared = 0
cache = {}
for stack, n in rows:
    callers = stack[before:]
    for frame in callers:
        if frame not in cache:
            cache[frame] = meanings(frame)
    found = [e for e in expected if len(e) == len(callers) and all(p in cache[f] for f, p in zip(callers, e))]
    if len(found) != 1:
        sys.exit(f"{len(found)} noted stacks are like this one: {stack}")
    if expected[found[0]] != n:
        sys.exit(f"{n} events, {expected[found[0]]} noted: {stack}")
    del expected[found[0]]
    frames_compared += len(callers)
if expected:
    sys.exit(f"{len(expected)} noted stacks are missing, for example {next(iter(expected))}")
print(f"{len(rows)} different stacks, {frames_compared} frames, {sum(n for _, n in rows)} events")
