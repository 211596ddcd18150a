//! On a thread pool: real workers, interrupts, joins inside the pool.

use crate::kit::{HOUR, SECOND, workers};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::ThreadPool;
use millpond::preset;
use millpond::schedule::{Every, Overlap, ScheduledPool};
use millpond::time::{Clock, ManualClock};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn on_a_manual_clock(max: usize) -> (ManualClock, ScheduledPool<ThreadPool>) {
    let manual = ManualClock::new();
    let pool = workers(&manual, max).build().unwrap();
    let timers = ScheduledPool::owning(pool).name("mill").build();
    (manual, timers)
}

#[test]
fn by_the_systems_clock_a_task_begins_after_its_time_and_soon() {
    let timers = preset::scheduled("mill", 1).unwrap();
    let now = || Clock::system().now();
    let due = now() + Duration::from_millis(20);
    let mut task = timers.schedule_at(due, now).unwrap();
    let began = task.join_timeout(Duration::from_secs(30)).unwrap();
    assert!(began >= due);
    timers.close().unwrap();
    assert!(timers.executor().is_terminated());
}

#[test]
fn at_a_fixed_rate_there_is_no_drift() {
    let timers = preset::scheduled("mill", 1).unwrap();
    let period = Duration::from_millis(5);
    let start = Clock::system().now();
    let mut runs = 0;
    let series = timers.schedule_at_fixed_rate(period, period, move || {
        runs += 1;
        match runs {
            20 => std::ops::ControlFlow::Break(Clock::system().now()),
            _ => std::ops::ControlFlow::Continue(()),
        }
    });
    let end = series.unwrap().join().unwrap();
    assert!(end - start >= 20 * period, "{:?}", end - start);
}

#[test]
fn an_interrupt_reaches_the_run_that_blocks_and_ends_the_series() {
    let (manual, timers) = on_a_manual_clock(1);
    let (tell, told) = channel();
    let series = timers.schedule_at_fixed_rate(SECOND, SECOND, move || {
        tell.send("begun").unwrap();
        if interrupt::sleep(HOUR).is_err() {
            tell.send("interrupted").unwrap();
        }
    });
    let series = series.unwrap();
    manual.advance(SECOND);
    assert_eq!(told.recv().unwrap(), "begun");
    assert!(series.interrupt());
    assert_eq!(told.recv().unwrap(), "interrupted");
    assert!(series.join().unwrap_err().is_cancelled());
    timers.close().unwrap();
    assert!(told.recv().is_err(), "there was no other run");
}

#[test]
fn an_interrupt_reaches_a_task_that_blocks() {
    let (manual, timers) = on_a_manual_clock(1);
    let (tell, told) = channel();
    let task = timers.schedule(SECOND, move || {
        tell.send(true).unwrap();
        tell.send(interrupt::sleep(HOUR).is_err()).unwrap();
    });
    let task = task.unwrap();
    manual.advance(SECOND);
    told.recv().unwrap();
    assert!(task.interrupt());
    assert!(told.recv().unwrap());
    timers.close().unwrap();
}

#[test]
fn shutdown_now_interrupts_runs_on_a_shared_executor_and_does_not_stop_the_executor() {
    let manual = ManualClock::new();
    let pool = workers(&manual, 2).build().unwrap();
    let timers = ScheduledPool::on(pool.clone()).build();
    let (tell, told) = channel();
    let blocks = move |tell: &std::sync::mpsc::Sender<bool>| {
        tell.send(false).unwrap();
        tell.send(interrupt::sleep(HOUR).is_err()).unwrap();
    };
    let also = tell.clone();
    let task = timers.schedule(SECOND, move || blocks(&tell)).unwrap();
    let series = timers
        .schedule_at_fixed_rate(SECOND, SECOND, move || blocks(&also))
        .unwrap();
    manual.advance(SECOND);
    assert!(!told.recv().unwrap() && !told.recv().unwrap());
    assert_eq!(timers.shutdown_now().len(), 0);
    assert!(told.recv().unwrap() && told.recv().unwrap());
    timers.await_termination().unwrap();
    task.join().unwrap();
    assert!(series.join().unwrap_err().is_cancelled());
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
    pool.close().unwrap();
}

#[test]
fn runs_that_may_overlap_do_and_others_are_skipped_or_wait() {
    let (manual, timers) = on_a_manual_clock(3);
    let (begun, begins) = channel();
    let begun = Mutex::new(begun);
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let here = Arc::new(AtomicUsize::new(0));
    let body = {
        let (gate, most, here) = (Arc::clone(&gate), Arc::clone(&most), Arc::clone(&here));
        move || {
            let now = here.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            begun.lock().unwrap().send(()).unwrap();
            drop(gate.lock().unwrap());
            here.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let series = timers
        .series(Every::rate(SECOND))
        .overlap(Overlap::Concurrent);
    let series = series.start_shared(body).unwrap();
    for _ in 0..3 {
        manual.advance(SECOND);
        begins.recv().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    series.cancel();
    drop(closed);
    timers.close().unwrap();
}

#[test]
fn a_due_time_that_comes_while_a_run_still_goes_is_skipped_and_counted() {
    let (manual, timers) = on_a_manual_clock(2);
    let ((begun, begins), (go, wait)) = (channel(), channel());
    let series = timers.series(Every::rate(SECOND)).overlap(Overlap::Skip);
    let series = series.start(move || {
        begun.send(()).unwrap();
        wait.recv().unwrap();
    });
    let series = series.unwrap();
    manual.advance(SECOND);
    begins.recv().unwrap();
    manual.advance(SECOND);
    manual.advance(SECOND);
    assert_eq!((series.runs(), series.skipped()), (1, 2));
    assert_eq!(timers.snapshot().skipped, 2);
    go.send(()).unwrap();
    while series.last_outcome().is_none() {
        millpond_raw::sync::thread::yield_now();
    }
    manual.advance(SECOND);
    begins.recv().unwrap();
    assert_eq!((series.runs(), series.skipped()), (2, 2));
    go.send(()).unwrap();
    drop(go);
    series.cancel();
    timers.close().unwrap();
}

#[test]
fn a_worker_that_waits_for_a_task_of_its_own_pool_runs_it_when_it_is_due() {
    let (manual, timers) = on_a_manual_clock(1);
    let (inner, tell) = (timers.clone(), channel());
    let (waits, waiting) = tell;
    let outer = timers.submit(move || {
        let later = inner
            .schedule(SECOND, || std::thread::current().id())
            .unwrap();
        waits.send(()).unwrap();
        (later.join().unwrap(), std::thread::current().id())
    });
    waiting.recv().unwrap();
    let outer = outer.unwrap();
    while !outer.is_finished() {
        manual.advance(SECOND);
        millpond_raw::sync::thread::yield_now();
    }
    let (inside, outside) = outer.join().unwrap();
    assert_eq!(inside, outside);
    timers.close().unwrap();
}

#[test]
fn a_panic_of_a_run_counts_in_the_pool_that_ran_it() {
    let (manual, timers) = on_a_manual_clock(1);
    let series = timers.schedule_at_fixed_rate(SECOND, SECOND, || -> () { panic!("no water") });
    manual.advance(SECOND);
    let error = series.unwrap().join().unwrap_err();
    assert!(error.is_panicked());
    timers.close().unwrap();
    let below = timers.executor().snapshot();
    assert_eq!((below.completed, below.panicked), (1, 1));
}

#[test]
fn a_decorator_is_around_every_run_of_a_series() {
    let manual = ManualClock::new();
    let pool = workers(&manual, 1).build().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let timers = ScheduledPool::owning(pool)
        .decorator(move |info, run| {
            run();
            notes.lock().unwrap().push((info.name.clone(), info.number));
        })
        .build();
    let mut left = 3;
    let series = timers
        .series(Every::rate(SECOND))
        .name("beat")
        .start(move || {
            left -= 1;
            match left {
                0 => std::ops::ControlFlow::Break(()),
                _ => std::ops::ControlFlow::Continue(()),
            }
        });
    let series = series.unwrap();
    while !series.is_finished() {
        manual.advance(SECOND);
        millpond_raw::sync::thread::yield_now();
    }
    series.join().unwrap();
    let spec = millpond::task::TaskSpec::new().name("once");
    let once = timers
        .schedule_with(spec, manual.clock().deadline(SECOND), || 7)
        .unwrap();
    manual.advance(SECOND);
    assert_eq!(once.join().unwrap(), 7);
    timers.close().unwrap();
    let name = |name: &str| Some(name.to_owned());
    let beats = (1..=3).map(|number| (name("beat"), number));
    let all: Vec<_> = beats.chain([(name("once"), 1)]).collect();
    assert_eq!(*seen.lock().unwrap(), all);
}

#[test]
fn a_decorator_is_around_what_is_scheduled_and_not_around_what_goes_straight_to_the_executor() {
    let pool = ThreadPool::builder("mill").max(1).build().unwrap();
    let decorated = Arc::new(Mutex::new(0));
    let count = Arc::clone(&decorated);
    let timers = ScheduledPool::owning(pool)
        .decorator(move |_, run| {
            *count.lock().unwrap() += 1;
            run();
        })
        .build();
    assert_eq!(timers.submit(|| 7).unwrap().join().unwrap(), 7);
    assert_eq!(timers.invoke_all([|| 7, || 8]).unwrap().len(), 2);
    assert_eq!((*decorated.lock().unwrap(), timers.snapshot().runs), (0, 0));
    let task = timers.schedule(std::time::Duration::ZERO, || 9).unwrap();
    assert_eq!(task.join().unwrap(), 9);
    assert_eq!((*decorated.lock().unwrap(), timers.snapshot().runs), (1, 1));
}

#[test]
fn what_a_decorator_does_not_run_is_cancelled() {
    let (manual, _) = on_a_manual_clock(1);
    let pool = workers(&manual, 1).build().unwrap();
    let timers = ScheduledPool::owning(pool).decorator(|_, _| ()).build();
    let task = timers.schedule(Duration::ZERO, || 7).unwrap();
    assert!(task.join().unwrap_err().is_cancelled());
    timers.close().unwrap();
}

#[test]
fn idle_workers_keep_nothing_of_what_was_cancelled() {
    let (manual, timers) = on_a_manual_clock(2);
    timers.executor().prestart_all_core().unwrap();
    let owned = Arc::new(());
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let held = Arc::clone(&owned);
            timers.schedule(HOUR, move || drop(held)).unwrap()
        })
        .collect();
    tasks.iter().for_each(|task| assert!(task.cancel()));
    assert_eq!(Arc::strong_count(&owned), 1);
    manual.advance(2 * HOUR);
    timers.close().unwrap();
    assert_eq!(timers.executor().snapshot().completed, 0);
}

#[test]
fn what_runs_at_once_goes_straight_to_the_pool() {
    let timers = preset::scheduled("mill", 2).unwrap();
    assert_eq!(timers.submit(|| 7).unwrap().join().unwrap(), 7);
    let all = timers.invoke_all((0..3).map(|n| move || n)).unwrap();
    assert_eq!(all.into_iter().map(Result::unwrap).sum::<i32>(), 3);
    assert_eq!(timers.snapshot().runs, 0);
    timers.close().unwrap();
}

#[test]
#[cfg(all(feature = "tokio", feature = "rayon"))]
fn executors_of_other_crates_accept_due_tasks_without_a_dispatcher() {
    use millpond::executor::{Executor, RayonExecutor, TokioExecutor};

    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let tokio = TokioExecutor::new(runtime.handle().clone());
    let rayon = rayon_core::ThreadPoolBuilder::new().num_threads(1);
    let rayon = RayonExecutor::new(Arc::new(rayon.build().unwrap()));
    let names = || std::thread::current().name().map(str::to_owned);
    for timers in [
        ScheduledPool::on(Arc::new(tokio) as Arc<dyn Executor>).name("t"),
        ScheduledPool::on(Arc::new(rayon) as Arc<dyn Executor>).name("r"),
    ] {
        let timers = timers.build();
        let name = timers.schedule(Duration::from_millis(1), names).unwrap();
        let name = name.join().unwrap();
        assert_ne!(name.as_deref(), Some("t-dispatcher-1"));
        assert_ne!(name.as_deref(), Some("r-dispatcher-1"));
        timers.close().unwrap();
    }
}

#[test]
fn stopping_asks_a_body_to_stop_whose_handle_was_cancelled_before() {
    let manual = ManualClock::new();
    let pool = workers(&manual, 1).build().unwrap();
    let timers = ScheduledPool::on(pool.clone()).build();
    let (tell, told) = channel();
    let task = timers
        .schedule(SECOND, move || {
            tell.send(false).unwrap();
            tell.send(interrupt::sleep(HOUR).is_err()).unwrap();
        })
        .unwrap();
    manual.advance(SECOND);
    assert!(!told.recv().unwrap());
    assert!(task.cancel(), "the body goes on");
    timers.shutdown_now();
    assert!(told.recv().unwrap());
    timers.await_termination().unwrap();
    pool.close().unwrap();
}
