//! Results that are composed: `CompletableFuture`, the Rust way.
//!
//! A [`Completable`] is a result that will be there. Its other half, the [`Promise`], is completed by hand; or a task
//! computes it ([`Completable::supply_async`]). From one or several completables others are made, which are computed when
//! those are complete: a graph of stages, which runs by itself. Threads [join](Completable::join) them, async code awaits
//! them.
//!
//! ```
//! use millpond::future::{self, Completable};
//! use std::time::Duration;
//!
//! let flour = Completable::supply_async(|| 7).or_timeout(Duration::from_secs(60)).recover(|_| 3);
//! let salt = Completable::supply_async(|| 1);
//! let bread = flour.zip_with(salt, |sacks, grams| sacks * 40 + grams);
//! assert_eq!(bread.join()?, 281);
//! # Ok::<(), future::CompletionError>(())
//! ```
//!
//! Use it where results arrive by callbacks, or where many of them are combined, with time-outs and fallbacks, by code that
//! is not async. In code that is async, `async` and `await` read better; both worlds meet in a completable.
//!
//! # Three forms
//!
//! | form | the closure runs | Java |
//! |---|---|---|
//! | `map(f)` | on the thread that completes the source; in the caller, if the source is complete | `thenApply(f)` |
//! | `map_async(f)` | on the [default executor](DefaultExecutor) | `thenApplyAsync(f)` |
//! | `map_on(&pool, f)` | on that executor | `thenApplyAsync(f, pool)` |
//!
//! # Failures
//!
//! A completable fails with an error of its type `E`, by a panic, because it was cancelled, abandoned or timed out, or
//! because an executor has rejected it: a [`CompletionError`]. A failure goes along a chain as one, with the place where it
//! arose, up to a stage that handles it.
//!
//! # Guarantees
//!
//! 1. **One outcome.** Of all that try to complete a completable exactly one succeeds, and the others get their value back.
//! 2. **It is always completed**: by its promise or its closure, or as abandoned or cancelled when that is dropped.
//! 3. **A closure runs at most once**, after all it depends on, and never under a lock of ours or on the timer's thread. If it
//!    does not run it is dropped.
//! 4. **A chain of any length** is completed and dropped in a loop, on a small stack.
//! 5. **What is never complete keeps nothing** of those that were completed in another way.
//! 6. **Memory.** Writes before the completion of a source are visible in the closures of its stages, and after a join.
//! 7. **Context.** A stage has the deadline and the task-local values of the code that has made it, wherever it runs.

// The protocol of cells is in `millpond_raw::promise`.
//
// | file | what |
// |---|---|
// | `completable` | the reading half: waiting, looking, cancelling; how stages are made |
// | `promise` | the writing half |
// | `error` | why there is no value, and where that arose |
// | `meta` | place, name and flags of a stage |
// | `stage` | the bodies of stages with one source; tasks that compute them; linked cancellation |
// | `ops` | operations on one completable, in place |
// | `ops_async` | the same on executors |
// | `pair` | both of two, the first of two |
// | `group` | all of several, any of several |
// | `select` | the first success, all or the first failure, the order of completion |
// | `supply` | results that tasks compute |
// | `default_executor` | the executor of stages that were not given one |
// | `delayed` | an executor that submits later |
// | `timeout` | time-outs |
// | `bridge` | callbacks, tasks and futures |
// | `read_only` | a completable that can only be composed |
// | `waiting` | readers that wait |
// | `watch` | what is pending, and what waits for itself |

mod bridge;
mod completable;
mod default_executor;
mod delayed;
mod error;
mod group;
mod meta;
mod ops;
mod ops_async;
mod pair;
mod promise;
mod read_only;
mod select;
mod stage;
mod supply;
mod timeout;
mod waiting;
mod watch;

pub use completable::Completable;
pub use default_executor::DefaultExecutor;
pub use delayed::{DelayedExecutor, delayed};
pub use error::{Cause, CompletionError, Loop, Origin, StagePanic};
pub use group::{Group, all_of, any_of};
pub use promise::{Promise, promise};
pub use read_only::ReadOnly;
pub use select::{Completions, Numbered, as_completed, first_success, try_all_of};
pub use watch::{PendingStage, pending};
