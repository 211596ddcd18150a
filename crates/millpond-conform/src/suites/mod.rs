//! The behaviours, each written once as a sentence, and the macros that ask for them.
//!
//! | suite | for whom |
//! |---|---|
//! | [`task_suite!`](crate::task_suite) | whoever runs a [`Task`](millpond::task::Task): a thread, an executor |
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

pub mod asynchronous;
pub mod beside;
pub mod bounded;
pub mod completion;
pub mod delay;
pub mod deque;
pub mod executor;
pub mod fifo;
pub mod hand_off;
pub mod item;
pub mod lifecycle;
pub mod linear;
pub mod priority;
pub mod queue;
pub mod storing;
pub mod stress;
pub mod task;
pub mod transfer;
pub mod unbounded;
pub mod waiting;
pub mod weighed;

/// Asks for suites, for one implementation, in a module of its own:
/// `ask! { array, |capacity| ..., queue_suite waiting_suite }`.
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
