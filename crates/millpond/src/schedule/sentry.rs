//! The sentry: an idle worker of the pool's own executor that waits for what is due next, instead of the
//! timer.
//!
//! With the timer two threads have to wake up for a task, one after the other; and where tasks come thick and
//! fast both are busy, which is one too many on a small machine. A sentry wakes up by itself and runs what it
//! finds. It is one of the workers, whoever is idle; when it has something to run it leaves its post, and the
//! next who is idle enters it. If nobody is, the alarm rings, as ever.
//!
//! ```text
//!            enter: a worker is idle
//!   alarm -------------------------->  manned: the sentry gets up when something is due
//!     ^                                  |
//!     +----------------------------------+
//!        leave: it has a task to run
//! ```
//!
//! This is K7 in the [module](super). Setting an alarm may mean to wake the timer, which takes longer than many a
//! task. So where the post is hardly ever empty for long, of late ([`SHORT`]), a sentry that leaves lets an alarm
//! be that is set for a moment later ([`GRACE`]). Mostly somebody is back long before; if not, that rings.
//!
//! If no alarm can be set, because the timer's thread is refused, the sentry that leaves says so, and its pool calls
//! other idle workers to the post. If all are busy, the first that is idle again comes by itself.

use super::core::{Books, Core};
use crate::executor::{Outlook, Post};
use crate::time::{Clock, Deadline, Lead, Rest};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// For how long the post may be empty to call that short.
const SHORT: Duration = Duration::from_micros(20);

/// So many of the last eight times must have been short to expect the same of the next. Not all of them: now
/// and then a thread has to wait for a CPU, which says nothing about the tasks.
const MOSTLY: u32 = 6;

/// By how much a task may be late that becomes due while nobody is on the post and nobody comes back, against
/// expectation.
const GRACE: Duration = Duration::from_micros(500);

/// So many a sentry hands over at a time. What is left is for who enters the post next.
const A_FEW: usize = 8;

/// The sentry, and what sentries have learned.
pub(super) struct Guard {
    sentry: Option<Sentry>,
    lead: Lead,
    /// Since when nobody is on the post, or was, before the present sentry took its first look.
    empty_since: Option<Instant>,
    /// Whether it was empty for a short time only, of late: a bit for each time.
    were_short: u8,
}

impl Default for Guard {
    fn default() -> Self {
        Guard {
            sentry: None,
            lead: Lead::default(),
            empty_since: None,
            were_short: u8::MAX,
        }
    }
}

struct Sentry {
    waker: Waker,
    /// Until when it rests; `None` if it is awake, or has been called.
    rests: Option<Deadline>,
}

impl Guard {
    /// Whether a sentry is on the post.
    pub(super) fn is_manned(&self) -> bool {
        self.sentry.is_some()
    }

    /// Whom to wake for something that is due then, if anybody.
    pub(super) fn call(&mut self, due: Deadline) -> Option<Waker> {
        let sentry = self.sentry.as_mut()?;
        let rests = sentry.rests?;
        (due < rests).then(|| {
            sentry.rests = None;
            sentry.waker.clone()
        })
    }

    /// Whether somebody comes back soon, when the sentry has left.
    fn is_lively(&self, clock: &Clock) -> bool {
        self.were_short.count_ones() >= MOSTLY && !clock.is_manual()
    }

    /// By when somebody is expected back on the post, if it has been empty for a moment only.
    pub(super) fn expected(&self, clock: &Clock) -> Option<Deadline> {
        let back = Deadline::after(self.empty_since?, SHORT);
        (self.is_lively(clock) && !back.has_passed(clock.now())).then_some(back)
    }

    /// The sentry looks: what it learns from how late it is.
    fn learn(&mut self, clock: &Clock, now: Instant) {
        if let Some(since) = self.empty_since.take() {
            let is_short = now.saturating_duration_since(since) <= SHORT;
            self.were_short = self.were_short << 1 | u8::from(is_short);
        }
        let rested = self.sentry.as_mut().and_then(|sentry| sentry.rests.take());
        if let Some(until) = rested.filter(|until| until.has_passed(now)) {
            self.lead.learn(clock, until, now);
        }
    }
}

impl Books {
    /// When something is due next.
    fn next(&self) -> Deadline {
        self.wheel.next().min(self.retry)
    }
}

impl Post for Core {
    fn enter(&self, waker: &Waker) -> bool {
        let Some(mut books) = self.live_books() else {
            return false;
        };
        if books.guard.is_manned() || books.is_over {
            return false;
        }
        books.guard.sentry = Some(Sentry {
            waker: waker.clone(),
            rests: None,
        });
        books.armed = books.next();
        true
    }

    fn look(&self) -> Outlook {
        let now = self.clock.now();
        let mut books = self.books();
        let due = books.armed;
        books.guard.learn(&self.clock, now);
        if due.has_passed(now) {
            return Outlook::Due;
        }
        match books.guard.lead.rest(&self.clock, due, now) {
            Rest::Awake => Outlook::Near,
            Rest::Asleep(up) => {
                if let Some(sentry) = &mut books.guard.sentry {
                    sentry.rests = Some(up);
                }
                Outlook::Rest(up)
            }
        }
    }

    fn ring(self: Arc<Self>) -> bool {
        // Where tasks are so short, another worker is not worth a wake-up.
        let is_lively = self.books().guard.is_lively(&self.clock);
        let most = if is_lively { 1 } else { A_FEW };
        self.ring_for(1, most, None)
    }

    fn is_called(&self) -> bool {
        let books = self.books();
        let sentry = books.guard.sentry.as_ref();
        sentry.is_some_and(|sentry| sentry.rests.is_none())
    }

    fn leave(self: Arc<Self>) -> bool {
        let now = self.clock.now();
        let mut books = self.books();
        let sentry = books.guard.sentry.take();
        books.guard.empty_since = Some(now);
        let grace = match books.guard.is_lively(&self.clock) {
            true => GRACE,
            false => Duration::ZERO,
        };
        let early = Deadline::after(now, grace);
        let due = books.armed;
        // K7: the alarm that is set rings in time, or nothing is due.
        let is_guarded = books.alarm_at <= due.max(early) || due == Deadline::NEVER;
        books.armed = books.alarm_at;
        drop(books);
        drop(sentry);
        if is_guarded {
            return false;
        }
        self.ring_for(1, A_FEW, Some(early));
        let books = self.books();
        // The timer's thread was refused.
        let is_unattended = books.armed == Deadline::NEVER && !books.guard.is_manned();
        is_unattended && !books.rings && books.next() != Deadline::NEVER
    }
}
