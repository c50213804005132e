#!/usr/bin/env bash
# Paths of system calls, whole, as keys and in comparisons, beside what the program passed.
host=1
. "$(dirname "$0")/../lib.sh"
needs_bpf

rows() { jq -c 'select(.type == "row" and .final) | .values' "$work/trace"; }
ask() {
	"$FAY" trace -o "$work/trace" --json "$1" -- "$STRINGS_TARGET" opens >"$work/said" \
		2>"$work/trace.err" || { cat "$work/trace.err" >&2; fail "$1"; }
}
counted() { jq -s "map(select(.text | $1) | .calls) | add // 0" "$work/said"; }

ask 'from e in cluster.Syscall("openat") where e.Arg(1).Text.StartsWith("/no/such/folder/")
    group e by e.Arg(1).Text into g select new { text = g.Key, calls = g.Count() }'
# names that are cut are as different as those that are not
sort "$work/said" | cmp - <(rows | sort) || fail "other paths than the program's"
equal "texts lost" "0 0" "$(jq -s -r 'map(select(.type == "end"))[0] |
	"\(.texts_lost) \(.texts_unsent)"' "$work/trace")"
part=$(jq -r 'select((.text | length) == 50) | .text[25:50]' "$work/said")
ask "cluster.Syscall(\"openat\").Count(e => e.Arg(1).Text.Contains(\"$part\"))"
equal "Contains" "$(counted "contains(\"$part\")")" "$(rows | jq .Count)"
# what is known from its first bytes alone
ask 'cluster.Syscall("openat").Count(e => e.Arg(1).Text.StartsWith("/no/such/"))'
equal "StartsWith" "$(counted 'startswith("/no/such/")')" "$(rows | jq .Count)"
ask "cluster.Syscall(\"openat\").Count(e => e.Arg(1).Text.EndsWith(\"$part\") ||
    e.Arg(1).Text.Length == 4096 && e.Arg(1).Text != \"$part\")"
equal "EndsWith and Length" "$(counted "endswith(\"$part\") or length >= 4096")" \
	"$(rows | jq .Count)"
