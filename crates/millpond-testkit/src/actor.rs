//! A thread on a stage: it can be interrupted, and one knows where it is parked.
//!
//! The closure of an actor runs under an interrupt token of its own, as a task does, so every
//! blocking call of millpond in it can be interrupted from the test. [`Actor::await_parked`] returns
//! when the actor is *really* parked at a site, by the registry of the Block seam: that is the only
//! honest way to know that it has blocked before one interrupts, offers or shuts down.

use super::{delays, sink};
use millpond_raw::park::Site;
use millpond_raw::park::probe::{self, Wait};
use millpond_raw::task::{Token, current};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// A thread that runs a closure under its own interrupt token.
#[derive(Debug)]
#[must_use = "an actor that nobody finishes keeps its failures to itself"]
pub struct Actor<R> {
    name: String,
    token: Arc<Token>,
    thread: Option<JoinHandle<()>>,
    result: Receiver<thread::Result<R>>,
}

impl<R: Send + 'static> Actor<R> {
    /// Starts a thread of this name.
    ///
    /// # Panics
    ///
    /// If the operating system refuses a thread.
    pub fn start(name: &str, body: impl FnOnce() -> R + Send + 'static) -> Self {
        let token = Arc::new(Token::new());
        let own = Arc::clone(&token);
        let (send, result) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let ended = panic::catch_unwind(AssertUnwindSafe(|| own.enter(body)));
                // An actor whose test has failed already sends to a closed channel.
                let _ = send.send(ended);
            })
            .expect("a thread can be started");
        Actor {
            name: name.to_owned(),
            token,
            thread: Some(thread),
            result,
        }
    }

    /// Starts a thread that has been interrupted before its first step.
    pub fn start_interrupted(name: &str, body: impl FnOnce() -> R + Send + 'static) -> Self {
        Actor::start(name, move || {
            assert!(current::set(), "an actor runs under a token");
            body()
        })
    }
}

/// Runs `body` in an actor, interrupts it when it is parked at `site`, and returns its result.
///
/// # Panics
///
/// If it never parks there, or does not end.
#[track_caller]
pub fn interrupt_at<R: Send + 'static>(
    name: &str,
    site: &str,
    body: impl FnOnce() -> R + Send + 'static,
) -> R {
    let actor = Actor::start(name, body);
    actor.interrupt_at(site);
    actor.finish()
}

impl<R> Actor<R> {
    /// Interrupts it.
    pub fn interrupt(&self) {
        self.token.set();
    }

    /// Waits until it is parked at a site of this name, and returns the wait.
    ///
    /// # Panics
    ///
    /// If it ends before, or does not park there within [`delays::long`].
    #[track_caller]
    pub fn await_parked(&self, site: &str) -> Wait {
        self.await_wait(site, delays::long(), |wait| wait.site.name() == site)
    }

    /// Waits until it is parked at this site and about this object.
    ///
    /// # Panics
    ///
    /// As [`await_parked`](Actor::await_parked).
    #[track_caller]
    pub fn await_parked_on<T: ?Sized>(&self, site: &'static str, object: &T) -> Wait {
        let wanted = Site::new(site).on(object);
        self.await_wait(site, delays::long(), |wait| wait.site == wanted)
    }

    /// Waits until it is parked, wherever.
    ///
    /// # Panics
    ///
    /// As [`await_parked`](Actor::await_parked).
    #[track_caller]
    pub fn await_parked_anywhere(&self) -> Wait {
        self.await_wait("anything", delays::long(), |_| true)
    }

    /// Interrupts it as soon as it is parked at a site of this name.
    ///
    /// # Panics
    ///
    /// As [`await_parked`](Actor::await_parked).
    #[track_caller]
    pub fn interrupt_at(&self, site: &str) {
        self.await_parked(site);
        self.interrupt();
    }

    #[track_caller]
    fn await_wait(&self, site: &str, timeout: Duration, wanted: impl Fn(&Wait) -> bool) -> Wait {
        let id = self.thread_id();
        let end = Instant::now() + timeout;
        loop {
            // The registry wakes us when something changes; the slice is for actors that end.
            let slice = delays::timeout();
            match probe::await_wait(slice, |wait| wait.thread == id && wanted(wait)) {
                Ok(wait) => return wait,
                Err(_) if self.has_ended() => {
                    panic!("actor `{}` ended before it parked in {site}", self.name)
                }
                Err(others) if Instant::now() >= end => {
                    panic!("actor `{}` never parked in {site}: {others}", self.name)
                }
                Err(_) => {}
            }
        }
    }

    /// Whether its closure has returned and its thread is gone.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The thread's id.
    pub fn thread_id(&self) -> ThreadId {
        let thread = self.thread.as_ref().expect("it is only taken by `finish`");
        thread.thread().id()
    }

    /// Waits for its end and returns what its closure returned; its panic goes on here.
    ///
    /// # Panics
    ///
    /// If it panicked, or does not end within [`delays::longer`].
    #[track_caller]
    pub fn finish(self) -> R {
        self.finish_within(delays::longer())
    }

    #[track_caller]
    fn finish_within(mut self, timeout: Duration) -> R {
        let ended = match self.result.recv_timeout(timeout) {
            Ok(ended) => ended,
            Err(RecvTimeoutError::Disconnected) => panic!("actor `{}` has no result", self.name),
            Err(RecvTimeoutError::Timeout) => {
                let waits: String = probe::waits()
                    .iter()
                    .map(|wait| format!("\n  {wait}"))
                    .collect();
                panic!(
                    "actor `{}` did not end within {timeout:?}{waits}",
                    self.name
                )
            }
        };
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        match ended {
            Ok(value) => value,
            Err(payload) => panic!(
                "actor `{}` failed: {}",
                self.name,
                sink::text_of(payload.as_ref())
            ),
        }
    }
}

impl<R> Drop for Actor<R> {
    fn drop(&mut self) {
        // A test that fails lets its actors go.
        if self.thread.is_some() {
            self.token.set();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond::interrupt;

    #[test]
    fn an_actor_is_interrupted_at_the_very_site_where_it_sleeps() {
        let sleeper = Actor::start("sleeper", || interrupt::sleep(Duration::MAX));
        let wait = sleeper.await_parked("interrupt.sleep");
        assert_eq!(wait.name.as_deref(), Some("sleeper"));
        sleeper.interrupt_at("interrupt.sleep");
        assert_eq!(sleeper.finish(), Err(interrupt::Interrupted));
    }

    #[test]
    fn an_actor_that_ends_instead_of_parking_is_caught() {
        let hasty = Actor::start("hasty", || ());
        let caught = panic::catch_unwind(AssertUnwindSafe(|| hasty.await_parked("queue.take")));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*text, "actor `hasty` ended before it parked in queue.take");
    }

    #[test]
    fn an_actor_that_parks_elsewhere_is_caught_with_a_list_of_waits() {
        let sleeper = Actor::start("elsewhere", || interrupt::sleep(Duration::MAX));
        sleeper.await_parked("interrupt.sleep");
        let caught = panic::catch_unwind(AssertUnwindSafe(|| {
            sleeper.await_wait("queue.take", delays::timeout(), |wait| {
                wait.site.name() == "queue.take"
            })
        }));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(
            text.contains("thread `elsewhere` is parked in interrupt.sleep"),
            "{text}"
        );
    }

    #[test]
    fn a_failure_of_an_actor_fails_the_test() {
        let failing = Actor::start("miller", || panic!("no grain"));
        let caught = panic::catch_unwind(AssertUnwindSafe(|| failing.finish()));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*text, "actor `miller` failed: no grain");
    }

    #[test]
    fn an_actor_that_does_not_end_is_caught_and_let_go() {
        let sleeper = Actor::start("stuck", || interrupt::sleep(Duration::MAX));
        let caught = panic::catch_unwind(AssertUnwindSafe(|| {
            sleeper.finish_within(delays::timeout())
        }));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("actor `stuck` did not end"), "{text}");
    }

    #[test]
    fn an_actor_may_be_interrupted_from_the_start() {
        let actor = Actor::start_interrupted("early", interrupt::check);
        assert_eq!(actor.finish(), Err(interrupt::Interrupted));
    }
}
