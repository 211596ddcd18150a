use super::*;
use crate::task::{self, CancelReason, TaskHandle};
use std::sync::Arc;

fn tag_task(task: &task::Task, tag: &QueueTag) {
    task.set_tag(Some(tag), ShortTimestamp::from_bits(7));
}

/// How many tombstones `f` leaves of a task with a tag.
fn counted(f: impl FnOnce(task::Task, TaskHandle<()>)) -> usize {
    let tag = QueueTag::allocate(QueueOwner::Engine);
    let before = tag.tombstones();
    let (task, handle) = task::new(|| ());
    tag_task(&task, &tag);
    f(task, handle);
    tag.tombstones() - before
}

#[test]
fn a_task_that_its_handle_empties_is_counted_once_for_its_tag() {
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
    assert_eq!(counted(|_task, handle| handle.run_or_join().unwrap()), 1);
}

#[test]
fn what_is_no_tombstone_in_a_queue_is_not_counted() {
    assert_eq!(counted(|task, _handle| drop(task)), 0);
    let shut_down = |task: task::Task, _| assert!(task.cancel(CancelReason::ShutDown));
    assert_eq!(counted(shut_down), 0);
    assert_eq!(
        counted(|task, handle| {
            let _ = task.run();
            assert!(!handle.cancel());
            assert!(!handle.interrupt());
            handle.run_or_join().unwrap();
        }),
        0
    );
    let (_task, handle) = task::new(|| ());
    assert!(handle.cancel(), "without a tag there is no counter");
}

#[test]
fn a_task_that_runs_is_not_counted_when_it_is_cancelled() {
    let tag = QueueTag::allocate(QueueOwner::Engine);
    let before = tag.tombstones();
    let inside: Arc<millpond_raw::sync::Mutex<Option<TaskHandle<()>>>> = Arc::default();
    let own = Arc::clone(&inside);
    let (task, handle) = task::new(move || {
        let handle = own.lock().take().unwrap();
        assert!(handle.interrupt());
    });
    tag_task(&task, &tag);
    *inside.lock() = Some(handle);
    let _ = task.run();
    assert_eq!(tag.tombstones(), before);
}

#[test]
fn a_task_that_is_run_in_place_is_counted_before_its_body_begins() {
    let tag = Arc::new(QueueTag::allocate(QueueOwner::Engine));
    let (before, inside) = (tag.tombstones(), Arc::clone(&tag));
    let (task, handle) = task::new(move || inside.tombstones() - before);
    tag_task(&task, &tag);
    assert_eq!(handle.run_or_join().unwrap(), 1);
}

fn numbered(number: u32) -> QueueTag {
    QueueTag {
        number,
        is_trusted: false,
        owner: QueueOwner::Engine,
        engine: next_engine(),
        earlier_panics: panics(number),
    }
}

#[test]
fn number_and_stamp_do_not_get_into_each_others_way() {
    // Of a tag that is not given back: it was not taken.
    let tag = std::mem::ManuallyDrop::new(numbered(SHARED));
    let word = TagWord::untagged(false);
    assert_eq!(word.stamp(), None);
    let all = ShortTimestamp::from_bits(u64::MAX);
    word.set(Some(&tag), all);
    assert_eq!((word.stamp(), word.number()), (Some(all), SHARED));
    let before = tag.tombstones();
    word.count_tombstone();
    assert!(tag.tombstones() > before, "others may be there, too");
    word.set(None, all);
    assert_eq!((word.stamp(), word.number()), (Some(all), 0));
    assert!(!word.is_kept());
}

#[test]
fn what_is_kept_stays_so_wherever_it_waits() {
    let tag = QueueTag::allocate(QueueOwner::Engine);
    let word = TagWord::untagged(true);
    assert_eq!((word.stamp(), word.is_kept()), (None, true));
    let stamp = ShortTimestamp::from_bits(1);
    word.set(None, stamp);
    assert_eq!((word.stamp(), word.is_kept()), (Some(stamp), true));
    word.set(Some(&tag), stamp);
    assert!(word.is_kept());
    word.count_tombstone();
    assert_ne!(word.detach(), 0);
    assert!(word.is_kept());
}

/// TAG-1 and TAG-2, on a table of its own.
#[test]
fn each_engine_has_a_number_of_its_own_until_there_are_none_left() {
    let mut numbers = FreeNumbers::new();
    let taken: Vec<_> = (1..SHARED)
        .map(|_| numbers.take(QueueOwner::Engine))
        .collect();
    assert!(taken.iter().all(|(_, is_trusted)| *is_trusted));
    let mut all: Vec<u32> = taken.iter().map(|(number, _)| *number).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), NUMBERS - 2);
    for _ in 0..3 {
        assert_eq!(numbers.take(QueueOwner::Engine), (SHARED, false));
        assert_eq!(numbers.take(QueueOwner::User), (SHARED, false));
    }
    numbers.give_back(SHARED, QueueOwner::Engine);
    numbers.give_back(257, QueueOwner::Engine);
    assert_eq!(numbers.take(QueueOwner::Engine), (257, true));
    assert_eq!(numbers.take(QueueOwner::Engine), (SHARED, false));
}

/// TAG-3 and TAG-4.
#[test]
fn a_number_whose_tasks_may_be_left_is_not_trusted_again_and_goes_to_its_own_kind() {
    let mut numbers = FreeNumbers::new();
    for number in 1..SHARED / 2 {
        assert_eq!(numbers.take(QueueOwner::User), (number, true));
        numbers.give_back(number, QueueOwner::User);
    }
    let (number, is_trusted) = numbers.take(QueueOwner::User);
    assert!(number < SHARED / 2 && !is_trusted);
    // Half of them are left for engines whose numbers can go to any engine.
    assert_eq!(numbers.take(QueueOwner::Engine), (SHARED / 2, true));
}
