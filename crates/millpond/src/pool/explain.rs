//! A pool in sentences: what it does, why tasks wait, which of them fill it, and what would help.
//!
//! Facts come in, sentences go out: no clock, no lock, nothing of the pool. So what is said can be tested
//! for every situation, and a console that has the facts of a pool elsewhere can say the same.

mod advice;
mod situation;
mod tasks;

use super::PoolSnapshot;
use super::ThreadPool;
use crate::engine::health::Health;
use crate::engine::metrics::TaskMetrics;
use crate::engine::view::WorkerView;
use crate::engine::wording;
use crate::machine::Machine;
use crate::task::{self, BlockedJoin, DetectedCycle};
use std::fmt;

/// What is known of a pool at one moment.
///
/// ```
/// use millpond::preset;
///
/// let facts = preset::fixed("mill", 2).build()?.facts();
/// assert_eq!((facts.snapshot.core, facts.workers.len()), (2, 0));
/// assert!(facts.cpus > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its parameters and metrics.
    pub snapshot: PoolSnapshot,
    /// The metrics of its tasks, by total running time, longest first.
    pub names: Vec<TaskMetrics>,
    /// What its workers do.
    pub workers: Vec<WorkerView>,
    /// What is wrong now, and counts since it was built.
    pub health: Health,
    /// The number of CPUs that it may use.
    pub cpus: usize,
    /// The joins in which its workers are blocked.
    pub waits: Vec<BlockedJoin>,
    /// The last few cycles of tasks that waited for each other, in the whole process.
    pub cycles: Vec<DetectedCycle>,
}

/// What can be said of a pool, most important things first.
///
/// ```
/// use millpond::preset;
///
/// let said = preset::fixed("mill", 2).build()?.explain();
/// assert!(said.to_string().starts_with(&said.sentences()[0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    sentences: Vec<String>,
}

impl Explanation {
    /// Its sentences.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// pool.close()?;
    /// let said = pool.explain();
    /// assert_eq!(said.sentences()[0], "mill has ended.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sentences(&self) -> &[String] {
        &self.sentences
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, sentence) in self.sentences.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(f, "{space}{sentence}")?;
        }
        Ok(())
    }
}

impl ThreadPool {
    /// Says in sentences what the pool is doing, why tasks wait, which of them fill it, and what would
    /// help.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(2).build()?;
    /// let said = pool.explain().to_string();
    /// assert!(said.starts_with("mill is running and has nothing to do."), "{said}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self) -> Explanation {
        explain(&self.facts())
    }

    /// What [`explain`](ThreadPool::explain) goes by.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// pool.submit(|| "flour")?.join()?;
    /// pool.close()?;
    /// assert_eq!(pool.facts().names[0].metrics.completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn facts(&self) -> Facts {
        let workers = self.workers();
        let is_own = |thread: &Option<String>| {
            let own = workers.iter().any(|worker| worker.thread == *thread);
            thread.is_some() && own
        };
        let waits = task::blocked_joins().into_iter();
        Facts {
            snapshot: self.snapshot(),
            names: self.metrics_by_name(),
            waits: waits.filter(|wait| is_own(&wait.thread)).collect(),
            cycles: task::wait_cycles(),
            workers,
            health: self.health(),
            cpus: Machine::read().worker_hint().get(),
        }
    }
}

/// Says what the facts mean.
///
/// ```
/// use millpond::{pool, preset};
///
/// // Facts can be kept, and explained later or elsewhere.
/// let mut facts = preset::single("mill").build()?.facts();
/// facts.snapshot.name = "bakery".into();
/// let said = pool::explain(&facts).to_string();
/// assert!(said.starts_with("bakery is running"), "{said}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explain(facts: &Facts) -> Explanation {
    let mut sentences = vec![situation::what_it_does(facts)];
    sentences.extend(situation::why_tasks_wait(facts));
    sentences.extend(situation::overload(facts));
    sentences.extend(situation::time_to_drain(facts));
    sentences.extend(wording::how_long(&facts.names));
    sentences.extend(tasks::fills_it(facts));
    sentences.extend(tasks::hangs(facts));
    sentences.extend(tasks::waits_for_whom(facts));
    sentences.extend(advice::what_would_help(facts));
    sentences.extend(advice::what_was_lost(facts));
    sentences.extend(advice::what_is_wrong(facts));
    Explanation { sentences }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
