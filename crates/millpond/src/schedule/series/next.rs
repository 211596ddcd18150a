//! What comes after a run of a series: another one, another try, or nothing. The rules are in the
//! [module](super).

use super::{Series, State};
use crate::schedule::core::Books;
use crate::schedule::failure::OnFailure;
use crate::schedule::notice::Then;
use crate::schedule::plan::{Catchup, Last, Next, Now};
use crate::schedule::run::Went;
use std::sync::Arc;

impl Series {
    /// What a run that went so means for the series, as far as it is up to the series.
    pub(super) fn after(&self, state: &State, went: &Went) -> Then {
        match (went, self.on_failure) {
            (Went::Ends, _) => Then::Nothing,
            (Went::Well | Went::Lost, _) | (_, OnFailure::Continue) => Then::Next,
            (Went::Failed(_) | Went::Panicked(_), OnFailure::Stop) => Then::Nothing,
            (Went::Failed(_) | Went::Panicked(_), OnFailure::Retry(backoff)) => backoff
                .after(state.failures_in_a_row)
                .map_or(Then::Nothing, Then::RetryIn),
        }
    }

    /// The next run, after one that has settled; `is_lost` if the executor would not have it. Returns whether
    /// somebody must ring for it.
    pub(super) fn goes_on(
        self: &Arc<Self>,
        books: &mut Books,
        state: &mut State,
        then: Then,
        is_lost: bool,
        now: Now,
    ) -> bool {
        if let Then::RetryIn(pause) = then {
            // Instead of what was planned, if something was.
            if !self.takes_back(books, state) {
                return false;
            }
            state.is_retry = true;
            let due = now.instant.checked_add(pause);
            let wall = state.planned.wall;
            let next = due.map_or(Next::Never, |due| Next::At(Last { due, wall }));
            return self.waits_in(books, state, next, now);
        }
        // An executor that refuses one would refuse the others that have gone by, one after the other.
        let catchup = match is_lost && self.catchup == Catchup::All {
            true => Catchup::Skip,
            false => self.catchup,
        };
        if state.key.is_some() || self.plans_ahead() {
            let is_behind = state.key.is_some() && state.planned.due < now.instant;
            let leaves_out = is_behind && !state.is_retry && catchup != self.catchup;
            if !leaves_out || !self.takes_back(books, state) {
                return false;
            }
        }
        let next = self.every.next(catchup, state.last, now);
        self.waits_in(books, state, next, now)
    }

    /// Takes out what was planned, if something was. Returns false if whoever rings has it in its hands already:
    /// that is the next run, and a second entry would be a second series.
    fn takes_back(&self, books: &mut Books, state: &mut State) -> bool {
        let Some(key) = state.key else {
            return true;
        };
        debug_assert!(self.plans_ahead());
        // What is dropped is one of many references to this series, and not the last.
        books.wheel.remove(key).is_some()
    }
}
