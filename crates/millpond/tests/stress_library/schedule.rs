//! Scheduled pools under everything at once: threads schedule, cancel, interrupt, drop handles, resize the
//! inner pool, change the policies and end it in the middle, while bodies panic and threads do not start.
//!
//! Whatever happens, the books balance. Of every task that was accepted:
//!
//! - **SCHEDULE-STRESS-1** its handle is finished;
//! - **SCHEDULE-STRESS-2** its closure was dropped, once;
//! - **SCHEDULE-STRESS-3** it ran at most once; and not at all only if its handle says that it was cancelled. So what was
//!   accepted is what ran, what was cancelled and what was handed back, which is cancelled when it is
//!   dropped;
//! - **SCHEDULE-STRESS-4** what was handed back had not run, and is handed back once.
//!
//! - **SCHEDULE-STRESS-5** the pool ends; nothing waits and no series is left.
//!
//! What is drawn comes from a seed, which a failure prints: `MILLPOND_STRESS_SEED` runs that round first.

use crate::schedule_kit::{Moody, Rng, Told};
use millpond::executor::Lifecycle;
use millpond::interrupt;
use millpond::manage::Patch;
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::schedule::{Backoff, Catchup, Every, OnFailure, Overlap, Scheduled, ScheduledPool};
use millpond::task::{Task, TaskError, TaskSpec};
use millpond::time::{Clock, Deadline};
use millpond_raw::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use millpond_raw::sync::{Mutex, thread};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

const SEED: u64 = 0x7363_6865;
const ROUNDS: u64 = 60;
const EACH: usize = 24;
const TIMEOUT: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The history of one closure.
#[derive(Debug, Default)]
struct Entry {
    is_accepted: AtomicBool,
    is_series: AtomicBool,
    ran: AtomicU32,
    dropped: AtomicU32,
    handed_back: AtomicU32,
    /// Whether its handle was dropped, so that its outcome is unknown.
    is_alone: AtomicBool,
    /// Whether its handle said that it was cancelled.
    is_cancelled: AtomicBool,
}

/// Is inside the closure.
struct Inside(Arc<Entry>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Inside {
    /// The body of a task, or a run of a series.
    fn runs(&self, rng: &mut Rng) {
        self.0.ran.fetch_add(1, Ordering::Relaxed);
        match rng.below(6) {
            0 => resume_unwind(Box::new("no grain")),
            1 => drop(interrupt::sleep(rng.micros(200))),
            2 => rng.jitter(),
            _ => {}
        }
    }
}

/// All of a round.
#[derive(Clone)]
struct Bank {
    timers: ScheduledPool<ThreadPool>,
    ledger: Arc<Mutex<Vec<Arc<Entry>>>>,
    over: Arc<AtomicBool>,
}

/// A handle of either kind.
enum Handle {
    Once(Scheduled<()>),
    Series(Scheduled<u32>),
}

impl Handle {
    fn each(&mut self, what: impl Fn(&dyn Cancels)) {
        match self {
            Handle::Once(one) => what(one),
            Handle::Series(series) => what(series),
        }
    }

    fn join(&mut self, timeout: Duration) -> Result<(), TaskError> {
        match self {
            Handle::Once(one) => one.join_timeout(timeout),
            Handle::Series(series) => series.join_timeout(timeout).map(drop),
        }
    }
}

trait Cancels {
    fn cancel(&self);
    fn interrupt(&self);
}

impl<T> Cancels for Scheduled<T> {
    fn cancel(&self) {
        Scheduled::cancel(self);
    }

    fn interrupt(&self) {
        Scheduled::interrupt(self);
    }
}

impl Bank {
    /// A new entry, and the name that its task has.
    fn entry(&self) -> (Arc<Entry>, String) {
        let entry = Arc::new(Entry::default());
        let mut ledger = self.ledger.lock();
        ledger.push(Arc::clone(&entry));
        (entry, (ledger.len() - 1).to_string())
    }

    fn once(&self, rng: &mut Rng) -> Option<(Arc<Entry>, Handle)> {
        let (entry, name) = self.entry();
        let (inside, mut own) = (Inside(Arc::clone(&entry)), rng.fork());
        let delay = match rng.below(6) {
            0 => Duration::ZERO,
            1 => HOUR,
            2 => Duration::MAX,
            _ => rng.micros(800),
        };
        let due = Deadline::after(Clock::system().now(), delay);
        let spec = TaskSpec::new().name(name);
        let body = move || inside.runs(&mut own);
        let handle = self.timers.schedule_with(spec, due, body).ok()?;
        entry.is_accepted.store(true, Ordering::Relaxed);
        Some((entry, Handle::Once(handle)))
    }

    fn series(&self, rng: &mut Rng) -> Option<(Arc<Entry>, Handle)> {
        let (entry, name) = self.entry();
        entry.is_series.store(true, Ordering::Relaxed);
        let (inside, own) = (Inside(Arc::clone(&entry)), Mutex::new(rng.fork()));
        let period = rng.micros(500);
        let every = if rng.once_in(2) {
            Every::rate(period)
        } else {
            Every::delay(period)
        };
        let series = self.timers.series(every).name(name);
        let series = series.first_after(if rng.once_in(4) {
            HOUR
        } else {
            rng.micros(500)
        });
        let series = series.overlap(match rng.below(3) {
            0 => Overlap::Skip,
            1 => Overlap::Queue,
            _ => Overlap::Concurrent,
        });
        let series = series.catchup(match rng.below(3) {
            0 => Catchup::All,
            1 => Catchup::Skip,
            _ => Catchup::Delay,
        });
        let pauses = Backoff::starting_at(rng.micros(50)).at_most(rng.micros(400));
        let series = series.on_failure(match rng.below(3) {
            0 => OnFailure::Stop,
            1 => OnFailure::Continue,
            _ => OnFailure::Retry(pauses.tries(3)),
        });
        let body = move || {
            let mut rng = own.lock().fork();
            inside.runs(&mut rng);
            match rng.below(12) {
                0 => Ok(ControlFlow::Break(7)),
                1 => Err("wet grain"),
                _ => Ok(ControlFlow::Continue(())),
            }
        };
        let handle = series.start_shared(body).ok()?;
        entry.is_accepted.store(true, Ordering::Relaxed);
        Some((entry, Handle::Series(handle)))
    }

    /// Schedules things and treats their handles badly. Returns those that are left.
    fn play(&self, mut rng: Rng) -> Vec<(Arc<Entry>, Handle)> {
        let mut kept = Vec::new();
        for _ in 0..EACH {
            kept.extend(if rng.once_in(3) {
                self.series(&mut rng)
            } else {
                self.once(&mut rng)
            });
            rng.jitter();
            if kept.is_empty() || rng.once_in(2) {
                continue;
            }
            let at = rng.below(kept.len() as u64) as usize;
            match rng.below(6) {
                0 | 1 => kept[at].1.each(|handle| handle.cancel()),
                2 => kept[at].1.each(|handle| handle.interrupt()),
                3 => {
                    let timeout = rng.micros(100);
                    let joined = kept[at].1.join(timeout);
                    if !matches!(joined, Err(TaskError::TimedOut)) {
                        let (entry, _) = kept.swap_remove(at);
                        note(&entry, &joined);
                    }
                }
                way => {
                    let (entry, handle) = kept.swap_remove(at);
                    entry.is_alone.store(true, Ordering::Relaxed);
                    match (way, handle) {
                        (4, Handle::Once(one)) => drop(one.abort_on_drop()),
                        (_, Handle::Series(series)) => drop(series.abort_on_drop()),
                        (_, Handle::Once(one)) => drop(one),
                    }
                }
            }
        }
        kept
    }

    /// Changes what can be changed, until it is over.
    fn meddle(&self, mut rng: Rng) {
        let pool = self.timers.executor();
        while !self.over.load(Ordering::Relaxed) {
            match rng.below(6) {
                0 | 1 => {
                    let max = 1 + rng.below(3) as usize;
                    let patch = Patch::new().core(rng.below(max as u64 + 1) as usize);
                    pool.apply(&patch.max(max)).expect("it makes sense");
                }
                2 => drop(pool.set_capacity(1 + rng.below(4) as usize)),
                3 => pool.set_rejection(policy(&mut rng)),
                4 => drop((self.timers.snapshot(), self.timers.upcoming(3))),
                _ => drop(format!("{:?}", self.timers)),
            }
            rng.jitter();
        }
    }

    /// Returned: each once, and unrun (SCHEDULE-STRESS-4). Some are run, and the others dropped.
    fn take_back(&self, back: Vec<Task>, rng: &mut Rng) {
        for task in back {
            let number = task.name().and_then(|name| name.parse::<usize>().ok());
            let entry = Arc::clone(&self.ledger.lock()[number.expect("all have names")]);
            let times = entry.handed_back.fetch_add(1, Ordering::Relaxed);
            let is_series = entry.is_series.load(Ordering::Relaxed);
            if !is_series {
                assert_eq!(times, 0, "handed back twice (SCHEDULE-STRESS-4)");
                let ran = entry.ran.load(Ordering::Relaxed);
                assert_eq!(ran, 0, "handed back, and had run (SCHEDULE-STRESS-4)");
            }
            if rng.once_in(2) {
                drop(task.run())
            } else {
                drop(task)
            }
        }
    }
}

fn policy(rng: &mut Rng) -> RejectionPolicy {
    match rng.below(6) {
        0 => RejectionPolicy::Abort,
        1 => RejectionPolicy::CallerRuns,
        2 => RejectionPolicy::Discard,
        3 => RejectionPolicy::DiscardOldest,
        4 => RejectionPolicy::Block(rng.micros(300)),
        _ => RejectionPolicy::Block(Duration::MAX),
    }
}

/// The outcome of a handle.
fn note(entry: &Entry, joined: &Result<(), TaskError>) {
    let is_cancelled = match joined {
        Ok(()) => false,
        Err(TaskError::TimedOut) => {
            panic!("its handle is not finished (SCHEDULE-STRESS-1): {entry:?}")
        }
        Err(error) => error.is_cancelled(),
    };
    entry.is_cancelled.store(is_cancelled, Ordering::Relaxed);
}

/// SCHEDULE-STRESS-2 and SCHEDULE-STRESS-3.
fn judge(entry: &Entry) {
    let [ran, dropped] = [&entry.ran, &entry.dropped].map(|count| count.load(Ordering::Relaxed));
    let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
    assert_eq!(
        dropped, 1,
        "its closure was not dropped once (SCHEDULE-STRESS-2): {entry:?}"
    );
    if !is(&entry.is_accepted) {
        assert_eq!(ran, 0, "refused, and it ran (SCHEDULE-STRESS-3): {entry:?}");
    } else if !is(&entry.is_series) {
        assert!(ran <= 1, "it ran twice (SCHEDULE-STRESS-3): {entry:?}");
        let is_explained = is(&entry.is_cancelled) || is(&entry.is_alone);
        assert!(
            ran == 1 || is_explained,
            "it is lost (SCHEDULE-STRESS-3): {entry:?}"
        );
    }
}

fn round(seed: u64) {
    let _told = Told(seed);
    let mut rng = Rng(seed);
    let pool = ThreadPool::builder("stress")
        .core(rng.below(2) as usize)
        .max(1 + rng.below(2) as usize)
        .queue(Queue::bounded(1 + rng.below(4) as usize))
        .rejection(policy(&mut rng))
        .threads(Moody::new(&mut rng))
        .build()
        .expect("it makes sense");
    let is_own = rng.once_in(2);
    let builder = if is_own {
        ScheduledPool::owning(pool.clone())
    } else {
        ScheduledPool::on(pool.clone())
    };
    let timers = builder
        .run_delayed_after_shutdown(rng.once_in(2))
        .run_series_after_shutdown(rng.once_in(3))
        .dispatcher_threads(Moody::new(&mut rng))
        .on_event(|event| drop(event.to_string()))
        .build();
    let bank = Bank {
        timers,
        ledger: Arc::default(),
        over: Arc::default(),
    };
    let players: Vec<_> = (0..3)
        .map(|_| {
            let (bank, rng) = (bank.clone(), rng.fork());
            thread::spawn(move || bank.play(rng))
        })
        .collect();
    let meddler = thread::spawn({
        let (bank, rng) = (bank.clone(), rng.fork());
        move || bank.meddle(rng)
    });
    (0..rng.below(200)).for_each(|_| rng.jitter());
    if rng.once_in(2) {
        bank.timers.shutdown();
        rng.jitter();
    }
    let mut back = Vec::new();
    if rng.once_in(2) {
        back = bank.timers.shutdown_now();
    }
    bank.timers.shutdown();
    let mut kept = Vec::new();
    for player in players {
        kept.extend(player.join().expect("it only plays"));
    }
    // Tasks that wait for ever, and series that would go on.
    bank.timers.set_run_delayed_after_shutdown(false);
    bank.timers.set_run_series_after_shutdown(false);
    let ended = bank.timers.await_termination_timeout(TIMEOUT);
    assert_eq!(
        ended,
        Ok(true),
        "it does not end (SCHEDULE-STRESS-5): {:?}",
        bank.timers
    );
    bank.take_back(back, &mut rng);
    bank.over.store(true, Ordering::Relaxed);
    meddler.join().expect("it only meddles");
    pool.shutdown();
    let ended = pool.await_termination_timeout(TIMEOUT);
    assert_eq!(ended, Ok(true), "the pool below does not end: {pool:?}");
    for (entry, mut handle) in kept {
        note(&entry, &handle.join(TIMEOUT));
    }
    let now = bank.timers.snapshot();
    assert_eq!(
        (now.pending, now.series),
        (0, 0),
        "something is left (SCHEDULE-STRESS-5)"
    );
    bank.ledger.lock().iter().for_each(|entry| judge(entry));
}

#[test]
fn whatever_happens_every_scheduled_task_is_accounted_for() {
    let chosen = std::env::var("MILLPOND_STRESS_SEED").ok();
    let first = chosen.map_or(SEED, |seed| seed.parse().expect("a seed is a number"));
    for number in 0..ROUNDS {
        round(first.wrapping_add(number));
    }
}
