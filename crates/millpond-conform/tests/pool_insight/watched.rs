//! What workers do, what hangs, what is told to listeners, and what a pool says of itself.

use crate::mill::{Mill, ms};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{Label, PoolEvent, Queue, RejectionPolicy, RunWarning};
use millpond::pool::{ThreadPool, WorkerView};
use millpond::task::{SharedHandle, TaskSpec};
use millpond::time::ManualClock;
use millpond_conform::kit::{OwnQueue, case, delays, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn workers_say_who_they_are_and_what_they_run() {
    case("workers", || {
        let mill = Mill::new(|pool| pool.core(2));
        let (gate, held) = mill.hold("grind");
        mill.bring("bake", ms(0)).join().unwrap();
        mill.pond.await_idle(1);
        mill.hand.advance(ms(1234));
        let workers = mill.pond.workers();
        let [busy, idle] = &workers[..] else {
            panic!("{workers:?}");
        };
        let task = busy.task.as_ref().expect("it runs");
        assert_eq!(task.label, Label::Name("grind".into()));
        assert_eq!(task.running_for, ms(1234));
        assert!(task.location.unwrap().file().ends_with("mill.rs"));
        assert_eq!(
            busy.thread.as_deref(),
            Some(&*format!("{}-1", mill.pond.name()))
        );
        assert!(idle.task.is_none());
        if cfg!(target_os = "linux") {
            assert!(busy.tid.is_some() && busy.tid != idle.tid);
            assert!(busy.cpu.is_some());
        }
        let said = busy.to_string();
        assert!(said.contains(": runs grind for 1.2s, made at "), "{said}");
        gate.open();
        held.join().unwrap();
    });
}

#[test]
fn a_task_that_runs_too_long_is_told_of_once_while_it_runs() {
    case("long", || {
        let mill = Mill::new(|pool| pool.run_warning(RunWarning::after(ms(100))));
        let (gate, held) = mill.hold("grind");
        mill.hand.advance(ms(99));
        assert!(mill.notices().is_empty());
        mill.hand.advance(ms(2));
        let notices = mill.notices();
        let [PoolEvent::LongRunning(run)] = &notices[..] else {
            panic!("{notices:?}");
        };
        assert_eq!(run.label.to_string(), "grind");
        assert_eq!((run.running_for, run.limit), (ms(101), ms(100)));
        let said = run.to_string();
        let expected = "grind has been running for 101.0ms, its limit is 100.0ms";
        assert!(said.contains(expected), "{said}");
        assert!(!run.is_interrupted);
        assert!(
            !run.stack.is_empty(),
            "where it is, or why that is not known"
        );
        for _ in 0..10 {
            mill.hand.advance(ms(100));
        }
        assert_eq!(mill.long_runs(), ["grind"], "once");
        gate.open();
        assert!(!held.join().unwrap(), "it was not interrupted");
        assert_eq!(mill.pond.health().long_runs, 1);
        // The next one has its own time, and its own notice.
        let (gate, held) = mill.hold("bake");
        mill.hand.advance(ms(100));
        assert_eq!(mill.long_runs(), ["grind", "bake"]);
        gate.open();
        held.join().unwrap();
    });
}

#[test]
fn a_name_has_a_limit_of_its_own_and_limits_change_while_tasks_run() {
    case("limits", || {
        let mill = Mill::new(|pool| {
            pool.core(2)
                .run_warning(RunWarning::after(ms(1000)))
                .run_warning_for("quick", RunWarning::after(ms(10)))
        });
        let (slow, first) = mill.hold("slow");
        let (quick, second) = mill.hold("quick");
        mill.hand.advance(ms(10));
        assert_eq!(mill.long_runs(), ["quick"]);
        mill.pond.set_run_warning(Some(RunWarning::after(ms(20))));
        mill.hand.advance(ms(10));
        assert_eq!(mill.long_runs(), ["quick", "slow"]);
        mill.pond.set_run_warning(None);
        mill.pond.set_run_warning_for("quick", None);
        slow.open();
        quick.open();
        first.join().unwrap();
        second.join().unwrap();
        let (gate, held) = mill.hold("quick");
        mill.hand.advance(ms(10_000));
        assert_eq!(mill.long_runs().len(), 2, "there is no limit any more");
        gate.open();
        held.join().unwrap();
    });
}

#[test]
fn a_limit_may_interrupt_that_task_and_no_other() {
    case("interrupts", || {
        let warning = RunWarning::after(ms(100)).interrupts();
        let mill = Mill::new(|pool| pool.core(2).run_warning_for("hangs", warning));
        let (_gate, hangs) = mill.hold("hangs");
        let (gate, other) = mill.hold("other");
        mill.hand.advance(ms(100));
        assert!(hangs.join().unwrap(), "it was interrupted");
        let notices = mill.notices();
        let [PoolEvent::LongRunning(run)] = &notices[..] else {
            panic!("{notices:?}");
        };
        assert!(run.is_interrupted);
        gate.open();
        assert!(!other.join().unwrap());
        // Whoever comes next on the same worker is not interrupted.
        for _ in 0..4 {
            let (gate, held) = mill.hold("hangs");
            gate.open();
            assert!(!held.join().unwrap());
        }
    });
}

#[test]
fn by_the_machines_clock_a_hung_task_is_told_of_while_it_hangs() {
    case("real", || {
        let notices = Arc::<Mutex<Vec<PoolEvent>>>::default();
        let heard = Arc::clone(&notices);
        let pool = ThreadPool::builder(fresh_name())
            .core(1)
            .run_warning(RunWarning::after(ms(20)).interrupts())
            .on_event(move |notice| heard.lock().unwrap().push(notice.clone()));
        let pond = Pond::of(pool);
        let hangs = || interrupt::sleep(delays::long()).is_err();
        assert!(pond.submit(hangs).unwrap().join().unwrap());
        until("the notice has come", || notices.lock().unwrap().len() == 1);
    });
}

#[test]
fn rejections_are_reported_with_a_snapshot_and_the_workers_but_not_too_often() {
    case("report", || {
        let every = ms(1000);
        let report = RejectionPolicy::Report {
            at_most_every: every,
        };
        let mill = Mill::new(|pool| pool.queue(Queue::bounded(1)).rejection(report));
        let (gate, held) = mill.hold("grind");
        let waits = mill.bring("waits", ms(0));
        let refuse = || {
            let spec = TaskSpec::new().name("too much");
            let refused = mill.pond.submit_with(spec, || ()).unwrap_err();
            assert!(refused.reason.is_saturated(), "it is given back");
        };
        for _ in 0..3 {
            refuse();
        }
        mill.hand.advance(every);
        refuse();
        let notices = mill.notices();
        let [PoolEvent::Rejected(first), PoolEvent::Rejected(second)] = &notices[..] else {
            panic!("{notices:?}");
        };
        assert_eq!((first.rejections, second.rejections), (1, 3));
        assert_eq!(first.label, "too much");
        assert_eq!(first.snapshot.queued, 1);
        assert_eq!(first.workers.len(), 1);
        assert_eq!(first.stacks.len(), 1);
        let said = notices[1].to_string();
        for part in [
            mill.pond.name(),
            "rejected too much",
            "runs grind",
            "3 rejections",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        gate.open();
        held.join().unwrap();
        waits.join().unwrap();
    });
}

#[test]
fn a_listener_that_panics_costs_nothing_but_itself() {
    case("panics", || {
        let pool = ThreadPool::builder(fresh_name())
            .core(1)
            .queue(Queue::bounded(1))
            .clock(ManualClock::new().clock())
            .rejection(RejectionPolicy::Report {
                at_most_every: Duration::ZERO,
            })
            .on_event(|_| std::panic::resume_unwind(Box::new(())));
        let pond = Pond::of(pool);
        let held = pond.hold(1);
        pond.submit(|| ()).unwrap();
        assert!(pond.submit(|| ()).is_err());
        held.release();
        pond.await_completed(2);
    });
}

#[test]
fn a_wake_up_that_a_queue_forgets_is_healed_and_counted() {
    case("healed", || {
        let notices = Arc::<Mutex<Vec<PoolEvent>>>::default();
        let heard = Arc::clone(&notices);
        let queue = OwnQueue::bounded(10).that_forgets_a_wake_up();
        let pool = ThreadPool::builder(fresh_name())
            .core(1)
            .queue(Queue::custom(queue))
            .on_event(move |notice| heard.lock().unwrap().push(notice.clone()));
        let pond = Pond::of(pool);
        assert!(pond.prestart_core().unwrap());
        pond.await_idle(1);
        let task = pond.submit(|| ()).unwrap();
        // Not by the handle alone: without a thread for the timer nobody watches.
        until("its worker has been woken", || task.is_finished());
        task.join().unwrap();
        let health = pond.health();
        assert_eq!(health.lost_wakeups, 1);
        assert!(!health.is_healthy());
        until("the notice has come", || {
            let notices = notices.lock().unwrap();
            matches!(&notices[..], [PoolEvent::LostWakeup { queued: 1, .. }])
        });
        let said = pond.explain().to_string();
        assert!(said.contains("the watchdog had to wake them"), "{said}");
    });
}

#[test]
fn a_pool_at_work_is_well_and_one_at_rest_is_not_watched() {
    case("well", || {
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(2));
        for _ in 0..1000 {
            pond.submit(|| ()).unwrap();
        }
        pond.await_completed(1000);
        assert!(pond.health().is_healthy(), "{:?}", pond.health());
        pond.await_idle(2);
        assert!(
            pond.workers()
                .iter()
                .all(|worker: &WorkerView| worker.task.is_none())
        );
    });
}

#[test]
fn a_pool_says_why_tasks_wait_and_who_fills_it() {
    case("says", || {
        let mill = Mill::new(|pool| pool.core(2).max(8).queue(Queue::bounded(5)));
        let (one, first) = mill.hold("import");
        let (two, second) = mill.hold("import");
        let waits = mill.bring("grind", ms(1));
        mill.hand.advance(ms(5000));
        let said = mill.pond.explain().to_string();
        for part in [
            "2 of 2 workers busy, 1 task in the queue, which has room for 5.",
            "so more start only when it is full; a larger core, or threads first, would start them now.",
            "import is on 2 workers",
            "-1 has been running import for 5.0 s, and no other of its kind has ended.",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        one.open();
        two.open();
        for handle in [first, second] {
            handle.join().unwrap();
        }
        waits.join().unwrap();
        mill.pond.shutdown();
        mill.pond.await_end();
        let said = mill.pond.explain().to_string();
        assert!(said.contains("has ended."), "{said}");
    });
}

#[test]
fn tasks_that_wait_for_each_other_are_named_in_a_notice_and_when_asked() {
    case("ring", || {
        let mill = Mill::new(|pool| pool.core(2));
        let (send, receive) = std::sync::mpsc::channel::<SharedHandle<bool>>();
        let joins = |name, receive: std::sync::mpsc::Receiver<SharedHandle<bool>>| {
            let body = move || receive.recv().unwrap().join().is_err();
            let handle = mill.pond.submit_with(TaskSpec::new().name(name), body);
            handle.unwrap().shared()
        };
        let (back, other) = std::sync::mpsc::channel();
        let wheel = joins("wheel", receive);
        let stone = joins("stone", other);
        send.send(stone.clone()).unwrap();
        until("the first waits", || mill.pond.waits_at("task.join") == 1);
        let said = mill.pond.explain().to_string();
        assert!(
            said.contains("1 worker does nothing but wait for another task: "),
            "{said}"
        );
        assert!(said.contains("-1 for `stone` (made at "), "{said}");
        back.send(wheel.clone()).unwrap();
        // One of them got the error, and so the other one got an answer.
        let got = [wheel.join().unwrap(), stone.join().unwrap()];
        assert_eq!(got, [&false, &true]);
        let notices = mill.notices();
        let [PoolEvent::Deadlock { pool, cycle }] = &notices[..] else {
            panic!("{notices:?}");
        };
        assert_eq!(pool, mill.pond.name());
        let names: Vec<_> = cycle.tasks().iter().map(|task| task.name()).collect();
        assert_eq!(names, [Some("stone"), Some("wheel")]);
        assert_eq!(mill.pond.health().deadlocks, 1);
        let said = mill.pond.explain().to_string();
        assert!(
            said.contains("Once its tasks waited for each other in a ring"),
            "{said}"
        );
    });
}
