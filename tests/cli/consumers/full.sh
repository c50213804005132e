#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# full.sh FAY SOURCE: on a full disk each format and each command that writes ends with exit code 4
# (`fay diff`: 2) and says so; a saved trace that did not fit is what was written of it.
set -euo pipefail
fay=$1 source=$2
work=$(mktemp -d)
trap 'umount "$work/full" 2>/dev/null || :; rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; cat "$work/err" >&2; exit 1; }
export FAY_BUDGET=none
cd "$work"
calls='cluster.Return("libc!*alloc")'
columns='r.time, r.pid, r.tid, r.function, r.Duration'
"$fay" trace --save s.fay "$calls.Select(r => new { $columns, stack = r.Stack(12) })" \
	-- ls -l /etc >/dev/null 2>err || fail "no saved trace"
"$fay" cc "$source/examples/probes/open_path.c" -o i.fay 2>err || fail "no image"
by='from e in file("s.fay") group e by'
declare -A queries=([chrome]="file(\"s.fay\").Select(r => new { $columns })")
queries[json]=${queries[chrome]} queries[csv]=${queries[chrome]} queries[otlp]=${queries[chrome]}
queries[folded]="$by e.stack into g select new { g.Key, n = g.Count() }"
queries[flame]=${queries[folded]} queries[pprof]=${queries[folded]}
queries[table]="$by e.function into g select new { g.Key, n = g.Count() }"
queries[openmetrics]=${queries[table]}
# full CODE WHAT COMMAND...: ends with it, and with the reason
full() {
	local code=0 wanted=$1 what=$2
	shift 2
	"$@" >/dev/full 2>err </dev/null || code=$?
	[ $code = "$wanted" ] || fail "$what: exit code $code"
	grep -q 'cannot write.*No space left on device\|^fay cc: .*: No space left' err ||
		fail "$what: no reason"
	echo "ok: $what"
}
for format in "${!queries[@]}"; do
	full 4 "--format $format" "$fay" trace --format "$format" "${queries[$format]}"
done
full 4 help "$fay" help
full 4 version "$fay" --version
full 4 'help trace' "$fay" help trace
full 4 list "$fay" list "$(command -v ls)"
full 4 explain "$fay" explain 'cluster.Function("libc!read").Count()'
full 4 examples "$fay" examples
full 4 doctor "$fay" doctor --json
full 4 inspect "$fay" inspect i.fay
full 4 verify "$fay" verify i.fay
full 4 'policy init' "$fay" policy init i.fay
full 2 diff "$fay" diff i.fay i.fay
full 4 cc "$fay" cc "$source/examples/probes/open_path.c" -o /dev/full
for what in html sarif attest; do
	full 4 "verify --$what" "$fay" verify --$what /dev/full i.fay
done

# --- files that are cut off ---

[ "$(id -u)" = 0 ] && mkdir full && mount -t tmpfs -o size=16k none full 2>/dev/null ||
	{ echo "skipped: no small file system for the rest"; exit 0; }
for format in chrome json csv otlp; do
	full 4 "-o, $format" "$fay" trace --format $format -o full/o "${queries[$format]}"
done
rm full/o
full 4 export "$fay" export --ctf full/ctf s.fay
rm -rf full/*
code=0
"$fay" trace --save full/s.fay "$calls.Select(r => new { $columns, stack = r.Stack(12) })" \
	-- ls -l /etc >/dev/null 2>err || code=$?
[ $code != 0 ] && grep -q 'No space left on device' err || fail "--save: exit code $code"
"$fay" trace 'file("full/s.fay").Count()' >count 2>err || fail "what was saved"
grep -qE '[1-9]' count || fail "nothing was saved: $(cat count)"
echo "ok: --save: $(tail -1 count)"
