//! Links that have fired and wait for their turn, and the loop that serves them. Invariants are in the [module](super).

use super::cell::{Header, Link};
use super::complete;
use crate::catch_panic;
use crate::sync::local;
use core::cell::Cell;
use core::fmt;
use core::ptr::{self, NonNull};

/// How many loops may be nested on a thread.
const MAX_NESTED: u32 = 32;

local! {
    static NESTED: Cell<u32> = Cell::new(0);
}

local! {
    /// Links that were left to the outermost loop.
    static LEFT_OVER: Cell<*const Link> = Cell::new(ptr::null());
}

local! {
    static INNERMOST: Cell<*const Frame> = Cell::new(ptr::null());
}

/// What a loop, or a body that runs elsewhere, is at.
struct Frame {
    cell: Cell<usize>,
    outer: *const Frame,
}

/// Links whose sources are complete. Dropping it serves them.
#[must_use = "the cells that depend on a completed one are completed when this drops"]
pub struct Queue {
    first: *const Link,
}

// SAFETY: PROMISE-4 - it owns its links, and they lead to bodies, which may be sent.
unsafe impl Send for Queue {}

impl Queue {
    /// An empty queue.
    #[inline]
    pub const fn new() -> Self {
        Queue { first: ptr::null() }
    }

    /// Whether there is nothing to do.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Puts a link in front.
    ///
    /// # Safety
    ///
    /// PROMISE-4: the link is the caller's.
    #[inline]
    pub(super) unsafe fn push(&mut self, link: NonNull<Link>) {
        // SAFETY: PROMISE-4 - by contract.
        unsafe { complete::set_next(link, self.first) };
        self.first = link.as_ptr();
    }

    /// Puts a list in front, which has its newest link first: the oldest will be the first.
    ///
    /// # Safety
    ///
    /// PROMISE-4: the list is the caller's.
    #[inline]
    pub(super) unsafe fn push_list(&mut self, newest: *const Link) {
        let mut rest = NonNull::new(newest.cast_mut());
        while let Some(link) = rest {
            // SAFETY: PROMISE-4 - by contract.
            rest = NonNull::new(unsafe { complete::next(link) }.cast_mut());
            // SAFETY: PROMISE-4 - by contract.
            unsafe { self.push(link) };
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<NonNull<Link>> {
        let link = NonNull::new(self.first.cast_mut())?;
        // SAFETY: PROMISE-4 - it is in this queue.
        self.first = unsafe { complete::next(link) };
        Some(link)
    }

    /// Fires all links, and those of the cells that are completed by that. On a thread that is many such loops deep it
    /// leaves them to the outermost.
    #[inline]
    pub fn run(self) {
        drop(self);
    }

    #[inline]
    fn serve(&mut self) {
        // A thread that is being torn down has no count.
        let nested = NESTED.try_with(Cell::get).unwrap_or(0);
        if nested >= MAX_NESTED {
            return self.leave_over();
        }
        let _ = NESTED.try_with(|own| own.set(nested + 1));
        catch_panic::or_abort("the dependents of a promise were completed", || {
            self.fire_all();
            if nested == 0 {
                while let Some(mut more) = left_over() {
                    more.fire_all();
                }
            }
        });
        let _ = NESTED.try_with(|own| own.set(nested));
    }

    fn fire_all(&mut self) {
        framed(0, |frame| {
            while let Some(link) = self.pop() {
                // SAFETY: PROMISE-1 - a link has a reference to its cell.
                frame.cell.set(unsafe { link.as_ref() }.owner.addr().get());
                // SAFETY: PROMISE-4 - it was in this queue, so a source of it is complete.
                unsafe { complete::fire(link, self) };
            }
        });
    }

    #[cold]
    fn leave_over(&mut self) {
        while let Some(link) = self.pop() {
            let _ = LEFT_OVER.try_with(|list| {
                // SAFETY: PROMISE-4 - it was in this queue.
                unsafe { complete::set_next(link, list.get()) };
                list.set(link.as_ptr());
            });
        }
    }
}

fn left_over() -> Option<Queue> {
    let newest = LEFT_OVER.try_with(|list| list.replace(ptr::null())).ok()?;
    if newest.is_null() {
        return None;
    }
    let mut queue = Queue::new();
    // SAFETY: PROMISE-4 - the list was taken.
    unsafe { queue.push_list(newest) };
    Some(queue)
}

/// Fires the links that inner loops have left to the outermost one of this thread. A thread that is about to wait calls it:
/// it may wait for one of them.
///
/// ```
/// millpond_raw::promise::run_left_over(); // nothing, outside of such a loop
/// ```
#[inline]
pub fn run_left_over() {
    while let Some(mut queue) = left_over() {
        catch_panic::or_abort("the dependents of a promise were completed", || {
            queue.fire_all()
        });
    }
}

fn framed<R>(cell: usize, f: impl FnOnce(&Frame) -> R) -> R {
    struct Restore(*const Frame);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = INNERMOST.try_with(|innermost| innermost.set(self.0));
        }
    }

    let outer = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    let frame = Frame {
        cell: Cell::new(cell),
        outer,
    };
    let _ = INNERMOST.try_with(|innermost| innermost.set(&raw const frame));
    let _restore = Restore(outer);
    f(&frame)
}

/// Runs `f` as the body of the cell at this address, which is not run by a loop but by a task, say.
///
/// ```
/// use millpond_raw::promise;
///
/// let mut seen = Vec::new();
/// promise::enter(7, || promise::running(|cell| seen.push(cell)));
/// assert_eq!(seen, [7]);
/// ```
pub fn enter<R>(cell: usize, f: impl FnOnce() -> R) -> R {
    framed(cell, |_| f())
}

/// Shows the addresses of all cells whose bodies this thread runs, the innermost first.
pub fn running(mut see: impl FnMut(usize)) {
    let mut next = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    while !next.is_null() {
        // SAFETY: PROMISE-6 - a frame of this thread, which is above on its stack.
        let frame = unsafe { &*next };
        if frame.cell.get() != 0 {
            see(frame.cell.get());
        }
        next = frame.outer;
    }
}

impl Drop for Queue {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            self.serve();
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Queue::new()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("is_empty", &self.is_empty())
            .finish()
    }
}

/// The address of a cell, as [`running`] shows it.
pub(super) fn address(cell: NonNull<Header>) -> usize {
    cell.addr().get()
}
