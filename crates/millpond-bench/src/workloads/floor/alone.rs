//! Operations of one thread by itself: each is repeated, and no other thread takes part.

use super::{Outcome, Stopwatch};
use crate::harness::Absent;
use millpond::thread::{ThreadFactory, Threads};
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::timestamp;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

/// Times `round`, which is short.
fn short(watch: &mut dyn Stopwatch, mut round: impl FnMut()) -> Outcome {
    // The loop is in here and not in the stopwatch, so that a round costs no call.
    watch.short(&mut |rounds| {
        for _ in 0..rounds {
            round();
        }
    });
    Ok(())
}

/// Adds to a number that is on this CPU.
pub fn atomic_add(watch: &mut dyn Stopwatch) -> Outcome {
    let counter = CachePadded::new(AtomicU64::new(0));
    short(watch, || {
        black_box(&counter).fetch_add(1, Ordering::Relaxed);
    })
}

/// Replaces a number that is what it was taken for.
pub fn compare_and_swap(watch: &mut dyn Stopwatch) -> Outcome {
    let word = CachePadded::new(AtomicU64::new(0));
    let mut seen = 0;
    short(watch, || {
        let swapped =
            black_box(&word).compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed);
        seen = swapped.map_or_else(|seen| seen, |seen| seen + 1);
    })
}

/// Lets no later load pass an earlier store.
pub fn full_fence(watch: &mut dyn Stopwatch) -> Outcome {
    let word = CachePadded::new(AtomicU64::new(0));
    short(watch, || {
        // With a store before it, because that is what it waits for.
        black_box(&word).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    })
}

/// Our lock, uncontended.
pub fn own_lock(watch: &mut dyn Stopwatch) -> Outcome {
    let lock = CachePadded::new(millpond_raw::sync::Mutex::new(0_u64));
    short(watch, || *black_box(&lock).lock() += 1)
}

/// std's lock, uncontended.
pub fn std_lock(watch: &mut dyn Stopwatch) -> Outcome {
    let lock = CachePadded::new(std::sync::Mutex::new(0_u64));
    short(watch, || {
        // No thread panics while holding it, so it is never poisoned.
        *black_box(&lock).lock().unwrap() += 1;
    })
}

/// Asks what time it is.
pub fn clock(watch: &mut dyn Stopwatch) -> Outcome {
    short(watch, || {
        black_box(Instant::now());
    })
}

/// Reads the processor's counter, or what stands in for it.
pub fn counter(watch: &mut dyn Stopwatch) -> Outcome {
    short(watch, || {
        black_box(timestamp::now());
    })
}

/// Asks the kernel something that it knows at once.
pub fn system_call(watch: &mut dyn Stopwatch) -> Outcome {
    short(watch, || {
        black_box(std::process::id());
    })
}

/// Lets another thread have this CPU; none wants it.
pub fn yield_now(watch: &mut dyn Stopwatch) -> Outcome {
    short(watch, std::thread::yield_now)
}

/// Asks for 64 bytes and gives them back.
pub fn allocation(watch: &mut dyn Stopwatch) -> Outcome {
    short(watch, || {
        black_box(Box::new(black_box([0_u8; 64])));
    })
}

/// Wakes the waiters of a word that has none.
pub fn wake_nobody(watch: &mut dyn Stopwatch) -> Outcome {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::futex::{Flags, wake};
        let word = std::sync::atomic::AtomicU32::new(0);
        short(watch, || {
            let _ = black_box(wake(black_box(&word), Flags::PRIVATE, 1));
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = watch;
        Err(Absent("only Linux has futexes".into()))
    }
}

/// Makes a task of ours, runs it and takes its outcome, all on this thread.
pub fn task(watch: &mut dyn Stopwatch) -> Outcome {
    short(watch, || {
        let (task, handle) = millpond::task::new(|| black_box(42_u64));
        let _ = task.run();
        black_box(handle.join().ok());
    })
}

/// Starts a thread, and waits for its end.
pub fn thread_start(watch: &mut dyn Stopwatch) -> Outcome {
    let threads = Threads::named("floor");
    let mut refused = None;
    watch.long(&mut || {
        let start = Instant::now();
        match threads.start(Box::new(|| ())) {
            Ok(thread) => thread.join().ok().map(|()| start.elapsed()),
            Err(error) => {
                refused = Some(error.to_string());
                None
            }
        }
    });
    match refused {
        None => Ok(()),
        Some(error) => Err(Absent(format!("a thread could not be started: {error}"))),
    }
}
