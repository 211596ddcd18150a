//! How a task ended.
//!
//! # Invariants
//!
//! - **Q1** `&Panic` gives away `&str` only, out of a `&'static str` or a `String`, both of which may
//!   be shared; nobody reaches a payload of another type without owning the `Panic`.

use crate::quiet::Payload;
use core::fmt;

/// How a task ended, and what it left.
#[derive(Debug)]
pub enum Outcome<T, P = Panic> {
    /// The closure returned this.
    Completed(T),
    /// The closure panicked with this.
    Panicked(P),
    /// There will be no value.
    Cancelled(CancelReason),
}

/// What a closure panicked with.
///
/// A payload can be sent but, being of any type, not shared between threads. This is: by reference
/// it shows a text and nothing else.
pub struct Panic(Payload);

// SAFETY: Q1 - a shared `Panic` is only asked for its text.
unsafe impl Sync for Panic {}

// Whoever owns it decides what to do with what is left of a panic; std's `JoinHandle` says the same.
impl core::panic::UnwindSafe for Panic {}
impl core::panic::RefUnwindSafe for Panic {}

impl Panic {
    /// Wraps a payload.
    pub fn new(payload: Payload) -> Self {
        Panic(payload)
    }

    /// The text of the panic, if its payload is one: what `panic!("...")` leaves.
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

    /// The payload itself.
    pub fn into_payload(self) -> Payload {
        self.0
    }

    /// Lets the panic go on in the present thread.
    pub fn resume(self) -> ! {
        std::panic::resume_unwind(self.0)
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic")
            .field(&self.message().unwrap_or("payload is no text"))
            .finish()
    }
}

/// One line of the table below: its place is its code in the state word.
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
    /// Somebody asked for it, through the handle.
    Requested = "cancelled on request",
    /// The task was dropped before it ran, by whoever held it.
    Dropped = "dropped before it ran",
    /// A policy threw it out to make room, or threw it away for lack of room.
    Discarded = "discarded by the rejection policy",
    /// Somebody took it out of its queue.
    Removed = "removed from the queue",
    /// Its executor was shut down before its turn came.
    ShutDown = "its executor was shut down before it ran",
    /// Its deadline passed before its turn came.
    Expired = "its deadline passed before it ran",
    /// It was shed under overload.
    Shed = "shed: its executor was overloaded when its turn came, and it had waited too long",
    /// It had waited for longer than any task of its executor may.
    WaitedTooLong = "it had waited in the queue for longer than its executor allows",
    /// Its executor would not have it.
    Refused = "its executor refused it",
    /// Who waited for it has stopped waiting: another one was first, or the time was up.
    Abandoned = "its caller stopped waiting for it",
    /// Who waited for its work has done it in its place. Only the tasks that go to executors in the
    /// name of a scope's, and that have no handles, end so.
    RunInPlace = "done in its place by who waited for it",
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
                "the highest bit of the byte is BEGUN in the state word"
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
