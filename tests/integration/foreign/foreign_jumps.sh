#!/usr/bin/env bash
# longjmp in loops, out of signal handlers, and through interpreters, over traced calls. Out of a
# handler at each instruction: calls.sh, stepped_target.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/foreign_lib.sh"
flags="-O2 -falign-functions=64 -fno-optimize-sibling-calls -pthread -I$here"
jumps() { # NAME SCENARIOS OPTIONS...
	local name=$1 scenarios=$2 scenario slack
	shift 2
	compiled "$name" gcc $flags "$@" -o "$name" "$here/jumps.c"
	for scenario in $scenarios; do
		slack=10
		[[ $scenario != signals && $scenario != timer ]] || slack=reentrant
		program "$name $scenario" "$name" 'traced_*' $slack "$work/$name" $scenario
	done
}
all="loop interpreter faults faults_other_stack signals timer"
if has C gcc gcc; then
	jumps dynamic "$all"
	jumps static "$all" -static
	jumps static_pie "$(long_or "$all" "loop signals")" -fPIE -static-pie
	jumps cet "$(long_or "$all" "interpreter faults_other_stack")" -fcf-protection=full
	jumps fortified "$(long_or "$all" "loop timer")" -D_FORTIFY_SOURCE=2
fi
if has Lua lua5.4 lua5.4; then
	program Lua lua5.4 lua_error 10 "$(command -v lua5.4)" "$here/lua.lua"
fi
if has LuaJIT luajit luajit; then
	program LuaJIT '*' '' 0 "$(command -v luajit)" "$here/lua.lua"
fi
all_done
