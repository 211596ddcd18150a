//! Who asks a rejection handler, so that a handler is not asked about what it brings itself.
//!
//! A handler may bring a task to its own pool: the same one again, for there may be room by now, or another
//! one, with a line for a log. If that is refused, too, and the handler is asked again, it does so again,
//! until the stack is gone. So a refusal inside a handler of the same pool gives the task back. If it is the
//! same task it is not counted again, either: it is one task that was refused.
//!
//! A handler may also run the task, and what runs then is no longer the handler: if the body brings tasks that
//! are refused, the handler is asked about those as about any other.

use super::engine::Engine;
use crate::task::Task;
use millpond_raw::sync::local;
use millpond_raw::task::current;
use std::cell::RefCell;
use std::panic::Location;
use std::sync::Arc;

local! {
    /// The handlers that this thread is in, the innermost last.
    static ASKED: RefCell<Vec<Question>> = RefCell::new(Vec::new());
}

/// What a handler is asked.
struct Question {
    /// The address of whose handler it is.
    engine: usize,
    /// Inside which body.
    body: Option<usize>,
    /// About which task: where it is, and where it was made. A handler that drops the task and makes another
    /// may get the same memory for it, but makes it elsewhere.
    task: (usize, &'static Location<'static>),
}

/// Being in the handler of a pool; it is left when this drops.
pub(super) struct Asked;

/// Whether a handler may be asked.
pub(super) enum Entry {
    Asked(Asked),
    /// It is this pool's handler that brings the task.
    Inside {
        /// Whether the task is the very one that it was asked about.
        is_same_task: bool,
    },
}

impl Asked {
    pub(super) fn enter(engine: &Arc<Engine>, task: &Task) -> Entry {
        let own = Question {
            engine: Arc::as_ptr(engine).addr(),
            body: body_here(),
            task: (task.address(), task.made_at()),
        };
        let entered = ASKED.try_with(|asked| {
            let mut asked = asked.borrow_mut();
            let is_own = |other: &&Question| (other.engine, other.body) == (own.engine, own.body);
            if let Some(outer) = asked.iter().find(is_own) {
                let is_same_task = outer.task == own.task;
                return Entry::Inside { is_same_task };
            }
            asked.push(own);
            Entry::Asked(Asked)
        });
        // In a thread that is being torn down nobody knows; so the task goes back.
        entered.unwrap_or(Entry::Inside {
            is_same_task: false,
        })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = ASKED.try_with(|asked| asked.borrow_mut().pop());
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
