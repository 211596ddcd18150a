//! Keeps a rejection handler from being called about what it submits itself.
//!
//! A handler may submit a task to its own pool: the same one again, for there may be room by now, or another one, that
//! writes a log. If that is rejected, too, and the handler is called again, it submits again, until the stack is gone. So a
//! rejection inside a handler of the same pool gives the task back. If it is the same task it is not counted again,
//! either: it is one task that was rejected.
//!
//! A handler may also run the task, and what runs then is no longer the handler: if the body submits tasks that are
//! rejected, the handler is called about those as about any other.

use crate::pool::engine::PoolEngine;
use crate::task::Task;
use millpond_raw::sync::local;
use millpond_raw::task::current;
use std::cell::RefCell;
use std::panic::Location;
use std::sync::Arc;

local! {
    /// The handlers that run on this thread, the innermost last.
    static ENTERED: RefCell<Vec<HandlerCall>> = RefCell::new(Vec::new());
}

/// A call of a handler.
struct HandlerCall {
    /// The address of the engine whose handler it is.
    engine: usize,
    /// The body inside of which it was called.
    body: Option<usize>,
    /// The task that it was called about: its address, and where it was made. A handler that drops the task and makes another
    /// may get the same memory for it, but makes it elsewhere.
    task: (usize, &'static Location<'static>),
}

/// Being in the handler of a pool, until this drops.
pub(super) struct HandlerScope;

/// Whether a handler may be called.
pub(super) enum Entry {
    Entered(HandlerScope),
    /// This pool's handler submits the task.
    Inside {
        /// Whether the task is the very one that it was called about.
        is_same_task: bool,
    },
}

impl HandlerScope {
    pub(super) fn enter(engine: &Arc<PoolEngine>, task: &Task) -> Entry {
        let own = HandlerCall {
            engine: Arc::as_ptr(engine).addr(),
            body: body_here(),
            task: (task.address(), task.location()),
        };
        let entered = ENTERED.try_with(|calls| {
            let mut calls = calls.borrow_mut();
            let is_own =
                |other: &&HandlerCall| (other.engine, other.body) == (own.engine, own.body);
            if let Some(outer) = calls.iter().find(is_own) {
                let is_same_task = outer.task == own.task;
                return Entry::Inside { is_same_task };
            }
            calls.push(own);
            Entry::Entered(HandlerScope)
        });
        // In a thread that is being torn down this is unknown; so the task goes back.
        entered.unwrap_or(Entry::Inside {
            is_same_task: false,
        })
    }
}

impl Drop for HandlerScope {
    fn drop(&mut self) {
        let _ = ENTERED.try_with(|calls| calls.borrow_mut().pop());
    }
}

/// The innermost body that runs on this thread.
fn body_here() -> Option<usize> {
    let mut innermost = None;
    current::bodies(|token| {
        innermost.get_or_insert(std::ptr::from_ref(token).addr());
    });
    innermost
}
