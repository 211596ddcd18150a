use super::*;
use crate::figure::Goal;
use crate::harness::{Absent, Standing};
use crate::report::{PerOperation, Point, judge, tests::row};
use crate::stats::Percentiles;

fn rows() -> Vec<Row> {
    let spins = Standing::Reference {
        because: "it spins where others sleep",
    };
    let mut rows = vec![
        row("millpond array", Standing::Ours, 150.0),
        row("flume", Standing::Peer, 2500.0),
        row("crossbeam", Standing::Peer, 100.0),
        row("millpond linked", Standing::Ours, 50.0),
        row("spinner", spins, 8.0),
    ];
    rows[0].per_operation = PerOperation {
        allocations: Some(1.0),
        sleeps: Some(0.000_01),
        preemptions: Some(0.0),
        cpu_ns: Some(301.5),
    };
    judge(&mut rows, Goal::BestPeer);
    rows
}

#[test]
fn a_table_shows_the_fastest_first_and_marks_what_we_lose() {
    let expected = "\
queue: 1p1c, capacity 1  (ns/message, less is better, 10 rounds)
                     median   min   max  ratio  allocs  sleeps  preempts  cpu ns
  . spinner            8.00  4.00  16.0   0.08       -       -         -       -
  * millpond linked    50.0  25.0   100   0.50       -       -         -       -  ahead
    crossbeam           100  50.0   200   1.00       -       -         -       -
  * millpond array      150  75.0   300   1.50   1.000   <.001         0     302  BEHIND
    flume              2500  1250  5000  25.00       -       -         -       -
";
    assert_eq!(figure(&rows(), Heading::default()), expected);
}

#[test]
fn the_summary_names_every_row_we_lose_and_every_reference() {
    let expected = "\
2 rows of ours: 1 ahead, 0 level, 1 behind.
  BEHIND  queue: 1p1c, capacity 1: millpond array takes 1.50 x crossbeam
  .       spinner: it spins where others sleep
";
    assert_eq!(summary(&rows()), expected);
}

#[test]
fn no_rows_make_no_table() {
    assert_eq!(figure(&[], Heading::default()), "");
    assert_eq!(found(&Found::default(), Heading::default()), "");
}

#[test]
fn what_became_of_the_tasks_has_a_table_of_its_own() {
    let fates = Fates {
        offered: 30,
        in_time: 12,
        late: 9,
        refused: 5,
        shed: 4,
        ..Fates::default()
    };
    let rush = |workload: &str, candidate, standing| Row {
        workload: workload.into(),
        fates: Some(fates),
        ..row(candidate, standing, 12.0)
    };
    let both = |workload| {
        [
            rush(workload, "millpond", Standing::Ours),
            rush(workload, "flume", Standing::Peer),
        ]
    };
    let rows = [both("rush: goodput"), both("rush: p99")].concat();
    let found = Found {
        rows,
        absent: Vec::new(),
    };
    let text = super::found(&found, Heading::default());
    let expected = "
queue: what became of them  (tasks, all rounds)
              offered  in time  late  refused  shed  expired  lost
  * millpond       30       12     9        5     4        0     0
    flume          30       12     9        5     4        0     0
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn where_more_is_better_the_most_comes_first_and_less_is_lost() {
    let mut rows = [
        row("millpond", Standing::Ours, 50.0),
        row("flume", Standing::Peer, 100.0),
    ];
    rows.iter_mut().for_each(|row| row.better = Better::More);
    judge(&mut rows, Goal::BestPeer);
    let text = figure(&rows, Heading::default());
    assert!(text.find("flume") < text.find("millpond"), "{text}");
    let line = "  BEHIND  queue: 1p1c, capacity 1: millpond has 0.50 x flume\n";
    assert!(summary(&rows).ends_with(line), "{}", summary(&rows));
}

#[test]
fn what_is_only_shown_does_not_count_among_the_goals() {
    let text = summary(&[row("millpond", Standing::Ours, 50.0)]);
    assert_eq!(text, "0 rows of ours: 0 ahead, 0 level, 0 behind.\n");
}

#[test]
fn absent_peers_are_listed_below_the_tables() {
    let mut tail = row("flume", Standing::Peer, 70.0);
    tail.workload = "trip: p99".into();
    let both = Found {
        rows: vec![row("flume", Standing::Peer, 60.0), tail],
        absent: [
            ("Java TPE", "no java"),
            ("Go", "no go"),
            ("Java FJP", "no java"),
        ]
        .map(|(name, reason)| (name, Absent(reason.into())))
        .into(),
    };
    let text = found(&both, Heading::default());
    assert_eq!(text.matches("median").count(), 2, "{text}");
    assert!(text.contains("\n\nqueue: trip: p99  ("), "{text}");
    assert!(
        text.ends_with("\n  - Java TPE, Java FJP: left out: no java\n  - Go: left out: no go\n"),
        "{text}"
    );
}

fn idle(median: f64) -> Vec<Row> {
    let mut rows = vec![
        row("millpond", Standing::Ours, median),
        row("flume", Standing::Peer, 0.0),
    ];
    for row in &mut rows {
        row.workload = "idle".into();
        row.unit = "% of a CPU".into();
    }
    judge(&mut rows, Goal::Below(0.1));
    rows
}

#[test]
fn the_overview_has_a_line_for_every_figure() {
    let mut all = rows();
    all.extend(idle(0.02));
    let mut lonely = row("flume", Standing::Peer, 60.0);
    lonely.workload = "nothing of ours".into();
    all.push(lonely);
    let expected = "\
best of ours and best peer
                           unit        better   ours  best peer              ratio  cpu ns  its cpu
  queue: 1p1c, capacity 1  ns/message  less     50.0        100  crossbeam    0.50       -        -  ahead
  queue: idle              % of a CPU  less    0.020          0  flume      < 0.10       -        -  ahead
  queue: nothing of ours   ns/message  less        -       60.0  flume           -       -        -
";
    assert_eq!(overview(&all, Heading::default()), expected);
    let lost: Vec<Row> = rows().drain(..3).collect();
    assert!(overview(&lost, Heading::default()).ends_with("1.50     302        -  BEHIND\n"));
}

#[test]
fn a_limit_that_is_not_kept_is_lost_by_its_own_figure() {
    let text = summary(&idle(0.5));
    let line = "  BEHIND  queue: idle: millpond is at 0.50, and must be below 0.10 % of a CPU\n";
    assert!(text.ends_with(line), "{text}");
}

#[test]
fn times_keep_three_digits() {
    assert_eq!(
        [0.0, 0.001_23, 0.08, 0.5, 9.99, 9.996, 99.96, 12_345.6].map(time),
        [
            "0", "0.0012", "0.080", "0.50", "9.99", "10.0", "100", "12346"
        ]
    );
    assert_eq!(
        [-0.08, -12.34, -250.0].map(time),
        ["-0.080", "-12.3", "-250"]
    );
}

#[test]
fn times_of_single_operations_have_columns_where_somebody_has_them() {
    let mut rows = rows();
    rows.truncate(2);
    rows[0].percentiles = Percentiles {
        p50: Some(1.5),
        p99: Some(12.0),
        p999: Some(345.0),
        max_single: Some(6_789.0),
    };
    let expected = "\
queue: 1p1c, capacity 1  (ns/message, less is better, 10 rounds)
                    median   min   max  ratio  p50 µs   p99  p99.9  slowest  allocs  sleeps  preempts  cpu ns
  * millpond array     150  75.0   300   1.50    1.50  12.0    345     6789   1.000   <.001         0     302  BEHIND
    flume             2500  1250  5000  25.00       -     -      -        -       -       -         -       -
";
    assert_eq!(figure(&rows, Heading::default()), expected);
}

fn point(candidate: &'static str, standing: Standing, x: f64, median: f64) -> Row {
    Row {
        workload: format!("size {x}"),
        point: Some(Point {
            curve: "time against size".into(),
            axis: "size",
            x,
        }),
        ..row(candidate, standing, median)
    }
}

#[test]
fn a_curve_has_a_table_with_a_line_for_every_point_and_no_lines_elsewhere() {
    let mut rows = Vec::new();
    for (x, ours, theirs) in [(10.0, 5.0, 4.0), (0.5, 1.0, 2.0)] {
        let mut here = [
            point("millpond", Standing::Ours, x, ours),
            point("flume", Standing::Peer, x, theirs),
        ];
        judge(&mut here, Goal::BestPeer);
        rows.extend(here);
    }
    rows.push(point("late", Standing::Peer, 10.0, 70.0));
    let expected = "\
queue: time against size  (ns/message, less is better)
  size  * millpond  flume  late
  0.50        1.00   2.00     -  ahead
  10.0        5.00   4.00  70.0  BEHIND
";
    assert_eq!(overview(&rows, Heading::default()), expected);
    rows.insert(0, row("flume", Standing::Peer, 60.0));
    let both = overview(&rows, Heading::default());
    assert!(both.starts_with("best of ours and best peer\n"), "{both}");
    assert!(both.ends_with(&format!("\n\n{expected}")), "{both}");
}

#[test]
fn further_percentiles_of_a_point_are_columns_and_no_tables() {
    let timed = |figure: &str| Row {
        workload: format!("size 1: {figure}"),
        percentiles: Percentiles {
            p50: Some(1.0),
            ..Percentiles::default()
        },
        ..point("flume", Standing::Peer, 1.0, 5.0)
    };
    let both = Found {
        rows: vec![timed("p50"), timed("p99")],
        absent: Vec::new(),
    };
    let text = found(&both, Heading::default());
    assert!(text.starts_with("queue: size 1: p50"), "{text}");
    assert_eq!(text.matches("median").count(), 1, "{text}");
}

#[test]
fn candidates_that_are_no_peers_for_the_same_reason_share_a_line() {
    let alone = |because| Standing::Reference { because };
    let rows = [
        row("b", alone("it is the machine"), 1.0),
        row("a", alone("it is the machine"), 1.0),
        row("c", alone("it spins"), 1.0),
    ];
    let text = summary(&rows);
    assert!(
        text.ends_with("  .       a, b: it is the machine\n  .       c: it spins\n"),
        "{text}"
    );
}

#[test]
fn every_table_of_a_quick_run_says_so_and_what_is_better() {
    let quick = Heading {
        is_quick: true,
        condition: crate::condition::Condition::Busy,
    };
    let mut all = rows();
    all[0].per_operation.cpu_ns = Some(9.0);
    all.extend([
        point("millpond", Standing::Ours, 1.0, 5.0),
        point("flume", Standing::Peer, 1.0, 5.0),
    ]);
    all.last_mut().unwrap().per_operation.cpu_ns = Some(7.0);
    let found = Found {
        rows: all.clone(),
        absent: Vec::new(),
    };
    let text = super::found(&found, quick) + &overview(&all, quick);
    let headings: Vec<_> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    // Two workloads, the overview, the curve and its CPU time; between them an empty line.
    let headings: Vec<_> = headings
        .into_iter()
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(headings.len(), 5, "{text}");
    for heading in headings {
        assert!(heading.contains(", busy, QUICK RUN"), "{heading}");
        let says = heading.contains("less is better") || heading.starts_with("best of ours");
        assert!(says, "{heading}");
    }
}
