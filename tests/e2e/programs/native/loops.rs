// SPDX-License-Identifier: Apache-2.0
// Two functions that take 3 and 1 parts of the time.

// As std::hint::black_box, which the compilers of Debian 12 do not have yet.
#[inline(always)]
fn black_box(value: u64) -> u64 {
    unsafe { std::ptr::read_volatile(&value) }
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, at: *mut Timespec) -> i32;
}

// Processor time of this thread (3: CLOCK_THREAD_CPUTIME_ID), in seconds.
fn cpu_now() -> f64 {
    let mut at = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(3, &mut at) };
    at.seconds as f64 + at.nanoseconds as f64 * 1e-9
}

mod shapes {
    use super::black_box;
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

#[inline(never)]
fn steps_a_second() -> f64 {
    let start = cpu_now();
    let mut sum = 2u64;
    for i in 0..20_000_000 {
        sum = black_box(sum.wrapping_add(i));
    }
    black_box(sum);
    20_000_000.0 / (cpu_now() - start)
}

fn main() {
    let steps = (steps_a_second() * 0.15) as u64;
    let start = cpu_now();
    black_box(shapes::area(steps));
    let middle = cpu_now();
    black_box(shapes::edge(steps));
    println!("area {}", middle - start);
    println!("edge {}", cpu_now() - middle);
    std::process::exit(7);
}
