//! When workers without work leave, by a clock that the test moves.

use super::pond::{Make, Pond};
use crate::kit::{Stress, until};
use millpond::executor::ExecutorExt;
use millpond::pool::PoolBuilder;
use millpond::time::ManualClock;
use std::time::Duration;

/// Tests of the keep-alive of a pool that is described by a [`Make`].
#[macro_export]
macro_rules! pool_idle_suite {
    ($make:expr) => {
        $crate::bodies! { pool_idle, ($make as $crate::suites::pond::Make);
            idle_workers_beyond_the_core_leave_and_the_core_stays
            those_that_leave_together_never_leave_one_too_few
            with_core_time_out_everyone_leaves_and_comes_again
            a_worker_that_was_used_counts_anew
            a_new_keep_alive_holds_for_those_that_are_idle
            core_time_out_holds_for_those_that_are_idle
            core_time_out_without_a_keep_alive_is_rejected
            a_busy_worker_does_not_time_out
            without_a_keep_alive_a_surplus_worker_leaves_at_once
            a_keep_alive_without_end_is_one
        }
    };
}

const KEEP_ALIVE: Duration = Duration::from_secs(10);
const A_MOMENT: Duration = Duration::from_nanos(1);

struct Clocked {
    hand: ManualClock,
    pond: Pond,
}

impl Clocked {
    fn new(make: &Make, shape: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let hand = ManualClock::new();
        let pond = Pond::new(make, 4, |pool| {
            shape(pool.keep_alive(KEEP_ALIVE).clock(hand.clock()))
        });
        Clocked { hand, pond }
    }

    /// Waits until so many workers are left, all idle, and so many of them look at the clock.
    #[track_caller]
    fn await_idle(&self, idle: usize, by_the_clock: usize) {
        let what = format!("{idle} workers are left, {by_the_clock} of them by the clock");
        until(&what, || {
            (self.pond.snapshot().workers, self.pond.idle()) == (idle, idle)
                && self.hand.sleepers() == by_the_clock
        });
    }
}

/// Holds: ThreadPoolExecutorTest.testAllowCoreThreadTimeOut_false
/// Holds: ThreadPoolExecutorSubclassTest.testAllowCoreThreadTimeOut_false
/// Holds: jtreg ThreadPoolExecutor.TimeOutShrink
pub fn idle_workers_beyond_the_core_leave_and_the_core_stays(make: &Make) {
    for core in [0, 1, 2] {
        let here = Clocked::new(make, |pool| pool.core(4).max(4));
        here.pond.hold(4).release();
        here.await_idle(4, 0);
        here.pond.set_core(core).unwrap();
        here.await_idle(4, 4);
        here.hand.advance(KEEP_ALIVE - A_MOMENT);
        here.await_idle(4, 4);
        // All four run out of time at once, and yet not one too many leaves.
        here.hand.advance(A_MOMENT);
        here.await_idle(core, 0);
        for _ in 0..3 {
            here.hand.advance(KEEP_ALIVE);
            here.await_idle(core, 0);
        }
        assert_eq!(here.pond.submit(|| 7).unwrap().join().unwrap(), 7);
    }
}

/// Many at once, by the machine's clock.
///
/// Holds: jtreg ThreadPoolExecutor.TimeOutShrink
pub fn those_that_leave_together_never_leave_one_too_few(make: &Make) {
    let make = *make;
    Stress::new("shrink").one_in(50).run(|round| {
        let core = 1 + round.number % 3;
        let pond = Pond::new(&make, 16, |pool| {
            pool.core(10).max(10).keep_alive(Duration::from_micros(50))
        });
        pond.prestart_all_core().unwrap();
        pond.await_idle(10);
        pond.set_core(core).unwrap();
        until("the surplus has left", || {
            let workers = pond.snapshot().workers;
            assert!(workers >= core, "{workers} are left of a core of {core}");
            workers == core
        });
        pond.await_idle(core);
        assert_eq!(pond.snapshot().workers, core);
    });
}

/// Holds: ThreadPoolExecutorTest.testAllowCoreThreadTimeOut_true
/// Holds: ThreadPoolExecutorSubclassTest.testAllowCoreThreadTimeOut_true
pub fn with_core_time_out_everyone_leaves_and_comes_again(make: &Make) {
    let here = Clocked::new(make, |pool| pool.core(3).max(3).core_may_time_out(true));
    for _ in 0..3 {
        here.pond.hold(3).release();
        here.await_idle(3, 3);
        here.hand.advance(KEEP_ALIVE);
        here.await_idle(0, 0);
    }
    assert_eq!(here.pond.snapshot().threads_started, 9);
}

/// The time runs from when it became idle.
pub fn a_worker_that_was_used_counts_anew(make: &Make) {
    let here = Clocked::new(make, |pool| pool.core(1).max(1).core_may_time_out(true));
    here.pond.submit(|| ()).unwrap().join().unwrap();
    for _ in 0..3 {
        here.await_idle(1, 1);
        here.hand.advance(KEEP_ALIVE - A_MOMENT);
        here.await_idle(1, 1);
        here.pond.submit(|| ()).unwrap().join().unwrap();
    }
    here.await_idle(1, 1);
    here.hand.advance(KEEP_ALIVE);
    here.await_idle(0, 0);
    assert_eq!(here.pond.snapshot().threads_started, 1);
}

/// A change of the keep-alive wakes the workers that wait by the old one.
pub fn a_new_keep_alive_holds_for_those_that_are_idle(make: &Make) {
    let here = Clocked::new(make, |pool| pool.core(2).max(2).core_may_time_out(true));
    here.pond.hold(2).release();
    for _ in 0..3 {
        here.await_idle(2, 2);
        // For ever: no worker waits for a time any more.
        here.pond.set_keep_alive(Duration::MAX).unwrap();
        here.await_idle(2, 0);
        here.hand.advance(KEEP_ALIVE * 10);
        here.await_idle(2, 0);
        here.pond.set_keep_alive(KEEP_ALIVE / 10).unwrap();
    }
    here.await_idle(2, 2);
    here.hand.advance(KEEP_ALIVE / 10);
    here.await_idle(0, 0);
}

/// It can be allowed and forbidden while they are idle.
pub fn core_time_out_holds_for_those_that_are_idle(make: &Make) {
    let here = Clocked::new(make, |pool| pool.core(2).max(2));
    here.pond.hold(2).release();
    here.await_idle(2, 0);
    here.pond.set_core_may_time_out(true).unwrap();
    here.await_idle(2, 2);
    here.pond.set_core_may_time_out(false).unwrap();
    here.await_idle(2, 0);
    here.hand.advance(KEEP_ALIVE * 3);
    here.await_idle(2, 0);
    here.pond.set_core_may_time_out(true).unwrap();
    here.await_idle(2, 2);
    here.hand.advance(KEEP_ALIVE);
    here.await_idle(0, 0);
}

/// Workers would leave as soon as they are idle, and start for every task.
pub fn core_time_out_without_a_keep_alive_is_rejected(make: &Make) {
    let pond = Pond::new(make, 1, |pool| {
        pool.core(1).max(1).keep_alive(Duration::ZERO)
    });
    let error = pond.set_core_may_time_out(true).unwrap_err();
    assert_eq!(error.problems()[0].parameter(), "keep_alive");
    assert!(!pond.core_may_time_out());
    pond.set_keep_alive(A_MOMENT).unwrap();
    pond.set_core_may_time_out(true).unwrap();
    assert!(pond.set_keep_alive(Duration::ZERO).is_err());
    assert_eq!(pond.keep_alive(), A_MOMENT);
}

/// What runs, runs; the others' time goes on.
pub fn a_busy_worker_does_not_time_out(make: &Make) {
    let here = Clocked::new(make, |pool| pool.core(2).max(2).core_may_time_out(true));
    here.pond.prestart_all_core().unwrap();
    here.await_idle(2, 2);
    let held = here.pond.hold(1);
    until("one is idle", || {
        here.pond.idle() == 1 && here.hand.sleepers() == 1
    });
    here.hand.advance(KEEP_ALIVE * 3);
    here.pond.await_workers(1);
    held.release();
    here.await_idle(1, 1);
}

/// Beyond the core a keep-alive of nothing is allowed, and means what it says.
pub fn without_a_keep_alive_a_surplus_worker_leaves_at_once(make: &Make) {
    let pond = Pond::new(make, 4, |pool| {
        pool.core(3).max(3).keep_alive(Duration::ZERO)
    });
    pond.hold(3).release();
    pond.await_idle(3);
    pond.set_core(1).unwrap();
    pond.await_workers(1);
    pond.await_idle(1);
    pond.set_core(0).unwrap();
    pond.await_workers(0);
    assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
    pond.await_workers(0);
}

/// The arithmetic of time does not overflow.
pub fn a_keep_alive_without_end_is_one(make: &Make) {
    for forever in crate::kit::delays::eternities() {
        let here = Clocked::new(make, |pool| {
            pool.core(1)
                .max(1)
                .keep_alive(forever)
                .core_may_time_out(true)
        });
        assert!(here.pond.keep_alive() >= Duration::from_nanos(u64::MAX - 1));
        here.pond.submit(|| ()).unwrap().join().unwrap();
        here.pond.await_idle(1);
        here.hand.advance(Duration::from_secs(1 << 30));
        assert_eq!(here.pond.submit(|| 7).unwrap().join().unwrap(), 7);
        assert_eq!(here.pond.snapshot().threads_started, 1);
    }
}
