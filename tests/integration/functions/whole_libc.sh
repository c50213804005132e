#!/usr/bin/env bash
# All of libc traced at once, from before main: programs print what they print untraced, and end as
# they do.
. "$(dirname "$0")/../lib.sh"
seq 20000 | rev >"$work/lines"

same() { # COMMAND...
	local untraced=0 traced=0
	LC_ALL=C.UTF-8 "$@" >"$work/want" 2>&1 || untraced=$?
	LC_ALL=C.UTF-8 "$FAY" trace \
		--json 'from c in cluster.Function("libc!*") group c by c.function into g
			select new { g.Key, n = g.Count() }' \
		-- "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "$*"; }
	grep -v '^{"type"' "$work/out" >"$work/got" || true
	equal "$1: output" "$(sha256sum <"$work/want")" "$(sha256sum <"$work/got")"
	traced=$(grep '^{"type":"end"' "$work/out" | jq -r .reason)
	equal "$1: end" "the traced program ended with exit status $untraced" "$traced"
	[ "$(grep -c '"Key":"' "$work/out")" -gt 10 ] || fail "$1: hardly a function was called"
}
same ls -l /usr/bin
same sort -r "$work/lines"
same awk '{ n += length($0); s = s substr($0, 1, 1) } END { print n, length(s), sqrt(n) }' \
	"$work/lines"
same sh -c 'for i in 1 2 3; do echo $i | tr 123 abc; done; exit 7'
same /usr/bin/perl \
	-e 'my %n; $n{$_ * 7919 % 1009}++ for 1..20000; print join(",", map { "$_:$n{$_}" } sort { $a <=> $b } keys %n), "\n"; exit 3'
contains "functions that are jumped into are left out" "$work/err" "not traced"
