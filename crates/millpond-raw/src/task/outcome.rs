//! How a task ended.
//!
//! # Invariants
//!
//! - **PANIC-1** `&Panic` gives away `&str` only, out of a `&'static str` or a `String`, both of which are
//!   `Sync`; a payload of any other type is reached only by the owner of the `Panic`.

use crate::catch_panic::Payload;
use core::fmt;

/// The outcome of a task.
#[derive(Debug)]
pub enum Outcome<T, P = Panic> {
    /// The value that the closure returned.
    Completed(T),
    /// What the closure panicked with.
    Panicked(P),
    /// The task was cancelled: there is no value.
    Cancelled(CancelReason),
}

/// The payload of a panic.
///
/// A payload is `Send` but, being of any type, not `Sync`. This type is: by reference it shows a text and
/// nothing else.
pub struct Panic(Payload);

// SAFETY: PANIC-1 - a shared `Panic` is only asked for its text.
unsafe impl Sync for Panic {}

// As std's `JoinHandle`: the owner decides what to do with what is left of a panic.
impl core::panic::UnwindSafe for Panic {}
impl core::panic::RefUnwindSafe for Panic {}

impl Panic {
    /// Wraps a payload.
    pub fn new(payload: Payload) -> Self {
        Panic(payload)
    }

    /// The text of the panic, if its payload is one, as `panic!("...")` leaves it.
    ///
    /// ```
    /// use millpond_raw::task::Panic;
    ///
    /// let payload = std::panic::catch_unwind(|| panic!("no water")).unwrap_err();
    /// assert_eq!(Panic::new(payload).message(), Some("no water"));
    /// ```
    pub fn message(&self) -> Option<&str> {
        match self.0.downcast_ref::<&'static str>() {
            Some(text) => Some(text),
            None => self.0.downcast_ref::<String>().map(String::as_str),
        }
    }

    /// The payload.
    pub fn into_payload(self) -> Payload {
        self.0
    }

    /// Resumes the panic on the current thread.
    pub fn resume(self) -> ! {
        std::panic::resume_unwind(self.0)
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic")
            .field(&self.message().unwrap_or("the payload is not text"))
            .finish()
    }
}

/// Each line of the table below is a reason; its position is its code in the state word.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a task will have no outcome.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum CancelReason {
            $($(#[$doc])* $name,)*
        }

        impl CancelReason {
            const ALL: &'static [CancelReason] = &[$(CancelReason::$name,)*];

            fn text(self) -> &'static str {
                match self {
                    $(CancelReason::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    /// It was requested through the handle.
    Requested = "a handle requested it",
    /// The task was dropped before it ran.
    Dropped = "it was dropped before it ran",
    /// The rejection policy discarded it, to make room or for lack of room.
    Discarded = "the rejection policy discarded it",
    /// It was removed from its queue.
    Removed = "it was removed from its queue",
    /// Its executor was shut down before its turn came.
    ShutDown = "its executor was shut down before it ran",
    /// Its deadline passed before its turn came.
    Expired = "its deadline passed before it ran",
    /// It could not have been finished by the time it was to be finished by: that time had come, or less was left than
    /// such tasks take.
    TooLate = "it could not have been finished in time",
    /// It was shed under overload.
    Shed = "it was shed: its executor was overloaded when its turn came, and it had waited too long",
    /// It had waited in the queue for longer than its executor allows.
    WaitedTooLong = "it had waited in the queue for longer than its executor allows",
    /// Its executor rejected it.
    Rejected = "its executor rejected it",
    /// Its caller has stopped waiting for it: another task was first, or the time was up.
    Abandoned = "its caller stopped waiting for it",
    /// A waiting thread has done its work. Only the tasks that stand for a scope's jobs in an executor end
    /// so; they have no handles.
    RanInline = "a waiting thread has done its work",
}

impl CancelReason {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL
            .get(usize::from(code))
            .copied()
            .unwrap_or(CancelReason::Dropped)
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_survives_its_code() {
        for &reason in CancelReason::ALL {
            assert_eq!(CancelReason::from_code(reason.code()), reason);
            assert!(
                reason.code() < 1 << 7,
                "the highest bit of the byte is STARTED in the state word"
            );
        }
    }

    #[test]
    fn a_payload_that_is_no_text_has_no_message() {
        assert_eq!(Panic::new(Box::new(7_u8)).message(), None);
        assert_eq!(
            Panic::new(Box::new(String::from("text"))).message(),
            Some("text")
        );
    }
}
