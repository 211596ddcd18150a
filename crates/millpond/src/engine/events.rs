//! Events for the operator of an engine: a bounded queue of them, and their delivery to a listener.
//!
//! Events are rare and meant for eyes: each has a line that says what happened, and more lines with what is needed
//! to see why. Without a listener they go to the log: the standard error, or `tracing` with that feature.
//!
//! A listener may be slow, and so is making an event that has stack dumps in it. So events are queued as closures
//! that make them, and a thread [on demand](crate::thread::on_demand) makes and delivers them: neither a submitter
//! nor the timer waits for that. By a manual clock they are delivered on the spot. So they are where no thread can
//! be started, but never on the timer's thread.
//!
//! # Invariants
//!
//! - **EVENTS-1** Events are delivered one at a time, in order. An event that a listener causes waits until the
//!   listener returns; so a listener is never called inside itself.
//! - **EVENTS-2** At most [`MAX_QUEUED`] events wait. Further ones are dropped, and how many those were is an event
//!   of its own: when those that wait are delivered. An engine may exempt an event of which no two wait
//!   ([`EventSource::emit_always`]).
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

mod log_limit;

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
use std::fmt;
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
    sink: Sink<S::Event>,
    state: Mutex<State<S>>,
    /// Threads that wait until all are delivered (EVENTS-5).
    delivered: Waitable<()>,
}

/// Where events go.
enum Sink<E> {
    Listener(Listener<E>),
    Log(fn(&dyn fmt::Display)),
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
    pub(crate) fn new(listener: Option<Listener<S::Event>>) -> Self {
        Events::to(listener.map_or(Sink::Log(log), Sink::Listener))
    }

    fn to(sink: Sink<S::Event>) -> Self {
        Events {
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
    type Event: fmt::Display;

    /// Its events.
    fn events(&self) -> &Events<Self>;

    /// Itself.
    fn this(&self) -> &Weak<Self>;

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

    /// The same, however many wait: for an event of which no two wait. The engine may be about to be dropped.
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

/// Where events go without a listener.
#[cfg(feature = "tracing")]
fn log(event: &dyn fmt::Display) {
    tracing::warn!(target: "millpond", "{event}");
}

/// Where events go without a listener.
#[cfg(not(feature = "tracing"))]
fn log(event: &dyn fmt::Display) {
    eprintln!("millpond: {event}");
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
mod tests {
    #![allow(
        clippy::disallowed_types,
        reason = "a test stands outside: it uses std's channels beside what it tests"
    )]

    use super::*;
    use crate::thread::{Body, JoinHandle, ThreadFactory};
    use millpond_raw::sync::thread::{self, ThreadId};
    use std::io;
    use std::sync::mpsc;

    /// An engine that has events and nothing else.
    struct Bare {
        this: Weak<Bare>,
        clock: Clock,
        events: Events<Bare>,
    }

    impl EventSource for Bare {
        type Event = u64;

        fn events(&self) -> &Events<Self> {
            &self.events
        }

        fn this(&self) -> &Weak<Self> {
            &self.this
        }

        fn clock(&self) -> &Clock {
            &self.clock
        }

        fn dropped_events(&self, dropped: u64) -> u64 {
            dropped
        }
    }

    #[test]
    fn a_flood_without_a_listener_is_logged_in_part_and_the_rest_is_told_after_a_pause_or_at_the_end()
     {
        use crate::time::ManualClock;
        use log_limit::{BURST, PERIOD};
        // By a manual clock events are delivered on this thread.
        std::thread_local! {
            static LINES: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        fn note(event: &dyn fmt::Display) {
            LINES.with_borrow_mut(|lines| lines.push(event.to_string()));
        }
        let taken = || LINES.with_borrow_mut(std::mem::take);
        let clock = ManualClock::new();
        let bare = Arc::new_cyclic(|this: &Weak<Bare>| Bare {
            this: Weak::clone(this),
            clock: clock.clock(),
            events: Events::to(Sink::Log(note)),
        });
        let flood = || (0..1_000).for_each(|_| bare.emit(|_| 0));
        let rest = (1_000 - u64::from(BURST)).to_string();
        flood();
        assert_eq!(taken(), vec!["0"; BURST as usize]);
        clock.advance(PERIOD / 2);
        assert!(taken().is_empty(), "the rest is not told yet");
        clock.advance(PERIOD / 2);
        assert_eq!(taken(), [rest.as_str()], "after the pause");
        clock.advance(PERIOD);
        flood();
        assert_eq!(taken().len(), BURST as usize);
        bare.end_events();
        assert_eq!(taken(), [rest.as_str()], "at the end");
        clock.advance(2 * PERIOD);
        assert!(taken().is_empty() && clock.sleepers() == 0);
    }

    /// As it is where no thread can be started.
    #[test]
    fn a_delivery_on_the_spot_is_of_what_was_there_and_the_rest_comes_a_little_later() {
        let (tell, told) = mpsc::channel::<(u64, ThreadId)>();
        let bare = Arc::new_cyclic(|this: &Weak<Bare>| {
            let source = Weak::clone(this);
            let listener = move |event: &u64| {
                tell.send((*event, thread::current().id()))
                    .expect("the test listens");
                // The first two cause one each.
                if let (true, Some(source)) = (*event < 2, source.upgrade()) {
                    let caused = *event + 2;
                    source.emit(move |_| caused);
                }
            };
            Bare {
                this: Weak::clone(this),
                clock: Clock::system(),
                events: Events::new(Some(Arc::new(listener))),
            }
        });
        assert!(bare.events.push(Box::new(|_| 0), MAX_QUEUED));
        assert!(!bare.events.push(Box::new(|_| 1), MAX_QUEUED));
        deliver_on_the_spot(Delivery(Arc::clone(&bare)));
        // The alarm may have rung by now, or rings in a moment; but not on this thread.
        let timeout = Duration::from_secs(60);
        let heard = (0..4).map(|_| told.recv_timeout(timeout).expect("it is delivered"));
        let heard: Vec<_> = heard.collect();
        let here = thread::current().id();
        let by_event = |(event, thread): &(u64, ThreadId)| (*event, *thread == here);
        let heard: Vec<_> = heard.iter().map(by_event).collect();
        assert_eq!(heard, [(0, true), (1, true), (2, false), (3, false)]);
    }

    /// Has no threads.
    #[derive(Debug)]
    struct Refusing;

    impl ThreadFactory for Refusing {
        fn start(&self, _body: Body) -> io::Result<JoinHandle<()>> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    #[test]
    fn soon_after_a_refused_thread_events_are_delivered_on_the_spot_without_another_request() {
        let (tell, told) = mpsc::channel::<ThreadId>();
        let bare = Arc::new_cyclic(|this: &Weak<Bare>| Bare {
            this: Weak::clone(this),
            clock: Clock::system(),
            events: Events::new(Some(Arc::new(move |_: &u64| {
                tell.send(thread::current().id()).expect("the test listens");
            }))),
        });
        let deliver_after_refusal = || {
            assert!(matches!(
                bare.events.state.lock().thread.demand(),
                Demand::Start
            ));
            let drainer = Drainer::new(Delivery(Arc::clone(&bare)));
            assert!(drainer.start(&Refusing).is_err());
            bare.emit(|_| 0);
            let timeout = Duration::from_secs(60);
            let thread = told.recv_timeout(timeout).expect("it is delivered");
            while !matches!(bare.events.state.lock().thread.demand(), Demand::Start) {
                thread::yield_now();
            }
            bare.events.state.lock().thread.leave();
            thread == thread::current().id()
        };
        // On a busy machine a pause may be over before the event comes.
        assert!((0..1_000).any(|_| deliver_after_refusal()));
    }

    fn bare(listener: impl Fn(&u64) + Send + Sync + 'static) -> Arc<Bare> {
        Arc::new_cyclic(|this: &Weak<Bare>| Bare {
            this: Weak::clone(this),
            clock: Clock::system(),
            events: Events::new(Some(Arc::new(listener))),
        })
    }

    #[test]
    fn where_no_thread_can_be_had_the_number_of_dropped_events_is_told_all_the_same() {
        let (tell, told) = mpsc::channel();
        let bare = bare(move |event: &u64| tell.send(*event).expect("the test listens"));
        bare.events.state.lock().dropped = 3;
        assert!(bare.events.demand_rest());
        deliver_on_the_spot(Delivery(Arc::clone(&bare)));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [3]);
        assert!(!bare.events.state.lock().has_work());
    }

    #[test]
    fn a_wait_for_the_delivery_ends_when_the_last_event_has_been_heard() {
        let heard = Arc::new(Mutex::new(0_u64));
        let counter = Arc::clone(&heard);
        let bare = bare(move |_: &u64| {
            (0..100).for_each(|_| thread::yield_now());
            *counter.lock() += 1;
        });
        for number in 0..20 {
            bare.emit(move |_| number);
        }
        bare.await_delivery(Deadline::NEVER);
        assert_eq!(*heard.lock(), 20);
    }

    #[test]
    fn a_listener_does_not_wait_for_its_own_event() {
        let (tell, told) = mpsc::channel();
        let own = Arc::new(Mutex::new(None::<Arc<Bare>>));
        let seen = Arc::clone(&own);
        let bare = bare(move |_: &u64| {
            let bare = seen.lock().take().expect("it is there");
            bare.await_delivery(Deadline::NEVER);
            tell.send(()).expect("the test listens");
        });
        *own.lock() = Some(Arc::clone(&bare));
        bare.emit(|_| 1);
        told.recv_timeout(Duration::from_secs(60))
            .expect("it returns");
    }
}
