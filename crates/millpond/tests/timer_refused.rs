//! What becomes of those who wait for a time when the timer's thread cannot be started: no abort, no spin,
//! no hang, and an error where somebody can be told.
//!
//! What would end or hang the process is done in a child: this program again, with one test and a limit of
//! time.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{DirectExecutor, ExecutorExt, Lifecycle, RejectReason};
use millpond::interrupt;
use millpond::pool::{Queue, RunWarning, ThreadPool};
use millpond::preset;
use millpond::schedule::{Every, ScheduledPool};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use millpond_testkit::{until, watch};
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

const CHILD: &str = "MILLPOND_CHILD_OF_TEST";
const LONG: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

/// Runs `body` in a child process, which must end well and in time.
#[track_caller]
fn in_child(test: &str, body: impl FnOnce()) {
    in_poor_child(test, "", body);
}

/// The same, in a process that is short of something.
#[track_caller]
fn in_poor_child(test: &str, exhaustion: &str, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .env("MILLPOND_EXHAUST", exhaustion)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > LONG {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it has not ended after {LONG:?}");
        }
        thread::yield_now();
        thread::park_timeout(Duration::from_millis(1));
    };
    assert!(status.success(), "{status}");
}

/// Starts threads while it is allowed to, and counts how often it was asked.
#[derive(Clone, Debug, Default)]
struct Gated(Arc<Gate>);

#[derive(Debug, Default)]
struct Gate {
    is_open: AtomicBool,
    asked: AtomicUsize,
    alive: AtomicUsize,
}

impl Gated {
    fn open(&self, is_open: bool) {
        self.0.is_open.store(is_open, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// How many of its threads have not ended.
    fn alive(&self) -> usize {
        self.0.alive.load(Ordering::SeqCst)
    }
}

impl ThreadFactory for Gated {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        if self.0.is_open.load(Ordering::SeqCst) {
            let gate = Arc::clone(&self.0);
            gate.alive.fetch_add(1, Ordering::SeqCst);
            Threads::named("gated").start(Box::new(move || {
                body();
                gate.alive.fetch_sub(1, Ordering::SeqCst);
            }))
        } else {
            Err(io::Error::from_raw_os_error(11))
        }
    }
}

fn refusing() -> (Gated, Clock) {
    let threads = Gated::default();
    let clock = Clock::system().with_timer(threads.clone());
    (threads, clock)
}

fn pool(workers: usize, clock: &Clock) -> ThreadPool {
    let mill = ThreadPool::builder("mill").core(workers).max(workers);
    let mill = mill.queue(Queue::bounded(1_000)).clock(clock.clone());
    mill.build().unwrap()
}

#[test]
fn a_pool_whose_timer_gets_no_thread_runs_its_tasks_and_does_not_abort() {
    in_child(
        "a_pool_whose_timer_gets_no_thread_runs_its_tasks_and_does_not_abort",
        || {
            let (threads, clock) = refusing();
            let pool = pool(1, &clock);
            let (meet, wait) = sync_channel::<()>(0);
            // The worker is busy, so there is always a reason to look again.
            let busy = pool.submit(move || wait.recv().is_err()).unwrap();
            let tasks: Vec<_> = (0..100).map(|i| pool.submit(move || i).unwrap()).collect();
            drop(meet);
            assert!(busy.join().unwrap());
            for (i, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.join().unwrap(), i);
            }
            assert!(threads.asked() > 0);
            assert!(pool.health().thread_failures > 0, "it is not kept a secret");
            pool.close().unwrap();
        },
    );
}

#[test]
fn the_watch_comes_back_when_threads_can_be_had_again() {
    let _watch = watch();
    let (threads, clock) = refusing();
    let mill = ThreadPool::builder("mill").core(1).max(1).clock(clock);
    let (tell, told) = channel();
    let tell = std::sync::Mutex::new(tell);
    let mill = mill.on_event(move |notice| {
        let _ = tell.lock().unwrap().send(notice.to_string());
    });
    let pool = mill
        .run_warning(RunWarning::after(Duration::from_millis(5)))
        .build()
        .unwrap();
    pool.submit(|| ()).unwrap().join().unwrap();
    threads.open(true);
    let (meet, wait) = sync_channel::<()>(0);
    pool.execute(move || for () in wait {}).unwrap();
    // Whoever brings a task lets it try again, now and then.
    let start = Instant::now();
    let notice = loop {
        pool.execute(|| ()).unwrap();
        if let Ok(notice) = told.recv_timeout(Duration::from_millis(5)) {
            break notice;
        }
        assert!(start.elapsed() < LONG, "nobody watches it");
    };
    assert!(notice.contains("has been running for"), "{notice}");
    drop(meet);
    pool.close().unwrap();
}

#[test]
fn tasks_that_come_while_threads_are_refused_do_not_ask_for_one_each() {
    let _watch = watch();
    let (threads, clock) = refusing();
    let pool = pool(1, &clock);
    let start = Instant::now();
    for _ in 0..1_000 {
        pool.submit(|| ()).unwrap().join().unwrap();
    }
    let most = 2 + start.elapsed().as_millis() / 100;
    assert!(threads.asked() as u128 <= most, "{}", threads.asked());
    pool.close().unwrap();
}

#[test]
fn what_cannot_be_waited_for_is_refused_at_once_and_comes_back() {
    let name = "what_cannot_be_waited_for_is_refused_at_once_and_comes_back";
    in_child(name, || {
        let (threads, clock) = refusing();
        let below = pool(1, &clock);
        let timers = ScheduledPool::on(below.clone()).build();
        let flour = String::from("flour");
        let refused = timers.schedule(HOUR, move || flour).unwrap_err();
        let RejectReason::SpawnFailed(why) = &refused.reason else {
            panic!("{}", refused.reason);
        };
        let system = why.get_ref().and_then(|timer| timer.source());
        let system: Option<&std::io::Error> = system.and_then(|error| error.downcast_ref());
        assert_eq!(system.and_then(std::io::Error::raw_os_error), Some(11));
        assert_eq!(why.kind(), std::io::ErrorKind::WouldBlock);
        let said = refused.reason.to_string();
        let start = "the timer's thread, which delays and series need, could not be started (";
        assert!(said.starts_with(start), "{said}");
        assert!(
            said.ends_with("): use fewer threads in this process, or raise its limit"),
            "{said}"
        );
        assert_eq!((refused.task)(), "flour");
        assert_eq!(timers.snapshot().pending, 0);
        // The same for a series.
        let series = timers.series(Every::rate(HOUR)).first_after(HOUR);
        let refused = series.start(|| ()).unwrap_err();
        assert_eq!(refused.reason.to_string(), said);
        let () = { refused.task }();
        assert_eq!(timers.snapshot().pending, 0);
        // What is due at once needs no timer.
        let now = timers.schedule(Duration::ZERO, || "bread").unwrap();
        assert_eq!(now.join().unwrap(), "bread");
        // And later is no problem as soon as there is a thread again.
        threads.open(true);
        let soon = timers
            .schedule(Duration::from_millis(2), || "cake")
            .unwrap();
        assert_eq!(soon.join().unwrap(), "cake");
        timers.close().unwrap();
        below.close().unwrap();
    });
}

/// A clock that is moved by hand, with a timer whose threads can be had at first.
fn by_hand() -> (ManualClock, Gated, Clock) {
    let (hand, threads) = (ManualClock::new(), Gated::default());
    threads.open(true);
    let clock = hand.clock().with_timer(threads.clone());
    (hand, threads, clock)
}

/// Lets so much time pass that a timer's thread that nobody needs ends.
fn lose_patience(hand: &ManualClock) {
    for _ in 0..2_000 {
        hand.advance(SECOND);
        thread::yield_now();
    }
}

#[test]
fn a_series_goes_on_whose_run_outlasts_the_patience_of_the_timer_while_threads_are_refused() {
    let _watch = watch();
    let (hand, threads, clock) = by_hand();
    let below = pool(1, &Clock::system());
    let timers = ScheduledPool::on(below.clone()).clock(clock).build();
    let runs = Arc::new(AtomicUsize::new(0));
    let (own, (go, may_go)) = (Arc::clone(&runs), sync_channel::<()>(0));
    let series = timers.schedule_with_fixed_delay(SECOND, 5 * SECOND, move || {
        own.fetch_add(1, Ordering::SeqCst);
        let _ = may_go.recv();
    });
    let series = series.unwrap();
    until("the first run begins", || {
        hand.advance(SECOND);
        runs.load(Ordering::SeqCst) == 1
    });
    threads.open(false);
    lose_patience(&hand);
    // It ends, and the next run is to wait for its time.
    drop(go);
    until("it waits for the second run", || {
        timers.snapshot().pending == 1
    });
    threads.open(true);
    until("it goes on", || {
        hand.advance(SECOND);
        runs.load(Ordering::SeqCst) >= 3
    });
    assert_eq!(threads.asked(), 1, "it has kept the thread");
    series.cancel();
    timers.close().unwrap();
    below.close().unwrap();
}

#[test]
fn a_series_that_is_due_at_once_is_refused_if_its_second_run_would_have_no_timer() {
    let _watch = watch();
    let (hand, threads, clock) = by_hand();
    threads.open(false);
    let below = pool(1, &Clock::system());
    let timers = ScheduledPool::on(below.clone()).clock(clock).build();
    let runs = Arc::new(AtomicUsize::new(0));
    let start = || {
        let own = Arc::clone(&runs);
        timers.schedule_at_fixed_rate(Duration::ZERO, 5 * SECOND, move || {
            own.fetch_add(1, Ordering::SeqCst);
        })
    };
    let refused = start().unwrap_err();
    assert!(matches!(refused.reason, RejectReason::SpawnFailed(_)));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    threads.open(true);
    let series = start().unwrap();
    threads.open(false);
    lose_patience(&hand);
    until("it goes on", || {
        hand.advance(SECOND);
        runs.load(Ordering::SeqCst) >= 3
    });
    series.cancel();
    timers.close().unwrap();
    below.close().unwrap();
}

#[test]
fn what_is_due_next_does_not_wait_for_a_leader_that_is_busy() {
    let _watch = watch();
    let (threads, clock) = refusing();
    let below = pool(2, &clock);
    assert_eq!(below.prestart_all_core().unwrap(), 2);
    let timers = ScheduledPool::owning(below)
        .clock(clock)
        .worker_timers(true)
        .build();
    // Workers that have had something to do are idle, and one of them is the leader.
    for _ in 0..200 {
        timers.executor().submit(|| ()).unwrap().join().unwrap();
        thread::yield_now();
    }
    // A leader may leave its post, so what is accepted needs the timer all the same.
    let refused = timers.schedule(HOUR, || ()).unwrap_err();
    assert!(matches!(refused.reason, RejectReason::SpawnFailed(_)));
    threads.open(true);
    let first = timers.schedule(HOUR, || ()).unwrap();
    threads.open(false);
    let (go, may_go) = sync_channel::<()>(0);
    let long = timers.schedule(Duration::from_millis(1), move || may_go.recv().is_err());
    let quick = timers.schedule(Duration::from_millis(20), || "quick");
    let (long, mut quick) = (long.unwrap(), quick.unwrap());
    assert_eq!(quick.join_timeout(LONG).unwrap(), "quick");
    assert!(!long.is_finished());
    drop(go);
    assert!(long.join().unwrap() && first.cancel());
    timers.close().unwrap();
}

#[test]
fn a_limit_that_was_watched_once_interrupts_although_threads_are_refused_later() {
    let _watch = watch();
    let (hand, threads, clock) = by_hand();
    let mill = ThreadPool::builder("mill").core(1).max(1).clock(clock);
    let limit = RunWarning::after(SECOND).interrupts();
    let pool = mill.run_warning(limit).on_event(|_| ()).build().unwrap();
    pool.submit(|| ()).unwrap().join().unwrap();
    lose_patience(&hand);
    threads.open(false);
    let (begins, has_begun) = sync_channel(0);
    let nap = pool.submit(move || {
        begins.send(()).unwrap();
        interrupt::sleep(HOUR).is_err()
    });
    let nap = nap.unwrap();
    has_begun.recv().unwrap();
    threads.open(true);
    until("it is interrupted", || {
        hand.advance(SECOND);
        nap.is_finished()
    });
    assert!(nap.join().unwrap());
    assert_eq!((threads.asked(), pool.health().thread_failures), (1, 0));
    pool.close().unwrap();
    until("the thread ends with the pool", || {
        hand.advance(SECOND);
        threads.alive() == 0
    });
}

#[test]
fn the_timers_thread_ends_after_the_pool_however_that_ends() {
    let _watch = watch();
    type End = fn(ScheduledPool<ThreadPool>);
    let ends: [(&str, End); 4] = [
        ("close", |timers| timers.close().unwrap()),
        ("shutdown", |timers| timers.shutdown()),
        ("shutdown_now", |timers| drop(timers.shutdown_now())),
        ("drop", drop),
    ];
    for (how, end) in ends {
        let (hand, threads, clock) = by_hand();
        let below = pool(1, &Clock::system());
        let timers = ScheduledPool::on(below.clone()).clock(clock).build();
        let task = timers.schedule(HOUR, || ()).unwrap();
        let series = timers.schedule_at_fixed_rate(HOUR, HOUR, || ()).unwrap();
        assert!(task.cancel());
        until("it has begun", || threads.alive() == 1);
        lose_patience(&hand);
        assert_eq!((threads.alive(), threads.asked()), (1, 1), "{how}");
        end(timers);
        until("it ends", || {
            hand.advance(SECOND);
            threads.alive() == 0
        });
        assert!(series.is_finished(), "{how}");
        below.close().unwrap();
    }
}

/// Whether this process starts threads: not in a child that has had all it may.
fn starts_threads() -> bool {
    Threads::named("probe").start(Box::new(|| ())).is_ok()
}

#[test]
fn a_process_with_one_thread_left_refuses_what_is_to_be_done_later() {
    let name = "a_process_with_one_thread_left_refuses_what_is_to_be_done_later";
    in_poor_child(name, "threads:1", || {
        let timers = preset::scheduled("mill", 1).unwrap();
        let flour = String::from("flour");
        let refused = timers.schedule(SECOND, move || flour).unwrap_err();
        let said = refused.reason.to_string();
        assert!(said.starts_with("the timer's thread"), "{said}");
        assert_eq!((refused.task)(), "flour");
        assert!(!starts_threads());
        timers.close().unwrap();
    });
}

#[test]
fn what_is_due_when_no_thread_can_be_had_any_more_is_rejected_and_reported() {
    let name = "what_is_due_when_no_thread_can_be_had_any_more_is_rejected_and_reported";
    // That of the timer, and that in reserve.
    in_poor_child(name, "threads:2", || {
        let ((tell, told), pool) = (channel(), pool(1, &Clock::system()));
        let tell = std::sync::Mutex::new(tell);
        let timers = ScheduledPool::owning(pool).name("mill");
        let timers = timers.on_event(move |event| {
            tell.lock().unwrap().send(event.to_string()).unwrap();
        });
        let timers = timers.build();
        let delay = Duration::from_millis(5);
        let mut tasks = Vec::new();
        for _ in 0..10 {
            tasks.push(timers.schedule(delay, || ()).unwrap());
        }
        let series = timers.schedule_at_fixed_rate(delay, HOUR, || ()).unwrap();
        assert!(!starts_threads());
        for task in tasks {
            let error = task.join().unwrap_err();
            assert_eq!(
                error.to_string(),
                "the task was cancelled: its executor rejected it"
            );
        }
        for _ in 0..11 {
            let event = told.recv_timeout(LONG).unwrap();
            assert!(event.contains("rejected by the executor"), "{event}");
        }
        until("the run of the series counts", || {
            timers.snapshot().rejected == 11
        });
        assert!(!series.is_finished(), "it goes on");
        timers.close().unwrap();
        assert!(series.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_task_that_is_due_at_once_and_cannot_be_handed_over_is_rejected() {
    let name = "a_task_that_is_due_at_once_and_cannot_be_handed_over_is_rejected";
    // The timer would get the one thread, to fire for another try, and have no thread to defer that to.
    in_poor_child(name, "threads:1", || {
        // It runs what it is given on the caller's thread, so only a dispatcher may call it.
        let timers = ScheduledPool::on(DirectExecutor::new())
            .dispatcher_threads(Gated::default())
            .on_event(|_| ())
            .build();
        let task = timers.schedule(Duration::ZERO, || ()).unwrap();
        let error = task.join().unwrap_err();
        assert!(
            error.is_cancelled() && error.to_string().contains("rejected"),
            "{error}"
        );
        timers.close().unwrap();
    });
}

#[test]
fn due_tasks_do_not_each_request_the_dispatchers_thread_and_run_when_it_can_be_had() {
    let _watch = watch();
    let threads = Gated::default();
    // It runs what it is given on the caller's thread, so only a dispatcher may call it.
    let timers = ScheduledPool::on(DirectExecutor::new())
        .dispatcher_threads(threads.clone())
        .build();
    let start = Instant::now();
    let task = |i| timers.schedule(Duration::ZERO, move || i).unwrap();
    let mut tasks: Vec<_> = (0..500).map(task).collect();
    // One for each pause of 20 ms, and one for each alarm.
    let most = 2 + start.elapsed().as_millis() / 10;
    let asked = threads.asked();
    assert!(asked as u128 <= most, "{asked} requests, {most} at most");
    threads.open(true);
    for (i, task) in tasks.iter_mut().enumerate() {
        match task.join_timeout(LONG) {
            Ok(ran) => assert_eq!(ran, i),
            // It had no thread for a second.
            Err(error) => assert!(start.elapsed() > SECOND, "{error}"),
        }
    }
    timers.close().unwrap();
}
