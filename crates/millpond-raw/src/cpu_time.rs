//! The CPU time of threads, and how long they waited for a CPU.
//!
//! Four questions at four prices. [`thread_cpu_now`] is one system call and answers for the calling thread
//! only, [`process_cpu_now`] for all threads together. [`cpu_time_of`] is one system call and answers for any
//! thread of the process. [`schedstat_of`] reads a file of `/proc`, some microseconds, and is the only one that knows how long a thread was runnable and
//! had no CPU.
//!
//! Threads are identified by the system's thread id, their [`tid`], which `top -H` and debuggers show. The
//! system reuses ids: an answer for a thread that may have ended may be about another one. A caller that
//! keeps an id must know that its thread lives, or accept a wrong figure once.
//!
//! Elsewhere than on Linux nothing of this is known, and every answer says so.
//!
//! # Invariants
//!
//! - **CPUTIME-1** A clock is read into a `timespec` that lives in the caller. The kernel writes it whole or
//!   not at all, and rejects clocks that do not exist; no id makes it touch other memory.
//! - **CPUTIME-2** Asking for one's own id has no arguments and cannot fail.

use std::time::Duration;

/// The CPU use of a thread since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU.
    pub on_cpu: Duration,
    /// Time runnable without a CPU. A sleeping thread does not wait for a CPU.
    pub waiting_for_cpu: Duration,
}

/// The id of the current thread, as `top -H` and debuggers show it.
///
/// ```
/// use millpond_raw::cpu_time;
///
/// if let Some(tid) = cpu_time::tid() {
///     assert!(cpu_time::cpu_time_of(tid).is_some());
/// }
/// ```
pub fn tid() -> Option<u32> {
    os::tid()
}

/// The CPU time of the current thread; zero where it is unknown.
///
/// ```
/// use millpond_raw::cpu_time::thread_cpu_now;
///
/// let before = thread_cpu_now();
/// assert!(thread_cpu_now() >= before);
/// ```
pub fn thread_cpu_now() -> Duration {
    os::thread_cpu_now().unwrap_or_default()
}

/// The CPU time of all threads of this process together, those that have ended included; `None` where it is
/// unknown. The system adds up all threads that live, so this takes microseconds if there are hundreds.
///
/// ```
/// use millpond_raw::cpu_time::{process_cpu_now, thread_cpu_now};
///
/// let own = thread_cpu_now();
/// assert!(process_cpu_now().is_none_or(|all| all >= own));
/// ```
pub fn process_cpu_now() -> Option<Duration> {
    os::process_cpu_now()
}

/// The CPU time of a thread of this process; `None` if there is no such thread.
pub fn cpu_time_of(tid: u32) -> Option<Duration> {
    os::cpu_time_of(tid)
}

/// The CPU use of a thread of this process; `None` if there is no such thread, or if the kernel keeps no such
/// figures. They lag behind by a scheduler tick while the thread runs: a thread that has just started may
/// show nothing.
///
/// ```
/// use millpond_raw::cpu_time;
///
/// if let Some(tid) = cpu_time::tid() {
///     let before = cpu_time::schedstat_of(tid).unwrap_or_default();
///     let after = cpu_time::schedstat_of(tid).unwrap_or_default();
///     assert!(after.on_cpu >= before.on_cpu);
/// }
/// ```
pub fn schedstat_of(tid: u32) -> Option<Schedstat> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    read_schedstat(&std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).ok()?)
}

/// `run wait slices`, the first two in nanoseconds.
fn read_schedstat(line: &str) -> Option<Schedstat> {
    let mut figures = line.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || figures.next()?.ok().map(Duration::from_nanos);
    Some(Schedstat {
        on_cpu: next()?,
        waiting_for_cpu: next()?,
    })
}

#[cfg(target_os = "linux")]
mod os {
    use std::time::Duration;

    pub(super) fn tid() -> Option<u32> {
        // The system call and not the wrapper of the C library, which old ones lack.
        // SAFETY: CPUTIME-2 - no arguments, no failure.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        u32::try_from(tid).ok()
    }

    pub(super) fn thread_cpu_now() -> Option<Duration> {
        read(libc::CLOCK_THREAD_CPUTIME_ID)
    }

    pub(super) fn process_cpu_now() -> Option<Duration> {
        read(libc::CLOCK_PROCESS_CPUTIME_ID)
    }

    pub(super) fn cpu_time_of(tid: u32) -> Option<Duration> {
        // The kernel's encoding of "the CPU clock of that thread": the inverted id, above three bits that say
        // "of one thread" (4) and "time on a CPU" (2). 0 would be the caller's own.
        const OF_ONE_THREAD: libc::clockid_t = 0b110;
        let tid = libc::clockid_t::try_from(tid).ok().filter(|&tid| tid > 0)?;
        read((!tid).checked_mul(8)? | OF_ONE_THREAD)
    }

    fn read(clock: libc::clockid_t) -> Option<Duration> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: CPUTIME-1 - the pointer is to a live local, and an unknown clock is rejected.
        let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
        if failed != 0 {
            return None;
        }
        Some(Duration::new(
            time.tv_sec.try_into().ok()?,
            time.tv_nsec.try_into().ok()?,
        ))
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::time::Duration;

    pub(super) fn tid() -> Option<u32> {
        None
    }

    pub(super) fn thread_cpu_now() -> Option<Duration> {
        None
    }

    pub(super) fn process_cpu_now() -> Option<Duration> {
        None
    }

    pub(super) fn cpu_time_of(_tid: u32) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_schedstat_is_read_and_anything_else_is_nothing() {
        let had = Schedstat {
            on_cpu: Duration::from_nanos(1_500),
            waiting_for_cpu: Duration::from_nanos(7),
        };
        assert_eq!(read_schedstat("1500 7 3\n"), Some(had));
        for broken in ["", "1500", "1500 x 3", "-1 7 3"] {
            assert_eq!(read_schedstat(broken), None, "{broken:?}");
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
mod linux_tests {
    #![allow(
        clippy::disallowed_methods,
        reason = "threads are measured from below the Sync seam"
    )]

    use super::*;
    use std::sync::mpsc;

    /// Spins until the current thread has used that much CPU time.
    fn burn(amount: Duration) {
        let end = thread_cpu_now() + amount;
        while thread_cpu_now() < end {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn every_thread_has_an_id_of_its_own() {
        let here = tid().expect("Linux has thread ids");
        let there = std::thread::scope(|scope| scope.spawn(tid).join().unwrap());
        assert_ne!(Some(here), there);
    }

    #[test]
    fn cpu_time_is_seen_from_another_thread_and_sleep_is_not_counted() {
        const WORK: Duration = Duration::from_millis(20);
        let (say, hear) = mpsc::channel();
        let (stay, leave) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                burn(WORK);
                say.send((tid().unwrap(), thread_cpu_now())).unwrap();
                // Sleeps here until the questions are answered.
                let _ = leave.recv();
            });
            let (worker, own_word) = hear.recv().unwrap();
            let seen = cpu_time_of(worker).expect("it lives");
            assert!(seen >= own_word, "{seen:?} after it said {own_word:?}");
            std::thread::sleep(Duration::from_millis(20));
            let later = cpu_time_of(worker).expect("it lives");
            assert!(
                later - seen < WORK / 2,
                "asleep, it used {:?}",
                later - seen
            );
            if let Some(had) = schedstat_of(worker) {
                // The file lags behind by up to a tick of the scheduler.
                assert!(had.on_cpu >= WORK / 2, "{had:?}");
            }
            drop(stay);
        });
    }

    #[test]
    fn there_is_no_answer_for_a_thread_that_is_not_of_this_process() {
        // 1 is another process, the others are no threads.
        let foreign = if std::process::id() == 1 { 0 } else { 1 };
        for tid in [foreign, 0, u32::MAX, i32::MAX.unsigned_abs()] {
            assert_eq!(cpu_time_of(tid), None, "{tid}");
            assert_eq!(schedstat_of(tid), None, "{tid}");
        }
    }
}
