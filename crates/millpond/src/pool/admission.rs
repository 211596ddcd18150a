//! The Decide seam: what becomes of a task that comes, as a pure function of plain readings.
//!
//! The pool asks it, and so does the simulator: a simulated pool obeys the very code that a real one
//! does.
//!
//! | | queue first (Java's rule) | threads first |
//! |---|---|---|
//! | 1 | below core: start a worker | below core: start a worker |
//! | 2 | room in the queue: wait there | below max, and none is free: start a worker |
//! | 3 | below max: start a worker | room in the queue: wait there |
//! | 4 | reject | below max: start a worker |
//! | 5 | | reject |

use crate::manage::Growth;

/// What a decision depends on.
///
/// ```
/// use millpond::manage::Growth;
/// use millpond::pool::{Situation, Step, decide};
///
/// let fresh = Situation {
///     is_running: true,
///     workers: 0,
///     core: 2,
///     max: 4,
///     growth: Growth::QueueFirst,
///     one_is_free: false,
///     has_room: true,
/// };
/// assert_eq!(decide(&fresh), Step::Start { below: 2 }, "the core comes first");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Whether tasks are taken at all.
    pub is_running: bool,
    /// How many workers there are.
    pub workers: usize,
    /// How many are kept.
    pub core: usize,
    /// How many there may be.
    pub max: usize,
    /// What comes first.
    pub growth: Growth,
    /// Whether there is a worker for every task that is there: one is free. Asked of
    /// [`Growth::ThreadsFirst`] only.
    pub one_is_free: bool,
    /// Whether there is room in the queue, as far as is known.
    pub has_room: bool,
}

/// What to do with a task that comes.
///
/// ```
/// use millpond::manage::Growth;
/// use millpond::pool::{Situation, Step, decide};
///
/// let over = Situation {
///     is_running: false,
///     workers: 2,
///     core: 2,
///     max: 4,
///     growth: Growth::QueueFirst,
///     one_is_free: true,
///     has_room: true,
/// };
/// assert_eq!(decide(&over), Step::ShutDown, "whatever room there is");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start a worker with it, as long as there are fewer than this.
    Start {
        /// The number of workers that must not be passed.
        below: usize,
    },
    /// Put it into the queue. If that turns out to be full, decide again without room.
    Enqueue,
    /// There is no room.
    Reject,
    /// It is over.
    ShutDown,
}

/// What to do with a task that comes.
///
/// ```
/// use millpond::manage::Growth;
/// use millpond::pool::{Situation, Step, decide};
///
/// let busy = Situation {
///     is_running: true,
///     workers: 2,
///     core: 2,
///     max: 4,
///     growth: Growth::QueueFirst,
///     one_is_free: false,
///     has_room: true,
/// };
/// assert_eq!(decide(&busy), Step::Enqueue);
/// assert_eq!(decide(&Situation { has_room: false, ..busy }), Step::Start { below: 4 });
/// assert_eq!(decide(&Situation { has_room: false, workers: 4, ..busy }), Step::Reject);
///
/// let eager = Situation { growth: Growth::ThreadsFirst, ..busy };
/// assert_eq!(decide(&eager), Step::Start { below: 4 });
/// assert_eq!(decide(&Situation { one_is_free: true, ..eager }), Step::Enqueue);
/// ```
#[inline]
pub fn decide(now: &Situation) -> Step {
    if !now.is_running {
        return Step::ShutDown;
    }
    if now.workers < now.core {
        return Step::Start { below: now.core };
    }
    let eager = now.growth == Growth::ThreadsFirst && !now.one_is_free;
    if now.workers < now.max && (eager || !now.has_room) {
        return Step::Start { below: now.max };
    }
    if now.has_room {
        Step::Enqueue
    } else {
        Step::Reject
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situations() -> impl Iterator<Item = Situation> {
        let sizes = (0..4_usize).flat_map(|core| (core.max(1)..5).map(move |max| (core, max)));
        sizes.flat_map(|(core, max)| {
            (0..=max + 1).flat_map(move |workers| {
                (0..16_u8).map(move |bits| Situation {
                    is_running: bits & 1 != 0,
                    workers,
                    core,
                    max,
                    growth: if bits & 2 != 0 {
                        Growth::QueueFirst
                    } else {
                        Growth::ThreadsFirst
                    },
                    one_is_free: bits & 4 != 0,
                    has_room: bits & 8 != 0,
                })
            })
        })
    }

    #[test]
    fn nothing_is_refused_while_there_is_room_or_a_worker_may_be_started() {
        for now in situations().filter(|now| now.is_running) {
            let room = now.has_room || now.workers < now.max;
            assert_eq!(decide(&now) == Step::Reject, !room, "{now:?}");
        }
    }

    #[test]
    fn no_worker_is_started_beyond_the_maximum() {
        for now in situations() {
            if let Step::Start { below } = decide(&now) {
                assert!(now.workers < below && below <= now.max, "{now:?}");
            }
        }
    }

    #[test]
    fn java_starts_no_worker_beyond_the_core_while_there_is_room() {
        let now = situations().filter(|now| now.growth == Growth::QueueFirst && now.has_room);
        for now in now.filter(|now| now.is_running && now.workers >= now.core) {
            assert_eq!(decide(&now), Step::Enqueue, "{now:?}");
        }
    }

    #[test]
    fn threads_first_queues_nothing_below_the_maximum_unless_one_is_free() {
        for now in situations().filter(|now| now.growth == Growth::ThreadsFirst) {
            if decide(&now) == Step::Enqueue {
                assert!(now.one_is_free || now.workers >= now.max, "{now:?}");
            }
        }
    }

    #[test]
    fn whatever_comes_after_the_end_is_too_late() {
        for now in situations().filter(|now| !now.is_running) {
            assert_eq!(decide(&now), Step::ShutDown);
        }
    }
}
