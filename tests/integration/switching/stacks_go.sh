#!/usr/bin/env bash
# Stacks of Go programs, whose functions only Go's own table describes, against what the program's
# runtime says of the same calls: in goroutines whose stacks grow, through interfaces, callbacks,
# panics and deferred calls; position-independent; and where Go and C call each other.
. "$(dirname "$0")/../lib.sh"
command -v go >/dev/null || skip "go is not installed"
cat >"$work/g.go" <<'EOT'
package main

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
)

var stacks = map[string]int{}
var turn = make(chan struct{}, 1)

//go:noinline
func mark(n int) int { return n + 1 }

// Notes what the runtime says of the stack from its caller on, which then calls mark.
//
//go:noinline
func note() {
	var places [64]uintptr
	names := []string{"main.mark"}
	for _, place := range places[:runtime.Callers(2, places[:])] {
		names = append(names, runtime.FuncForPC(place-1).Name())
	}
	turn <- struct{}{}
	stacks[strings.Join(names, ";")]++
	<-turn
}

//go:noinline
func both(n int) int { note(); return mark(n) }

//go:noinline
func grow(n int) int {
	var a [512]int
	a[n%512] = n
	if n == 0 {
		return both(a[0])
	}
	return grow(n-1) + a[n%512]
}

type T struct{ x int }
type I interface{ Method(n int) int }

//go:noinline
func (t *T) Method(n int) int { return grow(n) + t.x }

func main() {
	done := make(chan int)
	var t I = &T{1}
	for i := 0; i < 70; i++ {
		i := i
		go func() { done <- t.Method(i % 7) }()
		<-done
	}
	for i := 0; i < 10; i++ {
		go func() { done <- both(1) }()
	}
	for i := 0; i < 10; i++ {
		<-done
	}
	x := []int{3, 1, 2}
	sort.Slice(x, func(i, j int) bool { both(i); return x[i] < x[j] })
	defer func() {
		recover()
		both(1)
		for stack, n := range stacks {
			fmt.Println(n, stack)
		}
	}()
	func() {
		defer func() { both(2) }()
		var m map[string]int
		if len(x) == 3 {
			m["a"] = 1
		}
	}()
}
EOT
export HOME=$work GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOCACHE=$work/gocache
build() { # NAME ARGUMENTS...
	(cd "$work" && go build -o "$@") >"$work/build.out" 2>&1 || {
		cat "$work/build.out" >&2
		fail "go build: $*"
	}
}
# the runtime keeps to itself by which of its functions it calls what is deferred
unnamed=';runtime\.(deferCallSave|runOpenDeferFrame)'
traced() { # NAME FUNCTION: stacks, innermost first, by names
	"$FAY" trace --json -o "$work/rows" "from f in cluster.Function(\"$1!$2\")
		group f by f.Stack(16) into g select new { s = g.Key, n = g.Count() }" \
		-- "$work/$1" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "$1"; }
	jq -r 'select(.type == "row" and .final) | "\(.values.n) " +
		([.values.s[] | sub("^[^!]*!"; "") | sub("([.]abi0)?([+]0x[0-9a-f]*)?$"; "")] |
		join(";"))' "$work/rows" | sed -E "s/$unnamed//g" | sort >"$work/stacks"
}
for kind in exe pie; do
	build "$kind" -buildmode="$kind" g.go
	traced "$kind" main.mark
	sort "$work/out" >"$work/said"
	[ "$(wc -l <"$work/said")" -ge 11 ] || fail "$kind: $(cat "$work/out")"
	diff "$work/said" "$work/stacks" >&2 || fail "$kind: stacks that the runtime has otherwise"
	echo "ok: $kind: $(wc -l <"$work/said") stacks as the runtime has them"
done

# Go calls C, which calls Go, each on a stack of its own: what is known ends where it is switched.
mkdir "$work/calls"
cat >"$work/calls/c.go" <<'EOT'
package main

// int outer(int);
import "C"

//go:noinline
func mark(n int) int { return n + 1 }

//export callback
func callback(n C.int) C.int { return C.int(mark(int(n))) }

//go:noinline
func into(n int) int { return int(C.outer(C.int(n))) }

func main() {
	done := make(chan int)
	sum := 0
	for i := 0; i < 10; i++ {
		go func() { done <- into(i) }()
		sum += <-done
	}
	println(sum)
}
EOT
cat >"$work/calls/c.c" <<'EOT'
extern int callback(int);
__attribute__((noipa)) int c_mark(int n) { return n; }
__attribute__((noipa)) int outer(int n) { return callback(c_mark(n)) + 1; }
EOT
(cd "$work/calls" && CGO_ENABLED=1 go build -o "$work/cgo" .) >"$work/build.out" 2>&1 || {
	cat "$work/build.out" >&2
	fail "cgo"
}
traced cgo main.mark
equal "from C into Go" "10 main.mark" "$(cut -d';' -f1 "$work/stacks")"
contains "and where C called" "$work/stacks" "_callback;runtime.cgocallbackg1;runtime.cgocallbackg;"
equal "up to the switch" runtime.cgocallback "$(sed 's/.*;//' "$work/stacks")"
traced cgo c_mark
equal "from Go into C" runtime.asmcgocall "$(sed 's/.*;//' "$work/stacks")"
contains "and its own functions" "$work/stacks" "10 c_mark;outer;_cgo_"
