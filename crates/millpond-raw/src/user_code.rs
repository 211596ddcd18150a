//! The guard of one rule: no user code under our locks, on the timer's thread, or while others count on a thread.
//!
//! # The rule
//!
//! *User code* is whatever a program gives us to call or to drop: closures, futures and their wakers,
//! destructors of values, hooks, listeners, rejection handlers, thread factories, comparators, its own queues
//! and executors. It may take any time, panic, wait, and call us again.
//!
//! - **USERCODE-1** It never runs while the thread holds a [`Mutex`](crate::sync::Mutex) of ours. A
//!   destructor that submits a task would wait for the lock under which it runs, and all other threads behind
//!   it.
//! - **USERCODE-2** It never runs on a timer's thread, which serves the whole process: slow code there makes
//!   all timers late. Waking is excepted, see below.
//!
//! - **USERCODE-3** It never runs on a thread that counts as searching for a task: submitters wake nobody
//!   meanwhile, so the thread must not be held up ([`while_searching`]). Waking is excepted here, too.
//!
//! # How it is checked
//!
//! In test builds (feature `user-code-guard` and debug assertions; the test targets of the
//! workspace turn it on) each lock records per thread where it was taken, and every call into
//! user code is checked. [`catch_panic`](crate::catch_panic) checks in each of its functions, the task cell
//! around bodies and destructors, and any other call calls [`check`] itself. So each test of
//! the workspace tests the rule, whatever else it tests. Values, hooks and queues of the test
//! kit check from the inside, which finds unchecked calls. In all other builds this is no code
//! at all.
//!
//! Only the mark of a timer's thread exists in every build ([`mark_timer_thread`]): code that has to move work to
//! another thread because of USERCODE-2 asks for it ([`is_timer_thread`]), and so does the check.
//!
//! A violation prints what was called, which locks are held and where they were taken, and a backtrace, and
//! then **aborts the process**. A panic would be useless: the surrounding code contains the panics of user
//! code. With `MILLPOND_USER_CODE=report` it prints and goes on, to list all violations.
//!
//! # Exceptions
//!
//! To USERCODE-1, each through its own function, which makes them easy to find:
//!
//! - *Comparators of a queue, and `Hash` and `Eq` of keys*, under the locks of that very map or heap: there
//!   is no other way to compare, and it is documented ([`under_own_locks`]).
//! - *Predicates and visitors* that a caller lends for one call: they run under the locks of the queue that
//!   they look at, which is documented, and under those that their caller holds, which it knows
//!   ([`except_locks`]).
//! - *Wakers of threads that wait in the pool's own queue*, its workers and its submitters, and under the
//!   stop of a worker: those are our parkers ([`crate::park`]) and not user code ([`except_locks`]).
//!
//! To USERCODE-2:
//!
//! - *Waking, and dropping wakers*: that is what a timer is for. Wakers may be called anywhere and return at
//!   once.
//! - *`Executor::try_execute_task`*: it is made for the timer, and promises neither to wait nor to run anything.
//!
//! Cloning of wakers is not checked; the wait queues clone outside their locks (WAITQ-2 of
//! [`wait_queue`](crate::wait_queue)).
//!
//! # A call into user code
//!
//! ```
//! use millpond_raw::sync::Mutex;
//! use millpond_raw::user_code::{self, Kind};
//!
//! fn tell(listener: &dyn Fn(u32), state: &Mutex<u32>) {
//!     let seen = *state.lock(); // The guard is dropped at the end of this line.
//!     user_code::check(Kind::Listener);
//!     listener(seen);
//! }
//!
//! tell(&|seen| assert_eq!(seen, 7), &Mutex::new(7));
//! ```

use crate::sync::local;
use core::cell::Cell;
use core::marker::PhantomData;

/// The kind of user code that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The body of a task, or any other closure.
    Closure,
    /// The destructor of a value, of a closure, of a panic's payload.
    Destructor,
    /// A closure whose panics [`catch_panic::call`](crate::catch_panic::call) contains: perhaps our own
    /// code that calls user code further down, and so not checked for USERCODE-2.
    Contained,
    /// A future's `poll`.
    Future,
    /// Waking, or dropping a waker.
    Waker,
    /// A pool's hooks.
    Hook,
    /// A listener of events.
    Listener,
    /// A rejection handler.
    Handler,
    /// A thread factory.
    Factory,
    /// An executor, perhaps of the user's own.
    Executor,
    /// A queue of the user's own.
    Queue,
    /// A comparator, a predicate or a visitor.
    Comparator,
    /// A wait. Not user code, but no thread may wait under a lock; the timer's thread may, for its next
    /// alarm.
    Wait,
}

pub use imp::{check, except_locks, under_own_locks, while_searching};
pub(crate) use imp::{record_locked, record_unlocked};

local! {
    static IS_TIMER: Cell<bool> = Cell::new(false);
}

/// Marks the current thread as a timer's until it is dropped (USERCODE-2).
#[derive(Debug)]
#[must_use = "the mark is removed when this is dropped"]
pub struct TimerThread(PhantomData<*const ()>);

/// Marks the current thread as a timer's.
///
/// ```
/// use millpond_raw::user_code;
///
/// let mark = user_code::mark_timer_thread();
/// assert!(user_code::is_timer_thread());
/// drop(mark);
/// assert!(!user_code::is_timer_thread());
/// ```
pub fn mark_timer_thread() -> TimerThread {
    let _ = IS_TIMER.try_with(|is_timer| is_timer.set(true));
    TimerThread(PhantomData)
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        let _ = IS_TIMER.try_with(|is_timer| is_timer.set(false));
    }
}

/// Whether the current thread is a [timer's](mark_timer_thread).
#[inline]
pub fn is_timer_thread() -> bool {
    IS_TIMER.try_with(Cell::get).unwrap_or(false)
}

#[cfg(not(all(feature = "user-code-guard", debug_assertions, not(millpond_loom))))]
mod imp {
    use super::Kind;

    /// Does nothing in this build.
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

    /// Calls `f`.
    #[inline(always)]
    pub fn while_searching<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    pub(crate) fn record_locked(_lock: *const ()) {}

    #[inline(always)]
    pub(crate) fn record_unlocked(_lock: *const ()) {}
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
    use core::cell::{Cell, RefCell};
    use core::panic::Location;
    use std::fmt::Write as _;
    use std::io::Write as _;

    type Site = &'static Location<'static>;

    /// The locks that a thread holds, in the order in which they were taken.
    struct Held {
        locks: [Option<(*const (), Site)>; Held::MAX],
        len: usize,
        /// How many more there are than the array holds.
        more: usize,
        /// How many of them are excepted at present.
        excepted: usize,
    }

    impl Held {
        /// An array, so that recording a lock does not allocate: some tests count allocations.
        const MAX: usize = 16;

        const fn new() -> Self {
            Held {
                locks: [None; Held::MAX],
                len: 0,
                more: 0,
                excepted: 0,
            }
        }

        fn push(&mut self, lock: *const (), site: Site) {
            match self.locks.get_mut(self.len) {
                Some(entry) => {
                    *entry = Some((lock, site));
                    self.len += 1;
                }
                None => self.more += 1,
            }
        }

        /// Locks are mostly, not always, released in reverse order.
        fn remove(&mut self, lock: *const ()) {
            let is_same = |held: &Option<(*const (), Site)>| held.is_some_and(|(it, _)| it == lock);
            match self.locks[..self.len].iter().rposition(is_same) {
                Some(index) => {
                    self.locks.copy_within(index + 1..self.len, index);
                    self.len -= 1;
                    if index < self.excepted {
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
    pub(crate) fn record_locked(lock: *const ()) {
        let site = Location::caller();
        let _ = HELD.try_with(|held| held.borrow_mut().push(lock, site));
    }

    pub(crate) fn record_unlocked(lock: *const ()) {
        let _ = HELD.try_with(|held| held.borrow_mut().remove(lock));
    }

    /// Whether it may be called on the timer's thread.
    fn is_allowed_on_timer(kind: Kind) -> bool {
        matches!(kind, Kind::Waker | Kind::Wait | Kind::Contained)
    }

    /// Asserts that user code may be called here (USERCODE-1 to USERCODE-3).
    #[inline]
    #[track_caller]
    pub fn check(kind: Kind) {
        let is_locked = HELD.try_with(|held| {
            let held = held.borrow();
            held.len > held.excepted
        });
        let is_timer = is_timer_thread() && !is_allowed_on_timer(kind);
        let is_searching = IS_SEARCHING.try_with(Cell::get).unwrap_or(false);
        let is_relied_on = is_searching && !is_allowed_on_timer(kind);
        if is_timer || is_relied_on || is_locked.unwrap_or(false) {
            report_violation(kind, is_timer, Location::caller());
        }
    }

    local! {
        static IS_SEARCHING: Cell<bool> = Cell::new(false);
    }

    /// Calls `f`, in which the thread counts as searching (USERCODE-3).
    pub fn while_searching<R>(f: impl FnOnce() -> R) -> R {
        struct Unmark;

        impl Drop for Unmark {
            fn drop(&mut self) {
                let _ = IS_SEARCHING.try_with(|own| own.set(false));
            }
        }

        let _ = IS_SEARCHING.try_with(|own| own.set(true));
        let _unmark = Unmark;
        f()
    }

    /// Calls a comparator, which runs under the locks of the container that it serves: at most `most`. Calls
    /// inside are checked against further locks only.
    ///
    /// Asserts that no other lock is held, and that this is not the timer's thread.
    #[track_caller]
    pub fn under_own_locks<R>(most: usize, f: impl FnOnce() -> R) -> R {
        let _restore = Restore::except(most);
        check(Kind::Comparator);
        f()
    }

    /// Calls `f`; locks that are held now are excepted in it. The caller documents why.
    pub fn except_locks<R>(f: impl FnOnce() -> R) -> R {
        let _restore = Restore::except(Held::MAX);
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
    fn report_violation(kind: Kind, is_timer: bool, at: Site) {
        let mut text = format!("\nmillpond: user code ({kind:?}) is called at {at}");
        if is_timer {
            text.push_str("\n  on the timer's thread");
        }
        if IS_SEARCHING.try_with(Cell::get).unwrap_or(false) {
            text.push_str("\n  on a thread that counts as searching");
        }
        let _ = HELD.try_with(|held| {
            for site in held.borrow().sites() {
                let _ = write!(text, "\n  under the lock that was taken at {site}");
            }
        });
        let only_report =
            std::env::var_os("MILLPOND_USER_CODE").is_some_and(|what| what == "report");
        let thread = std::thread::current();
        let _ = write!(
            text,
            "\n  in thread `{}`; see `millpond_raw::user_code` for the rule\n{}\n",
            thread.name().unwrap_or("without a name"),
            std::backtrace::Backtrace::force_capture(),
        );
        // Not `eprint!`, which the test harness captures and loses when the process aborts.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        if !only_report {
            std::process::abort();
        }
    }
}
