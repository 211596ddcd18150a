//! What becomes of all this in a process that `fork()` has made.
//!
//! A child process has a copy of the memory and one thread. The threads that would have run a task,
//! woken a waiter or given a lock back are in the parent. So whoever waits for them in the child waits
//! for ever, unless it knows: processes have *generations*. The first one is of generation 0, its child
//! of generation 1, and so on; whatever has threads behind it notes in which it was made, and compares.
//!
//! Locks of all the process (the depots of recycled memory, for one) are needed in the child as well, by
//! what is made there. They are taken just before a fork and given back just after it, on both sides; so
//! nobody else has them when memory is copied.
//!
//! Only on Linux. Elsewhere every process is of generation 0.
//!
//! # Invariants
//!
//! - **F1** The handlers that `fork` calls are functions of ours that live as long as the process, run on
//!   the thread that forks, in no signal handler, and touch nothing but statics (and new memory, in the
//!   child, whose allocator is in order by then: its own handlers were there first).
//! - **F2** The child of [`run_in_child`] ends in there, by `_exit`: nothing of the caller's frames runs
//!   twice, and no destructor of the parent's.
//! - **F3** Locks are listed once, in the order in which they came, and stay. Before a fork the first `n`
//!   are taken, in that order; after it these are given back. Two threads that fork at once take turns at
//!   the first of them. All of them are statics of this workspace, a dozen, of which the table holds more than twice as
//!   many; one that does not fit is a mistake, and a panic in every build: left out, it would be a
//!   child that hangs, now and then.
//! - **F4** The child's first step, before it has another thread and before it gives back a lock, is a
//!   new table of sleepers, where sleepers are in a table (the portable futex). Such a table is never
//!   freed.
//!
//! # Orderings
//!
//! - `[F-list]` Listing a lock releases it, walking the list acquires it: a pointer is published and
//!   followed, as in [`crate::publish::Shown`], of which there is a model. Here there is
//!   none, for the list is made of statics and walked by `fork`; what is listed is made once, and a lock
//!   that is missed because it was listed during the fork has not been used before it.

#![allow(
    clippy::disallowed_types,
    reason = "a static outlives every model, and what is here is for real processes only"
)]

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks this process is away from the one in which [`watch`] was first called.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

pub use which::{keep, watch};

#[cfg(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
mod which {
    use super::GENERATION;
    use crate::sync::{Mutex, RawLock};
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

    /// The depots of recycled memory, one lock each; the registry of the probe, the handler of signals; and in the library
    /// the table of those who wait for tasks, the free homes, the free desks, the timer and what is done aside.
    /// That is 11, and there is room for more.
    pub(super) const MOST: usize = 32;

    const _: () = assert!(crate::recycle::DEPOTS + 7 <= MOST / 2);

    /// F3.
    static LOCKS: [AtomicPtr<RawLock>; MOST] =
        [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    /// From now on forks are counted. For whatever starts threads; often is no harm.
    pub fn watch() {
        static WATCHES: AtomicBool = AtomicBool::new(false);
        if WATCHES.load(Ordering::Relaxed) || WATCHES.swap(true, Ordering::Relaxed) {
            return;
        }
        crate::recycle::keep_at_forks();
        #[cfg(any(test, feature = "probe"))]
        crate::park::probe::keep_at_forks();
        // SAFETY: F1 - functions of ours.
        let failed = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        // For lack of memory. Then a child is not told from its parent.
        debug_assert_eq!(failed, 0, "forks cannot be watched");
    }

    /// Keeps a lock of all the process in order at forks. No thread may fork that has one of these, nor
    /// take one of them inside another.
    ///
    /// # Panics
    ///
    /// The table is full.
    pub fn keep<T>(lock: &'static Mutex<T>) {
        let raw = core::ptr::from_ref(lock.raw()).cast_mut();
        for place in &LOCKS {
            let nobody = core::ptr::null_mut();
            // [F-list] unmodelled: no model forks; the same protocol has one in `publish.rs` (header)
            match place.compare_exchange(nobody, raw, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) if other == raw => return,
                Err(_) => {}
            }
        }
        panic!(
            "more than {MOST} locks are to be kept in order at forks: raise `MOST` in millpond-raw's `fork.rs`"
        );
    }

    fn locks() -> impl Iterator<Item = &'static RawLock> {
        // [F-list] unmodelled: no model forks; the same protocol has one in `publish.rs` (header)
        let listed = LOCKS.iter().map(|place| place.load(Ordering::Acquire));
        // SAFETY: F3 - null, or made of a `&'static`.
        listed.map_while(|raw| unsafe { raw.as_ref() })
    }

    extern "C" fn before() {
        let mut taken = 0;
        for lock in locks() {
            lock.lock();
            taken += 1;
            // Under the first of them, so one who forks at a time.
            TAKEN.store(taken, Ordering::Relaxed);
        }
    }

    extern "C" fn in_parent() {
        let taken = TAKEN.load(Ordering::Relaxed);
        locks().take(taken).for_each(RawLock::unlock);
    }

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        // F4: to give back a lock wakes who waits for it, and the table of those may be locked.
        #[cfg(millpond_portable)]
        crate::sync::futex::start_anew();
        in_parent();
    }
}

#[cfg(not(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle)))))]
mod which {
    use crate::sync::Mutex;

    /// Forks are not watched here.
    pub fn watch() {}

    /// Forks are not watched here.
    pub fn keep<T>(_: &'static Mutex<T>) {}
}

/// How a child ended.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// It returned this.
    Exited(i32),
    /// It was killed by this signal: `SIGALRM`, if it hung.
    Killed(i32),
}

/// Forks, runs `f` in the child, and waits for its end. A child that takes longer than `seconds` is
/// killed by its parent: it may hang before it could set an alarm. A panic is 101. For tests.
///
/// # Errors
///
/// There is no process to be had.
#[doc(hidden)]
#[cfg(all(
    target_os = "linux",
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
pub fn run_in_child(seconds: u32, f: impl FnOnce() -> i32) -> std::io::Result<Child> {
    // SAFETY: F2 - the child ends below. That it has a copy of everybody's locks and of no thread is
    // what this is for: a child that hangs on one of them is killed below.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            crate::user_code::check(crate::user_code::Kind::Closure);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(101);
            // SAFETY: F2 - the end.
            unsafe { libc::_exit(code) }
        }
        _ => {
            if !ends_within(seconds, child) {
                // SAFETY: F2 - our own child, which nobody else waits for.
                unsafe { libc::kill(child, libc::SIGALRM) };
            }
            let mut status = 0;
            // SAFETY: F2 - our own child, which nobody else waits for; the place is a local.
            while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            Ok(match libc::WIFSIGNALED(status) {
                true => Child::Killed(libc::WTERMSIG(status)),
                false => Child::Exited(libc::WEXITSTATUS(status)),
            })
        }
    }
}

/// True if the child has ended; it waits for that for so many seconds.
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
    // SAFETY: F2 - our own child; the call makes a file and touches no memory.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    let Ok(file) = RawFd::try_from(file) else {
        return false;
    };
    if file < 0 {
        return false;
    }
    // SAFETY: F2 - a file that was made just now, for us alone.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let mut asked = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.as_millis().try_into().unwrap_or(libc::c_int::MAX);
        // SAFETY: F2 - one place, a local.
        match unsafe { libc::poll(&raw mut asked, 1, left) } {
            0 => return false,
            -1 => {} // A signal came.
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
        watch();
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

    /// A lock that others have all the time, and the depots of recycled memory.
    #[test]
    fn locks_that_are_kept_are_free_in_the_child_whoever_has_them_in_the_parent() {
        static KEPT: Mutex<u64> = Mutex::new(0);
        watch();
        keep(&KEPT);
        keep(&KEPT);
        let over = Arc::new(AtomicBool::new(false));
        let busy = [(), ()].map(|()| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let many: Vec<_> = (0..200_u64).map(|n| Recycled::new_with(|| n)).collect();
                    *KEPT.lock() += many.len() as u64;
                }
            })
        });
        for _ in 0..30 {
            let child = run_in_child(30, || {
                *KEPT.lock() += 1;
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

    /// In a child, whose table is its own.
    #[test]
    fn a_lock_for_which_there_is_no_room_is_not_left_out_in_silence() {
        static MANY: [Mutex<()>; which::MOST] = [const { Mutex::new(()) }; which::MOST];
        static LAST: Mutex<()> = Mutex::new(());
        watch();
        let child = run_in_child(30, || {
            let refused = |lock| crate::quiet::call(|| keep(lock)).is_none();
            // Those of `watch` have places already; whoever has one is not refused.
            let places = MANY.iter().take_while(|lock| !refused(lock)).count();
            let is_full = places < which::MOST && refused(&LAST) && !refused(&MANY[0]);
            // The full table is kept in order.
            let grand = run_in_child(30, || {
                MANY.iter().for_each(|lock| drop(lock.lock()));
                0
            });
            let is_in_order = matches!(grand, Ok(Child::Exited(0)));
            i32::from(!(is_full && is_in_order))
        });
        assert_eq!(child.unwrap(), Child::Exited(0));
    }

    /// The portable futex has locks that nobody lists; F4.
    #[test]
    fn a_child_wakes_sleepers_whatever_its_parent_was_waking_when_it_forked() {
        watch();
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
