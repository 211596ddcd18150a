//! Where a task waits to be run, as far as its handles need to know: a counter that they can reach.
//!
//! A task that is cancelled while it is in a queue leaves an empty shell there, until its turn comes or
//! somebody clears it out; so does one that a waiter runs in place. Clearing out means walking the
//! queue, which is worth it only if there are shells. So an engine with a queue has a home and tells
//! it to every task that it takes in, and each handle that empties a task counts it there. An engine
//! whose queue is full looks at its count before it walks.
//!
//! Homes are statics, a fixed number of them, and a task knows its home by number. So a task may outlive
//! its engine and still count, which harms nobody, and nothing has to be kept alive for it. If there
//! are more engines than homes they share them, and now and then one walks its queue for the shells of
//! another.
//!
//! # Rules
//!
//! - **H1** The count only goes up. An engine remembers what it has seen, and reads the count *before*
//!   it walks: what is counted during the walk is a reason for the next one.
//! - **H2** A handle empties first and counts second. So whoever sees the count finds the shell.
//!
//! # Orderings
//!
//! - `[H-gone]` Counting releases, reading the count acquires: H2 across threads.

#![allow(
    clippy::disallowed_types,
    reason = "a static outlives every model, and nobody waits for a count that is only a hint"
)]

use millpond_raw::sync::atomic as cell;
use std::sync::atomic::{AtomicUsize, Ordering};

const HOMES: usize = 256;

static TABLE: [Home; HOMES] = table();

const fn table() -> [Home; HOMES] {
    let mut table = [const { Home::new() }; HOMES];
    let mut index = 0;
    while index < HOMES {
        table[index].number = index as u32 + 1;
        index += 1;
    }
    table
}

/// How many tasks of an engine were emptied by their handles before the engine could start them.
#[derive(Debug)]
pub(crate) struct Home {
    /// From 1: a task without a home has 0.
    number: u32,
    engines: AtomicUsize,
    gone: AtomicUsize,
}

impl Home {
    const fn new() -> Self {
        Home {
            number: 0,
            engines: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
        }
    }

    /// A home that no other engine has, or one that as few as possible have.
    pub(crate) fn take() -> &'static Home {
        // Relaxed: nothing is handed over with a home.
        let mut sharing = 0;
        loop {
            let free = TABLE.iter().find(|home| {
                let taken = sharing + 1;
                home.engines
                    .compare_exchange(sharing, taken, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            });
            match free {
                Some(home) => return home,
                None => sharing += 1,
            }
        }
    }

    /// Ends what [`take`](Home::take) began. Tasks may go on knowing it.
    pub(crate) fn give_back(&self) {
        self.engines.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many have gone so far (H1).
    pub(crate) fn gone(&self) -> usize {
        // [H-gone] unmodelled: a static outlives every model, so no checker sees it
        self.gone.load(Ordering::Acquire)
    }

    fn count(&self) {
        // [H-gone] unmodelled: a static outlives every model, so no checker sees it
        self.gone.fetch_add(1, Ordering::Release);
    }
}

/// The home of a task, if it has one; and a mark by which its engine knows it again.
#[derive(Debug)]
pub(super) struct Address {
    home: cell::AtomicU32,
    mark: cell::AtomicU32,
}

impl Address {
    pub(super) fn none() -> Self {
        Address {
            home: cell::AtomicU32::new(0),
            mark: cell::AtomicU32::new(0),
        }
    }

    /// The mark is set by an engine before it puts the task into a queue, and read by it alone.
    pub(super) fn set_mark(&self, mark: u32) {
        self.mark.store(mark, cell::Ordering::Relaxed);
    }

    pub(super) fn mark(&self) -> u32 {
        self.mark.load(cell::Ordering::Relaxed)
    }

    /// Relaxed: whoever empties a task that is in no queue yet leaves a shell that its engine sees, for
    /// it still has it in its hands.
    pub(super) fn set(&self, home: &'static Home) {
        self.home.store(home.number, cell::Ordering::Relaxed);
    }

    /// Counts a task that has just been emptied (H2).
    pub(super) fn count_gone(&self) {
        let number = self.home.load(cell::Ordering::Relaxed) as usize;
        if let Some(home) = number.checked_sub(1).and_then(|index| TABLE.get(index)) {
            home.count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{self, CancelReason, TaskHandle};
    use std::sync::Arc;

    /// What `f` does to a task that is at home somewhere, and how many were counted there.
    fn counted(f: impl FnOnce(task::Task, TaskHandle<()>)) -> usize {
        let home = Home::take();
        let before = home.gone();
        let (task, handle) = task::new(|| ());
        task.set_home(home);
        f(task, handle);
        let counted = home.gone() - before;
        home.give_back();
        counted
    }

    #[test]
    fn a_task_that_its_handle_empties_is_counted_once_at_its_home() {
        assert_eq!(counted(|_task, handle| assert!(handle.cancel())), 1);
        assert_eq!(counted(|_task, handle| assert!(handle.interrupt())), 1);
        assert_eq!(counted(|_task, handle| handle.abandon()), 1);
        assert_eq!(counted(|_task, handle| drop(handle.abort_on_drop())), 1);
        assert_eq!(
            counted(|_task, handle| {
                let shared = handle.shared();
                assert!(shared.cancel());
                assert!(!shared.clone().interrupt(), "it was cancelled before");
            }),
            1
        );
        assert_eq!(
            counted(|_task, handle| assert!(handle.shared().interrupt())),
            1
        );
        assert_eq!(counted(|_task, handle| handle.join_here().unwrap()), 1);
    }

    #[test]
    fn what_is_no_shell_in_a_queue_is_not_counted() {
        assert_eq!(counted(|task, _handle| drop(task)), 0);
        let shut_down = |task: task::Task, _| assert!(task.cancel(CancelReason::ShutDown));
        assert_eq!(counted(shut_down), 0);
        assert_eq!(
            counted(|task, handle| {
                let _ = task.run();
                assert!(!handle.cancel());
                assert!(!handle.interrupt());
                handle.join_here().unwrap();
            }),
            0
        );
        let (_task, handle) = task::new(|| ());
        assert!(handle.cancel(), "without a home there is nobody to tell");
    }

    #[test]
    fn a_task_that_runs_is_not_counted_when_it_is_cancelled() {
        let home = Home::take();
        let before = home.gone();
        let inside: Arc<millpond_raw::sync::Mutex<Option<TaskHandle<()>>>> = Arc::default();
        let own = Arc::clone(&inside);
        let (task, handle) = task::new(move || {
            let handle = own.lock().take().unwrap();
            assert!(handle.interrupt());
        });
        task.set_home(home);
        *inside.lock() = Some(handle);
        let _ = task.run();
        assert_eq!(home.gone(), before);
        home.give_back();
    }

    #[test]
    fn a_task_that_is_run_in_place_is_counted_before_its_body_begins() {
        let home = Home::take();
        let before = home.gone();
        let (task, handle) = task::new(move || home.gone() - before);
        task.set_home(home);
        assert_eq!(handle.join_here().unwrap(), 1);
        home.give_back();
    }

    #[test]
    fn engines_share_homes_only_when_there_are_more_of_them_than_homes() {
        let engines: Vec<_> = (0..HOMES + 1).map(|_| Home::take()).collect();
        let most = engines
            .iter()
            .map(|home| home.engines.load(Ordering::Relaxed));
        assert_eq!(most.max(), Some(2));
        engines.into_iter().for_each(Home::give_back);
    }
}
