//! The guard of one rule: no user code under our locks, and none on the timer's thread.
//!
//! # The rule
//!
//! *User code* is whatever a program gives us to call or to drop: closures, futures and their wakers,
//! destructors of values, hooks, listeners, rejection handlers, thread factories, comparators, queues and
//! executors of its own. It may take any time, panic, wait, and call us again.
//!
//! - **G1** It never runs while the thread holds a [`Mutex`](crate::sync::Mutex) of ours. A destructor that
//!   submits a task would wait for the lock under which it runs, and everybody else behind it.
//! - **G2** It never runs on a timer's thread, which serves the whole process: slow code there makes the timers
//!   of everybody late. Waking is excepted, see below.
//!
//! # How it is checked
//!
//! In test builds (feature `user-code-guard` and debug assertions; the test targets of the workspace turn it on)
//! each lock notes per thread where it was taken, and every call into user code passes
//! a check. [`quiet`](crate::quiet) has one in each of its doors, the task cell around bodies and destructors,
//! and a call that goes round them, or that may come from the timer, calls [`check`] itself. So each test of the
//! workspace is a test of the rule, whatever else it is about. Values, hooks and queues of the test kit check from
//! the inside, which finds calls that pass no door. In all other builds this is no code at all.
//!
//! Only the mark of a timer's thread is there in every build ([`timer_thread`]), and it is the only one: whoever has
//! to do something elsewhere because of G2 asks for it ([`is_timer_thread`]), and the check looks at the same.
//!
//! A violation prints what was called, which locks are held and where they were taken, and a backtrace, and then
//! **aborts the process**. A panic would be of no use: containing the panics of user code is just what the
//! surrounding code does. With `MILLPOND_USER_CODE=report` it prints and goes on, for a list of all there are.
//!
//! # What is excepted
//!
//! From G1, each through a door of its own that is easy to find:
//!
//! - *Comparators of a queue, and `Hash` and `Eq` of keys*, under the locks of the very map or heap: it cannot
//!   compare otherwise, and its documentation says so ([`under_own_locks`]).
//! - *Predicates and visitors* that a caller lends for one call: they run under the locks of the queue that they
//!   look at, which is documented, and under those that their caller holds, which it knows ([`except_locks`]).
//! - *Wakers of threads that wait in the pool's own queue*, its workers and its submitters, and under the stop of a
//!   worker: those are our parkers ([`crate::park`]) and nobody's code ([`except_locks`]).
//!
//! From G2:
//!
//! - *Waking, and dropping wakers*: that is what a timer is for. Wakers are made to be called anywhere and to return
//!   at once.
//! - *`Executor::try_execute`*: it is made for the timer, and promises neither to wait nor to run anything.
//!
//! Not checked at all is the cloning of wakers; the lists of waiters clone outside their locks (W2 of
//! [`waits`](crate::waits)).
//!
//! # A call into user code
//!
//! ```
//! use millpond_raw::sync::Mutex;
//! use millpond_raw::user_code::{self, Kind};
//!
//! fn tell(listener: &dyn Fn(u32), state: &Mutex<u32>) {
//!     let seen = *state.lock(); // The guard is gone at the end of this line.
//!     user_code::check(Kind::Listener);
//!     listener(seen);
//! }
//!
//! tell(&|seen| assert_eq!(seen, 7), &Mutex::new(7));
//! ```

use crate::sync::local;
use core::cell::Cell;
use core::marker::PhantomData;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The body of a task, or any other closure.
    Closure,
    /// The destructor of a value, of a closure, of a panic's payload.
    Destructor,
    /// What may panic and is contained by [`quiet::call`](crate::quiet::call): perhaps code of ours that calls
    /// user code somewhere below, and so not checked for G2.
    Contained,
    /// A future's `poll`.
    Future,
    /// A waker is called or dropped.
    Waker,
    /// A pool's hooks.
    Hook,
    /// What is told of events.
    Listener,
    /// What decides about refused tasks.
    Handler,
    /// What starts threads.
    Factory,
    /// An executor, perhaps of the user's own.
    Executor,
    /// A queue of the user's own.
    Queue,
    /// A comparator, a predicate or a visitor.
    Comparator,
    /// A wait. Not user code, but nobody waits under a lock; the timer's thread does, for its next alarm.
    Wait,
}

pub use imp::{check, except_locks, under_own_locks};
pub(crate) use imp::{locked, unlocked};

local! {
    static IS_TIMER: Cell<bool> = Cell::new(false);
}

/// The present thread is a timer's until this is dropped (G2).
#[derive(Debug)]
#[must_use = "the thread is a timer's only as long as this is there"]
pub struct TimerThread(PhantomData<*const ()>);

/// Marks the present thread as a timer's.
///
/// ```
/// use millpond_raw::user_code;
///
/// let mark = user_code::timer_thread();
/// assert!(user_code::is_timer_thread());
/// drop(mark);
/// assert!(!user_code::is_timer_thread());
/// ```
pub fn timer_thread() -> TimerThread {
    let _ = IS_TIMER.try_with(|is_timer| is_timer.set(true));
    TimerThread(PhantomData)
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        let _ = IS_TIMER.try_with(|is_timer| is_timer.set(false));
    }
}

/// Whether the present thread is a [timer's](timer_thread).
#[inline]
pub fn is_timer_thread() -> bool {
    IS_TIMER.try_with(Cell::get).unwrap_or(false)
}

#[cfg(not(all(feature = "user-code-guard", debug_assertions, not(millpond_loom))))]
mod imp {
    use super::Kind;

    /// Nothing, in this build.
    #[inline(always)]
    pub fn check(_kind: Kind) {}

    /// Calls `f`.
    #[inline(always)]
    pub fn under_own_locks<R>(_most: usize, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Calls `f`.
    #[inline(always)]
    pub fn except_locks<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    pub(crate) fn locked(_lock: *const ()) {}

    #[inline(always)]
    pub(crate) fn unlocked(_lock: *const ()) {}
}

#[cfg(all(feature = "user-code-guard", debug_assertions, not(millpond_loom)))]
mod imp {
    #![allow(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "the guard watches the seam, so it stands below it"
    )]

    use super::{Kind, is_timer_thread};
    use crate::sync::local;
    use core::cell::RefCell;
    use core::panic::Location;
    use std::fmt::Write as _;
    use std::io::Write as _;

    type Site = &'static Location<'static>;

    /// The locks that a thread holds, in the order in which they were taken.
    struct Held {
        locks: [Option<(*const (), Site)>; Held::MOST],
        len: usize,
        /// How many more than there is room for.
        more: usize,
        /// How many of them do not count at present.
        excepted: usize,
    }

    impl Held {
        /// An array, so that noting a lock allocates nothing: there are tests that count.
        const MOST: usize = 16;

        const fn new() -> Self {
            Held {
                locks: [None; Held::MOST],
                len: 0,
                more: 0,
                excepted: 0,
            }
        }

        fn push(&mut self, lock: *const (), site: Site) {
            match self.locks.get_mut(self.len) {
                Some(place) => {
                    *place = Some((lock, site));
                    self.len += 1;
                }
                None => self.more += 1,
            }
        }

        /// Locks are mostly, not always, released in reverse order.
        fn remove(&mut self, lock: *const ()) {
            let is_it = |held: &Option<(*const (), Site)>| held.is_some_and(|(it, _)| it == lock);
            match self.locks[..self.len].iter().rposition(is_it) {
                Some(place) => {
                    self.locks.copy_within(place + 1..self.len, place);
                    self.len -= 1;
                    if place < self.excepted {
                        self.excepted -= 1;
                    }
                }
                None => self.more = self.more.saturating_sub(1),
            }
        }

        fn sites(&self) -> impl Iterator<Item = Site> {
            let counted = &self.locks[self.excepted..self.len];
            counted.iter().flatten().map(|(_, site)| *site)
        }
    }

    local! {
        static HELD: RefCell<Held> = RefCell::new(Held::new());
    }

    #[track_caller]
    pub(crate) fn locked(lock: *const ()) {
        let site = Location::caller();
        let _ = HELD.try_with(|held| held.borrow_mut().push(lock, site));
    }

    pub(crate) fn unlocked(lock: *const ()) {
        let _ = HELD.try_with(|held| held.borrow_mut().remove(lock));
    }

    /// Whether it may be called on the timer's thread.
    fn is_for_timer(kind: Kind) -> bool {
        matches!(kind, Kind::Waker | Kind::Wait | Kind::Contained)
    }

    /// Asserts that user code may be called here and now (G1, G2).
    #[inline]
    #[track_caller]
    pub fn check(kind: Kind) {
        let is_locked = HELD.try_with(|held| {
            let held = held.borrow();
            held.len > held.excepted
        });
        let is_timer = is_timer_thread() && !is_for_timer(kind);
        if is_timer || is_locked.unwrap_or(false) {
            violated(kind, is_timer, Location::caller());
        }
    }

    /// Calls a comparator, which runs under the locks of what it sorts: at most `most`. What is called in there is
    /// checked against further locks only.
    ///
    /// Asserts that no more locks are held, and that this is not the timer's thread.
    #[track_caller]
    pub fn under_own_locks<R>(most: usize, f: impl FnOnce() -> R) -> R {
        let _restore = Restore::except(most);
        check(Kind::Comparator);
        f()
    }

    /// Calls `f`, in which no lock counts that is held now. Who calls this says why.
    pub fn except_locks<R>(f: impl FnOnce() -> R) -> R {
        let _restore = Restore::except(Held::MOST);
        f()
    }

    struct Restore(Option<usize>);

    impl Restore {
        fn except(most: usize) -> Self {
            let before = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                let excepted = held.len.min(held.excepted + most);
                core::mem::replace(&mut held.excepted, excepted)
            });
            Restore(before.ok())
        }
    }

    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(before) = self.0 {
                let _ = HELD.try_with(|held| {
                    let mut held = held.borrow_mut();
                    held.excepted = before.min(held.len);
                });
            }
        }
    }

    #[cold]
    fn violated(kind: Kind, is_timer: bool, at: Site) {
        let mut text = format!("\nmillpond: user code ({kind:?}) is called at {at}");
        if is_timer {
            text.push_str("\n  on the timer's thread");
        }
        let _ = HELD.try_with(|held| {
            for site in held.borrow().sites() {
                let _ = write!(text, "\n  under the lock that was taken at {site}");
            }
        });
        let goes_on = std::env::var_os("MILLPOND_USER_CODE").is_some_and(|what| what == "report");
        let thread = std::thread::current();
        let _ = write!(
            text,
            "\n  in thread `{}`; see `millpond_raw::user_code` for the rule\n{}\n",
            thread.name().unwrap_or("without a name"),
            std::backtrace::Backtrace::force_capture(),
        );
        // Not `eprint!`, which the test harness keeps to itself and loses when the process aborts.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        if !goes_on {
            std::process::abort();
        }
    }
}
