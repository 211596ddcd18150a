//! The queue from outside: its order, its books, and that no producer is starved.

use crate::{TIMEOUT, pool, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

#[test]
fn tasks_of_one_producer_begin_in_the_order_in_which_they_came() {
    for parallelism in [1, 2, 3, 9] {
        let pool = pool(parallelism);
        // All workers but one are held, in a way that the pool does not see.
        let mut held = Vec::new();
        for _ in 1..parallelism {
            let (release, released) = mpsc::channel::<()>();
            let holds = pool.submit(move || released.recv().unwrap()).unwrap();
            until(|| holds.is_started());
            held.push(release);
        }
        let began = Arc::new(Mutex::new(Vec::new()));
        for number in 0..5_000 {
            let began = Arc::clone(&began);
            pool.execute(move || began.lock().unwrap().push(number))
                .unwrap();
        }
        until(|| began.lock().unwrap().len() == 5_000);
        assert!(began.lock().unwrap().is_sorted(), "of {parallelism}");
        for release in held {
            release.send(()).unwrap();
        }
        pool.close().unwrap();
    }
}

#[test]
fn a_pool_of_one_worker_keeps_the_order_of_all_producers_together() {
    let pool = pool(1);
    let (release, released) = mpsc::channel::<()>();
    pool.execute(move || released.recv().unwrap()).unwrap();
    let began = Arc::new(Mutex::new(Vec::new()));
    for number in 0..100 {
        let (pool, began) = (pool.clone(), Arc::clone(&began));
        let submit = move || pool.execute(move || began.lock().unwrap().push(number));
        thread::spawn(submit).join().unwrap().unwrap();
    }
    release.send(()).unwrap();
    pool.close().unwrap();
    assert_eq!(*began.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_stop_amid_four_producers_hands_back_whatever_has_not_run_and_the_books_are_exact() {
    for round in 0..40 {
        let pool = pool(2);
        let (ran, begun) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let produce = || {
            let mut accepted = 0;
            loop {
                let ran = Arc::clone(&ran);
                let count = move || _ = ran.fetch_add(1, Ordering::Relaxed);
                if pool.execute(count).is_err() {
                    return accepted;
                }
                accepted += 1;
                begun.fetch_add(1, Ordering::Relaxed);
            }
        };
        let (accepted, handed_back) = thread::scope(|threads| {
            let producers = [(); 4].map(|()| threads.spawn(produce));
            until(|| begun.load(Ordering::Relaxed) > 50 * round);
            let handed_back = pool.shutdown_now();
            let accepted: usize = producers.map(|each| each.join().unwrap()).iter().sum();
            (accepted, handed_back.len())
        });
        assert!(pool.await_termination_timeout(TIMEOUT).unwrap());
        assert_eq!(ran.load(Ordering::Relaxed) + handed_back, accepted);
        let now = pool.snapshot();
        assert_eq!(now.submitted, accepted as u64, "{now:?}");
        assert_eq!(now.rejected, 4, "{now:?}");
        assert_eq!(now.completed + now.cancelled, now.submitted, "{now:?}");
        assert_eq!(now.handed_back, handed_back as u64, "{now:?}");
        assert_eq!(now.queued_outside, 0, "{now:?}");
    }
}

#[test]
fn what_waits_outside_is_counted_whichever_thread_brought_it() {
    let pool = pool(4);
    let all = Arc::new(Barrier::new(5));
    for _ in 0..4 {
        let all = Arc::clone(&all);
        pool.execute(move || _ = (all.wait(), all.wait())).unwrap();
    }
    all.wait();
    for count in 1..=20 {
        let inner = pool.clone();
        let submit = move || inner.execute(|| ());
        thread::spawn(submit).join().unwrap().unwrap();
        let now = pool.snapshot();
        assert_eq!(
            (now.queued_outside, now.submitted),
            (count, 4 + count as u64)
        );
    }
    all.wait();
    pool.close().unwrap();
    let now = pool.snapshot();
    assert_eq!((now.queued_outside, now.completed), (0, 24));
}

#[test]
fn a_producer_that_never_pauses_starves_no_other_one() {
    let pool = pool(4);
    // It keeps its stripes.
    pool.set_parallelism(1).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // There is always something, and never too much.
                if pool.snapshot().queued_outside < 1_000 {
                    (0..1_000).for_each(|_| pool.execute(|| ()).unwrap());
                }
            }
        });
        for number in 0..8 {
            let inner = pool.clone();
            let submit = move || inner.submit(move || number).unwrap();
            let task = thread::spawn(submit).join().unwrap();
            // A join would run it here.
            until(|| task.is_finished());
            assert_eq!(task.join().unwrap(), number);
        }
        stop.store(true, Ordering::Relaxed);
    });
    pool.close().unwrap();
}
