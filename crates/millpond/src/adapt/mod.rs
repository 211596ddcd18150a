//! Pure controllers: a sample in, a decision out.
//!
//! What an engine decides by what it has measured is decided here, by plain numbers: nanoseconds,
//! counts. There is no clock in this room, no lock and no thread, so a simulated engine decides as a
//! real one does, and a test plays an hour of overload in a microsecond.
//!
//! | file | question |
//! |---|---|
//! | `codel` | do tasks wait because of a burst, or because there are too many of them? |
//! | `pace` | how long does a queue need to drain? |

mod codel;
mod pace;

pub use codel::{CoDel, Standing, Verdict};
pub use pace::Pace;
pub(crate) use pace::time_for;
