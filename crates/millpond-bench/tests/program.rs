//! The program, from its options to its tables and its file.
#![forbid(unsafe_code)]

use millpond_bench::harness::Settings;
use millpond_bench::program::{Options, run};
use millpond_bench::workloads::SUITES;
use serde_json::Value;

fn printed(options: &Options) -> anyhow::Result<String> {
    let mut out = Vec::new();
    run(options, None, &mut out)?;
    Ok(String::from_utf8(out)?)
}

fn tiny(suite: &str, only: &str) -> Options {
    Options {
        suites: vec![suite.into()],
        only: Some(only.into()),
        quick: true,
        rounds: Some(1),
        ..Options::default()
    }
}

#[test]
fn figures_that_are_quoted_come_from_ten_rounds_at_least() {
    assert!(Options::default().settings().rounds >= 10);
    let quick = Options {
        quick: true,
        ..Options::default()
    };
    assert_eq!(quick.settings(), Settings::QUICK);
    assert_eq!(tiny("queue", "").settings().rounds, 1);
}

#[test]
fn a_suite_that_does_not_exist_is_answered_with_those_that_do() {
    let error = printed(&tiny("quue", "")).unwrap_err().to_string();
    let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
    let names = names.join(", ");
    assert!(names.starts_with("queue, task, pool, "), "{names}");
    assert_eq!(
        error,
        format!("there is no suite \"quue\": the suites are {names}")
    );
}

#[test]
fn a_workload_that_does_not_exist_is_no_silent_success() {
    let error = printed(&tiny("queue", "9p9c")).unwrap_err().to_string();
    assert!(
        error.contains("\"9p9c\"") && error.contains("--list"),
        "{error}"
    );
}

#[test]
fn the_list_names_suites_workloads_and_candidates_and_measures_nothing() {
    let options = Options {
        list: true,
        ..Options::default()
    };
    let text = printed(&options).unwrap();
    let row = "  1p1c, capacity 1: millpond fifo, millpond fifo growing, crossbeam-channel, flume, kanal, \
               std::sync::mpsc, concurrent-queue\n";
    assert!(text.starts_with("queue: "), "{text}");
    assert!(text.contains(row), "{text}");
    assert!(text.contains("\ntask: "), "{text}");
    let row = "  bound 1024, caller runs, 4 producers: millpond, crossbeam-channel, kanal, flume, \
               std::sync::mpsc, threadfin, Java TPE linked, Java TPE array, \
               Java 25 TPE linked, Java 25 TPE array, Go channel pool\n";
    assert!(text.contains("\npool: "), "{text}");
    assert!(text.contains(row), "{text}");
    assert!(!text.contains("median"), "{text}");
}

#[test]
fn the_file_holds_every_row_of_the_tables_and_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let options = Options {
        json: Some(file.clone()),
        ..tiny("task", "join")
    };
    let text = printed(&options).unwrap();
    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(json["machine"]["effective_cpus"].as_f64().unwrap() > 0.0);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let candidate = row["candidate"].as_str().unwrap();
        assert!(text.contains(candidate), "{candidate} is not in {text}");
        let [min, median, max] = ["min", "median", "max"].map(|key| row[key].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{row}");
        assert!(row["ratio_to_best_peer"].as_f64().unwrap() > 0.0);
        assert_eq!(row["unit"], "ns/task");
    }
    assert!(text.contains("1 rows of ours: "), "{text}");
}

#[test]
fn both_figures_of_a_round_trip_have_their_table_and_their_line_in_the_overview() {
    let options = Options {
        suites: vec!["pool".into()],
        only: Some("waiter may run it".into()),
        quick: true,
        rounds: Some(1),
        ..Options::default()
    };
    let text = printed(&options).unwrap();
    for figure in ["p50", "p99"] {
        let title = format!("pool: round trip, warm, waiter may run it: {figure}  ");
        // Once over its table, and once in the overview.
        assert_eq!(text.matches(&title).count(), 2, "{text}");
    }
    // Java is there or is not, and says so either way.
    assert_eq!(text.matches("  .       Java: ").count(), 1, "{text}");
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_anything_is_measured() {
    let options = Options {
        json: Some("/no/such/folder/figures.json".into()),
        ..tiny("task", "join")
    };
    let mut out = Vec::new();
    let error = run(&options, None, &mut out).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot write the figures to /no/such/folder/figures.json"
    );
    assert!(out.is_empty());
}

#[test]
fn whatever_cannot_be_read_or_written_is_named_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "no figures").unwrap();
    let below_a_file = Options {
        report: Some(file.join("page")),
        ..tiny("task", "join")
    };
    let no_figures = Options {
        compare: Some(file.clone()),
        ..tiny("task", "join")
    };
    let no_file = Options {
        compare: Some(folder.path().join("no-such.json")),
        ..tiny("task", "join")
    };
    for (options, reason) in [
        (below_a_file, "cannot write the page to the folder "),
        (
            no_figures,
            "notes.txt is no file that `bench --json FILE` has written",
        ),
        (no_file, "cannot read the figures in "),
    ] {
        let mut out = Vec::new();
        let error = run(&options, None, &mut out).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(out.is_empty());
    }
}

#[test]
fn a_run_can_be_kept_shown_and_compared_at_once_and_shown_again_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| Some(folder.path().join(name));
    let first = Options {
        json: at("old.json"),
        ..tiny("task", "join")
    };
    printed(&first).unwrap();
    let second = Options {
        json: at("new.json"),
        report: at("page"),
        compare: at("old.json"),
        ..tiny("task", "join")
    };
    let text = printed(&second).unwrap();
    assert!(text.contains("compared with the old run\n"), "{text}");
    assert!(
        text.contains("few rounds: the old run has rows of 1"),
        "{text}"
    );
    let html = std::fs::read_to_string(folder.path().join("page/index.html")).unwrap();
    let later = Options {
        from: at("new.json"),
        report: at("again"),
        compare: at("new.json"),
        ..Options::default()
    };
    let text = printed(&later).unwrap();
    assert!(text.contains("0 better, 0 worse, "), "{text}");
    assert!(
        !text.contains("best of ours"),
        "nothing is measured: {text}"
    );
    let again = std::fs::read_to_string(folder.path().join("again/index.html")).unwrap();
    assert!(html == again, "the same figures make the same page");
}
