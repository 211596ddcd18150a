//! What every engine needs and none should write twice.
//!
//! An engine is anything that runs tasks and can be managed: thread pools, scheduled pools and fork-join pools. This room
//! knows none of them. An engine hands in what is its own through a type parameter or a small trait.
//!
//! | file | what it holds |
//! |---|---|
//! | `builder` | the common part of builders |
//! | `ctl` | the control word: run state and worker count |
//! | `workers` | the registry of workers, and how far each has started |
//! | `spawn` | the start protocol of workers, and recovery when one could not start |
//! | `starts` | attempts to start threads of workers, and the pause between two while all of them fail |
//! | `removed` | accepted tasks that left the queues otherwise than through a worker; `stop_workers`, which the stop of an engine begins with |
//! | `parameters` | parameters that engines share: their rows, defaults and words |
//! | `identity` | how a submitter recognises its own task in a queue |
//! | `termination` | how an engine ends: try to terminate, await, drop of the last handle |
//! | `inline_join` | the host for joins that run the joined task inline, and the count of tombstones |
//! | `fork_guard` | telling a child process from the one in which an engine was built |
//! | `metrics` | metrics of tasks, by name |
//! | `watchdog` | looks for tasks that run too long and for lost wake-ups |
//! | `health`, `view` | what is wrong with an engine, and what each of its workers does |
//! | `wording` | sentences about an engine: numbers, latencies, losses |
//! | `long_run`, `stacks` | reports of tasks that run too long; the stacks of workers |
//! | `events` | events for the operator of an engine: their queue, and their delivery to a listener |
//! | `dropped` | events about detached tasks that were dropped before they ran |

mod builder;
mod ctl;
pub(crate) mod dropped;
pub(crate) mod events;
mod fork_guard;
pub(crate) mod health;
mod identity;
mod inline_join;
pub(crate) mod long_run;
pub(crate) mod metrics;
pub(crate) mod parameters;
mod removed;
mod spawn;
pub(crate) mod stacks;
mod starts;
pub(crate) mod termination;
pub(crate) mod view;
pub(crate) mod watchdog;
pub(crate) mod wording;
mod workers;

pub(crate) use builder::{CommonBuilder, WorkerBuilder};
pub(crate) use ctl::{AtomicCtl, Ctl};
pub(crate) use fork_guard::ForkGuard;
pub(crate) use identity::{Identity, thread_number};
pub(crate) use inline_join::{InlineHost, InlineJoins, InlineRun, Tombstones};
pub(crate) use removed::{RemovedTasks, RemovesTasks};
pub(crate) use spawn::{NotAdded, Spawn, WorkerEngine, WorkerGuard};
pub(crate) use starts::Starts;
pub(crate) use termination::{Hold, LastHandle, Terminates, Termination};
pub(crate) use workers::{Worker, WorkerPart, Workers};
