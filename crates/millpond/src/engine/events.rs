//! Events for the operator of an engine: a bounded queue of them, and their delivery to a listener.
//!
//! Events are rare and meant for eyes: each has a line that says what happened, and more lines with what is needed
//! to see why. Without a listener they go to the log: the standard error, or `tracing` with that feature.
//!
//! A listener may be slow, and so is making an event that has stack dumps in it. So events are queued as closures
//! that make them, and a thread [on demand](crate::thread::on_demand) makes and delivers them: neither a submitter
//! nor the timer waits for that. The calling thread delivers them if the clock is manual or no thread can be started.
//! The timer's thread never does.
//!
//! # Invariants
//!
//! - **EVENTS-1** Events are delivered one at a time, in order. An event that a listener causes waits until the
//!   listener returns; so a listener is never called inside itself.
//! - **EVENTS-2** At most [`MAX_QUEUED`] events wait. Further ones are dropped, and how many those were is an event
//!   of its own: when those that wait are delivered. An engine may exempt an event that is queued at most
//!   once ([`EventSource::emit_always`]).
//! - **EVENTS-3** A thread that delivers on the spot has something else to do, and a listener may cause an event for
//!   each that it hears. So it delivers those that were there when it began (by a manual clock also those that come
//!   meanwhile, up to [`MAX_QUEUED`]). The rest is delivered with the next event, or by an alarm [a little
//!   later](RETRY).
//! - **EVENTS-4** Without a listener a flood of events is not logged line by line ([`log_limit`]). Events that are not
//!   logged are dropped events (EVENTS-2), whose number is told when the period is over or the engine
//!   [ends](EventSource::end_events).
//! - **EVENTS-5** A thread that waits for the end of an engine also waits for its events to be delivered
//!   ([`EventSource::await_delivery`]), at most for [`DELIVERY_TIMEOUT`]: a program that closes its engines and exits has
//!   seen what they had to say. A listener does not wait for itself.

mod fields;
mod log_limit;

pub(crate) use self::fields::LogEvent;
#[cfg(feature = "tracing")]
pub(crate) use self::fields::LogFields;
use self::fields::log;

use self::log_limit::{LogLimit, Step};
use crate::executor::{Inside, Waitable};
use crate::interrupt;
use crate::thread::Threads;
use crate::thread::on_demand::{Demand, Drain, Drainer, Next, OnDemand};
use crate::time::{Alarm, Clock, Deadline, Owner, Work, drop_off_timer, run_off_timer};
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use millpond_raw::sync::{Mutex, local};
use millpond_raw::user_code::{self, Kind};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// EVENTS-2
pub(crate) const MAX_QUEUED: usize = 64;

/// How long the end of an engine waits for its events (EVENTS-5): a listener may be slow, or hang.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

local! {
    /// How many listeners have been called on this thread and have not returned.
    static LISTENING: Cell<u32> = Cell::new(0);
}

/// The pause before events that were left behind are delivered (EVENTS-3).
const RETRY: Duration = Duration::from_millis(100);

/// Hears events.
pub(crate) type Listener<E> = Arc<dyn Fn(&E) + Send + Sync>;

/// Makes an event when it is about to be delivered.
type MakeEvent<S> = Box<dyn FnOnce(&S) -> <S as EventSource>::Event + Send>;

/// The events of an engine.
pub(crate) struct Events<S: EventSource> {
    source: Weak<S>,
    sink: Sink<S::Event>,
    state: Mutex<State<S>>,
    /// Threads that wait until all are delivered (EVENTS-5).
    delivered: Waitable<()>,
}

/// Where events go.
enum Sink<E> {
    Listener(Listener<E>),
    Log(fn(&dyn LogEvent)),
}

struct State<S: EventSource> {
    queue: VecDeque<MakeEvent<S>>,
    thread: OnDemand,
    /// How many were dropped since the last event that said so.
    dropped: u64,
    /// Rings for those that were left behind.
    alarm: Option<Alarm>,
    /// EVENTS-4, and what rings when the period is over.
    log_limit: LogLimit,
    log_alarm: Option<Alarm>,
}

impl<S: EventSource> State<S> {
    fn has_work(&self) -> bool {
        !self.queue.is_empty() || self.dropped > 0
    }
}

impl<S: EventSource> Events<S> {
    pub(crate) fn new(source: &Weak<S>, listener: Option<Listener<S::Event>>) -> Self {
        Events::to(source, listener.map_or(Sink::Log(log), Sink::Listener))
    }

    fn to(source: &Weak<S>, sink: Sink<S::Event>) -> Self {
        Events {
            source: Weak::clone(source),
            sink,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                thread: OnDemand::default(),
                dropped: 0,
                alarm: None,
                log_limit: LogLimit::default(),
                log_alarm: None,
            }),
            delivered: Waitable::new(()),
        }
    }

    /// Whether an event is to be delivered (EVENTS-4); otherwise it is counted.
    fn admit(&self, source: &S) -> bool {
        let Sink::Log(_) = self.sink else {
            return true;
        };
        let now = source.clock().now();
        let step = {
            let mut state = self.state.lock();
            state.dropped += state.log_limit.take_if_over(now);
            state.log_limit.add(now)
        };
        match step {
            Step::Log => return true,
            Step::Drop => {}
            Step::DropAndSetAlarm(left) => self.set_log_alarm(source, left),
        }
        false
    }

    fn set_log_alarm(&self, source: &S, left: Duration) {
        let bell = Waker::from(Arc::new(PeriodBell(Weak::clone(source.this()))));
        let clock = source.clock();
        let set = clock.alarm(clock.deadline(left), &bell);
        let is_set = set.is_ok();
        let alarm = set.unwrap_or_else(|no_thread| no_thread.alarm);
        let mut state = self.state.lock();
        if !is_set {
            state.log_limit.alarm_failed();
        }
        let former = state.log_alarm.replace(alarm);
        drop(state);
        // The timer has a lock of its own.
        drop(former);
    }

    /// Returns true if the caller must find a thread to deliver it.
    fn push(&self, make: MakeEvent<S>, max: usize) -> bool {
        let mut state = self.state.lock();
        if state.queue.len() >= max {
            state.dropped += 1;
            drop(state);
            // What it captures is dropped under no lock.
            drop(make);
            return false;
        }
        state.queue.push_back(make);
        matches!(state.thread.demand(), Demand::Start)
    }

    /// Returns true if events were left behind, and the caller must find a thread to deliver them.
    fn demand_rest(&self) -> bool {
        let mut state = self.state.lock();
        state.has_work() && matches!(state.thread.demand(), Demand::Start)
    }

    fn next(&self) -> Option<MakeEvent<S>> {
        let mut state = self.state.lock();
        if let Some(make) = state.queue.pop_front() {
            return Some(make);
        }
        let dropped = std::mem::take(&mut state.dropped);
        if dropped == 0 {
            state.thread.leave();
            drop(state);
            self.delivered.change(|()| ());
            return None;
        }
        drop(state);
        Some(Box::new(move |source: &S| source.dropped_events(dropped)))
    }

    /// How many are to be delivered, that about dropped ones included.
    fn len(&self) -> usize {
        let state = self.state.lock();
        state.queue.len() + usize::from(state.dropped > 0)
    }
}

/// An engine that has events.
pub(crate) trait EventSource: Send + Sync + Sized + 'static {
    /// What its listener hears.
    type Event: LogEvent;

    /// Its events.
    fn events(&self) -> &Events<Self>;

    /// Itself.
    fn this(&self) -> &Weak<Self> {
        &self.events().source
    }

    /// The clock that it goes by.
    fn clock(&self) -> &Clock;

    /// The event that so many were dropped (EVENTS-2, EVENTS-4).
    fn dropped_events(&self, dropped: u64) -> Self::Event;

    /// Marks the thread that calls the listener as inside the engine, if a listener must not wait for its end.
    fn enter_delivery(&self) -> Option<Inside> {
        None
    }

    /// Makes an event and delivers it, soon.
    fn emit(self: &Arc<Self>, make: impl FnOnce(&Self) -> Self::Event + Send + 'static) {
        if self.events().admit(self) && self.events().push(Box::new(make), MAX_QUEUED) {
            start_delivery(self);
        }
    }

    /// The engine ends: tells how many events were not logged (EVENTS-4).
    fn end_events(&self) {
        let (has_some, alarm) = {
            let mut state = self.events().state.lock();
            state.dropped += state.log_limit.take();
            (state.dropped > 0, state.log_alarm.take())
        };
        drop(alarm);
        let Some(this) = self.this().upgrade().filter(|_| has_some) else {
            return;
        };
        if this.events().demand_rest() {
            start_delivery(&this);
        }
        drop_off_timer(Owner::of(&*this, Work::Drop), this);
    }

    /// Waits until all events are delivered, at most until `deadline` (EVENTS-5). By a manual clock they are delivered on
    /// the spot.
    fn await_delivery(&self, deadline: Deadline) {
        let clock = self.clock();
        if clock.is_manual() || LISTENING.with(Cell::get) > 0 {
            return;
        }
        let events = self.events();
        let is_delivered = |(): &mut ()| {
            let state = events.state.lock();
            (!state.has_work() && !state.thread.is_draining()).then_some(())
        };
        let deadline = deadline.min(clock.deadline(DELIVERY_TIMEOUT));
        let waited =
            events
                .delivered
                .wait(Site::new("engine.events"), clock, deadline, is_delivered);
        interrupt::restore(waited);
    }

    /// The same, however many wait: for an event that is queued at most once. The engine may be about to be dropped.
    fn emit_always(&self, make: impl FnOnce(&Self) -> Self::Event + Send + 'static) {
        let must_deliver = self.events().push(Box::new(make), usize::MAX);
        match self.this().upgrade() {
            Some(this) => {
                if must_deliver {
                    start_delivery(&this);
                }
                drop_off_timer(Owner::of(&*this, Work::Drop), this);
            }
            // It is being dropped: this is the last chance.
            None if must_deliver => {
                while let Some(make) = self.events().next() {
                    let _ = catch_panic::call(|| deliver(self, make));
                }
            }
            None => {}
        }
    }
}

/// Starts a thread that delivers, or delivers on the spot. The caller has demanded that.
fn start_delivery<S: EventSource>(source: &Arc<S>) {
    let delivery = Delivery(Arc::clone(source));
    if !source.clock().is_manual() {
        let started = Drainer::new(delivery.clone()).start(&Threads::named("millpond-event"));
        if started.is_ok() || !source.events().demand_rest() {
            return;
        }
    }
    // A listener is not for the timer's thread.
    run_off_timer(Owner::of(&**source, Work::Notify), move || {
        deliver_on_the_spot(delivery);
    });
}

/// EVENTS-3
fn deliver_on_the_spot<S: EventSource>(delivery: Delivery<S>) {
    let source = &delivery.0;
    let max = if source.clock().is_manual() {
        MAX_QUEUED
    } else {
        source.events().len()
    };
    Drainer::new(delivery).run_at_most(max);
}

fn deliver<S: EventSource>(source: &S, make: MakeEvent<S>) {
    user_code::check(Kind::Listener);
    let event = make(source);
    let _inside = source.enter_delivery();
    let _listening = Listening::begin();
    match &source.events().sink {
        Sink::Listener(listener) => listener(&event),
        Sink::Log(log) => log(&event),
    }
}

/// A listener is being called on this thread.
struct Listening;

impl Listening {
    fn begin() -> Self {
        LISTENING.with(|own| own.set(own.get() + 1));
        Listening
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.with(|own| own.set(own.get() - 1));
    }
}

/// Delivers the events of an engine.
struct Delivery<S>(Arc<S>);

impl<S> Clone for Delivery<S> {
    fn clone(&self) -> Self {
        Delivery(Arc::clone(&self.0))
    }
}

impl<S: EventSource> Drain for Delivery<S> {
    type Job = MakeEvent<S>;

    fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R {
        f(&mut self.0.events().state.lock().thread)
    }

    fn now(&self) -> Option<Instant> {
        self.0.clock().system_now()
    }

    fn next(&mut self) -> Next<MakeEvent<S>> {
        self.0.events().next().map_or(Next::Leave, Next::Run)
    }

    fn run(&mut self, make: MakeEvent<S>) {
        deliver(&*self.0, make);
    }

    /// EVENTS-3. Without a timer's thread, the next event delivers them.
    fn abandoned(&self) {
        let source = &*self.0;
        if !source.events().state.lock().has_work() {
            return;
        }
        let bell = Waker::from(Arc::new(Bell(Weak::clone(source.this()))));
        let clock = source.clock();
        let alarm = clock.alarm(clock.deadline(RETRY), &bell);
        let alarm = alarm.unwrap_or_else(|no_thread| no_thread.alarm);
        let former = source.events().state.lock().alarm.replace(alarm);
        drop(former);
    }
}

/// Rings for events that were left behind.
struct Bell<S>(Weak<S>);

impl<S: EventSource> Wake for Bell<S> {
    fn wake(self: Arc<Self>) {
        let Some(source) = self.0.upgrade() else {
            return;
        };
        if source.events().demand_rest() {
            start_delivery(&source);
        }
        drop_off_timer(Owner::of(&*source, Work::Drop), source);
    }
}

/// Rings when a period of the log is over (EVENTS-4).
struct PeriodBell<S>(Weak<S>);

impl<S: EventSource> Wake for PeriodBell<S> {
    fn wake(self: Arc<Self>) {
        let Some(source) = self.0.upgrade() else {
            return;
        };
        let (events, now) = (source.events(), source.clock().now());
        let left = {
            let mut state = events.state.lock();
            state.dropped += state.log_limit.take_if_over(now);
            state.log_limit.ring(now)
        };
        if let Some(left) = left {
            events.set_log_alarm(&source, left);
        }
        if events.demand_rest() {
            start_delivery(&source);
        }
        drop_off_timer(Owner::of(&*source, Work::Drop), source);
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
