//! What readers get: metrics of tasks as plain values.

use super::label::Label;
use crate::manage::TaskLatency;
use crate::meter::Distribution;
use std::fmt;
use std::time::Duration;

/// Metrics of the tasks of one label, or of all labels.
///
/// Times are of tasks that workers have run. Tasks that were rejected, cancelled, expired or shed are counted, and never
/// mixed into the times.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").build()?;
/// pool.execute(|| ())?;
/// pool.execute(|| panic!("the dam broke"))?;
/// pool.close()?;
/// let metrics = pool.metrics();
/// assert_eq!((metrics.completed, metrics.panicked), (2, 1));
/// assert_eq!(metrics.run.count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Tasks that ran to their end, those that panicked included.
    pub completed: u64,
    /// Completed tasks that panicked.
    pub panicked: u64,
    /// Completed tasks that were cancelled while they ran.
    pub cancelled_while_running: u64,
    /// Tasks that a worker found cancelled.
    pub cancelled: u64,
    /// Tasks whose deadline had passed when their turn came, and those that were too late to be finished in time.
    pub expired: u64,
    /// Those of `expired` that could not have been finished in time: [`finish_by`](crate::task::TaskSpec::finish_by).
    pub too_late: u64,
    /// Completed tasks that ended after the time by which they had to be finished.
    pub finished_late: u64,
    /// Tasks that had waited too long when their turn came.
    pub shed: u64,
    /// Tasks for which there was no room.
    pub rejected: u64,
    /// The time from acceptance, or from the first wait for room, to the start.
    pub wait: Distribution,
    /// The time from the start to the end.
    pub run: Distribution,
    /// What the tasks did while they ran.
    pub usage: Usage,
}

impl Metrics {
    /// Those of all names together.
    pub(crate) fn sum(named: &[TaskMetrics]) -> Self {
        let mut sum = Metrics::default();
        for each in named {
            sum.merge(&each.metrics);
        }
        sum
    }

    pub(crate) fn merge(&mut self, other: &Metrics) {
        self.completed += other.completed;
        self.panicked += other.panicked;
        self.cancelled_while_running += other.cancelled_while_running;
        self.cancelled += other.cancelled;
        self.expired += other.expired;
        self.too_late += other.too_late;
        self.finished_late += other.finished_late;
        self.shed += other.shed;
        self.rejected += other.rejected;
        self.wait.merge(&other.wait);
        self.run.merge(&other.run);
        self.usage.sampled += other.usage.sampled;
        self.usage.on_cpu += other.usage.on_cpu;
        self.usage.sampled_for_delay += other.usage.sampled_for_delay;
        self.usage.delay += other.usage.delay;
    }
}

/// What tasks did while they ran: compute, block, or wait for a CPU.
///
/// Measured by samples: a worker reads its CPU clock at both ends of a stretch of work, a few thousand times a second at
/// most. So every long task is measured, and tasks of microseconds now and then. Shares are of the time that tasks ran;
/// all are 0 until something has been sampled.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::interrupt;
/// use millpond::pool::{ThreadPool, Usage};
/// use std::time::Duration;
///
/// let pool = ThreadPool::builder("mill").build()?;
/// pool.submit(|| interrupt::sleep(Duration::from_millis(20)))?.join()??;
/// pool.close()?;
/// assert!(pool.metrics().usage.computing() < 0.5);
/// assert_eq!(Usage::default().to_string(), "not sampled yet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub(super) sampled: u64,
    pub(super) on_cpu: u64,
    pub(super) sampled_for_delay: u64,
    pub(super) delay: u64,
}

impl Usage {
    /// A usage with these shares.
    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
    pub(crate) fn of_shares(computing: f64, waiting_for_cpu: f64) -> Self {
        let of = |share: f64| (share * 1000.0) as u64;
        Usage {
            sampled: 1000,
            on_cpu: of(computing),
            sampled_for_delay: 1000,
            delay: of(waiting_for_cpu),
        }
    }

    /// The time that was sampled.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::interrupt;
    /// use millpond::pool::{ThreadPool, Usage};
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// let nap = Duration::from_millis(20);
    /// pool.submit(move || interrupt::sleep(nap))?.join()??;
    /// pool.close()?;
    /// assert!(pool.metrics().usage.sampled() >= nap / 2);
    /// assert_eq!(Usage::default().sampled(), Duration::ZERO);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sampled(&self) -> Duration {
        Duration::from_nanos(self.sampled)
    }

    /// The share of the time that tasks were on a CPU.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// let sum = pool.submit(|| (1..=1_000_000_u64).map(std::hint::black_box).sum::<u64>())?;
    /// assert_eq!(sum.join()?, 500_000_500_000);
    /// pool.close()?;
    /// assert!(pool.metrics().usage.computing() > 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn computing(&self) -> f64 {
        share(self.on_cpu, self.sampled)
    }

    /// The share of the time that tasks wanted to run while others had the CPU. More threads make it worse.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{ThreadPool, Usage};
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.invoke_all((0..4).map(|grain| move || (0..=grain).sum::<u32>()))?;
    /// pool.close()?;
    /// let usage = pool.metrics().usage;
    /// assert!(usage.waiting_for_cpu() <= 1.0 - usage.computing());
    /// assert_eq!(Usage::default().waiting_for_cpu(), 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waiting_for_cpu(&self) -> f64 {
        share(self.delay, self.sampled_for_delay).min(1.0 - self.computing())
    }

    /// The share of the time that tasks waited for something else: a disk, a lock, an answer. More threads help.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::interrupt;
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.submit(|| interrupt::sleep(Duration::from_millis(20)))?.join()??;
    /// pool.close()?;
    /// let usage = pool.metrics().usage;
    /// let all = usage.computing() + usage.waiting_for_cpu() + usage.blocked();
    /// assert!((all - 1.0).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blocked(&self) -> f64 {
        if self.sampled == 0 {
            return 0.0;
        }
        (1.0 - self.computing() - self.waiting_for_cpu()).max(0.0)
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sampled == 0 {
            return f.write_str("not sampled yet");
        }
        let percent = |share: f64| (share * 100.0).round();
        write!(
            f,
            "{} % computing, {} % blocked, {} % waiting for a CPU",
            percent(self.computing()),
            percent(self.blocked()),
            percent(self.waiting_for_cpu())
        )
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => (part as f64 / whole as f64).clamp(0.0, 1.0),
    }
}

/// The metrics of one label.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{TaskMetrics, ThreadPool};
/// use millpond::task::TaskSpec;
///
/// let pool = ThreadPool::builder("mill").build()?;
/// pool.submit_with(TaskSpec::new().name("grind"), || "flour")?.join()?;
/// pool.close()?;
/// let TaskMetrics { label, metrics, .. } = &pool.metrics_by_name()[0];
/// assert_eq!((label.to_string().as_str(), metrics.completed), ("grind", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskMetrics {
    /// The name of the tasks, or the place where they were made.
    pub label: Label,
    /// The number of labels that these are the metrics of: 1, or for [`Label::Others`] the number of labels that have
    /// lost their place to newcomers. When the table is full, a newcomer takes the place of the least recently used label
    /// that has not been in use for a minute; as long as all labels fit, none is lost. What was counted under a label
    /// until then stays with the others, also if the label comes back later. Labels that never had a place are in the
    /// metrics of the others, too, and are not counted here.
    pub labels: u64,
    /// Its metrics.
    pub metrics: Metrics,
}

impl TaskMetrics {
    /// The part of them that all engines show.
    pub(crate) fn into_latency(self) -> TaskLatency {
        TaskLatency::new(self.label.to_string(), self.metrics.wait, self.metrics.run)
    }
}
