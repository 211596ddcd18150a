//! The lock.

use super::{few_or_many, join_all, spawn_all};
use millpond_raw::sync::Mutex;
use std::sync::Arc;

/// Owners exclude each other, and each sees what the last one wrote.
pub(crate) fn owners_follow_one_another() {
    let threads = few_or_many(2, 4);
    let total = Arc::new(Mutex::new(0));
    let others = spawn_all(threads, {
        let total = Arc::clone(&total);
        move |_| *total.lock() += 1
    });
    *total.lock() += 1;
    join_all(others);
    assert_eq!(*total.lock(), threads + 1);
}

/// A lock acquired by `try_lock` is as good as one acquired by `lock`.
pub(crate) fn try_lock_shows_what_the_last_owner_wrote() {
    let threads = few_or_many(1, 4);
    let pair = Arc::new(Mutex::new((0, 0)));
    let others = spawn_all(threads, {
        let pair = Arc::clone(&pair);
        move |_| {
            let mut guard = pair.lock();
            guard.0 += 1;
            guard.1 += 1;
        }
    });
    if let Some(guard) = pair.try_lock() {
        assert_eq!(guard.0, guard.1, "no step is seen half done");
    }
    join_all(others);
    assert_eq!(*pair.lock(), (threads, threads));
}
