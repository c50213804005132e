#!/usr/bin/env bash
# What bash completes: commands, their options, processes, what is traced behind `--`; the same in
# zsh and fish where they are installed.
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
gives trace --format c = csv chrome
only 2

# shown SHELL WORD... = EXPECTED...
shown() {
	local shell=$1 line="$fay" word
	shift
	while [ "$1" != "=" ]; do line+=" $1"; shift; done
	shift
	if [ "$shell" = fish ]; then
		fish -N -c "source $source/cli/completion.fish; complete -C '$line'" | cut -f1
	else # compadd as in a completion, which there is none of; the words that fit are zsh's choice
		zsh -f -c "compadd() { shift; print -l -- \"\$@\" | grep -e '^${line##* }' || :; }
			_files() { print @files; }
			words=(${line% *} '${line##* }') CURRENT=\${#words}
			. $source/cli/completion.zsh"
	fi >"$work/shown" 2>&1
	for word; do
		grep -qxF -- "$word" "$work/shown" || fail "$shell: $line: no '$word': $(cat "$work/shown")"
	done
	echo "ok: $shell: ${line#* }"
}
for shell in zsh fish; do
	command -v $shell >/dev/null || { echo "skipped: $shell is not installed"; continue; }
	shown $shell tra = trace
	shown $shell trace --j = --json
	shown $shell trace --format c = csv chrome
	[ $shell = zsh ] || shown $shell trace query -- /bin/tru = /bin/true
	shown $shell examples opensn = opensnoop
done
