#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# schemas.sh FAY SOURCE: each line of JSON that a command prints is as its schema in docs says, by
# Debian's python3-jsonschema; a line that is changed is not. Each type of line is among what is
# tried, and each member stands in the page.
set -euo pipefail
fay=$1 source=$2
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null ||
	{ echo "skipped: no python3-jsonschema"; exit 77; }
command -v nats-server >/dev/null || { echo "skipped: no nats-server"; exit 77; }
work=$(mktemp -d)
started=()
cleanup() {
	[ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
mkdir lines
export FAY_BUDGET=none
here=0
fail() { echo "FAIL: $*: $(cat err)" >&2; exit 1; }
says() { # SCHEMA EXIT-CODE ARGUMENT...: what `fay ARGUMENT...` prints
	local schema=$1 want=$2 code=0
	shift 2
	here=$((here + 1))
	timeout 100 "$fay" "$@" >"lines/$here.$schema" 2>err </dev/null || code=$?
	[ "$code" = "$want" ] || fail "fay $*: exit code $code"
	[ -s "lines/$here.$schema" ] || fail "fay $*: nothing"
}

# --- traces ---

trace() { # its lines alone: what is traced prints, too
	here=$((here + 1))
	timeout 100 "$fay" trace --json -o "lines/$here.trace" "$@" >out 2>err </dev/null ||
		fail "fay trace $*"
}
files=(ls -l /etc)
trace 'from m in cluster.Function("libc!malloc")
	group m by new { m.Caller, m.comm, big = m.Arg(0) > 99 } into g
	select new { g.Key, n = g.Count(), sum = g.Sum(x => x.Arg(0)), last = g.Last(x => x.time),
	mean = g.Average(x => x.Arg(0)) }' -- "${files[@]}"
trace 'from m in cluster.Function("libc!malloc") group m by m.Stack(4) into g
	select new { g.Key, often = g.TopK(3, x => x.Arg(0)), n = g.DistinctCount(x => x.Arg(0)) }' \
	-- "${files[@]}"
trace 'from m in cluster.Function("libc!malloc") group m by m.Caller into g
	select new { g.Key, sizes = g.Histogram(x => x.Arg(0)), p = g.Quantile(0.9, x => x.Arg(0)) }' \
	-- "${files[@]}"
trace 'cluster.Function("libc!read").Where(r => r.Arg(2) < 0).Min(r => r.Arg(2))' -- "${files[@]}"
trace --analyze 'from a in cluster.Function("libc!malloc") join b in cluster.Function("libc!free")
	on a.tid equals b.tid within 1ms select new { a.time, b.tid }' -- "${files[@]}"
trace 'cluster.Return("libc!malloc").Tumbling(1ms).Count()' -- "${files[@]}"
trace 'cluster.Return("libc!malloc").Every(100).Count()' -- "${files[@]}"
trace 'from e in cluster.Function("libc!fopen") group e by e.Arg(0).Text into g
	select new { g.Key, n = g.Count() }' -- getent passwd root
trace 'from r in cluster.Return("libc!*alloc") where r.Failed select new { r.time, r.tid }' -- ls
trace --dry-run 'cluster.Function("libc!*").Count()' -p $$
"$fay" trace --save kept.fay 'cluster.Return("libc!malloc").Select(r => new { r.time, r.Duration
	})' -- ls >out 2>err || fail "fay trace --save"
trace 'file("kept.fay").Count()'
for probe in sketches histogram; do
	"$fay" cc "$source/examples/probes/$probe.c" -o $probe.fay 2>err || fail "fay cc $probe"
	trace --probe $probe.fay -- "${files[@]}"
done
busy='i = 0
while True: i += len(str(i))'
/usr/bin/python3 -c "$busy" &
started+=($!)
unset FAY_BUDGET
trace --for 1s -p $! 'cluster.Function("python3*!*").Count()'
trace --budget 0.01% --for 2s -p $! 'cluster.Function("python3*!*").Count()'
export FAY_BUDGET=none

# --- what is there ---

says list 0 list --json -p $$ 'libc!mall*'
says list 0 list --json --syscalls 'open*'
says list 0 list --json --usdt -p "${started[0]}" '*!*:*'
kill "${started[0]}"
here_lines=$(dirname "$fay")/lines_target
says list 0 list --json --inlined "$here_lines" 'lines_target!*'
says list 0 list --json --lines "$here_lines" 'lines_target!lines_target.c:36'
! [ -r /sys/kernel/tracing/events ] || says list 0 list --json --tracepoints 'sched_*'
says explain 0 explain --json -p $$ 'cluster.Return("bash!*").Where(r => r.Duration > 5ms).Count()'
says explain 0 explain --json 'from a in cluster.Function("libc!malloc")
	join b in cluster.Function("libc!free") on a.tid equals b.tid within 1ms
	select new { a.time, b.tid }'
says explain 0 explain --json 'cluster.Function("libc!read").Tumbling(1s).Count()'
says explain 0 explain --json 'cluster.Function("libc!read").Every(10).Count()'
says explain 0 explain --json 'cluster.Syscall("read").Histogram(r => r.Duration)'
says explain 0 explain --json 'cluster.Function("libc!fopen").Select(e => new { e.Arg(0).Text })'

# A fay that was killed has left something.
/usr/bin/python3 -c 'import time; time.sleep(100)' &
started+=($!)
"$fay" trace -p $! 'cluster.Function("libc!*").Count()' >/dev/null 2>err &
killed=$!
for _ in $(seq 300); do ! grep -q 'fay: tracing' err || break; sleep 0.1; done
kill -KILL $killed
wait $killed 2>/dev/null || true
code=0
"$fay" doctor --json >lines/doctor.doctor 2>err || code=$?
[ $code -le 1 ] || fail "fay doctor --json: exit code $code"

# --- images ---

for image in count hostile; do
	as -o o "$source/examples/images/$image.S"
	ld -shared -nostdlib -z now -z noexecstack --build-id=none -o $image.fay o
done
for image in count.fay hostile.fay sketches.fay; do says inspect 0 inspect --json $image; done
says diff 0 diff --json histogram.fay histogram.fay
says diff 1 diff --json count.fay sketches.fay
says verify 0 verify --json sketches.fay
says verify 1 verify --json hostile.fay

# --- machines ---

port=$(/usr/bin/python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for key in machine asker; do "$fay" cluster keygen $key >/dev/null 2>&1; done
echo "signer ops $(cat asker.pub)" >signers
nats-server -a 127.0.0.1 -p "$port" >/dev/null 2>&1 &
started+=($!)
url=nats://127.0.0.1:$port
for _ in $(seq 50); do ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break; sleep 0.1; done
"$(dirname "$fay")/fayd" --url "$url" --key machine.key --signers signers >fayd.log 2>&1 &
started+=($!)
for _ in $(seq 50); do
	"$fay" cluster status --json --cluster "$url" --key asker.key >lines/status.cluster 2>err || true
	[ ! -s lines/status.cluster ] || break
	sleep 0.2
done
[ -s lines/status.cluster ] || fail "fay cluster status: nothing"
program=schemas$$
cp /usr/bin/sleep "$program"
"./$program" 100 &
started+=($!)
trace --cluster "$url" --key asker.key --comm "$program" --for 1s \
	'cluster.Function("libc!read").Count()'

# --- the log, in an /etc of its own ---

if [ "$(id -u)" = 0 ]; then
	cp -a /etc etc
	unshare --mount bash -euc "mount --bind etc /etc; rm -rf /etc/fay; mkdir /etc/fay
		'$fay' trust log '$work/log' && '$fay' trace --probe count.fay -- cat /dev/null
		'$fay' log show --json >lines/log.log" >/dev/null 2>err || fail "fay log show"
fi

FAY_SOURCE=$source /usr/bin/python3 - <<'END'
import copy, glob, json, os, re, sys
from jsonschema import Draft202012Validator

docs = os.environ["FAY_SOURCE"] + "/docs/"
page = open(docs + "cli-json.md").read()
failed = False


def bad(text):
    global failed
    failed = True
    print("FAIL: " + text)


def path_of(name):
    return docs + ("" if name == "verify" else "schemas/") + name + ".schema.json"


def some_lines(name):
    """Of a file with thousands some of each type: the validator takes milliseconds for one."""
    lines = []
    for path in glob.glob("lines/*." + name):
        count = {}
        for line in open(path):
            kind = json.loads(line).get("type")
            count[kind] = count.get(kind, 0) + 1
            if count[kind] <= 20:
                lines.append(line)
    return lines


def members(schema):
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for value in schema.values():
            yield from members(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from members(value)


def kinds(schema):
    of = schema["properties"]["type"]["const"] if "type" in schema.get("properties", {}) else None
    if of:
        yield of
    for definition in schema.get("$defs", {}).values():
        kind = definition.get("properties", {}).get("type", {})
        if isinstance(kind, dict) and "const" in kind:
            yield kind["const"]


names = {os.path.basename(p).split(".")[0] for p in glob.glob(docs + "schemas/*.schema.json")}
for name in sorted(names | {"verify"}):
    schema = json.load(open(path_of(name)))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    lines = some_lines(name)
    if not lines:
        if name == "log" and os.geteuid():
            continue
        bad(name + ": no line was tried")
    for line in lines:
        value = json.loads(line)
        for error in validator.iter_errors(value):
            # of what may be several things, the nearest one
            inner = error
            while inner.context:
                inner = min(inner.context, key=lambda e: e.validator == "const")
            bad("%s: %s: %s" % (name, inner.message[:200], line[:300]))
            break
        changed = copy.deepcopy(value)
        changed["no such member"] = 1
        if validator.is_valid(changed):
            bad(name + ": a member too many is let pass: " + line[:200])
        for key in [k for k in ("type", "version", "query") if k in value][:1]:
            del changed["no such member"], changed[key]
            if validator.is_valid(changed):
                bad(name + ": `%s` may be missing: " % key + line[:200])
    if name != "verify":
        seen = {json.loads(line).get("type") for line in lines}
        for kind in set(kinds(schema)) - seen:
            if kind != "tracepoint" or os.path.exists("/sys/kernel/tracing/events"):
                bad("%s: no line of type %s was tried" % (name, kind))
        if name != "inspect":
            for member in set(members(schema)):
                if not re.search(r"`%s`|\"%s\":" % (member, member), page):
                    bad("%s: docs/cli-json.md does not explain `%s`" % (name, member))
    print("%s: %d lines" % (name, len(lines)))
sys.exit(failed)
END
