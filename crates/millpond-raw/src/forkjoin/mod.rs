//! Jobs of fork-join: closures on the stack of the thread that waits for them, which other threads may steal.
//!
//! ```text
//!   a worker's stack                                   a deque, anywhere            another worker
//!   +-- join(a, b) ------+   private list                                                 |
//!   | job b (oldest)     |<------+   publish_oldest                                       v
//!   |  +-- join(c, d) ---+       |  ----------------->  [ JobRef ] ------- steal ------> run
//!   |  | job d           |<------+                         |                              |
//!   |  |                 |<-- tail (Local)                 | reclaim                      | DONE
//!   +--+-----------------+ <-------------------------------+------------------------------+
//! ```
//!
//! A job that is forked goes to the *private list* of its thread, a doubly linked list through the jobs themselves. It
//! has no slots, so its depth has no limit, and no other thread can see it: to fork is five plain stores, to take the job
//! back two loads and a store, and the closure is called by static dispatch. Only when others want work, which one
//! relaxed load says ([`Demand`]), the *oldest* private job is *published*: it becomes a [`JobRef`], which its host may
//! put where others find it.
//!
//! | file | what |
//! |---|---|
//! | `job` | the header of a job, its state word, a reference to it |
//! | `stack_job` | a job on the stack of the thread that waits for it |
//! | `local` | the private list, `join`, and how a thread finds its own |
//! | `spawned` | jobs on the heap, and the scope that waits for them |
//!
//! # Invariants
//!
//! - **JOB-1** A stack job is alive and stays where it is until its owner has taken it out of the private list, has its
//!   [`JobRef`] back, or has read DONE or RETURNED from its state word with an acquiring load. Before that the owner
//!   neither returns nor unwinds from the frame that it is in.
//! - **JOB-2** The closure of a job belongs to the owner while the job is in the private list, and after that to the one
//!   `JobRef`, which can be neither copied nor made twice. RETURNED gives it back to the owner.
//! - **JOB-3** The holder of the `JobRef` touches nothing of a stack job after it has written DONE or RETURNED.
//! - **JOB-4** The waker is written by the owner before WAITING, and after that belongs to the thread that finishes the
//!   job. A thread that finishes without having seen WAITING does not read it. Only the owner's thread can register one:
//!   [`Awaited`] and [`PendingJobs`] are neither `Send` nor `Sync`.
//! - **JOB-5** The private list is used by its own thread only: [`Local`] is neither `Send` nor `Sync`. Its links point
//!   to jobs that are alive: a job leaves the list before its frame ends (JOB-1), in any order.
//! - **JOB-6** The thread-local pointer is null or points to a `Local` that is borrowed by a running [`enter`] of this
//!   thread, which puts the former pointer back, also when it unwinds. The host is borrowed as long.
//! - **JOB-7** A spawned job borrows what lives for `'scope`. [`SpawnScope::enter`] does not return before all jobs of
//!   the scope are over, and a job is counted from before its lifetime is erased until its closure is gone.
//! - **JOB-8** No panic of a host unwinds a frame with a job in it: it aborts the process. A panic of a closure is caught
//!   where the closure was stolen, and resumed by the owner.
//! - **JOB-9** The context of a job is written when its `JobRef` is made and belongs to that reference; whoever consumes
//!   the reference takes it out, once. It has the token of the frame in which the job was forked, or for a spawned job of
//!   the frame in which its scope was entered. The owner waits in that frame, so the token outlives the job. A thread
//!   publishes its private jobs before it enters another frame ([`publish_private`]), and a job leaves the private list
//!   before its frame ends (JOB-5); so all private jobs were forked in the frame that is current.
//! - **JOB-10** A worker whose host says so ([`Host::holds_shares`]) may hold a *share* of one scope: a part of its count that
//!   no job stands for, because jobs of it have ended there. Jobs that are made there take their count out of it. So where
//!   jobs make jobs the count of the scope is hardly touched. The scope is not over while there is a share of it, so the
//!   pointer of the share is good. The worker gives it back before it does anything that the end of the scope does not wait
//!   for: jobs of joins and of other scopes do so when they begin; its host does before it runs a task, looks for work
//!   elsewhere, parks or returns from a wait ([`Local::give_share_back`]).
//!
//! # Orderings
//!
//! - `[Q-done]` Finishing a job releases its outcome and everything that it did; the owner acquires that with the state.
//! - `[Q-wait]` Registering a waker releases it; the thread that finishes acquires it with WAITING.
//! - `[Q-scope]` A spawned job that is over releases what it did, or the share does that it has left; the scope acquires that
//!   with the count of zero.
//! - `[Q-frame]` Opening a scope releases the token of its frame; a thread that counts a job of it acquires that.
//!
//! The host moves a `JobRef`, which is `Send`, to another thread. Whatever the host uses for that orders the rest.

mod job;
mod local;
mod spawned;
mod stack_job;
#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;

pub use job::{Awaited, JobRef, Surround};
pub use local::{Demand, Host, Local, enter, publish_private, with_current};
pub use spawned::{PendingJobs, SpawnScope};
pub use stack_job::{HandedOver, hand_over};
