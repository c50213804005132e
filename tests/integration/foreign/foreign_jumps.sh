#!/usr/bin/env bash
# longjmp in loops, out of signal handlers, and through interpreters, over traced calls. Out of a
# handler at each instruction: calls.sh, stepped_target.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/foreign_lib.sh"
flags="-O2 -falign-functions=64 -fno-optimize-sibling-calls -pthread -I$here"
jumps() { # NAME OPTIONS...
	local name=$1 scenario
	shift
	compiled "$name" gcc $flags "$@" -o "$name" "$here/jumps.c"
	for scenario in loop interpreter faults faults_other_stack; do
		program "$name $scenario" "$name" 'traced_*' 10 "$work/$name" $scenario
	done
	for scenario in signals timer; do
		program "$name $scenario" "$name" 'traced_*' reentrant "$work/$name" $scenario
	done
}
if has C gcc gcc; then
	jumps dynamic
	jumps static -static
	jumps static_pie -fPIE -static-pie
	jumps cet -fcf-protection=full
	jumps fortified -D_FORTIFY_SOURCE=2
fi
if has Lua lua5.4 lua5.4; then
	program Lua lua5.4 lua_error 10 "$(command -v lua5.4)" "$here/lua.lua"
fi
if has LuaJIT luajit luajit; then
	program LuaJIT '*' '' 0 "$(command -v luajit)" "$here/lua.lua"
fi
all_done
