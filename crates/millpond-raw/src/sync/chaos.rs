//! Chaos: seeded random yields at labelled points.
//!
//! A [`point`] stands between the steps of a protocol, and before every atomic operation. Built with `--cfg
//! millpond_chaos` it yields, spins or sleeps for a moment, or mostly does nothing, by a random generator per
//! thread; otherwise it is no code at all. It widens the race windows that a fast machine keeps shut, and
//! unlike a model it runs the real thing: real threads, real futexes, any size.
//!
//! The seed comes from `MILLPOND_CHAOS_SEED` (a number; 1 if unset). The same seed gives each thread the same
//! stream of disturbances; what the operating system makes of it differs from run to run, so a seed narrows a
//! search and does not replay a schedule. `cargo xtask test` prints the seeds that it runs.

/// Disturbs the current thread, in chaos builds.
///
/// The label says where, in the words of the protocol: `"task.complete"`, `"lock.release"`.
#[inline(always)]
pub fn point(label: &'static str) {
    #[cfg(millpond_chaos)]
    disturb::disturb(label);
    #[cfg(not(millpond_chaos))]
    let _ = label;
}

/// The seed of this process, in chaos builds.
pub fn seed() -> Option<u64> {
    #[cfg(millpond_chaos)]
    return Some(disturb::seed());
    #[cfg(not(millpond_chaos))]
    None
}

#[cfg(millpond_chaos)]
mod disturb {
    #![allow(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "this is the seam"
    )]

    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    pub(super) fn seed() -> u64 {
        static SEED: OnceLock<u64> = OnceLock::new();
        *SEED.get_or_init(|| match std::env::var("MILLPOND_CHAOS_SEED") {
            Err(_) => 1,
            Ok(text) => text.parse().unwrap_or_else(|_| {
                panic!("MILLPOND_CHAOS_SEED is `{text}`: give it a whole number below 2^64")
            }),
        })
    }

    /// One step of splitmix64, which takes any seed, zero included.
    fn next(state: u64) -> (u64, u64) {
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (state, z ^ (z >> 31))
    }

    fn fresh_stream() -> u64 {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        next(seed() ^ THREADS.fetch_add(1, Ordering::Relaxed).rotate_left(32)).1
    }

    pub(super) fn disturb(label: &'static str) {
        thread_local! {
            static STREAM: Cell<Option<u64>> = const { Cell::new(None) };
        }
        // The label is mixed in, so that two alternating points do not share one rhythm.
        let salt = label.len() as u64;
        let _ = STREAM.try_with(|stream| {
            let (state, drawn) = next(stream.get().unwrap_or_else(fresh_stream).wrapping_add(salt));
            stream.set(Some(state));
            match drawn % 64 {
                0 => std::thread::sleep(Duration::from_micros(drawn >> 58)),
                1..=15 => std::thread::yield_now(),
                16..=23 => (0..drawn >> 54).for_each(|_| std::hint::spin_loop()),
                _ => {}
            }
        });
    }
}
