//! What a thread is at, seen by another.

use super::{crew, few_or_many, gather};
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::turns::Turns;
use std::sync::Arc;

/// A reader sees the number, the start, the kind and whatever else of one turn, or nothing. Two turns may
/// start at the same time, as by a clock that stands still: then only the number tells them apart.
pub(crate) fn what_is_seen_of_a_turn_belongs_to_it() {
    let (turns, beside) = (Arc::new(Turns::new()), Arc::new(AtomicU64::new(0)));
    let last = few_or_many(2, 4) as u64;
    let readers = crew(1, {
        let (turns, beside) = (Arc::clone(&turns), Arc::clone(&beside));
        move |_| {
            let seen = turns.read(|| beside.load(Ordering::Acquire));
            if let Some(seen) = seen {
                assert!(seen.number >= 1 && seen.number <= last);
                assert_eq!(u64::from(seen.kind), seen.number, "{seen:?}");
                assert_eq!(seen.more, seen.number, "{seen:?}");
                // The first two start at the same time.
                assert_eq!(seen.since, seen.number.max(2) * 10, "{seen:?}");
            }
        }
    });
    for number in 1..=last {
        turns.begin();
        assert_eq!(turns.number(), number);
        turns.set_kind(number as u32);
        beside.store(number, Ordering::Release);
        turns.set_since(number.max(2) * 10);
        turns.end();
    }
    gather(readers);
}
