# SPDX-License-Identifier: MIT
# Sourced behind tests/integration/lib.sh: terminals that are tmux's, each of its own server, and a
# process to be traced, $target.
command -v tmux >/dev/null || skip "tmux is not installed"
export XDG_STATE_HOME=$work/state
unset INPUTRC

modes="stty -a | tr ' ;' '\n\n' | grep -xE -e '-?(icanon|echo)'"
# A terminal of its own for each: its name, size, and a command line.
terminal() {
	local name=$1 columns=$2 lines=$3
	shift 3
	tmux -S "$work/tmux.$name" -f /dev/null new-session -d -x "$columns" -y "$lines" \
		"export PATH='$(dirname "$FAY")':\$PATH; $*; echo \"ends with \$?\" \$($modes); exec cat"
	screen=$work/tmux.$name
	own "$(tmux -S "$screen" display-message -p '#{pid}')"
}
keys() { tmux -S "$screen" send-keys "$@"; }
types() { # a `;` at the end would end tmux's command
	local text=$1
	[ "$text" = "${text%;}" ] || text="${text%;}\\;"
	tmux -S "$screen" send-keys -l "$text"
}
shows() { # TEXT: as it stands there, lines that were wrapped joined
	tmux -S "$screen" capture-pane -pJ >"$work/screen" && grep -qF -- "$1" "$work/screen"
}
await_screen() {
	tries shows "$1" || { cat "$work/screen" >&2; fail "no '$1' on the screen"; }
	echo "ok: $1"
}
# At the prompt, that is the last line of the screen.
is_at() {
	tmux -S "$screen" capture-pane -pJ | sed 's/ *$//' | grep -v '^$' | tail -1 >"$work/screen"
	[ "$(cat "$work/screen")" = "$1" ]
}
await_prompt() { tries is_at "$1" || fail "no prompt '$1', but $(cat "$work/screen")"; }
restored() { # CODE: it has ended, and the terminal is as before
	await_screen "ends with $1 icanon echo"
}

"$TRACER_TARGET" &
target=$!
own $target
await "the target runs" grep -qs "r-xp .*tracer_target" "/proc/$target/maps"
