//! The behaviours, each written once as a sentence, and the macros that ask for them.
//!
//! | suite | for |
//! |---|---|
//! | [`task_suite!`](crate::task_suite) | everything that runs a [`Task`](millpond::task::Task): a thread, an executor |
//! | [`queue_suite!`](crate::queue_suite) | queues that hold elements |
//! | [`waiting_suite!`](crate::waiting_suite) | all queues: how takers wait |
//! | [`fifo_suite!`](crate::fifo_suite) | queues that keep the order of arrival |
//! | [`bounded_suite!`](crate::bounded_suite) | queues with a bound |
//! | [`unbounded_suite!`](crate::unbounded_suite) | queues without one |
//! | [`stress_suite!`](crate::stress_suite) | all queues: nothing is lost, nothing comes twice |
//! | [`storing_suite!`](crate::storing_suite) | queues that hold elements, under pressure |
//! | [`linear_suite!`](crate::linear_suite) | queues that hold elements: each step happens at one moment |
//! | [`asynchronous_suite!`](crate::asynchronous_suite) | bounded queues that futures can wait on |
//! | [`hand_off_suite!`](crate::hand_off_suite) | hand-off queues, fair and unfair |
//! | [`deque_suite!`](crate::deque_suite) | queues with two ends |
//! | [`priority_suite!`](crate::priority_suite) | queues by priority |
//! | [`delay_suite!`](crate::delay_suite) | queues of delayed elements |
//! | [`weighed_suite!`](crate::weighed_suite) | queues that are bounded by weight |
//! | [`transfer_suite!`](crate::transfer_suite) | transfer queues |
//! | [`executor_suite!`](crate::executor_suite) | all executors |
//! | [`beside_suite!`](crate::beside_suite) | executors that run tasks beside their callers, at least four |
//! | [`lifecycle_suite!`](crate::lifecycle_suite) | executors that can be ended |
//! | [`completion_suite!`](crate::completion_suite) | executors under a completion service |
//! | [`pool_sizes_suite!`](crate::pool_sizes_suite) | pools: how many workers |
//! | [`pool_idle_suite!`](crate::pool_idle_suite) | pools: when idle workers leave |
//! | [`pool_factory_suite!`](crate::pool_factory_suite) | pools: where threads come from |
//! | [`pool_hooks_suite!`](crate::pool_hooks_suite) | pools: hooks and events |
//! | [`pool_ends_suite!`](crate::pool_ends_suite) | pools: how they end |
//! | [`pool_races_suite!`](crate::pool_races_suite) | pools: under pressure |
//! | [`pool_waiting_suite!`](crate::pool_waiting_suite) | pools with a queue that holds tasks: queued tasks |
//! | [`pool_counts_suite!`](crate::pool_counts_suite) | pools with a queue that holds: figures |
//! | [`pool_live_suite!`](crate::pool_live_suite) | pools with a queue that holds: changes |
//! | [`pool_full_suite!`](crate::pool_full_suite) | pools with a bound: how they fill up |
//! | [`pool_refusal_suite!`](crate::pool_refusal_suite) | pools with a bound: the rejection policies |
//! | [`pool_block_suite!`](crate::pool_block_suite) | pools with a bound: waiting for room |
//! | [`pool_extra_suite!`](crate::pool_extra_suite) | pools with a bound: threads outside |
//! | [`forkjoin_tasks_suite!`](crate::forkjoin_tasks_suite) | fork-join pools: tasks that are forked and joined |
//! | [`forkjoin_completers_suite!`](crate::forkjoin_completers_suite) | fork-join pools: counted completers |
//! | [`scheduled_delays_suite!`](crate::scheduled_delays_suite) | scheduled pools: when things run |
//! | [`scheduled_periods_suite!`](crate::scheduled_periods_suite) | scheduled pools: how series repeat |
//! | [`scheduled_counts_suite!`](crate::scheduled_counts_suite) | scheduled pools: figures |
//! | [`scheduled_leaving_suite!`](crate::scheduled_leaving_suite) | scheduled pools: cancelled and removed tasks |
//! | [`scheduled_policies_suite!`](crate::scheduled_policies_suite) | scheduled pools: what a shutdown means for waiting tasks |
//! | [`scheduled_ends_suite!`](crate::scheduled_ends_suite) | scheduled pools: how they end |
//! | [`scheduled_races_suite!`](crate::scheduled_races_suite) | scheduled pools: under pressure |

pub mod asynchronous;
pub mod beside;
pub mod bounded;
pub mod completion;
pub mod delay;
pub mod deque;
pub mod executor;
pub mod fifo;
pub mod forkjoin_completers;
pub mod forkjoin_tasks;
pub mod hand_off;
pub mod item;
pub mod lifecycle;
pub mod linear;
pub mod pond;
pub mod pool_block;
pub mod pool_counts;
pub mod pool_ends;
pub mod pool_extra;
pub mod pool_factory;
pub mod pool_full;
pub mod pool_hooks;
pub mod pool_idle;
pub mod pool_live;
pub mod pool_races;
pub mod pool_refusal;
pub mod pool_sizes;
pub mod pool_waiting;
pub mod priority;
pub mod queue;
pub mod scheduled;
pub mod scheduled_counts;
pub mod scheduled_delays;
pub mod scheduled_ends;
pub mod scheduled_leaving;
pub mod scheduled_periods;
pub mod scheduled_policies;
pub mod scheduled_races;
pub mod storing;
pub mod stress;
pub mod task;
pub mod transfer;
pub mod unbounded;
pub mod waiting;
pub mod weighed;

/// Asks for suites, for one implementation, in a module of its own:
/// `ask! { fifo_bounded, |capacity| ..., queue_suite waiting_suite }`.
#[macro_export]
macro_rules! ask {
    ($module:ident, $subject:expr, $($suite:ident)+) => {
        mod $module {
            #[allow(unused_imports, reason = "what the subject needs is imported above")]
            use super::*;
            $($crate::$suite! { $subject })+
        }
    };
}

/// Makes a module of tests out of the bodies of a suite. The suites' own macros use it.
#[doc(hidden)]
#[macro_export]
macro_rules! bodies {
    ($room:ident, $subject:expr; $($name:ident)*) => {
        mod $room {
            #[allow(unused_imports, reason = "what the subject needs is imported above")]
            use super::*;
            $(
                #[test]
                fn $name() {
                    let name = concat!(module_path!(), "::", stringify!($name));
                    $crate::kit::case(name, || $crate::suites::$room::$name(&$subject));
                }
            )*
        }
    };
}
