//! Tombstones are counted correctly when a handle cancels a queued task, or a worker runs it inline, while the pool clears
//! its queue or shuts down. The rules are TOMBSTONE-1 to TOMBSTONE-3 of `task::queue_tag`.

#![allow(
    clippy::disallowed_types,
    reason = "what the test itself notes is not part of the model"
)]

use crate::model;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{Queue, ThreadPool};
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use millpond::time::ManualClock;
use millpond_raw::sync::thread::{spawn, start};
use std::io;
use std::sync::{Arc, Mutex};

/// Starts threads that end at once: the workers are counted, and take nothing.
#[derive(Clone, Default)]
struct Absent(Arc<Mutex<Vec<Body>>>);

impl std::fmt::Debug for Absent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Absent")
    }
}

impl ThreadFactory for Absent {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.0.lock().unwrap().push(body);
        start(None, None, || ())
    }
}

/// `[H-gone]`: an engine that sees the count finds the tombstone. A submitter that saw the count and not the tombstone
/// would be rejected, and so would be all later ones.
#[test]
fn a_task_that_is_cancelled_while_the_full_queue_is_purged_frees_its_slot() {
    model(2, || {
        let hand = ManualClock::new();
        let absent = Absent::default();
        let pool = ThreadPool::builder("model").core(1).max(1);
        let pool = pool.queue(Queue::bounded(1)).clock(hand.clock());
        let pool = pool.threads(absent.clone()).build().unwrap();
        pool.prestart_core().unwrap();
        let cancelled = pool.submit(|| ()).unwrap();
        let other = spawn(move || assert!(cancelled.cancel()));
        let at_once = pool.execute(|| ()).is_ok();
        other.join().unwrap();
        let later = pool.execute(|| ()).is_ok();
        assert!(
            at_once || later,
            "there is a tombstone in the queue, and nobody looks"
        );
        assert!(!(at_once && later), "there is room for one");
        drop(pool.shutdown_now());
        let bodies = std::mem::take(&mut *absent.0.lock().unwrap());
        drop(bodies);
    });
}

/// `[H-leave]`: a worker runs a task inline while a shutdown gives it back. One of the two counts it; a shutdown that comes
/// second sees that it is gone.
#[test]
fn a_task_that_is_run_inline_while_it_is_handed_back_is_counted_once() {
    model(2, || {
        let hand = ManualClock::new();
        let pool = ThreadPool::builder("model").core(1).max(1);
        let pool = pool.queue(Queue::bounded(2)).clock(hand.clock());
        let pool = pool.build().unwrap();
        // Not seen by the checker: it is read at the end.
        let accepted = Arc::new(Mutex::new(1));
        let (own, count) = (pool.clone(), Arc::clone(&accepted));
        pool.execute(move || {
            if let Ok(inner) = own.submit(|| ()) {
                *count.lock().unwrap() += 1;
                let _ = inner.join();
            }
        })
        .unwrap();
        drop(pool.shutdown_now());
        pool.await_termination().unwrap();
        let last = pool.snapshot();
        let over = last.completed + last.cancelled;
        assert_eq!(over, *accepted.lock().unwrap(), "{last:?}");
    });
}
