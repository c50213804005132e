#!/usr/bin/env bash
# Programs of other compilers: exact counts of a function whose calls are known, with everything
# that can be traced in them traced. What is not installed is named and left out.
. "$(dirname "$0")/../lib.sh"
tried=0
language() { # NAME COMPILER FUNCTION COUNT OUTPUT COMMAND...: builds $work/NAME
	local name=$1 compiler=$2 function=$3 count=$4 output=$5
	shift 5
	command -v "$compiler" >/dev/null || { echo "$name: $compiler is not installed"; return 0; }
	(cd "$work" && "$@") >"$work/build.out" 2>&1 || {
		cat "$work/build.out" >&2
		fail "$name: $*"
	}
	tried=$((tried + 1))
	equal "$name, untraced" "$output" "$("$work/$name" | tail -1)"
	"$FAY" trace --json "from f in cluster.Function(\"$name!*\") group f by f.function into g
		select new { f = g.Key, n = g.Count() }" -- "$work/$name" \
		>"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "$name"; }
	equal "$name, traced" "$output" "$(grep -v '^{"type"' "$work/out" | tail -1)"
	equal "$name: calls of $function" "$count" \
		"$(jq -Rr --arg f "$function" 'fromjson? | select(.type == "row" and .final
			and .values.f == $f) | .values.n' "$work/out")"
	equal "$name: events lost" 0 \
		"$(jq -R 'fromjson? | select(.type == "end") | .events_lost' "$work/out")"
}
cat >"$work/f.f90" <<'EOT'
program main
  implicit none
  integer :: i, s
  s = 0
  do i = 1, 1000
    call accumulate(s, i)
  end do
  print '(i0)', s
contains
  subroutine accumulate(total, value)
    integer, intent(inout) :: total
    integer, intent(in) :: value
    total = total + value
  end subroutine
end program
EOT
language fortran gfortran accumulate.0 1000 500500 gfortran -O1 -fno-inline -o fortran f.f90
cat >"$work/o.ml" <<'EOT'
let[@inline never] rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let () = print_endline (string_of_int (fib 20))
EOT
ocaml_name() { nm "$work/ocaml" | awk '/ [Tt] caml(Dune__exe__)?O__fib_/ {print $3; exit}'; }
if command -v ocamlopt >/dev/null; then
	(cd "$work" && ocamlopt -o ocaml o.ml >/dev/null 2>&1) || fail "ocamlopt"
fi
language ocaml ocamlopt "$(ocaml_name 2>/dev/null || true)" 21891 6765 true
cat >"$work/r.rs" <<'EOT'
#[inline(never)]
#[no_mangle]
pub extern "C" fn accumulate(total: u64, value: u64) -> u64 { std::hint::black_box(total + value) }
fn main() {
    let sum = (1..=1000u64).map(|i| std::thread::spawn(move || accumulate(0, i)).join().unwrap()).take(50).sum::<u64>();
    println!("{}", (51..=1000u64).fold(sum, |a, b| accumulate(a, b)));
}
EOT
language rust rustc accumulate 1000 500500 rustc -O -o rust r.rs
cat >"$work/g.go" <<'EOT'
package main

//go:noinline
func grow(n int) int {
	var a [64]int
	a[n%64] = n
	if n == 0 {
		return a[0]
	}
	return grow(n-1) + a[n%64]
}

//go:noinline
func add(a, b, c, d, e, f int) int { return a + b - c + d - e + f }

func main() {
	done := make(chan int)
	sum := 0
	for i := 0; i < 10; i++ {
		go func() { done <- grow(500) }()
		sum += <-done
	}
	for i := 0; i < 1000; i++ {
		sum += add(i, 1, 2, 3, 4, 5) - i - 3
	}
	println(sum)
}
EOT
export HOME=$work GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOCACHE=$work/gocache
if command -v go >/dev/null; then
	(cd "$work" && go build -o golang g.go) >"$work/build.out" 2>&1 || {
		cat "$work/build.out" >&2
		fail "go build"
	}
	tried=$((tried + 1))
	"$FAY" trace --json 'from f in cluster.Function("golang!*") group f by f.function into g
		select new { f = g.Key, n = g.Count() }' -- "$work/golang" \
		>"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "go"; }
	contains "go: what it prints" "$work/err" 1252500
	equal "go: calls of main.grow, whose stack grows" 5010 \
		"$(jq -r 'select(.type == "row" and .final and .values.f == "main.grow") |
			.values.n' "$work/out")"
	"$FAY" trace --json 'from f in cluster.Function("golang!main.add") group f by 1 into g
		select new { a = g.Sum(x => x.Arg(0)), b = g.Sum(x => x.Arg(1)),
		c = g.Sum(x => x.Arg(2)), d = g.Sum(x => x.Arg(3)),
		e = g.Sum(x => x.Arg(4)), f = g.Sum(x => x.Arg(5)) }' -- "$work/golang" \
		>"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "go, arguments"; }
	equal "go: arguments by number" "499500 1000 2000 3000 4000 5000" \
		"$(jq -r 'select(.type == "row" and .final) | .values |
			"\(.a) \(.b) \(.c) \(.d) \(.e) \(.f)"' "$work/out")"
	exits "go: arguments on the stack" 1 "$FAY" trace \
		'cluster.Function("golang!runtime.goexit1.abi0").Sum(x => x.Arg(0))' \
		-- "$work/golang"
	contains "go: why those are refused" "$work/err" "whose arguments are on the stack"
	# a goroutine's stack, below main.grow's first instruction, does not do for such a row
	"$FAY" trace 'from f in cluster.Function("golang!main.*") select new { s = f.Stack(32) }' \
		-- "$work/golang" >"$work/out" 2>"$work/err" && fail "go: stacks are not refused"
	contains "go: why stacks are refused" "$work/err" "may have 784 bytes of stack left"
else
	echo "go: go is not installed"
fi
# musl's C library under either of its names
cat >"$work/m.c" <<'EOT'
#include <stdlib.h>
int main(void) { for (int i = 0; i < 1000; i++) free(malloc(10)); return 0; }
EOT
if command -v musl-gcc >/dev/null; then
	tried=$((tried + 1))
	cp -L /lib/ld-musl-x86_64.so.1 "$work/ld-musl-x86_64.so.1"
	(cd "$work" && musl-gcc -fno-builtin -o musl m.c && musl-gcc -fno-builtin \
		-Wl,--dynamic-linker="$work/ld-musl-x86_64.so.1" -o musl_linker m.c)
	for name in musl musl_linker; do
		"$FAY" trace --json 'cluster.Return("libc!malloc").Count()' -- "$work/$name" \
			>"$work/trace.json" 2>"$work/err" || { cat "$work/err" >&2; fail "$name"; }
		equal "$name: ends of calls of malloc" 1000 "$(final_sum Count)"
	done
else
	echo "musl: musl-gcc is not installed"
fi
[ "$tried" -gt 0 ] || skip "none of gfortran, ocamlopt, rustc, go, musl-gcc is installed"
