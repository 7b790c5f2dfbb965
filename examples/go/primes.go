// SPDX-License-Identifier: Apache-2.0

// Marks from Go. A goroutine may move between threads, and a range belongs to a thread: lock the
// goroutine to its thread while a range is open. A call of C takes some 50 ns. A Go program ends without
// the destructors of C, so the ledger has a file that was not closed; nothing is missing in it.
//
//	sonde run -o primes.sonde -- ./primes-go && sonde report primes.sonde
package main

// #cgo pkg-config: sonde
// #include <sonde/record.h>
import "C"

import (
	"fmt"
	"runtime"
)

// A C string is allocated and never freed: make each name once.
var (
	nameCount  = C.CString("count")
	nameSieve  = C.CString("sieve")
	namePrimes = C.CString("primes")
	nameDone   = C.CString("done")
)

// begin opens a range; call what it returns to end it: defer begin(name)().
func begin(name *C.char) func() {
	runtime.LockOSThread()
	C.sonde_begin(name)
	return func() {
		C.sonde_end()
		runtime.UnlockOSThread()
	}
}

func sieve(limit int) []bool {
	defer begin(nameSieve)()
	crossed := make([]bool, limit)
	times := 0
	for i := 2; i < limit; i++ {
		for multiple := i * i; !crossed[i] && multiple < limit; multiple += i {
			crossed[multiple] = true
			times++
		}
	}
	C.sonde_flops(C.double(times))
	return crossed
}

func count(limit int) int {
	defer begin(nameCount)()
	primes := 0
	for i, crossed := range sieve(limit) {
		if i >= 2 && !crossed {
			primes++
		}
	}
	return primes
}

func main() {
	for step := 1; step <= 3; step++ {
		C.sonde_step()
		primes := count(step * 10000)
		C.sonde_counter(namePrimes, C.double(primes))
		fmt.Println(primes, "primes below", step*10000)
	}
	C.sonde_mark(nameDone)
}
