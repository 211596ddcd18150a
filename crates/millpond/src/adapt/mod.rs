//! Pure controllers for engines: a sample in, a decision out.
//!
//! Take them to write an engine of your own, or to simulate one. A thread pool has them built in:
//! [`PoolBuilder::shedding`](crate::pool::PoolBuilder::shedding) takes a [`CoDel`].
//!
//! ```
//! use millpond::adapt::{CoDel, CodelState};
//!
//! const MS: u64 = 1_000_000;
//! let (codel, mut state) = (CoDel::default(), CodelState::new());
//! state.on_dequeue(&codel, 30 * MS, 0);
//! assert!(state.on_dequeue(&codel, 30 * MS, 100 * MS).is_overloaded, "a whole interval");
//! assert!(!state.on_dequeue(&codel, MS, 101 * MS).is_overloaded, "one has hardly waited");
//! ```
//!
//! They take plain numbers (nanoseconds, counts) and use no clock, no lock and no thread. So a simulated engine
//! decides as a real one does, and a test plays an hour of overload in a microsecond.

// | file | what |
// |---|---|
// | `codel` | tells an overload from a burst, and which tasks to shed |
// | `pace` | how long a queue takes to drain |

mod codel;
mod pace;

pub use codel::{CoDel, CodelDecision, CodelState};
pub use pace::Pace;
pub(crate) use pace::time_for;
