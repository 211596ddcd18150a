//! Looking again for a moment, before a wait parks.
//!
//! Whoever finds a queue empty or full, or a task unfinished, may be a moment early: falling asleep and being woken costs 5
//! to 50 µs, and most elements are not that late. There are two ways to pass the moment, and each is
//! right where the other is wrong.
//!
//! - **Spin**, if the other side runs on another core. It needs a few hundred nanoseconds for its
//!   step; a yield that lets a third thread run takes ten times as long, and tears two apart that
//!   serve each other. A short spin, of 15 pauses, is over too soon now and then, and that is enough:
//!   with two threads on each side of a queue of one there were 1.1 switches of threads for each
//!   message, and 0.1 after 127 pauses.
//! - **Yield**, if the other side waits for the core that we spin on. There a spin is in vain, and the
//!   longer the worse: two threads that share one core took 5 to 7 µs for a message with 15 pauses, and
//!   10 to 14 with 127.
//!
//! Nobody can tell beforehand which it is, so a thread remembers how its last waits ended
//! ([`Memory`]): after a few long spins in vain it keeps them short, and tries a long one again now
//! and then. It is the thread's memory and not the queue's, because it is about the core that the
//! thread is on.

use millpond_raw::sync::{hint, local, spins, thread};
use std::cell::Cell;

/// How long the longest spin between two looks is, as a power of two.
const LONG: u32 = 6;

/// The same, while long spins are in vain.
const SHORT: u32 = 3;

/// How often a waiter lets others run before it parks.
const YIELDS: u32 = 64;

/// So many long spins in a row must have been in vain before they are kept short.
const PATIENCE: u32 = 4;

/// One in so many is long even then: threads are moved to other cores.
const ANOTHER_TRY: u32 = 16;

local! {
    static MEMORY: Cell<Memory> = Cell::new(Memory::NEW);
}

/// What a thread knows of its waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    /// Long spins in vain, and short ones since then, up to a long one that was not.
    in_vain: u32,
}

impl Memory {
    const NEW: Memory = Memory { in_vain: 0 };

    fn longest_spin(self) -> u32 {
        match self.in_vain < PATIENCE || self.in_vain % ANOTHER_TRY == 0 {
            true => LONG,
            false => SHORT,
        }
    }

    /// What it knows after a wait that was served, while it spun or later.
    fn after(self, spinning: bool) -> Memory {
        match spinning && self.longest_spin() == LONG {
            true => Memory::NEW,
            false => Memory {
                in_vain: self.in_vain.wrapping_add(1),
            },
        }
    }
}

/// Looks again and again, for a moment, whether it is worth trying; and tries. `None` if the moment
/// has passed.
///
/// First it spins, each time twice as long, then it yields.
pub(crate) fn linger<R>(
    worth: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    // Models do not, see `spins`.
    if spins() == 0 {
        return None;
    }
    let memory = MEMORY.with(Cell::get);
    let longest = memory.longest_spin();
    for round in 0..=longest + YIELDS {
        let spinning = round <= longest;
        match spinning {
            true => (0..1_u32 << round).for_each(|_| hint::spin_loop()),
            false => thread::yield_now(),
        }
        if worth() {
            if let Some(got) = attempt() {
                MEMORY.with(|own| own.set(memory.after(spinning)));
                return Some(got);
            }
        }
    }
    // Nobody came, on whatever core: that says nothing about spinning.
    None
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Lingers, and is served after so many looks. Returns how many looks there were.
    fn linger_for(looks: u32) -> u32 {
        let seen = Cell::new(0);
        let worth = || {
            seen.set(seen.get() + 1);
            seen.get() > looks
        };
        let _ = linger(worth, || Some(()));
        seen.get()
    }

    /// The number of looks that a wait of this thread spins for now.
    fn spun_looks() -> u32 {
        MEMORY.get().longest_spin() + 1
    }

    #[test]
    fn a_thread_whose_spins_are_served_goes_on_spinning_long() {
        MEMORY.set(Memory::NEW);
        for _ in 0..100 {
            assert_eq!(linger_for(LONG), LONG + 1);
            assert_eq!(spun_looks(), LONG + 1);
        }
    }

    #[test]
    fn a_thread_whose_spins_are_in_vain_keeps_them_short_but_tries_again() {
        MEMORY.set(Memory::NEW);
        let long: Vec<u32> = (0..3 * ANOTHER_TRY)
            .filter(|_| {
                let long = spun_looks() == LONG + 1;
                linger_for(spun_looks());
                long
            })
            .collect();
        assert_eq!(long, [0, 1, 2, 3, ANOTHER_TRY, 2 * ANOTHER_TRY]);
    }

    #[test]
    fn one_long_spin_that_pays_makes_up_for_all_that_did_not() {
        MEMORY.set(Memory::NEW);
        while MEMORY.get().in_vain < ANOTHER_TRY - 1 {
            linger_for(spun_looks());
        }
        assert_eq!(spun_looks(), SHORT + 1);
        linger_for(0);
        assert_eq!(spun_looks(), LONG + 1, "a short one that pays is no proof");
        assert_eq!(MEMORY.get().in_vain, ANOTHER_TRY);
        linger_for(0);
        assert_eq!(MEMORY.get(), Memory::NEW);
    }

    #[test]
    fn a_moment_in_which_nobody_comes_ends_and_teaches_nothing() {
        MEMORY.set(Memory::NEW);
        assert_eq!(linger_for(u32::MAX), LONG + 1 + YIELDS);
        assert_eq!(MEMORY.get(), Memory::NEW);
    }

    #[test]
    fn an_attempt_that_fails_is_followed_by_others() {
        MEMORY.set(Memory::NEW);
        let mut attempts = 0;
        let got = linger(
            || true,
            || {
                attempts += 1;
                (attempts == LONG + 3).then_some("late")
            },
        );
        assert_eq!(got, Some("late"));
        assert_eq!(MEMORY.get().in_vain, 1, "the yields served it");
    }
}
