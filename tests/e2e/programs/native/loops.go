// SPDX-License-Identifier: Apache-2.0
// Two functions that take 3 and 1 parts of the time.
package main

import (
	"fmt"
	"os"
	"time"
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

func main() {
	start := time.Now()
	edge(20000000)
	steps := uint64(20000000 / time.Since(start).Seconds() * 0.15)
	area(steps)
	edge(steps)
	fmt.Printf("area %d\nedge %d\n", 3*steps, steps+20000000)
	os.Exit(7)
}
