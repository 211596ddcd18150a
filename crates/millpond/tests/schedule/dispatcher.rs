//! Executors that block their submitters.

use crate::kit::{HOUR, SECOND, occupy, schedule_on, workers};
use millpond::executor::{
    DirectExecutor, Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, TerminationError,
};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::schedule::{Every, Overlap, RunOutcome, ScheduleEvent, ScheduledPool};
use millpond::task::{CancelReason, Task, TaskError};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A pool with one occupied worker, and with one place in its queue.
fn busy(manual: &ManualClock, rejection: RejectionPolicy) -> (ThreadPool, Sender<()>) {
    let pool = workers(manual, 1).queue(Queue::bounded(1));
    let pool = pool.rejection(rejection).build().unwrap();
    let go = occupy(&pool);
    (pool, go)
}

#[test]
fn what_is_due_waits_for_room_and_keeps_its_order() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::Block(Duration::MAX));
    let timers = ScheduledPool::owning(pool).build();
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..20_u64)
        .map(|number| {
            let order = Arc::clone(&order);
            let delay = Duration::from_millis(number);
            timers
                .schedule(delay, move || order.lock().unwrap().push(number))
                .unwrap()
        })
        .collect();
    manual.advance(SECOND);
    assert!(timers.snapshot().pending > 0, "they wait for the executor");
    assert!(tasks.iter().all(|task| !task.is_finished()));
    go.send(()).unwrap();
    for task in tasks {
        task.join().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    timers.close().unwrap();
}

#[test]
fn a_task_that_the_executor_rejects_is_cancelled_with_an_event() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::Abort);
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let timers = ScheduledPool::owning(pool)
        .name("strict")
        .on_event(move |event| tell.lock().unwrap().send(event.clone()).unwrap())
        .build();
    let first = timers.schedule(SECOND, || 1).unwrap();
    let second = timers.schedule(SECOND, || 2).unwrap();
    manual.advance(SECOND);
    let error = second.join().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the task was cancelled: its executor rejected it"
    );
    let ScheduleEvent::Rejected(report) = told.recv().unwrap() else {
        panic!("nothing else has happened");
    };
    let text = report.to_string();
    assert!(text.starts_with("strict: the task made at "), "{text}");
    assert!(
        text.ends_with(" was rejected by the executor, or dropped by it; it will not run"),
        "{text}"
    );
    assert_eq!((report.outcome, report.runs), (RunOutcome::Rejected, 0));
    assert_eq!(timers.snapshot().rejected_when_due, 1);
    go.send(()).unwrap();
    assert_eq!(first.join().unwrap(), 1);
    timers.close().unwrap();
}

#[test]
fn a_series_goes_on_when_a_run_was_rejected() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::Abort);
    pool.execute(|| ()).unwrap();
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let timers = ScheduledPool::owning(pool)
        .name("mill")
        .on_event(move |event| tell.lock().unwrap().send(event.to_string()).unwrap())
        .build();
    let (ran, runs) = channel();
    let series = timers
        .series(Every::rate(SECOND))
        .name("beat")
        .start(move || ran.send(()).unwrap())
        .unwrap();
    manual.advance(SECOND);
    manual.advance(SECOND);
    assert_eq!((series.rejected(), series.runs()), (2, 0));
    assert_eq!(series.last_outcome(), Some(RunOutcome::Rejected));
    let text =
        "mill: a run of beat was rejected by the executor, or dropped by it; the series goes on";
    assert_eq!(told.recv().unwrap(), text);
    go.send(()).unwrap();
    while timers.executor().snapshot().queued > 0 {
        millpond_raw::sync::thread::yield_now();
    }
    manual.advance(SECOND);
    runs.recv().unwrap();
    assert_eq!(timers.snapshot().rejected_when_due, 2);
    timers.close().unwrap();
}

#[test]
fn a_series_ends_when_its_executor_does() {
    let manual = ManualClock::new();
    let pool = workers(&manual, 1).build().unwrap();
    let timers = ScheduledPool::on(pool.clone()).on_event(|_| ()).build();
    let series = timers.series(Every::rate(SECOND)).start(|| ()).unwrap();
    pool.close().unwrap();
    manual.advance(SECOND);
    assert!(series.join().unwrap_err().is_cancelled());
}

#[test]
fn callers_that_must_run_tasks_are_never_the_timer() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::CallerRuns);
    pool.execute(|| ()).unwrap();
    let timers = ScheduledPool::owning(pool).name("mill").build();
    let names = || std::thread::current().name().map(str::to_owned);
    let task = timers.schedule(SECOND, names).unwrap();
    manual.advance(SECOND);
    assert_eq!(task.join().unwrap().as_deref(), Some("mill-dispatcher-1"));
    go.send(()).unwrap();
    timers.close().unwrap();
}

#[test]
fn with_an_executor_that_runs_in_place_the_dispatcher_is_the_one_thread() {
    let manual = ManualClock::new();
    let timers = ScheduledPool::on(DirectExecutor::new())
        .clock(manual.clock())
        .build();
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = [3_u32, 1, 2]
        .map(|number| {
            let order = Arc::clone(&order);
            timers
                .schedule(number * SECOND, move || order.lock().unwrap().push(number))
                .unwrap()
        })
        .into();
    manual.advance(HOUR);
    tasks.into_iter().for_each(|task| task.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
    timers.close().unwrap();
}

/// Fails to start the first few threads.
#[derive(Debug)]
struct Reluctant {
    refusals: AtomicUsize,
    panics: AtomicBool,
    threads: Threads,
}

impl ThreadFactory for Reluctant {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let left = self.refusals.load(Ordering::SeqCst);
        if left > 0 {
            self.refusals.store(left - 1, Ordering::SeqCst);
            assert!(!self.panics.load(Ordering::SeqCst), "no threads today");
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.threads.start(body)
    }
}

/// Fails to start any thread.
fn exhausted() -> Reluctant {
    Reluctant {
        refusals: AtomicUsize::new(usize::MAX),
        panics: AtomicBool::new(false),
        threads: Threads::named("never"),
    }
}

#[test]
fn an_executor_that_can_start_no_thread_rejects_due_tasks_and_lets_none_wait_for_room() {
    let manual = ManualClock::new();
    let told = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&told);
    let pool = ThreadPool::builder("idle")
        .max(1)
        .rejection(RejectionPolicy::Block(Duration::MAX))
        .clock(manual.clock())
        .threads(exhausted())
        .build()
        .unwrap();
    let timers = ScheduledPool::owning(pool)
        .on_event(move |_| {
            own.fetch_add(1, Ordering::SeqCst);
        })
        .dispatcher_threads(exhausted())
        .build();
    let task = timers.schedule(SECOND, || 7).unwrap();
    manual.advance(SECOND);
    assert!(task.is_finished(), "nobody will ever make room for it");
    let error = task.join().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the task was cancelled: its executor rejected it"
    );
    assert_eq!(told.load(Ordering::SeqCst), 1, "without a dispatcher, too");
    timers.close().unwrap();
    drop(timers);
    // The listener is the pool's: it is gone, and does not wait for a dispatcher by a clock that stands still.
    assert_eq!(Arc::strong_count(&told), 1);
}

/// By the system's clock; a manual one may stand still for ever, so there is no pause by it.
#[test]
fn between_two_attempts_to_start_a_dispatcher_there_is_a_pause_however_many_tasks_are_due() {
    const TASKS: u32 = 2_000;
    // As in `thread/on_demand.rs`, which has the pause.
    const PAUSE: Duration = Duration::from_millis(20);
    let factory = Arc::new(exhausted());
    let timers = ScheduledPool::on(DirectExecutor::new())
        .dispatcher_threads(Arc::clone(&factory))
        .on_event(|_| ())
        .build();
    let start = Clock::system().now();
    let tasks = (0..TASKS).map(|_| timers.schedule(Duration::ZERO, || ()).unwrap());
    let tasks: Vec<_> = tasks.collect();
    let attempts = usize::MAX - factory.refusals.load(Ordering::SeqCst);
    let elapsed = Clock::system().now() - start;
    let pauses = elapsed.as_millis() / PAUSE.as_millis();
    assert!(attempts as u128 <= 1 + pauses, "{attempts} in {elapsed:?}");
    assert!(attempts >= 1);
    drop(timers.shutdown_now());
    assert!(tasks.iter().all(|task| task.is_finished()));
    ends(&timers);
}

#[test]
fn what_needs_a_dispatcher_is_rejected_when_none_can_be_had_for_a_second() {
    let manual = ManualClock::new();
    let timers = ScheduledPool::on(DirectExecutor::new())
        .clock(manual.clock())
        .dispatcher_threads(exhausted())
        .on_event(|_| ())
        .build();
    let task = timers.schedule(SECOND, || 7).unwrap();
    let series = timers.schedule_at_fixed_rate(SECOND, HOUR, || ()).unwrap();
    manual.advance(SECOND);
    assert_eq!(
        timers.snapshot().pending,
        2,
        "a short shortage of threads costs nothing"
    );
    for _ in 0..10 {
        assert!(!task.is_finished());
        manual.advance(Duration::from_millis(100));
    }
    assert!(task.is_finished());
    let error = task.join().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the task was cancelled: its executor rejected it"
    );
    let snapshot = timers.snapshot();
    assert_eq!(
        (snapshot.rejected_when_due, snapshot.pending),
        (2, 1),
        "the series goes on"
    );
    assert!(!series.is_finished());
    // While the shortage lasts nothing waits.
    let next = timers.schedule(Duration::from_millis(500), || 7).unwrap();
    manual.advance(Duration::from_millis(500));
    assert!(next.join().unwrap_err().is_cancelled());
    // The next one begins anew.
    manual.advance(HOUR / 2);
    let later = timers.schedule(SECOND, || 7).unwrap();
    manual.advance(SECOND);
    assert!(!later.is_finished());
    assert_eq!(timers.shutdown_now().len(), 2);
    ends(&timers);
}

#[test]
fn what_waits_for_a_dispatcher_runs_when_the_executor_takes_it_at_once_meanwhile() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::Block(Duration::MAX));
    pool.execute(|| ()).unwrap();
    let timers = ScheduledPool::owning(pool.clone())
        .dispatcher_threads(exhausted())
        .build();
    let tasks: Vec<_> = (0..20)
        .map(|n| timers.schedule(SECOND, move || n).unwrap())
        .collect();
    manual.advance(SECOND);
    assert_eq!(timers.snapshot().pending, 20, "the queue is full");
    go.send(()).unwrap();
    while timers.snapshot().pending > 0 {
        while pool.snapshot().queued > 0 {
            millpond_raw::sync::thread::yield_now();
        }
        manual.advance(Duration::from_millis(100));
    }
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(
            task.join().unwrap(),
            n,
            "none was rejected, though it took more than a second"
        );
    }
    timers.close().unwrap();
}

#[test]
fn a_dispatcher_that_cannot_be_started_is_asked_for_again_and_nothing_is_lost() {
    for panics in [false, true] {
        let manual = ManualClock::new();
        let factory = Arc::new(Reluctant {
            refusals: AtomicUsize::new(3),
            panics: AtomicBool::new(panics),
            threads: Threads::named("late"),
        });
        let timers = ScheduledPool::on(DirectExecutor::new())
            .clock(manual.clock())
            .dispatcher_threads(Arc::clone(&factory))
            .build();
        let task = timers.schedule(SECOND, || 7).unwrap();
        manual.advance(SECOND);
        assert_eq!(factory.refusals.load(Ordering::SeqCst), 2);
        assert_eq!(timers.snapshot().pending, 1, "it waits for a dispatcher");
        for _ in 0..3 {
            manual.advance(Duration::from_millis(100));
        }
        assert_eq!(task.join().unwrap(), 7);
        timers.close().unwrap();
    }
}

#[test]
fn stopping_hands_back_what_the_dispatcher_has_not_handed_over() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::Block(Duration::MAX));
    let timers = ScheduledPool::owning(pool).build();
    let tasks: Vec<_> = (0..5)
        .map(|n| timers.schedule(SECOND, move || n).unwrap())
        .collect();
    manual.advance(SECOND);
    let back = timers.shutdown_now();
    drop(go);
    let handed_back = back.len();
    drop(back);
    timers.await_termination().unwrap();
    let ended = tasks.into_iter().map(|task| task.join());
    let cancelled = ended.filter(Result::is_err).count();
    assert_eq!((handed_back, cancelled), (5, 5));
}

#[test]
fn stopping_on_a_shared_executor_hands_back_what_the_dispatcher_has_not_handed_over() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::Block(Duration::MAX));
    let timers = ScheduledPool::on(pool.clone()).build();
    let tasks: Vec<_> = (0..5)
        .map(|n| timers.schedule(SECOND, move || n).unwrap())
        .collect();
    manual.advance(SECOND);
    let back = timers.shutdown_now();
    assert_eq!(back.len(), 5);
    back.into_iter().for_each(|task| drop(task.run()));
    let ran = tasks.into_iter().filter_map(|task| task.join().ok());
    assert_eq!(ran.count(), 5);
    drop(go);
    timers.await_termination().unwrap();
    pool.close().unwrap();
}

/// Waits until the dispatcher has taken its next task out of its queue.
fn await_in_flight<E: Executor + 'static>(timers: &ScheduledPool<E>, left: usize) {
    while timers.snapshot().pending > left {
        millpond_raw::sync::thread::yield_now();
    }
}

/// Waits for the end of a pool whose clock stands still.
fn ends<E: Executor + 'static>(timers: &ScheduledPool<E>) {
    let ((tell, told), timers) = (channel(), timers.clone());
    millpond_raw::sync::thread::spawn(move || tell.send(timers.await_termination()));
    told.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
}

#[test]
fn a_stop_hands_back_what_the_dispatcher_waits_with_although_there_is_never_room() {
    for owns in [true, false] {
        let manual = ManualClock::new();
        let (pool, go) = busy(&manual, RejectionPolicy::Block(Duration::MAX));
        let timers = schedule_on(&pool, owns);
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let timers = timers
            .on_event(move |event| tell.lock().unwrap().send(event.clone()).unwrap())
            .build();
        let tasks = [1, 2, 3].map(|n| timers.schedule(SECOND, move || n).unwrap());
        manual.advance(SECOND);
        // One is in the queue of the pool, the dispatcher waits with another, and one is in its own queue.
        await_in_flight(&timers, 1);
        let back = timers.shutdown_now();
        assert_eq!(back.len(), 3, "owns: {owns}");
        if !owns {
            ends(&timers);
        }
        for task in back {
            task.run();
        }
        assert_eq!(tasks.map(|task| task.join().unwrap()), [1, 2, 3]);
        drop(go);
        ends(&timers);
        assert_eq!(timers.snapshot().rejected_when_due, 0, "owns: {owns}");
        drop(timers);
        assert_eq!(told.iter().count(), 0, "owns: {owns}");
        pool.close().unwrap();
    }
}

#[test]
fn a_stop_hands_back_the_run_that_the_dispatcher_waits_with_and_to_drop_it_cancels_the_series() {
    for owns in [true, false] {
        let manual = ManualClock::new();
        let (pool, go) = busy(&manual, RejectionPolicy::Block(Duration::MAX));
        pool.execute(|| ()).unwrap();
        let timers = schedule_on(&pool, owns);
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let timers = timers
            .on_event(move |event| tell.lock().unwrap().send(event.clone()).unwrap())
            .build();
        let series = timers.series(Every::rate(SECOND)).name("beat");
        let series = series.overlap(Overlap::Queue).start(|| ()).unwrap();
        manual.advance(SECOND);
        await_in_flight(&timers, 0);
        let back = timers.shutdown_now();
        assert!(!series.is_finished(), "it is handed back");
        let of_the_series = back.iter().filter(|task| task.name() == Some("beat"));
        assert_eq!(of_the_series.count(), 1, "owns: {owns}");
        drop(back);
        assert!(series.is_cancelled());
        assert_eq!(
            (series.rejected(), timers.snapshot().rejected_when_due),
            (0, 0)
        );
        drop(go);
        ends(&timers);
        drop((timers, series));
        assert_eq!(told.iter().count(), 0, "owns: {owns}");
        pool.close().unwrap();
    }
}

#[test]
fn a_shutdown_waits_for_room_for_the_task_in_flight() {
    let manual = ManualClock::new();
    let (pool, go) = busy(&manual, RejectionPolicy::Block(Duration::MAX));
    let timers = ScheduledPool::on(pool.clone()).build();
    let tasks = [1, 2, 3].map(|n| timers.schedule(SECOND, move || n).unwrap());
    manual.advance(SECOND);
    await_in_flight(&timers, 1);
    timers.shutdown();
    assert!(!timers.is_terminated());
    drop(go);
    assert_eq!(tasks.map(|task| task.join().unwrap()), [1, 2, 3]);
    ends(&timers);
    pool.close().unwrap();
}

#[test]
fn a_stop_does_not_wait_for_a_body_that_the_dispatcher_runs() {
    let manual = ManualClock::new();
    let timers = ScheduledPool::on(DirectExecutor::new()).clock(manual.clock());
    let timers = timers.build();
    let ((go, wait), (begun, begins)) = (channel::<()>(), channel());
    let body = move || {
        begun.send(()).unwrap();
        let _ = wait.recv();
        7
    };
    let runs = timers.schedule(SECOND, body).unwrap();
    let waits = timers.schedule(SECOND, || 8).unwrap();
    manual.advance(SECOND);
    begins.recv().unwrap();
    assert_eq!(timers.shutdown_now().len(), 1);
    assert!(!timers.is_terminated() && waits.is_cancelled());
    drop(go);
    assert_eq!(runs.join().unwrap(), 7);
    ends(&timers);
}

/// Blocks its submitters whatever happens, then rejects the task.
#[derive(Debug)]
struct Deaf {
    wait: Mutex<Receiver<()>>,
    clock: Clock,
}

impl Executor for Deaf {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let _ = self.wait.lock().unwrap().recv();
        Err(Rejected::new(task, RejectReason::Interrupted))
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

#[test]
fn an_executor_that_ignores_interrupts_holds_a_stop_for_a_while_only() {
    let manual = ManualClock::new();
    let (go, wait) = channel::<()>();
    let executor = Deaf {
        wait: Mutex::new(wait),
        clock: manual.clock(),
    };
    let timers = ScheduledPool::on(executor).on_event(|_| ()).build();
    let tasks = [1, 2].map(|n| timers.schedule(SECOND, move || n).unwrap());
    manual.advance(SECOND);
    await_in_flight(&timers, 1);
    let stops = timers.clone();
    let stop = millpond_raw::sync::thread::spawn(move || stops.shutdown_now());
    while !stop.is_finished() {
        manual.advance(SECOND);
        millpond_raw::sync::thread::yield_now();
    }
    let back = stop.join().unwrap();
    assert_eq!(back.len(), 1);
    let [in_flight, queued] = tasks;
    assert!(!timers.is_terminated() && !queued.is_finished());
    drop((go, back));
    let error = in_flight.join().unwrap_err();
    let reason = TaskError::Cancelled(CancelReason::ShutDown);
    assert_eq!(error.to_string(), reason.to_string());
    ends(&timers);
    assert_eq!(timers.snapshot().rejected_when_due, 0);
}

/// Its rejection handler stops the timers, on the dispatcher's thread.
#[test]
fn a_stop_that_a_rejection_handler_calls_does_not_wait_for_itself() {
    let manual = ManualClock::new();
    let timers: Arc<Mutex<Option<ScheduledPool<ThreadPool>>>> = Arc::default();
    let (stops, (tell, told)) = (Arc::clone(&timers), channel());
    let handler = RejectionPolicy::custom(move |task, context| {
        let timers = stops.lock().unwrap().take().unwrap();
        tell.send(timers.shutdown_now().len()).unwrap();
        context.give_back(task)
    });
    let (pool, go) = busy(&manual, handler);
    pool.execute(|| ()).unwrap();
    let built = ScheduledPool::on(pool.clone()).build();
    *timers.lock().unwrap() = Some(built.clone());
    let task = built.schedule(SECOND, || ()).unwrap();
    manual.advance(SECOND);
    let handed_back = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(handed_back, 0, "the thread that stops has it in hand");
    assert!(task.join().unwrap_err().is_cancelled());
    ends(&built);
    drop(go);
    pool.close().unwrap();
}

#[test]
fn a_listener_that_closes_its_own_pool_gets_an_error_instead_of_waiting_for_itself() {
    type Slot = Arc<Mutex<Option<ScheduledPool<ThreadPool>>>>;
    let below = ThreadPool::builder("mill").core(1).max(1);
    let below = below.queue(Queue::bounded(1)).build().unwrap();
    let slot = Slot::default();
    let (own, (tell, told)) = (Arc::clone(&slot), channel());
    let timers = ScheduledPool::on(below.clone())
        .on_event(move |_| {
            let pool = own.lock().unwrap().take();
            if let Some(pool) = pool {
                tell.send(pool.close()).unwrap();
            }
        })
        .build();
    *slot.lock().unwrap() = Some(timers.clone());
    let (open, gate) = sync_channel::<()>(0);
    below.execute(move || for () in gate {}).unwrap();
    open.send(()).unwrap(); // its worker is busy
    below.execute(|| ()).unwrap(); // and its queue is full
    let rejected = timers.schedule(Duration::ZERO, || ()).unwrap();
    assert!(rejected.join().unwrap_err().is_cancelled());
    assert_eq!(told.recv().unwrap(), Err(TerminationError::OwnTask));
    drop(open);
    timers.close().unwrap();
    below.close().unwrap();
}
