//! Scopes on executors that keep no promise: nothing borrowed outlives the scope, nothing that was
//! taken is lost, and nothing hangs.

use crate::executor_kit::{LONG, PerTask, Shelf, forget, quiet_panic, signal};
use millpond::executor::{Executor, ExecutorExt, RejectReason, Rejected, ScopeOptions};
use millpond::task::{CancelReason, Task, TaskSpec};
use millpond_raw::park::probe;
use millpond_testkit::DropCount;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What an executor does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whim {
    Runs,
    RunsElsewhere,
    Leaks,
    Drops,
    Cancels,
    KeepsForLater,
    Rejects,
    /// Runs it, and says that it did not, with another task as the proof.
    RunsAndRefuses,
    /// Gives another task back and drops this one.
    Swaps,
}

const WHIMS: [Whim; 9] = [
    Whim::Runs,
    Whim::RunsElsewhere,
    Whim::Leaks,
    Whim::Drops,
    Whim::Cancels,
    Whim::KeepsForLater,
    Whim::Rejects,
    Whim::RunsAndRefuses,
    Whim::Swaps,
];

/// Does what its script says, over and over.
#[derive(Debug)]
struct Hostile {
    script: Vec<Whim>,
    asked: AtomicUsize,
    later: Mutex<Vec<Task>>,
    elsewhere: Sender<Task>,
}

impl Hostile {
    fn new(script: impl Into<Vec<Whim>>) -> (Self, Receiver<Task>) {
        let (elsewhere, receive) = mpsc::channel();
        let hostile = Hostile {
            script: script.into(),
            asked: AtomicUsize::new(0),
            later: Mutex::default(),
            elsewhere,
        };
        (hostile, receive)
    }

    /// With a thread that runs what is sent elsewhere.
    fn with_thread(script: impl Into<Vec<Whim>>) -> Self {
        let (hostile, receive) = Hostile::new(script);
        thread::spawn(move || receive.into_iter().for_each(|task| drop(task.run())));
        hostile
    }

    fn take_kept(&self) -> Vec<Task> {
        std::mem::take(&mut self.later.lock().unwrap())
    }
}

impl Executor for Hostile {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let other = || TaskSpec::new().build_detached(|| ());
        match self.script[self.asked.fetch_add(1, SeqCst) % self.script.len()] {
            Whim::Runs => drop(task.run()),
            Whim::RunsElsewhere => self.elsewhere.send(task).expect("somebody takes it"),
            Whim::Leaks => forget(task),
            Whim::Drops => drop(task),
            Whim::Cancels => drop(task.cancel(CancelReason::ShutDown)),
            Whim::KeepsForLater => self.later.lock().unwrap().push(task),
            Whim::Rejects => return Err(Rejected::new(task, RejectReason::ShutDown)),
            Whim::RunsAndRefuses => {
                drop(task.run());
                return Err(Rejected::new(other(), RejectReason::ShutDown));
            }
            Whim::Swaps => return Err(Rejected::new(other(), RejectReason::ShutDown)),
        }
        Ok(())
    }
}

/// Submits `count` tasks that write to what they borrow, each in its own way, and counts.
fn work_on(executor: &dyn Executor, count: usize) {
    let mut cells: Vec<Box<usize>> = (0..count).map(|_| Box::new(0)).collect();
    let drops = DropCount::new();
    let sum: usize = executor.scope(|s| {
        let mut handles = Vec::new();
        for (n, cell) in cells.iter_mut().enumerate() {
            let token = drops.token();
            let body = move || {
                **cell = n + 1;
                drop(token);
                &**cell
            };
            if n % 3 == 0 {
                if let Err(rejected) = s.execute(body) {
                    (rejected.task)();
                }
                continue;
            }
            match s.submit(body) {
                Ok(handle) if n % 3 == 1 => handles.push(handle),
                Ok(left_to_the_scope) => drop(left_to_the_scope),
                Err(rejected) => {
                    (rejected.task)();
                }
            }
        }
        handles
            .into_iter()
            .map(|handle| *handle.join().unwrap())
            .sum()
    });
    assert!(sum <= count * (count + 1) / 2);
    assert_eq!(drops.dropped(), count, "every closure is gone, once");
    // Every one was run, by some thread, or returned.
    assert!(cells.iter().enumerate().all(|(n, cell)| **cell == n + 1));
}

#[test]
fn whatever_an_executor_does_every_task_runs_once_before_the_scope_returns() {
    for whim in WHIMS {
        let hostile = Hostile::with_thread([whim]);
        work_on(&hostile, 12);
        // A stub that is run long after the scope finds nothing.
        for task in hostile.take_kept() {
            assert!(task.is_gone());
            drop(task.run());
        }
    }
}

#[test]
fn an_executor_that_rejects_every_second_task_returns_exactly_those() {
    let (hostile, _) = Hostile::new([Whim::KeepsForLater, Whim::Rejects]);
    let ran = Mutex::new(Vec::new());
    let rejected: Vec<usize> = hostile.scope(|s| {
        let ran = &ran;
        let submit = |n| {
            s.execute(move || ran.lock().unwrap().push(n))
                .err()
                .map(|_| n)
        };
        (0..6).filter_map(submit).collect()
    });
    assert_eq!(rejected, [1, 3, 5]);
    assert_eq!(*ran.lock().unwrap(), [0, 2, 4]);
}

#[test]
fn tasks_that_run_long_after_the_scope_touch_nothing() {
    let (hostile, later) = Hostile::new([Whim::RunsElsewhere]);
    let cells = vec![AtomicUsize::new(0), AtomicUsize::new(0)];
    hostile.scope(|s| {
        for cell in &cells {
            s.execute(|| cell.fetch_add(1, SeqCst)).unwrap();
        }
    });
    assert!(cells.iter().all(|cell| cell.load(SeqCst) == 1));
    // The memory is gone; a sanitizer would see a touch.
    drop(cells);
    drop(hostile);
    let late = thread::spawn(move || later.into_iter().map(|task| drop(task.run())).count());
    assert_eq!(late.join().unwrap(), 2);
}

#[test]
fn tasks_that_are_handed_back_while_the_scope_lasts_are_done_all_the_same() {
    let shelf = Shelf::with_room(8);
    let (ready, expect) = signal();
    let thief = {
        let shelf = Arc::clone(&shelf);
        thread::spawn(move || {
            expect.wait();
            shelf.take()
        })
    };
    let ran = AtomicUsize::new(0);
    let stolen = shelf.scope(|s| {
        for _ in 0..8 {
            s.execute(|| ran.fetch_add(1, SeqCst)).unwrap();
        }
        ready.send(()).unwrap();
        thief.join().unwrap()
    });
    assert_eq!((ran.into_inner(), stolen.len()), (8, 8));
    assert!(stolen.iter().all(Task::is_gone));
}

#[test]
fn a_join_with_a_timeout_runs_a_task_that_the_executor_has_dropped() {
    for whim in [Whim::Drops, Whim::Cancels] {
        let (hostile, _) = Hostile::new([whim]);
        let text = String::from("rye");
        let length = hostile.scope(|s| {
            let mut handle = s.submit(|| text.len()).unwrap();
            handle.join_timeout(Duration::ZERO).unwrap()
        });
        assert_eq!(length, 3);
    }
}

#[test]
fn a_waiting_join_is_woken_when_the_executor_drops_the_task() {
    let shelf = Shelf::with_room(1);
    let text = String::from("rye");
    let length = shelf.scope(|s| {
        let mut handle = s.submit(|| text.len()).unwrap();
        let dropper = {
            let (shelf, joiner) = (Arc::clone(&shelf), thread::current().id());
            thread::spawn(move || {
                let waits = probe::await_wait(LONG, |wait| {
                    wait.thread == joiner && wait.site.name() == "scope.join"
                });
                waits.expect("it waits there");
                drop(shelf.take());
            })
        };
        let length = handle.join_timeout(LONG).unwrap();
        dropper.join().unwrap();
        length
    });
    assert_eq!(length, 3);
}

#[test]
fn a_task_that_is_lost_and_cancelled_is_dropped() {
    let (hostile, _) = Hostile::new([Whim::Leaks]);
    let drops = DropCount::new();
    hostile.scope(|s| {
        let token = drops.token();
        s.execute(|| drop(token)).unwrap();
        s.cancel_rest();
        assert_eq!(drops.dropped(), 1);
    });
}

/// The same sequence for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }
}

/// Tasks that submit tasks, panic, cancel and are joined anywhere, on an executor that does anything.
fn anything_on(executor: &(dyn Executor + Sync), seed: u64) {
    let mut dice = Dice(seed);
    let cells: Vec<Box<AtomicUsize>> = (0..24).map(|_| Box::default()).collect();
    let (alive, drops) = (AtomicUsize::new(0), DropCount::new());
    let options = match dice.roll(2) {
        0 => ScopeOptions::new(),
        _ => ScopeOptions::new().cancel_on_failure(),
    };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        executor.scope_with(options, |s| {
            for cell in &cells {
                let (what, then) = (dice.roll(8), dice.roll(5));
                let (alive, drops) = (&alive, &drops);
                let token = drops.token();
                alive.fetch_add(1, SeqCst);
                let submitted = s.submit(move || {
                    let _token = token;
                    cell.fetch_add(1, SeqCst);
                    match what {
                        0 => quiet_panic("on purpose"),
                        1 => s.cancel_rest(),
                        2 => {
                            alive.fetch_add(1, SeqCst);
                            let inner = drops.token();
                            drop(s.submit(move || {
                                cell.fetch_add(1, SeqCst);
                                inner
                            }));
                        }
                        3 => thread::yield_now(),
                        _ => {}
                    }
                    &**cell
                });
                let Ok(mut handle) = submitted else { continue };
                match then {
                    0 => drop(handle.join()),
                    1 => drop(handle.cancel()),
                    2 => drop(handle.join_timeout(Duration::from_micros(50))),
                    3 => forget(handle),
                    _ => {}
                }
            }
            if dice.roll(10) == 0 {
                quiet_panic("the closure");
            }
        });
    }));
    drop(ended);
    assert_eq!(
        drops.dropped(),
        alive.into_inner(),
        "seed {seed}: every closure is gone, once"
    );
    assert!(
        cells.iter().all(|cell| cell.load(SeqCst) <= 2),
        "seed {seed}"
    );
}

#[test]
fn whatever_happens_to_a_task_nothing_borrowed_is_left() {
    for seed in 1..=150_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let script: Vec<_> = (0..7).map(|_| WHIMS[dice.roll(WHIMS.len())]).collect();
        let hostile = Hostile::with_thread(script);
        anything_on(&hostile, seed);
        let late = hostile.take_kept();
        drop(thread::spawn(move || {
            late.into_iter().for_each(|task| drop(task.run()))
        }));
    }
}

#[test]
fn whatever_happens_on_threads_nothing_borrowed_is_left() {
    let per_task = PerTask::of(3);
    for seed in 1..=150_u64 {
        anything_on(&*per_task.0, seed);
    }
}
