//! Pools for the usual needs, and how many workers they should have.
//!
//! | preset | workers | queue | when it is full |
//! |---|---|---|---|
//! | [`fixed`] | always `n` | 1024 | rejects |
//! | [`cached`] | as many as are needed, up to `n`; idle ones leave after a minute | none: hand-off | rejects |
//! | [`single`] | one: tasks run in order | 1024 | rejects |
//! | [`scheduled`] | always `n`, for tasks at their time | 1024 | lets due tasks wait |
//! | [`work_stealing`] | up to `n`, which steal from each other | no bound | - |
//! | [`fork_join_per_node`] | a pool of these for each NUMA node, on its CPUs only | no bound | - |
//!
//! The first four are bounded, because an unbounded pool fails by running out of memory, at the worst
//! time. The pools of Java's `Executors`, with unbounded queues and unlimited threads, are in [`java`].
//!
//! Each returns a builder, so everything can still be changed before it is built. [`scheduled`] returns a pool, for its
//! executor has to be built first; its builder is that of [`scheduled_builder`]. And
//! [`fork_join_per_node`] returns a builder for each node.

use crate::forkjoin::{ForkJoinBuilder, ForkJoinPool};
use crate::machine::{CpuList, Machine, Topology};
use crate::manage::PatchError;
use crate::pool::{PoolBuilder, Queue, RejectionPolicy, ThreadPool};
use crate::schedule::{ScheduledBuilder, ScheduledPool};
use crate::thread::{Threads, can_pin};
use std::borrow::Cow;
use std::time::Duration;

/// This number of workers, no more and no less, and at most 1024 waiting tasks.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::preset;
///
/// let pool = preset::fixed("thumbnails", preset::cpu_bound_workers()).build()?;
/// assert_eq!(pool.submit(|| 6 * 7)?.join()?, 42);
///
/// assert!(preset::fixed("thumbnails", 0).build().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "newFixedThreadPool")]
pub fn fixed(name: impl Into<Cow<'static, str>>, workers: usize) -> PoolBuilder {
    ThreadPool::builder(name).core(workers).max(workers)
}

/// A worker for every running task, up to `most`: idle ones are used again and leave after a minute
/// without work. No task waits.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::preset;
///
/// let pool = preset::cached("uploads", 64).build()?;
/// assert_eq!((pool.core(), pool.max()), (0, 64));
/// assert_eq!(pool.submit(|| 6 * 7)?.join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "newCachedThreadPool")]
pub fn cached(name: impl Into<Cow<'static, str>>, most: usize) -> PoolBuilder {
    ThreadPool::builder(name)
        .core(0)
        .max(most)
        .queue(Queue::hand_off())
}

/// One worker: tasks run one after the other, in the order in which they come.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::preset;
///
/// let ledger = preset::single("ledger").build()?;
/// let (one, two) = (ledger.submit(|| 1)?, ledger.submit(|| 2)?);
/// assert_eq!(one.join()? + two.join()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "newSingleThreadExecutor")]
pub fn single(name: impl Into<Cow<'static, str>>) -> PoolBuilder {
    fixed(name, 1)
}

/// Workers that steal from each other, for computations that divide themselves.
///
/// ```
/// use millpond::{forkjoin, preset};
///
/// let pool = preset::work_stealing("mill", preset::cpu_bound_workers()).build()?;
/// assert_eq!(pool.install(|| forkjoin::join(|| 3, || 4)), (3, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "newWorkStealingPool")]
pub fn work_stealing(name: impl Into<Cow<'static, str>>, parallelism: usize) -> ForkJoinBuilder {
    ForkJoinPool::builder(name).parallelism(parallelism)
}

/// A fork-join pool for each node of `topology`, with a worker for each of its CPUs, which runs on these only: `name-0`,
/// `name-1` and so on. A computation stays where its memory is; to use all nodes, give each pool a part.
///
/// Where nodes are unknown, or threads cannot be pinned, it is one pool that runs anywhere.
///
/// ```
/// use millpond::machine::Topology;
/// use millpond::preset;
///
/// for builder in preset::fork_join_per_node("mill", &Topology::read()) {
///     let pool = builder.build()?;
///     assert_eq!(pool.join(|| 3, || 4), (3, 4));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fork_join_per_node(name: &str, topology: &Topology) -> Vec<ForkJoinBuilder> {
    let nodes = topology.nodes();
    if nodes.is_empty() || !can_pin() {
        return vec![ForkJoinPool::builder(name.to_owned())];
    }
    let builder = |(index, cpus): (usize, CpuList)| {
        let name = format!("{name}-{index}");
        let threads = Threads::named(name.clone()).confined(cpus.iter());
        ForkJoinPool::builder(name)
            .parallelism(cpus.len())
            .topology(topology.clone())
            .threads(threads)
    };
    nodes.into_iter().enumerate().map(builder).collect()
}

/// A [`ScheduledPool`] with so many workers of its own.
///
/// A due task that finds no worker waits, up to 1024 in the queue and the others before it, in their
/// order: no accepted task is rejected when its time comes. A caller that submits a task to run at once
/// waits as well when the queue is full.
///
/// The pool of its workers is called `mill-workers` if this is called `mill`, so that a registry by name can have both.
/// The threads are `mill-1`, `mill-2` and so on.
///
/// For other queues, policies and names give it a pool of your own: [`ScheduledPool::owning`].
///
/// ```
/// use millpond::preset;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 2)?;
/// let flour = timers.schedule(Duration::from_millis(1), || "flour")?;
/// assert_eq!(flour.join()?, "flour");
/// assert_eq!((timers.name(), timers.executor().name()), ("mill", "mill-workers"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// An empty name, no workers at all, or more than there can be.
#[doc(alias = "newScheduledThreadPool")]
#[doc(alias = "newSingleThreadScheduledExecutor")]
pub fn scheduled(
    name: impl Into<Cow<'static, str>>,
    workers: usize,
) -> Result<ScheduledPool<ThreadPool>, PatchError> {
    scheduled_builder(name, workers).map(ScheduledBuilder::build)
}

/// The builder of such a scheduled pool, of which everything can still be changed but its executor, which is built
/// already and may fail.
///
/// ```
/// use millpond::preset;
///
/// let timers = preset::scheduled_builder("mill", 2)?.max_pending(100).build();
/// assert_eq!(timers.max_pending(), Some(100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`scheduled`].
pub fn scheduled_builder(
    name: impl Into<Cow<'static, str>>,
    workers: usize,
) -> Result<ScheduledBuilder<ThreadPool>, PatchError> {
    let name = name.into();
    // Two engines in one registry need two names. An empty one is for the builder to reject.
    let own_name = if name.trim().is_empty() {
        name.clone()
    } else {
        format!("{name}-workers").into()
    };
    let pool = fixed(own_name, workers)
        .threads(Threads::named(name.clone()))
        .rejection(RejectionPolicy::Block(Duration::MAX))
        .build()?;
    Ok(ScheduledPool::owning(pool).name(name))
}

/// The best number of workers for tasks that compute: one for each CPU that this process may use, by its
/// affinity and by the quota of its control group.
///
/// ```
/// assert!(millpond::preset::cpu_bound_workers() >= 1);
/// ```
pub fn cpu_bound_workers() -> usize {
    Machine::read().worker_hint().get()
}

/// The number of workers that keep the CPUs busy, if each task waits `wait_over_compute` times as long as it
/// computes: CPUs times one plus that.
///
/// A task of 2 ms that spends 1.5 ms of them in a database has a `wait_over_compute` of 3. A
/// ratio that is negative, infinite or no number counts as 0.
///
/// ```
/// use millpond::preset::{blocking_workers, cpu_bound_workers};
///
/// assert_eq!(blocking_workers(0.0), cpu_bound_workers());
/// assert!(blocking_workers(3.0) >= 4);
/// ```
pub fn blocking_workers(wait_over_compute: f64) -> usize {
    workers_for(Machine::read().effective_cpus(), wait_over_compute)
}

fn workers_for(cpus: f64, wait_over_compute: f64) -> usize {
    let waits = if wait_over_compute.is_finite() {
        wait_over_compute.max(0.0)
    } else {
        0.0
    };
    // The cast saturates, so a huge ratio gives a number that `build` rejects.
    (cpus * (1.0 + waits)).ceil().max(1.0) as usize
}

/// The pools of Java's `Executors`, which reject nothing.
pub mod java {
    use super::{Cow, PoolBuilder, Queue};
    use crate::pool::ThreadPool;

    /// As [`super::fixed`], and any number of tasks wait.
    ///
    /// ```
    /// let pool = millpond::preset::java::fixed("mill", 4).build()?;
    /// assert_eq!(pool.capacity(), None);
    /// # Ok::<(), millpond::manage::PatchError>(())
    /// ```
    #[doc(alias = "newFixedThreadPool")]
    pub fn fixed(name: impl Into<Cow<'static, str>>, workers: usize) -> PoolBuilder {
        super::fixed(name, workers).queue(Queue::unbounded())
    }

    /// As [`super::cached`], with as many threads as it takes.
    ///
    /// ```
    /// let pool = millpond::preset::java::cached("mill").build()?;
    /// assert_eq!(pool.capacity(), Some(0));
    /// # Ok::<(), millpond::manage::PatchError>(())
    /// ```
    #[doc(alias = "newCachedThreadPool")]
    pub fn cached(name: impl Into<Cow<'static, str>>) -> PoolBuilder {
        super::cached(name, ThreadPool::MAX_WORKERS)
    }

    /// As [`super::single`], and any number of tasks wait.
    ///
    /// ```
    /// let pool = millpond::preset::java::single("mill").build()?;
    /// assert_eq!((pool.max(), pool.capacity()), (1, None));
    /// # Ok::<(), millpond::manage::PatchError>(())
    /// ```
    #[doc(alias = "newSingleThreadExecutor")]
    pub fn single(name: impl Into<Cow<'static, str>>) -> PoolBuilder {
        super::single(name).queue(Queue::unbounded())
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_pool_and_its_executor_have_different_names_and_the_threads_the_short_one() {
        let timers = scheduled("bells", 1).unwrap();
        assert_eq!(timers.name(), "bells");
        assert_eq!(timers.executor().name(), "bells-workers");
        let own = || std::thread::current().name().map(str::to_owned);
        let thread = timers.schedule(Duration::ZERO, own).unwrap();
        assert_eq!(thread.join().unwrap().as_deref(), Some("bells-1"));
    }

    #[test]
    fn a_pool_per_node_has_the_cpus_of_its_node() {
        let this = Topology::read();
        let pools = fork_join_per_node("mill", &this);
        assert_eq!(pools.len(), this.nodes().len().max(1));
        // Nodes that this machine does not have: pools can be described, and their threads cannot be started.
        let made_up = Topology::of([[[[60_000], [60_001]]], [[[60_002], [60_003]]]]);
        let pools = fork_join_per_node("mill", &made_up);
        if !can_pin() {
            assert_eq!(pools.len(), 1);
            return;
        }
        for (index, builder) in pools.into_iter().enumerate() {
            let pool = builder.build().unwrap();
            assert_eq!(
                (pool.name(), pool.parallelism()),
                (&*format!("mill-{index}"), 2)
            );
            let error = crate::executor::ExecutorExt::submit(&pool, || ()).unwrap_err();
            assert!(
                error.reason.to_string().contains("cannot be pinned"),
                "{}",
                error.reason
            );
            // The caller computes what no thread can be had for.
            assert_eq!(pool.join(|| 3, || 4), (3, 4));
        }
    }

    #[test]
    fn waiting_asks_for_more_workers_and_nonsense_for_none_more() {
        assert_eq!(workers_for(2.0, 0.0), 2);
        assert_eq!(workers_for(2.0, 3.0), 8);
        assert_eq!(workers_for(0.5, 0.0), 1);
        assert_eq!(workers_for(0.5, 9.0), 5);
        for nonsense in [f64::NAN, f64::INFINITY, -7.0] {
            assert_eq!(workers_for(4.0, nonsense), 4);
        }
    }
}
