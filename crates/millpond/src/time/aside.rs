//! What a waker of ours has to do that is not for the thread of a timer.
//!
//! One thread serves everything that waits by the system's clock, so nothing may run there that can take
//! long, block, or panic for reasons of its own: a queue of the user's, the destructor of a closure, a
//! listener (R6 in `timer.rs`). A waker that comes to such work calls [`aside`]. On any other thread, such as
//! that of who moves a manual clock, the work is done there and then.
//!
//! - **A1** Jobs are run by threads that are started for them and end when none is left, at most [`MOST`]
//!   at once. One owner has at most one job here at a time, so what takes long in one pool takes one
//!   thread, and others go on.
//! - **A2** If no thread can be had the jobs stay. Whoever comes next tries again, and so does an alarm,
//!   every [`RETRY`].
//! - **A3** A child process has the jobs of its parent and not the threads. It leaves them alone.

use super::timer::is_timer_thread;
use super::{Alarm, Clock};
use crate::thread::{ThreadFactory, Threads};
use millpond_raw::sync::{Mutex, global};
use millpond_raw::{fork, quiet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// How many threads run jobs at once.
const MOST: usize = 32;

/// A2.
const RETRY: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    threads: usize,
    retry: Option<Alarm>,
    /// A3: of the process that has the threads.
    generation: u32,
}

global! {
    static JOBS: Mutex<Jobs> = Mutex::new(Jobs {
        waiting: VecDeque::new(),
        threads: 0,
        retry: None,
        generation: 0,
    });
}

/// Does it here; or, on the thread of a timer, soon, on another.
pub(crate) fn aside(job: impl FnOnce() + Send + 'static) {
    match is_timer_thread() {
        true => leave(Box::new(job)),
        false => job(),
    }
}

/// Lets go of it. If it is the last on the thread of a timer, what it holds is dropped on another.
pub(crate) fn let_go<T: Send + Sync + 'static>(shared: Arc<T>) {
    if !is_timer_thread() {
        return drop(shared);
    }
    if let Some(last) = Arc::into_inner(shared) {
        leave(Box::new(move || drop(last)));
    }
}

fn leave(job: Job) {
    fork::watch();
    with(|jobs| jobs.waiting.push_back(job));
    start();
}

fn with<R>(f: impl FnOnce(&mut Jobs) -> R) -> R {
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    fork::keep(&JOBS);
    let mut jobs = JOBS.lock();
    if jobs.generation != fork::generation() {
        // A3
        std::mem::forget(std::mem::take(&mut *jobs));
        jobs.generation = fork::generation();
    }
    f(&mut jobs)
}

/// Starts a thread for what waits, unless there are enough.
fn start() {
    let is_wanted = with(|jobs| {
        let is_wanted = !jobs.waiting.is_empty() && jobs.threads < MOST;
        jobs.threads += usize::from(is_wanted);
        is_wanted
    });
    if !is_wanted {
        return;
    }
    // If it is refused, what it carries is dropped, and says so.
    let place = Place;
    let threads = Threads::named("millpond-aside");
    let _ = threads.start(Box::new(move || place.run()));
    let is_stuck = with(|jobs| jobs.threads == 0 && !jobs.waiting.is_empty());
    if is_stuck {
        // A2
        let clock = Clock::system();
        let alarm = clock.alarm(clock.deadline(RETRY), &Waker::from(Arc::new(Again)));
        let alarm = alarm.unwrap_or_else(|unattended| unattended.alarm);
        let former = with(|jobs| jobs.retry.replace(alarm));
        drop(former);
    }
}

/// A2.
struct Again;

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        start();
    }
}

/// Being one of the threads, or about to become it.
struct Place;

impl Place {
    fn run(self) {
        loop {
            let job = with(|jobs| jobs.waiting.pop_front());
            let Some(job) = job else {
                break;
            };
            let _ = quiet::call(job);
        }
        drop(self);
        // One may have come between the last look and the end.
        start();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        with(|jobs| jobs.threads = jobs.threads.saturating_sub(1));
    }
}
