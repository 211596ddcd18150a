//! Traffic: a record of every access to shared memory that passes the seam.
//!
//! Built with `--cfg millpond_traffic` each operation on an atomic, each access to a cell and each lock that
//! is taken or released is appended to one list, with its thread, its cache line and the place in the source;
//! otherwise a call here is no code at all. The list is in a total order that the run really had. From it
//! `cargo xtask scale` counts locked instructions and transfers of cache lines per task, and computes what
//! they cost on machines with more cores than this one (`docs/design/scale.md`).
//!
//! A recorded run is some ten times slower than a real one, so its order is one that could have happened, and
//! its times mean nothing. What does not pass the seam is not seen: the memory of closures and results, the
//! slots of rings, std's `Arc`.

use std::panic::Location;

/// How a cache line is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Load,
    /// It is written by a plain store.
    Store,
    /// It is read and written by an instruction with a lock prefix, or what other processors have instead.
    Locked,
    /// A fence: it touches no line, and costs about as much as a locked instruction.
    Fence,
    /// A lock was acquired. Its own line was touched before, by a locked instruction.
    Acquired,
    /// A lock is about to be released.
    Released,
    /// The program says that this thread is done with a task.
    Mark,
}

/// One access.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The thread, numbered from 1 in the order in which threads are first seen.
    pub thread: u32,
    /// The address, of which all but the last six bits are the cache line.
    pub address: usize,
    /// What is done to it.
    pub access: Access,
    /// The place in the source that does it.
    pub site: &'static Location<'static>,
}

#[cfg(not(millpond_traffic))]
#[inline(always)]
pub(crate) fn record<T: ?Sized>(_address: *const T, _access: Access) {}

#[cfg(millpond_traffic)]
pub(crate) use recording::record;
#[cfg(millpond_traffic)]
pub use recording::{mark, start, stop};

#[cfg(millpond_traffic)]
mod recording {
    #![allow(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "this is the seam"
    )]

    use super::{Access, Event};
    use std::cell::Cell;
    use std::panic::Location;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::{Mutex, PoisonError};

    static RECORDING: AtomicBool = AtomicBool::new(false);
    /// One list for all threads: its lock is what makes the order total.
    static EVENTS: Mutex<Vec<Event>> = Mutex::new(Vec::new());

    /// Begins a record; what was recorded before is dropped.
    pub fn start() {
        EVENTS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        RECORDING.store(true, Ordering::Relaxed);
    }

    /// Ends the record and returns it.
    pub fn stop() -> Vec<Event> {
        RECORDING.store(false, Ordering::Relaxed);
        std::mem::take(&mut *EVENTS.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that the current thread is done with a task: it was submitted, or it has run.
    #[track_caller]
    pub fn mark() {
        record(std::ptr::null::<()>(), Access::Mark);
    }

    /// Records one access of the current thread.
    #[track_caller]
    pub(crate) fn record<T: ?Sized>(address: *const T, access: Access) {
        thread_local! {
            static THREAD: Cell<u32> = const { Cell::new(0) };
        }
        static THREADS: AtomicU32 = AtomicU32::new(0);
        if !RECORDING.load(Ordering::Relaxed) {
            return;
        }
        let site = Location::caller();
        // A thread that is ending has no locals any more, and its accesses are not counted.
        let _ = THREAD.try_with(|thread| {
            if thread.get() == 0 {
                thread.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
            }
            EVENTS
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Event {
                    thread: thread.get(),
                    address: address.cast::<()>().addr(),
                    access,
                    site,
                });
        });
    }
}
