//! The guard of `user_code` itself: planted violations are caught, and what is allowed is not.
//!
//! A violation aborts, so each is planted in a child process: this program again, with a variable that tells
//! the test to break the rule.

#![cfg(all(
    feature = "user-code-guard",
    debug_assertions,
    not(any(millpond_loom, millpond_shuttle))
))]
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads beside what it tests"
)]

use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::user_code::{self, Kind, except_locks, under_own_locks};
use millpond_raw::{catch_panic, task};
use std::process::{Command, Output};
use std::task::Waker;

const PLANT: &str = "MILLPOND_TEST_PLANT";

/// Runs the named test again in a process in which [`planted`] is true.
fn again(test: &str, plant: &str, only_report: bool) -> Output {
    let mut program = Command::new(std::env::current_exe().expect("this program has a path"));
    program.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    program.env(PLANT, plant).env_remove("MILLPOND_USER_CODE");
    if only_report {
        program.env("MILLPOND_USER_CODE", "report");
    }
    program.output().expect("this program can be started")
}

fn planted() -> Option<String> {
    std::env::var(PLANT).ok()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that it was aborted, and printed these texts.
#[track_caller]
fn assert_caught(output: &Output, texts: &[&str]) {
    let text = text(output);
    assert!(!output.status.success(), "it was not caught:\n{text}");
    for expected in texts {
        assert!(
            text.contains(expected),
            "it did not print `{expected}`:\n{text}"
        );
    }
}

#[test]
fn a_call_under_a_lock_is_caught_with_the_place_where_the_lock_was_taken() {
    type Call = fn();
    let calls: [(&str, Call); 9] = [
        ("Closure", || drop(task::detached(|| (), ()).run())),
        ("Destructor", || catch_panic::drop(1)),
        ("Destructor", || drop(task::detached(|| (), ()))),
        ("Contained", || assert!(catch_panic::call(|| ()).is_some())),
        ("Waker", || catch_panic::wake(Waker::noop().clone())),
        ("Waker", || catch_panic::drop_waker(Waker::noop().clone())),
        ("Wait", || {
            let here = park::current();
            here.waker().wake();
            here.park(Site::new("test.wait"));
        }),
        ("Hook", || user_code::check(Kind::Hook)),
        // A violation is not a panic that could be contained.
        ("Hook", || {
            except_locks(|| {
                let inner = Mutex::new(());
                let _held = inner.lock();
                let _ = std::panic::catch_unwind(|| user_code::check(Kind::Hook));
            });
        }),
    ];
    if let Some(plant) = planted() {
        let (_, call) = calls[plant.parse::<usize>().expect("it is a number")];
        call_under_a_lock(call);
        return;
    }
    for (number, (kind, _)) in calls.iter().enumerate() {
        let test = "a_call_under_a_lock_is_caught_with_the_place_where_the_lock_was_taken";
        let output = again(test, &number.to_string(), false);
        let said = [
            &format!("user code ({kind})"),
            "under the lock that was taken at",
            file!(),
        ];
        assert_caught(&output, &said.map(|words: &str| words));
    }
}

fn call_under_a_lock(call: fn()) {
    let lock = Mutex::new(());
    let _held = lock.lock();
    call();
}

#[test]
fn user_code_on_a_timers_thread_is_caught_and_waking_is_not() {
    if let Some(plant) = planted() {
        let _marked = user_code::mark_timer_thread();
        match plant.as_str() {
            "destructor" => catch_panic::drop(1),
            "body" => drop(task::detached(|| (), ()).run()),
            "queue" => user_code::check(Kind::Queue),
            "comparator" => under_own_locks(1, || ()),
            _ => {
                catch_panic::wake(Waker::noop().clone());
                catch_panic::drop_waker(Waker::noop().clone());
                let _ = catch_panic::call(|| ());
            }
        }
        return;
    }
    let test = "user_code_on_a_timers_thread_is_caught_and_waking_is_not";
    for plant in ["destructor", "body", "queue", "comparator"] {
        assert_caught(&again(test, plant, false), &["on the timer's thread"]);
    }
    let output = again(test, "wake", false);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn user_code_on_a_thread_that_counts_as_searching_is_caught_and_waking_is_not() {
    if let Some(plant) = planted() {
        user_code::while_searching(|| match plant.as_str() {
            "factory" => user_code::check(Kind::Factory),
            "destructor" => catch_panic::drop(1),
            _ => catch_panic::wake(Waker::noop().clone()),
        });
        user_code::check(Kind::Factory);
        return;
    }
    let test = "user_code_on_a_thread_that_counts_as_searching_is_caught_and_waking_is_not";
    for plant in ["factory", "destructor"] {
        let output = again(test, plant, false);
        assert_caught(&output, &["on a thread that counts as searching"]);
    }
    let output = again(test, "wake", false);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_thread_whose_timer_mark_is_removed_may_call_again() {
    drop(user_code::mark_timer_thread());
    user_code::check(Kind::Queue);
}

#[test]
fn released_locks_do_not_count_in_whatever_order_they_were_released() {
    let locks: [Mutex<()>; 20] = std::array::from_fn(|_| Mutex::new(()));
    for step in [1, 3, 7, 19] {
        let mut held: Vec<_> = locks.iter().map(|lock| Some(lock.lock())).collect();
        for turn in 0..20 {
            held[turn * step % 20].take();
        }
        assert!(locks.iter().all(|lock| lock.try_lock().is_some()));
        user_code::check(Kind::Closure);
    }
    let other = Mutex::new(());
    std::thread::scope(|scope| {
        let held = other.lock();
        // A lock counts in the thread that holds it.
        let called = scope.spawn(|| user_code::check(Kind::Closure)).join();
        assert!(called.is_ok());
        drop(held);
    });
}

#[test]
fn a_lock_held_by_another_thread_does_not_count_for_one_that_tries_it() {
    let lock = Mutex::new(());
    std::thread::scope(|scope| {
        let held = lock.lock();
        let tried = scope.spawn(|| {
            assert!(lock.try_lock().is_none());
            user_code::check(Kind::Closure);
        });
        assert!(tried.join().is_ok());
        drop(held);
    });
}

#[test]
fn a_comparator_runs_under_its_own_lock_and_under_no_other() {
    let [outer, own, further] = [(); 3].map(Mutex::new);
    if let Some(plant) = planted() {
        let _outer = (plant == "outer").then(|| outer.lock());
        let _own = own.lock();
        under_own_locks(1, || {
            user_code::check(Kind::Closure);
            let _further = (plant == "further").then(|| further.lock());
            user_code::check(Kind::Closure);
        });
        user_code::check(Kind::Closure);
        return;
    }
    let test = "a_comparator_runs_under_its_own_lock_and_under_no_other";
    for plant in ["outer", "further", "own"] {
        assert_caught(&again(test, plant, false), &["user code (C"]);
    }
    {
        let _own = own.lock();
        under_own_locks(1, || user_code::check(Kind::Closure));
        assert!(quiet_panic(|| under_own_locks(1, || {
            std::panic::resume_unwind(Box::new(()))
        })));
    }
    user_code::check(Kind::Closure);
}

/// Whether it panicked. Not by `catch_panic::call`, which checks itself.
fn quiet_panic(f: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err()
}

#[test]
fn report_mode_lists_all_violations() {
    if planted().is_some() {
        let lock = Mutex::new(());
        let held = lock.lock();
        catch_panic::drop(1);
        catch_panic::wake(Waker::noop().clone());
        drop(held);
        return;
    }
    let output = again("report_mode_lists_all_violations", "both", true);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("millpond: user code").count(), 2, "{text}");
}
