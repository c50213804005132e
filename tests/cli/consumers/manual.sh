#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# manual.sh FAY SOURCE: each command has a manual page that has each of its options, each format of
# a file has one, and man reads all of them without a warning.
set -euo pipefail
fay=$1 pages=$2/docs/man
fail() { echo "FAIL: $*" >&2; exit 1; }
command -v man >/dev/null || { echo "skipped: man is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commands=0
for command in $("$fay" help | sed -n 's/^    fay \([a-z]*\) .*/\1/p'); do
	[ "$command" != help ] || continue
	page=$pages/man1/fay-$command.1
	[ -e "$page" ] || page=$pages/fay-$command.1
	[ -e "$page" ] || fail "no page of fay $command"
	grep -q "^\.BR fay.-$command (1)" "$pages/fay.1" || fail "fay(1) does not name $command"
	MANWIDTH=1000 man -E UTF-8 -l "$page" >"$work/page"
	"$fay" help "$command" 2>&1 | tr '\n' ' ' | sed 's/`[^`]*`//g' |
		grep -oE -- '(^|[ [|])--?[a-zA-Z][a-z0-9-]*' |
		sed 's/^[ [|]//' | grep -vxE -- '-h|--help|-' | sort -u >"$work/options" || :
	while read -r option; do
		grep -qE -- "(^|[^a-z-])$option([^a-z0-9-]|$)" "$work/page" ||
			fail "fay-$command(1) has no $option"
	done <"$work/options"
	commands=$((commands + 1))
	# the line of `fay help`
	what=$("$fay" help | sed -n "s/^    fay $command  *//p")
	grep -qF "fay-$command - ${what%%;*}" "$work/page" || fail "fay-$command(1): not '$what'"
done
[ $commands -ge 20 ] || fail "$commands commands"
for format in query saved json image certificate policy trust log attestation host cluster; do
	[ -e "$pages/man5/fay-$format.5" ] || fail "no page of the format $format"
	grep -q "fay.-$format" "$pages/fay.1" || fail "fay(1) does not name fay-$format(5)"
done
# pages that are named exist; .so is relative to the folder of all pages
cd "$pages"
for page in fay*.[18] man?/*; do
	man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>"$work/err" >/dev/null
	[ ! -s "$work/err" ] || fail "$page: $(cat "$work/err")"
	while read -r named; do
		name=${named% *} section=${named#* }
		[ -e "man$section/$name.$section" ] || [ -e "$name.$section" ] ||
			fail "$page names $name($section)"
	done < <(sed -nE 's/\\-/-/g; s/^\.BR (fay[-_a-z]*) \(([1358])\).*/\1 \2/p' "$page")
done
echo "ok: $commands commands"
