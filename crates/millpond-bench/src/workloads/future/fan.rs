//! Results of tasks of a pool, put together.
//!
//! | work | what is done |
//! |---|---|
//! | all | [`GROUP`] tasks are submitted, and one result is made of all of theirs, which this thread waits for |
//! | fan | a request is a task, then [`PARTS`] tasks that need its result, then one that adds theirs up: [`IN_FLIGHT`] of them at the same time |
//!
//! Every pool has [`WORKERS`] threads and is open and warm. Peers are used as they are for this: futures are joined with
//! `join_all`, and a request is a task that awaits others.

use crate::harness::Sample;
use crate::peers::pool::hand_rolled::{HandRolled, Kanal};
use crate::peers::pool::rayon::Rayon;
use crate::peers::pool::{Pool, Queue, WORKERS};
use crate::pool_threads::PoolThreads;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{RemoteHandle, join_all};
use futures::task::SpawnExt;
use millpond::executor::{Executor, Lifecycle};
use millpond::forkjoin::ForkJoinPool;
use millpond::future::{Completable, all_of};
use millpond::pool::ThreadPool;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How many tasks a group has.
pub const GROUP: u64 = 10_000;

/// How many tasks need the result of the first.
pub const PARTS: u64 = 8;

/// How many requests are there at the same time.
pub const IN_FLIGHT: u64 = 64;

/// After this long without a task a pool is asleep.
const SETTLES_IN: Duration = Duration::from_millis(2);

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

const FINE: &str = "a task of the bench does not panic, and its pool is open";

/// Something that puts the results of tasks together.
pub trait Fans: Sized {
    /// Its name.
    const NAME: &'static str;

    /// Opens it.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    fn open() -> Result<Self>;

    /// The results of tasks with these numbers.
    fn all(&self, numbers: Range<u64>, tally: &'static Tally) -> Vec<u64>;

    /// Closes it.
    fn close(self);
}

/// Something whose tasks can wait for others without a thread.
pub trait Requests: Fans {
    /// The results of requests with these numbers.
    fn requests(&self, numbers: Range<u64>) -> Vec<u64>;
}

/// So many tasks, in whole groups.
///
/// # Errors
///
/// If a task does not run, or a result is wrong.
pub fn all<F: Fans>(tasks: u64) -> Result<Sample> {
    let groups = tasks.div_ceil(GROUP).max(1);
    let tally = Tally::take();
    let sample = measure::<F>(groups * GROUP, |pool| {
        for group in 0..groups {
            // The tally counts from 1.
            let numbers = group * GROUP + 1..(group + 1) * GROUP + 1;
            let results = pool.all(black_box(numbers.clone()), tally);
            let (came, sum) = (results.len() as u64, results.iter().sum::<u64>());
            let expected: u64 = numbers.sum();
            ensure!(
                (came, sum) == (GROUP, expected),
                "{came} results of {GROUP} are {sum} together instead of {expected}"
            );
        }
        Ok(())
    })?;
    tally.check(sample.operations)?;
    Ok(sample)
}

/// So many requests, in whole batches.
///
/// # Errors
///
/// If a result is wrong.
pub fn fan<F: Requests>(requests: u64) -> Result<Sample> {
    let batches = requests.div_ceil(IN_FLIGHT).max(1);
    measure::<F>(batches * IN_FLIGHT, |pool| {
        for batch in 0..batches {
            let numbers = batch * IN_FLIGHT..(batch + 1) * IN_FLIGHT;
            let results = pool.requests(black_box(numbers.clone()));
            let expected = numbers.map(|number| number * (1..=PARTS).sum::<u64>());
            ensure!(
                results.iter().copied().eq(expected),
                "the results of {IN_FLIGHT} requests are {results:?}"
            );
        }
        Ok(())
    })
}

/// Opens it, warms it up, and says what the work took it and this thread.
fn measure<F: Fans>(operations: u64, work: impl FnOnce(&F) -> Result<()>) -> Result<Sample> {
    let warm = Tally::take();
    let (opened, own) = PoolThreads::of(|| -> Result<F> {
        let pool = F::open()?;
        // Threads that are started when they are needed are there after this.
        ensure!(pool.all(1..101, warm).len() == 100, "results are lost");
        Ok(pool)
    });
    let pool = opened?;
    std::thread::sleep(SETTLES_IN);
    let before = own.usage();
    let ((done, elapsed), by_the_caller) = Usage::during(|| {
        let start = Instant::now();
        let done = work(&pool);
        (done, start.elapsed())
    });
    std::thread::sleep(SETTLES_IN);
    let by_the_pool = own.usage() - before;
    pool.close();
    own.wait_until_gone(ENDS_IN);
    done?;
    warm.check(100)?;
    Ok(Sample {
        operations,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

fn task(number: u64, tally: &'static Tally) -> impl FnOnce() -> u64 + Send + 'static {
    move || {
        tally.count(number);
        number
    }
}

fn all_on(
    executor: &(impl Executor + Clone + 'static),
    numbers: Range<u64>,
    tally: &'static Tally,
) -> Vec<u64> {
    let supply = |number| Completable::supply_on(executor, task(number, tally)).expect(FINE);
    all_of(numbers.map(supply).collect::<Vec<_>>())
        .join()
        .expect(FINE)
}

fn requests_on(executor: &(impl Executor + Clone + 'static), numbers: Range<u64>) -> Vec<u64> {
    let request = |number: u64| {
        let source = Completable::supply_on(executor, move || number).expect(FINE);
        let part = |factor| source.clone().map_on(executor, move |value| value * factor);
        let parts: Vec<_> = (1..=PARTS).map(part).collect();
        all_of(parts).map_on(executor, |parts| parts.into_iter().sum::<u64>())
    };
    let requests: Vec<_> = numbers.map(request).collect();
    let results = requests.into_iter();
    results.map(|result| result.join().expect(FINE)).collect()
}

/// Ours, on a fork-join pool, as by default. It takes the oldest task first, as that of Java beside it does.
#[derive(Debug)]
pub struct OnForkJoin(ForkJoinPool);

impl Fans for OnForkJoin {
    const NAME: &'static str = "millpond on a fork-join pool";

    fn open() -> Result<Self> {
        let pool = ForkJoinPool::builder("bench").parallelism(WORKERS);
        Ok(OnForkJoin(pool.fifo(true).build()?))
    }

    fn all(&self, numbers: Range<u64>, tally: &'static Tally) -> Vec<u64> {
        all_on(&self.0, numbers, tally)
    }

    fn close(self) {
        self.0.close().expect(FINE);
    }
}

impl Requests for OnForkJoin {
    fn requests(&self, numbers: Range<u64>) -> Vec<u64> {
        requests_on(&self.0, numbers)
    }
}

/// Ours, on a thread pool.
#[derive(Debug)]
pub struct OnThreadPool(ThreadPool);

impl Fans for OnThreadPool {
    const NAME: &'static str = "millpond on a thread pool";

    fn open() -> Result<Self> {
        let pool = ThreadPool::builder("bench").core(WORKERS).max(WORKERS);
        let pool = pool.queue(millpond::pool::Queue::unbounded()).build()?;
        pool.prestart_all_core()?;
        Ok(OnThreadPool(pool))
    }

    fn all(&self, numbers: Range<u64>, tally: &'static Tally) -> Vec<u64> {
        all_on(&self.0, numbers, tally)
    }

    fn close(self) {
        self.0.close().expect(FINE);
    }
}

impl Requests for OnThreadPool {
    fn requests(&self, numbers: Range<u64>) -> Vec<u64> {
        requests_on(&self.0, numbers)
    }
}

/// `tokio::spawn`, on a runtime with several workers.
#[derive(Debug)]
pub struct Tokio(Runtime);

impl Fans for Tokio {
    const NAME: &'static str = "tokio spawn and join_all";

    fn open() -> Result<Self> {
        let mut builder = Builder::new_multi_thread();
        Ok(Tokio(builder.worker_threads(WORKERS).build()?))
    }

    fn all(&self, numbers: Range<u64>, tally: &'static Tally) -> Vec<u64> {
        self.0.block_on(async {
            let spawn = |number| {
                let task = task(number, tally);
                tokio::spawn(async move { task() })
            };
            let results = join_all(numbers.map(spawn)).await.into_iter();
            results.map(|result| result.expect(FINE)).collect()
        })
    }

    fn close(self) {
        drop(self.0);
    }
}

impl Requests for Tokio {
    fn requests(&self, numbers: Range<u64>) -> Vec<u64> {
        let request = |number: u64| async move {
            let source = tokio::spawn(async move { number }).await.expect(FINE);
            let part = |factor| tokio::spawn(async move { source * factor });
            let parts = join_all((1..=PARTS).map(part)).await.into_iter();
            parts.map(|part| part.expect(FINE)).sum::<u64>()
        };
        self.0.block_on(async {
            let requests = numbers.map(|number| tokio::spawn(request(number)));
            let results = join_all(requests).await.into_iter();
            results.map(|result| result.expect(FINE)).collect()
        })
    }
}

/// A `JoinSet` of tokio's.
#[derive(Debug)]
pub struct TokioJoinSet(Tokio);

impl Fans for TokioJoinSet {
    const NAME: &'static str = "tokio JoinSet";

    fn open() -> Result<Self> {
        Tokio::open().map(TokioJoinSet)
    }

    fn all(&self, numbers: Range<u64>, tally: &'static Tally) -> Vec<u64> {
        let Tokio(runtime) = &self.0;
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for number in numbers {
                let task = task(number, tally);
                tasks.spawn(async move { task() });
            }
            tasks.join_all().await
        })
    }

    fn close(self) {
        self.0.close();
    }
}

/// `futures::executor::ThreadPool`, with handles.
#[derive(Debug)]
pub struct Futures(futures::executor::ThreadPool);

impl Futures {
    fn spawn<F: Future<Output = u64> + Send + 'static>(&self, future: F) -> RemoteHandle<u64> {
        self.0.spawn_with_handle(future).expect(FINE)
    }
}

impl Fans for Futures {
    const NAME: &'static str = "futures ThreadPool and join_all";

    fn open() -> Result<Self> {
        let mut builder = futures::executor::ThreadPool::builder();
        Ok(Futures(builder.pool_size(WORKERS).create()?))
    }

    fn all(&self, numbers: Range<u64>, tally: &'static Tally) -> Vec<u64> {
        let spawn = |number| {
            let task = task(number, tally);
            self.spawn(async move { task() })
        };
        block_on(join_all(numbers.map(spawn)))
    }

    /// Its threads end by themselves soon after.
    fn close(self) {
        drop(self.0);
    }
}

impl Requests for Futures {
    fn requests(&self, numbers: Range<u64>) -> Vec<u64> {
        let request = |number: u64| {
            let pool = Futures(self.0.clone());
            self.spawn(async move {
                let source = pool.spawn(async move { number }).await;
                let part = |factor| pool.spawn(async move { source * factor });
                join_all((1..=PARTS).map(part)).await.into_iter().sum()
            })
        };
        block_on(join_all(numbers.map(request)))
    }
}

/// A pool for closures, and a channel for each result.
#[derive(Debug)]
pub struct WithOneshot<P>(P);

trait Named {
    const NAME: &'static str;
}

impl Named for HandRolled<Kanal> {
    const NAME: &'static str = "kanal, oneshot and join_all";
}

impl Named for Rayon {
    const NAME: &'static str = "rayon spawn, oneshot and join_all";
}

#[allow(private_bounds, reason = "there are two")]
impl<P: Pool + Named> Fans for WithOneshot<P> {
    const NAME: &'static str = <P as Named>::NAME;

    fn open() -> Result<Self> {
        P::open(Queue::Unbounded).map(WithOneshot)
    }

    fn all(&self, numbers: Range<u64>, tally: &'static Tally) -> Vec<u64> {
        let bring = |number| {
            let (sender, receiver) = oneshot::channel();
            let task = task(number, tally);
            self.0.run(move || {
                // The receiver is gone only if the round has failed already.
                let _ = sender.send(task());
            });
            receiver.map(|result| result.expect(FINE))
        };
        block_on(join_all(numbers.map(bring)))
    }

    fn close(self) {
        self.0.close();
    }
}
