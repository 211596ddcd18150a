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
//! - **H3** Only what is in a queue has its home there. A task leaves home once: when its engine gives it
//!   away again, refused or handed back, or when a worker has claimed it to run it in place. Who makes
//!   it leave counts it.
//!
//! # Orderings
//!
//! - `[H-leave]` is explained in [`super::in_place`], where its other end is.
//! - `[H-gone]` Counting releases, reading the count acquires: H2 across threads.

#![allow(
    clippy::disallowed_types,
    reason = "a static outlives every model, and nobody waits for a count that is only a hint"
)]

use crate::time::Stamp;
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

    fn of(number: u32) -> Option<&'static Home> {
        TABLE.get((number as usize).checked_sub(1)?)
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

    /// Whether the present thread is a worker of the engine that this is the home of, and of no other's.
    pub(crate) fn is_here(&self) -> bool {
        super::in_place::is_at(self.number()) && self.engines.load(Ordering::Relaxed) == 1
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Counts a task that has just been emptied, at the home of this number (H2).
    pub(super) fn count_at(number: u32) {
        if let Some(home) = Home::of(number) {
            home.count();
        }
    }

    fn count(&self) {
        // [H-gone] unmodelled: a static outlives every model, so no checker sees it
        self.gone.fetch_add(1, Ordering::Release);
    }
}

/// Where a task waits and since when, in one word: the number of its home, a mark, and a stamp; and
/// whether it is kept under overload, which is said when it is made and never changes.
///
/// Home and stamp are what they say; all three together are how an engine knows the task again.
/// ```text
///   63      55   54   53    48 47                     0
///   [  home   ][kept][  mark  ][         stamp         ]
/// ```
#[derive(Debug)]
pub(super) struct Address {
    word: cell::AtomicU64,
}

const KEPT: u64 = 1 << (Stamp::BITS + Mark::BITS);
const HOME_SHIFT: u32 = Stamp::BITS + Mark::BITS + 1;

const NO_HOME: u64 = (1 << HOME_SHIFT) - 1;

/// Tells tasks of different threads apart where stamps do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u8);

impl Mark {
    const BITS: u32 = 6;

    pub(crate) fn of(number: usize) -> Self {
        Mark((number % (1 << Mark::BITS)) as u8)
    }
}

impl Address {
    pub(super) fn none(is_kept: bool) -> Self {
        Address {
            word: cell::AtomicU64::new(if is_kept { KEPT } else { 0 }),
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.word() & KEPT != 0
    }

    /// Relaxed: whoever empties a task that is in no queue yet leaves a shell that its engine sees, for
    /// it still has it in its hands.
    #[inline]
    pub(super) fn set(&self, home: Option<&'static Home>, mark: Mark, stamp: Stamp) {
        let number = home.map_or(0, |home| u64::from(home.number));
        let kept = self.word() & KEPT;
        let word = number << HOME_SHIFT | kept | u64::from(mark.0) << Stamp::BITS | stamp.bits();
        self.word.store(word, cell::Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word.load(cell::Ordering::Relaxed)
    }

    /// The number of its home; 0 if it has none.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        (self.word() >> HOME_SHIFT) as u32
    }

    /// Whether its home is that of one engine and no other. Whoever knows a task knows of the engine
    /// that has it, so a count of one, read after the number, is that engine's.
    pub(super) fn is_one_engines(&self) -> bool {
        let home = Home::of(self.number());
        home.is_some_and(|home| home.engines.load(Ordering::Relaxed) == 1)
    }

    /// Its engine gives it away (H3). Returns the number of the home that it has left by this; 0 if it
    /// had left before, or had none.
    pub(super) fn is_given_away(&self) -> u32 {
        // Most that are given away were refused at the door and never had one.
        // [H-leave] unmodelled: homes are statics, which models do not see
        if self.word.load(cell::Ordering::Acquire) <= NO_HOME {
            return 0;
        }
        // [H-leave] unmodelled: homes are statics, which models do not see
        let before = self.word.fetch_and(NO_HOME, cell::Ordering::Acquire);
        (before >> HOME_SHIFT) as u32
    }

    /// A worker of its engine has claimed it (H3). Returns what [`is_given_away`](Address::is_given_away)
    /// does.
    pub(super) fn is_claimed_at_home(&self) -> u32 {
        // [H-leave] unmodelled: homes are statics, which models do not see
        let before = self.word.fetch_and(NO_HOME, cell::Ordering::Release);
        (before >> HOME_SHIFT) as u32
    }

    /// Since when it waits; `None` if no engine has it.
    #[inline]
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let word = self.word();
        (word & !KEPT != 0).then(|| Stamp::from_bits(word))
    }

    /// Counts a task that has just been emptied (H2).
    pub(super) fn count_gone(&self) {
        Home::count_at(self.number());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{self, CancelReason, TaskHandle};
    use std::sync::Arc;

    fn settle(task: &task::Task, home: &'static Home) {
        task.settle(Some(home), Mark::default(), Stamp::from_bits(7));
    }

    /// What `f` does to a task that is at home somewhere, and how many were counted there.
    fn counted(f: impl FnOnce(task::Task, TaskHandle<()>)) -> usize {
        let home = Home::take();
        let before = home.gone();
        let (task, handle) = task::new(|| ());
        settle(&task, home);
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
        settle(&task, home);
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
        settle(&task, home);
        assert_eq!(handle.join_here().unwrap(), 1);
        home.give_back();
    }

    #[test]
    fn home_mark_and_stamp_do_not_get_into_each_others_way() {
        let home = &TABLE[HOMES - 1];
        let address = Address::none(false);
        assert_eq!(address.stamp(), None);
        let all = Stamp::from_bits(u64::MAX);
        address.set(Some(home), Mark::of(usize::MAX), all);
        assert_eq!(address.stamp(), Some(all));
        let before = home.gone();
        address.count_gone();
        assert_eq!(home.gone(), before + 1);
        let word = address.word();
        address.set(Some(home), Mark::of(1), all);
        assert_ne!(address.word(), word);
        address.set(None, Mark::of(usize::MAX), all);
        address.count_gone();
        assert_eq!(home.gone(), before + 1);
        assert!(!address.is_kept());
    }

    #[test]
    fn what_is_kept_stays_so_wherever_it_waits() {
        let address = Address::none(true);
        assert_eq!((address.stamp(), address.is_kept()), (None, true));
        let stamp = Stamp::from_bits(1);
        address.set(None, Mark::default(), stamp);
        assert_eq!((address.stamp(), address.is_kept()), (Some(stamp), true));
        address.set(Some(&TABLE[0]), Mark::default(), stamp);
        assert!(address.is_kept());
        let before = TABLE[0].gone();
        address.count_gone();
        assert!(TABLE[0].gone() > before, "others may be there, too");
    }

    #[test]
    fn engines_share_homes_only_when_there_are_more_of_them_than_homes() {
        let engines: Vec<_> = (0..HOMES + 1).map(|_| Home::take()).collect();
        let most = engines
            .iter()
            .map(|home| home.engines.load(Ordering::Relaxed));
        assert_eq!(most.max(), Some(2));
        // Whose a task in a shared home is nobody knows.
        let address = Address::none(false);
        let shared = engines
            .iter()
            .find(|home| home.engines.load(Ordering::Relaxed) == 2);
        address.set(shared.copied(), Mark::default(), Stamp::from_bits(7));
        assert!(!address.is_one_engines());
        engines.into_iter().for_each(Home::give_back);
    }
}
