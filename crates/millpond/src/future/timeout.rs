//! Timeouts.
//!
//! A timeout is an alarm at the timer of the process and an observer of the cell, which takes the alarm back however the
//! cell is completed. When the alarm fires, the cell is completed on another thread: what depends on it is user code. So an
//! alarm comes with a [hold](ThreadHold) on the threads that this takes.

use super::DefaultExecutor;
use super::completable::Completable;
use super::error::{Cause, Outcome};
use super::meta::StageMeta;
use super::stage::ProducerOf;
use crate::executor::{Executor, RejectReason, TryExecuteError};
use crate::task::TaskSpec;
use crate::time::{
    Alarm, Clock, Deadline, Owner, ThreadHold, Work, is_timer_thread, run_off_timer,
};
use millpond_raw::catch_panic;
use millpond_raw::promise::{self, Body, Claimed, Queue, Source, Upstream};
use millpond_raw::sync::Mutex;
use std::io;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// An alarm, and the threads that it takes to obey it.
#[derive(Debug)]
pub(super) struct HeldAlarm {
    _alarm: Alarm,
    /// `None` if it never fires.
    _hold: Option<ThreadHold>,
}

impl HeldAlarm {
    /// # Errors
    ///
    /// A thread is needed and cannot be started.
    pub(super) fn new(clock: &Clock, deadline: Deadline, waker: &Waker) -> io::Result<Self> {
        let is_needed = deadline != Deadline::NEVER;
        let hold = is_needed.then(|| ThreadHold::new(clock)).transpose()?;
        let alarm = clock
            .alarm(deadline, waker)
            .map_err(|_| io::Error::other("the timer's thread could not be started"))?;
        Ok(HeldAlarm {
            _alarm: alarm,
            _hold: hold,
        })
    }
}

/// Completes a cell when its time is up.
struct Limit<T, E> {
    producer: ProducerOf<T, E>,
    /// What the cell will be; `None` for a failure as timed out.
    fallback: Mutex<Option<T>>,
    alarm: Mutex<Option<HeldAlarm>>,
    clock: Clock,
    deadline: Deadline,
}

impl<T, E> Limit<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// Sets the alarm.
    fn arm(self: &Arc<Self>) {
        match HeldAlarm::new(&self.clock, self.deadline, &Waker::from(Arc::clone(self))) {
            Ok(alarm) => {
                let former = self.alarm.lock().replace(alarm);
                drop(former);
            }
            Err(missing) => {
                // Nobody would end it.
                let reason = RejectReason::SpawnFailed(missing);
                let cause = Cause::Rejected(Arc::new(reason));
                self.settle(Err(self.producer.meta().error(cause)));
            }
        }
        if self.producer.is_claimed() {
            // The observer may have looked for the alarm before.
            let alarm = self.alarm.lock().take();
            drop(alarm);
        }
    }

    fn expire(self: &Arc<Self>) {
        if self.producer.is_claimed() {
            return;
        }
        if !self.deadline.has_passed(self.clock.now()) {
            // Alarms may fire early: for their owners to look again.
            return self.arm();
        }
        let fallback = self.fallback.lock().take();
        let outcome = match fallback {
            Some(value) => Ok(value),
            None => Err(self.producer.meta().error(Cause::TimedOut)),
        };
        self.settle(outcome);
    }

    fn settle(&self, outcome: Outcome<T, E>) {
        let mut queue = Queue::new();
        if let Err(unwanted) = self.producer.complete(outcome, &mut queue) {
            catch_panic::drop(unwanted);
        }
        queue.run();
    }
}

impl<T, E> Wake for Limit<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn wake(self: Arc<Self>) {
        off_timer(move || self.expire());
    }
}

/// Does it here; or, on the timer's thread, on the default executor.
pub(super) fn off_timer(job: impl FnOnce() + Send + 'static) {
    /// All jobs are short: they submit.
    static OWNER: u8 = 0;

    if !is_timer_thread() {
        return job();
    }
    let task = TaskSpec::new().build_kept(job);
    let task = match DefaultExecutor.try_execute_task(task) {
        Ok(()) => return,
        Err(TryExecuteError::WouldBlock(task)) => task,
        Err(TryExecuteError::Rejected(rejected)) => rejected.task,
    };
    run_off_timer(Owner::of(&OWNER, Work::Submit), move || {
        if let Err(rejected) = DefaultExecutor.execute_task(task) {
            let _ = rejected.task.run();
        }
    });
}

/// Takes the alarm back.
struct Disarm<T, E> {
    limit: Arc<Limit<T, E>>,
    source: Source<StageMeta>,
}

impl<T, E> Body<(), StageMeta> for Disarm<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn run(self, _: Option<usize>, claimed: Claimed<(), StageMeta, Self>, queue: &mut Queue) {
        let alarm = self.limit.alarm.lock().take();
        drop(alarm);
        let fallback = self.limit.fallback.lock().take();
        catch_panic::drop(fallback);
        let _ = claimed.complete((), queue);
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        see(self.source.upstream());
    }
}

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// Makes it fail as [timed out](Cause::TimedOut) if it is not complete by then. It is this very completable that fails:
    /// for all of its readers. The computation goes on, unless the chain is [linked](Completable::linked).
    ///
    /// When it is complete the timer forgets the timeout at once.
    ///
    /// ```
    /// use millpond::future;
    /// use std::time::Duration;
    ///
    /// let (_promise, flour) = future::promise::<u32, ()>();
    /// let late = flour.or_timeout(Duration::from_millis(1));
    /// assert!(late.join().unwrap_err().is_timed_out());
    /// ```
    #[doc(alias = "orTimeout")]
    pub fn or_timeout(self, timeout: Duration) -> Self {
        self.or_timeout_by(&Clock::system(), timeout)
    }

    /// As [`or_timeout`](Completable::or_timeout), by this clock.
    ///
    /// ```
    /// use millpond::future;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let (_promise, flour) = future::promise::<u32, ()>();
    /// let flour = flour.or_timeout_by(&hand.clock(), Duration::from_secs(60));
    /// hand.advance(Duration::from_secs(60));
    /// assert!(flour.join().unwrap_err().is_timed_out());
    /// ```
    pub fn or_timeout_by(self, clock: &Clock, timeout: Duration) -> Self {
        self.limit(clock, timeout, None)
    }

    /// Completes it with this value if it is not complete by then.
    ///
    /// ```
    /// use millpond::future;
    /// use std::time::Duration;
    ///
    /// let (_promise, flour) = future::promise::<_, ()>();
    /// let flour = flour.complete_on_timeout("from the shop", Duration::from_millis(1));
    /// assert_eq!(flour.join().unwrap(), "from the shop");
    /// ```
    #[doc(alias = "completeOnTimeout")]
    pub fn complete_on_timeout(self, value: T, timeout: Duration) -> Self {
        self.complete_on_timeout_by(value, &Clock::system(), timeout)
    }

    /// As [`complete_on_timeout`](Completable::complete_on_timeout), by this clock.
    pub fn complete_on_timeout_by(self, value: T, clock: &Clock, timeout: Duration) -> Self {
        self.limit(clock, timeout, Some(value))
    }

    fn limit(self, clock: &Clock, timeout: Duration, fallback: Option<T>) -> Self {
        let reader = self.reader();
        let deadline = clock.deadline(timeout);
        if reader.is_complete() || deadline.instant().is_none() {
            return self;
        }
        let limit = Arc::new(Limit {
            producer: reader.producer(),
            fallback: Mutex::new(fallback),
            alarm: Mutex::new(None),
            clock: clock.clone(),
            deadline,
        });
        limit.arm();
        let source = reader.upstream().to_source();
        let (mut queue, meta) = (Queue::new(), StageMeta::new(Location::caller()));
        drop(promise::observer(
            Disarm { limit, source },
            meta,
            &mut queue,
        ));
        queue.run();
        self
    }
}
