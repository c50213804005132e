#!/usr/bin/env python3
"""counts.py DIRECTORY [NUMBER [SEED]]: counts of random lines and functions by fay, beside truth.

Of three programs of Debian's, built at -O2 -g (sources.sh), NUMBER lines and NUMBER functions that
they execute are drawn (500, seed 25). Each is counted by a trace of its own, in a run of its own.
Functions are asked for with their inlined copies. Beside that:

gcov      builds of the same sources that count themselves, without optimisation and with it. A line
          counts as often as its basic blocks are entered from others; a function as often as it is
          called. fay has to agree with one of the two builds.
gcov, head  a line that is the head of a loop: gcov counts all its rounds, fay that the loop begins,
          as a debugger does. Compared with the line's first block.
gdb       how often the same build executes the addresses of a breakpoint that gdb sets there
          (valgrind --tool=callgrind counts each instruction). What is equal to this alone is the
          compiler's: it says that the line or the copy begins at these instructions.
no place  fay says that no statement begins there, or no such function, and gdb knows no place of
          that line or function, either. Lines of this kind are drawn again.

Writes a table, and DIRECTORY/counts.txt with each that is not equal to gcov."""
import collections, concurrent.futures, gzip, json, os, random, re, subprocess, sys, tempfile

here = os.path.dirname(os.path.realpath(__file__))
fay = os.environ.get("FAY", os.path.join(here, "../../build/bin/fay"))
folder = os.path.realpath(sys.argv[1])
wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 500
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 25
programs = ["lua", "sqlite3", "minisat"]
kinds = ["gcov", "gcov, head", "gdb", "neither", "no place"]


def run(command, program=None, **more):
    stdin = open(f"{folder}/{program}.in") if program else subprocess.DEVNULL
    return subprocess.run(command, stdin=stdin, capture_output=True, text=True, errors="replace",
                          timeout=600, **more)


def without_result(name):
    """`bool f<int>(int)` is called f<int>(int)."""
    depth = begin = 0
    for at, letter in enumerate(name):
        if name.startswith("operator", at) or (letter == "(" and not depth):
            break
        depth += (letter in "<(") - (letter in ">)")
        if letter == " " and not depth:
            begin = at + 1
    return name[begin:]


class Truth:
    @staticmethod
    def lines_of(program):
        """Those that are executed, the same number of times each time."""
        truth = Truth(program, only_gcov=True)
        return steady(truth, truth.lines[0])

    def __init__(self, program, only_gcov=False):
        self.program, self.path = program, f"{folder}/{program}"
        self.source = os.path.realpath(open(f"{self.path}.src").read().strip())
        self.lines, self.functions, self.names = [], [], {}
        self.heads = {}
        self.unsteady = set()
        for build in "O0", "O2":
            for _ in range(2):
                with tempfile.TemporaryDirectory(dir=folder) as work:
                    self.read_gcov(build, work)
            for kind in self.lines, self.functions:
                again, first = kind.pop(), kind[-1]
                self.unsteady |= {place for place in first if first[place] != again[place]}
        if not only_gcov:
            self.read_callgrind()

    def read_gcov(self, build, work):
        subprocess.run(f"cp {self.path}.{build}-*.gcno {work}", shell=True, check=True)
        # by the same name: what is as long as that is allocated
        os.link(f"{self.path}.{build}", f"{work}/{self.program}")
        run([f"./{self.program}"], self.program, cwd=work,
            env={**os.environ, "GCOV_PREFIX": work, "GCOV_PREFIX_STRIP": "99"})
        subprocess.run("gcov --json-format *.gcda", shell=True, cwd=work, capture_output=True)
        lines, functions = collections.Counter(), collections.Counter()
        for name in os.listdir(work):
            if not name.endswith(".json.gz"):
                continue
            for file in json.load(gzip.open(f"{work}/{name}"))["files"]:
                if not os.path.realpath(file["file"]).startswith(self.source):
                    continue
                base = os.path.basename(file["file"])
                for line in file["lines"]:
                    lines[f"{base}:{line['line_number']}"] += line["count"]
                for function in file["functions"]:
                    self.names[function["name"]] = without_result(function["demangled_name"])
                    functions[function["name"]] += function["execution_count"]
        self.lines.append(lines)
        self.functions.append(functions)
        if build != "O0":
            return
        text = subprocess.run("gcov -a -t *.gcda", shell=True, cwd=work, capture_output=True,
                              text=True, errors="replace").stdout
        base = None
        for line in text.splitlines():
            if found := re.match(r" *-: *0:Source:(.*)", line):
                base = os.path.basename(found[1])
            elif found := re.match(r" *(\d+)\*?: *(\d+)-block ", line):
                self.heads.setdefault(f"{base}:{found[2]}", []).append(int(found[1]))

    def read_callgrind(self):
        self.executed, inside, after_call = collections.Counter(), False, False
        with tempfile.NamedTemporaryFile(dir=folder) as out:
            run(["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no",
                 "--compress-strings=no", "--callgrind-out-file=" + out.name,
                 f"./{self.program}"], self.program, cwd=folder)
            for line in open(out.name):
                if line.startswith("ob="):
                    inside = line.rstrip().endswith("/" + self.program)
                elif line.startswith("calls="):
                    after_call = True
                elif line.startswith("0x"):
                    if inside and not after_call:
                        address, _, count = line.split()[:3]
                        self.executed[int(address, 16)] += int(count)
                    after_call = False

    def gdb(self, places):
        """How often the addresses of gdb's breakpoints are executed; without a line's if gdb has
        none in it."""
        with tempfile.TemporaryDirectory() as work:
            json.dump(places, open(f"{work}/places", "w"))
            open(f"{work}/ask.py", "w").write(f'''
import gdb, json
gdb.execute("set pagination off")
for place in json.load(open("{work}/places")):
    line = place.rsplit(":", 1)[-1]
    try:
        point = gdb.Breakpoint(place if line.isdigit() else "-qualified " + place)
    except gdb.error:
        continue
    found = sorted(set(at.address for at in point.locations
                   if not line.isdigit() or (at.source and at.source[1] == int(line))))
    print("AT " + json.dumps([place, found]))
    point.delete()
''')
            said = run(["gdb", "-nx", "-batch", "-ex", "file " + self.path, "-x",
                        f"{work}/ask.py"]).stdout
        found = dict(json.loads(line[3:]) for line in said.splitlines() if line.startswith("AT "))
        return {place: sum(self.executed[at] for at in addresses)
                for place, addresses in found.items() if addresses}


def steady(truth, counts):
    return sorted(place for place, number in counts.items()
                  if number and place not in truth.unsteady)


def glob(name):
    return re.sub(r"[][*!]", "?", name)


def count(program, query):
    """By fay; or why not."""
    done = run([fay, "trace", "--json", "--budget", "none", "--for", "300s", query, "--",
                f"./{program}"], program, cwd=folder)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"type"')]
    ends = [row for row in rows if row["type"] == "end"]
    if not ends or ends[0]["events_lost"]:
        return (done.stderr.strip().splitlines() or ["?"])[-1]
    return sum(row["values"]["n"] for row in rows if row["type"] == "row" and row["final"])


def counts(program, places, query):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip(places, pool.map(lambda place: count(program, query(place)), places)))


def kind_of(truth, place, got, builds, by_gdb):
    if isinstance(got, str):
        return "no place" if place not in by_gdb else "neither"
    if got in [build[place] for build in builds if place in build]:
        return "gcov"
    text = truth.text(place)
    if text and re.search(r"\b(for|while|do)\b", text) and truth.heads.get(place, [])[:1] == [got]:
        return "gcov, head"
    return "gdb" if by_gdb.get(place) == got else "neither"


def text_of(truth):
    files = {}
    for root, _, names in os.walk(truth.source):
        for name in names:
            if name.endswith((".c", ".cc", ".h")):
                files.setdefault(name, os.path.join(root, name))
    for name in "sqlite3.c", "shell.c": # the amalgamation's, not what it is made of
        if os.path.exists(f"{truth.source}/{name}"):
            files[name] = f"{truth.source}/{name}"

    def text(place):
        base, _, number = place.rpartition(":")
        if base not in files:
            return None
        return open(files[base], errors="replace").read().split("\n")[int(number) - 1].strip()
    return text


def compare(what, truth, candidates, query, builds, names, log):
    """Draws until there are as many as wanted that have a place."""
    tally, number = collections.Counter(), wanted // len(programs)
    while candidates and sum(tally.values()) - tally["no place"] < number:
        short = number - (sum(tally.values()) - tally["no place"])
        drawn, candidates = candidates[:short], candidates[short:]
        got = counts(truth.program, drawn, query)
        by_gdb = truth.gdb([names(place) for place in drawn])
        by_gdb = {place: by_gdb[names(place)] for place in drawn if names(place) in by_gdb}
        for place in drawn:
            kind = kind_of(truth, place, got[place], builds, by_gdb)
            tally[kind] += 1
            if kind != "gcov":
                print(f"{truth.program} {what} {names(place)}: {kind}; fay {got[place]}, gcov "
                      f"{' or '.join(str(build.get(place)) for build in builds)}, gdb "
                      f"{by_gdb.get(place)}: {(truth.text(place) or '')[:60]}", file=log)
    all = sum(tally.values()) - tally["no place"]
    gcov = tally["gcov"] + tally["gcov, head"]
    print(f"| {truth.program} | {what} | {all} | " + " | ".join(str(tally[k]) for k in kinds) +
          f" | {100 * gcov / all:.1f} % | {100 * (gcov + tally['gdb']) / all:.1f} % |", flush=True)
    return tally


def main():
    subprocess.run([f"{here}/sources.sh", folder], check=True)
    print(f"| program | what | drawn | {' | '.join(kinds)} | gcov's | gcov's or gdb's |")
    print("|---" * (len(kinds) + 5) + "|")
    with open(f"{folder}/counts.txt", "w", buffering=1) as log:
        for program in programs:
            truth = Truth(program)
            truth.text = text_of(truth)
            draw = random.Random(seed)
            lines = steady(truth, truth.lines[0])
            draw.shuffle(lines)
            compare("lines", truth, lines,
                    lambda line: f'from l in cluster.Line("{program}!{line}") '
                    'group l by l.line into g select new { n = g.Count() }', truth.lines,
                    lambda line: line, log)
            functions = steady(truth, truth.functions[0])
            draw.shuffle(functions)
            compare("functions", truth, functions,
                    lambda name: 'from f in cluster.Function("'
                    f'{program}!{glob(truth.names[name])}") '
                    'group f by f.Inlined into g select new { n = g.Count() }', truth.functions,
                    lambda name: truth.names[name], log)


if __name__ == "__main__":
    main()
