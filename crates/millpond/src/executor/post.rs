//! The Post seam: where an idle worker waits for a time.
//!
//! Who has tasks that are due later usually has the timer of the process ring, and that hands over to a
//! worker: two threads have to wake up, one after the other. An executor with idle workers may let one of
//! them stand *sentry* instead: it rests as ever, waits for tasks as ever, and is woken at the time, too. It
//! finds what is due itself, and runs it.

use crate::time::Deadline;
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// A post, of which the sentry is one worker at a time.
///
/// A sentry [looks](Post::look) until it is told to rest, rests until then, or until it is
/// [called](Post::is_called) or has a task, and looks again. It [leaves](Post::leave) before it runs a task,
/// or does anything else that may take long.
pub(crate) trait Post: Send + Sync {
    /// Makes the caller its sentry, if there is none. The waker ends its rest.
    fn enter(&self, waker: &Waker) -> bool;

    /// Whether something is due; and if not, how to rest.
    fn look(&self) -> Outlook;

    /// Hands something over of what is due: to the executor whose worker the sentry is. Returns false if
    /// somebody else is at it.
    fn ring(self: Arc<Self>) -> bool;

    /// Whether the sentry is to look again, although it was told to rest.
    fn is_called(&self) -> bool;

    /// There is no sentry any more. Returns whether another is needed, because nobody else looks what is due.
    fn leave(self: Arc<Self>) -> bool;
}

/// What a sentry sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Ring.
    Due,
    /// Look again, now.
    Near,
    Rest(Deadline),
}

/// A post for idle workers, as long as it is there.
#[doc(hidden)]
pub struct PostOffer(Weak<dyn Post>);

impl PostOffer {
    pub(crate) fn new(post: Weak<dyn Post>) -> Self {
        PostOffer(post)
    }

    pub(crate) fn get(&self) -> Option<Arc<dyn Post>> {
        self.0.upgrade()
    }
}

impl fmt::Debug for PostOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostOffer")
    }
}
