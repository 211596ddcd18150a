//! The table of candidates: which of them does which work.

use super::abroad::Executor;
use super::{Work, run};
use crate::harness::Standing::{self, Ours, Peer};
use crate::harness::{Absent, Candidate, Sample};
use crate::peers::pool::async_executor::AsyncExecutor;
use crate::peers::pool::awake::Awake;
use crate::peers::pool::blocking::Blocking;
use crate::peers::pool::claiming::Claiming;
use crate::peers::pool::executors::Executors;
use crate::peers::pool::futures::Futures;
use crate::peers::pool::hand_rolled::{Crossbeam, Flume, HandRolled, Kanal, StdMpsc};
use crate::peers::pool::millpond::{Millpond, WithoutMetrics};
use crate::peers::pool::rayon::Rayon;
use crate::peers::pool::rusty_pool::RustyPool;
use crate::peers::pool::thread_per_task::ThreadPerTask;
use crate::peers::pool::threadfin::Threadfin;
use crate::peers::pool::threadpool::Threadpool;
use crate::peers::pool::{Pool, Queue, WhenFull, tokio};
use anyhow::Result;

/// One pool, and what can be asked of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) standing: Standing,
    pub(super) fits: fn(Work) -> bool,
    pub(super) run: Runner,
}

/// Does a number of operations in this process.
pub(super) type RunHere = fn(Work, u64) -> Result<Sample>;

/// Where it does them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runner {
    /// In this process.
    Here(RunHere),
    /// In a guest.
    Abroad(Executor),
    /// Nowhere, for this reason.
    Nowhere(&'static str),
}

const fn entry<P: Pool>(standing: Standing, fits: fn(Work) -> bool) -> Entry {
    Entry {
        name: P::NAME,
        standing,
        fits,
        run: Runner::Here(run::<P>),
    }
}

const fn abroad(executor: Executor, standing: Standing, fits: fn(Work) -> bool) -> Entry {
    Entry {
        name: executor.name,
        standing,
        fits,
        run: Runner::Abroad(executor),
    }
}

fn without_help(work: Work) -> bool {
    !work.waiter_helps()
}

fn without_help_or_bound(work: Work) -> bool {
    !work.waiter_helps() && !work.is_bounded()
}

/// Trips after a pause are the same trips: their allocations were counted without it.
fn paused(work: Work) -> bool {
    matches!(work, Work::Trip { pause: Some(_), .. })
}

/// One of each kind is enough where every pause takes its time: what is not asked there is like one that is.
fn without_help_bound_or_pause(work: Work) -> bool {
    without_help_or_bound(work) && !paused(work)
}

fn without_help_or_pause(work: Work) -> bool {
    without_help(work) && !paused(work)
}

/// Where a caller waits, and its handle makes a difference.
fn waits(work: Work) -> bool {
    matches!(work, Work::JoinAll) || trips(work)
}

fn trips(work: Work) -> bool {
    matches!(work, Work::Trip { here: false, .. })
}

/// A thousand tasks that wait to be joined would be a thousand threads.
fn few_at_once(work: Work) -> bool {
    unbounded(work) || trips(work) && !paused(work)
}

fn unbounded(work: Work) -> bool {
    matches!(
        work,
        Work::Fire {
            queue: Queue::Unbounded,
            ..
        }
    )
}

/// Why `forte` is in the table and in no row: see [`crate::peers::pool`].
const NO_FORTE: &str = "the versions that Rust 1.95 builds run every task in the thread that brings \
                        it, and newer ones need Rust 1.96";

/// Where a hand-off would have the caller run tasks, it would run nearly all of them.
fn blocking(work: Work) -> bool {
    let Work::Fire { queue, .. } = work else {
        return false;
    };
    matches!(queue, Queue::Bounded(_, WhenFull::Wait))
}

const HOLDS_NOTHING: Standing = Standing::Reference {
    because: "its queue holds nothing: each task waits for a worker",
};

const LIKE_THE_PEERS: Standing = Standing::Reference {
    because: "it keeps no figures, as none of the peers does; what it is judged by keeps them",
};

/// THE table.
pub(super) const ENTRIES: &[Entry] = &[
    entry::<Millpond>(Ours, |_| true),
    entry::<WithoutMetrics>(LIKE_THE_PEERS, unbounded),
    entry::<HandRolled<Crossbeam>>(Peer, without_help),
    entry::<HandRolled<Kanal>>(Peer, without_help),
    entry::<HandRolled<Flume>>(Peer, without_help_or_pause),
    entry::<HandRolled<StdMpsc>>(Peer, without_help),
    entry::<Awake<HandRolled<Crossbeam>>>(Peer, waits),
    entry::<Awake<HandRolled<Kanal>>>(Peer, waits),
    entry::<Awake<tokio::SpawnBlocking>>(Peer, waits),
    entry::<Awake<Rayon>>(Peer, waits),
    entry::<Claiming>(Peer, Work::waiter_helps),
    entry::<Rayon>(Peer, without_help_or_bound),
    entry::<tokio::SpawnBlocking>(Peer, without_help_or_bound),
    entry::<tokio::Spawn>(Peer, without_help_or_bound),
    entry::<Threadpool>(Peer, without_help_or_bound),
    entry::<RustyPool>(Peer, without_help_bound_or_pause),
    entry::<Threadfin>(Peer, without_help_or_pause),
    entry::<Executors>(Peer, without_help_bound_or_pause),
    entry::<Futures>(Peer, without_help_bound_or_pause),
    entry::<AsyncExecutor>(Peer, without_help_bound_or_pause),
    entry::<Blocking>(Peer, without_help_or_bound),
    entry::<ThreadPerTask>(Peer, few_at_once),
    Entry {
        name: "forte",
        standing: Peer,
        fits: unbounded,
        run: Runner::Nowhere(NO_FORTE),
    },
    abroad(Executor::JAVA_LINKED, Peer, |_| true),
    abroad(Executor::JAVA_ARRAY, Peer, Work::is_bounded),
    abroad(Executor::JAVA_TRANSFER, Peer, without_help_bound_or_pause),
    abroad(Executor::JAVA_HAND_OFF, Peer, |work| {
        trips(work) && !paused(work)
    }),
    abroad(Executor::JAVA_HAND_OFF, HOLDS_NOTHING, blocking),
    abroad(Executor::JAVA_FORK_JOIN, Peer, without_help_or_bound),
    abroad(Executor::JAVA_25_LINKED, Peer, |_| true),
    abroad(Executor::JAVA_25_ARRAY, Peer, Work::is_bounded),
    abroad(Executor::JAVA_25_FORK_JOIN, Peer, without_help_or_bound),
    abroad(Executor::JAVA_25_VIRTUAL, Peer, |work| {
        without_help_or_bound(work) && work != Work::Idle
    }),
    abroad(Executor::GO_GOROUTINES, Peer, |work| {
        without_help_or_bound(work) && work != Work::Idle
    }),
    abroad(Executor::GO_CHANNEL, Peer, without_help),
    abroad(Executor::PYTHON_THREADS, Peer, without_help_or_bound),
    abroad(Executor::MONO_THREADS, Peer, without_help_or_bound),
];

/// The candidate of a work.
pub(super) fn candidate(entry: &'static Entry, work: Work) -> Candidate {
    Candidate {
        name: entry.name,
        standing: entry.standing,
        // A pool that does nothing allocates nothing, and to see that takes seconds.
        counts_allocations: matches!(entry.run, Runner::Here(_))
            && work != Work::Idle
            && !paused(work),
        run: match entry.run {
            Runner::Here(run) => Box::new(move |operations| run(work, operations)),
            Runner::Abroad(executor) => Box::new(move |operations| executor.run(work, operations)),
            Runner::Nowhere(reason) => Box::new(move |_| Err(Absent(reason.into()).into())),
        },
    }
}
