#!/usr/bin/env bash
# What bash completes: commands, their options, processes, what is traced behind `--`.
set -euo pipefail
fay=$1 source=$2
fail() { echo "FAIL: $*" >&2; exit 1; }
bash -n "$source/cli/completion.bash"
sleep 1000 &
process=$!
trap 'kill $process' EXIT
compopt() { echo "compopt $2"; } # outside of a completion there is none
# shellcheck source=/dev/null
. "$source/cli/completion.bash"
complete -p fay | grep -qx "complete -F _fay fay" || fail "no completion of fay"
# gives WORD... -- EXPECTED...: completes the last word; the candidates, of which the expected ones
# are some
gives() {
	COMP_WORDS=("$fay")
	while [ "$1" != "=" ]; do COMP_WORDS+=("$1"); shift; done
	shift
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	COMPREPLY=()
	local said word
	_fay >"$work/said"
	said=$(cat "$work/said")
	[ -z "$said" ] || COMPREPLY+=("$said")
	for word; do
		grep -qxF -- "$word" <<<"$(printf '%s\n' "${COMPREPLY[@]}")" ||
			fail "${COMP_WORDS[*]}: no '$word' in: ${COMPREPLY[*]}"
	done
	echo "ok: ${COMP_WORDS[*]:1} -> ${#COMPREPLY[@]}"
}
only() { [ "${#COMPREPLY[@]}" = "$1" ] || fail "${COMP_WORDS[*]}: ${COMPREPLY[*]}"; }
work=$(mktemp -d)
trap 'kill $process; rm -rf "$work"' EXIT
gives "" = trace verify inspect diff policy sign trust cc list explain doctor export cluster attach bench help
gives tr = trace trust
only 2
gives tra = trace
only 1
gives help li = list
gives trace --j = --json
only 1
gives trace -- = --for --every --comm --output --save --budget
gives list --u = --usdt
only 1
gives trace --user roo = root
gives list --syscalls openat = openat openat2
only 2
gives verify --n = --no-replay
gives trace -p ${process%?} = $process
gives trace --comm sle = sleep
gives trace query -- slee = sleep
gives trace query -- sleep x = "compopt default"
gives trace -f opensn = opensnoop
gives examples opensn = opensnoop
only 1
gives trace -o x = "compopt default"
