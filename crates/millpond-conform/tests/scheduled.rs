//! The scheduled pool in a few shapes, and the suites that each must pass.
//!
//! `scheduled_plain*` are what one gets without wishes; `scheduled_extended*` are what a user makes of one:
//! a decorator, hooks, a thread factory of its own.

#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::Executor;
use millpond::pool::{Ended, Hooks, PoolBuilder, RejectionPolicy, TaskInfo, ThreadPool};
use millpond::preset;
use millpond::schedule::{ScheduledBuilder, ScheduledPool};
use millpond::time::Clock;
use millpond_conform::ask;
use millpond_conform::kit::{Factory, Start, case};
use millpond_conform::suites::pond::fresh_name;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

fn pool(name: &str, workers: usize, clock: Clock) -> PoolBuilder {
    let pool = ThreadPool::builder(name.to_owned()).clock(clock);
    pool.core(workers).max(workers)
}

fn plain(name: String, workers: usize, clock: Clock) -> ScheduledBuilder<ThreadPool> {
    let pool = pool(&name, workers, clock).build().unwrap();
    ScheduledPool::owning(pool).name(name)
}

/// As [`preset::scheduled`] has it, by another clock: what finds no room waits.
fn waits(name: String, workers: usize, clock: Clock) -> ScheduledBuilder<ThreadPool> {
    let pool = pool(&name, workers, clock).rejection(RejectionPolicy::Block(Duration::MAX));
    ScheduledPool::owning(pool.build().unwrap()).name(name)
}

/// Hooks that hear everything and do nothing.
struct Listener;

impl Hooks for Listener {
    fn before(&self, task: &TaskInfo) {
        assert!(!task.location().file().is_empty());
    }

    fn after(&self, _: &TaskInfo, _: Ended) {}

    fn terminated(&self) {}
}

fn extended(name: String, workers: usize, clock: Clock) -> ScheduledBuilder<ThreadPool> {
    let threads = Factory::new(name.clone(), |_| Start::Well);
    let pool = pool(&name, workers, clock).hooks(Listener).threads(threads);
    ScheduledPool::owning(pool.build().unwrap())
        .name(name)
        .decorator(|info, run| {
            assert!(info.number > 0);
            run();
        })
        .dispatcher_threads(Factory::new("dispatcher", |_| Start::Well))
}

ask! { scheduled_plain, |name, workers, clock| plain(name, workers, clock),
scheduled_delays_suite scheduled_periods_suite scheduled_counts_suite scheduled_leaving_suite
scheduled_policies_suite scheduled_ends_suite scheduled_races_suite }

ask! { scheduled_plain_waits, |name, workers, clock| waits(name, workers, clock),
scheduled_delays_suite scheduled_periods_suite scheduled_counts_suite scheduled_leaving_suite
scheduled_policies_suite scheduled_ends_suite scheduled_races_suite }

ask! { scheduled_extended, |name, workers, clock| extended(name, workers, clock),
scheduled_delays_suite scheduled_periods_suite scheduled_counts_suite scheduled_leaving_suite
scheduled_policies_suite scheduled_ends_suite scheduled_races_suite }

/// By the clock of the machine, and with four workers.
fn service(
    make: fn(String, usize, Clock) -> ScheduledBuilder<ThreadPool>,
) -> ScheduledPool<ThreadPool> {
    make(fresh_name(), 4, Clock::system()).build()
}

ask! { scheduled_plain_service, || Arc::new(service(plain)), executor_suite beside_suite completion_suite }
ask! { scheduled_plain_service_ends, || Arc::new(service(plain)), lifecycle_suite }
ask! { scheduled_plain_preset, || Arc::new(preset::scheduled(fresh_name(), 4).unwrap()),
executor_suite beside_suite completion_suite }
ask! { scheduled_plain_preset_ends, || Arc::new(preset::scheduled(fresh_name(), 4).unwrap()), lifecycle_suite }
ask! { scheduled_extended_service, || Arc::new(service(extended)), executor_suite beside_suite completion_suite }
ask! { scheduled_extended_service_ends, || Arc::new(service(extended)), lifecycle_suite }

static PLAIN: LazyLock<ScheduledPool<ThreadPool>> = LazyLock::new(|| service(plain));

ask! { scheduled_plain_tasks, |task| PLAIN.execute_task(task).unwrap(), task_suite }

/// Adapted: it is the policy of the pool below, and its default is to reject. The pool of the preset
/// lets due tasks wait instead, so that no accepted task is rejected when it is due.
///
/// Holds: ScheduledExecutorTest.testDefaultRejectedExecutionHandler
#[test]
fn a_due_task_that_finds_no_room_is_rejected_unless_the_preset_was_used() {
    case("policy", || {
        let own = service(plain);
        assert!(matches!(own.executor().rejection(), RejectionPolicy::Abort));
        let preset = preset::scheduled(fresh_name(), 1).unwrap();
        let policy = preset.executor().rejection();
        assert!(matches!(policy, RejectionPolicy::Block(Duration::MAX)));
    });
}
