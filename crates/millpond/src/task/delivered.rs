//! Callbacks after the outcome of a task is delivered.
//!
//! A scheduled pool on a foreign executor terminates after its last task has ended, and a task has ended when its handle
//! has the outcome, its waiters are woken, and an unwanted value is dropped. All of that happens after the body has
//! returned, on the thread that runs it. So a body cannot release by itself what keeps the pool from terminating: it
//! registers a [`Delivered`] callback ([`when_delivered`]), and the thread that runs the task calls it afterwards
//! ([`notify_delivered`]).
//!
//! ```text
//!   run:   [ body .... when_delivered ]  outcome -> handle   waiters woken   notify_delivered
//!                            |                                                    ^
//!                            +------------- kept for the task by its thread ------+
//! ```
//!
//! - **DELIVERED-1** A callback is kept for one task, identified by the address of its token. The cell lives until all
//!   user code has returned that the delivery runs, so a task that such code runs on the same thread has another
//!   address, and does not find the callback.
//!
//! Other tasks pay for one look at a thread-local flag.

use super::blocked_joins::address;
use millpond_raw::catch_panic;
use millpond_raw::sync::local;
use millpond_raw::task::current;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A callback for the end of a task, on the thread that runs it.
pub(crate) trait Delivered {
    /// The outcome is delivered.
    fn delivered(self: Arc<Self>);
}

type Registered = (usize, Arc<dyn Delivered>);

local! {
    /// Whether `KEPT` is not empty.
    static IS_ANY: Cell<bool> = Cell::new(false);
}

local! {
    static KEPT: RefCell<Vec<Registered>> = RefCell::new(Vec::new());
}

/// Calls it when the outcome of the innermost task on this thread is delivered; at once if there is none.
pub(crate) fn when_delivered(call: Arc<dyn Delivered>) {
    let mut task = None;
    current::bodies(|token| task = task.or(Some(address(token))));
    let Some(task) = task else {
        return call.delivered();
    };
    let mut call = Some(call);
    let _ = KEPT.try_with(|kept| {
        kept.borrow_mut()
            .extend(call.take().map(|call| (task, call)));
        IS_ANY.with(|is_any| is_any.set(true));
    });
    // A thread that is being torn down cannot keep it.
    if let Some(call) = call {
        call.delivered();
    }
}

/// The task with the token at this address has been run here, and its outcome is delivered.
#[inline(always)]
pub(super) fn notify_delivered(task: usize) {
    if IS_ANY.try_with(Cell::get).unwrap_or(false) {
        call_kept(task);
    }
}

#[cold]
fn call_kept(task: usize) {
    let own = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let place = kept.iter().rposition(|(other, _)| *other == task)?;
        let (_, own) = kept.swap_remove(place);
        IS_ANY.with(|is_any| is_any.set(!kept.is_empty()));
        Some(own)
    });
    if let Ok(Some(own)) = own {
        // It may terminate a pool, which calls a listener of the user's.
        let _ = catch_panic::call(|| own.delivered());
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::task::{self, TaskHandle};
    use millpond_raw::sync::Mutex;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Wake, Waker};

    /// Writes down what happens, in its order.
    #[derive(Clone, Default)]
    struct Diary(Arc<Mutex<Vec<&'static str>>>);

    impl Diary {
        fn note(&self, what: &'static str) {
            self.0.lock().push(what);
        }

        fn words(&self) -> Vec<&'static str> {
            self.0.lock().clone()
        }
    }

    struct Notes(Diary, &'static str);

    impl Delivered for Notes {
        fn delivered(self: Arc<Self>) {
            self.0.note(self.1);
        }
    }

    impl Wake for Notes {
        fn wake(self: Arc<Self>) {
            self.0.note(self.1);
            // A task that is run in here finds nothing of the one around it.
            let (inner, _handle) = task::new(|| ());
            let _ = inner.run();
        }
    }

    struct NotesDrop(Diary);

    impl Drop for NotesDrop {
        fn drop(&mut self) {
            self.0.note("value dropped");
            let (inner, _handle) = task::new(|| ());
            let _ = inner.run();
        }
    }

    fn noting(diary: &Diary) -> Arc<Notes> {
        Arc::new(Notes(diary.clone(), "delivered"))
    }

    fn poll_once<T>(handle: &mut TaskHandle<T>, diary: &Diary) {
        let waker = Waker::from(Arc::new(Notes(diary.clone(), "woken")));
        let polled = Pin::new(handle).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }

    #[test]
    fn it_is_called_after_the_waiters_are_woken() {
        let diary = Diary::default();
        let body = diary.clone();
        let (task, mut handle) = task::new(move || {
            when_delivered(noting(&body));
            body.note("body");
        });
        poll_once(&mut handle, &diary);
        let _ = task.run();
        assert_eq!(diary.words(), ["body", "woken", "delivered"]);
        assert!(handle.is_finished());
    }

    #[test]
    fn it_is_called_after_a_value_that_nobody_wants_is_dropped() {
        let diary = Diary::default();
        let (body, cell) = (
            diary.clone(),
            Arc::new(Mutex::new(None::<TaskHandle<NotesDrop>>)),
        );
        let own = Arc::clone(&cell);
        let (task, handle) = task::new(move || {
            when_delivered(noting(&body));
            let handle = own.lock().take();
            handle.unwrap().cancel();
            NotesDrop(body)
        });
        *cell.lock() = Some(handle);
        let _ = task.run();
        assert_eq!(diary.words(), ["value dropped", "delivered"]);
    }

    #[test]
    fn it_is_called_if_the_body_panics_or_is_run_inline_and_at_once_outside_of_tasks() {
        let diary = Diary::default();
        when_delivered(noting(&diary));
        assert_eq!(diary.words().len(), 1);
        let body = diary.clone();
        let (task, handle) = task::new(move || {
            when_delivered(noting(&body));
            panic!("the dam broke");
        });
        let _ = task.run();
        assert_eq!(diary.words().len(), 2);
        assert!(handle.join().unwrap_err().is_panicked());
        let body = diary.clone();
        let (task, handle) = task::new(move || when_delivered(noting(&body)));
        handle.run_or_join().unwrap();
        assert_eq!(diary.words().len(), 3);
        drop(task);
        assert!(!IS_ANY.get());
    }
}
