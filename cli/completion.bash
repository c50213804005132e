# SPDX-License-Identifier: MIT
# Completion of `fay` for bash: `complete` knows what there is.
_fay_complete=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
[ -x "$_fay_complete/complete" ] || _fay_complete=$_fay_complete/../../fay

_fay() {
	local word=${COMP_WORDS[COMP_CWORD]} IFS=$'\n' words
	words=$("$_fay_complete/complete" "${COMP_WORDS[@]:0:COMP_CWORD+1}")
	case $words in
	@files) compopt -o default ;;
	@users) COMPREPLY=($(compgen -u -- "$word")) ;;
	@commands) COMPREPLY=($(compgen -c -- "$word")) ;;
	*@files) COMPREPLY=($(compgen -f -W "${words%@files}" -- "$word")) ;;
	*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
	esac
}
complete -F _fay fay
