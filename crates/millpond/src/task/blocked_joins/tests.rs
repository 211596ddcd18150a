//! Cycles that are found, and chains that are none.

use super::*;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use std::panic::Location;

fn label(name: &'static str) -> TaskLabel {
    TaskLabel {
        name: Some(crate::task::Name::Static(name)),
        location: Location::caller(),
    }
}

const NAMES: [&str; 5] = ["zero", "one", "two", "three", "four"];

/// The entry of these tasks, innermost first, that wait for that one, unless it is over.
fn entry(bodies: &[usize], target: usize, is_over: &Arc<AtomicBool>) -> Arc<Entry> {
    let is_over = Arc::clone(is_over);
    let bodies = bodies.iter().map(|&address| Body {
        address,
        label: Some(label(NAMES[address])),
    });
    Arc::new(Entry {
        bodies: bodies.collect(),
        target: JoinTarget {
            address: target,
            label: label(NAMES[target]),
            is_over: Box::new(move || is_over.load(Ordering::Relaxed)),
        },
        thread: std::thread::current(),
        report: None,
    })
}

fn cycle_names(table: &Table, own: &Entry) -> Option<Vec<String>> {
    let (cycle, _) = table.find_cycle(own)?;
    let names = cycle.tasks().iter().filter_map(TaskLabel::name);
    Some(names.map(str::to_owned).collect())
}

#[test]
fn a_cycle_begins_with_the_task_that_closes_it_and_includes_inline_bodies() {
    let never = Arc::new(AtomicBool::new(false));
    let mut table = Table::new();
    // 1 waits for 2. On the stack of 2, inline, is 3, which waits for 4.
    let entries = [entry(&[1], 2, &never), entry(&[3, 2], 4, &never)];
    for entry in &entries {
        table.insert(entry);
    }
    let closing = entry(&[4], 1, &never);
    assert_eq!(
        cycle_names(&table, &closing).unwrap(),
        ["four", "one", "two", "three"]
    );
    // 0 runs inline inside 4.
    let closing = entry(&[0, 4], 1, &never);
    assert_eq!(
        cycle_names(&table, &closing).unwrap(),
        ["four", "zero", "one", "two", "three"]
    );
    let itself = entry(&[0, 4], 4, &never);
    assert_eq!(cycle_names(&table, &itself).unwrap(), ["four", "zero"]);
    // A chain that leads nowhere.
    assert_eq!(cycle_names(&table, &entry(&[0], 1, &never)), None);
    table.remove(&entries[1]);
    assert_eq!(cycle_names(&table, &closing), None);
    table.remove(&entries[0]);
    assert!(table.entries.is_empty());
}

#[test]
fn an_entry_whose_target_is_finished_is_in_no_cycle() {
    let (never, over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
    let mut table = Table::new();
    table.insert(&entry(&[1], 2, &over));
    table.insert(&entry(&[2], 0, &never));
    let closing = entry(&[0], 1, &never);
    assert!(cycle_names(&table, &closing).is_some());
    // 2 was cancelled: 1 need not wait for it, though its body goes on, and waits.
    over.store(true, Ordering::Relaxed);
    assert_eq!(cycle_names(&table, &closing), None);
    over.store(false, Ordering::Relaxed);
    let late = entry(&[0], 1, &Arc::new(AtomicBool::new(true)));
    assert_eq!(cycle_names(&table, &late), None);
}

#[test]
fn no_more_than_eight_cycles_are_kept_the_last_ones() {
    let mut table = Table::new();
    for number in 0..10 {
        table.keep(&Cycle {
            tasks: vec![label(NAMES[number % 5])],
        });
    }
    let kept = table
        .found
        .iter()
        .map(|found| found.cycle.tasks()[0].name());
    let kept: Vec<_> = kept.flatten().collect();
    assert_eq!(
        kept,
        [
            "two", "three", "four", "zero", "one", "two", "three", "four"
        ]
    );
}

#[test]
fn a_cycle_says_who_waits_for_whom() {
    let cycle = |names: &[&'static str]| Cycle {
        tasks: names.iter().map(|name| label(name)).collect(),
    };
    let text = |names: &[&'static str]| {
        let mut text = cycle(names).to_string();
        while let Some(from) = text.find(" (made at ") {
            let to = from + text[from..].find(')').unwrap();
            text.replace_range(from..=to, "");
        }
        text
    };
    assert_eq!(text(&["one"]), "`one` waits for itself");
    assert_eq!(
        text(&["one", "two"]),
        "`one` waits for `two`, which waits for `one`"
    );
    assert_eq!(
        text(&["one", "two", "two"]),
        "`one` waits for `two`, which waits for `two`, which waits for `one`"
    );
}
