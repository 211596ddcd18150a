//! How many tasks were rejected, by label and by what became of them.
//!
//! Rejections come in bursts, and the threads of a burst must not contend for a counter. So there are a few *shards*, and
//! each thread counts on one of them: with no more threads than shards, on one that no other thread writes. A task is
//! counted once. Readers add up.
//!
//! A shard gets its memory when the first thread needs it: a pool that rejects nothing has none.

use crate::engine::metrics::{Counter, LabelId};
use crate::engine::thread_number;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::once_box::OnceBox;
use std::fmt;

/// As many threads as this count without contention.
const SHARDS: usize = 16;

/// Which shard this thread counts on. In models all use one: the numbers of their threads differ from run to run, and must
/// make no difference.
#[inline]
fn shard_here() -> usize {
    if cfg!(any(millpond_loom, millpond_shuttle)) {
        0
    } else {
        thread_number() % SHARDS
    }
}

/// So many labels share a pair of cache lines.
const LABELS: usize = 4;

/// All that a pool has rejected.
pub(in crate::pool) struct RejectionCounters {
    labels: usize,
    shards: [OnceBox<Shard>; SHARDS],
}

/// What a few threads have counted, by label.
type Shard = Box<[CachePadded<[Rejections; LABELS]>]>;

/// How many were rejected, under one label.
#[derive(Debug, Default)]
struct Rejections {
    given_back: Counter,
    caller_ran: Counter,
    taken: Counter,
    returned: Counter,
}

/// What became of a rejected task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pool) enum Resolution {
    /// It was given back to its caller.
    GivenBack,
    /// Its caller ran it.
    CallerRan,
    /// The policy took it: to drop it or an older one, to run it on an extra thread, or to leave it to a handler.
    Taken,
    /// The policy took it, which is counted, and then gave it back after all.
    Returned,
}

/// Sums of rejections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::pool) struct Sum {
    given_back: u64,
    /// How many of them their callers ran.
    pub(in crate::pool) caller_ran: u64,
    taken: u64,
    returned: u64,
}

impl Sum {
    /// All that were rejected. `caller_ran` is in it as it was read, so it is never more than all.
    pub(in crate::pool) fn all(self) -> u64 {
        self.given_back + self.caller_ran + self.taken
    }

    /// Those that were given back to their callers, at once or after all.
    pub(in crate::pool) fn all_given_back(self) -> u64 {
        self.given_back + self.returned
    }
}

impl RejectionCounters {
    /// For so many labels.
    pub(in crate::pool) fn new(labels: usize) -> Self {
        RejectionCounters {
            labels,
            shards: std::array::from_fn(|_| OnceBox::new()),
        }
    }

    #[inline]
    pub(in crate::pool) fn count(&self, label: LabelId, resolution: Resolution) {
        let shard = &self.shards[shard_here()];
        let shard = match shard.get() {
            Some(shard) => shard,
            None => self.fill(shard),
        };
        let rejections = &shard[label.index() / LABELS][label.index() % LABELS];
        match resolution {
            Resolution::CallerRan => rejections.caller_ran.add(1),
            Resolution::GivenBack => rejections.given_back.add(1),
            Resolution::Taken => rejections.taken.add(1),
            Resolution::Returned => rejections.returned.add(1),
        }
    }

    #[cold]
    fn fill<'a>(&self, shard: &'a OnceBox<Shard>) -> &'a Shard {
        let lines = (0..self.labels.div_ceil(LABELS)).map(|_| CachePadded::default());
        shard.get_or_init(|| lines.collect())
    }

    /// The sum of one label.
    pub(in crate::pool) fn of(&self, label: LabelId) -> Sum {
        let index = label.index();
        self.shards()
            .map(|shard| &shard[index / LABELS][index % LABELS])
            .collect()
    }

    /// The sum of all labels.
    pub(in crate::pool) fn sum(&self) -> Sum {
        let lines = self.shards().flat_map(|shard| shard.iter());
        lines.flat_map(|line| line.iter()).collect()
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter_map(OnceBox::get)
    }
}

impl<'a> FromIterator<&'a Rejections> for Sum {
    fn from_iter<I: IntoIterator<Item = &'a Rejections>>(all: I) -> Self {
        let mut sum = Sum::default();
        for rejections in all {
            // Before what is taken: never more are returned.
            sum.returned += rejections.returned.get();
            sum.given_back += rejections.given_back.get();
            sum.caller_ran += rejections.caller_ran.get();
            sum.taken += rejections.taken.get();
        }
        sum
    }
}

impl fmt::Debug for RejectionCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RejectionCounters")
            .field(&self.sum())
            .finish()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::engine::metrics::LabelTable;
    use crate::task::TaskSpec;
    use millpond_raw::sync::thread;
    use std::sync::Arc;

    /// The numbers of so many labels, "others" first.
    fn labels(count: usize) -> Vec<LabelId> {
        let names = LabelTable::new(count - 1);
        let name = |number: usize| {
            let task = TaskSpec::new().name(number.to_string());
            names.id_of_rejected(&task.build_detached(|| ()))
        };
        let named = (1..count).map(name);
        std::iter::once(LabelId::OTHERS).chain(named).collect()
    }

    #[test]
    fn a_pool_that_rejects_nothing_has_nothing_counted_and_no_shard() {
        let counters = RejectionCounters::new(3);
        assert_eq!(counters.sum(), Sum::default());
        assert_eq!(counters.shards().count(), 0);
    }

    #[test]
    fn every_rejection_of_more_threads_than_shards_is_counted_once_under_its_label() {
        const THREADS: usize = SHARDS + 4;
        const ROUNDS: u64 = 500;
        let labels = labels(2 * LABELS + 1);
        let counters = Arc::new(RejectionCounters::new(labels.len()));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (counters, labels) = (Arc::clone(&counters), labels.clone());
                thread::spawn(move || {
                    for _ in 0..ROUNDS {
                        for label in &labels {
                            counters.count(*label, Resolution::CallerRan);
                        }
                        counters.count(labels[LABELS], Resolution::GivenBack);
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
                given_back: if index == LABELS { each } else { 0 },
                caller_ran: each,
                ..Sum::default()
            };
            assert_eq!(counters.of(*label), expected, "{label:?}");
        }
        assert_eq!(counters.sum().all(), each * (labels.len() as u64 + 1));
        assert!(counters.shards().count() > 1, "they share more than one");
    }
}
