//! What does it take to `.await` a task of a pool from tokio?
//!
//! An async program has work that would keep a thread of its runtime busy: it is handed to a pool, and awaited. The
//! runtime sleeps meanwhile, so the answer has to wake it.
//!
//! | candidate | what it is |
//! |---|---|
//! | millpond | `pool.submit(...)?.await` |
//! | tokio spawn_blocking | tokio's own pool for such work |
//! | blocking unblock | smol's |
//! | crossbeam, rayon, and a oneshot | the pool that is there anyway, and `tokio::sync::oneshot` for the answer |
//!
//! - **Round trips** are awaited one by one, in a runtime of one thread, at once or after a pause; times are from before
//!   the submit to after the await.
//! - **Many at once**: so many tasks of a runtime with two workers submit and await, again and again, until all is done.

use crate::figure::Figure;
use crate::harness::{Candidate, Planned, Sample, Standing, Suite, Workload};
use crate::peers::pool::hand_rolled::{Crossbeam, HandRolled};
use crate::peers::pool::{Pool, Queue, WORKERS};
use crate::pool_threads::PoolThreads;
use crate::stats::Quantiles;
use crate::tally::Tally;
use crate::usage::Usage;
use crate::workloads::pool::handles::{nanos, work_for};
use anyhow::{Context, Result, ensure};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::ThreadPool;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "await",
    about: "what it takes to await a pool's task from tokio",
    workloads: || WORKS.map(workload).into(),
    notes: |_| Vec::new(),
};

/// So many tasks of the runtime await at once.
const AT_ONCE: u64 = 64;

/// How tasks are awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// One by one, after a pause or without.
    Trip(Option<Duration>),
    /// Many at once.
    Many,
}

const WORKS: [Work; 3] = [
    Work::Trip(None),
    Work::Trip(Some(Duration::from_micros(200))),
    Work::Many,
];

impl Work {
    fn name(self) -> String {
        match self {
            Work::Trip(None) => "round trip, warm".into(),
            Work::Trip(Some(pause)) => format!("round trip, {pause:?} pauses"),
            Work::Many => format!("{AT_ONCE} await at once"),
        }
    }
}

fn workload(work: Work) -> Workload {
    let arrivals = |pause: Duration| {
        Planned::by(move |time: Duration| {
            Ok(((time * 3).as_nanos() / pause.as_nanos().max(1)).max(8) as u64)
        })
    };
    Workload {
        suite: SUITE.name,
        name: work.name(),
        figures: match work {
            Work::Trip(_) => Figure::quantiles(),
            Work::Many => vec![Figure::nanos("task")],
        },
        most_operations: 200_000,
        stretch: 1,
        planned: match work {
            Work::Trip(pause) => pause.map(arrivals),
            Work::Many => None,
        },
        point: None,
        difference: None,
        candidates: vec![
            candidate::<Millpond>(work, Standing::Ours),
            candidate::<SpawnBlocking>(work, Standing::Peer),
            candidate::<Unblock>(work, Standing::Peer),
            candidate::<WithOneshot<HandRolled<Crossbeam>>>(work, Standing::Peer),
            candidate::<WithOneshot<crate::peers::pool::rayon::Rayon>>(work, Standing::Peer),
        ],
    }
}

/// Something whose tasks can be awaited.
trait Awaits: Sized + Send + Sync + 'static {
    const NAME: &'static str;

    /// The threads that it keeps after it is closed, by how their names begin.
    const KEPT: Option<&'static str> = None;

    fn open() -> Result<Self>;

    /// Runs the closure elsewhere. What is returned is its result.
    fn call<F>(&self, f: F) -> impl Future<Output = u64> + Send
    where
        F: FnOnce() -> u64 + Send + 'static;

    fn close(self);
}

const FINE: &str = "a task of the bench does not panic, and its pool is open";

struct Millpond(ThreadPool);

impl Awaits for Millpond {
    const NAME: &'static str = "millpond";

    fn open() -> Result<Self> {
        let pool = ThreadPool::builder("bench").core(WORKERS).max(WORKERS);
        let pool = pool.queue(millpond::pool::Queue::unbounded()).build()?;
        pool.prestart_all_core()?;
        Ok(Millpond(pool))
    }

    async fn call<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> u64 {
        self.0.submit(f).expect(FINE).await.expect(FINE)
    }

    fn close(self) {
        self.0.close().expect(FINE);
    }
}

/// The runtime in which it is called has the threads.
struct SpawnBlocking;

impl Awaits for SpawnBlocking {
    const NAME: &'static str = "tokio spawn_blocking";

    fn open() -> Result<Self> {
        Ok(SpawnBlocking)
    }

    async fn call<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> u64 {
        tokio::task::spawn_blocking(f).await.expect(FINE)
    }

    fn close(self) {}
}

/// There is one pool in a process, so one of these at a time.
struct Unblock;

static ALONE: Mutex<()> = Mutex::new(());

impl Awaits for Unblock {
    const NAME: &'static str = "blocking unblock";
    const KEPT: Option<&'static str> = Some("blocking-");

    fn open() -> Result<Self> {
        let workers = NonZeroUsize::new(WORKERS).context("a pool has workers")?;
        blocking::set_max_blocking_threads(workers);
        Ok(Unblock)
    }

    async fn call<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> u64 {
        blocking::unblock(f).await
    }

    fn close(self) {}
}

/// A pool, and tokio's channel for one value.
struct WithOneshot<P>(P);

trait Named {
    const NAME: &'static str;
}

impl Named for HandRolled<Crossbeam> {
    const NAME: &'static str = "crossbeam-channel and a oneshot";
}

impl Named for crate::peers::pool::rayon::Rayon {
    const NAME: &'static str = "rayon spawn and a oneshot";
}

impl<P: Pool + Named + Send + 'static> Awaits for WithOneshot<P> {
    const NAME: &'static str = <P as Named>::NAME;

    fn open() -> Result<Self> {
        P::open(Queue::Unbounded).map(WithOneshot)
    }

    async fn call<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> u64 {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.0.run(move || {
            // The receiver is gone only if the round has failed already.
            let _ = sender.send(f());
        });
        receiver.await.expect(FINE)
    }

    fn close(self) {
        self.0.close();
    }
}

fn candidate<A: Awaits>(work: Work, standing: Standing) -> Candidate {
    Candidate {
        name: A::NAME,
        standing,
        counts_allocations: matches!(work, Work::Trip(None)),
        run: Box::new(move |operations| round::<A>(work, operations)),
    }
}

fn runtime(work: Work) -> Result<Runtime> {
    let mut builder = match work {
        Work::Trip(_) => Builder::new_current_thread(),
        Work::Many => Builder::new_multi_thread(),
    };
    builder
        .worker_threads(WORKERS)
        .max_blocking_threads(WORKERS);
    Ok(builder.build()?)
}

/// So many are awaited before the first that counts.
const WARM_UP: u64 = 200;

fn round<A: Awaits>(work: Work, operations: u64) -> Result<Sample> {
    // Some have threads for the whole process, and a number of them.
    let _alone: MutexGuard<'_, ()> = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let warm = Tally::take();
    let (opened, own) = PoolThreads::of(|| -> Result<_> {
        let (runtime, pool) = (runtime(work)?, Arc::new(A::open()?));
        // Threads that are started when they are needed are there after this.
        runtime.block_on(trips(&*pool, warm, None, WARM_UP));
        Ok((runtime, pool))
    });
    let (runtime, pool) = opened?;
    warm.check(WARM_UP)?;
    let kept = A::KEPT.map(PoolThreads::named);
    let used = || -> Usage {
        let kept = kept.as_ref().map_or(Usage::NONE, PoolThreads::usage);
        [own.usage(), kept].into_iter().sum()
    };
    let (tally, before) = (Tally::take(), used());
    let (done, mut by_the_caller) = Usage::during(|| match work {
        Work::Trip(pause) => runtime.block_on(trips(&*pool, tally, pause, operations)),
        Work::Many => many(&runtime, &pool, tally, operations),
    });
    by_the_caller.cpu = by_the_caller.cpu.map(|cpu| cpu.saturating_sub(done.paused));
    std::thread::sleep(SETTLES_IN);
    let by_others = used() - before;
    drop(runtime);
    let pool = Arc::into_inner(pool).context("a task of the runtime holds the pool")?;
    pool.close();
    own.wait_until_gone(ENDS_IN);
    tally.check(done.operations)?;
    let wrong = done.wrong;
    ensure!(wrong == 0, "{wrong} of {operations} results are wrong");
    Ok(Sample {
        operations: done.operations,
        elapsed: done.elapsed,
        usage: [by_the_caller, by_others].into_iter().sum(),
        quantiles: Quantiles::of(&done.times),
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// After this long without a task a pool is asleep.
const SETTLES_IN: Duration = Duration::from_millis(2);

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

#[derive(Debug, Default)]
struct Done {
    operations: u64,
    elapsed: Duration,
    paused: Duration,
    wrong: u64,
    times: Vec<u64>,
}

async fn trips<A: Awaits>(
    pool: &A,
    tally: &'static Tally,
    pause: Option<Duration>,
    trips: u64,
) -> Done {
    let mut done = Done {
        operations: trips,
        ..Done::default()
    };
    for number in 1..=trips {
        done.paused += pause.map(work_for).unwrap_or_default();
        let start = Instant::now();
        let result = pool
            .call(move || {
                tally.count(number);
                number
            })
            .await;
        done.times.push(nanos(start.elapsed()));
        done.wrong += u64::from(result != number);
    }
    done.elapsed = Duration::from_nanos(done.times.iter().sum());
    done
}

/// [`AT_ONCE`] tasks of the runtime share the work.
fn many<A: Awaits>(
    runtime: &Runtime,
    pool: &Arc<A>,
    tally: &'static Tally,
    operations: u64,
) -> Done {
    let share = operations.div_ceil(AT_ONCE).max(1);
    let start = Instant::now();
    let wrong = runtime.block_on(async {
        let tasks: Vec<_> = (0..AT_ONCE)
            .map(|index| {
                let pool = Arc::clone(pool);
                tokio::spawn(async move {
                    let mut wrong = 0;
                    for number in index * share + 1..=(index + 1) * share {
                        let task = move || {
                            tally.count(number);
                            number
                        };
                        wrong += u64::from(pool.call(task).await != number);
                    }
                    wrong
                })
            })
            .collect();
        let mut wrong = 0;
        for task in tasks {
            wrong += task.await.expect(FINE);
        }
        wrong
    });
    Done {
        operations: share * AT_ONCE,
        elapsed: start.elapsed(),
        wrong,
        ..Done::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_returns_what_is_awaited_and_runs_each_task_once() {
        for work in WORKS {
            for candidate in workload(work).candidates {
                let name = format!("{}: {}", work.name(), candidate.name);
                let sample = (candidate.run)(5).unwrap_or_else(|error| panic!("{name}: {error:#}"));
                let expected = if work == Work::Many { AT_ONCE } else { 5 };
                assert_eq!(sample.operations, expected, "{name}");
                let is_timed = matches!(work, Work::Trip(_));
                assert_eq!(sample.quantiles.is_some(), is_timed, "{name}");
            }
        }
    }

    /// Answers something else.
    struct Wrong(Millpond);

    impl Awaits for Wrong {
        const NAME: &'static str = "wrong";

        fn open() -> Result<Self> {
            Millpond::open().map(Wrong)
        }

        async fn call<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> u64 {
            self.0.call(f).await.max(3)
        }

        fn close(self) {
            self.0.close();
        }
    }

    #[test]
    fn an_answer_that_is_wrong_is_found_out() {
        let error = round::<Wrong>(Work::Trip(None), 5).unwrap_err();
        assert_eq!(error.to_string(), "2 of 5 results are wrong");
    }
}
