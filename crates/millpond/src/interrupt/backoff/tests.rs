//! What a thread learns from its waits, and how it waits next.

use super::*;
use std::cell::Cell;

/// Checks of a long spin and of a short one, at doubling intervals.
const LONG_CHECKS: u32 = 7;
const SHORT_CHECKS: u32 = 4;

/// Whether threads spin on this machine at all.
fn spins_here() -> bool {
    !contention::has_one_cpu()
}

/// A tight poll or a backoff that succeeds after so many checks. Returns how many checks there were.
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

fn backoff_for(checks: u32) -> u32 {
    checks_until(checks, SpinPace::Doubling)
}

/// The number of checks of the next spin of this thread.
fn next_checks() -> u32 {
    match HISTORY.get().pauses() {
        LONG_SPIN => LONG_CHECKS,
        _ => SHORT_CHECKS,
    }
}

fn history_after(ends: impl IntoIterator<Item = WaitEnd>) -> SpinHistory {
    ends.into_iter().fold(SpinHistory::NEW, after)
}

/// The history after a wait; one that parks does so at the start of time, and its end is not known.
fn after(history: SpinHistory, end: WaitEnd) -> SpinHistory {
    history.begin().after(end, || at(0))
}

#[test]
fn a_count_of_failed_spins_that_wraps_around_costs_a_few_long_spins() {
    let mut history = SpinHistory {
        failed: u32::MAX - 1,
        ..SpinHistory::NEW
    };
    let pauses: Vec<u32> = (0..20)
        .map(|_| {
            history = after(history, WaitEnd::WhileYielding);
            history.pauses()
        })
        .collect();
    let long = pauses.iter().filter(|pauses| **pauses == LONG_SPIN).count();
    assert_eq!(long, MAX_FAILED_SPINS as usize + 1, "{pauses:?}");
}

#[test]
fn a_thread_whose_spins_succeed_keeps_spinning_long() {
    if !spins_here() {
        return;
    }
    HISTORY.set(SpinHistory::NEW);
    for _ in 0..100 {
        assert_eq!(backoff_for(LONG_CHECKS - 1), LONG_CHECKS);
        assert_eq!(next_checks(), LONG_CHECKS);
    }
}

#[test]
fn a_thread_whose_spins_fail_keeps_them_short_but_tries_again() {
    let mut history = SpinHistory::NEW;
    let long: Vec<u32> = (0..3 * RETRY_EVERY)
        .filter(|_| {
            let is_long = history.pauses() == LONG_SPIN;
            history = after(history, WaitEnd::WhileYielding);
            is_long
        })
        .collect();
    assert_eq!(long, [0, 1, 2, 3, RETRY_EVERY, 2 * RETRY_EVERY]);
}

#[test]
fn one_long_spin_that_succeeds_resets_the_history_of_spins() {
    let late = || std::iter::repeat_n(WaitEnd::WhileYielding, RETRY_EVERY as usize - 1);
    let history = history_after(late());
    assert_eq!(history.pauses(), SHORT_SPIN);
    let short = after(history, WaitEnd::WhileSpinning);
    assert_eq!(short.failed, RETRY_EVERY, "a short one is no proof");
    assert_eq!(short.pauses(), LONG_SPIN);
    assert_eq!(after(short, WaitEnd::WhileSpinning).failed, 0);
}

#[test]
fn a_wait_in_which_nothing_comes_says_nothing_about_spins() {
    let history = history_after([WaitEnd::Parked; 5]);
    assert_eq!(history.failed, 0);
    assert_eq!(history.pauses(), LONG_SPIN);
}

#[test]
fn a_thread_whose_waits_are_long_stops_yielding_but_tries_again() {
    let mut history = SpinHistory::NEW;
    let yields: Vec<u32> = (0..3 * RETRY_EVERY)
        .filter(|_| {
            history = history.begin();
            let yields = history.yields();
            history = history.after(WaitEnd::Parked, || at(0));
            yields
        })
        .collect();
    assert_eq!(yields, [0, 1, 2, 3, 4, 5, RETRY_EVERY, 2 * RETRY_EVERY]);
    let mut again = 0;
    while !history.begin().yields() {
        history = after(history, WaitEnd::WhileSpinning);
        again += 1;
    }
    assert!(again <= MIN_HITS, "{again} that succeeded were enough");
}

#[test]
fn a_wait_that_parks_and_is_woken_at_once_counts_as_short() {
    let parked = history_after([WaitEnd::Parked]);
    let woken = |micros, may_yield| parked.woken(at(micros), may_yield);
    assert_eq!(woken(59, true), SpinHistory::NEW);
    assert_eq!(woken(61, true).hits, u8::MAX << 1, "it took too long");
    assert_eq!(woken(59, false).hits, u8::MAX << 1, "it could not yield");
    let late = woken(61, true);
    assert_eq!((late.parked, late.long), (None, 1));
    assert_eq!(late.woken(at(70), true), late, "it counts once");
    assert_eq!(parked.begin().hits, u8::MAX << 1, "nobody knows its end");
}

#[test]
fn waits_that_park_again_and_again_and_are_woken_at_once_go_on_yielding() {
    let mut history = SpinHistory::NEW;
    for _ in 0..100 {
        assert!(history.begin().yields());
        history = after(history, WaitEnd::Parked).woken(at(20), true);
    }
}

#[test]
fn a_wakeup_is_recorded_once_and_only_after_a_wait_that_parked() {
    HISTORY.set(SpinHistory::NEW);
    record_wakeup();
    assert_eq!(HISTORY.get(), SpinHistory::NEW);
    backoff_for(u32::MAX);
    assert!(HISTORY.get().parked.is_some());
    record_wakeup();
    assert_eq!(HISTORY.get().parked, None);
}

#[test]
fn a_wait_that_is_not_to_yield_only_spins() {
    if !spins_here() {
        return;
    }
    let long = SpinHistory {
        long: 1,
        hits: 0,
        ..SpinHistory::NEW
    };
    HISTORY.set(long);
    assert_eq!(backoff_for(u32::MAX), LONG_CHECKS);
    HISTORY.set(long);
    let checks = LONG_SPIN.div_ceil(TIGHT_PAUSES);
    assert_eq!(checks_until(u32::MAX, SpinPace::Tight), checks);
    assert_eq!(HISTORY.get().begin().long, 2);
}

#[test]
fn an_attempt_that_fails_is_followed_by_others() {
    if !spins_here() {
        return;
    }
    HISTORY.set(SpinHistory::NEW);
    let mut attempts = 0;
    let got = backoff(
        || true,
        || {
            attempts += 1;
            (attempts == LONG_CHECKS).then_some("late")
        },
    );
    assert_eq!(got, Some("late"));
    assert_eq!(HISTORY.get(), SpinHistory::NEW, "it succeeded spinning");
}

fn at(micros: u64) -> Timestamp {
    let start = 1 << 50;
    Timestamp::from_count(start + timestamp::ticks(Duration::from_micros(micros)))
}

fn pending(hits: u8) -> SearchHistory {
    SearchHistory {
        pending: Some(at(0)),
        hits,
    }
}

#[test]
fn a_worker_that_finds_tasks_soon_yields_and_one_that_never_does_parks_at_once() {
    let mut history = SearchHistory::NEW;
    let mut plans = Vec::new();
    for _ in 0..8 {
        plans.push(history.plan());
        history = history.after(false);
    }
    use SearchPlan::{Park, Spin, SpinAndYield};
    let falling = [
        SpinAndYield,
        SpinAndYield,
        SpinAndYield,
        Spin,
        Spin,
        Spin,
        Park,
        Park,
    ];
    assert_eq!(plans, falling);
}

#[test]
fn a_worker_that_parks_at_once_learns_from_wakeups_that_searching_would_pay() {
    let mut history = SearchHistory {
        hits: 0,
        ..SearchHistory::NEW
    };
    for _ in 0..MIN_HITS_TO_YIELD {
        history.pending = Some(at(0));
        history = history.woken(at(90), true);
    }
    assert_eq!(history.plan(), SearchPlan::SpinAndYield);
    history.pending = Some(at(0));
    assert_eq!(history.woken(at(110), true).hits & 1, 0, "it came too late");
    let contended = history.woken(at(50), false);
    assert_eq!(contended.hits & 1, 0, "a spin would have ended before");
}

#[test]
fn a_search_after_which_no_task_came_counts_as_failed_when_the_next_begins() {
    let history = pending(u8::MAX).begin();
    assert_eq!((history.pending, history.hits & 1), (None, 0));
    assert_eq!(SearchHistory::NEW.begin(), SearchHistory::NEW);
}

#[test]
fn a_wakeup_without_a_search_is_not_recorded() {
    assert_eq!(SearchHistory::NEW.woken(at(1), true), SearchHistory::NEW);
}

#[test]
fn a_counter_that_goes_back_ends_a_search_and_is_no_wakeup_in_time() {
    assert!(is_within(at(0), at(0), MAX_BUDGET));
    assert!(!is_within(at(0), at(200), MAX_BUDGET));
    assert!(!is_within(at(0), Timestamp::from_count(7), MAX_BUDGET));
    assert_eq!(pending(1).woken(Timestamp::from_count(7), true).hits, 2);
}

#[test]
fn a_search_that_finds_a_task_is_recorded_and_one_that_does_not_is_pending() {
    SEARCHES.set(SearchHistory {
        hits: 0b0111_1110,
        ..SearchHistory::NEW
    });
    let found = Search::begin().unwrap().run(|| true, || Some(7), || 0);
    assert_eq!(found, Some(7));
    assert_eq!(SEARCHES.get().hits, 0b1111_1101);
    assert_eq!(
        Search::begin().unwrap().run(|| false, || Some(7), || 0),
        None
    );
    assert!(SEARCHES.get().pending.is_some());
    SEARCHES.set(SearchHistory {
        hits: 0,
        ..SearchHistory::NEW
    });
    assert!(Search::begin().is_none(), "it parks at once");
    assert!(SEARCHES.get().pending.is_some());
}
