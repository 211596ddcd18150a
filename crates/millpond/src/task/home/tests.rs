use super::*;
use crate::task::{self, CancelReason, TaskHandle};
use std::sync::Arc;

fn settle(task: &task::Task, home: &Home) {
    task.settle(Some(home), Stamp::from_bits(7));
}

/// What `f` does to a task that is at home somewhere, and how many were counted there.
fn counted(f: impl FnOnce(task::Task, TaskHandle<()>)) -> usize {
    let home = Home::take(Kind::Ours);
    let before = home.gone();
    let (task, handle) = task::new(|| ());
    settle(&task, &home);
    f(task, handle);
    home.gone() - before
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
    let home = Home::take(Kind::Ours);
    let before = home.gone();
    let inside: Arc<millpond_raw::sync::Mutex<Option<TaskHandle<()>>>> = Arc::default();
    let own = Arc::clone(&inside);
    let (task, handle) = task::new(move || {
        let handle = own.lock().take().unwrap();
        assert!(handle.interrupt());
    });
    settle(&task, &home);
    *inside.lock() = Some(handle);
    let _ = task.run();
    assert_eq!(home.gone(), before);
}

#[test]
fn a_task_that_is_run_in_place_is_counted_before_its_body_begins() {
    let home = Arc::new(Home::take(Kind::Ours));
    let (before, inside) = (home.gone(), Arc::clone(&home));
    let (task, handle) = task::new(move || inside.gone() - before);
    settle(&task, &home);
    assert_eq!(handle.join_here().unwrap(), 1);
}

fn numbered(number: u32) -> Home {
    Home {
        number,
        is_trusted: false,
        kind: Kind::Ours,
        engine: next_engine(),
    }
}

#[test]
fn number_and_stamp_do_not_get_into_each_others_way() {
    // Of a home that is not given back: it was not taken.
    let home = std::mem::ManuallyDrop::new(numbered(SHARED));
    let address = Address::none(false);
    assert_eq!(address.stamp(), None);
    let all = Stamp::from_bits(u64::MAX);
    address.set(Some(&home), all);
    assert_eq!((address.stamp(), address.number()), (Some(all), SHARED));
    let before = home.gone();
    address.count_gone();
    assert!(home.gone() > before, "others may be there, too");
    address.set(None, all);
    assert_eq!((address.stamp(), address.number()), (Some(all), 0));
    assert!(!address.is_kept());
}

#[test]
fn what_is_kept_stays_so_wherever_it_waits() {
    let home = Home::take(Kind::Ours);
    let address = Address::none(true);
    assert_eq!((address.stamp(), address.is_kept()), (None, true));
    let stamp = Stamp::from_bits(1);
    address.set(None, stamp);
    assert_eq!((address.stamp(), address.is_kept()), (Some(stamp), true));
    address.set(Some(&home), stamp);
    assert!(address.is_kept());
    address.count_gone();
    assert_ne!(address.is_given_away(), 0);
    assert!(address.is_kept());
}

/// N1 and N2, on a table of its own.
#[test]
fn each_engine_has_a_number_of_its_own_until_there_are_none_left() {
    let mut numbers = Numbers::new();
    let taken: Vec<_> = (1..SHARED).map(|_| numbers.take(Kind::Ours)).collect();
    assert!(taken.iter().all(|(_, is_trusted)| *is_trusted));
    let mut all: Vec<u32> = taken.iter().map(|(number, _)| *number).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), NUMBERS - 2);
    for _ in 0..3 {
        assert_eq!(numbers.take(Kind::Ours), (SHARED, false));
        assert_eq!(numbers.take(Kind::Foreign), (SHARED, false));
    }
    numbers.give_back(SHARED, Kind::Ours);
    numbers.give_back(257, Kind::Ours);
    assert_eq!(numbers.take(Kind::Ours), (257, true));
    assert_eq!(numbers.take(Kind::Ours), (SHARED, false));
}

/// N3 and N4.
#[test]
fn a_number_whose_tasks_may_be_left_is_not_trusted_again_and_goes_to_its_own_kind() {
    let mut numbers = Numbers::new();
    for number in 1..SHARED / 2 {
        assert_eq!(numbers.take(Kind::Foreign), (number, true));
        numbers.give_back(number, Kind::Foreign);
    }
    let (number, is_trusted) = numbers.take(Kind::Foreign);
    assert!(number < SHARED / 2 && !is_trusted);
    // Half of them are left for those who can give them back to anybody.
    assert_eq!(numbers.take(Kind::Ours), (SHARED / 2, true));
}
