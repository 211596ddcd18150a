//! Detects that nothing moves any more.
//!
//! [`Stillness`] watches threads from outside, through the kernel: it returns when all of them are
//! asleep at one instant, with no wake-up pending for any of them. It does not depend on what
//! they sleep on, nor on the code under test, so a bug in that code cannot deceive it.
//!
//! # Why this is exact
//!
//! - **STILL-1** A thread is counted from before it starts until the kernel has no trace of it left:
//!   while it exits it may still hold a lock of the allocator that another one sleeps on.
//! - **STILL-2** A woken thread is runnable before the waking call returns: the kernel shows it as
//!   running from then on, even if it does not get a CPU for a while. A thread that is shown as
//!   sleeping has not been woken.
//! - **STILL-3** Each time a thread goes to sleep the kernel counts a voluntary switch.
//!
//! All threads are read twice. If each of them sleeps both times and has the same count, none of
//! them ran between its two readings (STILL-3), so between the end of the first round and the beginning of
//! the second all slept together. Then only the watcher itself, a timer, or a thread that is
//! not watched could wake one of them.
//!
//! So the user has two duties. Sleeps with a timeout end by themselves: give the code a manual
//! clock. And threads that are not watched must be idle: one of them may hold a lock of the allocator,
//! and a watched thread that sleeps on it will go on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The state of a thread, as the kernel reports it.
const STATUS: &str = "/proc/thread-self/status";

/// How long a watcher leaves the CPU to those that it waits for. It makes a wait cheaper and no wait
/// right: what ends a wait is what is seen.
const BETWEEN_LOOKS: Duration = Duration::from_micros(20);

/// Watches threads until all of them sleep. Clones watch the same threads.
#[derive(Clone, Debug, Default)]
pub struct Stillness {
    watched: Arc<Mutex<Watched>>,
}

#[derive(Debug, Default)]
struct Watched {
    /// Threads that have been promised and have not begun.
    starting: usize,
    /// How many have begun.
    begun: u64,
    threads: BTreeMap<u64, Arc<io::Result<Mutex<File>>>>,
}

/// How a thread was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    sleeps: bool,
    /// How often it has gone to sleep.
    switches: u64,
}

impl Stillness {
    /// An empty set of threads.
    pub fn new() -> Self {
        Stillness::default()
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same closure, but the thread that runs it is watched. It is waited for from now on; if it
    /// is dropped unrun, no longer.
    pub fn watch<R, F: FnOnce() -> R>(&self, body: F) -> impl FnOnce() -> R + use<R, F> {
        self.lock().starting += 1;
        let promise = Promise(self.clone());
        move || {
            promise.keep();
            body()
        }
    }

    /// Waits until all threads that are watched sleep at one instant.
    ///
    /// # Errors
    ///
    /// After `timeout` it gives up and names the threads that do not sleep; at once, if the operating
    /// system does not report thread states.
    pub fn wait(&self, timeout: Duration) -> Result<(), String> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(first) = self.look()?
                && self.look()? == Some(first)
            {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!("not still after {timeout:?}: {}", self.complaint()));
            }
            // A thread has to run before the next check can see more than this one, and checking uses a
            // CPU that the thread may need.
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// All threads that are left, if all of them sleep.
    fn look(&self) -> Result<Option<Vec<(u64, Look)>>, String> {
        let threads = {
            let watched = self.lock();
            if watched.starting > 0 {
                return Ok(None);
            }
            watched.threads.clone()
        };
        let mut looks = Vec::with_capacity(threads.len());
        for (number, thread) in threads {
            let look = look_at(&thread)
                .map_err(|error| format!("cannot tell who sleeps by {STATUS}: {error}"))?;
            match look {
                Some(look) if look.sleeps => looks.push((number, look)),
                Some(_) => return Ok(None),
                None => drop(self.lock().threads.remove(&number)),
            }
        }
        Ok(Some(looks))
    }

    fn complaint(&self) -> String {
        let watched = self.lock();
        let awake = watched.threads.values().filter(|thread| {
            let look = look_at(thread).ok().flatten();
            look.is_some_and(|look| !look.sleeps)
        });
        format!(
            "of {} threads {} are awake, and {} have not started",
            watched.threads.len(),
            awake.count(),
            watched.starting
        )
    }
}

/// The kernel's state of a thread; `None` if it has ended.
fn look_at(thread: &io::Result<Mutex<File>>) -> io::Result<Option<Look>> {
    let file = match thread {
        Ok(file) => file,
        Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
    };
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::with_capacity(2048);
    // A thread that has ended since cannot be read any more.
    if file.seek(SeekFrom::Start(0)).is_err() || file.read_to_string(&mut text).is_err() {
        return Ok(None);
    }
    parse(&text)
        .map(Some)
        .ok_or_else(|| io::Error::other("it has other lines than are known"))
}

fn parse(status: &str) -> Option<Look> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    Some(Look {
        sleeps: field("State:")?.trim_start().starts_with('S'),
        switches: field("voluntary_ctxt_switches:")?.trim().parse().ok()?,
    })
}

/// A thread to come.
struct Promise(Stillness);

impl Promise {
    /// The thread is here, and says so itself.
    fn keep(self) {
        // Opened by the thread itself, so it is this thread's own for ever.
        let file = Arc::new(File::open(STATUS).map(Mutex::new));
        let mut watched = self.0.lock();
        watched.begun += 1;
        let number = watched.begun;
        watched.threads.insert(number, file);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.0.lock().starting -= 1;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::{Gate, delays};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn no_threads_are_still() {
        assert_eq!(Stillness::new().wait(Duration::ZERO), Ok(()));
    }

    #[test]
    fn it_is_still_when_all_threads_sleep_and_never_before() {
        for _ in 0..50 {
            let (stillness, gate) = (Stillness::new(), Gate::new());
            let arrived = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (gate, arrived) = (gate.clone(), Arc::clone(&arrived));
                    std::thread::spawn(stillness.watch(move || {
                        arrived.fetch_add(1, Ordering::SeqCst);
                        gate.wait();
                        arrived.fetch_add(1, Ordering::SeqCst);
                    }))
                })
                .collect();
            stillness.wait(delays::long()).unwrap();
            assert_eq!(arrived.load(Ordering::SeqCst), 3);
            gate.open();
            stillness.wait(delays::long()).unwrap();
            assert_eq!(arrived.load(Ordering::SeqCst), 6, "woken is not asleep");
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        }
    }

    #[test]
    fn a_running_thread_and_one_that_has_not_started_are_reported() {
        let stillness = Stillness::new();
        let busy = Arc::new(AtomicBool::new(true));
        let runs = Arc::clone(&busy);
        let thread = std::thread::spawn(stillness.watch(move || {
            while runs.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
        }));
        let promised = stillness.watch(|| ());
        let error = stillness.wait(delays::short()).unwrap_err();
        assert!(error.contains("1 have not started"), "{error}");
        drop(promised);
        let error = stillness.wait(delays::short()).unwrap_err();
        assert!(
            error.contains("of 1 threads 1 are awake, and 0 have not"),
            "{error}"
        );
        busy.store(false, Ordering::SeqCst);
        stillness.wait(delays::long()).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn the_lines_of_the_kernel_are_understood() {
        let text = "Name:\tx\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t17\n\
            nonvoluntary_ctxt_switches:\t3\n";
        let look = Look {
            sleeps: true,
            switches: 17,
        };
        assert_eq!(parse(text), Some(look));
        assert!(
            !parse(&text.replace("S (sleeping)", "R (running)"))
                .unwrap()
                .sleeps
        );
        assert_eq!(parse("State:\tS (sleeping)\n"), None);
    }
}
