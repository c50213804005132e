#!/usr/bin/env bash
# Saved traces: the same answers from the file as from the live program; kinds of events; windows;
# damaged and hostile files; a full disk.
. "$(dirname "$0")/../lib.sh"
bin=$(dirname "$TARGET")

# save FILE QUERY COMMAND...
save() {
	local file=$1 query=$2
	shift 2
	"$FAY" trace --save "$file" "$query" -- "$@" >"$work/own" 2>"$work/err" ||
		{ cat "$work/err" >&2; fail "$query"; }
}
# ask QUERY: the rows' values, one JSON object a line, into $work/rows
ask() {
	"$FAY" trace --json "$1" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "$1"; }
	jq -c 'select(.type == "row" and .final) | .values' "$work/out" >"$work/rows"
	equal "events lost" 0 "$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/out")"
}
sum() { jq -s "map($1) | add // 0" "$work/rows"; }

head -c 123456 /dev/zero >"$work/file"
save "$work/reads.fay" 'cluster.Function("libc!read")' dd if="$work/file" of=/dev/null bs=100 \
	status=none
ask "file(\"$work/reads.fay\").Where(r => r.Arg(2) == 100).Count()"
equal "calls with that size" 1236 "$(sum .Count)" # the last one finds the end
ask "from r in file(\"$work/reads.fay\") where r.comm == \"dd\" && r.function == \"read\"
	group r by new { r.function, size = r.Arg(2) } into g orderby g.Count() descending
	select new { g.Key, n = g.Count() } take 1"
equal "group with a name" '{"function":"read","size":100,"n":1236}' "$(head -1 "$work/rows")"
ask "file(\"$work/reads.fay\").Where(r => r.Arg(2) == 100).Tumbling(1ms).Count()"
equal "events in all windows" 1236 "$(sum .Count)"
ask "file(\"$work/reads.fay\").Take(7)"
equal "rows" 7 "$(wc -l <"$work/rows")"
equal "explained" 1 "$("$FAY" explain "file(\"$work/reads.fay\").Count()" | grep -c reads.fay)"

# Calls that end, with and without an exception: the program prints entries, returns and exceptions.
save "$work/calls.fay" 'cluster.Return("calls_target!traced_*")' "$bin/calls_target" exceptions
read -r _ returns exceptions < <(tail -1 "$work/own")
ask "from r in file(\"$work/calls.fay\") group r by r.Failed into g
	select new { g.Key, n = g.Count(), t = g.Sum(x => x.Duration) }"
equal "calls that returned" "$returns" "$(sum 'select(.Key == false) | .n')"
equal "calls that failed" "$exceptions" "$(sum 'select(.Key) | .n')"
ask "file(\"$work/calls.fay\").Count()"
equal "without Failed: returns alone" "$returns" "$(sum .Count)"

# What root traces is not for everyone's eyes; a file that is there keeps its mode, also behind a
# link.
(umask 0 && save "$work/own.fay" 'cluster.Function("libc!read")' true)
equal "mode of a new file" 600 "$(stat -c %a "$work/own.fay")"
install -m 640 /dev/null "$work/shared.fay"
ln -s shared.fay "$work/link.fay"
save "$work/link.fay" 'cluster.Function("libc!read")' true
equal "mode of one that is there" "640 640" \
	"$(stat -Lc %a "$work/shared.fay" "$work/link.fay" | xargs)"
[ -s "$work/shared.fay" ] || fail "nothing was saved behind the link"

# A file with a long name.
long="$work/$(printf 'a%.0s' $(seq 200))"
mkdir "$long"
ln "$work/reads.fay" "$long/$(printf 'b%.0s' $(seq 200)).fay"
ask "file(\"$long/$(printf 'b%.0s' $(seq 200)).fay\").Function(\"libc!read\").Where(r => r.Arg(2) ==
	100).Count()"
equal "calls in a file with a long name" 1236 "$(sum .Count)"

# Some columns only.
save "$work/some.fay" \
	'from r in cluster.Function("libc!read") where r.Arg(2) == 100
		select new { r.time, r.tid }' dd if="$work/file" of=/dev/null bs=100 status=none
ask "file(\"$work/some.fay\").GroupBy(r => r.tid).Select(g => g.Count())"
equal "events of the only thread" 1236 "$(sum .Count)"
# Two names of one value.
save "$work/names.fay" \
	'from r in cluster.Function("libc!read") select new { r.time, when = r.time, r.tid,
		size = r.Arg(2), other = r.Arg(2) }' dd if="$work/file" of=/dev/null bs=100 \
		status=none
ask "file(\"$work/names.fay\").Where(r => r.size == 100 && r.size == r.other &&
	r.when == r.time).Count()"
equal "events with both" 1236 "$(sum .Count)"
exits "a field that was not saved" 1 "$FAY" trace "file(\"$work/some.fay\").Sum(r => r.Arg(2))"
contains "says what there is" "$work/err" 'does not have `Arg(2)`; it has time, tid'

# Names of columns that a file has room for, and such that would be cut, to the same.
name=$(printf 'n%.0s' $(seq 63))
save "$work/long.fay" \
	"from r in cluster.Function(\"libc!read\") select new { r.time, $name = r.Arg(2) }" dd \
	if="$work/file" of=/dev/null bs=100 status=none
ask "file(\"$work/long.fay\").Where(r => r.$name == 100).Count()"
equal "events with a column of a long name" 1236 "$(sum .Count)"
exits "names that are too long" 3 "$FAY" trace --save "$work/long.fay" \
	"from r in cluster.Function(\"libc!read\") select new { ${name}1 = r.Arg(0),
		${name}2 = r.Arg(2) }" -- true
contains "says so" "$work/err" \
	"the column's name \`${name}1\` is too long to be saved: a saved trace's columns have names of at most 63 bytes"

# Stacks and callers, by the names that they had; as lines for flame graphs, too.
stacks='group e by new { e.function, e.stack, caller = e.who } into g orderby g.Count() descending
	select new { g.Key, n = g.Count() } take 1'
"$FAY" trace --json \
	"from e in cluster.Function(\"libc!read\")
		${stacks//e.stack, caller = e.who/stack = e.Stack(6), caller = e.Caller}" -- dd \
		if="$work/file" of=/dev/null bs=100 status=none >"$work/out" 2>"$work/err"
jq -c 'select(.type == "row" and .final) | .values' "$work/out" >"$work/live"
save "$work/stacks.fay" \
	'from e in cluster.Function("libc!read") select new { e.time, e.function,
		stack = e.Stack(6), outer = e.Stack(3), who = e.Caller, e.UserStack }' dd \
		if="$work/file" of=/dev/null bs=100 status=none
ask "from e in file(\"$work/stacks.fay\") $stacks"
[ "$(jq -c '.stack | length' "$work/live")" -ge 3 ] || fail "a short stack: $(cat "$work/live")"
equal "stacks as live" "$(cat "$work/live")" "$(cat "$work/rows")"
"$FAY" trace --folded \
	"file(\"$work/stacks.fay\").GroupBy(e => e.stack).Select(g => new { g.Key,
		n = g.Count() })" 2>/dev/null >"$work/folded"
equal "folded" "$(jq -r '.stack | map(sub("^[^!]*!"; "") | sub("[+]0x[0-9a-f]*$"; "")) | reverse |
	join(";")' "$work/live") 1237" "$(grep ' 123[67]$' "$work/folded" | sed 's/ 1236$/ 1237/')"
exits "a stack of another name" 1 "$FAY" trace \
	"file(\"$work/stacks.fay\").GroupBy(e => e.Stack(3)).Select(g => g.Count())"
exits "a stack that is too deep for the question" 3 "$FAY" trace \
	"file(\"$work/stacks.fay\").GroupBy(e => e.UserStack).Select(g => g.Count())"
ask "file(\"$work/stacks.fay\").Count()"
events=$(sum .Count)
stacks="(from a in file(\"$work/stacks.fay\") join b in file(\"$work/stacks.fay\") on a.time equals b.time within 0 join c in file(\"$work/stacks.fay\") on a.stack equals c"
ask "$stacks.stack within 0 select new { a, c }).Count()"
equal "joined by stacks" "$events" "$(sum .Count)"
exits "joined by stacks of two sizes" 2 "$FAY" trace \
	"$stacks.outer within 0 select new { a, c }).Count()"
contains "says why" "$work/err" "the same number of frames"

# Bad input.
exits "an aggregate cannot be saved" 2 "$FAY" trace --save "$work/x.fay" \
	'cluster.Function("libc!read").Count()' -- true
contains "says what to do" "$work/err" "leave out the aggregates"
exits "no such file" 2 "$FAY" trace "file(\"$work/nothing.fay\").Count()"
exits "not a saved trace" 1 "$FAY" trace "file(\"$FAY\").Count()"
exits "a saved trace needs no process" 2 "$FAY" trace -p $$ "file(\"$work/reads.fay\").Count()"
exits "a full disk" 4 "$FAY" trace --save /dev/full 'cluster.Function("libc!read")' -- dd \
	if="$work/file" of=/dev/null bs=10 status=none
contains "says so" "$work/err" "No space left on device"
# A disk that becomes full while the program goes on: the trace ends, and what is there can be
# asked.
mkdir "$work/disk"
# COMMAND...: in a namespace of its own, with 2 MB at $work/disk, of which full.fay is kept
on_small_disk() {
	# shellcheck disable=SC2016
	unshare -m sh \
		-c 'mount -t tmpfs -o size=2m none "$0/disk" || exit 77; "$@"; code=$?; cp "$0/disk/full.fay" "$0/full.fay"; exit $code' \
		"$work" "$@"
}
if on_small_disk touch "$work/disk/full.fay" 2>"$work/err"; then
	dd if=/dev/zero of=/dev/null bs=1 status=none &
	target=$!
	own "$target"
	runs "$target" dd
	exits "a disk that becomes full" 4 on_small_disk timeout 200 "$FAY" trace -p "$target" \
		--save "$work/disk/full.fay" 'cluster.Function("libc!read")'
	contains "says so" "$work/err" \
		"cannot write '$work/disk/full.fay': No space left on device; it is truncated"
	contains "says what ended it" "$work/err" "fay: no more events can be saved;"
	kill "$target"
	ask "file(\"$work/full.fay\").Count()"
	[ "$(sum .Count)" -gt 10000 ] || fail "only $(sum .Count) events are in 2 MB"
	contains "it is cut off" "$work/err" "the file is truncated"
	equal "it is cut off, for programs" true \
		"$(jq -s 'map(select(.type == "end"))[0].cut_off' "$work/out")"
	exits "exported" 0 "$FAY" export --ctf "$work/ctf" "$work/full.fay"
	contains "says so, too" "$work/err" "full.fay is truncated"
else
	echo "not tested: a disk that becomes full: $(cat "$work/err")"
fi
size=$(stat -c %s "$work/reads.fay")
for cut in 0 7 8 40 71 72 100 200 1000 $((size / 2)) $((size - 1)); do
	head -c "$cut" "$work/reads.fay" >"$work/cut.fay"
	exits "cut at $cut" 1 "$FAY" trace "file(\"$work/cut.fay\").Count()"
done
# Killed while it saves: what is there can be asked.
dd if=/dev/zero of=/dev/null bs=1 status=none &
target=$!
own "$target"
runs "$target" dd
"$FAY" trace -p "$target" --save "$work/killed.fay" \
	'from r in cluster.Function("libc!read") select new { r.time }' >/dev/null \
	2>"$work/trace.err" &
tracer=$!
own "$tracer"
await "2 MB of events" eval \
	'[ "$(stat -c %s "$work/killed.fay" 2>/dev/null || echo 0)" -gt 2000000 ]'
kill -9 "$tracer"
ask "file(\"$work/killed.fay\").Count()"
[ "$(sum .Count)" -gt 200000 ] || fail "only $(sum .Count) events of a trace that was killed"
kill "$target"
ended "$target" || true

# Ctrl-C ends the reading of a file that is too long to be read, of which nearly all is a hole, and
# shows what there was.
cp "$work/killed.fay" "$work/endless.fay"
truncate -s 1T "$work/endless.fay"
has_read() { [ "$(sed -n 's/^rchar: //p' "/proc/$1/io")" -gt 20000000 ]; }
interrupted() { # QUERY
	rm -f "$work/err"
	"$FAY" trace --json "$1" >"$work/out" 2>"$work/err" &
	tracer=$!
	own "$tracer"
	wait_for "$work/err" "saved events"
	await "20 MB that are read" has_read "$tracer"
	kill -INT "$tracer"
	ended "$tracer"
}
interrupted "file(\"$work/endless.fay\").Count()"
equal "events until Ctrl-C" \
	"$(sed -n 's/^fay: interrupted after \([0-9]*\) of [0-9]* saved events; the result covers only these$/\1/p' \
	"$work/err")" \
	"$(jq -s 'map(select(.type == "row"))[0].values.Count' "$work/out")"
interrupted "file(\"$work/endless.fay\").Function(\"libc!read\").Count(r => r.time < Now)"
contains "said in JSON, too" "$work/out" '"reason":"interrupted after '

# The holes' events are of 1970: fifty years of windows of a millisecond are not looked at one by
# one, and where they are shown Ctrl-C ends it.
cp "$work/killed.fay" "$work/endless.fay"
truncate -s +8M "$work/endless.fay"
exits "windows far apart" 0 "$FAY" trace \
	--json "file(\"$work/endless.fay\").Tumbling(1ms).GroupBy(r => 1).Select(g => g.Count())"
jq -c 'select(.type == "row" and .final) | .values' "$work/out" >"$work/rows"
equal "the first of them" 0 "$(jq -s '.[0].window' "$work/rows")"
all=$(sed -n 's/^fay: \([0-9]*\) saved events.*/\1/p' "$work/err")
equal "events in all of them" "$all" "$(sum '[to_entries[] | select(.key != "window")][0].value')"
rm -f "$work/err"
"$FAY" trace --json "file(\"$work/endless.fay\").Tumbling(1ms).Count()" >"$work/in_windows" \
	2>"$work/err" &
tracer=$!
own "$tracer"
await "a window without events" grep -q '"Count":0}' "$work/in_windows"
kill -INT "$tracer"
ended "$tracer"
contains "windows until Ctrl-C" "$work/err" "windows are shown, those after them are not"
