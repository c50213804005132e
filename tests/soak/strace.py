#!/usr/bin/env python3
"""strace.py [COMMAND...]: rows of system calls by fay, beside strace's of the same run.

Each command runs once under strace, to see which system calls it makes. Then it is run again, with
its children and threads, under `strace -f` and at the same time under `fay trace --follow`, by a
query for each of these calls that shows every argument by its name, the result and the error.
So the two have the same process numbers, addresses and times, and nothing is made alike: thread by
thread and call by call, each row has to have the same call, each argument as strace prints it
(strings behind pointers, flags and constants in words, numbers), the same result and error.

strace is told not to look behind pointers to structures (-e verbose=none), so that these are
compared as addresses. What it prints of them all the same (arrays of numbers, contents of buffers
whose length is another argument) is counted as `behind pointers`, and the row's other arguments are
compared. A row is

equal      all that strace prints is what fay shows
differs    something else: which, by call and argument, in the file `rows.txt`
never back  the call had not returned when its thread ended: strace shows `= ?`, fay no row
missing, more  fay lacks a row, or has one more

Writes a table, and in $KEEP (a folder of its own, unless said) rows.txt."""
import collections, difflib, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

here = os.path.dirname(os.path.realpath(__file__))
fay = os.environ.get("FAY", os.path.join(here, "../../build/bin/fay"))
folder = os.environ.get("KEEP") or tempfile.mkdtemp(prefix="fay-strace-")
web = socket.create_server(("127.0.0.1", 0))
port = web.getsockname()[1]
# An event's own fields have precedence over arguments of these names; and clone's first argument
# means a value of its own.
OWN = {"pid", "tid", "cpu", "comm", "time", "function", "module", "cycles", "line"}
ENDS = {"exit", "exit_group"}
COMMANDS = {
    "ls": "ls -lR /etc/apt /usr/share/doc/bash /no/such/folder",
    "cp": "cp -a tree copy && cp -v lines copy/lines && cp /no/such/file .",
    "rm": "mv lines tree/moved && ln -s moved tree/link && chmod 640 tree/moved && "
          "touch -d 2020-01-01 tree/moved && rm -r tree && rmdir /no/such",
    "tar": "tar -czf tree.tgz tree && mkdir out && tar -xzf tree.tgz -C out",
    "git": "git init -q repo && cd repo && cp ../lines . && git add . && "
           "git -c user.name=a -c user.email=a@b commit -qm one && git status && git log --stat",
    "python3": "/usr/bin/python3 -c 'import json, threading, subprocess, tempfile, os\n"
               "t = [threading.Thread(target=lambda: sum(range(9999))) for _ in range(3)]\n"
               "[x.start() for x in t]; [x.join() for x in t]\n"
               "print(json.dumps(os.listdir(\"/etc/apt\")), tempfile.mkstemp(dir=\".\"))\n"
               "print(subprocess.run([\"true\"]).returncode)'",
    "perl": "perl -e 'open F, \"<lines\"; $s += $_ while <F>; print \"$s\\n\"; "
            "print `echo child`; mkdir q{made}; rename q{made}, q{other}; kill 0, $$; "
            "select undef, undef, undef, 0.01'",
    "sqlite3": "sqlite3 data.db 'create table t(a, b); insert into t select value, value * 2 from "
               "generate_series(1, 2000); create index i on t(b); select sum(a) from t;'",
    "gcc": "gcc -O2 -Wall -o program program.c && ./program",
    "curl": f"curl -s http://127.0.0.1:{port}/file http://localhost:{port}/other",
    "find": "find /etc/apt tree -name '*.list' -newer lines -o -type d -exec stat -c %n {} +",
    "sed": "sed -i -e 's/1/one/g' -e '/2/d' lines && sed -n '$p' lines",
    "gawk": "gawk '{ s[$1 % 7] += $1 } END { for (k in s) print k, s[k] | \"sort -n\" }' lines",
    "gzip": "gzip -9k lines && gzip -dc lines.gz | wc -c && gzip -t lines.gz",
    "bash": "bash -c 'for i in 1 2 3; do echo $i | cat; done >out; trap \"echo usr\" USR1; "
            "kill -USR1 $$; x=$(<out); sleep 0.01 & wait; [ -w /etc ] && ulimit -n; umask 027'",
    "sort": "sort --parallel=2 -S 1M -r -o sorted more && sort -c sorted",
    "make": "make -s -j2 all && make -s all",
    "openssl": "openssl genrsa -out key 1024 && openssl dgst -sha256 -sign key -out sig lines",
    "node": "node -e 'const fs = require(\"fs\"); fs.writeFileSync(\"out\", \"text\"); "
            "fs.readdir(\"/etc/apt\", (e, names) => console.log(names.length)); "
            "setTimeout(() => fs.unlinkSync(\"out\"), 5)'",
    "xargs": "seq 12 | xargs -P 3 -n 4 sh -c 'echo $# >out.$0; flock out.$0 true'",
    "dd": "dd if=/dev/zero of=zeros bs=64k count=20 conv=fsync && dd if=zeros of=/dev/null "
          "skip=3 iflag=direct,noatime; truncate -s 5M zeros; fallocate -l 1M space; sync zeros",
    "ip": "hostname; id; df /; getent hosts localhost; date; uname -a; nproc; free",
}


def prepare(work):
    os.makedirs(f"{work}/tree/sub")
    for name in "tree/a.list", "tree/sub/b.list", "tree/sub/c":
        open(f"{work}/{name}", "w").write(name * 50)
    open(f"{work}/lines", "w").writelines(f"{n}\n" for n in range(3000))
    open(f"{work}/more", "w").writelines(f"{n * 7919 % 100003} some words\n" for n in range(90000))
    open(f"{work}/program.c", "w").write('#include <stdio.h>\nint main(void) { puts("up"); }\n')
    open(f"{work}/Makefile", "w").write(
        "all: one two\none two:\n\techo $@ >$@.new\n\tmv $@.new $@\n.PHONY: all\n")


def in_folder(command, work):
    """Arguments of a command that stands in its folder."""
    return ["/bin/sh", "-c", f"cd {work}\n{command}"]


def answer():
    """A web server in a process of its own, which nobody traces."""
    if pid := os.fork():
        return pid
    while True:
        with web.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nyes")


# --- what strace has

def split(text):
    """At the commas that are in no brackets and no quotes."""
    parts, depth, start, at, quoted = [], 0, 0, 0, False
    while at < len(text):
        letter = text[at]
        if quoted:
            if letter == "\\":
                at += 1
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:].strip()
    return parts + [last] if last or parts else []


def read_strace(path):
    rows = []
    for line in open(path, errors="surrogateescape"):
        found = re.match(r"(\w+)\((.*)\) += (.*)$", line.rstrip("\n"))
        if found and found[3].startswith("?") and "ERESTART" not in found[3]:
            rows.append((found[1], split(found[2]), None, ""))
        elif found:
            result = found[3].split()
            error = result[1] if len(result) > 1 and re.match("E[A-Z0-9]+$", result[1]) else ""
            rows.append((found[1], split(found[2]), result[0], error))
        elif unfinished := re.match(r"(\w+)\((.*) <unfinished", line):
            rows.append((unfinished[1], split(unfinished[2]), None, ""))
    return rows


# --- what fay has

def signatures():
    said = subprocess.run([fay, "list", "--syscalls"], capture_output=True, text=True).stdout
    found = re.findall(r"(\w+)\((.*)\)$", said, re.M)
    return {name: [re.match(r"(.*?)(\w+)$", one.strip()).groups()
                   for one in arguments.split(",") if one.strip()]
            for name, arguments in found if arguments != "..."}


def query(call, arguments):
    fields = ["e.time", "e.tid"]
    for index, (_, name) in enumerate(arguments):
        fields.append(f"a{index} = " + (f"e.Arg({index})" if name in OWN else f"e.{name}"))
    if call not in ENDS:
        fields += ["result = e.ReturnValue", "error = e.Error"]
    return f'from e in cluster.Syscall("{call}") select new {{ {", ".join(fields)} }}'


def read_fay(path):
    rows = [json.loads(line) for line in open(path)]
    if not rows or rows[-1].get("events_lost", 1):
        return None
    rows = [row["values"] for row in rows if row["type"] == "row" and row["final"] is not False]
    return sorted(rows, key=lambda row: row["time"])


# --- comparing

def number(text):
    if text in ("NULL", ""):
        return 0 if text else None
    if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text):
        octal = re.fullmatch(r"0[0-7]+", text)
        return int(text, 8 if octal else 0)
    return None


def plain(text):
    """Bytes of a string as strace writes it."""
    inner = text[1:text.rindex('"')].encode("utf-8", "surrogateescape")
    return re.sub(rb"\\([0-7]{1,3}|.)", lambda m: bytes([int(m[1], 8)]) if m[1].isdigit() else
                  {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}.get(m[1], m[1]),
                  inner, flags=re.S)


def same(theirs, ours, wide):
    """One argument. `wide`: it was read as a register."""
    if theirs.startswith('"'):
        return isinstance(ours, str) and plain(theirs) in (
            ours.encode("utf-8", "surrogateescape"), ours.encode("latin-1", "replace"))
    if isinstance(ours, str) and ours in theirs.split(" or "): # several names of one number
        return True
    a, b = number(theirs), ours if isinstance(ours, int) else number(ours)
    if a is None or b is None or (isinstance(ours, str) and ours == ""):
        return False
    return a == b or (a - b) % 2**64 == 0 or (wide and (a - b) % 2**32 == 0)


# The arguments that strace names stand in an order of its own; a name of its own has a number.
NAMED = {"clone": {"flags": 0, "child_stack": 1, "parent_tid": 2, "child_tidptr": 3, "tls": 4}}


# What strace leaves out of futex, by operation: the last argument is the last by number.
FUTEX = {"FUTEX_WAIT_BITSET": [0, 1, 2, 3, 5], "FUTEX_WAKE_BITSET": [0, 1, 2, 5]}


def place(call, texts, index):
    text = re.sub(r" /\*.*?\*/", "", texts[index])
    if call == "futex":
        operation = re.sub(r"_PRIVATE|\|.*", "", texts[1])
        return FUTEX.get(operation, range(6))[index], text
    found = re.match(r"(\w+)=(?!=)", text)
    if found and found[1] in NAMED.get(call, {}):
        return NAMED[call][found[1]], text[found.end():]
    return index, text


class Tally:
    def __init__(self):
        self.rows, self.kinds = 0, collections.Counter()
        self.behind, self.what, self.calls = 0, collections.Counter(), set()

    def compare(self, theirs, ours, arguments, log):
        call, texts, result, error = theirs
        wrong = []
        for index in range(len(texts)):
            index, text = place(call, texts, index)
            if index >= len(arguments) and text[:1] == "{": # rt_sigreturn's, from the stack
                self.behind += 1
                continue
            if index >= len(arguments):
                wrong.append((f"argument {index}", text, None))
                continue
            kind, name = arguments[index]
            got = ours[f"a{index}"]
            behind = text[:1] in "[{~" or (text[:1] == '"' and kind.strip() != "const char *")
            if behind:
                self.behind += 1
            elif not same(text, got, name in OWN):
                wrong.append((name, text, got))
        if call not in ENDS:
            got = ours["error"] if error else ours["result"]
            if error and error != got:
                wrong.append(("error", error, got))
            elif not error and not same(result, got, False):
                wrong.append(("result", result, got))
        for name, text, got in wrong:
            self.what[f"{call}.{name}"] += 1
            print(f"{call}.{name}: strace {text}, fay {got!r}", file=log)
        return "differs" if wrong else "equal"

    def thread(self, theirs, ours, arguments, log):
        """The rows of one call in one thread."""
        call = theirs[0][0] if theirs else None
        back = [row for row in theirs if row[2] is not None or row[0] in ENDS]
        self.kinds["never back"] += len(theirs) - len(back)
        self.rows += len(theirs)
        if len(back) != len(ours):
            more = len(ours) - len(back)
            self.kinds["more" if more > 0 else "missing"] += abs(more)
            print(f"{call}: {len(back)} rows by strace, {len(ours)} by fay", file=log)
            keys = [str(row[2]) for row in back], [str(row.get("result")) for row in ours]
            blocks = difflib.SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
            pairs = [(back[b.a + i], ours[b.b + i]) for b in blocks for i in range(b.size)]
        else:
            pairs = list(zip(back, ours))
        for one, other in pairs:
            self.kinds[self.compare(one, other, arguments, log)] += 1


def wait(what, condition):
    for _ in range(2400):
        if condition():
            return
        time.sleep(0.05)
    raise SystemExit(f"{what}: not after two minutes")


def holds(path, text):
    return os.path.exists(path) and text in open(path, errors="replace").read()


def held(command):
    """A process that will execute a command; and what lets it go."""
    out, go = os.pipe()
    if pid := os.fork():
        os.close(out)
        return pid, go
    os.close(go)
    os.setsid()
    os.read(out, 1)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in 0, 1, 2:
        os.dup2(null, descriptor)
    os.closerange(3, 64)
    os.execv(command[0], command)


def run(name, work, known):
    """Both tracers' files of one run: directory of strace's, of each call fay's."""
    prepare(f"{work}/first")
    seen = f"{work}/seen"
    subprocess.run(["strace", "-f", "-qqq", "-e", "signal=none", "-o", seen] +
                   in_folder(COMMANDS[name], f"{work}/first"), stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    calls = sorted(set(re.findall(r"^\d+ +(\w+)\(", open(seen, errors="replace").read(), re.M)))
    prepare(f"{work}/second")
    pid, go = held(in_folder(COMMANDS[name], f"{work}/second"))
    tracers = {}
    for call in calls:
        tracers[call] = subprocess.Popen(
            [fay, "trace", "--json", "--follow", "-o", f"{work}/{call}.fay", "-p", str(pid),
             query(call, known.get(call, []))], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=open(f"{work}/{call}.err", "w"))
    for call in calls:
        wait(f"fay for {call}", lambda: holds(f"{work}/{call}.err", "fay: tracing") or
             tracers[call].poll() is not None)
    strace = subprocess.Popen(["strace", "-ff", "-qqq", "-s", "4096", "-e", "verbose=none", "-e",
                               "signal=none", "-o", f"{work}/strace", "-p", str(pid)],
                              stderr=subprocess.DEVNULL)
    wait("strace", lambda: not re.search(r"TracerPid:\t0", open(f"/proc/{pid}/status").read()))
    os.write(go, b"\n")
    os.close(go)
    os.waitpid(pid, 0)
    strace.wait()
    for tracer in tracers.values():
        try:
            tracer.wait(60)
        except subprocess.TimeoutExpired:
            tracer.send_signal(signal.SIGINT)
            tracer.wait()
    return pid, calls


def judge(name, work, known, log):
    pid, calls = run(name, work, known)
    tally, theirs, ours = Tally(), {}, {}
    begin = None
    for file in os.listdir(work):
        if found := re.match(r"strace\.(\d+)$", file):
            rows = read_strace(f"{work}/{file}")
            if int(found[1]) == pid: # what it did before it was let go
                first = [row[0] for row in rows].index("execve")
                rows = rows[first:]
            for row in rows:
                theirs.setdefault((row[0], int(found[1])), []).append(row)
    got = {call: read_fay(f"{work}/{call}.fay") for call in calls}
    if got["execve"]:
        begin = got["execve"][0]["time"]
    for call in calls:
        if got[call] is None:
            print(f"{call}: " + open(f"{work}/{call}.err").read().strip(), file=log)
        for row in got[call] or []:
            born = call in ("clone", "fork", "vfork", "clone3") and row["result"] == 0
            if begin and row["time"] >= begin and not born: # the child's side of its birth
                ours.setdefault((call, row["tid"]), []).append(row)
    for key in sorted(theirs.keys() | ours.keys()):
        tally.calls.add(key[0])
        tally.thread(theirs.get(key, []), ours.get(key, []), known.get(key[0], []), log)
    return tally, len({tid for _, tid in theirs})


def main():
    known, server, total = signatures(), answer(), Tally()
    os.makedirs(folder, exist_ok=True)
    print("| command | threads | calls | rows | equal | differs | never back | missing | more | "
          "behind pointers |\n" + "|---" * 10 + "|", flush=True)
    with open(f"{folder}/rows.txt", "w", buffering=1) as log:
        for name in sys.argv[1:] or COMMANDS:
            work = tempfile.mkdtemp(prefix="fay-strace-")
            os.chmod(work, 0o755)
            print(f"--- {name}", file=log)
            tally, threads = judge(name, work, known, log)
            kinds = " | ".join(str(tally.kinds[kind]) for kind in
                               ("equal", "differs", "never back", "missing", "more"))
            print(f"| {name} | {threads} | {len(tally.calls)} | {tally.rows} | {kinds} | "
                  f"{tally.behind} |", flush=True)
            total.rows += tally.rows
            total.kinds += tally.kinds
            total.what += tally.what
            if os.environ.get("KEEP"):
                shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
                shutil.move(work, f"{folder}/{name}")
            else:
                shutil.rmtree(work)
    os.kill(server, signal.SIGKILL)
    share = 100 * total.kinds["equal"] / max(1, total.rows - total.kinds["never back"])
    print(f"\n{total.kinds['equal']} of {total.rows - total.kinds['never back']} rows: "
          f"{share:.2f} %")
    for what, often in total.what.most_common():
        print(f"    {often} {what}")


if __name__ == "__main__":
    main()
