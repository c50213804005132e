#!/usr/bin/env bash
# Exceptions of C++, Rust, Ada, OCaml and Go through traced frames, by every unwinder there is.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/foreign_lib.sh"
# Aligned: so that there is padding for each exit (docs/internals/returns.md)
flags="-O2 -falign-functions=64 -fno-optimize-sibling-calls -pthread -I$here"
throws() { # NAME SCENARIOS COMPILER...
	local name=$1 scenarios=$2 scenario
	shift 2
	compiled "$name" "$@" $flags -o "$name" "$here/throws.cc"
	for scenario in $scenarios; do
		program "$name $scenario" "$name" 'traced_*' "${slack:-0}" "$work/$name" "$scenario"
	done
}
all="throws threads nested deep"
if has "C++ by libgcc's unwinder" g++ g++; then
	throws gcc_dynamic "$all" g++
	throws gcc_static "$(long_or "$all" "throws threads")" g++ -static
	throws gcc_static_pie "throws deep" g++ -fPIE -static-pie
	throws gcc_cet "throws" g++ -fcf-protection=full
	throws gcc_O0 "throws" g++ -O0
	throws gcc_own "throws nested" g++ -static-libgcc -static-libstdc++
	compiled faults g++ $flags -fnon-call-exceptions -o faults "$here/faults.cc"
	program faults faults 'traced_*' 0 "$work/faults" faults # says no tally
fi
if has "C++ by LLVM's unwinder" clang++-19 clang-19; then
	llvm="clang++-19 -stdlib=libc++ -unwindlib=libunwind -rtlib=compiler-rt -Wno-unknown-attributes"
	if [ -e /usr/lib/llvm-19/lib/libunwind.so ] && [ -e /usr/lib/llvm-19/lib/libc++.so ]; then
		# Where it goes on has no name there: some calls are noticed when their place is
		# used again
		slack=10 throws llvm_dynamic "$all" $llvm
		throws llvm_static "$(long_or "$all" "nested deep")" $llvm -static
		throws llvm_static_pie "throws" $llvm -fPIE -static-pie
	else
		lacks "C++ by LLVM's unwinder" "libunwind-19-dev libc++-19-dev libc++abi-19-dev"
	fi
	throws clang_gcc "throws" clang++-19 -Wno-unknown-attributes
fi
if has Rust rustc rustc; then
	compiled Rust rustc -O -C llvm-args=-align-all-functions=6 -o rust "$here/throws.rs"
	program Rust rust 'traced_*' 0 "$work/rust" all
fi
if has Ada gnatmake gnat; then
	cp "$here/throws.adb" "$work"
	compiled Ada gnatmake -q -O1 throws.adb -o ada -cargs -falign-functions=64 \
		-fno-optimize-sibling-calls
	program Ada ada 'throws__traced__*' 0 "$work/ada" all
fi
# OCaml 4.13 has no effects. Its exceptions pop a handler: noticed when the place is used again.
if has OCaml ocamlopt ocaml-nox; then
	cp "$here/throws.ml" "$work"
	compiled OCaml ocamlopt unix.cmxa -o ocaml throws.ml
	program OCaml ocaml 'camlThrows__traced_*' 10 "$work/ocaml" all
fi
if has Go go golang-go; then
	cp "$here/throws.go" "$work"
	export HOME=$work GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOCACHE=$work/gocache
	compiled Go go build -o golang throws.go
	# Stacks are small, and those that grow take their calls elsewhere: no durations. Returns of
	# functions with `defer` are refused.
	untimed=1 program Go golang 'main.traced_*[a-z]' entries "$work/golang" all
	exits "durations in Go" 1 "$FAY" trace \
		'cluster.Return("golang!main.traced_*").Max(r => r.Duration)' \
		-- "$work/golang" all </dev/null
	contains "the reason" "$work/err" "is a Go function, whose stack is small and moves"
fi
all_done
