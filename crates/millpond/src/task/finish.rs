//! Interrupting a task at the time by which it must have ended ([`TaskSpec::finish_by`](super::TaskSpec::finish_by)).
//!
//! The thread that runs the body sets an alarm before and cancels it afterwards, whichever executor it belongs to. The
//! alarm sets the token of that task: no other task hears of it, neither the next one nor one that is run inline inside,
//! and parts of the task on other threads do. A task without such a time has no alarm.
//!
//! # Invariants
//!
//! - **FINISH-1** The alarm interrupts no task that has ended: it refers to the task only while the guard of the body
//!   lives.
//! - **FINISH-2** The thread on which the alarm rings, the timer's mostly, drops no task: it sets the token under the lock
//!   of the bell, and the guard takes the reference out under the same lock and drops it on its own thread.
//! - **FINISH-3** An alarm that rings early, as those of a manual clock do, is set again.

use super::meta::Meta;
use crate::time::{Alarm, Clock, Deadline};
use millpond_raw::sync::Mutex;
use millpond_raw::task as raw;
use millpond_raw::user_code;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// Interrupts a task when its time has come, until this is dropped.
pub(super) struct FinishAlarm(Option<Arc<Bell>>);

impl FinishAlarm {
    /// For the body that is about to run on this thread.
    pub(super) fn of(meta: &Meta, task: impl FnOnce() -> raw::Witness<Meta>) -> Self {
        let finish_by = meta.finish_by();
        if finish_by == Deadline::NEVER {
            return FinishAlarm(None);
        }
        let bell = Arc::new(Bell {
            clock: meta.clock(),
            finish_by,
            body: Mutex::new(Some(Body {
                task: task(),
                _alarm: None,
            })),
        });
        bell.set();
        FinishAlarm(Some(bell))
    }
}

impl Drop for FinishAlarm {
    fn drop(&mut self) {
        if let Some(bell) = self.0.take() {
            // FINISH-2
            let body = bell.body.lock().take();
            drop(body);
        }
    }
}

struct Bell {
    clock: Clock,
    finish_by: Deadline,
    /// `None` when the body is over (FINISH-1).
    body: Mutex<Option<Body>>,
}

struct Body {
    task: raw::Witness<Meta>,
    _alarm: Option<Alarm>,
}

impl Bell {
    fn set(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        // Without a thread it rings if another caller starts one in time.
        let alarm = self.clock.alarm(self.finish_by, &waker);
        let alarm = alarm.unwrap_or_else(|no_thread| no_thread.alarm);
        let mut body = self.body.lock();
        let former = match &mut *body {
            Some(body) => body._alarm.replace(alarm),
            None => Some(alarm),
        };
        drop(body);
        drop(former);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.finish_by.has_passed(self.clock.now()) {
            // FINISH-3
            return self.set();
        }
        let body = self.body.lock();
        if let Some(body) = &*body {
            // Threads that block under a token are ours, and their wakers no user code.
            user_code::except_locks(|| body.task.token().set());
        }
    }
}
