//! How a task ended.

use crate::quiet::Payload;
use core::any::Any;
use core::fmt;

/// How a task ended, and what it left.
pub enum Outcome<T, P = Payload> {
    /// The closure returned this.
    Completed(T),
    /// The closure panicked with this.
    Panicked(P),
    /// There will be no value.
    Cancelled(CancelReason),
}

impl<T: fmt::Debug, P> fmt::Debug for Outcome<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Completed(value) => f.debug_tuple("Completed").field(value).finish(),
            Outcome::Panicked(_) => f.write_str("Panicked(..)"),
            Outcome::Cancelled(reason) => f.debug_tuple("Cancelled").field(reason).finish(),
        }
    }
}

/// The text of a panic, if its payload is one: what `panic!("...")` leaves.
///
/// ```
/// use millpond_raw::task::panic_message;
///
/// let payload = std::panic::catch_unwind(|| panic!("no water")).unwrap_err();
/// assert_eq!(panic_message(&*payload), Some("no water"));
/// ```
pub fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    match payload.downcast_ref::<&'static str>() {
        Some(text) => Some(text),
        None => payload.downcast_ref::<String>().map(String::as_str),
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
    Shed = "shed under overload",
}

impl CancelReason {
    pub(super) fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn from_code(code: u8) -> Self {
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
        }
    }

    #[test]
    fn a_payload_that_is_no_text_has_no_message() {
        assert_eq!(panic_message(&7_u8), None);
        assert_eq!(panic_message(&String::from("text")), Some("text"));
    }
}
