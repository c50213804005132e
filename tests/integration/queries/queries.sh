#!/usr/bin/env bash
# What queries find out about calls that end, against what the programs themselves counted or the
# files they read.
. "$(dirname "$0")/../lib.sh"
bin=$(dirname "$TARGET")

# rows QUERY COMMAND...: the final rows' values, one JSON object a line, into $work/rows; the
# command's own output into $work/own
rows() {
	local query=$1
	shift
	"$FAY" trace --json "$query" -- "$@" >"$work/out" 2>"$work/err" ||
		{ cat "$work/err" >&2; fail "$query"; }
	grep '^{"type"' "$work/out" | jq -c 'select(.type == "row" and .final) | .values' \
		>"$work/rows"
	grep -v '^{"type"' "$work/out" >"$work/own" || true
	equal "events lost" 0 "$(grep '^{"type":"end"' "$work/out" | jq .events_lost)"
}
sum() { jq -s "map($1) | add // 0" "$work/rows"; }

# Returns and failures, apart: the program prints entries, returns and exceptions.
for scenario in exceptions recursion tail; do
	rows 'from r in cluster.Return("calls_target!traced_*")
	      group r by new { r.function, r.Failed } into g
	      select new { g.Key.function, g.Key.Failed, n = g.Count(),
	      time = g.Sum(x => x.Duration) }' "$bin/calls_target" $scenario
	read -r _ returns exceptions < <(tail -1 "$work/own")
	equal "$scenario: calls that returned" "$returns" "$(sum 'select(.Failed == false) | .n')"
	equal "$scenario: calls that failed" "$exceptions" "$(sum 'select(.Failed) | .n')"
	equal "$scenario: rows without time spent" 0 "$(sum 'select(.time <= 0) | 1')"
done
rows 'cluster.Return("calls_target!traced_*").Count(r => r.Failed || !r.Failed)' \
	"$bin/calls_target" exceptions
read -r _ returns exceptions < <(tail -1 "$work/own")
equal "both in one count" $((returns + exceptions)) "$(sum .Count)"
rows 'cluster.Return("calls_target!traced_*").Count()' "$bin/calls_target" exceptions
equal "without Failed: returns alone" "$returns" "$(sum .Count)"

# Return values: what read() returned is the file.
head -c 123456 /dev/zero >"$work/file"
rows 'cluster.Return("libc!read").Where(r => r.ReturnValue > 0 && r.ReturnValue
	<= 1000).Sum(r => r.ReturnValue)' dd if="$work/file" of=/dev/null bs=1000 status=none
equal "bytes that read() returned" 123456 "$(sum .Sum)"

# Windows: nothing is missing or twice; a second without events has its zero; rows that are shown
# again replace the earlier ones.
cat >"$work/windows.pl" <<'PERL'
open F, '<', '/dev/zero'; for my $i (1 .. 5) { for (1 .. 1000 * $i) { sysread F, my $b, 7 } select undef, undef, undef, .35 }
PERL
last_of_each() {
	jq -c -s 'group_by(.window)[] | last' "$work/rows" >"$work/last" && mv "$work/last" \
		"$work/rows"
}
rows 'cluster.Function("libc!read").Where(r => r.Arg(2) == 7).Tumbling(100ms).Count()' perl \
	"$work/windows.pl"
last_of_each
equal "events in all windows" 15000 "$(sum .Count)"
equal "windows that follow one another" true \
	"$(jq -s '[.[].window] | [.[1:], .[:-1]] | transpose | all(.[0] - .[1] == 100000000)' \
	"$work/rows")"
equal "windows without events" true "$(jq -s 'any(.Count == 0)' "$work/rows")"
# More groups than a thread's table has rows, in windows that are longer than they are kept for late
# events: rows that were handed on are still there when a window is looked at again.
cat >"$work/keys.pl" <<'PERL'
open F, '<', '/dev/zero'; my $b;
for (1 .. 3) { for my $i (100000 .. 106000) { sysread F, $b, $i } }
for (1 .. 130) { sysread F, $b, 100000; select undef, undef, undef, .05 }
PERL
rows 'cluster.Function("libc!read").Where(r => r.Arg(2) >= 100000 && r.Arg(2)
	<= 106000).Tumbling(3s).GroupBy(r => r.Arg(2)).Select(g => new { g.Key, n = g.Count() })' \
	perl "$work/keys.pl"
jq -c -s 'group_by([.window, .Key])[] | last' "$work/rows" >"$work/last"
equal "events in long windows of many groups" $((3 * 6001 + 130)) \
	"$(jq -s 'map(.n) | add' "$work/last")"
rows 'cluster.Function("libc!read").Where(r => r.Arg(2) == 7).Sliding(300ms, 100ms).Count()' perl \
	"$work/windows.pl"
last_of_each
# The first windows begin before the trace, the last ones are cut off with it: each event is in one
# to three.
[ "$(sum .Count)" -gt 30000 ] && [ "$(sum .Count)" -le 45000 ] ||
	fail "events in sliding windows: $(sum .Count)"

# How the probes would be run, and are.
count='cluster.Function("libc!read").Count()'
named='from r in cluster.Function("libc!read") group r by r.comm into g
	select new { g.Key, n = g.Count() }'
exits "explained for a process that is not there" 1 "$FAY" explain -p 4194303 "$count"
contains "which" "$work/err" "there is no process 4194303"
exits "explained: a count" 0 "$FAY" explain "$count"
contains "it would be inlined" "$work/out" \
	"probe 0: inlined into the trampoline, 3 bytes; needs no guard against reentrance"
printf '#include <fay/probe.h>\nFAY_ENTRY("libc!read") { }\n' >"$work/nothing.c"
exits "a probe that does nothing" 0 "$FAY" cc "$work/nothing.c" -o "$work/nothing.fay"
exits "traced: nothing" 0 "$FAY" trace --verbose --probe "$work/nothing.fay" -- cat /etc/passwd
contains "nothing is called" "$work/err" \
	"probe 0: inlined into the trampoline, 0 bytes; needs no guard against reentrance"
printf '#include <fay/probe.h>\nFAY_COUNT(reads);\nFAY_COUNT(never);\nFAY_ENTRY("libc!read") { fay_count(&reads); }\nFAY_ENTRY("libc!getpgid") { fay_count(&never); }\n' \
	>"$work/two.c"
exits "a probe with a state that stays empty" 0 "$FAY" cc "$work/two.c" -o "$work/two.fay"
exits "traced: two states" 0 "$FAY" trace --probe "$work/two.fay" -- dd if=/dev/zero of=/dev/null \
	bs=1 count=9 status=none
contains "the thread that filled the first" "$work/err" "; 1 thread counted"
exits "explained: a table" 0 "$FAY" explain "$named"
contains "it would be inlined in part" "$work/out" \
	" bytes, the rest called; guarded against reentrance"
exits "traced: a table" 0 "$FAY" trace --verbose "$named" -- cat /etc/passwd
contains "it is inlined in part" "$work/err" \
	" bytes, the rest called; guarded against reentrance"
streamed='from r in cluster.Function("libc!read") select new { r.comm }'
exits "explained: a stream" 0 "$FAY" explain "$streamed"
contains "it would be called" "$work/out" \
	"probe 0: called from the trampoline; guarded against reentrance"
exits "traced: a stream" 0 "$FAY" trace --verbose "$streamed" -- cat /etc/passwd
contains "it is called" "$work/err" \
	"probe 0: called from the trampoline; guarded against reentrance"
exits "traced: a count of all functions" 0 "$FAY" trace \
	--verbose 'cluster.Function("libc!str*").Count()' --share 2 -- cat /etc/passwd
contains "it is inlined" "$work/err" \
	"probe 0: inlined into the trampoline, 3 bytes; needs no guard against reentrance"
contains "and shared" "$work/err" "functions share a trampoline"

# A query that says which machine it is about: this one by its name, by the first part of it, by a
# glob; another one is refused.
for name in "$(uname -n)" "$(uname -n | cut -d. -f1)" "*"; do
	rows "machine(\"$name\").Return(\"libc!read\").Where(r => r.ReturnValue > 0 && r.ReturnValue
		<= 1000).Sum(r => r.ReturnValue)" dd if="$work/file" of=/dev/null bs=1000 \
		status=none
	equal "asked of machine $name" 123456 "$(sum .Sum)"
done
exits "another machine" 1 "$FAY" trace 'machine("no-such-machine").Function("libc!read").Count()' \
	-- true
contains "says which one this is" "$work/err" "this machine is named '$(uname -n)'"
