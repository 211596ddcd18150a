//! A place that is filled at most once, and one that shows what lives for ever.

use super::{Probe, crew, gather, leak};
use millpond_raw::publish::{Once, Shown};
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What is filled in, made in two steps: whoever sees it must see both.
fn made(number: usize, probe: &Probe) -> (AtomicU64, Probe) {
    let value = AtomicU64::new(0);
    value.store(number as u64 + 1, Ordering::Relaxed);
    (value, probe.clone())
}

/// Several fill it and one looks: all see one value, whole, and the others are dropped.
pub(crate) fn of_many_who_fill_one_gets_in_and_all_see_it_whole() {
    let (once, probe) = (Arc::new(Once::new()), Probe::default());
    let fillers = crew(2, {
        let (once, probe) = (Arc::clone(&once), probe.clone());
        move |number| {
            let (value, _) = once.get_or_fill(|| made(number, &probe));
            value.load(Ordering::Relaxed)
        }
    });
    if let Some((value, _)) = once.get() {
        assert_ne!(value.load(Ordering::Relaxed), 0, "it is seen whole");
    }
    let seen = gather(fillers);
    let (value, _) = once.get().expect("it is filled");
    let value = value.load(Ordering::Relaxed);
    assert!(value > 0 && seen.iter().all(|other| *other == value));
    assert_eq!(probe.others(), 1);
    drop(once);
    assert_eq!(probe.others(), 0);
}

/// What is shown may have been made a moment ago, and be followed by another: whoever looks sees each
/// of them whole.
pub(crate) fn what_is_shown_is_seen_whole_however_new_it_is() {
    let shown = Arc::new(Shown::nothing());
    let showers = crew(1, {
        let shown = Arc::clone(&shown);
        move |_| {
            for number in [3, 4] {
                let made = leak(AtomicU64::new(0));
                made.store(number, Ordering::Relaxed);
                shown.show(made);
            }
        }
    });
    let mut least = 0;
    for _ in 0..2 {
        let Some(place) = shown.get() else { continue };
        let seen = place.load(Ordering::Relaxed);
        assert!(matches!(seen, 3 | 4), "{seen}: it is seen whole");
        assert!(seen >= least, "{least} was seen before {seen}");
        least = seen;
    }
    gather(showers);
    let last = shown.get().expect("it is shown");
    assert_eq!(last.load(Ordering::Relaxed), 4);
}
