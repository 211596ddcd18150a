//! A thread that sits for pictures, from its first `Subject::here` to its end.

use super::{Picture, signal};
use crate::stack::Refusal;
use crate::stack::tray::{Asked, Nothing, Tray};
use crate::sync::Mutex;
use crate::usage;
use core::cell::{Cell, OnceCell};
use core::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// What a thread and those who want pictures of it share.
#[derive(Debug)]
pub(super) struct Sitter {
    tid: u32,
    /// Where its stack lies; empty if nobody could tell.
    stack: Range<u64>,
    /// G3: the thread is there while this is held and the tray has not ended.
    lock: Mutex<()>,
    tray: Tray<Picture>,
}

impl Sitter {
    fn new() -> Self {
        Sitter {
            tid: usage::tid().unwrap_or(0),
            stack: own_stack().unwrap_or(0..0),
            lock: Mutex::new(()),
            tray: Tray::new(),
        }
    }

    /// Lays a picture out and calls the thread to fill it in.
    pub(super) fn ask(&self, deadline: Instant) -> Result<Asked<'_, Picture>, Refusal> {
        let refusal = |nothing| match nothing {
            Nothing::Ended => Refusal::Ended,
            Nothing::TimedOut => Refusal::Busy,
        };
        let held = self.tray.hold(deadline).map_err(refusal)?;
        let asked = held.ask(Box::new(Picture::blank())).map_err(refusal)?;
        let lock = self.lock.lock();
        if self.tray.has_ended() {
            return Err(Refusal::Ended);
        }
        // SAFETY: G3 - the lock is held and the thread has not left.
        let sent = unsafe { signal::send(self.tid) };
        drop(lock);
        match sent {
            Ok(()) => Ok(asked),
            // The system knows of no such thread in this process: we are in a child of a fork, where
            // only one thread has gone on, under another number.
            Err(libc::ESRCH) => Err(Refusal::Ended),
            Err(error) => Err(Refusal::NotSent(error)),
        }
    }

    pub(super) fn has_left(&self) -> bool {
        self.tray.has_ended()
    }

    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.tray.is_free()
    }

    /// What the handler does in its own thread.
    pub(super) fn serve(&self, context: &libc::ucontext_t) {
        self.tray
            .serve(|picture| picture.fill(context, &self.stack));
    }
}

/// The sitter of the present thread, for as long as the thread's own variables live.
struct Sitting(Arc<Sitter>);

impl Drop for Sitting {
    fn drop(&mut self) {
        // G2: from here on the handler finds nobody.
        PRESENT.set(core::ptr::null());
        let lock = self.0.lock.lock();
        self.0.tray.end();
        drop(lock);
    }
}

thread_local! {
    static SITTING: OnceCell<Sitting> = const { OnceCell::new() };
    // Const and without a destructor: to read it is to read memory, also in a handler.
    static PRESENT: Cell<*const Sitter> = const { Cell::new(core::ptr::null()) };
}

/// The sitter of the present thread. A thread whose variables are being destroyed has left already.
pub(super) fn here() -> Arc<Sitter> {
    let sitting = SITTING.try_with(|sitting| {
        let Sitting(sitter) = sitting.get_or_init(|| {
            let sitting = Sitting(Arc::new(Sitter::new()));
            PRESENT.set(Arc::as_ptr(&sitting.0));
            sitting
        });
        Arc::clone(sitter)
    });
    sitting.unwrap_or_else(|_| {
        let sitter = Sitter::new();
        sitter.tray.end();
        Arc::new(sitter)
    })
}

/// Runs `f` on the sitter of the present thread, if it is one. For the handler.
pub(super) fn with_present(f: impl FnOnce(&Sitter)) {
    let present = PRESENT.get();
    // SAFETY: G2 - null, or a sitter that this thread keeps alive.
    if let Some(sitter) = unsafe { present.as_ref() } {
        f(sitter);
    }
}

/// The bounds of the present thread's stack, if the C library can tell.
fn own_stack() -> Option<Range<u64>> {
    let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: G6 - asks for the number of the present thread, and cannot fail.
    let me = unsafe { libc::pthread_self() };
    // SAFETY: G6 - writes the attributes whole if it returns 0.
    if unsafe { libc::pthread_getattr_np(me, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut lowest = core::ptr::null_mut();
    let mut size = 0;
    // SAFETY: G6 - the attributes were written above, the rest are live locals.
    let failed =
        unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size) };
    // SAFETY: G6 - the attributes were written above and are not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // Exposed: the handler reads there later, by address.
    let lowest = lowest.expose_provenance() as u64;
    (failed == 0).then_some(lowest..lowest.checked_add(size as u64)?)
}
