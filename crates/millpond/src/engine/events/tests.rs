//! Events that are queued, dropped, logged and delivered.

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
    clock: Clock,
    events: Events<Bare>,
}

impl LogEvent for u64 {
    #[cfg(feature = "tracing")]
    fn fields(&self) -> LogFields {
        LogFields::new("number", "bare").count(*self)
    }
}

impl EventSource for Bare {
    type Event = u64;

    fn events(&self) -> &Events<Self> {
        &self.events
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn dropped_events(&self, dropped: u64) -> u64 {
        dropped
    }
}

#[test]
fn a_flood_without_a_listener_is_logged_in_part_and_the_rest_is_told_after_a_pause_or_at_the_end() {
    use crate::time::ManualClock;
    use log_limit::{BURST, PERIOD};
    // By a manual clock events are delivered on this thread.
    std::thread_local! {
        static LINES: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    fn note(event: &dyn LogEvent) {
        LINES.with_borrow_mut(|lines| lines.push(event.to_string()));
    }
    let taken = || LINES.with_borrow_mut(std::mem::take);
    let clock = ManualClock::new();
    let bare = Arc::new_cyclic(|this: &Weak<Bare>| Bare {
        clock: clock.clock(),
        events: Events::to(this, Sink::Log(note)),
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
            clock: Clock::system(),
            events: Events::new(this, Some(Arc::new(listener))),
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
        clock: Clock::system(),
        events: Events::new(
            this,
            Some(Arc::new(move |_: &u64| {
                tell.send(thread::current().id()).expect("the test listens");
            })),
        ),
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
        clock: Clock::system(),
        events: Events::new(this, Some(Arc::new(listener))),
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
    // On a busy machine the wait may give up before the listener had its turns: then nothing is known.
    for round in 1..=10 {
        let give_up = bare.clock.deadline(DELIVERY_TIMEOUT);
        for number in 0..20 {
            bare.emit(move |_| number);
        }
        bare.await_delivery(Deadline::NEVER);
        if !give_up.has_passed(bare.clock.now()) {
            assert_eq!(*heard.lock(), 20 * round);
            return;
        }
    }
    panic!("twenty events were never heard in time");
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
