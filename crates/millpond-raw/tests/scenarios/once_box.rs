//! A box that is initialised once, and an atomic static reference.

use super::{Probe, join_all, leak, spawn_all};
use millpond_raw::once_box::{AtomicStaticRef, OnceBox};
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A value made in two steps: a thread that sees it must see both.
fn made(number: usize, probe: &Probe) -> (AtomicU64, Probe) {
    let value = AtomicU64::new(0);
    value.store(number as u64 + 1, Ordering::Relaxed);
    (value, probe.clone())
}

/// Several threads initialise it and one reads: all see one whole value, and the others are dropped.
pub(crate) fn of_many_initialisers_one_wins_and_all_see_a_whole_value() {
    let (once, probe) = (Arc::new(OnceBox::new()), Probe::default());
    let initialisers = spawn_all(2, {
        let (once, probe) = (Arc::clone(&once), probe.clone());
        move |number| {
            let (value, _) = once.get_or_init(|| made(number, &probe));
            value.load(Ordering::Relaxed)
        }
    });
    if let Some((value, _)) = once.get() {
        assert_ne!(value.load(Ordering::Relaxed), 0, "the value is whole");
    }
    let seen = join_all(initialisers);
    let (value, _) = once.get().expect("it is initialised");
    let value = value.load(Ordering::Relaxed);
    assert!(value > 0 && seen.iter().all(|other| *other == value));
    assert_eq!(probe.others(), 1);
    drop(once);
    assert_eq!(probe.others(), 0);
}

/// A published value may have been made a moment ago, and be replaced by another: a reader sees each of them
/// whole.
pub(crate) fn a_published_reference_leads_to_a_whole_value() {
    let cell = Arc::new(AtomicStaticRef::new());
    let publishers = spawn_all(1, {
        let cell = Arc::clone(&cell);
        move |_| {
            for number in [3, 4] {
                let made = leak(AtomicU64::new(0));
                made.store(number, Ordering::Relaxed);
                cell.set(made);
            }
        }
    });
    let mut least = 0;
    for _ in 0..2 {
        let Some(value) = cell.get() else { continue };
        let seen = value.load(Ordering::Relaxed);
        assert!(matches!(seen, 3 | 4), "{seen}: the value is whole");
        assert!(seen >= least, "{least} was seen before {seen}");
        least = seen;
    }
    join_all(publishers);
    let last = cell.get().expect("it is published");
    assert_eq!(last.load(Ordering::Relaxed), 4);
}
