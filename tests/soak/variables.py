#!/usr/bin/env python3
"""variables.py DIRECTORY [NUMBER [SEED]]: values of random variables by fay, beside gdb's.

Of three programs of Debian's, built at -O2 -g (sources.sh), random lines are drawn that are one
place and are executed, and of the numbers, enumerations' constants and pointers that gdb sees from
there NUMBER pairs of line and variable (1000, seed 25). Compared are the values of the first four
events with those of a breakpoint at the same address in the frame of the line's function.

equal      four values alike
heap       pointers into the heap, which lies elsewhere while fay traces (its own mappings are where
           the program's break would grow): null in the same events, else with the same low bits
both none  both say optimised out, each time
entry      gdb says optimised out, in some events or all; there fay has what a breakpoint of gdb's at
           the function's first instruction saw in the register that the debug information names
caller     gdb finds in the caller what the function was called with, and fay says that it knows no
           value
composed   gdb computes a value, and fay says that it knows none
gdb only   otherwise gdb has values, and fay says that it knows none
fay only   the other way round
differ     another value, or optimised out in some events only

Writes a table, and DIRECTORY/variables.txt with each pair that is not equal."""
import collections, concurrent.futures, json, os, random, re, subprocess, sys, tempfile

import counts
from counts import fay, folder, programs, run, here

wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
kinds = ["equal", "heap", "both none", "entry", "caller", "composed", "gdb only", "fay only",
         "differ"]
HITS = 4
EVENTS_FIELDS = {"line", "function", "module", "pid", "tid", "time"} # hide variables of that name


def place_of(program, line):
    """The only place of a line; None."""
    done = run([fay, "list", "--json", "--lines", f"{folder}/{program}", f"{program}!{line}"])
    places = [json.loads(text) for text in done.stdout.splitlines()]
    places = [place for place in places if place["type"] == "place"]
    return places[0] if len(places) == 1 else None


def by_gdb(program, places, entries=False):
    """In runs of few places: gdb itself dies at some, which are then looked for and left out."""
    names = list(places)
    if len(names) > 25:
        return [pair for at in range(0, len(names), 25) for pair in
                by_gdb(program, {name: places[name] for name in names[at:at + 25]}, entries)]
    with tempfile.TemporaryDirectory() as work:
        json.dump(places, open(f"{work}/places", "w"))
        said = run(["setarch", "-R", "gdb", "-nx", "-batch", "-x", f"{here}/variables.gdb.py"],
                   program, env={**os.environ, **({"ENTRIES": "1"} if entries else {}),
                                 "PLACES": f"{work}/places", "HITS": str(HITS),
                                 "PROGRAM": f"{folder}/{program}"}).stdout
    if re.search(r"^\[Inferior .* exited", said, re.M):
        return [json.loads(line[7:]) for line in said.split("\n") if line.startswith("VALUES ")]
    if len(names) <= 1:
        return []
    half = len(names) // 2
    return by_gdb(program, {name: places[name] for name in names[:half]}, entries) + \
        by_gdb(program, {name: places[name] for name in names[half:]}, entries)


def by_fay(program, line, names):
    """The events' values by name, None where not known; or why there are none."""
    columns = ", ".join(f'v{i} = l.{name}, k{i} = l.Known("{name}")'
                        for i, name in enumerate(names))
    with tempfile.NamedTemporaryFile("r", errors="replace") as out:
        done = run(["setarch", "-R", fay, "trace", "--json", "--budget", "none", "--for", "300s",
                    "-o", out.name,
                    f'(from l in cluster.Line("{program}!{line}") select new {{ {columns} }})'
                    f'.Take({HITS})', "--", f"{folder}/{program}"], program)
        rows = [row for row in map(json.loads, out) if row["type"] == "row"]
    if not rows and len(names) > 1: # the one that it does not know stands for itself
        alone = [by_fay(program, line, [name]) for name in names]
        return {name: got if isinstance(got, str) else got[name]
                for name, got in zip(names, alone)}
    if not rows:
        return " ".join(done.stderr.split())[:200]
    return {name: [row["values"][f"v{i}"] if row["values"][f"k{i}"] else None
                   for row in rows][:HITS] for i, name in enumerate(names)}


def plain(value):
    if value is None or value == "":
        return None
    if isinstance(value, dict):
        return value["text"]
    return value if isinstance(value, str) else int(value) % 2 ** 64


def same(want, got):
    if isinstance(want, str) and isinstance(got, str): # fay's may be cut off
        return got == want or (len(got) >= 15 and want.startswith(got[:200]))
    return want == got


def in_heap(want, got):
    return want == got == 0 or (isinstance(want, int) and isinstance(got, int) and
                                want >> 40 == 0x55 and got >> 40 == 0x7f and want % 16 == got % 16)


def why(place):
    """Of a variable of which gdb alone has values."""
    if re.search("entry_value|parameter_ref", place):
        return "caller"
    composed = re.search(r"DW_OP_(sh[lr]|shra|mul|div|mod|and|or|xor|not|neg|eq|ne|[lg][te]|bra)\b",
                         place)
    return "composed" if composed or re.search(r"deref.*DW_OP_(plus|minus)", place, re.S) \
        else "gdb only"


def kind_of(want, got):
    if isinstance(got, str):
        return "gdb only" if any(want) else "both none"
    want = [plain(value) if isinstance(value, dict) or value == "" else int(value) % 2 ** 64
            for value in want]
    got = [value if isinstance(value, str) else plain(value) for value in got]
    if len(got) == len(want) and all(map(same, want, got)):
        got = want
    if len(got) == len(want) and all(map(in_heap, want, got)):
        return "heap"
    if got == want:
        return "equal" if set(got) != {None} else "both none"
    return "gdb only" if set(got) == {None} else "fay only" if set(want) == {None} else "differ"


def compare(program, pool, log):
    draw, executed = random.Random(counts.seed), counts.Truth.lines_of(program)
    draw.shuffle(executed)
    number, places = wanted // len(programs), {}
    for line, place in zip(executed, pool.map(lambda line: place_of(program, line),
                                              executed[:number])):
        if place:
            places[line] = place["function"], int(place["address"], 16)
    pairs = [pair for pair in by_gdb(program, places) if pair["name"] not in EVENTS_FIELDS]
    pairs = draw.sample(pairs, min(number, len(pairs)))
    lines = collections.defaultdict(list)
    for pair in pairs:
        lines[pair["line"]].append(pair["name"])
    asked = [(line, names[at:at + 3]) for line, names in lines.items()
             for at in range(0, len(names), 3)]
    got = {}
    for (line, names), values in zip(asked, pool.map(lambda one: by_fay(program, *one), asked)):
        for name in names:
            got[line, name] = values if isinstance(values, str) else values[name]
    tally = collections.Counter()
    for pair in pairs:
        values = got[pair["line"], pair["name"]]
        kind = kind_of(pair["values"], values)
        if kind == "gdb only":
            kind = why(pair["place"])
        if kind in ("fay only", "differ"): # with breakpoints at the beginnings of calls, too
            again = [other["values"] for other in
                     by_gdb(program, {pair["line"]: places[pair["line"]]}, entries=True)
                     if other["name"] == pair["name"]]
            if again and kind_of(again[0], values) in ("equal", "heap"):
                kind = "entry"
        tally[kind] += 1
        if kind not in kinds[:4]:
            print(f"{program} {pair['line']} {pair['name']}: {kind}; gdb {pair['values']}, fay "
                  f"{values}", file=log)
    good = sum(tally[kind] for kind in kinds[:4])
    print(f"| {program} | {len(pairs)} | " + " | ".join(str(tally[kind]) for kind in kinds) +
          f" | {100 * good / len(pairs):.1f} % |", flush=True)


subprocess.run([f"{here}/sources.sh", folder], check=True)
print(f"| program | pairs | {' | '.join(kinds)} | alike |")
print("|---" * (len(kinds) + 3) + "|")
with open(f"{folder}/variables.txt", "w", buffering=1) as log, \
        concurrent.futures.ThreadPoolExecutor(2) as pool:
    for program in programs:
        compare(program, pool, log)
