//! How many tasks were refused, by label and by what became of them.
//!
//! Refusals come in crowds, and a crowd must not queue up to be counted. So there are a few *slates*,
//! and each thread counts on one of them: with no more threads than slates, on one that nobody else
//! writes. A task is counted once. Those who read add up.
//!
//! A slate gets its memory when the first thread needs it: a pool that refuses nothing has none.

use super::figures::Id;
use super::identity::thread_number;
use super::stats::Event;
use millpond_raw::pad::Padded;
use millpond_raw::publish::Once;
use std::fmt;

/// As many threads as this count without meeting each other.
const SLATES: usize = 16;

/// Which slate this thread counts on. In models all use one: the numbers of their threads differ from
/// walk to walk, and must make no difference.
#[inline]
fn slate_here() -> usize {
    match cfg!(any(millpond_loom, millpond_shuttle)) {
        false => thread_number() % SLATES,
        true => 0,
    }
}

/// So many labels share a pair of cache lines.
const LABELS: usize = 8;

/// All that a pool has refused.
pub(super) struct Refusals {
    labels: usize,
    slates: [Once<Slate>; SLATES],
}

/// What a few threads have counted, by label.
type Slate = Box<[Padded<[Refused; LABELS]>]>;

/// How many were refused, under one label.
#[derive(Debug, Default)]
struct Refused {
    turned_away: Event,
    caller_ran: Event,
}

/// What became of a task that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    /// Its caller ran it.
    Here,
    /// It was not run, or by others.
    Away,
}

/// Sums of refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    turned_away: u64,
    /// How many of them their callers ran.
    pub(super) caller_ran: u64,
}

impl Sum {
    /// All that were refused. The others are in it as they were read, so they are never more than all.
    pub(super) fn all(self) -> u64 {
        self.turned_away + self.caller_ran
    }
}

impl Refusals {
    /// Nothing refused yet, under so many labels.
    pub(super) fn new(labels: usize) -> Self {
        Refusals {
            labels,
            slates: std::array::from_fn(|_| Once::new()),
        }
    }

    #[inline]
    pub(super) fn count(&self, label: Id, turned: Turned) {
        let slate = &self.slates[slate_here()];
        let slate = match slate.get() {
            Some(slate) => slate,
            None => self.open(slate),
        };
        let refused = &slate[label.index() / LABELS][label.index() % LABELS];
        match turned {
            Turned::Here => refused.caller_ran.happened(1),
            Turned::Away => refused.turned_away.happened(1),
        }
    }

    #[cold]
    fn open<'a>(&self, slate: &'a Once<Slate>) -> &'a Slate {
        let lines = (0..self.labels.div_ceil(LABELS)).map(|_| Padded::default());
        slate.get_or_fill(|| lines.collect())
    }

    /// Those under this label.
    pub(super) fn of(&self, label: Id) -> Sum {
        let index = label.index();
        self.slates()
            .map(|slate| &slate[index / LABELS][index % LABELS])
            .collect()
    }

    /// All of them.
    pub(super) fn sum(&self) -> Sum {
        let lines = self.slates().flat_map(|slate| slate.iter());
        lines.flat_map(|line| line.iter()).collect()
    }

    fn slates(&self) -> impl Iterator<Item = &Slate> {
        self.slates.iter().filter_map(Once::get)
    }
}

impl<'a> FromIterator<&'a Refused> for Sum {
    fn from_iter<I: IntoIterator<Item = &'a Refused>>(all: I) -> Self {
        let mut sum = Sum::default();
        for refused in all {
            sum.turned_away += refused.turned_away.get();
            sum.caller_ran += refused.caller_ran.get();
        }
        sum
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Refusals").field(&self.sum()).finish()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::pool::figures::Names;
    use crate::task::TaskSpec;
    use millpond_raw::sync::thread;
    use std::sync::Arc;

    /// The numbers of so many labels, "others" first.
    fn labels(count: usize) -> Vec<Id> {
        let names = Names::new(count - 1);
        let name = |number: usize| {
            let task = TaskSpec::new().name(number.to_string());
            names.id_of_refused(&task.build_detached(|| ()))
        };
        let named = (1..count).map(name);
        std::iter::once(Id::OTHERS).chain(named).collect()
    }

    #[test]
    fn a_pool_that_refuses_nothing_has_nothing_counted_and_no_slate() {
        let refusals = Refusals::new(3);
        assert_eq!(refusals.sum(), Sum::default());
        assert_eq!(refusals.slates().count(), 0);
    }

    #[test]
    fn every_refusal_of_more_threads_than_slates_is_counted_once_under_its_label() {
        const THREADS: usize = SLATES + 4;
        const ROUNDS: u64 = 500;
        let labels = labels(2 * LABELS + 1);
        let refusals = Arc::new(Refusals::new(labels.len()));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (refusals, labels) = (Arc::clone(&refusals), labels.clone());
                thread::spawn(move || {
                    for _ in 0..ROUNDS {
                        for label in &labels {
                            refusals.count(*label, Turned::Here);
                        }
                        refusals.count(labels[LABELS], Turned::Away);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("it only counts");
        }
        let each = THREADS as u64 * ROUNDS;
        for (index, label) in labels.iter().enumerate() {
            let expected = Sum {
                turned_away: if index == LABELS { each } else { 0 },
                caller_ran: each,
            };
            assert_eq!(refusals.of(*label), expected, "{label:?}");
        }
        assert_eq!(refusals.sum().all(), each * (labels.len() as u64 + 1));
        assert!(refusals.slates().count() > 1, "they share more than one");
    }
}
