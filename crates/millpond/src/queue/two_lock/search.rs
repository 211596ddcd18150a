//! Searching consumers: a pool's worker polls for a moment before it parks (FIFO-7).
//!
//! A lone element takes this path in every round trip, so the path is short. Its consumer has seen `is_ready`,
//! swaps the boxes under both locks, and has stopped searching when it unlocks. It touches the producers' cache
//! line once, at a time when nobody else needs it: the caller waits for the answer.

use super::TwoLock;
use crate::interrupt::Search;
use crate::queue::store::{End, Store};
use crate::queue::wake_list::{WakeList, lock};
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::local;
use millpond_raw::user_code;
use std::cell::Cell;

local! {
    static PUSH_FOR_SELF: Cell<PushForSelf> = Cell::new(PushForSelf::NONE);
}

/// The right of a thread to push one element for itself (FIFO-9).
#[derive(Clone, Copy, PartialEq, Eq)]
struct PushForSelf {
    /// The address of the queue; 0 if there is no right.
    queue: usize,
    /// Whether the thread is pushing, and does nothing else.
    is_pushing: bool,
}

impl PushForSelf {
    const NONE: PushForSelf = PushForSelf {
        queue: 0,
        is_pushing: false,
    };
}

/// The calling thread is about to run user code: what it pushes from now on is for all consumers (FIFO-9).
pub(crate) fn end_push_for_self() {
    PUSH_FOR_SELF.with(|own| own.set(PushForSelf::NONE));
}

/// Runs `push`. If the calling thread may push for itself ([`TwoLock::push_for_self`]), this is that push.
pub(crate) fn pushing_for_self<R>(push: impl FnOnce() -> R) -> R {
    let set = |is_pushing| {
        PUSH_FOR_SELF.with(|own| {
            let queue = own.get().queue;
            own.set(PushForSelf { queue, is_pushing });
        });
    };
    set(true);
    let pushed = push();
    set(false);
    pushed
}

impl<T: Send> TwoLock<T> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Runs `work`, in which the calling consumer may push one element [for itself](pushing_for_self). It then searches.
    pub(in crate::queue) fn push_for_self<R>(&self, work: impl FnOnce() -> R) -> R {
        let queue = self.address();
        PUSH_FOR_SELF.with(|own| {
            own.set(PushForSelf {
                queue,
                is_pushing: false,
            });
        });
        let done = work();
        end_push_for_self();
        done
    }

    /// Uses up the right to push for itself. Returns whether the calling thread had it: then the element that is being
    /// pushed is its own (FIFO-9).
    #[cold]
    pub(super) fn take_push_for_self(&self) -> bool {
        let is_own = PUSH_FOR_SELF.with(Cell::get)
            == PushForSelf {
                queue: self.address(),
                is_pushing: true,
            };
        if is_own {
            end_push_for_self();
        }
        is_own
    }

    /// Searches for an element for a moment (FIFO-7), if that has paid of late. Calls `takes(true)` before each
    /// attempt to take one, and `takes(false)` after an attempt that failed.
    pub(in crate::queue) fn search(&self, end: End, takes: impl Fn(bool)) -> Option<T> {
        let search = Search::begin()?;
        self.inbox.searching_workers.fetch_add(1, Ordering::Relaxed);
        let is_ready = || self.inbox.is_ready.load(Ordering::Relaxed);
        let mut is_counted = true;
        let got = user_code::while_searching(|| {
            let attempt = || {
                takes(true);
                let got = self.poll_searching(end, &mut is_counted);
                if got.is_none() {
                    takes(false);
                }
                got
            };
            search.run(is_ready, attempt, || self.len())
        });
        if is_counted {
            self.stop_searching();
        }
        got
    }

    /// Counts the caller as a searching consumer while `search` runs (FIFO-7), which must not panic.
    pub(in crate::queue) fn as_searching(&self, search: impl FnOnce() -> Option<T>) -> Option<T> {
        self.inbox.searching_workers.fetch_add(1, Ordering::Relaxed);
        let got = user_code::while_searching(search);
        self.stop_searching();
        got
    }

    /// A consumer that has found nothing may leave elements behind as well: it need not return, for instance if
    /// the pool has one worker too many by now.
    fn stop_searching(&self) {
        let mut inbox = lock(&self.inbox.inbox);
        let others = self.inbox.searching_workers.fetch_sub(1, Ordering::Relaxed) - 1;
        self.refresh_taken(&mut inbox);
        let has_more = inbox.has_elements();
        if has_more && others > 0 {
            self.signal_more();
        } else if has_more && inbox.needs_consumer() {
            self.notify_consumer(inbox);
        }
    }

    /// Tells other searching consumers that there is more, even if it is in the outbox, for which the flag is not
    /// set otherwise. Called under the inbox's lock; a consumer that finds the inbox empty clears the flag.
    fn signal_more(&self) {
        self.inbox.is_ready.store(true, Ordering::Relaxed);
    }

    /// Takes an element for a searching consumer. If it swaps the boxes for that, it holds the inbox's lock
    /// anyway, and ends the search at once (FIFO-7).
    fn poll_searching(&self, end: End, is_counted: &mut bool) -> Option<T> {
        let mut outbox = lock(&self.outbox.ring);
        let mut next = None;
        if outbox.len() == 0 {
            let mut inbox = lock(&self.inbox.inbox);
            if !self.refill(&mut inbox, &mut outbox) {
                return None;
            }
            *is_counted = false;
            let others = self.inbox.searching_workers.fetch_sub(1, Ordering::Relaxed) - 1;
            let has_more = outbox.len() > 1;
            if has_more && others > 0 {
                self.signal_more();
            } else if has_more && inbox.needs_consumer() {
                next = inbox.pop_consumer();
            }
        }
        let element = outbox.pop(&self.clock, end)?;
        self.complete_take(outbox, 1);
        if next.is_some() {
            WakeList::of(next.map(|consumer| consumer.waker)).wake();
        }
        Some(element)
    }
}
