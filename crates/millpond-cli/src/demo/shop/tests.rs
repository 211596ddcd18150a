//! The whole shop, with real pools and threads.

use std::time::Duration;

use millpond::interrupt;
use millpond::manage::Patch;

use super::super::policy::Policy;
use super::*;

const SEED: u64 = 7;

/// Waits until it holds; the test fails if it never does.
fn until(what: &str, holds: impl Fn() -> bool) {
    let clock = Clock::system();
    let deadline = clock.deadline(Duration::from_secs(60));
    while !holds() {
        assert!(
            !deadline.has_passed(clock.now()),
            "waited in vain until {what}"
        );
        interrupt::sleep(Duration::from_millis(2)).unwrap();
    }
}

fn close(mut shop: Shop) -> Books {
    shop.shut_doors();
    assert!(shop.wait_until_empty(Duration::from_secs(60)));
    assert_eq!(shop.inside(), 0);
    shop.books()
}

#[test]
fn everything_that_comes_is_done_when_there_is_room() {
    let shop = Shop::open(SEED, 100).unwrap();
    for department in &shop.departments {
        let name = department.pool.name();
        until(name, || department.counts().came >= 3);
    }
    let books = close(shop);
    assert!(books.balanced, "{books:?}");
    for page in &books.pools {
        assert_eq!(page.counts.done + page.counts.rejected, page.counts.came);
    }
}

#[test]
fn the_books_balance_whatever_becomes_of_what_is_too_much() {
    let shop = Shop::open(SEED, MOST_LOAD).unwrap();
    for department in &shop.departments {
        let least = Patch::new().core(1).max(1).capacity(1);
        department.pool.apply(&least).unwrap();
    }
    for policy in Policy::ALL {
        if policy == Policy::NewThread {
            shop.expect_extra_threads();
        }
        for department in &shop.departments {
            department.pool.set_rejection(policy.rejection());
        }
        let orders = &shop.departments[0];
        let before = orders.counts();
        until(&format!("twenty have come under {policy}"), || {
            let now = orders.counts();
            now.came + now.gave_up >= before.came + before.gave_up + 20
        });
    }
    let books = close(shop);
    assert!(books.balanced, "{books:?}");
    let orders = books.pools[0].counts;
    assert!(orders.rejected > 0 && orders.dropped > 0, "{orders:?}");
}

#[test]
fn nobody_comes_during_a_pause_and_they_come_again_afterwards() {
    let shop = Shop::open(SEED, MOST_LOAD).unwrap();
    let orders = &shop.departments[0];
    let came = || orders.counts().came + orders.counts().gave_up;
    until("somebody has come", || came() > 0);
    shop.sluice.pause_or_go_on();
    let stopped_at = shop.sluice.time();
    // The plan has arrivals until then, and a door that is late lets them in during the pause.
    let (_, mut source) = menu::departments(SEED, shop.tide).unwrap().remove(0);
    let load = f64::from(MOST_LOAD) / 100.0;
    let planned = source.plan(stopped_at, load).len() as u64;
    until("those have come", || came() >= planned);
    until("they have left", || shop.inside() == 0);
    assert_eq!((came(), shop.sluice.time()), (planned, stopped_at));
    shop.sluice.pause_or_go_on();
    until("others come", || came() > planned);
}

#[test]
fn a_shop_that_is_stopped_drops_queued_tasks_and_accounts_for_them() {
    let shop = Shop::open(SEED, MOST_LOAD).unwrap();
    for department in &shop.departments {
        let crowded = Patch::new().core(1).max(1).capacity(10_000);
        department.pool.apply(&crowded).unwrap();
    }
    let orders = shop.departments[0].pool.clone();
    until("some wait", || orders.snapshot().queued > 20);
    shop.stop();
    let books = close(shop);
    assert!(books.balanced, "{books:?}");
    assert!(books.pools[0].counts.dropped > 0, "{books:?}");
}

#[test]
fn a_door_that_breaks_down_is_in_the_books() {
    struct Broken;
    impl visits::Source for Broken {
        fn plan(&mut self, _until: Duration, _load: f64) -> Vec<visits::Visit> {
            // Without the message on the screen that a panic would have.
            std::panic::resume_unwind(Box::new("the hinge"))
        }
    }
    let mut shop = Shop::open(SEED, 100).unwrap();
    let door = Door {
        department: shop.departments[0].clone(),
        sluice: Arc::clone(&shop.sluice),
        source: Box::new(Broken),
    };
    let threads = Threads::named("broken");
    let broken = threads.start(Box::new(move || door.attend())).unwrap();
    shop.doors.insert(0, broken);
    shop.sluice.close();
    shop.doors.remove(1).join().unwrap();
    let books = close(shop);
    assert!(!books.balanced);
    assert!(books.pools[0].wrong[0].starts_with("its door has panicked"));
}
