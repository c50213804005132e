# SPDX-License-Identifier: MIT
# Completion of `fay` for bash. Commands and options are asked of fay itself, so that what is
# completed is what there is.
_fay_commands() { "$1" help 2>/dev/null | sed -n '/^usage/,/^$/s/^    fay \([a-z]*\).*/\1/p'; }
_fay_options() { "$1" help "$2" 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u; }

_fay() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} \
		fay=${COMP_WORDS[0]} command=${COMP_WORDS[1]} IFS=$'\n' i
	COMPREPLY=()
	# behind `--`: what is to be traced, and its arguments
	for ((i = 2; i < COMP_CWORD; i++)); do
		[ "${COMP_WORDS[i]}" = -- ] || continue
		[ $((i + 1)) = "$COMP_CWORD" ] && COMPREPLY=($(compgen -c -- "$word")) ||
			compopt -o default
		return
	done
	if [ "$COMP_CWORD" = 1 ] || [ "$command $COMP_CWORD" = "help 2" ]; then
		COMPREPLY=($(compgen -W "$(_fay_commands "$fay")" -- "$word"))
	elif [ "$before" = -p ] || [ "$before" = --pid ]; then
		COMPREPLY=($(compgen -W "$(cd /proc && printf '%s\n' [0-9]*)" -- "$word"))
	elif [ "$before" = --comm ]; then
		COMPREPLY=($(compgen \
			-W "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -xE '[[:alnum:]._:/@+-]+' |
			sort -u)" -- "$word"))
	elif [ "$before" = --user ]; then
		COMPREPLY=($(compgen -u -- "$word"))
	elif [ "$before" = -f ] || [ "$before" = --file ]; then
		COMPREPLY=($(compgen -f -W "$("$fay" examples --names 2>/dev/null)" -- "$word"))
	elif { [ "$command" = examples ] && [[ $word != -* ]]; } || [ "$before" = --run ]; then
		COMPREPLY=($(compgen -W "$("$fay" examples --names 2>/dev/null)" -- "$word"))
	elif [ "$before" = --syscalls ]; then
		COMPREPLY=($(compgen -W "$("$fay" list --syscalls 2>/dev/null |
			sed 's/^ *[0-9]* //; s/(.*//')" -- "$word"))
	elif [[ $word == -* ]]; then
		COMPREPLY=($(compgen -W "$(_fay_options "$fay" "$command")" -- "$word"))
	else
		compopt -o default # files
	fi
}
complete -F _fay fay
