//! Who asks a rejection handler, so that a handler is not asked about what it brings itself.
//!
//! A handler may bring a task to its own pool: the same one again, for there may be room by now, or another
//! one, with a line for a log. If that is refused, too, and the handler is asked again, it does so again,
//! until the stack is gone. So a refusal inside a handler of the same pool gives the task back.
//!
//! A handler may also run the task, and what runs then is no longer the handler: if the body brings tasks that
//! are refused, the handler is asked about those as about any other.

use super::engine::Engine;
use millpond_raw::sync::local;
use millpond_raw::task::current;
use std::cell::RefCell;
use std::sync::Arc;

local! {
    /// The handlers that this thread is in, the innermost last: of which engine, and inside which body.
    static ASKED: RefCell<Vec<(usize, Option<usize>)>> = RefCell::new(Vec::new());
}

/// Being in the handler of a pool; it is left when this drops.
pub(super) struct Asked;

impl Asked {
    /// `None` if it is this pool's handler that brings the task.
    pub(super) fn enter(engine: &Arc<Engine>) -> Option<Self> {
        let own = (Arc::as_ptr(engine).addr(), body_here());
        let entered = ASKED.try_with(|asked| {
            let mut asked = asked.borrow_mut();
            let is_new = !asked.contains(&own);
            if is_new {
                asked.push(own);
            }
            is_new
        });
        // In a thread that is being torn down nobody knows; so the task goes back.
        entered.unwrap_or(false).then(|| Asked)
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
