//! The shape of a round, drawn from its seed.

use crate::kit::{OwnQueue, Rng};
use millpond::manage::{CoDel, Growth, OverloadOrder};
use millpond::pool::{Queue, RejectionContext, RejectionPolicy};
use millpond::queue::{BlockingDeque, PriorityQueue, WeightedQueue};
use millpond::task::Task;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::ledger::{Ledger, Place};

/// A pool, the threads that use it, and how it ends.
#[derive(Clone, Debug)]
pub struct Shape {
    pub(crate) core: usize,
    pub(crate) max: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) core_may_time_out: bool,
    pub(crate) growth: Growth,
    pub(crate) queue: Line,
    pub(crate) overload: Overload,
    pub(crate) policy: Policy,
    /// Once in how many calls a hook panics; 0 for no hooks at all.
    pub(crate) hooks: usize,
    /// Once in how many threads the factory lets one fail; 0 for never.
    pub(crate) faults: usize,
    pub(crate) producers: usize,
    /// How many tasks each of them submits.
    pub(crate) tasks: usize,
    /// One producer that waits for each task, so that workers exit while the next one comes: a
    /// task that is missed then stays missed, because no other task follows.
    pub(crate) lone: bool,
    pub(crate) deadlines: bool,
    pub(crate) meddles: bool,
    pub(crate) end: End,
    /// How many tasks have come before the end, if it comes in the middle.
    pub(crate) end_after: Option<usize>,
}

/// The queue of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Bounded(usize),
    Unbounded,
    HandOff,
    /// By the priorities of tasks, with aging of so many microseconds.
    ByPriority(usize, u64),
    Priority(usize),
    Deque(usize),
    Weighed(usize),
    Own(usize),
}

/// A rejection policy of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Abort,
    CallerRuns,
    Discard,
    DiscardOldest,
    Block(Duration),
    NewThread(usize),
    Custom,
}

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Shutdown,
    ShutdownNow,
    /// First the one, and in the middle of it the other.
    ShutdownThenNow,
    Close,
    /// A task of the pool shuts it down, or stops it.
    FromWithin,
    /// The last handle is dropped, by a producer or by a task in a worker.
    Drop,
}

impl Shape {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let lone = rng.once_in(4);
        let core = rng.below(if lone { 2 } else { 5 });
        let max = (core + rng.below(if lone { 1 } else { 4 })).max(1);
        let core_may_time_out = lone || rng.once_in(3);
        let keep_alive = match (rng.below(4), core_may_time_out) {
            _ if lone => Duration::from_nanos(1 + rng.any() % 20_000),
            (0, false) => Duration::ZERO,
            (0 | 1, _) => Duration::from_nanos(1 + rng.any() % 1000),
            (2, _) => Duration::from_micros(1 + rng.any() % 500),
            _ => Duration::from_secs(60),
        };
        let end = match rng.below(8) {
            0 => End::Shutdown,
            1 | 2 => End::ShutdownNow,
            3 => End::ShutdownThenNow,
            4 => End::Close,
            5 => End::FromWithin,
            _ => End::Drop,
        };
        let producers = if lone { 1 } else { 1 + rng.below(4) };
        let tasks = 4 + rng.below(40);
        // A thread drops its handle as soon as it has no more use for it.
        let queue = Line::draw(rng);
        let in_the_middle = end != End::Drop && !rng.once_in(3);
        Shape {
            core,
            max,
            keep_alive,
            core_may_time_out,
            growth: growth(rng),
            queue,
            overload: overload(rng, queue),
            policy: Policy::draw(rng),
            hooks: if end == End::Drop || rng.once_in(2) {
                1 + rng.below(30)
            } else {
                0
            },
            faults: if rng.once_in(3) { 1 + rng.below(12) } else { 0 },
            producers,
            tasks,
            lone,
            deadlines: rng.once_in(2),
            meddles: !lone && !rng.once_in(3),
            end,
            end_after: in_the_middle.then(|| rng.below(producers * tasks)),
        }
    }
}

pub(crate) fn growth(rng: &mut Rng) -> Growth {
    if rng.once_in(2) {
        Growth::QueueFirst
    } else {
        Growth::ThreadsFirst
    }
}

/// How a pool protects itself from overload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overload {
    pub(crate) max_queue_wait: Option<Duration>,
    pub(crate) shedding: Option<CoDel>,
    pub(crate) order: OverloadOrder,
}

impl Overload {
    pub(crate) fn sheds(&self) -> bool {
        self.max_queue_wait.is_some() || self.shedding.is_some()
    }
}

/// Protection of any kind, mostly so tight that it bites.
pub(crate) fn overload(rng: &mut Rng, queue: Line) -> Overload {
    let micros = |rng: &mut Rng, most: u64| Duration::from_micros(1 + rng.any() % most);
    let max_queue_wait = rng.once_in(3).then(|| micros(rng, 3000));
    let shedding = rng.once_in(3).then(|| {
        let target = micros(rng, 100);
        CoDel::new(target, target + micros(rng, 400))
    });
    let says = max_queue_wait.is_some() || shedding.is_some();
    let order = if says && queue.is_plain() && rng.once_in(2) {
        OverloadOrder::NewestFirst
    } else {
        OverloadOrder::Unchanged
    };
    Overload {
        max_queue_wait,
        shedding,
        order,
    }
}

impl Line {
    fn draw(rng: &mut Rng) -> Self {
        let small = 1 + rng.below(4);
        let room = if rng.once_in(4) { 1000 } else { small };
        match rng.below(11) {
            0..=2 => Line::Bounded(room),
            3 => Line::Unbounded,
            4 => Line::HandOff,
            5 => Line::Priority(room),
            6 => Line::Deque(room),
            7 => Line::Weighed(room + 2),
            8 | 9 => Line::ByPriority(room, rng.any() % 300),
            _ => Line::Own(room),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Line::Bounded(_) => "queue bounded",
            Line::Unbounded => "queue unbounded",
            Line::HandOff => "queue hand-off",
            Line::Priority(_) => "queue priority",
            Line::ByPriority(..) => "queue by priority",
            Line::Deque(_) => "queue deque",
            Line::Weighed(_) => "queue weighed",
            Line::Own(_) => "queue own",
        }
    }

    /// Whether the newest can come first.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Line::Bounded(_) | Line::Unbounded)
    }

    pub(crate) fn build(self) -> Queue {
        const SOME: &str = "it is for at least one";
        match self {
            Line::Bounded(room) => Queue::bounded(room),
            Line::Unbounded => Queue::unbounded(),
            Line::HandOff => Queue::hand_off(),
            Line::ByPriority(room, micros) => {
                Queue::by_priority(room, Duration::from_micros(micros))
            }
            Line::Priority(room) => {
                let by_name =
                    PriorityQueue::by(|one: &Task, other: &Task| one.name().cmp(&other.name()));
                Queue::custom(by_name.with_bound(room).expect(SOME))
            }
            Line::Deque(room) => Queue::custom(BlockingDeque::bounded(room).expect(SOME)),
            Line::Weighed(bound) => {
                let weigh = |task: &Task| task.name().map_or(1, |name| name.len() as u64 / 2);
                Queue::custom(WeightedQueue::bounded(bound as u64, weigh).expect(SOME))
            }
            Line::Own(room) => Queue::custom(OwnQueue::bounded(room)),
        }
    }
}

impl Policy {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        match rng.below(9) {
            0 => Policy::Abort,
            1 => Policy::CallerRuns,
            2 => Policy::Discard,
            3 => Policy::DiscardOldest,
            4 => Policy::Block(rng.timeout()),
            5 => Policy::Block(Duration::from_millis(1 + rng.any() % 15)),
            6 => Policy::NewThread(1 + rng.below(3)),
            _ => Policy::Custom,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Policy::Abort => "policy abort",
            Policy::CallerRuns => "policy caller runs",
            Policy::Discard => "policy discard",
            Policy::DiscardOldest => "policy discard oldest",
            Policy::Block(_) => "policy block",
            Policy::NewThread(_) => "policy new thread",
            Policy::Custom => "policy custom",
        }
    }

    pub(crate) fn build(self, ledger: &Arc<Ledger>, rng: &mut Rng) -> RejectionPolicy {
        ledger.round.allow(self);
        match self {
            Policy::Abort => RejectionPolicy::Abort,
            Policy::CallerRuns => RejectionPolicy::CallerRuns,
            Policy::Discard => RejectionPolicy::Discard,
            Policy::DiscardOldest => RejectionPolicy::DiscardOldest,
            Policy::Block(timeout) => RejectionPolicy::Block(timeout),
            Policy::NewThread(at_most) => RejectionPolicy::NewThread { at_most },
            Policy::Custom => custom(Arc::clone(ledger), rng.fork()),
        }
    }
}

/// Gives back, drops or runs, as it comes.
fn custom(ledger: Arc<Ledger>, rng: Rng) -> RejectionPolicy {
    let rng = Mutex::new(rng);
    RejectionPolicy::custom(move |task: Task, refusal: RejectionContext<'_>| {
        let choice = rng.lock().unwrap_or_else(PoisonError::into_inner).below(3);
        match choice {
            0 => return refusal.give_back(task),
            1 => Place::Policy.enter(|| drop(task)),
            _ => Place::Policy.enter(|| drop(task.run())),
        }
        ledger.round.kept_by_policy();
        Ok(())
    })
}

impl End {
    pub(crate) fn name(self) -> &'static str {
        match self {
            End::Shutdown => "end shutdown",
            End::ShutdownNow => "end shutdown_now",
            End::ShutdownThenNow => "end shutdown, then now",
            End::Close => "end close",
            End::FromWithin => "end from within a task",
            End::Drop => "end drop of the last handle",
        }
    }
}
