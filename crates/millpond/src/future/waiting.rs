//! Readers that wait: threads and async code.
//!
//! A reader that waits attaches an observer to the cell, whose body wakes it. If it stops waiting, it completes the
//! observer by hand: the body with the waker goes at once, and the link with the next sweep of the list.

use super::error::{Cause, CompletionError};
use super::meta::StageMeta;
use super::stage::ReaderOf;
use super::watch;
use crate::interrupt::{self, Look, WaitError};
use crate::time::{Clock, Deadline};
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use millpond_raw::promise::{self, Body, Claimed, Producer, Queue, Source, Upstream};
use std::fmt;
use std::panic::Location;
use std::task::Waker;

/// Wakes a reader.
struct Wakes {
    waker: Waker,
    source: Source<StageMeta>,
}

impl Body<(), StageMeta> for Wakes {
    fn run(self, _: Option<usize>, claimed: Claimed<(), StageMeta, Self>, queue: &mut Queue) {
        let _ = claimed.complete((), queue);
        catch_panic::wake(self.waker);
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        see(self.source.upstream());
    }

    fn discard(self, _: &StageMeta, _: &mut Queue) {
        catch_panic::drop_waker(self.waker);
    }
}

/// A waker in the list of a cell, until it is woken or this is dropped.
pub(super) struct Registration {
    observer: Producer<(), StageMeta>,
    waker: Waker,
}

impl Registration {
    fn new<T, E>(reader: &ReaderOf<T, E>, waker: &Waker) -> Self {
        let body = Wakes {
            waker: waker.clone(),
            source: reader.upstream().to_source(),
        };
        let mut queue = Queue::new();
        let meta = StageMeta::new(Location::caller());
        let observer = promise::observer(body, meta, &mut queue);
        queue.run();
        Registration {
            observer,
            waker: waker.clone(),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut queue = Queue::new();
        let _ = self.observer.complete((), &mut queue);
        queue.run();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registration")
    }
}

/// Has this waker woken when the cell is complete.
pub(super) fn register<T, E>(
    reader: &ReaderOf<T, E>,
    registration: &mut Option<Registration>,
    waker: &Waker,
) {
    let is_known = registration
        .as_ref()
        .is_some_and(|known| known.waker.will_wake(waker));
    if !is_known {
        let former = registration.replace(Registration::new(reader, waker));
        drop(former);
    }
}

/// Waits until the cell is complete.
pub(super) fn wait<T, E>(
    reader: &ReaderOf<T, E>,
    clock: &Clock,
    deadline: Deadline,
) -> Result<(), CompletionError<E>> {
    if reader.is_complete() {
        return Ok(());
    }
    // It may be among what an inner loop of this thread has left over.
    promise::run_left_over();
    if reader.is_complete() || spin(reader, deadline) {
        return Ok(());
    }
    if deadline == Deadline::NEVER {
        if let Some(found) = watch::find_loop(&reader.upstream().to_source()) {
            return Err(reader.meta().error(Cause::Deadlock(found)));
        }
    }
    let mut registration = None;
    let site = Site::new("future.join");
    let waited = interrupt::wait(site, clock, deadline, |waker| {
        if !reader.is_complete() {
            register(reader, &mut registration, waker);
        }
        Look::done_if(reader.is_complete())
    });
    drop(registration);
    waited.map_err(|error| {
        reader.meta().error(match error {
            WaitError::Interrupted => Cause::Interrupted,
            WaitError::TimedOut => Cause::JoinTimedOut,
        })
    })
}

fn spin<T, E>(reader: &ReaderOf<T, E>, deadline: Deadline) -> bool {
    deadline == Deadline::NEVER
        && !interrupt::is_interrupted()
        && interrupt::poll_tight(|| reader.is_complete(), || Some(())).is_some()
}

/// Why it has no value, if that is known.
pub(super) fn failure<T, E: Send + Sync>(reader: &ReaderOf<T, E>) -> Option<CompletionError<E>> {
    reader.get_err().cloned()
}
