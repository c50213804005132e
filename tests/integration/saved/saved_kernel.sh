#!/usr/bin/env bash
# Saved events of the kernel: the same answers from the file as live; arguments by name; user and
# kernel in one file, on one timeline.
host=1
. "$(dirname "$0")/../lib.sh"
BPF_TARGET=${BPF_TARGET:?path of syscalls_target}
timeline=$(dirname "$TARGET")/timeline_target
needs_bpf

# save FILE QUERY OPTIONS... [-- COMMAND]
save() {
	"$FAY" trace --save "$@" >/dev/null 2>"$work/err" </dev/null ||
		{ cat "$work/err" >&2; fail "$*"; }
	contains "$2" "$work/err" " 0 events lost"
}
# ask QUERY OPTIONS... [-- COMMAND]: the rows' values as one line of JSON
ask() {
	"$FAY" trace --json "$@" 2>"$work/err" </dev/null >"$work/out" ||
		{ cat "$work/err" >&2; fail "$*"; }
	jq -sc 'map(select(.type == "row" and .final) | .values)' "$work/out"
}
# same SOURCE FILE QUERY COMMAND...: the answer of the query whose source is @, of the live program
# and of the file
same() {
	local source=$1 file=$2 query=$3 live
	shift 3
	live=$(ask "${query//@/$source}" -- "$@")
	grep -q '[1-9]' <<<"$live" || fail "no answer of the live program: ${query//@/$source}"
	equal "${query//@/$file}" "$live" "$(ask "${query//@/$file}")"
}

# Calls as they end, with all that is known then.
file="file(\"$work/calls.fay\")"
save "$work/calls.fay" 'cluster.Syscall("*")' -- "$BPF_TARGET" 500
for source in 'Syscall("read")' 'Syscall("wr*")' 'Syscall("*")'; do
	same "cluster.$source" "$file.$source" \
		'from s in @ where s.ReturnValue == s.Arg(2) && s.Arg(2) <= 500
			group s by s.function into g orderby g.Count() descending
		select new { g.Key, n = g.Count(), bytes = g.Sum(x => x.ReturnValue),
		sizes = g.Histogram(x => x.Arg(2)) }' "$BPF_TARGET" 500
	same "cluster.$source" "$file.$source" \
		'@.Count(s => s.Duration < 1min && s.comm == "syscalls_target" &&
			(s.ReturnValue == -9 || s.function == "write"))' \
		"$BPF_TARGET" 500
done
same 'cluster.Syscall("*")' "$file" \
	'from s in @ where s.Failed group s by new { s.function, s.ReturnValue } into g
		where g.Count() > 100 orderby g.Key.ReturnValue
		select new { g.Key, n = g.Count() }' "$BPF_TARGET" 500
# What a query saves under names of its own: numbers, strings, bools, functions; and whether a call
# failed, without what it returned.
save "$work/own.fay" \
	'from s in cluster.Syscall("read") select new { s.time, size = s.Arg(2), who = s.comm,
		odd = s.Arg(2) % 2 == 1, what = s.function, s.Failed }' -- "$BPF_TARGET" 500
own='from s in file("'$work/own.fay'") where s.odd && s.who.EndsWith("target") && s.size <= 500 group s by new { s.what, s.Failed } into g orderby g.Count() select new { g.Key, n = g.Count(), bytes = g.Sum(x => x.size) }'
equal "columns with names of their own" \
	"[{\"what\":\"read\",\"Failed\":false,\"n\":250,\"bytes\":62500},{\"what\":\"read\",\"Failed\":true,\"n\":500,\"bytes\":500}]" \
	"$(ask "$own")"
equal "as rows" '[{"size":2,"who":"syscalls_target","odd":false,"what":"read","Failed":false}]' \
	"$(ask 'from s in file("'$work/own.fay'") where s.size == 2 select new { s.size, s.who, s.odd, s.what, s.Failed }')"

# Tracepoints: arguments that are numbers, by name; what pointers lead to if it is selected.
save "$work/point.fay" 'cluster.Tracepoint("sys_enter")' -- "$BPF_TARGET" 500
same 'cluster.Tracepoint("sys_enter")' "file(\"$work/point.fay\").Tracepoint(\"sys_enter\")" \
	'from s in @ where s.comm == "syscalls_target" && s.id < 2 group s by s.id into g
		orderby g.Key select new { g.Key, n = g.Count() }' "$BPF_TARGET" 500
save "$work/switch.fay" \
	'from s in cluster.Tracepoint("sched:sched_switch") select new { s.time, s.cpu,
		next = s.next.comm, s.next.prio, before = s.prev.comm }' --for 1s
total=$(ask "file(\"$work/switch.fay\").Count()" | jq '.[0].Count')
[ "$total" -gt 10 ] || fail "only $total switches in a second"
equal "what ran next" "$total" \
	"$(ask "from s in file(\"$work/switch.fay\") group s by new { s.next, s.prio } into g
		select new { g.Key, n = g.Count() }" | jq 'map(.n) | add')"
save "$work/ticks.fay" 'cluster.Timer(10ms)' --for 1s
[ "$(ask "file(\"$work/ticks.fay\").Timer().Count()" | jq '.[0].Count')" -gt 10 ] ||
	fail "hardly any ticks"

# User and kernel in one file: a query with two sources keeps the events of both.
both='from f in cluster.Return("timeline_target!work") join r in cluster.Syscall("read") on f.tid
	equals r.tid within 1min select new { f, r }'
save "$work/both.fay" "$both" -- "$timeline" 12
file="file(\"$work/both.fay\")"
query='from f in @.Return("timeline_target!work") join r in @.Syscall("read") on f.tid equals r.tid
	within 1min
	where r.time >= f.time - f.Duration && r.time <= f.time group r by f.ReturnValue into g
	orderby g.Key select new { call = g.Key, reads = g.Count(),
	bytes = g.Sum(x => x.ReturnValue) }'
same cluster "$file" "$query" "$timeline" 12
equal "reads in each call" "$(jq -nc '[range(1; 13) | [., .]]')" \
	"$(ask "${query//@/$file}" | jq -c 'map([.call, .reads])')"
same cluster "$file" '@.Return("timeline_target!work").Sum(f => f.ReturnValue)' "$timeline" 12
same cluster "$file" '@.Syscall("read").Count(r => r.ReturnValue == 1)' "$timeline" 12
exits "one of them must be chosen" 2 "$FAY" trace "$file.Count()"
contains "says which there are" "$work/err" '`timeline_target!work`, `kernel!syscall:read`'
exits "what was not saved" 1 "$FAY" trace "$file.Function(\"timeline_target!work\").Count()"
exits "a function that was not called" 1 "$FAY" trace \
	"file(\"$work/calls.fay\").Syscall(\"mount\").Count()"
exits "events of another module" 1 "$FAY" trace "$file.Return(\"libc!work\").Count()"
exits "of a saved trace nothing is saved" 2 "$FAY" trace --save "$work/again.fay" \
	"$file.Syscall(\"read\")"
