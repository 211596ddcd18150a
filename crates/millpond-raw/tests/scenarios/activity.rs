//! What a worker is running, observed by another thread.

use super::{few_or_many, join_all, spawn_all};
use millpond_raw::activity::Activity;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A reader sees number, start, kind and extra value of one run, or nothing. Two runs may start at the same
/// time, as by a clock that stands still: then only the number tells them apart.
pub(crate) fn a_snapshot_belongs_to_one_run() {
    let (activity, extra) = (Arc::new(Activity::new()), Arc::new(AtomicU64::new(0)));
    let last = few_or_many(2, 4) as u64;
    let readers = spawn_all(1, {
        let (activity, extra) = (Arc::clone(&activity), Arc::clone(&extra));
        move |_| {
            let seen = activity.read(|| extra.load(Ordering::Acquire));
            if let Some(seen) = seen {
                assert!(seen.number >= 1 && seen.number <= last);
                assert_eq!(seen.kind, seen.number, "{seen:?}");
                assert_eq!(seen.extra, seen.number, "{seen:?}");
                // The first two start at the same time.
                assert_eq!(seen.since, seen.number.max(2) * 10, "{seen:?}");
            }
        }
    });
    for number in 1..=last {
        activity.begin();
        assert_eq!(activity.number(), number);
        activity.set_kind(number);
        extra.store(number, Ordering::Release);
        activity.set_since(number.max(2) * 10);
        activity.end();
    }
    join_all(readers);
}

/// A reader that sees a run begun sees what its owner did before.
pub(crate) fn what_was_done_before_a_run_is_seen_by_whoever_sees_it_begun() {
    let (activity, done) = (Arc::new(Activity::new()), Arc::new(AtomicU64::new(0)));
    let readers = spawn_all(1, {
        let (activity, done) = (Arc::clone(&activity), Arc::clone(&done));
        move |_| {
            let begun = activity.begun();
            assert!(done.load(Ordering::Relaxed) >= begun);
        }
    });
    for number in 1..=2 {
        done.store(number, Ordering::Relaxed);
        activity.begin();
    }
    join_all(readers);
}
