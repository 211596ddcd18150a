//! Backoff: spinning and yielding for a moment before a wait parks.
//!
//! A thread that finds a queue empty or full, or a task unfinished, may be a moment early. Parking and waking
//! up costs 5 to 50 µs, and most elements come sooner. There are two ways to pass the moment, and each is
//! right where the other is wrong.
//!
//! - **Spin**, if the other side runs on another core. It needs a few hundred nanoseconds for its
//!   step; a yield that lets a third thread run takes ten times as long, and separates two threads that
//!   serve each other. A short spin, of 15 pauses, sometimes ends too soon, and that is enough: with two
//!   threads on each side of a queue of one element there were 1.1 context switches per message, and 0.1 with
//!   127 pauses.
//! - **Yield**, if the other side waits for the core that we spin on. Spinning is useless there, and the
//!   longer the worse: two threads that share a core took 5 to 7 µs per message with 15 pauses, and
//!   10 to 14 with 127.
//!
//! It is not known beforehand which is the case, so a thread remembers how its last waits ended
//! ([`SpinHistory`]): after a few failed long spins it spins briefly, and tries a long spin again now and
//! then. The history belongs to the thread and not to the queue, because it depends on the core that the
//! thread runs on.
//!
//! # How often a spin checks
//!
//! - **At doubling intervals** while it waits for an element or for room: [`backoff`]. A later check
//!   finds more elements, and takes the cache line from the other side less often.
//! - **All the time** where a round trip depends on it, as when a task is joined or a worker searches for a
//!   task: [`poll_tight`], [`search`]. Otherwise an element that comes after 200 ns would be found after 400,
//!   and one round trip in ten took half as long again.
//!
//! # Searching workers
//!
//! An idle worker searches for longer than other waits spin ([`search`]): a caller that waits for each
//! task before it submits the next one does something in between, and waking a worker takes 25 µs on a
//! virtual machine and costs the caller a system call. The worker yields all the time, so it does not delay
//! other threads, but where no other thread wants the core it burns CPU for nothing. So its spin budget
//! depends on how its last searches ended ([`SpinBudget`]):
//!
//! - **BACKOFF-1** A worker never searches for longer than [`MAX_BUDGET`].
//! - **BACKOFF-2** A search that finds nothing halves the budget, down to [`MIN_BUDGET`]. So a pool with a task
//!   now and then spends 12 µs of CPU on a search, and not 50, the price of 64 yields.
//! - **BACKOFF-3** A worker that is woken within [`MAX_BUDGET`] of the start of its search has searched too
//!   briefly, and gets the full budget the next time.
//!
//! # In models
//!
//! Shuttle checks three times, loom once; for joins, of which there are too many to explore, loom does not check.
//! Nothing is lost by that. The check of a join is one acquiring read of the task's state (`[T-out]` of
//! `millpond_raw::task`), which loom covers in its models of the task cell; if it sees the end the join returns as
//! a late one does, and otherwise it goes on as if it had not checked. No other thread knows of the check. The same
//! holds for [`backoff`]: `is_ready` is a hint without consequences, and `attempt` is the very step that was tried
//! before, complete in itself. Only searching workers are known to others: a push wakes nobody while one searches.

use millpond_raw::sync::{hint, local, spins, thread};
use millpond_raw::timestamp::{self, Timestamp};
use std::cell::Cell;
use std::time::Duration;

/// The pauses of a long spin.
const LONG_SPIN: u32 = 127;

/// The pauses of a spin after long ones have failed.
const SHORT_SPIN: u32 = 15;

/// The pauses between two checks of a tight poll, about 50 ns: as long as it takes to read a cache line that
/// another core writes.
const TIGHT_PAUSES: u32 = 2;

/// How often a wait yields before it parks.
const MAX_YIELDS: u32 = 64;

/// After so many failed long spins in a row, spins are short.
const MAX_FAILED_SPINS: u32 = 4;

/// One in so many is long even then, because threads migrate to other cores.
const RETRY_EVERY: u32 = 16;

/// The largest spin budget of a searching worker (BACKOFF-1).
const MAX_BUDGET: Duration = Duration::from_micros(100);

/// The smallest spin budget of a searching worker.
const MIN_BUDGET: Duration = Duration::from_nanos(12_500);

/// How often a searching worker, or a wait for an element or for room, checks in a model. Loom explores every
/// schedule, and gets one check only.
const CHECKS_IN_MODELS: u32 = if cfg!(millpond_loom) { 1 } else { 3 };

/// The same for joins, of which a model has more: loom gets none, see the header.
const JOIN_CHECKS_IN_MODELS: u32 = if cfg!(millpond_loom) { 0 } else { 3 };

local! {
    static HISTORY: Cell<SpinHistory> = Cell::new(SpinHistory::NEW);
}

local! {
    /// The start of the last search of this thread, and the budget of the next one.
    static LAST_SEARCH: Cell<Option<(Timestamp, SpinBudget)>> = Cell::new(None);
}

/// How the last waits of a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpinHistory {
    /// Failed long spins, and short ones since then; 0 after a long spin that succeeded.
    failed: u32,
}

impl SpinHistory {
    const NEW: SpinHistory = SpinHistory { failed: 0 };

    /// How many pauses the next spin has.
    fn pauses(self) -> u32 {
        if self.failed < MAX_FAILED_SPINS || self.failed % RETRY_EVERY == 0 {
            LONG_SPIN
        } else {
            SHORT_SPIN
        }
    }

    /// The history after a wait that succeeded, while it spun or later.
    fn after(self, spinning: bool) -> SpinHistory {
        if spinning && self.pauses() == LONG_SPIN {
            SpinHistory::NEW
        } else {
            SpinHistory {
                failed: self.failed.wrapping_add(1),
            }
        }
    }
}

/// How long a worker searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpinBudget(Duration);

impl SpinBudget {
    const NEW: SpinBudget = SpinBudget(MAX_BUDGET);

    /// Whether a search since `start` is within the budget. It is not if the counter has gone back, as after
    /// a suspend of the machine: it might take any time to catch up.
    fn allows(self, start: Timestamp, now: Timestamp) -> bool {
        now >= start && Duration::from_nanos(now.nanos_since(start)) < self.0
    }

    /// BACKOFF-2.
    fn after_failed_search(self) -> SpinBudget {
        SpinBudget((self.0 / 2).max(MIN_BUDGET))
    }

    /// BACKOFF-3.
    fn after_wakeup(self, waited: Duration) -> SpinBudget {
        if waited <= MAX_BUDGET {
            SpinBudget::NEW
        } else {
            self
        }
    }
}

/// How often a spin checks.
#[derive(Clone, Copy)]
enum SpinPace {
    Doubling,
    Tight,
}

/// Spins at doubling intervals, then yields; calls `attempt` whenever `is_ready`. `None` if the moment has
/// passed without success.
pub(crate) fn backoff<R>(
    is_ready: impl Fn() -> bool,
    attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    spin_then_yield(SpinPace::Doubling, is_ready, attempt, |yields| {
        yields < MAX_YIELDS
    })
}

/// The same, but checks all the time while it spins.
pub(crate) fn poll_tight<R>(
    is_ready: impl Fn() -> bool,
    attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    spin_then_yield(SpinPace::Tight, is_ready, attempt, |yields| {
        yields < MAX_YIELDS
    })
}

/// The same for an idle worker that searches for a task, within the spin budget of its thread.
pub(crate) fn search<R>(
    is_ready: impl Fn() -> bool,
    attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    if spins() == 0 {
        return check_in_model(CHECKS_IN_MODELS, is_ready, attempt);
    }
    let start = timestamp::now();
    let last = LAST_SEARCH.with(Cell::get);
    let budget = last.map_or(SpinBudget::NEW, |(_, budget)| budget);
    let got = spin_then_yield(SpinPace::Tight, is_ready, attempt, |_| {
        budget.allows(start, timestamp::now())
    });
    let next = if got.is_some() {
        budget
    } else {
        budget.after_failed_search()
    };
    LAST_SEARCH.with(|own| own.set(Some((start, next))));
    got
}

/// Records that the calling worker was woken after a search that failed.
pub(crate) fn woken_after_search() {
    let last = LAST_SEARCH.with(Cell::get);
    let next = last.map(|(start, budget)| (start, budget.after_wakeup(since(start))));
    LAST_SEARCH.with(|own| own.set(next));
}

fn since(start: Timestamp) -> Duration {
    Duration::from_nanos(timestamp::now().nanos_since(start))
}

/// Models check a few times, and yield in between, so that they cover a wait that succeeds before it parks, and
/// elements that come meanwhile. The length of a wait has no meaning there, so nothing is recorded.
fn check_in_model<R>(
    checks: u32,
    is_ready: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    (0..checks).find_map(|check| {
        if check > 0 {
            thread::yield_now();
        }
        if is_ready() { attempt() } else { None }
    })
}

/// Spins, then yields while `continues` says so, given the number of yields.
fn spin_then_yield<R>(
    pace: SpinPace,
    is_ready: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
    continues: impl Fn(u32) -> bool,
) -> Option<R> {
    if spins() == 0 {
        let checks = match pace {
            SpinPace::Doubling => CHECKS_IN_MODELS,
            SpinPace::Tight => JOIN_CHECKS_IN_MODELS,
        };
        return check_in_model(checks, is_ready, attempt);
    }
    let history = HISTORY.with(Cell::get);
    let mut check = |spinning: bool| {
        let got = if is_ready() { attempt() } else { None };
        if got.is_some() {
            HISTORY.with(|own| own.set(history.after(spinning)));
        }
        got
    };
    let mut spun = 0;
    while spun < history.pauses() {
        let pauses = match pace {
            // One more than all before: twice as many as the last time.
            SpinPace::Doubling => spun + 1,
            SpinPace::Tight => TIGHT_PAUSES,
        };
        (0..pauses).for_each(|_| hint::spin_loop());
        if let Some(got) = check(true) {
            return Some(got);
        }
        spun += pauses;
    }
    let mut yields = 0;
    while continues(yields) {
        thread::yield_now();
        if let Some(got) = check(false) {
            return Some(got);
        }
        yields += 1;
    }
    // Nothing came, on whatever core: that says nothing about spinning.
    None
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Checks of a long spin and of a short one, at doubling intervals.
    const LONG_CHECKS: u32 = 7;
    const SHORT_CHECKS: u32 = 4;

    /// Backs off, and succeeds after so many checks. Returns how many checks there were.
    fn backoff_for(checks: u32) -> u32 {
        checks_until(checks, SpinPace::Doubling)
    }

    fn checks_until(checks: u32, pace: SpinPace) -> u32 {
        let seen = Cell::new(0);
        let is_ready = || {
            seen.set(seen.get() + 1);
            seen.get() > checks
        };
        let _ = match pace {
            SpinPace::Doubling => backoff(is_ready, || Some(())),
            SpinPace::Tight => poll_tight(is_ready, || Some(())),
        };
        seen.get()
    }

    /// The number of checks of the next spin of this thread.
    fn next_checks() -> u32 {
        match HISTORY.get().pauses() {
            LONG_SPIN => LONG_CHECKS,
            _ => SHORT_CHECKS,
        }
    }

    #[test]
    fn a_count_of_failed_spins_that_wraps_around_costs_a_few_long_spins() {
        let mut history = SpinHistory {
            failed: u32::MAX - 1,
        };
        let pauses: Vec<u32> = (0..20)
            .map(|_| {
                history = history.after(false);
                history.pauses()
            })
            .collect();
        let long = pauses.iter().filter(|pauses| **pauses == LONG_SPIN).count();
        assert_eq!(long, MAX_FAILED_SPINS as usize + 1, "{pauses:?}");
    }

    #[test]
    fn a_thread_whose_spins_succeed_keeps_spinning_long() {
        HISTORY.set(SpinHistory::NEW);
        for _ in 0..100 {
            assert_eq!(backoff_for(LONG_CHECKS - 1), LONG_CHECKS);
            assert_eq!(next_checks(), LONG_CHECKS);
        }
    }

    #[test]
    fn a_thread_whose_spins_fail_keeps_them_short_but_tries_again() {
        HISTORY.set(SpinHistory::NEW);
        let long: Vec<u32> = (0..3 * RETRY_EVERY)
            .filter(|_| {
                let long = next_checks() == LONG_CHECKS;
                backoff_for(next_checks());
                long
            })
            .collect();
        assert_eq!(long, [0, 1, 2, 3, RETRY_EVERY, 2 * RETRY_EVERY]);
    }

    #[test]
    fn one_long_spin_that_succeeds_resets_the_history() {
        HISTORY.set(SpinHistory::NEW);
        while HISTORY.get().failed < RETRY_EVERY - 1 {
            backoff_for(next_checks());
        }
        assert_eq!(next_checks(), SHORT_CHECKS);
        backoff_for(0);
        assert_eq!(
            next_checks(),
            LONG_CHECKS,
            "a short one that succeeds is no proof"
        );
        assert_eq!(HISTORY.get().failed, RETRY_EVERY);
        backoff_for(0);
        assert_eq!(HISTORY.get(), SpinHistory::NEW);
    }

    #[test]
    fn a_moment_in_which_nothing_comes_ends_and_is_not_recorded() {
        HISTORY.set(SpinHistory::NEW);
        assert_eq!(backoff_for(u32::MAX), LONG_CHECKS + MAX_YIELDS);
        assert_eq!(HISTORY.get(), SpinHistory::NEW);
    }

    #[test]
    fn a_tight_poll_spins_as_long_and_checks_more_often() {
        HISTORY.set(SpinHistory::NEW);
        let checks = LONG_SPIN.div_ceil(TIGHT_PAUSES);
        assert_eq!(checks_until(u32::MAX, SpinPace::Tight), checks + MAX_YIELDS);
        for _ in 0..MAX_FAILED_SPINS {
            assert_eq!(checks_until(checks, SpinPace::Tight), checks + 1);
        }
        let checks = SHORT_SPIN.div_ceil(TIGHT_PAUSES);
        assert_eq!(checks_until(u32::MAX, SpinPace::Tight), checks + MAX_YIELDS);
    }

    #[test]
    fn an_attempt_that_fails_is_followed_by_others() {
        HISTORY.set(SpinHistory::NEW);
        let mut attempts = 0;
        let got = backoff(
            || true,
            || {
                attempts += 1;
                (attempts == LONG_CHECKS + 2).then_some("late")
            },
        );
        assert_eq!(got, Some("late"));
        assert_eq!(HISTORY.get().failed, 1, "it succeeded while yielding");
    }

    /// The budget of the next search of this thread.
    fn next_budget() -> Duration {
        LAST_SEARCH.get().map_or(MAX_BUDGET, |(_, budget)| budget.0)
    }

    fn fail_to_find() {
        let start = timestamp::now();
        assert_eq!(search(|| false, || Some(())), None);
        assert!(since(start) >= MIN_BUDGET);
    }

    #[test]
    fn a_search_that_finds_nothing_halves_the_budget_down_to_the_minimum() {
        LAST_SEARCH.set(None);
        let mut budgets = Vec::new();
        for _ in 0..5 {
            budgets.push(next_budget().as_nanos());
            fail_to_find();
        }
        assert_eq!(budgets, [100_000, 50_000, 25_000, 12_500, 12_500]);
    }

    #[test]
    fn a_search_that_finds_something_keeps_the_budget() {
        LAST_SEARCH.set(None);
        fail_to_find();
        let before = next_budget();
        assert_eq!(search(|| true, || Some(7)), Some(7));
        assert_eq!(next_budget(), before);
    }

    #[test]
    fn a_worker_woken_soon_after_a_failed_search_gets_the_full_budget() {
        let near = SpinBudget(MIN_BUDGET);
        assert_eq!(near.after_wakeup(MAX_BUDGET), SpinBudget::NEW);
        let later = MAX_BUDGET + Duration::from_nanos(1);
        assert_eq!(near.after_wakeup(later), near);
        let long_ago = Timestamp::from_count(0);
        LAST_SEARCH.set(Some((long_ago, near)));
        woken_after_search();
        assert_eq!(next_budget(), MIN_BUDGET, "it had waited for longer");
        LAST_SEARCH.set(Some((timestamp::now(), near)));
        woken_after_search();
        // Unless this thread was preempted for that long just now.
        let waited = LAST_SEARCH.get().map(|(start, _)| since(start)).unwrap();
        assert!(next_budget() == MAX_BUDGET || waited > MAX_BUDGET);
    }

    #[test]
    fn a_search_ends_if_the_counter_goes_back() {
        let start = Timestamp::from_count(1 << 50);
        let later = |ticks: u64| Timestamp::from_count(start.count() + ticks);
        assert!(SpinBudget::NEW.allows(start, start));
        assert!(!SpinBudget::NEW.allows(start, later(timestamp::ticks(2 * MAX_BUDGET))));
        assert!(!SpinBudget::NEW.allows(start, Timestamp::from_count(7)));
    }

    #[test]
    fn a_wakeup_without_a_search_is_not_recorded() {
        LAST_SEARCH.set(None);
        woken_after_search();
        assert_eq!(LAST_SEARCH.get(), None);
    }
}
