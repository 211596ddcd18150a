//! What a pool knows of itself: figures by name, what its workers do, what hangs, and what it says.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's locks, and burns the time that it measures"
)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{Label, NamedFigures, Notice, PoolBuilder, Queue, Rejection, RunWarning};
use millpond::pool::{ThreadPool, WorkerView};
use millpond::task::{SharedHandle, TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use millpond_conform::kit::{Gate, Latch, OwnQueue, case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pool by a manual clock, which keeps the notices.
struct Mill {
    hand: ManualClock,
    pond: Pond,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Mill {
    fn new(shape: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let (hand, notices) = (ManualClock::new(), Arc::<Mutex<Vec<_>>>::default());
        let heard = Arc::clone(&notices);
        let pool = ThreadPool::builder(fresh_name())
            .core(1)
            .queue(Queue::bounded(100))
            .clock(hand.clock())
            .on_notice(move |notice| heard.lock().unwrap().push(notice.clone()));
        Mill {
            pond: Pond::of(shape(pool)),
            hand,
            notices,
        }
    }

    /// Brings a task of this name that takes so long.
    fn bring(&self, name: &str, takes: Duration) -> TaskHandle<()> {
        let hand = self.hand.clone();
        let spec = TaskSpec::new().name(name.to_owned());
        let body = move || hand.advance(takes);
        self.pond.submit_spec(spec, body).unwrap()
    }

    /// Has a task run until the gate opens or it is interrupted, and returns which.
    fn hold(&self, name: &'static str) -> (Gate, TaskHandle<bool>) {
        let (gate, started) = (Gate::new(), Latch::new(1));
        let (inside, begun) = (gate.clone(), started.clone());
        let body = move || {
            begun.arrive();
            loop {
                if interrupt::check().is_err() {
                    return true;
                }
                if inside.is_open() {
                    return false;
                }
                std::thread::yield_now();
            }
        };
        let spec = TaskSpec::new().name(name);
        let handle = self.pond.submit_spec(spec, body).unwrap();
        started.wait();
        (gate, handle)
    }

    fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap().clone()
    }

    fn long_runs(&self) -> Vec<String> {
        let notices = self.notices();
        let runs = notices.iter().filter_map(|notice| match notice {
            Notice::RunsLong(run) => Some(run.label.to_string()),
            _ => None,
        });
        runs.collect()
    }
}

fn of<'a>(all: &'a [NamedFigures], name: &str) -> &'a NamedFigures {
    let found = all.iter().find(|named| named.label.to_string() == name);
    found.unwrap_or_else(|| panic!("{name} is not among {all:?}"))
}

/// Right up to the width of a bucket.
fn is_about(told: Duration, exact: Duration) -> bool {
    told.abs_diff(exact) <= exact / 16
}

#[test]
fn waits_and_runs_are_kept_apart_and_by_name() {
    case("by name", || {
        let mill = Mill::new(|pool| pool);
        let (gate, held) = mill.hold("first");
        let handles = [
            mill.bring("grind", ms(8)),
            mill.bring("bake", ms(300)),
            mill.bring("grind", ms(16)),
        ];
        mill.hand.advance(ms(1000));
        gate.open();
        held.join().unwrap();
        for handle in handles {
            handle.join().unwrap();
        }
        mill.pond.await_completed(4);
        mill.pond.await_idle(1);
        let all = mill.pond.figures_by_name();
        let (grind, bake) = (of(&all, "grind"), of(&all, "bake"));
        assert_eq!(grind.figures.completed, 2);
        assert_eq!(grind.figures.run.total(), ms(24), "to the nanosecond");
        assert_eq!(grind.figures.wait.total(), ms(1000 + 1308));
        assert!(is_about(grind.figures.run.max(), ms(16)), "{grind:?}");
        assert_eq!(bake.figures.run.total(), ms(300));
        assert_eq!(bake.figures.wait.total(), ms(1008));
        assert_eq!(of(&all, "first").figures.run.total(), ms(1000));
        assert_eq!(all[0].label.to_string(), "first", "the longest comes first");
        let sum = mill.pond.figures();
        assert_eq!((sum.completed, sum.run.count()), (4, 4));
        assert_eq!(sum.run.total(), ms(1324));
        // Looking changes nothing.
        assert_eq!(mill.pond.figures(), sum);
    });
}

#[test]
fn what_did_not_run_is_counted_and_is_in_no_time() {
    case("not run", || {
        let mill = Mill::new(|pool| pool.queue(Queue::bounded(3)));
        let (gate, held) = mill.hold("first");
        let cancelled = mill.bring("bake", ms(1));
        let soon = mill.hand.clock().deadline(ms(5));
        let spec = TaskSpec::new()
            .name("bake")
            .deadline(soon)
            .clock(mill.hand.clock());
        let expired = mill.pond.submit_spec(spec, || ()).unwrap();
        let panics = TaskSpec::new().name("bake");
        let panics = mill
            .pond
            .submit_spec(panics, || std::panic::resume_unwind(Box::new(())))
            .unwrap();
        let refused = TaskSpec::new().name("bake");
        assert!(mill.pond.submit_spec(refused, || ()).is_err());
        cancelled.cancel();
        mill.hand.advance(ms(10));
        gate.open();
        held.join().unwrap();
        assert!(panics.join().is_err() && expired.join().is_err());
        mill.pond.await_idle(1);
        let all = mill.pond.figures_by_name();
        let bake = &of(&all, "bake").figures;
        let counts = (bake.completed, bake.panicked, bake.cancelled, bake.expired);
        assert_eq!(counts, (1, 1, 1, 1));
        assert_eq!(bake.refused, 1);
        assert_eq!((bake.run.count(), bake.wait.count()), (1, 1));
    });
}

#[test]
fn a_task_without_a_name_counts_under_the_place_where_it_was_made() {
    case("place", || {
        let mill = Mill::new(|pool| pool);
        let line = line!() + 2;
        for _ in 0..3 {
            mill.pond.submit(|| ()).unwrap().join().unwrap();
        }
        mill.pond.await_idle(1);
        let all = mill.pond.figures_by_name();
        let label = format!("tests/pool_insight.rs:{line}");
        assert_eq!(of(&all, &label).figures.completed, 3);
        assert_eq!(all.len(), 1, "{all:?}");
    });
}

#[test]
fn there_are_only_so_many_names() {
    case("many names", || {
        let mill = Mill::new(|pool| pool.most_names(2));
        for name in ["one", "two", "three", "four", "two"] {
            mill.bring(name, ms(1)).join().unwrap();
        }
        mill.pond.await_idle(1);
        let all = mill.pond.figures_by_name();
        assert_eq!(of(&all, "two").figures.completed, 2);
        assert_eq!(of(&all, "(others)").figures.completed, 2);
        assert_eq!(all.len(), 3);
    });
}

#[test]
fn figures_of_workers_that_have_left_are_kept() {
    case("left", || {
        let mill = Mill::new(|pool| pool.core(0).max(1).keep_alive(ms(10)));
        for round in 1..=3 {
            mill.bring("grind", ms(4)).join().unwrap();
            mill.pond.await_idle(1);
            mill.hand.advance(ms(10));
            mill.pond.await_workers(0);
            let all = mill.pond.figures_by_name();
            assert_eq!(of(&all, "grind").figures.completed, round);
            assert_eq!(of(&all, "grind").figures.run.total(), ms(4) * round as u32);
        }
    });
}

#[test]
fn a_pool_without_figures_keeps_none_and_counts_all_the_same() {
    case("none", || {
        let mill = Mill::new(PoolBuilder::without_figures);
        mill.bring("grind", ms(4)).join().unwrap();
        mill.pond.await_completed(1);
        assert!(mill.pond.figures_by_name().is_empty());
        assert_eq!(mill.pond.figures().run.count(), 0);
    });
}

#[test]
fn what_runs_in_place_is_in_the_figures_of_its_own_name() {
    case("in place", || {
        let mill = Mill::new(|pool| pool);
        let (pool, hand) = (mill.pond.pool(), mill.hand.clone());
        let outer = TaskSpec::new().name("outer");
        let body = move || {
            let inner = TaskSpec::new().name("inner");
            let inner = pool.submit_spec(inner, move || hand.advance(ms(7)));
            inner.unwrap().join().unwrap();
        };
        mill.pond.submit_spec(outer, body).unwrap().join().unwrap();
        mill.pond.await_idle(1);
        let all = mill.pond.figures_by_name();
        assert_eq!(of(&all, "inner").figures.completed, 1);
        assert_eq!(of(&all, "inner").figures.run.total(), ms(7));
        assert_eq!(of(&all, "outer").figures.run.total(), ms(7));
    });
}

/// Not by a manual clock: this is about what the machine does.
#[test]
fn computing_and_blocking_are_told_apart() {
    case("usage", || {
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(1));
        let named = |name: &'static str| TaskSpec::new().name(name);
        let computes = || {
            let start = Instant::now();
            while start.elapsed() < ms(20) {
                std::hint::spin_loop();
            }
        };
        for _ in 0..5 {
            pond.submit_spec(named("computes"), computes).unwrap();
            let sleeps = || std::thread::sleep(ms(20));
            pond.submit_spec(named("blocks"), sleeps).unwrap();
        }
        pond.await_completed(10);
        pond.await_idle(1);
        let all = pond.figures_by_name();
        let usage = |name| of(&all, name).figures.usage;
        let (computes, blocks) = (usage("computes"), usage("blocks"));
        assert!(blocks.sampled() >= ms(90), "{blocks:?}");
        assert!(blocks.computing() < 0.1, "{blocks}");
        assert!(blocks.blocked() > 0.5, "{blocks}");
        assert!(computes.sampled() >= ms(90), "{computes:?}");
        // On a machine that is busy it waits for a CPU, but it never blocks.
        let wants = computes.computing() + computes.waiting_for_cpu();
        assert!(wants > 0.6, "{computes}");
        assert!(
            computes.computing() > 4.0 * blocks.computing(),
            "{computes} {blocks}"
        );
    });
}

#[cfg(target_os = "linux")]
#[test]
fn more_threads_than_cpus_wait_for_a_cpu() {
    case("crowd", || {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let workers = cpus * 4;
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(workers));
        let computes = || {
            let start = Instant::now();
            while start.elapsed() < ms(120) {
                std::hint::spin_loop();
            }
        };
        for _ in 0..workers {
            pond.submit(computes).unwrap();
        }
        pond.await_completed(workers as u64);
        pond.await_idle(workers);
        let usage = pond.figures().usage;
        assert!(usage.waiting_for_cpu() > 0.4, "{usage}");
        assert!(usage.blocked() < 0.3, "{usage}");
        let waited = pond
            .workers()
            .into_iter()
            .filter_map(|worker| worker.waited_for_cpu);
        assert!(waited.sum::<Duration>() > ms(100));
    });
}

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
        assert!(task.made_at.unwrap().file().ends_with("pool_insight.rs"));
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
        let [Notice::RunsLong(run)] = &notices[..] else {
            panic!("{notices:?}");
        };
        assert_eq!(run.label.to_string(), "grind");
        assert_eq!((run.running_for, run.limit), (ms(101), ms(100)));
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
        let [Notice::RunsLong(run)] = &notices[..] else {
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
        let notices = Arc::<Mutex<Vec<Notice>>>::default();
        let heard = Arc::clone(&notices);
        let pool = ThreadPool::builder(fresh_name())
            .core(1)
            .run_warning(RunWarning::after(ms(20)).interrupts())
            .on_notice(move |notice| heard.lock().unwrap().push(notice.clone()));
        let pond = Pond::of(pool);
        let hangs = || interrupt::sleep(Duration::MAX).is_err();
        assert!(pond.submit(hangs).unwrap().join().unwrap());
        until("the notice has come", || notices.lock().unwrap().len() == 1);
    });
}

#[test]
fn refusals_are_reported_with_figures_and_workers_but_not_too_often() {
    case("report", || {
        let every = ms(1000);
        let report = Rejection::Report {
            at_most_every: every,
        };
        let mill = Mill::new(|pool| pool.queue(Queue::bounded(1)).rejection(report));
        let (gate, held) = mill.hold("grind");
        let waits = mill.bring("waits", ms(0));
        let refuse = || {
            let spec = TaskSpec::new().name("too much");
            let refused = mill.pond.submit_spec(spec, || ()).unwrap_err();
            assert!(refused.reason.is_saturated(), "it is given back");
        };
        for _ in 0..3 {
            refuse();
        }
        mill.hand.advance(every);
        refuse();
        let notices = mill.notices();
        let [Notice::Refused(first), Notice::Refused(second)] = &notices[..] else {
            panic!("{notices:?}");
        };
        assert_eq!((first.refusals, second.refusals), (1, 3));
        assert_eq!(first.label, "too much");
        assert_eq!(first.snapshot.queued, 1);
        assert_eq!(first.workers.len(), 1);
        assert_eq!(first.stacks.len(), 1);
        let said = notices[1].to_string();
        for part in [
            mill.pond.name(),
            "refused too much",
            "runs grind",
            "3 refusals",
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
            .rejection(Rejection::Report {
                at_most_every: Duration::ZERO,
            })
            .on_notice(|_| std::panic::resume_unwind(Box::new(())));
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
        let notices = Arc::<Mutex<Vec<Notice>>>::default();
        let heard = Arc::clone(&notices);
        let queue = OwnQueue::bounded(10).that_forgets_a_wake_up();
        let pool = ThreadPool::builder(fresh_name())
            .core(1)
            .queue(Queue::own(queue))
            .on_notice(move |notice| heard.lock().unwrap().push(notice.clone()));
        let pond = Pond::of(pool);
        assert!(pond.prestart_core().unwrap());
        pond.await_idle(1);
        pond.submit(|| ()).unwrap().join().unwrap();
        let health = pond.health();
        assert_eq!(health.lost_wake_ups, 1);
        assert!(!health.is_well());
        until("the notice has come", || {
            let notices = notices.lock().unwrap();
            matches!(&notices[..], [Notice::Healed { queued: 1, .. }])
        });
        let said = pond.explain().to_string();
        assert!(said.contains("the watch had to wake them"), "{said}");
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
        assert!(pond.health().is_well(), "{:?}", pond.health());
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
            let handle = mill.pond.submit_spec(TaskSpec::new().name(name), body);
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
        let [Notice::Deadlock { pool, cycle }] = &notices[..] else {
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
