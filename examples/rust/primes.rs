// SPDX-License-Identifier: Apache-2.0
//
// Marks from Rust: the functions of libsonde_record, declared here as they are in sonde/record.h.
//
//     sonde run -o primes.sonde -- ./primes-rust && sonde report primes.sonde
use std::ffi::CStr;
use std::os::raw::c_char;

#[link(name = "sonde_record")]
extern "C" {
    fn sonde_begin(name: *const c_char);
    fn sonde_end();
    fn sonde_step();
    fn sonde_mark(name: *const c_char);
    fn sonde_counter(name: *const c_char, value: f64);
    fn sonde_flops(count: f64);
}

/// A range that ends with its scope, also when that is left by `?` or a panic.
struct Range;

impl Range {
    fn new(name: &CStr) -> Range {
        unsafe { sonde_begin(name.as_ptr()) };
        Range
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        unsafe { sonde_end() };
    }
}

/// A literal as C has it, with a NUL at its end.
macro_rules! name {
    ($text:literal) => {
        CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()).unwrap()
    };
}

fn sieve(limit: usize) -> Vec<bool> {
    let _range = Range::new(name!("sieve"));
    let mut is_prime = vec![true; limit];
    let mut crossed = 0u64;
    for i in 2..limit {
        if is_prime[i] {
            for multiple in (i * i..limit).step_by(i) {
                is_prime[multiple] = false;
                crossed += 1;
            }
        }
    }
    unsafe { sonde_flops(crossed as f64) };
    is_prime
}

fn count(limit: usize) -> usize {
    let _range = Range::new(name!("count"));
    sieve(limit).iter().skip(2).filter(|&&prime| prime).count()
}

fn main() {
    for step in 1..=3 {
        unsafe { sonde_step() };
        let primes = count(step * 10_000);
        unsafe { sonde_counter(name!("primes").as_ptr(), primes as f64) };
        println!("{} primes below {}", primes, step * 10_000);
    }
    unsafe { sonde_mark(name!("done").as_ptr()) };
}
