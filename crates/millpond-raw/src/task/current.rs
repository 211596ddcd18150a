//! Which task the present thread runs: the token that blocking calls obey.
//!
//! # Invariants
//!
//! - **N1** The pointer is null or points to a token that is borrowed by a running [`enter`], which
//!   puts the former pointer back before its borrow ends, also when it unwinds.
//! - **N2** It is read on its own thread only, and no reference made from it outlives the closure
//!   that is given it.

use super::Token;
use crate::sync::local;
use core::cell::Cell;
use core::ptr;

local! {
    static CURRENT: Cell<*const Token> = Cell::new(ptr::null());
}

/// Runs `f` with `token` as the current one.
pub(super) fn enter<R>(token: &Token, f: impl FnOnce() -> R) -> R {
    struct Restore(*const Token);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.set(self.0));
        }
    }

    // In a thread that is being torn down there is nowhere to note it: the task runs without.
    let _restore = CURRENT
        .try_with(|current| current.replace(ptr::from_ref(token)))
        .ok()
        .map(Restore);
    f()
}

/// Calls `f` with the token of the task that the present thread runs, if it runs one.
///
/// A task that runs another one in place obeys the inner one's token meanwhile.
#[inline]
pub fn with_current_token<R>(f: impl FnOnce(Option<&Token>) -> R) -> R {
    let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: N1 - null, or borrowed by an `enter` further down this stack; N2 - `f` cannot keep it.
    f(unsafe { current.as_ref() })
}
