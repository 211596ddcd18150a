//! Keeping the timer's thread for what has been accepted: K9 in the [module](super).

use super::core::{Books, Core};
use crate::executor::{RejectReason, TimerThread};
use crate::time::Deadline;
use millpond_raw::sync::MutexGuard;

impl Core {
    /// Whether something that is due then will have to wait for its time; what is never due does not.
    pub(super) fn waits_for(&self, due: Deadline) -> bool {
        due != Deadline::NEVER && !due.has_passed(self.clock.now())
    }

    /// The books of a pool that holds the timer's thread, or has been shut down meanwhile. `carried` is how
    /// many are in the bag.
    ///
    /// # Errors
    ///
    /// Why nothing is taken: the pool objects to it, or the thread cannot be had.
    #[cold]
    pub(super) fn books_with_timer(
        &self,
        carried: usize,
    ) -> Result<MutexGuard<'static, Books>, RejectReason> {
        let objection = self.books().objection(carried);
        if let Some(reason) = objection {
            return Err(reason);
        }
        // The factory may be the user's, so it is not asked under the lock (K6).
        let hold = self.clock.hold_timer().map_err(TimerThread::failed)?;
        let mut books = self.books();
        if books.hold.is_some() || books.ward.is_none() {
            drop(books);
            drop(hold);
            return Ok(self.books());
        }
        books.hold = Some(hold);
        Ok(books)
    }
}
