use super::*;
use crate::engine::metrics::label_cache::{LabelCache, MAX_NAMES};
use crate::task::TaskSpec;
use crate::time::ManualClock;

fn named(name: &str) -> Task {
    TaskSpec::new().name(name.to_owned()).build_detached(|| ())
}

fn id_of(names: &LabelTable, task: &Task) -> LabelId {
    names.id_of(task.name(), task.location())
}

#[test]
fn one_name_is_one_number_wherever_its_text_is_kept() {
    let (names, cache) = (LabelTable::new(10), LabelCache::new());
    let first = cache.id_of(&names, &named("flour"));
    let second = cache.id_of(&names, &named("bread"));
    assert_ne!(first, second);
    assert_eq!(cache.id_of(&names, &named("flour")), first);
    assert_eq!(id_of(&names, &named("bread")), second);
    assert_eq!(names.label(second).to_string(), "bread");
}

#[test]
fn a_task_without_a_name_counts_under_its_place() {
    let (names, cache) = (LabelTable::new(10), LabelCache::new());
    let make = || TaskSpec::new().build_detached(|| ());
    let (one, other) = (make(), make());
    let elsewhere = TaskSpec::new().build_detached(|| ());
    let id = cache.id_of(&names, &one);
    assert_eq!(cache.id_of(&names, &other), id);
    assert_ne!(cache.id_of(&names, &elsewhere), id);
    let label = names.label(id).to_string();
    assert!(label.starts_with("label_table/tests.rs:"), "{label}");
}

#[test]
fn refusals_are_counted_under_the_same_names() {
    let names = LabelTable::new(10);
    let place = || TaskSpec::new().build_detached(|| ());
    for _ in 0..3 {
        let id = names.id_of_rejected(&place());
        assert_eq!(id, id_of(&names, &place()));
        assert_ne!(id, LabelId::OTHERS);
    }
    let flour = names.id_of_rejected(&named("flour"));
    assert_eq!(flour, id_of(&names, &named("flour")));
    assert_ne!(flour, LabelId::OTHERS);
}

#[test]
fn a_text_that_is_the_beginning_of_another_is_a_name_of_its_own() {
    const WHOLE: &str = "flourish";
    let (names, cache) = (LabelTable::new(10), LabelCache::new());
    let fixed = |name| TaskSpec::new().name(name).build_detached(|| ());
    let long = cache.id_of(&names, &fixed(WHOLE));
    let short = cache.id_of(&names, &fixed(&WHOLE[..5]));
    assert_ne!(long, short);
    assert_eq!(names.label(short).to_string(), "flour");
}

#[test]
fn there_are_only_so_many_names_and_the_rest_are_others() {
    let (names, cache) = (LabelTable::new(2), LabelCache::new());
    let ids: Vec<_> = ["one", "two", "three", "four", "one"]
        .map(|name| cache.id_of(&names, &named(name)))
        .to_vec();
    assert_eq!(ids[2], LabelId::OTHERS);
    assert_eq!(ids[3], LabelId::OTHERS);
    assert_eq!(ids[4], ids[0]);
    assert_eq!(names.all().len(), names.len());
}

#[test]
fn names_made_anew_for_every_task_are_not_taken_for_each_other() {
    let (names, cache) = (LabelTable::new(4), LabelCache::new());
    for number in 0..3 * MAX_NAMES {
        // Each text is freed at the end of its turn, and its memory used for the next.
        let name = ["one", "two", "six"][number % 3];
        let id = cache.id_of(&names, &named(name));
        assert_eq!(names.label(id).to_string(), name);
    }
    assert!(cache.names_len() <= MAX_NAMES);
}

/// A table with places for four, which were all asked for, in this order, and by the time it returns not for
/// more than a minute; and a newcomer has been turned away.
fn idle_for_a_minute() -> LabelTable {
    let (names, start) = (LabelTable::new(4), ManualClock::new().clock().now());
    for name in ["one", "two", "three", "four", "two", "newcomer"] {
        id_of(&names, &named(name));
    }
    names.renew(start, &[], |_| 0);
    assert_eq!(id_of(&names, &named("newcomer")), LabelId::OTHERS);
    names.renew(start + IDLE, &[], |_| 0);
    names
}

fn labels(names: &LabelTable) -> Vec<String> {
    let known = names.all().into_iter();
    known.map(|known| known.label.to_string()).collect()
}

#[test]
fn a_newcomer_takes_the_place_of_the_least_recently_used_name_and_of_no_other() {
    let names = idle_for_a_minute();
    let all = ["(others)", "one", "two", "three", "four"];
    assert_eq!(labels(&names), all, "no newcomer needs a place yet");
    for (newcomer, after) in [
        ("five", ["(others)", "five", "two", "three", "four"]),
        ("six", ["(others)", "five", "two", "six", "four"]),
        ("seven", ["(others)", "five", "two", "six", "seven"]),
        ("eight", ["(others)", "five", "eight", "six", "seven"]),
    ] {
        assert_ne!(id_of(&names, &named(newcomer)), LabelId::OTHERS);
        assert_eq!(labels(&names), after);
    }
    assert_eq!(
        id_of(&names, &named("nine")),
        LabelId::OTHERS,
        "all are new"
    );
    assert_eq!(names.all()[0].labels, 4);
}

#[test]
fn a_name_that_is_used_again_in_time_keeps_its_place() {
    let names = idle_for_a_minute();
    let ids = ["one", "three"].map(|name| id_of(&names, &named(name)));
    id_of(&names, &named("five"));
    id_of(&names, &named("six"));
    assert_eq!(labels(&names), ["(others)", "one", "six", "three", "five"]);
    assert_eq!(
        ids,
        ["one", "three"].map(|name| id_of(&names, &named(name)))
    );
    assert_eq!(id_of(&names, &named("seven")), LabelId::OTHERS);
}

#[test]
fn names_that_fit_stay_for_ever() {
    let (names, start) = (LabelTable::new(4), ManualClock::new().clock().now());
    for name in ["one", "two", "three", "four"] {
        id_of(&names, &named(name));
    }
    for minute in 0..100 {
        names.renew(start + IDLE * minute, &[], |_| 0);
    }
    assert_eq!(labels(&names), ["(others)", "one", "two", "three", "four"]);
}

#[test]
fn refusals_of_a_name_that_lost_its_place_are_the_others() {
    let (names, start) = (LabelTable::new(1), ManualClock::new().clock().now());
    id_of(&names, &named("one"));
    id_of(&names, &named("newcomer"));
    names.renew(start, &[], |_| 5);
    id_of(&names, &named("newcomer"));
    names.renew(start + IDLE, &[], |_| 7);
    id_of(&names, &named("newcomer"));
    let [others, newcomer] = &names.all()[..] else {
        panic!("there is place for one");
    };
    assert_eq!(newcomer.label, Label::Name("newcomer".into()));
    assert_eq!((others.rejected_more, newcomer.rejected_less), (7, 7));
}
