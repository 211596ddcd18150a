//! What most programs use: `use millpond::prelude::*;`.
//!
//! The traits whose methods one calls without naming them, and the few types that are named everywhere. With it a pool is
//! used as in Java:
//!
//! ```
//! use millpond::prelude::*;
//!
//! let pool = preset::fixed("mill", 2).build()?;
//! pool.execute(|| println!("ground"))?;
//! pool.execute_named("audit", || println!("and written down"))?;
//! assert_eq!(pool.submit(|| 6 * 7)?.join()?, 42);
//! pool.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use crate::executor::{Executor, ExecutorExt, Lifecycle, SpawnFuture};
pub use crate::forkjoin::ForkJoinPool;
pub use crate::manage::{Managed, Patch};
pub use crate::pool::{Queue, RejectionPolicy, ThreadPool};
pub use crate::preset;
pub use crate::queue::{AsyncQueue, BlockingQueue};
pub use crate::schedule::ScheduledPool;
pub use crate::task::{TaskHandle, TaskLocal, TaskSpec};
