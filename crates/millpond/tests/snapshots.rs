//! What the common snapshot of every engine promises: counts that never fall, and books that balance whatever the
//! rejection policy does.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

#[path = "snapshots/joined.rs"]
mod joined;

#[path = "snapshots/running.rs"]
mod running;

#[path = "snapshots/stopped.rs"]
mod stopped;

use millpond::executor::{Executor, ExecutorExt, Lifecycle, Rejected};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::{EngineSnapshot, Managed, Measurement, MeasurementKind, Value};
use millpond::pool::{PoolSnapshot, Queue, RejectionPolicy, RunWarning, ThreadPool};
use millpond::schedule::{Every, ScheduledPool};
use millpond::task::TaskSpec;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// All policies by name. The custom ones give a task back, and submit it again.
fn policies() -> Vec<(&'static str, RejectionPolicy)> {
    let retry =
        |task, context: millpond::pool::RejectionContext<'_>| context.pool.execute_task(task);
    vec![
        ("abort", RejectionPolicy::Abort),
        ("caller_runs", RejectionPolicy::CallerRuns),
        ("discard", RejectionPolicy::Discard),
        ("discard_oldest", RejectionPolicy::DiscardOldest),
        ("block", RejectionPolicy::Block(Duration::from_millis(1))),
        ("new_thread", RejectionPolicy::NewThread { at_most: 1 }),
        (
            "report",
            RejectionPolicy::Report {
                at_most_every: Duration::from_secs(3600),
            },
        ),
        (
            "custom, gives back",
            RejectionPolicy::custom(|task, context: millpond::pool::RejectionContext<'_>| {
                Err(Rejected::new(task, context.reason))
            }),
        ),
        ("custom, tries again", RejectionPolicy::custom(retry)),
    ]
}

/// Submitted, completed, failed, rejected, cancelled.
fn counts(now: &EngineSnapshot) -> [u64; 5] {
    [
        now.submitted,
        now.completed,
        now.failed,
        now.rejected,
        now.cancelled,
    ]
}

/// Takes snapshots while `submitters` run, at least some hundred of them, and checks what must always hold. `begun`
/// is raised before each call.
fn watch(case: &str, engine: &dyn Managed, begun: &AtomicU64, are_done: &AtomicBool) {
    let (mut last, mut taken) = ([0; 5], 0);
    while taken < 300 || !are_done.load(Ordering::SeqCst) {
        let now = engine.engine_snapshot();
        let most = begun.load(Ordering::SeqCst);
        let seen = counts(&now);
        for (before, after) in last.into_iter().zip(seen) {
            assert!(before <= after, "{case}: {last:?} and then {seen:?}");
        }
        assert!(now.submitted <= most, "{case}: {seen:?} of {most} calls");
        assert!(now.rejected <= most, "{case}: {seen:?} of {most} calls");
        assert!(
            now.submitted >= now.completed + now.cancelled,
            "{case}: {seen:?}"
        );
        assert!(now.completed >= now.failed, "{case}: {seen:?}");
        (last, taken) = (seen, taken + 1);
    }
}

const SUBMITTERS: u64 = 3;
const CALLS: u64 = 3_000;

#[test]
fn no_count_of_a_thread_pool_ever_falls_or_exceeds_the_truth_whatever_its_policy() {
    for (case, policy) in policies() {
        let pool = ThreadPool::builder("mill").core(2).max(2);
        let pool = pool.queue(Queue::bounded(20)).rejection(policy);
        let pool = pool.on_event(|_| ()).build().unwrap();
        let (begun, accepted) = (AtomicU64::new(0), AtomicU64::new(0));
        let are_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let submitters: Vec<_> = (0..SUBMITTERS)
                .map(|_| {
                    scope.spawn(|| {
                        for call in 0..CALLS {
                            begun.fetch_add(1, Ordering::SeqCst);
                            let is_accepted = match call % 8 {
                                0 => pool.submit(|| ()).map(|task| task.cancel()).is_ok(),
                                1 => {
                                    let panics = || resume_unwind(Box::new("dry"));
                                    pool.submit(panics)
                                        .map(drop::<millpond::task::TaskHandle<()>>)
                                        .is_ok()
                                }
                                _ => pool.execute(|| ()).is_ok(),
                            };
                            accepted.fetch_add(u64::from(is_accepted), Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            scope.spawn(|| watch(case, &pool, &begun, &are_done));
            for submitter in submitters {
                submitter.join().unwrap();
            }
            are_done.store(true, Ordering::SeqCst);
        });
        pool.close().unwrap();
        let (end, accepted) = (pool.engine_snapshot(), accepted.into_inner());
        let rejected = SUBMITTERS * CALLS - accepted;
        assert_eq!(
            (end.submitted, end.rejected),
            (accepted, rejected),
            "{case}"
        );
        assert_eq!(
            end.submitted,
            end.completed + end.cancelled,
            "{case}: {end:?}"
        );
    }
}

#[test]
fn no_count_falls_while_workers_come_and_go_and_tasks_join_each_other() {
    let pool = ThreadPool::builder("mill")
        .core(0)
        .max(4)
        .keep_alive(Duration::ZERO);
    let pool = pool
        .queue(Queue::hand_off())
        .rejection(RejectionPolicy::CallerRuns);
    let pool = pool.build().unwrap();
    let inner = ThreadPool::builder("inner").core(2).max(2).build().unwrap();
    let (begun, are_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun_inner = AtomicU64::new(0);
    thread::scope(|scope| {
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..300 {
                        begun.fetch_add(1, Ordering::SeqCst);
                        pool.execute(|| ()).unwrap();
                        begun_inner.fetch_add(2, Ordering::SeqCst);
                        let own = inner.clone();
                        let joins = move || own.submit(|| ()).unwrap().join().unwrap();
                        inner.submit(joins).unwrap().join().unwrap();
                    }
                })
            })
            .collect();
        scope.spawn(|| watch("hand-off", &pool, &begun, &are_done));
        scope.spawn(|| watch("joins", &inner, &begun_inner, &are_done));
        for submitter in submitters {
            submitter.join().unwrap();
        }
        are_done.store(true, Ordering::SeqCst);
    });
    for (pool, calls) in [(pool, begun), (inner, begun_inner)] {
        pool.close().unwrap();
        let end = pool.engine_snapshot();
        assert_eq!(
            (end.submitted, end.completed),
            (calls.load(Ordering::SeqCst), end.submitted)
        );
    }
}

#[test]
fn no_count_of_a_fork_join_pool_ever_falls_or_exceeds_the_truth() {
    let pool = ForkJoinPool::builder("mill")
        .parallelism(2)
        .build()
        .unwrap();
    let (begun, accepted) = (AtomicU64::new(0), AtomicU64::new(0));
    let are_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                scope.spawn(|| {
                    for call in 0..CALLS {
                        begun.fetch_add(1, Ordering::SeqCst);
                        let task = pool.submit(move || {
                            if call % 8 < 2 {
                                resume_unwind(Box::new("dry"))
                            }
                        });
                        let task = task.unwrap();
                        match call % 8 {
                            0 | 4 => drop(task.run_or_join()),
                            2 => drop(task.cancel()),
                            _ => {}
                        }
                        accepted.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        scope.spawn(|| watch("fork-join", &pool, &begun, &are_done));
        for submitter in submitters {
            submitter.join().unwrap();
        }
        are_done.store(true, Ordering::SeqCst);
    });
    pool.close().unwrap();
    let (end, accepted) = (pool.engine_snapshot(), accepted.into_inner());
    assert_eq!((end.submitted, end.rejected), (accepted, 0), "{end:?}");
    assert_eq!(end.submitted, end.completed + end.cancelled, "{end:?}");
    assert_eq!(end.failed, accepted / 4, "{end:?}");
}

#[test]
fn no_count_of_a_scheduled_pool_ever_falls() {
    let pool = ThreadPool::builder("below").core(2).max(2).build().unwrap();
    let timers = ScheduledPool::owning(pool)
        .max_pending(50)
        .on_event(|_| ())
        .build();
    let are_done = AtomicBool::new(false);
    // A series plans runs of its own, without calls.
    let no_limit = AtomicU64::new(u64::MAX);
    let series = timers
        .series(Every::rate(Duration::from_millis(1)))
        .start(|| ())
        .unwrap();
    thread::scope(|scope| {
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for call in 0..1_000 {
                        let delay = Duration::from_micros(call % 50);
                        let panics = call % 7 == 0;
                        let task = timers.schedule(delay, move || {
                            if panics {
                                resume_unwind(Box::new("dry"))
                            }
                        });
                        if let Ok(task) = task {
                            if call % 3 == 0 {
                                task.cancel();
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| watch("scheduled", &timers, &no_limit, &are_done));
        for submitter in submitters {
            submitter.join().unwrap();
        }
        are_done.store(true, Ordering::SeqCst);
    });
    series.cancel();
    timers.close().unwrap();
    let end = timers.engine_snapshot();
    assert_eq!(end.submitted, end.completed + end.cancelled, "{end:?}");
}

/// A pool of one worker, which runs a task until the sender is dropped, and with room for two.
fn held(policy: RejectionPolicy) -> (ThreadPool, Sender<()>) {
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::bounded(2));
    let pool = pool.rejection(policy).on_event(|_| ()).build().unwrap();
    let ((begun, begins), (open, gate)) = (channel(), channel::<()>());
    pool.execute(move || {
        begun.send(()).unwrap();
        for () in gate {}
    })
    .unwrap();
    begins.recv().unwrap();
    (pool, open)
}

fn assert_books_balance(case: &str, now: &PoolSnapshot) {
    let finished = now.completed + now.cancelled;
    let unfinished = now.queued + now.active + now.running_inline + now.extra_threads;
    assert_eq!(
        now.submitted,
        finished + unfinished as u64,
        "{case}: {now:?}"
    );
}

#[test]
fn every_call_is_submitted_or_rejected_whatever_the_policy() {
    for (case, policy) in policies() {
        let (pool, open) = held(policy);
        let (mut accepted, mut rejected) = (1, 0);
        // What blocks an extra thread, or waits in the queue, ends with the gate.
        let gates: Vec<_> = (0..20).map(|_| channel::<()>()).collect();
        let mut gate_openers = Vec::new();
        for (call, (gate_opener, gate)) in gates.into_iter().enumerate() {
            let waits = case == "new_thread";
            if waits {
                gate_openers.push(gate_opener);
            }
            let spec = TaskSpec::new().name(format!("{}", call % 3));
            let body = move || {
                if waits {
                    for () in gate {}
                }
            };
            let done = if call % 2 == 0 {
                pool.execute_with(spec, body).is_ok()
            } else {
                pool.execute(body).is_ok()
            };
            (accepted, rejected) = (accepted + u64::from(done), rejected + u64::from(!done));
        }
        if case != "new_thread" {
            let now = pool.engine_snapshot();
            assert_eq!(
                (now.submitted, now.rejected),
                (accepted, rejected),
                "{case}: {now:?}"
            );
            assert_books_balance(case, now.details().unwrap());
        }
        drop((open, gate_openers));
        pool.close().unwrap();
        let end = pool.engine_snapshot();
        assert_eq!(
            (end.submitted, end.rejected),
            (accepted, rejected),
            "{case}: {end:?}"
        );
        assert_eq!(
            end.submitted,
            end.completed + end.cancelled,
            "{case}: {end:?}"
        );
        let own = end.details::<PoolSnapshot>().unwrap();
        assert_books_balance(case, own);
        let outcome = (
            own.left_to_policy,
            own.caller_ran,
            own.discarded,
            own.extra_ran,
            rejected,
        );
        let expected = match case {
            "caller_runs" => (18, 18, 0, 0, 0),
            "discard" | "discard_oldest" => (18, 0, 18, 0, 0),
            "new_thread" => (18, 0, 0, 1, 17),
            _ => (18, 0, 0, 0, 18),
        };
        assert_eq!(outcome, expected, "{case}");
    }
}

#[test]
fn a_task_that_a_handler_keeps_is_neither_submitted_nor_rejected_until_it_is_submitted_again() {
    let (keep, kept) = channel();
    let keeps = RejectionPolicy::custom(move |task, _: millpond::pool::RejectionContext<'_>| {
        keep.send(task).unwrap();
        Ok(())
    });
    let (pool, open) = held(keeps);
    for _ in 0..3 {
        pool.execute(|| ()).unwrap();
    }
    let now = pool.engine_snapshot();
    assert_eq!((now.submitted, now.rejected), (3, 0));
    drop(open);
    let task = kept.recv().unwrap();
    pool.set_capacity(10).unwrap();
    millpond::executor::Executor::execute_task(&pool, task).unwrap();
    pool.close().unwrap();
    let end = pool.engine_snapshot();
    assert_eq!((end.submitted, end.completed, end.rejected), (4, 4, 0));
}

#[test]
fn what_panics_in_its_caller_or_on_an_extra_thread_has_failed() {
    for policy in [
        RejectionPolicy::CallerRuns,
        RejectionPolicy::NewThread { at_most: 9 },
    ] {
        let (pool, open) = held(policy.clone());
        for _ in 0..2 {
            pool.execute(|| ()).unwrap();
        }
        let dry = || -> () { resume_unwind(Box::new("dry")) };
        pool.execute(dry).unwrap();
        let task = pool.submit(dry).unwrap();
        assert!(task.join().unwrap_err().is_panicked());
        drop(open);
        pool.close().unwrap();
        let end = pool.engine_snapshot();
        assert_eq!(
            (end.submitted, end.completed, end.failed),
            (5, 5, 2),
            "{policy:?}"
        );
    }
}

#[test]
fn a_task_that_a_rejected_caller_finds_expired_is_cancelled() {
    let hand = millpond::time::ManualClock::new();
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::bounded(1));
    let pool = pool
        .rejection(RejectionPolicy::CallerRuns)
        .clock(hand.clock());
    let pool = pool.on_event(|_| ()).build().unwrap();
    let (open, gate) = channel::<()>();
    pool.execute(move || for () in gate {}).unwrap();
    pool.execute(|| ()).unwrap();
    let late = hand.clock().deadline(Duration::ZERO);
    hand.advance(Duration::from_secs(1));
    let task = pool
        .submit_with(TaskSpec::new().deadline(late), || ())
        .unwrap();
    assert!(task.join().unwrap_err().is_cancelled());
    drop(open);
    pool.close().unwrap();
    let end = pool.engine_snapshot();
    assert_eq!(
        (end.submitted, end.completed, end.cancelled),
        (3, 2, 1),
        "{end:?}"
    );
    assert_eq!(pool.snapshot().expired, 1);
}

/// An exporter goes by name, kind and unit: a name that two engines have means the same in both.
#[test]
fn a_measurement_says_what_kind_of_number_it_is_and_its_name_means_the_same_in_every_engine() {
    let pool = ThreadPool::builder("mill").core(1).build().unwrap();
    let timers = ScheduledPool::on(pool.clone()).name("bells").build();
    let forks = ForkJoinPool::builder("saw").build().unwrap();
    let engines: [&dyn Managed; 3] = [&pool, &timers, &forks];
    let mut known: Vec<Measurement> = Vec::new();
    for engine in engines {
        let all = engine.engine_snapshot().measurements();
        for (at, each) in all.iter().enumerate() {
            let others = &all[..at];
            assert!(others.iter().all(|other| other.name != each.name), "{each}");
            let is_flag = matches!(each.value, Value::Boolean(_));
            assert_eq!(each.kind == MeasurementKind::Flag, is_flag, "{each}");
            if let Some(same) = known.iter().find(|other| other.name == each.name) {
                assert_eq!((same.kind, same.unit), (each.kind, each.unit), "{each}");
            }
        }
        known.extend(all);
    }
    let kind = |name| {
        known
            .iter()
            .find(|each| each.name == name)
            .map(|each| each.kind)
    };
    assert_eq!(kind("waited_for_room"), Some(MeasurementKind::Counter));
    assert_eq!(kind("blocked"), Some(MeasurementKind::Gauge));
    assert_eq!(kind("is_overloaded"), Some(MeasurementKind::Flag));
}

/// A governor that adds up engines, or shuts them down, knows which of them stands on which.
#[test]
fn an_engine_says_which_engine_below_runs_its_tasks() {
    let pool = ThreadPool::builder("mill").core(1).build().unwrap();
    let on = ScheduledPool::on(std::sync::Arc::new(pool.clone()))
        .name("bells")
        .build();
    let upon = ScheduledPool::on(on.clone()).name("chimes").build();
    let wrapper = millpond::executor::SerialExecutor::new(pool.clone()).key("rye");
    let through = ScheduledPool::on(wrapper).name("carillon").build();
    let direct = millpond::executor::DirectExecutor::new();
    let alone = ScheduledPool::on(direct).name("gong").build();
    fn below(engine: &dyn Managed) -> Option<&str> {
        engine.executor().map(Managed::name)
    }
    assert_eq!((below(&on), below(&upon)), (Some("mill"), Some("bells")));
    assert_eq!((below(&through), below(&alone)), (Some("mill"), None));
    assert_eq!((below(&pool), below(ForkJoinPool::common())), (None, None));

    on.schedule(Duration::from_millis(1), || ())
        .unwrap()
        .join()
        .unwrap();
    let engines: [&dyn Managed; 2] = [&pool, &on];
    let submitted = engines.map(|engine| engine.engine_snapshot().submitted);
    assert_eq!(submitted, [1, 1], "one task, which both count");
    for timers in [&upon as &dyn Lifecycle, &on, &through, &alone] {
        timers.close().unwrap();
    }
    pool.close().unwrap();
}

#[test]
fn a_console_that_knows_no_pools_finds_the_counters_of_health_among_the_measurements() {
    let (hand, minute) = (millpond::time::ManualClock::new(), Duration::from_secs(60));
    let pool = ThreadPool::builder("mill").clock(hand.clock());
    let pool = pool.run_warning(RunWarning::after(minute));
    let pool = pool.on_event(|_| ()).build().unwrap();
    let (meet, wait) = std::sync::mpsc::sync_channel(0);
    pool.execute(move || for () in wait {}).unwrap();
    meet.send(()).unwrap(); // it runs
    hand.advance(minute);
    let now = pool.engine_snapshot();
    let measured = now.measurements();
    for name in [
        "lost_wakeups",
        "long_runs",
        "deadlocks",
        "thread_failures",
        "failed_starts_in_a_row",
        "surplus_workers",
        "futile_spins",
        "preempted_yields",
    ] {
        let found = measured.iter().filter(|each| each.name == name).count();
        assert_eq!(found, 1, "{name}");
    }
    assert!(measured.contains(&Measurement::counter("long_runs", 1).with_unit("tasks")));
    assert_eq!(
        now.warnings,
        ["running tasks that have exceeded the limit of their run warning: 1"]
    );
    drop(meet);
    pool.close().unwrap();
}

#[test]
fn a_scheduled_pool_shows_lateness_as_such_and_all_its_counts_in_its_text() {
    let hand = millpond::time::ManualClock::new();
    let second = Duration::from_secs(1);
    let pool = ThreadPool::builder("below").core(1).clock(hand.clock());
    let timers = ScheduledPool::owning(pool.build().unwrap());
    let timers = timers.on_event(|_| ()).build();
    let task = timers.schedule(second, || ()).unwrap();
    timers.schedule(2 * second, || ()).unwrap().cancel();
    hand.advance(second);
    task.join().unwrap();
    let (now, own) = (timers.engine_snapshot(), timers.snapshot());
    assert!(now.latencies.is_empty());
    assert_eq!((now.lateness.count(), &now.lateness), (1, &own.lateness));
    let text = own.to_string();
    let counts = "running, 0 pending, 0 series, 2 submitted, 1 run, 1 completed, 0 failed, 0 rejected, 1 cancelled, ";
    assert!(text.contains(counts), "{text}");
    timers.close().unwrap();
}

/// Starts the first thread. The bodies of others are dropped unrun, when the sender is dropped.
#[derive(Debug)]
struct LosesBodies {
    good: Threads,
    started: AtomicU64,
    until: Mutex<Option<Receiver<()>>>,
}

impl ThreadFactory for LosesBodies {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        if self.started.fetch_add(1, Ordering::SeqCst) == 0 {
            return self.good.start(body);
        }
        let until = self
            .until
            .lock()
            .unwrap()
            .take()
            .expect("there is one extra thread");
        self.good.start(Box::new(move || {
            for () in until {}
            drop(body);
        }))
    }
}

#[test]
fn a_task_whose_extra_thread_dies_before_its_first_step_is_cancelled_and_counted() {
    let (lose, until) = channel();
    let factory = LosesBodies {
        good: Threads::named("mill"),
        started: AtomicU64::new(0),
        until: Mutex::new(Some(until)),
    };
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::bounded(1));
    let pool = pool
        .rejection(RejectionPolicy::NewThread { at_most: 1 })
        .threads(factory);
    let pool = pool.on_event(|_| ()).build().unwrap();
    let (open, gate) = channel::<()>();
    let (begin, begun) = channel();
    let held = move || {
        begin.send(()).unwrap();
        for () in gate {}
    };
    pool.execute(held).unwrap();
    // A task on its way from one place to the next may be missed for a moment.
    begun.recv().unwrap();
    pool.execute(|| ()).unwrap();
    let lost = pool.submit(|| ()).unwrap();
    assert_eq!(
        pool.engine_snapshot().submitted,
        3,
        "its thread has not begun it"
    );
    drop(lose);
    assert!(lost.join().unwrap_err().is_cancelled());
    drop(open);
    pool.close().unwrap();
    let end = pool.engine_snapshot();
    assert_eq!(
        (end.submitted, end.completed, end.cancelled),
        (3, 2, 1),
        "{end:?}"
    );
}
