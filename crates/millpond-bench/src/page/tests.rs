use super::*;
use crate::record::Standing::{Ours, Peer, Reference};
use crate::record::tests::{record, row};
use crate::record::{Record, Row};
use std::path::Path;

fn made_up() -> Record {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/made-up.json");
    Record::read(&file).unwrap()
}

/// The page in elements and what is between them.
fn is_balanced(page: &str, element: &str) -> bool {
    let opened = page.matches(&format!("<{element} ")).count()
        + page.matches(&format!("<{element}>")).count();
    opened == page.matches(&format!("</{element}>")).count()
}

#[test]
fn the_page_needs_nothing_from_anywhere() {
    let page = html(&made_up());
    for foreign in [
        "http:", "https:", "src=", "@import", "url(", "<script", "<link",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn every_element_that_is_opened_is_closed() {
    let page = html(&made_up());
    for element in [
        "section",
        "figure",
        "figcaption",
        "svg",
        "g",
        "text",
        "title",
        "table",
        "tr",
        "td",
        "th",
        "ul",
        "li",
        "details",
        "div",
        "p",
        "a",
        "b",
        "span",
    ] {
        assert!(is_balanced(&page, element), "{element}");
    }
}

#[test]
fn every_row_is_in_a_table_and_every_loss_is_marked() {
    let record = made_up();
    let page = html(&record);
    let cells = page.matches("class=\"word candidate\"").count();
    let fates = record.rows.iter().filter(|row| row.fates.is_some()).count();
    assert_eq!(cells, record.rows.len() + fates);
    let (_, lost) = record.goals();
    assert!(lost > 0);
    let tables = page.split("<section id=\"suite-").skip(1);
    let marks: usize = tables
        .map(|part| part.matches(">BEHIND</td>").count())
        .sum();
    assert_eq!(marks, lost);
}

#[test]
fn names_from_outside_stay_names() {
    let hostile = "</td><script>alert('x')</script> & \"more\"";
    let mut rows = vec![
        row(hostile, Ours, 2.0),
        row("b", Peer, 1.0),
        row("c", Reference, 1.0),
    ];
    rows[0].lost = true;
    rows[0].ratio_to_best_peer = Some(2.0);
    for row in &mut rows {
        row.workload = hostile.into();
        row.suite = hostile.into();
        row.unit = hostile.into();
        row.because = Some(hostile.into());
    }
    let mut points = rows.clone();
    for row in &mut points {
        row.curve = Some(hostile.into());
        row.axis = Some(hostile.into());
        row.x = Some(1.0);
    }
    let ladder = rows[2..].iter().cloned().map(|row| Row {
        workload: format!("{hostile}!"),
        ..row
    });
    let all = rows.iter().cloned().chain(points).chain(ladder).collect();
    let mut record = record(all);
    record.notes.push(hostile.into());
    record.machine.cpu_model = Some(hostile.into());
    record.machine.kernel = Some(hostile.into());
    let page = html(&record);
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains("\"more\""), "{page}");
    assert!(is_balanced(&page, "td") && is_balanced(&page, "text"));
}

#[test]
fn a_run_of_one_row_is_a_page() {
    let page = html(&record(vec![row("millpond", Ours, 0.0)]));
    assert!(page.contains("Nowhere in this run."), "{page}");
    assert!(page.contains("class=\"bar\""), "{page}");
    assert!(!page.contains("NaN"), "{page}");
}

#[test]
fn losses_are_told_in_a_sentence_each() {
    let page = html(&made_up());
    for sentence in [
        "what figures cost, 1 producer: difference: <b>millpond</b> is at 36.2 and must be below 25.0 ns/task",
        "schedule and cancel, 1,000,000 pending: <b>millpond delay queue</b> has 2.96 x Java ScheduledThreadPoolExecutor",
        "efficiency against task length: <b>millpond</b> at 3 of 9 points (task length, µs: 100, 300, 1k)",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
}
