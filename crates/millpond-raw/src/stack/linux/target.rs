//! The target thread of captures, from its first `ThreadRef::current` to its end.

use super::{StackSnapshot, signal};
use crate::cpu_time;
use crate::stack::CaptureError;
use crate::stack::mailbox::{Mailbox, MailboxError, Request};
use crate::sync::Mutex;
use core::cell::{Cell, OnceCell};
use core::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// State shared by a thread and those that capture it.
#[derive(Debug)]
pub(super) struct Target {
    tid: u32,
    /// The bounds of its stack; empty if unknown.
    stack: Range<u64>,
    /// STACK-3: the thread is alive while this is held and the mailbox is open.
    lock: Mutex<()>,
    mailbox: Mailbox<StackSnapshot>,
}

impl Target {
    fn new() -> Self {
        Target {
            tid: cpu_time::tid().unwrap_or(0),
            stack: stack_bounds().unwrap_or(0..0),
            lock: Mutex::new(()),
            mailbox: Mailbox::new(),
        }
    }

    /// Requests a snapshot and signals the thread to fill it in.
    pub(super) fn request(
        &self,
        deadline: Instant,
    ) -> Result<Request<'_, StackSnapshot>, CaptureError> {
        let capture_error = |error| match error {
            MailboxError::Closed => CaptureError::ThreadEnded,
            MailboxError::TimedOut => CaptureError::Busy,
        };
        let mailbox = self.mailbox.lock(deadline).map_err(capture_error)?;
        let request = mailbox
            .request(Box::new(StackSnapshot::empty()))
            .map_err(capture_error)?;
        let lock = self.lock.lock();
        if self.mailbox.is_closed() {
            return Err(CaptureError::ThreadEnded);
        }
        // SAFETY: STACK-3 - the lock is held and the thread has not ended.
        let sent = unsafe { signal::send(self.tid) };
        drop(lock);
        match sent {
            Ok(()) => Ok(request),
            // There is no such thread in this process: this is the child of a fork, which has one thread,
            // with another id.
            Err(libc::ESRCH) => Err(CaptureError::ThreadEnded),
            Err(error) => Err(CaptureError::SignalNotSent(error)),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.mailbox.is_closed()
    }

    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.mailbox.is_free()
    }

    /// Answers a request, if there is one. Called by the handler, in the target thread.
    pub(super) fn serve(&self, context: &libc::ucontext_t) {
        self.mailbox
            .serve(|snapshot| snapshot.fill(context, &self.stack));
    }
}

/// Keeps the target of the calling thread alive until its thread-local variables are destroyed.
struct TargetGuard(Arc<Target>);

impl Drop for TargetGuard {
    fn drop(&mut self) {
        // STACK-2: from here on the handler finds no target.
        CURRENT.set(core::ptr::null());
        let lock = self.0.lock.lock();
        self.0.mailbox.close();
        drop(lock);
    }
}

thread_local! {
    static GUARD: OnceCell<TargetGuard> = const { OnceCell::new() };
    // Const and without a destructor: reading it is a plain memory access, also in a handler.
    static CURRENT: Cell<*const Target> = const { Cell::new(core::ptr::null()) };
}

/// The target of the calling thread. It has ended if the thread-local variables are being destroyed.
pub(super) fn current() -> Arc<Target> {
    let target = GUARD.try_with(|guard| {
        let TargetGuard(target) = guard.get_or_init(|| {
            let guard = TargetGuard(Arc::new(Target::new()));
            CURRENT.set(Arc::as_ptr(&guard.0));
            guard
        });
        Arc::clone(target)
    });
    target.unwrap_or_else(|_| {
        let target = Target::new();
        target.mailbox.close();
        Arc::new(target)
    })
}

/// Runs `f` on the target of the calling thread, if it has one. For the handler.
pub(super) fn with_current(f: impl FnOnce(&Target)) {
    let current = CURRENT.get();
    // SAFETY: STACK-2 - null, or a target that this thread keeps alive.
    if let Some(target) = unsafe { current.as_ref() } {
        f(target);
    }
}

/// The bounds of the calling thread's stack, if the C library knows them.
fn stack_bounds() -> Option<Range<u64>> {
    let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: STACK-6 - asks for the handle of the calling thread, and cannot fail.
    let me = unsafe { libc::pthread_self() };
    // SAFETY: STACK-6 - writes the attributes whole if it returns 0.
    if unsafe { libc::pthread_getattr_np(me, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut lowest = core::ptr::null_mut();
    let mut size = 0;
    // SAFETY: STACK-6 - the attributes were written above, the rest are live locals.
    let failed =
        unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size) };
    // SAFETY: STACK-6 - the attributes were written above and are not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // Exposed: the handler reads from there later, by address.
    let lowest = lowest.expose_provenance() as u64;
    (failed == 0).then_some(lowest..lowest.checked_add(size as u64)?)
}
