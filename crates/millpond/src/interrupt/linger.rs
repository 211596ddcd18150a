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
//!
//! # How often a spin looks
//!
//! - **Ever less**, while it waits for an element or for room: [`linger`]. Whoever comes a little later finds
//!   more of them, and takes the line from the other side less often.
//! - **All the while**, if a round trip hangs on it, as when a task is joined or a worker has nothing to do:
//!   [`linger_closely`], [`seek`]. What comes after 200 ns would be seen after 400 otherwise, and
//!   one round trip in ten took half as long again.
//!
//! # Seekers
//!
//! A worker that finds nothing looks for longer than others do ([`seek`]): a caller that waits for each
//! task before it brings the next does something in between, and to be woken takes a worker 25 µs
//! on a virtual machine, and its caller a system call. It yields all the while, so it is in nobody's
//! way, but where nobody else wants the core it burns CPU for nothing. So how long it looks is a matter
//! of what it got by that ([`Reach`]):
//!
//! - **K1** It never looks for longer than [`FARTHEST`].
//! - **K2** Whenever it has looked in vain it looks half as long the next time, but not for less than
//!   [`NEAREST`]. So a pool with a task now and then pays 12 µs of CPU for looking out, and not 50, as
//!   everybody does who yields 64 times.
//! - **K3** Who was called when it had waited for no longer than it might have looked has looked
//!   too short, and looks as far as it may the next time.

use millpond_raw::sync::{hint, local, spins, thread};
use millpond_raw::tick::{self, Tick};
use std::cell::Cell;
use std::time::Duration;

/// How many pauses a long spin has.
const LONG: u32 = 127;

/// How many a spin has while long ones are in vain.
const SHORT: u32 = 15;

/// So many pauses are between two looks of who looks all the while, about 50 ns: as long as it takes to look
/// at a line that another core writes.
const CLOSE: u32 = 2;

/// How often a waiter lets others run before it parks.
const YIELDS: u32 = 64;

/// So many long spins in a row must have been in vain before they are kept short.
const PATIENCE: u32 = 4;

/// One in so many is long even then: threads are moved to other cores.
const ANOTHER_TRY: u32 = 16;

/// How long a seeker looks out at most (K1).
const FARTHEST: Duration = Duration::from_micros(100);

/// How long a seeker looks out at least.
const NEAREST: Duration = Duration::from_nanos(12_500);

/// How often a seeker looks in a model. Loom walks through every schedule, and gets no more than one look.
const LOOKS_IN_MODELS: u32 = if cfg!(millpond_loom) { 1 } else { 3 };

/// The same of others who wait, of whom a model has more: there loom gets none.
const OTHER_LOOKS_IN_MODELS: u32 = if cfg!(millpond_loom) { 0 } else { 3 };

local! {
    static MEMORY: Cell<Memory> = Cell::new(Memory::NEW);
}

local! {
    static SOUGHT: Cell<Option<(Tick, Reach)>> = Cell::new(None);
}

/// What a thread knows of its waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    /// Long spins in vain, and short ones since then, up to a long one that was not.
    in_vain: u32,
}

impl Memory {
    const NEW: Memory = Memory { in_vain: 0 };

    /// How many pauses the next spin has.
    fn pauses(self) -> u32 {
        match self.in_vain < PATIENCE || self.in_vain % ANOTHER_TRY == 0 {
            true => LONG,
            false => SHORT,
        }
    }

    /// What it knows after a wait that was served, while it spun or later.
    fn after(self, spinning: bool) -> Memory {
        match spinning && self.pauses() == LONG {
            true => Memory::NEW,
            false => Memory {
                in_vain: self.in_vain.wrapping_add(1),
            },
        }
    }
}

/// How long a seeker looks out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach(Duration);

impl Reach {
    const NEW: Reach = Reach(FARTHEST);

    /// Whether a look that began then goes on. Not if the counter has gone back, as it may when the machine
    /// was suspended: nobody knows how long it would take to catch up.
    fn goes_on(self, start: Tick, now: Tick) -> bool {
        now >= start && Duration::from_nanos(now.nanos_since(start)) < self.0
    }

    /// K2.
    fn after_looking_in_vain(self) -> Reach {
        Reach((self.0 / 2).max(NEAREST))
    }

    /// K3.
    fn after_a_call(self, waited: Duration) -> Reach {
        match waited <= FARTHEST {
            true => Reach::NEW,
            false => self,
        }
    }
}

/// How a spin looks.
#[derive(Clone, Copy)]
enum Pace {
    Growing,
    Close,
}

/// Looks again and again, for a moment, whether it is worth trying; and tries. `None` if the moment
/// has passed.
///
/// First it spins, each time twice as long, then it yields.
pub(crate) fn linger<R>(worth: impl Fn() -> bool, attempt: impl FnMut() -> Option<R>) -> Option<R> {
    look_out(Pace::Growing, worth, attempt, |yields| yields < YIELDS)
}

/// The same, and looks all the while it spins.
pub(crate) fn linger_closely<R>(
    worth: impl Fn() -> bool,
    attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    look_out(Pace::Close, worth, attempt, |yields| yields < YIELDS)
}

/// The same, for a worker that looks for a task before it rests, and for as long as that has paid.
pub(crate) fn seek<R>(worth: impl Fn() -> bool, attempt: impl FnMut() -> Option<R>) -> Option<R> {
    if spins() == 0 {
        return look_in_model(LOOKS_IN_MODELS, worth, attempt);
    }
    let start = tick::now();
    let before = SOUGHT.with(Cell::get);
    let reach = before.map_or(Reach::NEW, |(_, reach)| reach);
    let got = look_out(Pace::Close, worth, attempt, |_| {
        reach.goes_on(start, tick::now())
    });
    let after = match got {
        Some(_) => reach,
        None => reach.after_looking_in_vain(),
    };
    SOUGHT.with(|own| own.set(Some((start, after))));
    got
}

/// The present thread has sought in vain, has parked, and was called.
pub(crate) fn called_after_seeking() {
    let sought = SOUGHT.with(Cell::get);
    let known = sought.map(|(start, reach)| (start, reach.after_a_call(since(start))));
    SOUGHT.with(|own| own.set(known));
}

fn since(start: Tick) -> Duration {
    Duration::from_nanos(tick::now().nanos_since(start))
}

/// Models look a few times, and let others run in between: they shall see what becomes of one that finds something
/// while it looks out, and of what comes meanwhile. How long a wait is tells nothing there, so nobody learns from it.
fn look_in_model<R>(
    looks: u32,
    worth: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    (0..looks).find_map(|look| {
        if look > 0 {
            thread::yield_now();
        }
        if worth() { attempt() } else { None }
    })
}

/// Looks until it has got something, or is told not to go on after so many yields.
fn look_out<R>(
    pace: Pace,
    worth: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
    goes_on: impl Fn(u32) -> bool,
) -> Option<R> {
    if spins() == 0 {
        return look_in_model(OTHER_LOOKS_IN_MODELS, worth, attempt);
    }
    let memory = MEMORY.with(Cell::get);
    let mut look = |spinning: bool| {
        let got = if worth() { attempt() } else { None };
        if got.is_some() {
            MEMORY.with(|own| own.set(memory.after(spinning)));
        }
        got
    };
    let mut spun = 0;
    while spun < memory.pauses() {
        // One more than there have been is twice as many as the last time.
        let pauses = match pace {
            Pace::Growing => spun + 1,
            Pace::Close => CLOSE,
        };
        (0..pauses).for_each(|_| hint::spin_loop());
        if let Some(got) = look(true) {
            return Some(got);
        }
        spun += pauses;
    }
    let mut yields = 0;
    while goes_on(yields) {
        thread::yield_now();
        if let Some(got) = look(false) {
            return Some(got);
        }
        yields += 1;
    }
    // Nobody came, on whatever core: that says nothing about spinning.
    None
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Looks of a long spin and of a short one, at the pace of who lingers.
    const LONG_LOOKS: u32 = 7;
    const SHORT_LOOKS: u32 = 4;

    /// Lingers, and is served after so many looks. Returns how many looks there were.
    fn linger_for(looks: u32) -> u32 {
        looks_until(looks, Pace::Growing)
    }

    fn looks_until(looks: u32, pace: Pace) -> u32 {
        let seen = Cell::new(0);
        let worth = || {
            seen.set(seen.get() + 1);
            seen.get() > looks
        };
        let _ = match pace {
            Pace::Growing => linger(worth, || Some(())),
            Pace::Close => linger_closely(worth, || Some(())),
        };
        seen.get()
    }

    /// The number of looks that a wait of this thread spins for now.
    fn spun_looks() -> u32 {
        match MEMORY.get().pauses() {
            LONG => LONG_LOOKS,
            _ => SHORT_LOOKS,
        }
    }

    #[test]
    fn a_count_of_spins_in_vain_that_wraps_around_costs_a_few_long_spins() {
        let mut memory = Memory {
            in_vain: u32::MAX - 1,
        };
        let pauses: Vec<u32> = (0..20)
            .map(|_| {
                memory = memory.after(false);
                memory.pauses()
            })
            .collect();
        let long = pauses.iter().filter(|pauses| **pauses == LONG).count();
        assert_eq!(long, PATIENCE as usize + 1, "{pauses:?}");
    }

    #[test]
    fn a_thread_whose_spins_are_served_goes_on_spinning_long() {
        MEMORY.set(Memory::NEW);
        for _ in 0..100 {
            assert_eq!(linger_for(LONG_LOOKS - 1), LONG_LOOKS);
            assert_eq!(spun_looks(), LONG_LOOKS);
        }
    }

    #[test]
    fn a_thread_whose_spins_are_in_vain_keeps_them_short_but_tries_again() {
        MEMORY.set(Memory::NEW);
        let long: Vec<u32> = (0..3 * ANOTHER_TRY)
            .filter(|_| {
                let long = spun_looks() == LONG_LOOKS;
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
        assert_eq!(spun_looks(), SHORT_LOOKS);
        linger_for(0);
        assert_eq!(
            spun_looks(),
            LONG_LOOKS,
            "a short one that pays is no proof"
        );
        assert_eq!(MEMORY.get().in_vain, ANOTHER_TRY);
        linger_for(0);
        assert_eq!(MEMORY.get(), Memory::NEW);
    }

    #[test]
    fn a_moment_in_which_nobody_comes_ends_and_teaches_nothing() {
        MEMORY.set(Memory::NEW);
        assert_eq!(linger_for(u32::MAX), LONG_LOOKS + YIELDS);
        assert_eq!(MEMORY.get(), Memory::NEW);
    }

    #[test]
    fn who_looks_closely_spins_as_long_and_looks_more_often() {
        MEMORY.set(Memory::NEW);
        let looks = LONG.div_ceil(CLOSE);
        assert_eq!(looks_until(u32::MAX, Pace::Close), looks + YIELDS);
        for _ in 0..PATIENCE {
            assert_eq!(looks_until(looks, Pace::Close), looks + 1);
        }
        let looks = SHORT.div_ceil(CLOSE);
        assert_eq!(looks_until(u32::MAX, Pace::Close), looks + YIELDS);
    }

    #[test]
    fn an_attempt_that_fails_is_followed_by_others() {
        MEMORY.set(Memory::NEW);
        let mut attempts = 0;
        let got = linger(
            || true,
            || {
                attempts += 1;
                (attempts == LONG_LOOKS + 2).then_some("late")
            },
        );
        assert_eq!(got, Some("late"));
        assert_eq!(MEMORY.get().in_vain, 1, "the yields served it");
    }

    /// How far the next look of this thread reaches.
    fn reach() -> Duration {
        SOUGHT.get().map_or(FARTHEST, |(_, reach)| reach.0)
    }

    fn seek_in_vain() {
        let start = tick::now();
        assert_eq!(seek(|| false, || Some(())), None);
        assert!(since(start) >= NEAREST);
    }

    #[test]
    fn a_seeker_that_finds_nothing_looks_less_far_each_time_but_never_not_at_all() {
        SOUGHT.set(None);
        let mut reaches = Vec::new();
        for _ in 0..5 {
            reaches.push(reach().as_nanos());
            seek_in_vain();
        }
        assert_eq!(reaches, [100_000, 50_000, 25_000, 12_500, 12_500]);
    }

    #[test]
    fn a_seeker_that_finds_something_goes_on_as_it_did() {
        SOUGHT.set(None);
        seek_in_vain();
        let before = reach();
        assert_eq!(seek(|| true, || Some(7)), Some(7));
        assert_eq!(reach(), before);
    }

    #[test]
    fn who_is_called_soon_after_it_has_looked_in_vain_looks_as_far_as_it_may() {
        let near = Reach(NEAREST);
        assert_eq!(near.after_a_call(FARTHEST), Reach::NEW);
        let later = FARTHEST + Duration::from_nanos(1);
        assert_eq!(near.after_a_call(later), near);
        let long_ago = Tick::from_count(0);
        SOUGHT.set(Some((long_ago, near)));
        called_after_seeking();
        assert_eq!(reach(), NEAREST, "it had waited for longer");
        SOUGHT.set(Some((tick::now(), near)));
        called_after_seeking();
        // Unless this thread was away for as long as that just now.
        let waited = SOUGHT.get().map(|(start, _)| since(start)).unwrap();
        assert!(reach() == FARTHEST || waited > FARTHEST);
    }

    #[test]
    fn a_look_out_ends_if_the_counter_goes_back() {
        let start = Tick::from_count(1 << 50);
        let later = |ticks: u64| Tick::from_count(start.count() + ticks);
        assert!(Reach::NEW.goes_on(start, start));
        assert!(!Reach::NEW.goes_on(start, later(tick::ticks(2 * FARTHEST))));
        assert!(!Reach::NEW.goes_on(start, Tick::from_count(7)));
    }

    #[test]
    fn who_never_sought_learns_nothing_from_a_call() {
        SOUGHT.set(None);
        called_after_seeking();
        assert_eq!(SOUGHT.get(), None);
    }
}
