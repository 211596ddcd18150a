//! What a waker of ours has to do that is not for the thread of a timer.
//!
//! One thread serves everything that waits by the system's clock, so nothing may run there that can take
//! long, block, or panic for reasons of its own: a queue of the user's, the destructor of a closure, a
//! listener (R6 in `timer.rs`). A waker that comes to such work calls [`aside`]. On any other thread, such as
//! that of who moves a manual clock, the work is done there and then.
//!
//! - **A1** Every job has an [`Owner`]: the executor or pool that it is for, and the kind of work. The jobs
//!   of one owner are run one after the other, in order, by one thread at a time, which is started for
//!   them and ends when none is left. The number of threads has no other limit. So what takes long in one
//!   pool takes one thread and holds up nobody else; and of the same pool, only work of the same kind. (A
//!   job that waits for room in a pool must not hold up one that starts a worker there.)
//! - **A2** If no thread can be had the jobs stay. Whoever comes next tries again, and so does an alarm,
//!   every [`RETRY`]; and a thread that has nothing left to do takes over what has none.
//! - **A3** A child process has the jobs of its parent and not the threads. It leaves them alone.

use super::timer::is_timer_thread;
use super::{Alarm, Clock};
use crate::thread::{ThreadFactory, Threads};
use millpond_raw::sync::{Mutex, global};
use millpond_raw::{fork, quiet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// A2.
const RETRY: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;

/// What a job does (A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Brings a task to an executor, and may wait there, or run it.
    Bring,
    /// Drops what is the user's, or cancels it.
    Drop,
    /// Looks at a queue of the user's.
    Look,
    /// Starts a thread.
    Start,
    /// Calls a listener.
    Tell,
}

/// Whose job it is (A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    address: usize,
    work: Work,
}

impl Owner {
    /// The owner of such work for what is at this address. One that is gone may have had the same address: then
    /// the jobs of both are run in turn.
    pub(crate) fn at(address: usize, work: Work) -> Self {
        Owner { address, work }
    }

    pub(crate) fn of<T: ?Sized>(shared: &T, work: Work) -> Self {
        Owner::at(std::ptr::from_ref(shared).cast::<()>() as usize, work)
    }
}

/// The jobs of an owner: at least one, or a thread that is about to look for the next.
#[derive(Default)]
struct Own {
    waiting: VecDeque<Job>,
    has_thread: bool,
}

#[derive(Default)]
struct Jobs {
    owners: BTreeMap<Owner, Own>,
    retry: Option<Alarm>,
    /// A3: of the process that has the threads.
    generation: u32,
}

global! {
    static JOBS: Mutex<Jobs> = Mutex::new(Jobs {
        owners: BTreeMap::new(),
        retry: None,
        generation: 0,
    });
}

impl Jobs {
    /// An owner whose jobs nobody runs (A2). From now on it has a thread.
    fn take_on(&mut self) -> Option<Owner> {
        let (owner, own) = self.owners.iter_mut().find(|(_, own)| !own.has_thread)?;
        own.has_thread = true;
        Some(*owner)
    }

    /// The next job for the thread of this owner, which may become that of another.
    fn next(&mut self, owner: &mut Owner) -> Option<Job> {
        loop {
            let own = self.owners.get_mut(owner);
            if let Some(job) = own.and_then(|own| own.waiting.pop_front()) {
                return Some(job);
            }
            self.owners.remove(owner);
            *owner = self.take_on()?;
        }
    }
}

/// Does it here; or, on the thread of a timer, soon, on another.
pub(crate) fn aside(owner: Owner, job: impl FnOnce() + Send + 'static) {
    match is_timer_thread() {
        true => leave(owner, Box::new(job)),
        false => job(),
    }
}

/// Lets go of it. If it is the last on the thread of a timer, what it holds is dropped on another.
pub(crate) fn let_go<T: Send + Sync + 'static>(owner: Owner, shared: Arc<T>) {
    if !is_timer_thread() {
        return drop(shared);
    }
    if let Some(last) = Arc::into_inner(shared) {
        leave(owner, Box::new(move || drop(last)));
    }
}

fn leave(owner: Owner, job: Job) {
    fork::watch();
    with(|jobs| jobs.owners.entry(owner).or_default().waiting.push_back(job));
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

/// Starts a thread for each owner that has none.
fn start() {
    while let Some(owner) = with(Jobs::take_on) {
        // If it is refused, what it carries is dropped, and says so.
        let place = Place {
            owner,
            is_over: false,
        };
        let threads = Threads::named("millpond-aside");
        if threads.start(Box::new(move || place.run())).is_err() {
            return try_again();
        }
    }
}

/// A2.
fn try_again() {
    let clock = Clock::system();
    let alarm = clock.alarm(clock.deadline(RETRY), &Waker::from(Arc::new(Again)));
    let alarm = alarm.unwrap_or_else(|unattended| unattended.alarm);
    let former = with(|jobs| jobs.retry.replace(alarm));
    drop(former);
}

/// A2.
struct Again;

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        start();
    }
}

/// Being the thread of an owner, or about to become it.
struct Place {
    owner: Owner,
    /// Whether nothing was left for it.
    is_over: bool,
}

impl Place {
    fn run(mut self) {
        while let Some(job) = with(|jobs| jobs.next(&mut self.owner)) {
            let _ = quiet::call(job);
        }
        self.is_over = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        with(|jobs| {
            if let Some(own) = jobs.owners.get_mut(&self.owner) {
                own.has_thread = false;
            }
        });
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn jobs_of_one_owner_wait_for_each_other_and_hold_up_no_other() {
        let (one, other) = (0_u8, 0_u8);
        let ((go, may_go), (tell, told)) = (channel::<()>(), channel());
        let mut may_go = Some(may_go);
        for i in 0..100 {
            let (may_go, tell) = (may_go.take(), tell.clone());
            let job = move || {
                for () in may_go.into_iter().flatten() {}
                tell.send(i).unwrap();
            };
            leave(Owner::of(&one, Work::Bring), Box::new(job));
        }
        for owner in [Owner::of(&one, Work::Start), Owner::of(&other, Work::Bring)] {
            let tell = tell.clone();
            leave(owner, Box::new(move || tell.send(1_000).unwrap()));
        }
        assert_eq!(told.recv_timeout(LONG), Ok(1_000));
        assert_eq!(told.recv_timeout(LONG), Ok(1_000));
        drop(go);
        for i in 0..100 {
            assert_eq!(told.recv_timeout(LONG), Ok(i), "they stay in order");
        }
    }

    #[test]
    fn a_thread_without_jobs_takes_over_those_of_an_owner_without_a_thread() {
        let (one, other) = (0_u8, 0_u8);
        let (one, other) = (Owner::of(&one, Work::Tell), Owner::of(&other, Work::Tell));
        let mut jobs = Jobs::default();
        let own = jobs.owners.entry(one).or_default();
        own.waiting.push_back(Box::new(|| ()));
        own.has_thread = true;
        let stuck = jobs.owners.entry(other).or_default();
        stuck.waiting.push_back(Box::new(|| ()));
        let mut here = one;
        assert!(jobs.next(&mut here).is_some() && here == one);
        assert!(jobs.next(&mut here).is_some() && here == other);
        assert!(jobs.take_on().is_none(), "it has a thread now");
        assert!(jobs.next(&mut here).is_none() && jobs.owners.is_empty());
    }
}
