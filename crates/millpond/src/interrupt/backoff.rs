//! Backoff: spinning and yielding for a moment before a wait parks.
//!
//! A thread that finds a queue empty or full, or a task unfinished, may be a moment early. Parking and waking
//! up costs 5 to 50 µs, and most elements come sooner. There are two ways to pass the moment, and each is
//! right where the other is wrong.
//!
//! - **Spin**, if the other side runs on another core. The other side needs a few hundred nanoseconds for its
//!   step. A yield that lets a third thread run takes ten times as long, and separates two threads that
//!   serve each other. A short spin, of 15 pauses, sometimes ends too soon, and that costs a lot: with two
//!   threads on each side of a queue of one element there were 1.1 context switches per message, and 0.1 with
//!   127 pauses.
//! - **Yield**, if the other side waits for the core that we spin on. Spinning is useless there, and a longer
//!   spin is worse: two threads that share a core took 5 to 7 µs per message with 15 pauses, and
//!   10 to 14 with 127.
//!
//! A thread does not know beforehand which is the case, so it remembers how its last waits ended
//! ([`SpinHistory`]). After a few failed long spins it spins briefly, and tries a long spin again now and
//! then. If the process has one CPU it never spins. The history belongs to the thread and not to the queue,
//! because it depends on the core that the thread runs on.
//!
//! # How often a spin checks
//!
//! - **At doubling intervals** while it waits for an element or for room: [`backoff`]. A later check
//!   finds more elements, and takes the cache line from the other side less often.
//! - **All the time** if a round trip depends on it, as when a thread joins a task or a worker searches for a
//!   task: [`poll_tight`], [`search`]. With doubling intervals an element that comes after 200 ns would be found after
//!   400, and one round trip in ten took half as long again.
//!
//! # Yields only where they pay
//!
//! A yield hands the CPU to any thread that wants it, on a busy machine for a whole time slice. So all yields go
//! through [`contention`]. It measures them, and forbids them for a while in the whole process once yields have lost
//! the CPU. Searches and joins, whose latency is noticed, also ask it before whether other processes want the CPUs. A thread whose last waits were nearly all long does not yield either: it would only burn CPU (BACKOFF-4).
//! A wait that parked is not always long. If many threads share few CPUs, a thread that yields often gets no turn
//! before it parks, and is woken a moment later. When such threads stopped yielding they paid for a wake-up with each
//! message: eight of them at a queue of capacity 1 on two CPUs used up to 2.5 times the CPU.
//!
//! # Searching workers
//!
//! An idle worker may search for longer than other waits spin ([`Search`]). A caller that waits for each task
//! before it submits the next one does something in between. Waking a worker takes 25 µs on a virtual machine
//! and costs the caller a system call. How long a worker searches depends on how soon tasks came after its last
//! eight searches began ([`SearchHistory`]):
//!
//! | tasks came soon | the worker |
//! |---|---|
//! | 6 to 8 times | spins, then yields for up to [`MAX_BUDGET`] |
//! | 3 to 5 times | spins |
//! | 0 to 2 times | parks at once |
//!
//! - **BACKOFF-1** A worker never searches for longer than [`MAX_BUDGET`], and never yields while the CPU is
//!   contended. After a yield that lost the CPU it checks once more, and parks.
//! - **BACKOFF-2** A task has come soon if a search found it. It has also come soon if the worker was woken for it within
//!   [`SOON`] of the start of its search while it might yield: a spin alone does not last that long. So a worker that parks
//!   at once learns that searching would pay again.
//! - **BACKOFF-3** If a search found nothing, and the worker was not woken for a task before its next search, then no task
//!   has come soon after that search.
//! - **BACKOFF-4** A thread yields only if at least three of its last eight waits, searches excepted, were short.
//!   Otherwise it retries once in [`RETRY_EVERY`] waits. A wait is short if it succeeded before it parked, or within
//!   [`SHORT_PARK`] after it parked while the thread might yield. A wait that parked and whose end is unknown is long.
//!
//! # In models
//!
//! Shuttle checks three times, loom once. Loom does not check in joins at all, because models have too many joins to
//! explore. That loses nothing. The check of a join is one acquiring read of the task's state (`[T-out]` of
//! `millpond_raw::task`), which loom covers in its models of the task cell. If the check sees the end, the join returns
//! as a late join does. Otherwise it goes on as if it had not checked. No other thread knows of the check. The same
//! holds for [`backoff`]: `is_ready` is a hint without consequences, and `attempt` repeats the step that was tried
//! before, complete in itself. Other threads know of searching workers only: a push wakes no worker while one searches.

use crate::thread::contention::{self, Yielded};
use millpond_raw::sync::{hint, local, spins, thread};
use millpond_raw::timestamp::{self, Timestamp};
use std::cell::Cell;
use std::time::Duration;

/// The pauses of a long spin, about 5 µs.
const LONG_SPIN: u32 = 127;

/// The pauses of a spin after long ones have failed.
const SHORT_SPIN: u32 = 15;

/// The pauses between two checks of a tight poll, about 50 ns: as long as it takes to read a cache line that
/// another core writes.
const TIGHT_PAUSES: u32 = 2;

/// How often a wait yields before it parks.
const MAX_YIELDS: u32 = 64;

/// After this many failed long spins in a row, spins are short.
const MAX_FAILED_SPINS: u32 = 4;

/// One spin in this many is long even then, because threads migrate to other cores.
const RETRY_EVERY: u32 = 16;

/// How many of the last eight waits must have been short for yields to pay (BACKOFF-4).
const MIN_HITS: u32 = 3;

/// How many of the last eight searches must have found a task soon for the worker to yield.
const MIN_HITS_TO_YIELD: u32 = 6;

/// The longest search (BACKOFF-1).
const MAX_BUDGET: Duration = Duration::from_micros(64);

/// If a worker lost its CPU before it found a task, and finds fewer tasks than this, the loss has helped no other thread. A
/// producer that has a CPU for a time slice submits thousands.
const MIN_BACKLOG: usize = 8;

/// If a parked worker is woken for a task within this time, a search would have found the task: the rest is the latency of
/// the wake-up.
const SOON: Duration = Duration::from_micros(100);

/// A parked thread that is woken within this time would have succeeded while it yielded: [`MAX_YIELDS`] take half of it,
/// and the rest is the latency of the wake-up.
const SHORT_PARK: Duration = Duration::from_micros(60);

/// How often a searching worker, or a wait for an element or for room, checks in a model. Loom explores every
/// schedule, and gets one check only.
const CHECKS_IN_MODELS: u32 = if cfg!(millpond_loom) { 1 } else { 3 };

/// The same for joins. A model has more of them, so loom gets none: see the header.
const JOIN_CHECKS_IN_MODELS: u32 = if cfg!(millpond_loom) { 0 } else { 3 };

local! {
    static HISTORY: Cell<SpinHistory> = Cell::new(SpinHistory::NEW);
}

local! {
    static SEARCHES: Cell<SearchHistory> = Cell::new(SearchHistory::NEW);
}

local! {
    /// The number of searches of this thread that found nothing, since it last [told](Search::take_counts).
    static FAILED: Cell<u64> = Cell::new(0);
}

/// How the last waits of a thread ended, other than searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpinHistory {
    /// Failed long spins, and short ones since then; 0 after a long spin that succeeded.
    failed: u32,
    /// Long waits since the last short one.
    long: u32,
    /// Whether the last eight waits were short, one bit for each.
    hits: u8,
    /// When the last wait parked, if its end is unknown.
    parked: Option<Timestamp>,
}

/// How a wait of a thread ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitEnd {
    WhileSpinning,
    WhileYielding,
    /// While it yielded, and the last yield lost the CPU to threads of our own.
    AfterExcusedLoss,
    Parked,
}

impl SpinHistory {
    const NEW: SpinHistory = SpinHistory {
        failed: 0,
        long: 0,
        hits: u8::MAX,
        parked: None,
    };

    /// How many pauses the next spin has.
    fn pauses(self) -> u32 {
        if self.failed < MAX_FAILED_SPINS || self.failed % RETRY_EVERY == 0 {
            LONG_SPIN
        } else {
            SHORT_SPIN
        }
    }

    /// Whether the next wait yields after its spin (BACKOFF-4).
    fn yields(self) -> bool {
        self.hits.count_ones() >= MIN_HITS || self.long % RETRY_EVERY == 0
    }

    /// Records whether a wait was short.
    fn note(self, is_short: bool) -> SpinHistory {
        SpinHistory {
            long: if is_short {
                0
            } else {
                self.long.wrapping_add(1)
            },
            hits: self.hits << 1 | u8::from(is_short),
            parked: None,
            ..self
        }
    }

    /// A wait begins. If the one before it parked, its end is unknown (BACKOFF-4).
    fn begin(self) -> SpinHistory {
        if self.parked.is_some() {
            self.note(false)
        } else {
            self
        }
    }

    /// A wait that parked has succeeded. `may_yield` says whether it would have yielded that long.
    fn woken(self, now: Timestamp, may_yield: bool) -> SpinHistory {
        match self.parked {
            None => self,
            Some(start) => self.note(may_yield && is_within(start, now, SHORT_PARK)),
        }
    }

    /// The history after a wait that succeeded while it spun or yielded.
    fn after_success(self, is_spinning: bool) -> SpinHistory {
        let failed = if is_spinning && self.pauses() == LONG_SPIN {
            0
        } else {
            self.failed.wrapping_add(1)
        };
        SpinHistory { failed, ..self }.note(true)
    }

    /// The history after spinning and yielding. A wait for which nothing came says nothing about spinning: `failed` counts only
    /// waits that succeeded late.
    fn after(self, end: WaitEnd, now: impl FnOnce() -> Timestamp) -> SpinHistory {
        match end {
            WaitEnd::WhileSpinning => self.after_success(true),
            WaitEnd::WhileYielding | WaitEnd::AfterExcusedLoss => self.after_success(false),
            WaitEnd::Parked => SpinHistory {
                parked: Some(now()),
                ..self
            },
        }
    }
}

/// How soon tasks came after the last searches of a worker began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SearchHistory {
    /// The start of the last search, if it found nothing and no task has come since.
    pending: Option<Timestamp>,
    /// Whether a task came soon, one bit for each of the last eight searches.
    hits: u8,
}

/// What a worker without a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchPlan {
    Park,
    Spin,
    SpinAndYield,
}

impl SearchHistory {
    const NEW: SearchHistory = SearchHistory {
        pending: None,
        hits: u8::MAX,
    };

    fn plan(self) -> SearchPlan {
        match self.hits.count_ones() {
            MIN_HITS_TO_YIELD.. => SearchPlan::SpinAndYield,
            MIN_HITS.. => SearchPlan::Spin,
            _ => SearchPlan::Park,
        }
    }

    fn after(self, is_hit: bool) -> SearchHistory {
        SearchHistory {
            pending: None,
            hits: self.hits << 1 | u8::from(is_hit),
        }
    }

    /// A search begins: the task of the one before it has not come (BACKOFF-3).
    fn begin(self) -> SearchHistory {
        if self.pending.is_some() {
            self.after(false)
        } else {
            self
        }
    }

    /// The worker was woken for a task (BACKOFF-2). `may_yield` says whether a search would have lasted that long.
    fn woken(self, now: Timestamp, may_yield: bool) -> SearchHistory {
        let Some(start) = self.pending else {
            return self;
        };
        self.after(may_yield && is_within(start, now, SOON))
    }
}

/// Whether `now` is less than `time` after `start`. False if the counter has gone back, as after a suspend of the machine: it
/// might take any time to catch up.
fn is_within(start: Timestamp, now: Timestamp, time: Duration) -> bool {
    now >= start && u128::from(now.nanos_since(start)) < time.as_nanos()
}

/// How often a spin checks.
#[derive(Clone, Copy)]
enum SpinPace {
    Doubling,
    Tight,
}

/// Spins at doubling intervals, then yields, and calls `attempt` whenever `is_ready` says so. `None` if no attempt
/// succeeded.
pub(crate) fn backoff<R>(
    is_ready: impl Fn() -> bool,
    attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    spin_then_yield(SpinPace::Doubling, is_ready, attempt)
}

/// The same, but checks all the time while it spins.
pub(crate) fn poll_tight<R>(
    is_ready: impl Fn() -> bool,
    attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    spin_then_yield(SpinPace::Tight, is_ready, attempt)
}

/// Futile spins and yields of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchCounts {
    /// Searches that found nothing.
    pub(crate) futile_spins: u64,
    /// Yields that lost the CPU, as [`contention`] counts them.
    pub(crate) preempted_yields: u64,
}

/// A search of an idle worker for a task.
#[derive(Debug)]
#[must_use = "it has only been planned"]
pub(crate) struct Search {
    start: Timestamp,
    yields: bool,
}

impl Search {
    /// Plans the next search of the calling worker; `None` if it should park at once.
    pub(crate) fn begin() -> Option<Search> {
        if spins() == 0 {
            // Models search each time, and measure nothing.
            return Some(Search {
                start: Timestamp::from_count(0),
                yields: false,
            });
        }
        let start = timestamp::now();
        let history = SEARCHES.with(Cell::get).begin();
        let pending = Some(start);
        SEARCHES.with(|own| own.set(SearchHistory { pending, ..history }));
        let yields = match history.plan() {
            SearchPlan::Park => return None,
            SearchPlan::Spin => false,
            SearchPlan::SpinAndYield => true,
        };
        Some(Search { start, yields })
    }

    /// Searches: spins, checking all the time, and yields if that has paid of late. `tasks_left` is called if a task was found
    /// after a yield that lost the CPU: if few are left, the found task has waited for this worker alone.
    pub(crate) fn run<R>(
        self,
        is_ready: impl Fn() -> bool,
        attempt: impl FnMut() -> Option<R>,
        tasks_left: impl FnOnce() -> usize,
    ) -> Option<R> {
        if spins() == 0 {
            return check_in_model(CHECKS_IN_MODELS, is_ready, attempt);
        }
        let is_in_budget = || is_within(self.start, timestamp::now(), MAX_BUDGET);
        let continues = |_| self.yields && is_in_budget();
        let (got, end) = spin_and_yield(SpinPace::Tight, is_ready, attempt, continues);
        if end == WaitEnd::AfterExcusedLoss && tasks_left() < MIN_BACKLOG {
            contention::record_late();
        }
        if got.is_some() {
            SEARCHES.with(|own| own.set(own.get().after(true)));
            HISTORY.with(|own| own.set(own.get().after(end, timestamp::now)));
        } else {
            FAILED.with(|own| own.set(own.get() + 1));
        }
        got
    }

    /// What the calling thread has counted since it last asked.
    pub(crate) fn take_counts() -> SearchCounts {
        SearchCounts {
            futile_spins: FAILED.with(|own| own.replace(0)),
            preempted_yields: contention::take_losses(),
        }
    }

    /// Records that the calling worker was woken for a task after a search that failed.
    pub(crate) fn record_wakeup() {
        if spins() > 0 {
            let would_search = contention::may_yield() && !contention::was_crowded();
            SEARCHES.with(|own| own.set(own.get().woken(timestamp::now(), would_search)));
        }
    }
}

/// Models check a few times, and yield in between, so that they cover a wait that succeeds before it parks, and
/// elements that come meanwhile. The length of a wait has no meaning there, so nothing is recorded.
fn check_in_model<R>(
    checks: u32,
    is_ready: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    (0..checks).find_map(|check| {
        if check > 0 {
            thread::yield_now();
        }
        if is_ready() { attempt() } else { None }
    })
}

/// A wait that is not a search.
fn spin_then_yield<R>(
    pace: SpinPace,
    is_ready: impl Fn() -> bool,
    attempt: impl FnMut() -> Option<R>,
) -> Option<R> {
    if spins() == 0 {
        let checks = match pace {
            SpinPace::Doubling => CHECKS_IN_MODELS,
            SpinPace::Tight => JOIN_CHECKS_IN_MODELS,
        };
        return check_in_model(checks, is_ready, attempt);
    }
    let history = HISTORY.with(Cell::get).begin();
    HISTORY.with(|own| own.set(history));
    let may_yield = history.yields();
    let continues = |yields| may_yield && yields < MAX_YIELDS;
    let (got, end) = spin_and_yield(pace, is_ready, attempt, continues);
    HISTORY.with(|own| own.set(own.get().after(end, timestamp::now)));
    got
}

/// Records that the calling thread has got what it parked for (BACKOFF-4), if it spun before.
pub(super) fn record_wakeup() {
    if HISTORY.with(Cell::get).parked.is_some() {
        let may_yield = contention::may_yield();
        HISTORY.with(|own| own.set(own.get().woken(timestamp::now(), may_yield)));
    }
}

/// Spins, then yields while `continues` says so, given the number of yields, and while the CPU is not contended, nor the machine
/// crowded if latency counts.
fn spin_and_yield<R>(
    pace: SpinPace,
    is_ready: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Option<R>,
    continues: impl Fn(u32) -> bool,
) -> (Option<R>, WaitEnd) {
    let mut check = || if is_ready() { attempt() } else { None };
    let pauses_in_all = if contention::has_one_cpu() {
        0
    } else {
        HISTORY.with(Cell::get).pauses()
    };
    let mut spun = 0;
    while spun < pauses_in_all {
        let pauses = match pace {
            // One more than all before: twice as many as the last time.
            SpinPace::Doubling => spun + 1,
            SpinPace::Tight => TIGHT_PAUSES,
        };
        (0..pauses).for_each(|_| hint::spin_loop());
        if let Some(got) = check() {
            return (Some(got), WaitEnd::WhileSpinning);
        }
        spun += pauses;
    }
    let mut yields = 0;
    let is_crowded = || matches!(pace, SpinPace::Tight) && contention::is_crowded();
    while continues(yields) && contention::may_yield() && !is_crowded() {
        let yielded = contention::yield_now();
        if let Some(got) = check() {
            let end = match yielded {
                Yielded::Excused => WaitEnd::AfterExcusedLoss,
                Yielded::Kept | Yielded::Lost => WaitEnd::WhileYielding,
            };
            return (Some(got), end);
        }
        if yielded != Yielded::Kept {
            break;
        }
        yields += 1;
    }
    (None, WaitEnd::Parked)
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
