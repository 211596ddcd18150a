//! Pure controllers: a sample in, a decision out.
//!
//! They take plain numbers (nanoseconds, counts) and use no clock, no lock and no thread. So a simulated engine
//! decides as a real one does, and a test plays an hour of overload in a microsecond.
//!
//! | file | what |
//! |---|---|
//! | `codel` | tells an overload from a burst, and which tasks to shed |
//! | `pace` | how long a queue takes to drain |

mod codel;
mod pace;

pub use codel::{CoDel, CodelDecision, CodelState};
pub use pace::Pace;
pub(crate) use pace::time_for;
