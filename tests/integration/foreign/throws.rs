// SPDX-License-Identifier: MIT
// Panics that are caught, through traced frames with destructors: foreign_exceptions.sh.
use std::hint::black_box;
use std::io::BufRead;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

struct Cleanup<'a>(&'a std::cell::Cell<i64>);
impl Drop for Cleanup<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[inline(never)]
#[no_mangle]
fn traced_inner(x: i64) -> i64 {
    if x % 2 != 0 {
        std::panic::panic_any(x);
    }
    black_box(x)
}
#[inline(never)]
#[no_mangle]
fn traced_middle(x: i64, cleaned: &std::cell::Cell<i64>) -> i64 {
    let _cleanup = Cleanup(cleaned);
    black_box(traced_inner(x)) + 1
}
#[inline(never)]
#[no_mangle]
fn traced_outer(x: i64) -> i64 {
    let cleaned = std::cell::Cell::new(0);
    let caught = catch_unwind(AssertUnwindSafe(|| traced_middle(x, &cleaned)));
    assert_eq!(cleaned.get(), 1);
    match caught {
        Ok(y) => y,
        Err(e) if x % 3 == 0 => match catch_unwind(AssertUnwindSafe(|| resume_unwind(e))) {
            Ok(()) => 0,
            Err(e) => -*e.downcast::<i64>().unwrap(),
        },
        Err(e) => -*e.downcast::<i64>().unwrap(),
    }
}

fn round() -> i64 {
    let worker = std::thread::spawn(|| (0..100).map(traced_outer).sum::<i64>());
    let own: i64 = (0..100).map(traced_outer).sum();
    own * 1000 + worker.join().unwrap()
}

fn main() {
    let looping = std::env::args().nth(2).as_deref() == Some("loop");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    std::panic::set_hook(Box::new(|_| {}));
    println!("ready");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let (sum, mut rounds) = (round(), 1);
    if looping {
        let stop = stop.clone();
        std::thread::spawn(move || {
            std::io::stdin().lock().read_line(&mut String::new()).unwrap();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
    while if looping { !stop.load(std::sync::atomic::Ordering::Relaxed) } else { rounds < 20 } {
        assert_eq!(round(), sum);
        rounds += 1;
    }
    println!("sum {}\ntally {} {} {}", sum, rounds * 600, rounds * 400, rounds * 200);
}
