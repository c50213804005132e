// SPDX-License-Identifier: MIT
// Go's panics and stacks that grow, in several goroutines: foreign_exceptions.sh.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
)

//go:noinline
func traced_inner(x int) int {
	if x%2 == 1 {
		panic(x)
	}
	return x
}

//go:noinline
func traced_middle(x int) int {
	y := traced_inner(x)
	runtime.KeepAlive(&y)
	return y + 1
}

//go:noinline
func traced_outer(x int) (result int) {
	defer func() {
		if e := recover(); e != nil {
			result = -e.(int)
		}
	}()
	return traced_middle(x)
}

//go:noinline
func traced_grow(n int) int {
	var a [64]int
	a[n%64] = n
	if n == 0 {
		return a[0]
	}
	return traced_grow(n-1) + a[n%64]
}

func round() int {
	done := make(chan int)
	for g := 0; g < 4; g++ {
		go func() {
			sum := traced_grow(100)
			for i := 0; i < 50; i++ {
				sum += traced_outer(i)
			}
			done <- sum
		}()
	}
	runtime.GC()
	return <-done + <-done + <-done + <-done
}

func main() {
	looping := len(os.Args) > 2 && os.Args[2] == "loop"
	input := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	input.ReadString('\n')
	var stop int32
	sum, rounds := round(), 1
	if looping {
		go func() {
			input.ReadString('\n')
			atomic.StoreInt32(&stop, 1)
		}()
	}
	for looping && atomic.LoadInt32(&stop) == 0 || !looping && rounds < 20 {
		if round() != sum {
			panic("a round's sum")
		}
		rounds++
	}
	fmt.Printf("sum %d\ntally %d %d %d\n", sum, rounds*(404+600), rounds*(404+400), rounds*200)
}
