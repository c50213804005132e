#!/usr/bin/env python3
"""countable.py DIRECTORY: of what counts.py found not equal to gcov, what could have been counted.

Reads DIRECTORY/counts.txt, the debug information (llvm-dwarfdump-19) and how often each instruction
of the same build is executed (callgrind). A call of a function is made out of line or by one of its
copies; who counts a copy at one of its instructions counts at most what the most often executed one
of them is, and at least what the least often executed one is. So a function's count can be had from
no place if the copies' most, together, are less than the calls, or their least more. A line's
likewise, with the addresses of its rows in the line table: no more than all of them together.

`none` is said of those, `could` of all others, with the least and the most; the last line of a
program counts them."""
import collections, re, subprocess, sys

sys.argv[2:] = []
import counts


class Debug:
    """Copies and functions by name: the ranges of each; rows of lines."""

    def __init__(self, path):
        self.names, self.copies = {}, collections.defaultdict(list) # by offset
        self.own, self.declared = collections.defaultdict(list), {}
        entry = None
        text = subprocess.run(["llvm-dwarfdump-19", "--debug-info", path], capture_output=True,
                              text=True).stdout
        for line in text.splitlines():
            if found := re.match(r"0x([0-9a-f]+): +(DW_TAG_\w+|NULL)", line):
                self.add(entry)
                entry = {"at": int(found[1], 16), "tag": found[2], "ranges": []}
            elif entry is None:
                continue
            elif found := re.match(r" +DW_AT_((?:low|high|entry)_pc|abstract_origin|specification)"
                                   r"\t\(0x([0-9a-f]+)", line):
                entry[found[1]] = int(found[2], 16)
            elif found := re.match(r' +DW_AT_(\w+)\t\("(.*)"\)', line):
                entry[found[1]] = found[2]
            elif found := re.match(r" +DW_AT_(decl_line|decl_column)\t\((\d+)\)", line):
                entry[found[1]] = int(found[2])
            elif found := re.match(r" +\[0x([0-9a-f]+), 0x([0-9a-f]+)\)", line):
                entry["ranges"].append((int(found[1], 16), int(found[2], 16)))
        self.add(entry)
        self.lines = collections.defaultdict(set)
        self.marks = collections.defaultdict(set) # likewise with the column
        text = subprocess.run(["llvm-dwarfdump-19", "--debug-line", path], capture_output=True,
                              text=True).stdout
        files = {}
        for line in text.splitlines():
            if line.startswith("debug_line["):
                files = {}
            elif found := re.match(r"file_names\[ *(\d+)\]:", line):
                number = int(found[1])
            elif found := re.match(r' +name: "(.*)"', line):
                files[number] = found[1].rpartition("/")[2]
            elif found := re.match(r"0x([0-9a-f]+) +(\d+) +(\d+) +(\d+) ", line):
                if "end_sequence" not in line:
                    place = f"{files.get(int(found[4]))}:{found[2]}"
                    self.lines[place].add(int(found[1], 16))
                    if "is_stmt" in line:
                        self.marks[place, int(found[3])].add(int(found[1], 16))

    def add(self, entry):
        if not entry:
            return
        if "low_pc" in entry and "high_pc" in entry:
            entry["ranges"].append((entry["low_pc"], entry["high_pc"]))
        if entry["tag"] == "DW_TAG_subprogram":
            self.names[entry["at"]] = (entry.get("linkage_name") or entry.get("name"),
                                       entry.get("abstract_origin", entry.get("specification")))
            self.declared[entry["at"]] = (
                f"{entry.get('decl_file', '').rpartition('/')[2]}:{entry.get('decl_line')}",
                entry.get("decl_column"))
            if entry["ranges"]:
                self.own[entry["at"]].append(entry["ranges"])
        elif entry["tag"] == "DW_TAG_inlined_subroutine":
            origin = entry.get("abstract_origin")
            self.copies[origin].append((origin, entry.get("entry_pc"), entry["ranges"]))

    def name(self, at):
        for _ in range(4):
            name, origin = self.names.get(at, (None, None))
            if name and (origin is None or name.startswith("_Z")):
                return name
            if origin is None:
                return name
            at = origin
        return None

    def declaration(self, at):
        for _ in range(4):
            if self.declared.get(at, (None, None))[1] is not None:
                return self.declared[at]
            at = self.names.get(at, (None, None))[1]
        return None

    def of(self, name):
        """(ranges of each out-of-line function, of each copy)"""
        return [[ranges for at, all in table.items() if self.name(at) == name for ranges in all]
                for table in (self.own, self.copies)]


def of_copy(debug, executed, origin, entry, ranges):
    """How often a copy's least and most executed place is executed: instructions of its ranges,
    where it says that it is entered, and where ranges begin, those without bytes, too. And all
    together at which gcc has marked a beginning: rows where the function is declared."""
    inside = {at for start, end in ranges for at in range(start, end) if at in executed}
    starts = {start for start, _ in ranges} | ({entry} - {None})
    marks = {at for at in debug.marks.get(debug.declaration(origin), ())
             if any(start <= at < max(end, start + 1) for start, end in ranges)}
    numbers = [executed[at] for at in inside | starts] or [0]
    return min(numbers), max(max(numbers), sum(executed[at] for at in marks))


def bounds(debug, executed, name):
    """Least and most that can be counted of a function, with how many copies."""
    own, copies = debug.of(name)
    calls = sum(executed[ranges[0][0]] for ranges in own)
    counts_of = [of_copy(debug, executed, *copy) for copy in copies]
    return (calls + sum(least for least, _ in counts_of),
            calls + sum(most for _, most in counts_of),
            f"{len(own)} out of line, {len(copies)} copies")


def line_bounds(debug, executed, place):
    rows = [executed[at] for at in debug.lines.get(place, ())]
    return min(rows, default=0), sum(rows), f"{len(rows)} rows"


def main():
    found = collections.defaultdict(list)
    for line in open(f"{counts.folder}/counts.txt"):
        match = re.match(r"(\S+) (lines|functions) (.*?): (gdb|neither); fay (.*), gcov (\S+) or "
                         r"(\S+), gdb (\S+): ", line)
        if match:
            found[match[1]].append(match.groups()[1:])
    for program, rows in found.items():
        truth, debug = counts.Truth(program), Debug(f"{counts.folder}/{program}")
        names = collections.defaultdict(list)
        for symbol, name in truth.names.items():
            names[name].append(symbol)
        tally = collections.Counter()
        for what, place, kind, fay, *gcov in rows:
            calls = [int(number) for number in gcov[:2] if number != "None"]
            if what == "lines":
                least, most, why = line_bounds(debug, truth.executed, place)
            else:
                symbols = [symbol for symbol in names[place]
                           if [str(build[symbol]) for build in truth.functions] == gcov[:2]]
                least, most, why = bounds(debug, truth.executed, (symbols or names[place])[0])
            verdict = "could" if any(least <= number <= most for number in calls) else "none"
            tally[what, kind, verdict] += 1
            print(f"{program} {what} {place}: {verdict}; {kind}, fay {fay}, gcov "
                  f"{' or '.join(gcov[:2])}, gdb {gcov[2]}, {least} to {most} of {why}", flush=True)
        print(program, dict(tally), flush=True)


if __name__ == "__main__":
    main()
