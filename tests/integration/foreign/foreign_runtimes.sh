#!/usr/bin/env bash
# Programs of run-time systems that switch, scan, copy or walk stacks, or survive faults of their
# own: they come to the right result with the ends of all calls traced, with durations.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/foreign_lib.sh"
if has Guile guile guile-3.0; then
	export GUILE_AUTO_COMPILE=0
	program Guile '*' '' 0 "$(command -v guile)" \
		--no-auto-compile -s "$here/runtime.scm"
fi
# The launcher executes the emulator, which is what is traced.
if has Erlang escript erlang-base; then
	erl=$(find /usr/lib/erlang/erts-*/bin -name beam.smp | head -1)
	cp "$here/runtime.escript" "$work"
	export BINDIR=${erl%/*} ROOTDIR=/usr/lib/erlang EMU=beam PROGNAME=erl
	program Erlang '*' '' 0 "$erl" -S 2:2 -- -root /usr/lib/erlang -bindir "$BINDIR" \
		-progname erl -- \
		-home "$work" \
		-- -noshell -boot start_clean -run escript start -extra "$work/runtime.escript"
fi
if has Mono mono mono-runtime && has Mono mcs mono-mcs; then
	compiled Mono mcs -out:runtime.exe "$here/Runtime.cs"
	program Mono '*' '' 0 "$(command -v mono)" "$work/runtime.exe"
fi
if has node node nodejs; then
	program node '*' '' 0 "$(command -v node)" "$here/runtime.js"
fi
if has Java javac default-jdk-headless; then
	compiled Java javac -d . "$here/Runtime.java"
	program Java '*' '' 0 "$(command -v java)" -Xmx64m -cp "$work" Runtime
fi
if [ -x /usr/bin/python3 ]; then
	/usr/bin/python3 -c 'import greenlet' 2>/dev/null || lacks greenlets python3-greenlet
	program CPython '*' '' 0 /usr/bin/python3 "$here/runtime.py"
else
	lacks CPython python3
fi
if has PyPy pypy3 pypy3; then
	# Its compiler follows jumps at entries: those are refused, and durations with them.
	untimed=1 program PyPy 'libpypy*' '' 0 "$(command -v pypy3)" "$here/runtime.py"
fi
all_done
