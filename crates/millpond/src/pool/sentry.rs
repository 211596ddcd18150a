//! A worker that stands sentry: it waits for a task and, at the same time, for a time.
//!
//! A [`Post`] is given to the pool by whoever has tasks that are due later, and owns the pool. One idle worker
//! at a time takes it. It is a worker like any other that is idle, listed in the queue and called for tasks;
//! but it rests no longer than the post says, and then rings: so what is due comes into the queue, and the
//! worker, who is a seeker meanwhile (B7 in `queue/twin.rs`), takes the first of it. If there is more it calls
//! another worker, as every seeker does.
//!
//! - **Y1** A sentry leaves its post before it runs a task, times out, or hears that something has changed.
//!   So whoever is on a post is awake and looking, or rests until it is called.
//! - **Y2** A sentry that leaves and does not come back at once calls the other idle workers, if nobody else looks what
//!   is due. One that only hears that something has changed does come back, and calls nobody: calling is such a
//!   change, and two workers would call each other again and again.

use super::engine::Engine;
use super::line::Line;
use crate::executor::{Outlook, Post, PostOffer};
use crate::interrupt::linger;
use crate::task::Task;
use crate::time::Deadline;
use millpond_raw::slack::{self, Punctual};
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use millpond_raw::sync::{Mutex, local, thread};
use millpond_raw::{park, quiet};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

local! {
    /// A worker that has once stood sentry is woken in time from then on.
    static PUNCTUAL: RefCell<Option<Punctual>> = const { RefCell::new(None) };
}

/// The post of a pool, if it was given one.
#[derive(Default)]
pub(super) struct Posted {
    is_there: AtomicBool,
    offer: Mutex<Option<PostOffer>>,
}

impl Engine {
    /// Takes the post, unless it has one, or its line knows no seekers.
    pub(super) fn accept_post(&self, post: PostOffer) {
        if !self.line.has_seekers() {
            return;
        }
        let mut offer = self.posted.offer.lock();
        let former = offer.as_ref().and_then(PostOffer::get);
        if former.is_some() {
            drop(offer);
            // E5: it may be the last of it.
            drop(former);
            return;
        }
        *offer = Some(post);
        self.posted.is_there.store(true, Ordering::Relaxed);
        drop(offer);
        // Those who rest may do so on the post.
        self.nudge();
    }

    /// Stands sentry, if there is a post without one.
    pub(super) fn stand_sentry(&self) -> Option<Sentry<'_>> {
        if !self.posted.is_there.load(Ordering::Relaxed) {
            return None;
        }
        let post = self.posted.offer.lock().as_ref()?.get()?;
        if !post.enter(&park::current().waker()) {
            return None;
        }
        PUNCTUAL.with(|own| {
            own.borrow_mut().get_or_insert_with(slack::punctual);
        });
        Some(Sentry {
            engine: self,
            post,
            comes_back: Cell::new(false),
        })
    }
}

/// Being the sentry, until it is dropped.
pub(super) struct Sentry<'a> {
    engine: &'a Engine,
    post: Arc<dyn Post>,
    comes_back: Cell<bool>,
}

impl Sentry<'_> {
    /// Looks out for a task, and rings when it is time. `takes` hears when it is about to try, and when it has
    /// tried in vain. Returns a task, or until when to rest; never, if something has changed.
    pub(super) fn seek(
        &self,
        line: &Line,
        takes: impl Fn(bool),
        has_changed: impl Fn() -> bool,
    ) -> Result<Task, Deadline> {
        let is_ready = || line.glance().is_some_and(|glance| glance.is_ready);
        let attempt = || {
            takes(true);
            let got = line.poll();
            if got.is_none() {
                takes(false);
            }
            got
        };
        let mut rest = Deadline::NEVER;
        let got = line.as_seeker(|| {
            loop {
                let outlook = self.post.look();
                if is_ready() {
                    if let Some(task) = attempt() {
                        return Some(task);
                    }
                }
                if has_changed() {
                    return None;
                }
                match outlook {
                    Outlook::Due => {
                        // B7: a panic in here must not leave a seeker behind.
                        let rung = quiet::call(|| Arc::clone(&self.post).ring());
                        if rung != Some(true) {
                            // Who is at it may need this very CPU.
                            thread::yield_now();
                        }
                    }
                    // Those whom others wait for may need this very CPU.
                    Outlook::Near => thread::yield_now(),
                    Outlook::Rest(until) => {
                        rest = until;
                        return linger(is_ready, attempt);
                    }
                }
            }
        });
        got.ok_or(rest)
    }

    /// It leaves only to look at what has changed (Y2).
    pub(super) fn comes_back(&self) {
        self.comes_back.set(true);
    }

    /// Whether it is to look again, although it rests.
    pub(super) fn is_called(&self) -> bool {
        self.post.is_called()
    }
}

impl Drop for Sentry<'_> {
    fn drop(&mut self) {
        let post = Arc::clone(&self.post);
        let is_needed = quiet::call(|| post.leave()) == Some(true);
        if is_needed && !self.comes_back.get() {
            // Y2
            self.engine.nudge();
        }
    }
}

impl fmt::Debug for Posted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.is_there.fmt(f)
    }
}
