//! The lock with a keeper.

use super::{few_or_many, join_all, spawn_all};
use millpond_raw::sync::atomic::{AtomicU32, Ordering, fence};
use millpond_raw::sync::thread::spawn;
use millpond_raw::sync::{BiasKey, BiasedMutex, CALM};
use std::sync::Arc;

/// A lock that counts, and is biased, if it can be.
fn biased() -> (Arc<BiasedMutex<u32>>, BiasKey) {
    let jar = Arc::new(BiasedMutex::new(0));
    let key = jar.keep().expect("it is new");
    (0..CALM).for_each(|_| jar.with_key(&key, |_| ()));
    (jar, key)
}

/// Keeper and strangers exclude each other, and each sees what the last one wrote, also when the lock gets biased anew.
pub(crate) fn keeper_and_strangers_follow_one_another() {
    let strangers = few_or_many(1, 3);
    let (jar, key) = biased();
    let others = spawn_all(strangers, {
        let jar = Arc::clone(&jar);
        move |_| jar.with(|jar| *jar += 1)
    });
    let uses = few_or_many(2, 3 * CALM as usize);
    for before in 0..uses as u32 {
        jar.with_key(&key, |jar| {
            assert!(*jar >= before, "a use of the keeper is lost");
            *jar += 1;
        });
    }
    join_all(others);
    assert_eq!(jar.with(|jar| *jar), (uses + strangers) as u32);
}

/// `[L-settle]`: the keeper writes, orders and reads; a stranger writes, has a fence, settles and reads. One of them sees
/// the other.
pub(crate) fn a_stranger_that_settles_meets_what_the_keeper_orders() {
    let (jar, key) = biased();
    let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let keeper = spawn({
        let (jar, words) = (Arc::clone(&jar), Arc::clone(&words));
        move || {
            jar.with_key(&key, |_| words[0].store(1, Ordering::Relaxed));
            jar.order(&key);
            words[1].load(Ordering::Relaxed)
        }
    });
    words[1].store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    jar.settle();
    let seen_here = words[0].load(Ordering::Relaxed);
    let seen_there = keeper.join().expect("it ends well");
    assert_eq!(seen_here.max(seen_there), 1, "neither sees the other");
}

/// A keeper gives the lock up while a stranger uses it, and another thread keeps it.
pub(crate) fn the_next_keeper_sees_what_the_last_one_did() {
    let (jar, mut key) = biased();
    let next = spawn({
        let jar = Arc::clone(&jar);
        move || {
            jar.with(|jar| *jar += 1);
            let Some(key) = jar.keep() else { return };
            let seen = jar.with_key(&key, |jar| *jar);
            assert_eq!(seen, 2, "the last keeper had done its part");
        }
    });
    jar.with_key(&key, |jar| *jar += 1);
    jar.give_up(&mut key);
    next.join().expect("it ends well");
    assert_eq!(jar.with(|jar| *jar), 2);
}
