//! The lock.

use super::{crew, few_or_many, gather};
use millpond_raw::sync::Mutex;
use std::sync::Arc;

/// Nobody is in the lock together, and each sees what the last one left.
pub(crate) fn owners_follow_one_another() {
    let threads = few_or_many(2, 4);
    let total = Arc::new(Mutex::new(0));
    let others = crew(threads, {
        let total = Arc::clone(&total);
        move |_| *total.lock() += 1
    });
    *total.lock() += 1;
    gather(others);
    assert_eq!(*total.lock(), threads + 1);
}

/// A lock that was had by trying is as good as one that was waited for.
pub(crate) fn a_lock_had_by_trying_shows_what_the_last_owner_left() {
    let threads = few_or_many(1, 4);
    let pair = Arc::new(Mutex::new((0, 0)));
    let others = crew(threads, {
        let pair = Arc::clone(&pair);
        move |_| {
            let mut guard = pair.lock();
            guard.0 += 1;
            guard.1 += 1;
        }
    });
    if let Some(guard) = pair.try_lock() {
        assert_eq!(guard.0, guard.1, "nobody looks into the middle of a step");
    }
    gather(others);
    assert_eq!(*pair.lock(), (threads, threads));
}
