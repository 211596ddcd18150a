//! Bridges to tasks, futures and threads of other runtimes.

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::future::{self, Completable};
use millpond::preset;
use millpond::schedule::ScheduledPool;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// The smallest runtime: polls on this thread, and parks it.
struct Unpark(Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

#[test]
fn a_completable_is_awaited_while_another_thread_completes_it() {
    for _ in 0..100 {
        let (promise, reader) = future::promise::<u32, ()>();
        let completer = thread::spawn(move || promise.complete(7).unwrap());
        assert_eq!(block_on(reader).unwrap(), 7);
        completer.join().unwrap();
    }
}

#[test]
fn a_future_that_is_dropped_leaves_nothing_behind() {
    let (_promise, reader) = future::promise::<u32, ()>();
    for _ in 0..1_000 {
        let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&unpark));
        let mut other = pin!(reader.clone());
        assert!(
            other
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(waker);
        other.set(reader.clone());
        assert_eq!(Arc::strong_count(&unpark), 1, "its waker is gone");
    }
    assert!(reader.dependents() <= 64);
}

#[test]
fn the_last_waker_is_woken() {
    let (promise, reader) = future::promise::<u32, ()>();
    let wakers = [(); 2].map(|()| Arc::new(Unpark(thread::current(), AtomicUsize::new(0))));
    let mut reader = pin!(reader);
    for own in &wakers {
        let waker = Waker::from(Arc::clone(own));
        assert!(
            reader
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    promise.complete(7).unwrap();
    assert_eq!(wakers.map(|own| own.1.load(Ordering::SeqCst)), [0, 1]);
}

#[test]
fn tasks_and_scheduled_tasks_become_completables() {
    let pool = preset::single("mill").build().unwrap();
    let handle = pool.submit(|| 7).unwrap();
    assert_eq!(Completable::from(handle).join().unwrap(), 7);
    let handle = pool.submit(|| -> u32 { panic!("the dam broke") }).unwrap();
    let failure = Completable::from(handle).join().unwrap_err();
    assert!(failure.is_panicked());
    let timers = ScheduledPool::on(pool.clone()).build();
    let scheduled = timers.schedule(Duration::from_millis(1), || 7).unwrap();
    let made = Completable::from_result_future(scheduled);
    assert_eq!(made.join().unwrap(), 7);
    let inner = Completable::supply_async(|| 7);
    let made = Completable::<_, ()>::from_future_on(&pool, async move { inner.await.unwrap() + 1 });
    assert_eq!(made.unwrap().join().unwrap(), 8);
    timers.close().unwrap();
    pool.close().unwrap();
}

#[test]
fn a_task_that_is_dropped_ends_its_completable() {
    let (task, handle) = millpond::task::new(|| 7);
    let made = Completable::from(handle);
    drop(task);
    assert!(made.join().unwrap_err().is_cancelled());
}

#[test]
fn a_time_out_of_the_system_clock_runs_its_stages_off_the_timers_thread() {
    let late = Completable::<u32, ()>::never().or_timeout(Duration::from_millis(1));
    let there = late.recover(|failure| {
        assert!(failure.is_timed_out());
        let name = thread::current().name().unwrap_or_default().to_owned();
        assert!(!name.starts_with("millpond-timer"), "{name}");
        7
    });
    assert_eq!(there.join().unwrap(), 7);
}
