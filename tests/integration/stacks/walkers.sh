#!/usr/bin/env bash
# Programs whose run-time systems find callers by return addresses, or copy stacks: with the ends of
# all calls traced they go on and come to the right result. What is not installed is named and left
# out.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
tried=0
# begin COMMAND...: the program, reading what is written to 9
begin() {
	rm -f "$work/in" "$work/program.out"
	mkfifo "$work/in"
	"$@" <"$work/in" >"$work/program.out" 2>"$work/program.err" &
	program=$!
	own "$program"
	exec 9>"$work/in"
	wait_for "$work/program.out" ready
	tried=$((tried + 1))
}
# watch WHAT GLOB: the ends of all calls that match, a second long
watch() {
	trace -p "$program" "cluster.Return(\"$2\").Count()"
	rest 15
	end_trace
	kill -0 "$program" 2>/dev/null || {
		cat "$work/program.out" "$work/program.err" >&2
		fail "$1: the program ended"
	}
	[ "$(final_sum Count)" -gt 0 ] || fail "$1: no call was counted"
	echo "ok: $1: calls counted"
}
finish() {
	local code=0
	exec 9>&-
	ended "$program" || code=$?
	[ "$code" = 0 ] || {
		cat "$work/program.out" "$work/program.err" >&2
		fail "$1: exit code $code"
	}
	equal "$1: what it found wrong" "wrong 0" "$(tail -1 "$work/program.out")"
}
# Mono's modules are made up here.
begin "$(dirname "$FAY")/aot_target"
exits "Mono: calls to other modules" 1 "$FAY" trace -p "$program" --for 1s \
	'cluster.Function("aot_target!plt_*").Count()'
contains "Mono: calls to other modules, and why" "$work/err" \
	"plt_method cannot be traced: it is code that Mono reads when it is first called; it cannot be traced"
trace -p "$program" 'cluster.Function("aot_target!*method").Count()'
echo >&9
wait_for "$work/program.out" called
end_trace
finish Mono
equal "Mono: calls of methods" 1 "$(final_sum Count)"
tried=0
if command -v node >/dev/null; then
	begin node --expose-gc "$here/walkers.js"
	own_file=$(grep -aoE '/[^ ]*libnode\.so[^ ]*' "/proc/$program/maps" | head -1 || true)
	module=$(basename "${own_file:-$(readlink -f "/proc/$program/exe")}" | sed 's/\.so.*//')
	watch "V8: everything" '*!*'
	watch "V8: its own functions" "$module!_ZN2v8*"
	watch "V8: the event loop" '*!uv_*'
	if [ "$(readelf -sW "/proc/$program/exe" | grep -c ' Builtins_StringAdd')" -gt 0 ]; then
		exits "V8: its built-in functions" 1 "$FAY" trace -p "$program" --for 1s \
			"cluster.Function(\"$module!Builtins_*\").Count()"
		contains "V8: its built-in functions, and why" "$work/err" \
			"may be copied by V8 for a worker that begins later"
	fi
	finish V8
else
	echo "node is not installed"
fi
if command -v java >/dev/null && command -v javac >/dev/null; then
	javac -d "$work" "$here/Walkers.java"
	begin java -Xmx64m -cp "$work" Walkers
	watch "HotSpot: everything" '*!*'
	watch "HotSpot: native methods" 'lib[njz]*!*'
	watch "HotSpot: its own functions" 'libjvm!*'
	finish HotSpot
else
	echo "java or javac is not installed"
fi
python=/usr/bin/python3
if [ -x $python ] && $python -c 'import greenlet' 2>/dev/null; then
	begin $python "$here/walkers.py"
	wait_for "$work/program.out" loaded
	watch "greenlet: everything" '*!*'
	watch "greenlet: Python's functions" 'python3*!Py*'
	trace -p "$program" 'cluster.Function("python3*!PyObject_*").Count()'
	rest 5
	end_trace
	[ "$(final_sum Count)" -gt 0 ] || fail "greenlet: entries are not counted"
	finish greenlet
	begin $python "$here/walkers.py" later
	trace -p "$program" 'cluster.Return("*!*").Count()'
	echo >&9
	rest 15
	end_trace
	finish "greenlet, loaded later"
else
	echo "greenlet is not installed"
fi
if command -v pypy3 >/dev/null && pypy3 -c 'import greenlet' 2>/dev/null; then
	begin pypy3 "$here/walkers.py"
	watch "PyPy: its functions" 'libpypy*!*'
	# Its compiler would go on calling what a jump there leads to, when that is gone.
	exits "PyPy: entries" 1 "$FAY" trace -p "$program" --for 1s \
		'cluster.Function("libc!malloc").Count()'
	contains "PyPy: entries, and why" "$work/err" \
		"whose compiler follows a jump at a function's first byte"
	finish PyPy
else
	echo "pypy3 is not installed"
fi
[ "$tried" -gt 0 ] || skip "none of node, java, python3-greenlet, pypy3 is installed"
