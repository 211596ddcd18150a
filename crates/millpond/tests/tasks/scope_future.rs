//! Task-local values in async code.

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::preset;
use millpond::task::{self, TaskLocal, TaskSpec};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

static REQUEST: TaskLocal<u32> = TaskLocal::new();
static USER: TaskLocal<u32> = TaskLocal::new();

fn here() -> (Option<u32>, Option<u32>) {
    let plain = |value: Arc<u32>| *value;
    (REQUEST.get().map(plain), USER.get().map(plain))
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Is ready at the second poll.
async fn pause() {
    let mut again = false;
    std::future::poll_fn(|_| {
        let ready = std::mem::replace(&mut again, true);
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[test]
fn every_poll_has_the_value_and_what_is_around_it_has_not() {
    let future = REQUEST.scope_future(7, async {
        let before = here();
        pause().await;
        let submitted = task::new(here);
        pause().await;
        (before, here(), submitted)
    });
    let mut future = Box::pin(future);
    assert!(poll(future.as_mut()).is_pending());
    assert_eq!(here(), (None, None));
    // Another thread makes the second poll, and has a value of its own.
    let mut future = std::thread::spawn(move || {
        REQUEST.scope(1, || {
            USER.scope(2, || {
                assert!(poll(future.as_mut()).is_pending());
                assert_eq!(here(), (Some(1), Some(2)));
            });
        });
        future
    })
    .join()
    .unwrap();
    let Poll::Ready((before, after, (task, handle))) = poll(future.as_mut()) else {
        panic!("it is ready at the third poll");
    };
    assert_eq!((before, after), ((Some(7), None), (Some(7), None)));
    drop(task.run());
    // It was made in the second poll, with what was there.
    assert_eq!(handle.join().unwrap(), (Some(7), Some(2)));
}

#[test]
fn scopes_of_futures_nest_and_the_inner_value_counts() {
    let inner = REQUEST.scope_future(2, async {
        pause().await;
        here()
    });
    let outer = USER.scope_future(5, REQUEST.scope_future(1, async { (inner.await, here()) }));
    let mut outer = pin!(outer);
    assert!(poll(outer.as_mut()).is_pending());
    let found = poll(outer.as_mut());
    assert_eq!(found, Poll::Ready(((Some(2), Some(5)), (Some(1), Some(5)))));
    assert_eq!(here(), (None, None));
}

/// Says what it sees when it is dropped.
struct Sees(Arc<Mutex<Vec<Option<u32>>>>);

impl Drop for Sees {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(here().0);
    }
}

#[test]
fn destructors_of_the_future_have_the_value_however_it_ends() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let future = |ends: &'static str| {
        let sees = Sees(Arc::clone(&seen));
        REQUEST.scope_future(7, async move {
            let _sees = sees;
            pause().await;
            assert_ne!(ends, "panics");
        })
    };
    {
        let mut dropped = pin!(future("is dropped"));
        assert!(poll(dropped.as_mut()).is_pending());
    }
    {
        let mut ready = pin!(future("is ready"));
        assert!(poll(ready.as_mut()).is_pending() && poll(ready.as_mut()).is_ready());
    }
    {
        let mut panics = pin!(future("panics"));
        assert!(poll(panics.as_mut()).is_pending());
        let caught = catch_unwind(AssertUnwindSafe(|| poll(panics.as_mut())));
        assert!(caught.is_err());
        assert_eq!(here(), (None, None));
    }
    assert_eq!(*seen.lock().unwrap(), [Some(7); 3]);
    let never = future("is never polled");
    drop(never);
    assert_eq!(seen.lock().unwrap().len(), 4, "nothing is leaked");
}

#[test]
fn polls_in_the_same_surroundings_make_one_list() {
    let value = Arc::new(7);
    let future = REQUEST.scope_future(Arc::clone(&value), async {
        for _ in 0..100 {
            pause().await;
        }
    });
    let mut future = pin!(future);
    for _ in 0..50 {
        assert!(poll(future.as_mut()).is_pending());
        assert_eq!(
            Arc::strong_count(&value),
            3,
            "here, in the scope, in its list"
        );
    }
}

#[test]
fn a_description_has_values_beside_those_that_are_inherited() {
    let pool = preset::single("mill").build().unwrap();
    let found = USER.scope(5, || {
        let spec = TaskSpec::new().local(&REQUEST, 1).local(&REQUEST, 2);
        let own = pool.clone();
        pool.submit_with(spec, move || {
            (here(), own.submit(here).unwrap().join().unwrap())
        })
    });
    let all = (Some(2), Some(5));
    assert_eq!(found.unwrap().join().unwrap(), (all, all));
    assert_eq!(here(), (None, None));
    pool.close().unwrap();
}
