#!/usr/bin/env python3
"""exact.py PROGRAM PID NUMBER SEED: fay's counts beside those of the processor's own breakpoints.

The process is traced by one query over all functions of all its modules, once as calls begin and
once as they end. Of these NUMBER functions are drawn, odd ones first (KINDS), a sixth of them such
as fay has not seen called. The truth is taken in the same run, at the same addresses: the kernel's
perf events of hardware breakpoints at the functions' first instructions, in all threads, which
change no byte and count an instruction whatever was written there. A processor has four, so there
are rounds: the process is stopped (SIGSTOP), four addresses are set, fay's counts are read, it goes
on and gets work, and is stopped again to read both. So the two see the same calls, to the last.

Whoever starts this reads `work` from its output, gives the process work and answers by a line; what
else is printed is the table. A call that has not returned when the process is stopped is entered
and not left: entries and returns are equal if as many were under way before. Of functions that loop
back to their first instruction, where a breakpoint counts each round, no returns are drawn (at
entries such a jump leads elsewhere while fay traces). What is not equal is measured three more
times, and named with each result."""
import collections, ctypes, json, os, random, re, resource, signal, struct, subprocess, sys, time
import threading

here = os.path.dirname(os.path.realpath(__file__))
fay = os.environ.get("FAY", os.path.join(here, "../../build/bin/fay"))
program, pid, wanted, seed = sys.argv[1], *map(int, sys.argv[2:5])
REGISTERS = 4 # for breakpoints, of a processor
KINDS = ["trap", "hop", "redirected", "moved", "table", "tiny", "part", "version", "aliases",
         "jumped to", "dynamic linker", "library", "plain"]
QUERIES = {"entries": "Function", "returns": "Return"}
libc = ctypes.CDLL(None, use_errno=True)


class Breakpoints:
    """At up to four addresses, in all threads of the process and those that they make."""
    EVENT_OPEN, TYPE, EXECUTE = 298, 5, 4 # perf_event_open(2), linux/hw_breakpoint.h

    def __init__(self, addresses):
        self.files = {address: [] for address in addresses}
        for thread in os.listdir(f"/proc/{pid}/task"):
            for address in addresses:
                # inherit, pinned, exclude_kernel, exclude_hv; inherit_thread: not by children
                flags = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 35
                attributes = struct.pack("<IIQQQQQIIQQ", self.TYPE, 72, 0, 0, 0, 3, flags, 0,
                                         self.EXECUTE, address, 8)
                file = libc.syscall(self.EVENT_OPEN, attributes, int(thread), -1, -1, 8)
                if file < 0:
                    sys.exit(f"a breakpoint at {address:#x}: {os.strerror(ctypes.get_errno())}")
                self.files[address].append(file)

    def take(self):
        """How often each was executed; they are gone then."""
        counts = {}
        for address, files in self.files.items():
            counts[address] = 0
            for file in files:
                got = os.read(file, 24)
                count, enabled, running = struct.unpack("<QQQ", got or b"\0" * 23 + b"\1")
                if enabled != running:
                    sys.exit(f"a breakpoint at {address:#x} was not there all the time")
                counts[address] += count
                os.close(file)
        return counts


class Trace:
    """One of fay's, of the process; its counts by function at any time."""

    def __init__(self, source):
        query = f'from c in cluster.{source}("*!*") group c by c.function into g ' \
            "select new { g.Key, n = g.Count() }"
        self.process = subprocess.Popen(
            [fay, "trace", "--json", "--verbose", "--every", "200ms", "--budget",
             "none", "-p", str(pid), query], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace")
        self.pictures, self.lines, self.end, self.said = 0, [], None, []
        self.changed = threading.Condition()
        for read in self.read_rows, self.read_messages:
            threading.Thread(target=read, daemon=True).start()
        self.await_(lambda: any("; Ctrl-C ends" in line for line in self.said), 1200)

    def read_rows(self):
        """A picture is over where its first row's key comes again."""
        lines, first = [], None
        for line in self.process.stdout:
            if line.startswith('{"type":"end"'):
                self.end = json.loads(line)
            elif line.startswith('{"type":"row"'):
                key = re.search(r'"Key":"(.*?)"', line)[1]
                if key == first:
                    with self.changed:
                        self.pictures, self.lines, lines = self.pictures + 1, lines, []
                        self.changed.notify_all()
                lines.append(line)
                first = first or key

    def read_messages(self):
        for line in self.process.stderr:
            with self.changed:
                self.said.append(line.rstrip("\n"))
                self.changed.notify_all()

    def await_(self, condition, seconds):
        with self.changed:
            for _ in range(seconds):
                if self.changed.wait_for(condition, 1):
                    return
                if self.process.poll() is not None:
                    break
        sys.exit("fay trace: " + "\n".join(self.said[-3:]))

    def now(self):
        """Of a process that is stopped: from the third picture on all is from after that."""
        due = self.pictures + 3
        self.await_(lambda: self.pictures >= due, 120)
        rows = (json.loads(line)["values"] for line in self.lines)
        return collections.Counter({row["Key"]: row["n"] for row in rows})

    def named(self, words):
        """Functions that the messages name behind these words: (module, function)."""
        found = (re.match(rf"(?:fay: )?{words}: (\S+?)!(\S+?):? ", line) for line in self.said)
        return {(name[1], name[2]) for name in found if name}

    def finish(self):
        self.process.send_signal(signal.SIGINT)
        if self.process.wait(300) or self.end is None or self.end["events_lost"]:
            sys.exit(f"fay trace: {self.end}; " + "\n".join(self.said[-3:]))


def of_threads(name):
    """The words of such a file of each thread's."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            yield open(f"/proc/{pid}/task/{thread}/{name}").read().rpartition(")")[2].split()
        except OSError:
            pass


def stop():
    """In system calls if that can be had: one that is stopped elsewhere may be within a call that
    it has entered and not left."""
    for left in range(40)[::-1]:
        os.kill(pid, signal.SIGSTOP)
        for _ in range(1000):
            if all(words[0] in "TZX" for words in of_threads("stat")):
                break
            time.sleep(0.02)
        else:
            sys.exit("the process does not stop")
        if not left or all(words[0] != "-1" for words in of_threads("syscall") if words):
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.03)


def work():
    os.kill(pid, signal.SIGCONT)
    print("work", flush=True)
    if not sys.stdin.readline():
        sys.exit(1)
    time.sleep(0.2)
    stop()


class Code:
    """The executable mappings of files, and what lies there."""

    def __init__(self):
        self.ranges, self.paths = [], {}
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in open(f"/proc/{pid}/maps"):
                found = re.match(r"(\w+)-(\w+) ..x. \S+ \S+ \S+ +(/.*)", line)
                if found and not found[3].startswith(("/memfd:", "/dev/")):
                    start, end = int(found[1], 16), int(found[2], 16)
                    memory.seek(start)
                    self.ranges.append((start, memory.read(end - start)))
                    self.paths[start] = found[3]

    def at(self, address, size):
        for start, data in self.ranges:
            if start <= address < start + len(data):
                return data[address - start:address - start + size]
        return b""

    def path(self, address):
        for start, data in self.ranges:
            if start <= address < start + len(data):
                return self.paths[start]

    def jumped_to(self, functions):
        """Functions to which a jump leads whose operand is not in the same function."""
        found = set()
        for start, data in self.ranges:
            for at in re.finditer(rb"\xe9", data):
                if len(data) - at.end() >= 4:
                    to = start + at.end() + 4 + struct.unpack_from("<i", data, at.end())[0]
                    if to in functions and not to <= start + at.start() < to + functions[to]:
                        found.add(to)
        return found


def patches(old, new):
    """What was written into a function."""
    kinds, at = set(), 0
    while at < min(len(old), len(new)):
        if old[at] == new[at]:
            at += 1
        elif new[at] in (0xe9, 0xeb, 0xcc):
            kinds.add({0xe9: "jump", 0xeb: "hop", 0xcc: "trap"}[new[at]])
            at += {0xe9: 5, 0xeb: 2, 0xcc: 1}[new[at]]
        else:
            kinds.add("redirected") # a jump's or call's operand
            at += 4
    return kinds


def names_of(path):
    """How many names an address of the file has, by each of them; those of old versions alone."""
    by_address, old = collections.defaultdict(set), set()
    for option in [], ["-D"]:
        text = subprocess.run(["nm", "--defined-only", *option, path], capture_output=True,
                              text=True, errors="replace").stdout
        for line in text.splitlines():
            found = re.match(r"([0-9a-f]+) [tTwWi] (.+)", line)
            if found:
                name, _, version = found[2].partition("@")
                by_address[found[1]].add(name)
                if version and not version.startswith("@"):
                    old.add(name)
    return {name: len(names) for names in by_address.values() for name in names}, old


RELATIVE = re.compile(rb"[\xe8\xe9\xeb\x70-\x7f]|\x0f[\x80-\x8f]|[\x8b\x8d][\x05\x0d\x15\x1d\x25"
                      rb"\x2d\x35\x3d]", re.DOTALL)
TABLE = re.compile(rb"\xff[\xe0-\xe7]", re.DOTALL)


def loops(data):
    """Whether a jump of a function's leads to its first instruction."""
    return any(len(data) - at.end() >= size and
               at.end() + size + int.from_bytes(data[at.end():at.end() + size], "little",
                                                signed=True) == 0
               for opcode, size in ((rb"[\xeb\x70-\x7f]", 1), (rb"\xe9|\x0f[\x80-\x8f]", 4))
               for at in re.finditer(opcode, data, re.DOTALL))


class Sample:
    def __init__(self, what):
        self.what = what
        self.functions = collections.defaultdict(list) # by name: (address, size, module)
        done = subprocess.run([fay, "list", "--json", "-p", str(pid), "*!*"], capture_output=True,
                              text=True, errors="replace")
        for line in done.stdout.splitlines():
            row = json.loads(line)
            if row["type"] == "function":
                self.functions[row["function"]].append(
                    (int(row["address"], 16), row["size"], row["module"]))
        self.before = Code()
        self.trace = Trace(QUERIES[what])
        self.after = Code()
        self.traps = self.trace.named("traced by a trap")
        refused = {name for _, name in self.trace.named("not traced")}
        self.names = sorted(name for name, places in self.functions.items()
                            if len(places) <= REGISTERS and name not in refused
                            and not (what == "returns" and self.any_loops(places)))
        self.main = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        self.known = {}

    def any_loops(self, places):
        return any(loops(self.before.at(address, size)) for address, size, _ in places)

    def kinds(self, name, jumped_to):
        kinds = set()
        for address, size, module in self.functions[name]:
            old, new = (code.at(address, size) for code in (self.before, self.after))
            path = self.before.path(address)
            if path not in self.known:
                self.known[path] = names_of(path) if path else ({}, set())
            counts, versions = self.known[path]
            kinds |= patches(old, new) - {"jump"}
            tests = {
                "trap": (module, name) in self.traps, "moved": RELATIVE.search(old[:5]),
                "table": TABLE.search(old), "tiny": 0 < size <= 8,
                "part": re.search(r"\.(cold|part|isra|constprop)|^fn_", name),
                "version": name in versions, "aliases": counts.get(name, 1) > 1,
                "jumped to": address in jumped_to, "dynamic linker": module.startswith("ld-"),
                "library": path and os.path.basename(path) != self.main}
            kinds |= {kind for kind, holds in tests.items() if holds}
        return kinds or {"plain"}

    def draw(self, called):
        """As many of each kind as there is room for, the kinds in turn."""
        jumped_to = self.before.jumped_to({address: size for places in self.functions.values()
                                           for address, size, _ in places})
        self.kinds_of = {name: self.kinds(name, jumped_to) for name in self.names}
        shuffled = self.names[:]
        random.Random(seed).shuffle(shuffled)
        drawn = []
        for seen, number in (True, wanted - wanted // 6), (False, wanted):
            queues = [[name for name in shuffled if kind in self.kinds_of[name]
                       and (name in called) == seen][::-1] for kind in KINDS]
            while len(drawn) < number and any(queues):
                for queue in queues:
                    while queue and queue[-1] in drawn:
                        queue.pop()
                    if queue and len(drawn) < number:
                        drawn.append(queue.pop())
        return drawn

    def rounds(self, names):
        """Names whose addresses are four at most."""
        left = sorted(names, key=lambda name: -len(self.functions[name]))
        while left:
            room, chosen = REGISTERS, []
            for name in left:
                if len(self.functions[name]) <= room:
                    chosen.append(name)
                    room -= len(self.functions[name])
            left = [name for name in left if name not in chosen]
            yield chosen

    def measure(self, names):
        """(fay's, the processor's) counts by name. The process is stopped before and after."""
        result, after = {}, self.trace.now()
        for chosen in self.rounds(names):
            points = Breakpoints([place[0] for name in chosen for place in self.functions[name]])
            before = after
            work()
            after, truth = self.trace.now(), points.take()
            for name in chosen:
                result[name] = (after[name] - before[name],
                                sum(truth[place[0]] for place in self.functions[name]))
        return result

    def run(self):
        stop()
        work()
        called = self.trace.now()
        drawn = self.draw(called)
        result = self.measure(drawn)
        differ = [name for name in drawn if result[name][0] != result[name][1]]
        again = [self.measure(differ) for _ in range(3)] if differ else []
        os.kill(pid, signal.SIGCONT)
        self.trace.finish()
        called = [name for name in drawn if result[name][1]]
        kinds = collections.Counter(kind for name in called for kind in self.kinds_of[name])
        print(f"{program} | {self.what} | {len(drawn)} | {len(called)} | "
              f"{sum(result[name][1] for name in drawn)} | {len(drawn) - len(differ)} | "
              + ", ".join(f"{kind} {kinds[kind]}" for kind in KINDS if kinds[kind]), flush=True)
        for name in differ:
            places = ", ".join(f"{module} {address:#x}"
                               for address, _, module in self.functions[name])
            print(f"    {name} ({places}; {', '.join(sorted(self.kinds_of[name]))}): "
                  + ", ".join("{} of {}".format(*each[name]) for each in [result, *again]),
                  flush=True)


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for what in QUERIES:
        Sample(what).run()


if __name__ == "__main__":
    main()
