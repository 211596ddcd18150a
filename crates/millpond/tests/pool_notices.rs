//! What a pool tells, and who starts its threads.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

mod watch_kit;

use millpond::executor::ExecutorExt;
use millpond::pool::{Notice, Queue, Rejection, ThreadPool};
use millpond::thread::{ThreadFactory, Threads};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use watch_kit::watch;

const REFUSALS: u64 = 1_000;

/// A thread for each notice that a slow listener has not heard would be a thousand threads.
#[test]
fn one_thread_tells_what_a_pool_has_to_tell_and_what_is_too_much_is_counted() {
    let _watch = watch();
    let (go, may_go) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let at_once = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, highest, gate) = (
        Arc::clone(&at_once),
        Arc::clone(&most),
        Mutex::new(Some(may_go)),
    );
    let listener = move |notice: &Notice| {
        highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // The first waits until all have come.
        let may_go = gate.lock().unwrap().take();
        if let Some(may_go) = may_go {
            let _ = may_go.recv();
        }
        now.fetch_sub(1, Ordering::SeqCst);
        let count = match notice {
            Notice::Refused(_) => (1, 0),
            Notice::Dropped { notices, pool } => {
                assert_eq!(pool, "mill");
                (0, *notices)
            }
            other => panic!("nothing else has happened: {other}"),
        };
        let _ = tell.send(count);
    };
    let at_most_every = Duration::ZERO;
    let mill = ThreadPool::builder("mill").core(1).max(1);
    let mill = mill.queue(Queue::hand_off()).on_notice(listener);
    let mill = mill.rejection(Rejection::Report { at_most_every });
    let pool = mill.build().unwrap();
    let (end, busy) = mpsc::channel::<()>();
    pool.run(move || while busy.recv().is_ok() {}).unwrap();
    for _ in 0..REFUSALS {
        assert!(pool.run(|| ()).is_err());
    }
    drop(go);
    let (mut heard, mut dropped) = (0, 0);
    while heard + dropped < REFUSALS {
        let (one, others) = told.recv().unwrap();
        (heard, dropped) = (heard + one, dropped + others);
    }
    assert_eq!(heard + dropped, REFUSALS);
    assert!(heard <= 66, "{heard} waited to be heard");
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // And it goes on: the next one is heard.
    assert!(pool.run(|| ()).is_err());
    assert_eq!(told.recv().unwrap(), (1, 0));
    drop(end);
}

#[test]
fn the_thread_factory_that_a_pool_reports_is_the_very_one_that_it_was_given() {
    let _watch = watch();
    let given: Arc<dyn ThreadFactory> = Arc::new(Threads::named("mill"));
    let pool = ThreadPool::builder("mill").threads(Arc::clone(&given));
    let pool = pool.build().unwrap();
    assert!(Arc::ptr_eq(&pool.thread_factory(), &given));
    // Of a type that is known, too.
    let given = Arc::new(Threads::named("mill"));
    let pool = ThreadPool::builder("mill").threads(Arc::clone(&given));
    let pool = pool.build().unwrap();
    let given: Arc<dyn ThreadFactory> = given;
    assert!(Arc::ptr_eq(&pool.thread_factory(), &given));
}
