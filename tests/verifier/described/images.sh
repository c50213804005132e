# SPDX-License-Identifier: MIT
# What the tests of this folder share: `source=... fay=...` are set before. `image` makes an image of
# the corpus' tables and a body, `link` one of a whole source; `bad` tells of a failure.
here=$source/tests/verifier
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
bad() { echo "$(basename "$0"): $1"; failed=1; }

link() { # NAME SOURCE
	as --defsym LOCAL=256 --defsym GLOBAL=64 -o "$work/o" "$2"
	ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none \
		-o "$work/$1.fay" "$work/o"
}
image() { # NAME LINE...: TABLES are added unless a line has them
	name=$1
	shift
	{ cat "$here/corpus/prologue.s"; printf '%s\n' "$@"; } >"$work/s"
	printf '%s\n' "$@" | grep -q '^IMAGE' || printf '\tTABLES\n' >>"$work/s"
	link "$name" "$work/s"
}
run() { # EXPECTED-EXIT ARGUMENT...: standard output in $work/out, errors in $work/err
	want=$1 code=0
	shift
	(cd "$work" && timeout 60 "$fay" "$@") >"$work/out" 2>"$work/err" || code=$?
	[ "$code" = "$want" ] || bad "fay $*: exit code $code, not $want: $(cat "$work/err")"
}
says() { # PATTERN...: each is in the output
	for pattern in "$@"; do
		grep -qE -- "$pattern" "$work/out" || bad "no '$pattern' in: $(cat "$work/out")"
	done
}
lacks() {
	for pattern in "$@"; do
		! grep -qE -- "$pattern" "$work/out" || bad "'$pattern' in: $(cat "$work/out")"
	done
}
holds() { # JQ-FILTER...: each is true of the JSON
	for filter in "$@"; do
		jq -e "$filter" "$work/out" >/dev/null ||
			bad "not $filter: $(head -c 2000 "$work/out")"
	done
}
# Every member that the JSON has is in the documentation.
documented() {
	jq -r '[paths | map(select(type == "string")) | last // empty] | unique[]' "$work/out" |
		while read -r member; do
			grep -q "\`$member\`" "$source"/docs/cli-json.md \
				"$source"/docs/verify-json.md || echo "$member"
		done >"$work/undocumented"
	[ ! -s "$work/undocumented" ] || bad "not documented: $(cat "$work/undocumented")"
}
