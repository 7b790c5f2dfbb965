// SPDX-License-Identifier: Apache-2.0
// Two functions that take 3 and 1 parts of the time.
use std::hint::black_box;
use std::time::Instant;

mod shapes {
    use std::hint::black_box;
    #[inline(never)]
    pub fn area(steps: u64) -> u64 {
        let mut sum = 0u64;
        for i in 0..3 * steps {
            sum = black_box(sum.wrapping_add(i));
        }
        sum
    }
    #[inline(never)]
    pub fn edge(steps: u64) -> u64 {
        let mut sum = 1u64;
        for i in 0..steps {
            sum = black_box(sum.wrapping_add(i));
        }
        sum
    }
}

fn main() {
    let start = Instant::now();
    black_box(shapes::edge(20_000_000));
    let steps = (20_000_000.0 / start.elapsed().as_secs_f64() * 0.15) as u64;
    for _ in 0..1 {
        black_box(shapes::area(steps));
        black_box(shapes::edge(steps));
    }
    println!("area {}", steps * 3);
    println!("edge {}", steps + 20_000_000);
    std::process::exit(7);
}
