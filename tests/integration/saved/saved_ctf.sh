#!/usr/bin/env bash
# fay export --ctf: babeltrace2 reads each event with the time, the fields and the strings that
# file() has; user and kernel events on one timeline; bad input.
host=1
. "$(dirname "$0")/../lib.sh"
BPF_TARGET=${BPF_TARGET:?path of syscalls_target}
timeline=$(dirname "$TARGET")/timeline_target
bin=$(dirname "$TARGET")

save() {
	"$FAY" trace --save "$@" >/dev/null 2>"$work/err" </dev/null ||
		{ cat "$work/err" >&2; fail "$*"; }
}
# Of both: lines TIME KIND:FUNCTION {"field":value,...}. Numbers have 64 bits, which jq's have not.
cat >"$work/rows.py" <<'END'
import json, sys
for text in sys.stdin:
    row = json.loads(text)
    if row['type'] == 'row':
        values = row['values']
        print(values.pop('time'), sys.argv[1] + ':' + values.pop('function'), json.dumps(values, separators=(',', ':')))
END
# events_of SOURCE KIND FIELDS...: what file() has
events_of() {
	local source=$1 kind=$2 fields=
	shift 2
	for field in "$@"; do fields+=", r.$field"; done
	fields=$(sed 's/r\.Arg(\([0-9]\))/Arg_\1 = r.Arg(\1)/g' <<<"$fields")
	"$FAY" trace --json "from r in $source select new { r.time, r.function$fields }" \
		2>"$work/err" >"$work/out" || { cat "$work/err" >&2; fail "$source"; }
	python3 "$work/rows.py" "$kind" <"$work/out"
}
# read_back DIR: what babeltrace2 has, in its order
cat >"$work/read.py" <<'END'
import json, re, sys
line = re.compile(r'^\[(\d+)\] (\S+): (.*)$')
field = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|[^,}\s]+)')
for text in sys.stdin:
    time, name, rest = line.match(text.rstrip('\n')).groups()
    values = {}
    for key, value in field.findall(rest):
        value = json.loads(value) if value[0] == '"' else int(value, 0)
        values[key] = (value != 0) if key == 'Failed' else value
    print(int(time), name, json.dumps(values, separators=(',', ':')))
END
read_back() {
	babeltrace2 --clock-cycles --no-delta "$1" 2>"$work/babeltrace.err" |
		python3 "$work/read.py" >"$work/read" || {
		cat "$work/babeltrace.err" >&2
		fail "babeltrace2 $1"
	}
	[ ! -s "$work/babeltrace.err" ] || {
		cat "$work/babeltrace.err" >&2
		fail "babeltrace2 has something to say of $1"
	}
	cut -d' ' -f1 "$work/read" | sort -nc ||
		fail "babeltrace2's events are not in the order of time"
}
# same WHAT: $work/want and $work/read are the same events
same() {
	sort "$work/want" >"$work/want.sorted"
	sort "$work/read" >"$work/read.sorted"
	cmp "$work/want.sorted" "$work/read.sorted" || {
		diff "$work/want.sorted" "$work/read.sorted" | head -4 >&2
		fail "$1"
	}
	[ -s "$work/want" ] || fail "$1: no events"
	echo "ok: $1: $(wc -l <"$work/read") events"
}
arguments=('Arg(0)' 'Arg(1)' 'Arg(2)' 'Arg(3)' 'Arg(4)' 'Arg(5)')

# Calls of several functions in four threads, as they begin.
save "$work/calls.fay" 'cluster.Function("threads_target!*")' -- "$bin/threads_target" 4 2000
(umask 0 && "$FAY" export --ctf "$work/calls" "$work/calls.fay" 2>"$work/err") || {
	cat "$work/err" >&2
	fail "export"
}
equal "modes" "700 600" "$(stat -c %a "$work/calls" "$work/calls/metadata" | xargs)"
equal "modes of the files" 600 "$(stat -c %a "$work/calls"/* | sort -u)"
said=$(tail -1 "$work/err")
read_back "$work/calls"
events_of "file(\"$work/calls.fay\")" call pid tid cpu comm cycles "${arguments[@]}" >"$work/want"
same "calls"
equal "says how many" "fay: $(wc -l <"$work/want") events" "$said"

# Ends of calls, and columns with names of their own.
save "$work/ends.fay" 'cluster.Return("calls_target!traced_*")' -- "$bin/calls_target" exceptions
save "$work/own.fay" \
	'from r in cluster.Function("libc!read") select new { r.time, r.function, int = r.Arg(2),
		string = r.comm, odd = r.Arg(2) % 2 == 1 }' -- cat /etc/services
"$FAY" export --ctf "$work/several" "$work/ends.fay" "$work/own.fay" 2>"$work/err" ||
	{ cat "$work/err" >&2; fail "export"; }
read_back "$work/several"
sed -i 's/"odd":0/"odd":false/; s/"odd":1/"odd":true/' "$work/read"
{
	events_of "file(\"$work/ends.fay\")" return pid tid cpu comm cycles Duration ReturnValue \
		Failed
	events_of "file(\"$work/own.fay\")" call int string odd
} >"$work/want"
same "of two files"

# 400,000 events: many packets.
head -c 400000 /dev/zero >"$work/file"
save "$work/many.fay" 'cluster.Function("libc!read")' -- dd if="$work/file" of=/dev/null bs=1 \
	status=none
"$FAY" export --ctf "$work/many" "$work/many.fay" 2>/dev/null
equal "many events" \
	"$("$FAY" trace --json "file(\"$work/many.fay\").Count()" 2>/dev/null |
	jq -s 'map(select(.type == "row"))[0].values.Count')" "$(babeltrace2 "$work/many" | wc -l)"

# Stacks and callers by name.
save "$work/stacks.fay" \
	'from r in cluster.Function("libc!read") select new { r.time, r.function,
		stack = r.Stack(3), r.Caller }' -- cat /etc/services
"$FAY" export --ctf "$work/stacks" "$work/stacks.fay" 2>/dev/null
babeltrace2 "$work/stacks" | sed 's/.*{ \(stack = .*\) }$/\1/' >"$work/read"
"$FAY" trace --json "from r in file(\"$work/stacks.fay\") select new { r.stack, r.Caller }" \
	2>/dev/null |
	jq -r 'select(.type == "row").values | . as $v |
		"stack = [ \([range(3) | "[\(.)] = \"\($v.stack[.] // "")\""] | join(", ")) ], Caller = \"\(.Caller)\""' \
		>"$work/want"
same "stacks"

# User and kernel.
if [ "$(bpf_is ok)" = true ]; then
	both='from f in cluster.Return("timeline_target!work") join r in cluster.Syscall("*")
		on f.tid equals r.tid within 1min select new { f, r }'
	save "$work/both.fay" "$both" -- "$timeline" 12
	"$FAY" export --ctf "$work/both" "$work/both.fay" 2>"$work/err" ||
		{ cat "$work/err" >&2; fail "export"; }
	read_back "$work/both"
	{
		events_of "file(\"$work/both.fay\").Return(\"timeline_target!work\")" return pid \
			tid cpu comm cycles Duration ReturnValue Failed
		events_of "file(\"$work/both.fay\").Syscall(\"*\")" syscall pid tid cpu comm \
			Duration ReturnValue Failed "${arguments[@]}"
	} >"$work/want"
	same "user and kernel events"
	# Between two ends of work() lie its reads and the one outside.
	equal "reads before each call's end" "$(jq -nc '[1, range(3; 14)]')" \
		"$(awk '/ syscall:read .*"ReturnValue":1,/ { n++ } / return:work / {
			printf "%s%d", sep, n; sep = ","; n = 0 }' \
		"$work/read" | sed 's/.*/[&]/')"
fi

# Bad input.
exits "a directory that is not empty" 2 "$FAY" export --ctf "$work/calls" "$work/own.fay"
exits "no such file" 2 "$FAY" export --ctf "$work/new" "$work/nothing.fay"
[ ! -e "$work/new" ] || fail "what could not be exported left a directory behind"
exits "no saved trace" 1 "$FAY" export --ctf "$work/new" "$FAY"
exits "no directory" 2 "$FAY" export "$work/own.fay"
save "$work/timeless.fay" 'from r in cluster.Function("libc!read") select new { r.tid }' -- cat \
	/etc/services
exits "events without times" 1 "$FAY" export --ctf "$work/new" "$work/timeless.fay"
contains "says so" "$work/err" 'have no `time`'
head -c $(($(stat -c %s "$work/calls.fay") / 2)) "$work/calls.fay" >"$work/cut.fay"
exits "a damaged one, after a good one" 1 "$FAY" export --ctf "$work/new" "$work/many.fay" \
	"$work/cut.fay"
[ ! -e "$work/new" ] || fail "what could not be exported left a directory behind"
