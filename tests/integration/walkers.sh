#!/usr/bin/env bash
# Programs whose run-time systems find callers by return addresses, or copy stacks: with the ends of all calls watched that can be they go on and come to the right result; what cannot be
# is named with the reason. What is not installed is named and left out.
. "$(dirname "$0")/lib.sh"
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
	kill -0 "$program" 2>/dev/null || { tail -20 "$work/program.out" "$work/program.err" >&2; fail "$1: the program ended"; }
	[ "$(final_sum Count)" -gt 0 ] || fail "$1: no call was counted"
	echo "ok: $1: calls counted"
}
finish() {
	local code=0
	exec 9>&-
	ended "$program" || code=$?
	[ "$code" = 0 ] || { tail -20 "$work/program.out" "$work/program.err" >&2; fail "$1: exit code $code"; }
	equal "$1: what it found wrong" "wrong 0" "$(tail -1 "$work/program.out")"
}
# refused WHAT GLOB REASON: when nothing else is asked for
refused() {
	exits "$1" 1 "$FAY" trace -p "$program" --for 1s "cluster.Return(\"$2\").Count()"
	contains "$1, and why" "$work/err" "$3"
}
explain() { "$FAY" explain --json -p "$program" "cluster.Return(\"$1\").Count()" >"$work/explain.json"; }

# Mono's modules are made up here.
begin "$(dirname "$FAY")/aot_target"
refused "Mono: methods" 'aot_target!method' "is code that Mono has compiled, whose frames it finds by return addresses"
exits "Mono: calls to other modules" 1 "$FAY" trace -p "$program" --for 1s 'cluster.Function("aot_target!plt_*").Count()'
contains "Mono: calls to other modules, and why" "$work/err" "plt_method cannot be traced: it is code that Mono reads when it is first called; it cannot be traced"
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
	refused "V8: its own functions" "$module!_ZN2v8*" "whose frames V8 finds by return addresses"
	watch "V8: the event loop" '*!uv_*'
	if [ "$(readelf -sW "/proc/$program/exe" | grep -c ' Builtins_StringAdd')" -gt 0 ]; then
		exits "V8: its built-in functions" 1 "$FAY" trace -p "$program" --for 1s "cluster.Function(\"$module!Builtins_*\").Count()"
		contains "V8: its built-in functions, and why" "$work/err" "is copied by V8 to where its code is made"
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
	explain 'libjvm!*'
	equal "HotSpot: which of its functions are watched" "JNI_ JVM_" "$(jq -r 'select(.type == "point") | .function[:4]' "$work/explain.json" | grep -v jni_ | sort -u | xargs)"
	finish HotSpot
else
	echo "java or javac is not installed"
fi
python=/usr/bin/python3
if [ -x $python ] && $python -c 'import greenlet' 2>/dev/null; then
	begin $python "$here/walkers.py"
	wait_for "$work/program.out" loaded
	watch "greenlet: everything" '*!*'
	refused "greenlet: Python's functions" 'python3*!Py*' "may be on the stack when greenlet copies that away"
	trace -p "$program" 'cluster.Function("python3*!PyObject_*").Count()'
	rest 5
	end_trace
	[ "$(final_sum Count)" -gt 0 ] || fail "greenlet: entries are not counted"
	finish greenlet
	begin $python "$here/walkers.py" later
	trace -p "$program" 'cluster.Return("*!*").Count()'
	echo >&9
	wait_for "$work/trace.err" "are watched no longer"
	contains "loaded later" "$work/trace.err" "process $program has loaded greenlet: the ends of calls of"
	rest 15
	end_trace
	finish "greenlet, loaded later"
else
	echo "greenlet is not installed"
fi
if command -v pypy3 >/dev/null && pypy3 -c 'import greenlet' 2>/dev/null; then
	begin pypy3 "$here/walkers.py"
	refused "PyPy: its functions" 'libpypy*!*' "may be on the stack when PyPy's coroutines copy that away"
	# Its compiler would go on calling what a jump there leads to, when that is gone.
	exits "PyPy: entries" 1 "$FAY" trace -p "$program" --for 1s 'cluster.Function("libc!malloc").Count()'
	contains "PyPy: entries, and why" "$work/err" "whose compiler follows a jump at a function's first byte"
	finish PyPy
else
	echo "pypy3 is not installed"
fi
[ "$tried" -gt 0 ] || skip "none of node, java, python3-greenlet, pypy3 is installed"
