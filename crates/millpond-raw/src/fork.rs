//! What holds in a process that was made by `fork()`.
//!
//! A child process has a copy of the memory and one thread. The threads that would run a task, wake a waiter
//! or release a lock are in the parent, so a wait for them in the child would last forever. Hence processes
//! have *generations*: the first one has generation 0, its child 1, and so on; whatever depends on threads
//! records its generation and compares.
//!
//! Process-wide locks (those of the depots of recycled memory, for one) are needed in the child as well. They
//! are acquired just before a fork and released just after it, in both processes; so no other thread holds
//! them when memory is copied.
//!
//! Only on Linux. Elsewhere every process has generation 0.
//!
//! # Invariants
//!
//! - **FORK-1** The handlers that `fork` calls are functions that live as long as the process, run on the
//!   forking thread, outside signal handlers, and touch nothing but statics (and, in the child, newly
//!   allocated memory: the allocator's own handlers were registered first, so it works by then).
//! - **FORK-2** The child of [`run_in_child`] ends there, by `_exit`: no frame or destructor of the parent
//!   runs twice.
//! - **FORK-3** Locks are listed once, in the order of registration, and stay listed. Before a fork the first
//!   `n` are acquired in that order; after it these are released. Two threads that fork at once are
//!   serialised by the first lock. All of them are statics of this workspace, a dozen, and the table holds
//!   more than twice as many. A lock that does not fit is a bug and panics in every build: left out, it would
//!   make a child hang now and then.
//! - **FORK-4** The child's first step, before it has another thread and before it releases a lock, is a new
//!   table of sleepers, where sleepers are in a table (the portable futex). Such a table is never freed.
//!
//! # Orderings
//!
//! - `[F-list]` Listing a lock releases it, walking the list acquires it: a pointer is published and
//!   followed, as in [`crate::once_box::AtomicStaticRef`], which has a model. This list has no model, because it is
//!   made of statics and `fork` walks it. The walk may miss a lock that is being listed during the fork. Such a lock
//!   has not been used before.

#![allow(
    clippy::disallowed_types,
    reason = "a static outlives every model, and what is here is for real processes only"
)]

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks this process is away from the one in which [`install_handlers`] was first called.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

pub use which::{install_handlers, register_lock};

#[cfg(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
mod which {
    use super::GENERATION;
    use crate::sync::{Mutex, RawLock};
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

    /// The locks are those of the depots of recycled memory, of the probe's registry and of the signal
    /// handler; and in the library those of the table of blocked joins, the free queue tags, the free
    /// schedules, the timer and its helper thread: 11 in all.
    pub(super) const MAX_LOCKS: usize = 32;

    const _: () = assert!(crate::recycle::DEPOTS + 7 <= MAX_LOCKS / 2);

    /// FORK-3.
    static LOCKS: [AtomicPtr<RawLock>; MAX_LOCKS] =
        [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_LOCKS];
    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    /// Installs the fork handlers, once. Whatever starts threads calls this.
    pub fn install_handlers() {
        static INSTALLED: AtomicBool = AtomicBool::new(false);
        if INSTALLED.load(Ordering::Relaxed) || INSTALLED.swap(true, Ordering::Relaxed) {
            return;
        }
        crate::recycle::register_fork_locks();
        #[cfg(any(test, feature = "probe"))]
        crate::park::probe::register_fork_locks();
        // SAFETY: FORK-1 - the handlers are functions of this module.
        let failed = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        // It fails for lack of memory only. Then a child cannot be told from its parent.
        debug_assert_eq!(failed, 0, "the fork handlers cannot be installed");
    }

    /// Has forks acquire and release a process-wide lock. No thread may fork while it holds one of these, or
    /// acquire one of them while it holds another.
    ///
    /// # Panics
    ///
    /// The table is full.
    pub fn register_lock<T>(lock: &'static Mutex<T>) {
        let raw = core::ptr::from_ref(lock.raw()).cast_mut();
        for entry in &LOCKS {
            let empty = core::ptr::null_mut();
            // [F-list] unmodelled: no model forks; the same protocol has one in `once_box.rs`, see the header
            match entry.compare_exchange(empty, raw, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) if other == raw => return,
                Err(_) => {}
            }
        }
        panic!(
            "more than {MAX_LOCKS} locks are registered for forks: raise `MAX_LOCKS` in millpond-raw's `fork.rs`"
        );
    }

    fn locks() -> impl Iterator<Item = &'static RawLock> {
        // [F-list] unmodelled: no model forks; the same protocol has one in `once_box.rs`, see the header
        let listed = LOCKS.iter().map(|entry| entry.load(Ordering::Acquire));
        // SAFETY: FORK-3 - null, or made of a `&'static`.
        listed.map_while(|raw| unsafe { raw.as_ref() })
    }

    extern "C" fn before() {
        let mut taken = 0;
        for lock in locks() {
            lock.lock();
            taken += 1;
            // Under the first of them, so by one forking thread at a time.
            TAKEN.store(taken, Ordering::Relaxed);
        }
    }

    extern "C" fn in_parent() {
        let taken = TAKEN.load(Ordering::Relaxed);
        locks().take(taken).for_each(RawLock::unlock);
    }

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        // FORK-4: releasing a lock wakes its waiters, and their table may be locked.
        #[cfg(millpond_portable)]
        crate::sync::futex::reset_after_fork();
        in_parent();
    }
}

#[cfg(not(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle)))))]
mod which {
    use crate::sync::Mutex;

    /// Does nothing on this platform.
    pub fn install_handlers() {}

    /// Does nothing on this platform.
    pub fn register_lock<T>(_: &'static Mutex<T>) {}
}

/// How a child process ended.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// With this exit code.
    Exited(i32),
    /// By this signal: `SIGALRM`, if it hung.
    Killed(i32),
}

/// Forks, runs `f` in the child, and waits for it to end. A child that takes longer than `seconds` is killed
/// by its parent: it may hang before it could set an alarm. A panic is exit code 101. For tests.
///
/// # Errors
///
/// The process cannot be forked.
#[doc(hidden)]
#[cfg(all(
    target_os = "linux",
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
pub fn run_in_child(seconds: u32, f: impl FnOnce() -> i32) -> std::io::Result<Child> {
    // SAFETY: FORK-2 - the child ends below. That it has a copy of all locks and of one thread only is what
    // this tests: a child that hangs on a lock is killed below.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            crate::user_code::check(crate::user_code::Kind::Closure);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(101);
            // SAFETY: FORK-2 - the child ends here.
            unsafe { libc::_exit(code) }
        }
        _ => {
            if !ends_within(seconds, child) {
                // SAFETY: FORK-2 - our own child, which only we wait for.
                unsafe { libc::kill(child, libc::SIGALRM) };
            }
            let mut status = 0;
            // SAFETY: FORK-2 - our own child, which only we wait for; the status is a local.
            while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            Ok(if libc::WIFSIGNALED(status) {
                Child::Killed(libc::WTERMSIG(status))
            } else {
                Child::Exited(libc::WEXITSTATUS(status))
            })
        }
    }
}

/// Waits for the child for at most so many seconds; returns whether it has ended.
#[cfg(all(
    target_os = "linux",
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
#[allow(
    clippy::disallowed_methods,
    reason = "a child is waited for in real time, whatever clock its parent has"
)]
fn ends_within(seconds: u32, child: libc::pid_t) -> bool {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
    use std::time::{Duration, Instant};

    let deadline = Instant::now() + Duration::from_secs(seconds.into());
    // SAFETY: FORK-2 - our own child; the call opens a file and touches no memory.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    let Ok(file) = RawFd::try_from(file) else {
        return false;
    };
    if file < 0 {
        return false;
    }
    // SAFETY: FORK-2 - a file that was opened just now, for us alone.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let mut asked = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.as_millis().try_into().unwrap_or(libc::c_int::MAX);
        // SAFETY: FORK-2 - an array of one, a local.
        match unsafe { libc::poll(&raw mut asked, 1, left) } {
            0 => return false,
            -1 => {} // Interrupted by a signal.
            _ => return true,
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::recycle::Recycled;
    use crate::sync::{Futex, Mutex, thread};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn each_child_is_of_the_next_generation_and_the_parent_stays_what_it_is() {
        install_handlers();
        let own = generation();
        let grand = || run_in_child(30, || (generation() - own) as i32).unwrap();
        let child = run_in_child(30, || match grand() {
            Child::Exited(2) => (generation() - own) as i32,
            _ => 101,
        });
        assert_eq!(child.unwrap(), Child::Exited(1));
        assert_eq!(generation(), own);
    }

    #[test]
    fn a_child_that_panics_or_hangs_is_told_from_one_that_ends() {
        let panics = run_in_child(30, || std::panic::resume_unwind(Box::new(())));
        assert_eq!(panics.unwrap(), Child::Exited(101));
        let hangs = run_in_child(1, || {
            loop {
                thread::yield_now();
            }
        });
        assert_eq!(hangs.unwrap(), Child::Killed(libc::SIGALRM));
    }

    /// A lock that other threads hold most of the time, and the depots of recycled memory.
    #[test]
    fn registered_locks_are_free_in_the_child_whichever_thread_held_them() {
        static REGISTERED: Mutex<u64> = Mutex::new(0);
        install_handlers();
        register_lock(&REGISTERED);
        register_lock(&REGISTERED);
        let over = Arc::new(AtomicBool::new(false));
        let busy = [(), ()].map(|()| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let many: Vec<_> = (0..200_u64).map(|n| Recycled::new_with(|| n)).collect();
                    *REGISTERED.lock() += many.len() as u64;
                }
            })
        });
        for _ in 0..30 {
            let child = run_in_child(30, || {
                *REGISTERED.lock() += 1;
                let many: Vec<_> = (0..200_i32).map(|n| Recycled::new_with(|| n)).collect();
                i32::from(many.iter().map(|one| **one).sum::<i32>() != 19_900)
            });
            assert_eq!(child.unwrap(), Child::Exited(0));
        }
        over.store(true, Ordering::Relaxed);
        for thread in busy {
            thread.join().unwrap();
        }
    }

    /// In a child, whose table is a copy.
    #[test]
    fn a_lock_that_does_not_fit_is_not_left_out_silently() {
        static MANY: [Mutex<()>; which::MAX_LOCKS] = [const { Mutex::new(()) }; which::MAX_LOCKS];
        static LAST: Mutex<()> = Mutex::new(());
        install_handlers();
        let child = run_in_child(30, || {
            let rejected = |lock| crate::catch_panic::call(|| register_lock(lock)).is_none();
            // Those of `install_handlers` are listed already, and listing one again does not fail.
            let listed = MANY.iter().take_while(|lock| !rejected(lock)).count();
            let is_full = listed < which::MAX_LOCKS && rejected(&LAST) && !rejected(&MANY[0]);
            // All locks of the full table are free after a fork.
            let grand = run_in_child(30, || {
                MANY.iter().for_each(|lock| drop(lock.lock()));
                0
            });
            let is_in_order = matches!(grand, Ok(Child::Exited(0)));
            i32::from(!(is_full && is_in_order))
        });
        assert_eq!(child.unwrap(), Child::Exited(0));
    }

    /// The portable futex has locks that are not listed; FORK-4.
    #[test]
    fn a_child_wakes_sleepers_whatever_its_parent_was_waking_when_it_forked() {
        install_handlers();
        let words: Arc<[Futex; 256]> = Arc::new(core::array::from_fn(|_| Futex::new(0)));
        let over = Arc::new(AtomicBool::new(false));
        let busy = [(), ()].map(|()| {
            let (words, over) = (Arc::clone(&words), Arc::clone(&over));
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    words.iter().for_each(Futex::wake_all);
                }
            })
        });
        for _ in 0..100 {
            let child = run_in_child(30, || {
                words.iter().for_each(Futex::wake_all);
                0
            });
            assert_eq!(child.unwrap(), Child::Exited(0));
        }
        over.store(true, Ordering::Relaxed);
        for thread in busy {
            thread.join().unwrap();
        }
    }
}
