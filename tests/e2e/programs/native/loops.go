// SPDX-License-Identifier: Apache-2.0
// Two functions that take 3 and 1 parts of the time.
package main

import (
	"fmt"
	"os"
	"syscall"
)

var sink uint64

//go:noinline
func area(steps uint64) {
	for i := uint64(0); i < 3*steps; i++ {
		sink += i
	}
}

//go:noinline
func edge(steps uint64) {
	for i := uint64(0); i < steps; i++ {
		sink += i
	}
}

//go:noinline
func measure(steps uint64) {
	for i := uint64(0); i < steps; i++ {
		sink += i
	}
}

// Processor time of this process, in seconds.
func now() float64 {
	var used syscall.Rusage
	syscall.Getrusage(0, &used)
	return float64(used.Utime.Nano()+used.Stime.Nano()) * 1e-9
}

func main() {
	start := now()
	measure(20000000)
	steps := uint64(20000000 / (now() - start) * 0.15)
	start = now()
	area(steps)
	middle := now()
	edge(steps)
	fmt.Printf("area %f\nedge %f\n", middle-start, now()-middle)
	os.Exit(7)
}
