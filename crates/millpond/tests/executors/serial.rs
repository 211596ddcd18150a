//! One after another, per key.

use crate::executor_kit::{LONG, PerTask, Rejecting, Shelf, gate, quiet_panic, signal};
use millpond::executor::{
    DirectExecutor, Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, SaturationPolicy,
    SerialExecutor, ThreadPerTask,
};
use millpond::interrupt::{self, Interrupted};
use millpond::task::{CancelReason, Task, TaskError};
use millpond_testkit::{DropCount, watch};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// The same sequence for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % sides
    }
}

#[test]
fn four_threads_submit_a_thousand_each_and_every_key_keeps_its_order() {
    let _watch = watch();
    const KEYS: u64 = 7;
    let per_task = ThreadPerTask::builder("serial", 4)
        .at_bound(SaturationPolicy::Block)
        .build()
        .unwrap();
    let serial = SerialExecutor::new(per_task);
    let seen: Arc<Mutex<Vec<(u64, usize, usize)>>> = Arc::default();
    let inside: Arc<Vec<AtomicBool>> =
        Arc::new((0..KEYS).map(|_| AtomicBool::new(false)).collect());
    let submitters: Vec<_> = (0..4)
        .map(|submitter| {
            let serial = serial.clone();
            let (seen, inside) = (Arc::clone(&seen), Arc::clone(&inside));
            std::thread::spawn(move || {
                let mut dice = Dice(0x9E37_79B9 + submitter as u64);
                let mut handles = Vec::new();
                for n in 0..1000 {
                    let key = dice.roll(KEYS);
                    let panics = dice.roll(5) == 0;
                    let (seen, inside) = (Arc::clone(&seen), Arc::clone(&inside));
                    let body = move || {
                        let alone = &inside[key as usize];
                        assert!(!alone.swap(true, Ordering::SeqCst), "one at a time");
                        seen.lock().unwrap().push((key, submitter, n));
                        alone.store(false, Ordering::SeqCst);
                        if panics {
                            quiet_panic("now and then");
                        }
                    };
                    handles.push((panics, serial.key(key).submit(body).unwrap()));
                }
                for (panics, mut handle) in handles {
                    let joined = handle.join_timeout(LONG);
                    assert_eq!(
                        joined.is_err_and(|error| error.is_panicked()),
                        panics,
                        "a panic is that of the body and nothing else"
                    );
                }
            })
        })
        .collect();
    for submitter in submitters {
        submitter.join().unwrap();
    }
    serial.inner().close().unwrap();
    assert_eq!(serial.busy_keys(), 0, "idle keys are forgotten");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 4000);
    for key in 0..KEYS {
        for submitter in 0..4 {
            let order: Vec<_> = seen
                .iter()
                .filter(|(k, b, _)| (*k, *b) == (key, submitter))
                .map(|(_, _, n)| *n)
                .collect();
            assert!(order.is_sorted(), "key {key}, submitter {submitter}");
        }
    }
}

#[test]
fn keys_do_not_wait_for_each_other() {
    let _watch = watch();
    let per_task = PerTask::of(100);
    let serial = SerialExecutor::new(Arc::clone(&per_task.0));
    let (open, wait) = gate();
    let slow = serial.key(0).submit(wait).unwrap();
    for key in 1..100 {
        serial.key(key).submit(|| ()).unwrap().join().unwrap();
    }
    assert!(!slow.is_finished());
    open.send(()).unwrap();
    slow.join().unwrap();
}

#[test]
fn a_panic_does_not_stall_its_key_and_goes_to_the_hook() {
    let _watch = watch();
    let (send, receive) = mpsc::channel();
    let serial = SerialExecutor::<&str, _>::builder(DirectExecutor::new())
        .on_panic(move |uncaught| send.send(uncaught.into_panic()).unwrap())
        .build()
        .unwrap();
    serial.key("a").execute(|| quiet_panic("no water")).unwrap();
    assert_eq!(serial.key("a").submit(|| 7).unwrap().join().unwrap(), 7);
    assert_eq!(receive.try_recv().unwrap().message(), Some("no water"));
}

#[test]
fn a_task_that_submits_another_of_its_key_is_followed_by_it() {
    let _watch = watch();
    let serial = SerialExecutor::new(DirectExecutor::new());
    let order = Arc::new(Mutex::new(Vec::new()));
    serial
        .key(1)
        .execute({
            let (serial, order) = (serial.clone(), Arc::clone(&order));
            move || {
                let inner = Arc::clone(&order);
                let note = move || inner.lock().unwrap().push("second");
                serial.key(1).execute(note).unwrap();
                order.lock().unwrap().push("first");
            }
        })
        .unwrap();
    assert_eq!(*order.lock().unwrap(), ["first", "second"]);
    assert_eq!(serial.busy_keys(), 0);
}

#[test]
fn a_rejection_by_the_inner_executor_returns_the_task_and_leaves_no_key() {
    let _watch = watch();
    let serial = SerialExecutor::new(Rejecting);
    let drops = DropCount::new();
    let token = drops.token();
    let rejected = serial.key("a").submit(move || drop(token)).unwrap_err();
    assert!(rejected.reason.is_saturated());
    assert_eq!((drops.dropped(), serial.busy_keys()), (0, 0));
    (rejected.task)();
    assert_eq!(drops.dropped(), 1);
}

#[test]
fn a_key_goes_on_after_a_rejection() {
    let _watch = watch();
    let shelf = Shelf::with_room(0);
    let serial = SerialExecutor::new(Arc::clone(&shelf));
    let key = serial.key("a");
    let rejected = key.submit(|| 1).unwrap_err();
    shelf.room.store(1, Ordering::SeqCst);
    let handle = key.submit(rejected.task).unwrap();
    let behind = key.submit(|| 2).unwrap();
    shelf.run_all();
    assert_eq!((handle.join().unwrap(), behind.join().unwrap()), (1, 2));
    assert_eq!(serial.busy_keys(), 0);
}

#[test]
fn tasks_behind_a_queued_drain_need_no_room_in_the_inner_executor() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let serial = SerialExecutor::new(Arc::clone(&shelf));
    let handles: Vec<_> = (0..10)
        .map(|n| serial.key("a").submit(move || n).unwrap())
        .collect();
    assert!(serial.key("b").submit(|| 0).is_err(), "another key does");
    assert_eq!(shelf.take().into_iter().map(|t| drop(t.run())).count(), 1);
    for (n, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join().unwrap(), n);
    }
}

#[test]
fn an_inner_executor_that_drops_an_accepted_drain_cancels_the_key() {
    let _watch = watch();
    let shelf = Shelf::with_room(2);
    let serial = SerialExecutor::new(Arc::clone(&shelf));
    let handles: Vec<_> = (0..3)
        .map(|n| serial.key("a").submit(move || n).unwrap())
        .collect();
    drop(shelf.take());
    for handle in handles {
        assert!(matches!(
            handle.join(),
            Err(TaskError::Cancelled(CancelReason::Dropped))
        ));
    }
    assert_eq!(serial.busy_keys(), 0);
    let again = serial.key("a").submit(|| 7).unwrap();
    shelf.run_all();
    assert_eq!(again.join().unwrap(), 7);
}

/// Rejects a drain while another thread submits a task of the same key.
#[derive(Debug)]
struct RejectsSlowly {
    asked: AtomicUsize,
    during: mpsc::SyncSender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
    shelf: Arc<Shelf>,
}

impl Executor for RejectsSlowly {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        if self.asked.fetch_add(1, Ordering::SeqCst) > 0 {
            return self.shelf.execute_task(task);
        }
        self.during.send(()).unwrap();
        self.go_on.lock().unwrap().recv_timeout(LONG).unwrap();
        Err(Rejected::new(task, RejectReason::ShutDown))
    }
}

#[test]
fn a_rejection_hits_no_task_that_another_drain_is_sure_to_run() {
    let _watch = watch();
    let (during, asked) = mpsc::sync_channel(1);
    let (go_on, may_go_on) = mpsc::channel();
    let shelf = Shelf::with_room(9);
    let serial = SerialExecutor::new(RejectsSlowly {
        asked: AtomicUsize::new(0),
        during,
        go_on: Mutex::new(may_go_on),
        shelf: Arc::clone(&shelf),
    });
    // The drain of the second is accepted before that of the first is rejected. It runs both.
    let turn = Arc::new(AtomicUsize::new(0));
    let take_turn = |turn: &Arc<AtomicUsize>| {
        let turn = Arc::clone(turn);
        move || turn.fetch_add(1, Ordering::SeqCst)
    };
    let first = std::thread::spawn({
        let (serial, body) = (serial.clone(), take_turn(&turn));
        move || serial.key("a").submit(body)
    });
    asked.recv_timeout(LONG).unwrap();
    let second = serial.key("a").submit(take_turn(&turn)).unwrap();
    go_on.send(()).unwrap();
    let first = first.join().unwrap().expect("somebody is sure to run it");
    shelf.run_all();
    assert_eq!(first.join().unwrap(), 0);
    assert_eq!(second.join().unwrap(), 1);
    assert_eq!(serial.busy_keys(), 0);
}

#[test]
fn an_inner_executor_that_panics_does_not_stall_the_key() {
    let _watch = watch();
    #[derive(Debug)]
    struct Panics(AtomicBool);

    impl Executor for Panics {
        fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
            if !self.0.swap(true, Ordering::SeqCst) {
                quiet_panic("not today");
            }
            DirectExecutor::new().execute_task(task)
        }
    }

    let serial = SerialExecutor::new(Panics(AtomicBool::new(false)));
    let key = serial.key("a");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| key.submit(|| 1)));
    assert!(panicked.is_err());
    assert_eq!(serial.busy_keys(), 0);
    assert_eq!(key.submit(|| 2).unwrap().join().unwrap(), 2);
}

#[test]
fn a_bounded_key_rejects_beyond_its_bound_and_other_keys_are_not_affected() {
    let _watch = watch();
    let shelf = Shelf::with_room(9);
    let serial = SerialExecutor::builder(Arc::clone(&shelf))
        .capacity_per_key(2)
        .build()
        .unwrap();
    let key = serial.key("a");
    let handles = [key.submit(|| 1).unwrap(), key.submit(|| 2).unwrap()];
    let rejected = key.submit(|| 3).unwrap_err();
    assert!(matches!(
        rejected.reason,
        RejectReason::Saturated {
            queued: 2,
            capacity: 2,
            workers: 1,
            ..
        }
    ));
    let other = serial.key("b").submit(|| 4).unwrap();
    shelf.run_all();
    assert_eq!(handles.map(|handle| handle.join().unwrap()), [1, 2]);
    assert_eq!(other.join().unwrap(), 4);
    assert_eq!((rejected.task)(), 3);
    let none = SerialExecutor::<u8, _>::builder(Rejecting)
        .capacity_per_key(0)
        .build();
    assert_eq!(
        none.unwrap_err().to_string(),
        "capacity_per_key is 0, so no task could ever run: allow at least one"
    );
}

#[test]
fn stopping_the_inner_executor_interrupts_the_running_task_and_cancels_those_behind_it() {
    let _watch = watch();
    let per_task = PerTask::of(1);
    let serial = SerialExecutor::new(Arc::clone(&per_task.0));
    let (started, start) = signal();
    let running = serial
        .key("a")
        .submit(move || {
            started.send(()).unwrap();
            interrupt::sleep(LONG)
        })
        .unwrap();
    let behind = serial.key("a").submit(|| 2).unwrap();
    start.wait();
    per_task.0.shutdown_now();
    assert_eq!(running.join().unwrap(), Err(Interrupted));
    assert!(matches!(
        behind.join(),
        Err(TaskError::Cancelled(CancelReason::ShutDown))
    ));
}

#[test]
fn a_key_that_panics_when_it_is_compared_stalls_no_other_key() {
    let _watch = watch();
    #[derive(Debug)]
    struct Touchy(&'static AtomicBool);

    impl PartialEq for Touchy {
        fn eq(&self, _: &Self) -> bool {
            if self.0.load(Ordering::SeqCst) {
                quiet_panic("do not compare me");
            }
            true
        }
    }
    impl Eq for Touchy {}
    impl std::hash::Hash for Touchy {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            state.write_u8(0);
        }
    }

    static TOUCHED: AtomicBool = AtomicBool::new(false);
    let shelf = Shelf::with_room(9);
    let serial = SerialExecutor::new(Arc::clone(&shelf));
    let first = serial.key(Touchy(&TOUCHED)).submit(|| 1).unwrap();
    TOUCHED.store(true, Ordering::SeqCst);
    let submitted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        serial.key(Touchy(&TOUCHED)).submit(|| 2)
    }));
    assert!(submitted.is_err(), "its submitter gets the panic");
    shelf.run_all();
    assert_eq!(first.join().unwrap(), 1);
    TOUCHED.store(false, Ordering::SeqCst);
    let third = serial.key(Touchy(&TOUCHED)).submit(|| 3).unwrap();
    shelf.run_all();
    assert_eq!(third.join().unwrap(), 3);
    assert_eq!(serial.busy_keys(), 0);
}

#[test]
fn a_hundred_thousand_keys_leave_nothing_behind() {
    let _watch = watch();
    let serial = SerialExecutor::new(DirectExecutor::new());
    let ran = Arc::new(AtomicUsize::new(0));
    for key in 0..100_000_u64 {
        let ran = Arc::clone(&ran);
        let body = move || {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        serial.key(key).execute(body).unwrap();
    }
    assert_eq!(ran.load(Ordering::Relaxed), 100_000);
    assert_eq!(serial.busy_keys(), 0);
}

#[test]
fn a_submit_that_races_with_the_end_of_its_lane_is_never_lost() {
    let _watch = watch();
    let per_task = ThreadPerTask::builder("lane", 4)
        .at_bound(SaturationPolicy::Block)
        .build()
        .unwrap();
    let serial = Arc::new(SerialExecutor::new(per_task));
    let submitters: Vec<_> = (0..3)
        .map(|_| {
            let serial = Arc::clone(&serial);
            std::thread::spawn(move || {
                for _ in 0..500 {
                    // Joined at once, so that the lane is about to be forgotten when the next comes.
                    let mut handle = serial.key("one").submit(|| ()).unwrap();
                    handle.join_timeout(LONG).unwrap();
                }
            })
        })
        .collect();
    for submitter in submitters {
        submitter.join().unwrap();
    }
    serial.inner().close().unwrap();
    assert_eq!(serial.busy_keys(), 0);
}

/// Accepts, rejects, drops or panics at random; accepted tasks run on threads.
#[derive(Debug)]
struct Unreliable {
    below: ThreadPerTask,
    dice: Mutex<u64>,
}

impl Executor for Unreliable {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let mood = {
            let mut seed = self.dice.lock().unwrap();
            let mut dice = Dice(*seed);
            let mood = dice.roll(8);
            *seed = dice.0;
            mood
        };
        match mood {
            0 | 1 => Err(Rejected::new(task, RejectReason::ShutDown)),
            2 => {
                drop(task);
                Ok(())
            }
            3 => DirectExecutor::new().execute_task(task),
            4 => quiet_panic("in a bad mood"),
            _ => self.below.execute_task(task),
        }
    }
}

#[test]
fn whatever_the_inner_executor_does_every_task_ends_and_order_holds() {
    let _watch = watch();
    for seed in 1..=60_u64 {
        let below = ThreadPerTask::builder("moody", 3)
            .at_bound(SaturationPolicy::Block)
            .build()
            .unwrap();
        let serial = Arc::new(SerialExecutor::new(Unreliable {
            below,
            dice: Mutex::new(seed),
        }));
        let drops = Arc::new(DropCount::new());
        let seen: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
        let submitters: Vec<_> = (0..3)
            .map(|submitter| {
                let (serial, seen, drops) =
                    (Arc::clone(&serial), Arc::clone(&seen), Arc::clone(&drops));
                std::thread::spawn(move || {
                    let mut handles = Vec::new();
                    for n in 0..30 {
                        let (seen, token) = (Arc::clone(&seen), drops.token());
                        let body = move || {
                            let _token = token;
                            seen.lock().unwrap().push((submitter, n));
                        };
                        let submitted =
                            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                                serial.key("one").submit(body)
                            }));
                        if let Ok(Ok(handle)) = submitted {
                            handles.push(handle);
                        }
                    }
                    for mut handle in handles {
                        match handle.join_timeout(LONG) {
                            Ok(()) => {}
                            Err(error) => assert!(error.is_cancelled(), "seed {seed}: {error}"),
                        }
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        serial.inner().below.close().unwrap();
        assert_eq!(serial.busy_keys(), 0, "seed {seed}");
        assert_eq!(
            drops.dropped(),
            90,
            "seed {seed}: every closure is gone, once"
        );
        let seen = seen.lock().unwrap();
        for submitter in 0..3 {
            let mine = seen.iter().filter(|(b, _)| *b == submitter);
            assert!(mine.map(|(_, n)| n).is_sorted(), "seed {seed}");
        }
    }
}
