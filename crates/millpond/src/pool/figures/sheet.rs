//! What a worker has counted under one label, and sums of that.

use super::names::{Id, Label};
use crate::executor::Fate;
use crate::meter::{Count, Distribution, Histogram};
use std::fmt;
use std::time::Duration;

/// One worker, one label. Only the worker writes. What every task writes comes first (`repr(C)`).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Sheet {
    completed: Count,
    panicked: Count,
    cancelled: Count,
    expired: Count,
    shed: Count,
    unwanted: Count,
    wait: Histogram,
    run: Histogram,
    sampled: Count,
    sampled_cpu: Count,
    sampled_for_delay: Count,
    sampled_delay: Count,
}

impl Sheet {
    pub(super) fn new() -> Self {
        Sheet {
            completed: Count::default(),
            panicked: Count::default(),
            cancelled: Count::default(),
            expired: Count::default(),
            shed: Count::default(),
            unwanted: Count::default(),
            wait: Histogram::new(),
            run: Histogram::new(),
            sampled: Count::default(),
            sampled_cpu: Count::default(),
            sampled_for_delay: Count::default(),
            sampled_delay: Count::default(),
        }
    }

    /// A task is over. Times are those of tasks that ran, and of no others.
    #[inline]
    pub(super) fn note(&self, fate: Fate, waited: u64, ran: u64) {
        if fate != Fate::Completed && !self.note_unusual(fate) {
            return;
        }
        self.completed.add(1);
        self.wait.add(waited);
        self.run.add(ran);
    }

    /// Returns whether it ran.
    #[cold]
    fn note_unusual(&self, fate: Fate) -> bool {
        match fate {
            Fate::Completed => {}
            Fate::Panicked => self.panicked.add(1),
            Fate::Unwanted => self.unwanted.add(1),
            Fate::Cancelled => self.cancelled.add(1),
            // Whoever ran it counts it.
            Fate::RanElsewhere | Fate::RanAtHome => {}
            Fate::Expired => self.expired.add(1),
            Fate::Shed => self.shed.add(1),
        }
        matches!(fate, Fate::Completed | Fate::Panicked | Fate::Unwanted)
    }

    /// In `ran` nanoseconds that its tasks ran, so many were spent on a CPU.
    pub(super) fn note_cpu(&self, ran: u64, on_cpu: u64) {
        self.sampled.add(ran);
        self.sampled_cpu.add(on_cpu);
    }

    /// In `ran` nanoseconds that its tasks ran, so many were spent waiting for a CPU.
    pub(super) fn note_delay(&self, ran: u64, delay: u64) {
        self.sampled_for_delay.add(ran);
        self.sampled_delay.add(delay);
    }

    /// Moves all that is on it to another one of the same worker's.
    pub(super) fn move_to(&self, other: &Sheet) {
        let counts = [
            (&self.completed, &other.completed),
            (&self.panicked, &other.panicked),
            (&self.cancelled, &other.cancelled),
            (&self.expired, &other.expired),
            (&self.shed, &other.shed),
            (&self.unwanted, &other.unwanted),
            (&self.sampled, &other.sampled),
            (&self.sampled_cpu, &other.sampled_cpu),
            (&self.sampled_for_delay, &other.sampled_for_delay),
            (&self.sampled_delay, &other.sampled_delay),
        ];
        for (own, other) in counts {
            other.add(own.take());
        }
        self.wait.move_to(&other.wait);
        self.run.move_to(&other.run);
    }

    pub(super) fn add_to(&self, sums: &mut Figures) {
        sums.completed += self.completed.get();
        sums.panicked += self.panicked.get();
        sums.cancelled_while_running += self.unwanted.get();
        sums.cancelled += self.cancelled.get();
        sums.expired += self.expired.get();
        sums.shed += self.shed.get();
        self.wait.add_to(&mut sums.wait);
        self.run.add_to(&mut sums.run);
        sums.usage.sampled += self.sampled.get();
        sums.usage.on_cpu += self.sampled_cpu.get();
        sums.usage.sampled_for_delay += self.sampled_for_delay.get();
        sums.usage.delay += self.sampled_delay.get();
    }
}

/// Sums of what workers have counted, by the places of labels.
#[derive(Clone, Debug, Default)]
pub(in crate::pool) struct Sums {
    /// Which label it was that had the place, and its figures.
    places: Vec<(Id, Figures)>,
}

impl Sums {
    /// Adds figures of a label. Those of one that has lost its place belong to the others.
    pub(super) fn add(&mut self, id: Id, add_to: impl FnOnce(&mut Figures)) {
        while self.places.len() <= id.index() {
            let place = self.places.len();
            self.places.push((Id::first_at(place), Figures::default()));
        }
        let (known, _) = self.places[id.index()];
        if known < id {
            let former = std::mem::take(&mut self.places[id.index()].1);
            self.places[0].1.merge(&former);
            self.places[id.index()].0 = id;
        }
        let at = if known > id { 0 } else { id.index() };
        add_to(&mut self.places[at].1);
    }

    /// Takes out those of a label that has its place now.
    pub(in crate::pool) fn take(&mut self, id: Id) -> Figures {
        let own = self.places.get_mut(id.index());
        let own = own.filter(|(known, _)| *known == id);
        own.map_or(Figures::default(), |(_, figures)| std::mem::take(figures))
    }

    /// What is left.
    pub(in crate::pool) fn rest(self) -> Figures {
        let mut rest = Figures::default();
        for (_, figures) in &self.places {
            rest.merge(figures);
        }
        rest
    }
}

/// What has been counted and measured, of one label or of all of them.
///
/// Times are of tasks that workers have run. What was refused, cancelled, expired or shed is counted, and never mixed into the times.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").build()?;
/// pool.run(|| ())?;
/// pool.run(|| panic!("the dam broke"))?;
/// pool.close()?;
/// let figures = pool.figures();
/// assert_eq!((figures.completed, figures.panicked), (2, 1));
/// assert_eq!(figures.run.count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// How many ran to their end, those that panicked included.
    pub completed: u64,
    /// How many of these panicked.
    pub panicked: u64,
    /// How many of the completed ones were cancelled while they ran.
    pub cancelled_while_running: u64,
    /// How many a worker found cancelled.
    pub cancelled: u64,
    /// How many had a deadline that had passed when their turn came.
    pub expired: u64,
    /// How many had waited too long when their turn came.
    pub shed: u64,
    /// How many there was no room for.
    pub refused: u64,
    /// From being accepted, or from the first wait for room, to the start.
    pub wait: Distribution,
    /// From the start to the end.
    pub run: Distribution,
    /// What they did while they ran.
    pub usage: Usage,
}

impl Figures {
    pub(in crate::pool) fn merge(&mut self, other: &Figures) {
        self.completed += other.completed;
        self.panicked += other.panicked;
        self.cancelled_while_running += other.cancelled_while_running;
        self.cancelled += other.cancelled;
        self.expired += other.expired;
        self.shed += other.shed;
        self.refused += other.refused;
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
/// Measured by samples: a worker reads its CPU clock at both ends of a stretch of work, a few thousand times
/// a second at most. So long tasks are measured one and all, and tasks of microseconds now and then. Shares are of the time that they ran; all are 0 until something has been sampled.
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
/// assert!(pool.figures().usage.computing() < 0.5);
/// assert_eq!(Usage::default().to_string(), "not sampled yet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    sampled: u64,
    on_cpu: u64,
    sampled_for_delay: u64,
    delay: u64,
}

impl Usage {
    /// One that has been sampled for a while, with these shares.
    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
    pub(in crate::pool) fn of_shares(computing: f64, waiting_for_cpu: f64) -> Self {
        let of = |share: f64| (share * 1000.0) as u64;
        Usage {
            sampled: 1000,
            on_cpu: of(computing),
            sampled_for_delay: 1000,
            delay: of(waiting_for_cpu),
        }
    }

    /// For how long tasks were watched.
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
    /// assert!(pool.figures().usage.sampled() >= nap / 2);
    /// assert_eq!(Usage::default().sampled(), Duration::ZERO);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sampled(&self) -> Duration {
        Duration::from_nanos(self.sampled)
    }

    /// The share of the time that they were on a CPU.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// let sum = pool.submit(|| (1..=1_000_000_u64).map(std::hint::black_box).sum::<u64>())?;
    /// assert_eq!(sum.join()?, 500_000_500_000);
    /// pool.close()?;
    /// assert!(pool.figures().usage.computing() > 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn computing(&self) -> f64 {
        share(self.on_cpu, self.sampled)
    }

    /// The share of the time that they wanted to be on a CPU, and others were. More threads make that
    /// worse.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{ThreadPool, Usage};
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.invoke_all((0..4).map(|grain| move || (0..=grain).sum::<u32>()))?;
    /// pool.close()?;
    /// let usage = pool.figures().usage;
    /// assert!(usage.waiting_for_cpu() <= 1.0 - usage.computing());
    /// assert_eq!(Usage::default().waiting_for_cpu(), 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waiting_for_cpu(&self) -> f64 {
        share(self.delay, self.sampled_for_delay).min(1.0 - self.computing())
    }

    /// The share of the time that they waited for something else: a disk, a lock, an answer. More
    /// threads help.
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
    /// let usage = pool.figures().usage;
    /// let all = usage.computing() + usage.waiting_for_cpu() + usage.blocked();
    /// assert!((all - 1.0).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blocked(&self) -> f64 {
        match self.sampled {
            0 => 0.0,
            _ => (1.0 - self.computing() - self.waiting_for_cpu()).max(0.0),
        }
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

/// The figures of one label.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{NamedFigures, ThreadPool};
/// use millpond::task::TaskSpec;
///
/// let pool = ThreadPool::builder("mill").build()?;
/// pool.submit_spec(TaskSpec::new().name("grind"), || "flour")?.join()?;
/// pool.close()?;
/// let NamedFigures { label, figures, .. } = &pool.figures_by_name()[0];
/// assert_eq!((label.to_string().as_str(), figures.completed), ("grind", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedFigures {
    /// The name of the tasks, or the place where they were made.
    pub label: Label,
    /// Of how many labels these are the figures: 1, or for [`Label::Others`] how many have lost their place to
    /// newcomers. That happens one for one, when there is no place left, to the least recently used label among
    /// those that have not been in use for a minute; as long as all labels fit, none is lost. What was counted
    /// under a label until then stays here, also if it comes back later. Labels that never got a place are in
    /// the figures of the others, too, and are not counted.
    pub labels: u64,
    /// What was counted.
    pub figures: Figures,
}
