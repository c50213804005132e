#!/usr/bin/env bash
# --save with --rotate and --keep: each event is in one of the files, once, in order; old files go;
# snapshots stay.
. "$(dirname "$0")/../lib.sh"

# numbers FILE...: Arg(2) of all saved reads, in the order of the files
numbers() {
	local file
	for file in "$@"; do
		"$FAY" trace --json \
			"from r in file(\"$file\") where r.Arg(2) < 1000000
				select new { n = r.Arg(1) }" 2>"$work/err" >"$work/out" ||
				{ cat "$work/err" >&2; fail "$file"; }
		jq -r 'select(.type == "row").values.n' "$work/out"
	done
}
# files GLOB: in the order of their numbers
files() { ls $1 2>/dev/null | sort -V; }
query='cluster.Function("rotate_target!step")'
target=$(dirname "$TARGET")/rotate_target

# All files are kept: nothing is missing, nothing twice.
"$FAY" trace --save "$work/all.fay" --rotate 1MB "$query" -- "$target" 60000 0 2>"$work/err" \
	>/dev/null || { cat "$work/err" >&2; fail "saving"; }
# (A fay that is without a processor for longer than the program waits loses events, and says how
# many.)
lost=$(sed -n 's/.* \([0-9]*\) events\{0,1\} lost.*/\1/p' "$work/err" | tail -1)
contains "says where they are" "$work/err" \
	"$((60000 - lost)) events saved in $work/all.fay and the files before it"
numbers $(files "$work/all.fay.*") "$work/all.fay" >"$work/numbers"
sort -nuc "$work/numbers" || fail "not in order, or not once"
equal "events saved and lost" 60000 $(($(wc -l <"$work/numbers") + lost))
count=$(files "$work/all.fay.*" | wc -l)
[ "$count" -ge 2 ] || fail "only $count files were full"
for file in $(files "$work/all.fay.*"); do
	equal "names are in each file: ${file##*/}" '[true]' \
		"$("$FAY" trace --json "file(\"$file\").All(r => r.function == \"step\")" \
		2>/dev/null | jq -sc 'map(select(.type == "row").values.All)')"
	[ "$("$FAY" trace --json "file(\"$file\").GroupBy(r => r.function).Select(g => g.Key)" \
		2>/dev/null | jq -r 'select(.type == "row").values[]')" = step ] ||
		fail "no name in $file"
done

# The last three; by time.
"$FAY" trace --save "$work/some.fay" --rotate 100ms --keep 3 "$query" -- "$target" 2000 1000 \
	2>"$work/err" >/dev/null || { cat "$work/err" >&2; fail "saving"; }
[ "$(files "$work/some.fay*" | wc -l)" -le 3 ] ||
	fail "more than three files: $(files "$work/some.fay*")"
[ ! -e "$work/some.fay.1" ] || fail "the first file is still there"
numbers $(files "$work/some.fay.*") "$work/some.fay" >"$work/numbers"
last=$(head -1 "$work/numbers")
[ "$last" -gt 0 ] || fail "the first events are still there"
seq "$last" 1999 | cmp - "$work/numbers" || fail "not each event from $last on, once"
echo "ok: the last $(wc -l <"$work/numbers") of 2000"

# A snapshot in the middle: what was there then stays, all else goes on.
"$FAY" trace --save "$work/ring.fay" --rotate 100ms --keep 3 "$query" -- "$target" 5000 1000 \
	2>"$work/err" >/dev/null &
tracer=$!
own "$tracer"
await "four files" eval '[ "$(files "$work/ring.fay.*" | sed -n "\$s/.*\.//p")" -ge 4 ] 2>/dev/null'
kill -USR2 "$tracer"
ended "$tracer" || { cat "$work/err" >&2; fail "the trace with a snapshot"; }
contains "the snapshot" "$work/err" "fay: snapshot 1: $work/ring.fay.snapshot-1."
equal "files of the snapshot" true \
	"$([ "$(files "$work/ring.fay.snapshot-1.*" | wc -l)" -ge 1 ] && echo true)"
numbers $(files "$work/ring.fay.snapshot-1.*") >"$work/numbers"
first=$(head -1 "$work/numbers") last=$(tail -1 "$work/numbers")
seq "$first" "$last" | cmp - "$work/numbers" ||
	fail "not each event from $first to $last in the snapshot"
numbers $(files "$work/ring.fay.[0-9]*") "$work/ring.fay" >"$work/numbers"
after=$(head -1 "$work/numbers")
[ "$after" -gt "$last" ] || fail "event $after is in the snapshot and after it"
seq "$after" 4999 | cmp - "$work/numbers" || fail "not each event from $after on, once"
echo "ok: $first to $last in the snapshot, $after to 4999 in the last files"

exits "rotating what is not saved" 2 "$FAY" trace --rotate 1MB "$query" -p $$
exits "keeping what does not rotate" 2 "$FAY" trace --save "$work/x" --keep 3 "$query" -p $$
exits "no size" 2 "$FAY" trace --save "$work/x" --rotate 1XB "$query" -p $$
exits "one file is too few" 2 "$FAY" trace --save "$work/x" --rotate 1MB --keep 1 "$query" -p $$
