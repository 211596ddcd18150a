//! The block of an operating-system thread: one futex word.
//!
//! ```text
//!              wake                          park: CAS
//!   EMPTY ------------> TOKEN       EMPTY --------------> PARKED
//!     ^                   |                                  |
//!     +-- park: CAS ------+             wake: TOKEN, and a system call
//! ```
//!
//! # Invariants
//!
//! - **PARK-1** Only the strand itself moves the word to PARKED or EMPTY; a waker only moves it to TOKEN.
//!   Hence a token stays until the strand takes it.
//! - **PARK-2** A waker enters the kernel only if it replaced PARKED: waking a strand that is awake
//!   costs one swap.
//! - **PARK-3** The strand sleeps only while the word is PARKED, and a waker changes the word before it
//!   wakes; the futex compares and sleeps in one step, so no wake-up is lost.
//!
//! # Orderings
//!
//! - `[P-tok]` A wake releases, the park that takes its token acquires: rule 4 of the token rule.

use super::{Block, Woken};
use crate::sync::atomic::Ordering;
use crate::sync::{Futex, chaos};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const PARKED: u32 = 2;

/// Parks an operating-system thread on a futex.
///
/// ```
/// use millpond_raw::park::{Block, ThreadBlock};
///
/// let block = ThreadBlock::new();
/// block.unpark();
/// // The token is there, so this does not sleep.
/// let _ = block.park(None);
/// ```
#[derive(Debug)]
pub struct ThreadBlock {
    word: Futex,
}

impl ThreadBlock {
    /// A block without a token.
    pub fn new() -> Self {
        ThreadBlock {
            word: Futex::new(EMPTY),
        }
    }

    /// Leaves a token, and wakes the strand if it sleeps.
    pub fn unpark(&self) {
        chaos::point("park.unpark");
        // [P-tok]
        let before = self.word.swap(TOKEN, Ordering::Release);
        if before == PARKED {
            self.word.wake_one();
        }
    }

    /// Takes the token, if there is one: a park would return at once. Called only by the strand itself, like `park`.
    ///
    /// ```
    /// use millpond_raw::park::ThreadBlock;
    ///
    /// let block = ThreadBlock::new();
    /// block.unpark();
    /// assert!(block.take_token() && !block.take_token());
    /// ```
    pub fn take_token(&self) -> bool {
        self.word
            // [P-tok]
            .compare_exchange(TOKEN, EMPTY, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

impl Default for ThreadBlock {
    fn default() -> Self {
        Self::new()
    }
}

impl Block for ThreadBlock {
    fn park(&self, deadline: Option<Instant>) -> Woken {
        // PARK-1: if the CAS fails the word is TOKEN, and stays so until we take it.
        let parked = self
            .word
            .compare_exchange(EMPTY, PARKED, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if !parked {
            let taken = self.take_token();
            debug_assert!(taken, "PARK-1: only the strand takes its token");
            return Woken::Maybe;
        }
        chaos::point("park.announced");
        loop {
            let woken = self.word.wait(PARKED, deadline);
            if self.take_token() {
                return Woken::Maybe;
            }
            if woken == Woken::TimedOut {
                return self.leave();
            }
        }
    }

    fn waker(self: Arc<Self>) -> Waker {
        Waker::from(self)
    }
}

impl ThreadBlock {
    /// Unparks at the deadline; a token that comes at the last moment is taken.
    fn leave(&self) -> Woken {
        let left = self
            .word
            .compare_exchange(PARKED, EMPTY, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if left {
            return Woken::TimedOut;
        }
        let taken = self.take_token();
        debug_assert!(taken, "PARK-1: the word was not PARKED, so it is TOKEN");
        Woken::Maybe
    }
}

impl Wake for ThreadBlock {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the block is below the clock")]

    use super::*;
    use std::time::Duration;

    #[test]
    fn a_token_left_before_the_park_is_taken_at_once() {
        let block = ThreadBlock::new();
        block.unpark();
        assert_eq!(block.park(None), Woken::Maybe);
    }

    #[test]
    fn two_wakes_leave_one_token() {
        let block = ThreadBlock::new();
        block.unpark();
        block.unpark();
        assert_eq!(block.park(None), Woken::Maybe);
        assert_eq!(block.park(Some(Instant::now())), Woken::TimedOut);
    }

    #[test]
    fn a_park_that_times_out_leaves_nothing_behind() {
        let block = ThreadBlock::new();
        let deadline = Instant::now() + Duration::from_millis(2);
        assert_eq!(block.park(Some(deadline)), Woken::TimedOut);
        block.unpark();
        assert_eq!(block.park(None), Woken::Maybe);
    }

    #[test]
    fn a_wake_reaches_a_thread_that_sleeps() {
        let block = Arc::new(ThreadBlock::new());
        let waker = Arc::clone(&block).waker();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake_by_ref());
            assert_eq!(block.park(None), Woken::Maybe);
        });
    }
}
