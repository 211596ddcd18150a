//! The page in a real browser: its plots are there, complete and legible, on a desk and on a phone, in
//! light and in dark.
//!
//! It needs Chromium. Where there is none it says so and is skipped; with `MILLPOND_NO_SKIP=1`, as
//! `cargo xtask browser` runs it, that is a failure. The test harness would hide the reason of a
//! skip, so this is a program of its own that prints what the harness would. Its pictures stay in
//! `target/tmp/page`, to be looked at.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test that waits for another program has std's threads and channels"
)]

mod chromium;

use anyhow::{Context, Result, ensure};
use chromium::{Chromium, Look};
use millpond_bench::page;
use millpond_bench::record::Record;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DESK: Look = Look {
    width: 1280,
    height: 4600,
    is_dark: false,
};

/// The narrowest phones that are still in use.
const PHONE: Look = Look {
    width: 360,
    height: 4600,
    is_dark: false,
};

/// A test: its sentence and its body.
type Test = (&'static str, fn(&Opened) -> Result<()>);

const TESTS: &[Test] = &[
    ("every_row_is_drawn_once", every_row_is_drawn_once),
    (
        "every_plot_has_its_size_on_a_desk",
        every_plot_has_its_size_on_a_desk,
    ),
    (
        "every_curve_has_a_line_per_candidate",
        every_curve_has_a_line_per_candidate,
    ),
    (
        "no_label_lies_on_another_or_outside",
        no_label_lies_on_another_or_outside,
    ),
    (
        "a_phone_shows_it_whole_and_legible",
        a_phone_shows_it_whole_and_legible,
    ),
    (
        "the_pictures_are_not_blank_and_dark_is_dark",
        the_pictures_are_not_blank_and_dark_is_dark,
    ),
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            println!("browser: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let Some(browser) = Chromium::find()? else {
        let missing = "no Chromium on the PATH: apt-get install chromium";
        let must = std::env::var_os("MILLPOND_NO_SKIP").is_some();
        ensure!(!must, "{missing}");
        println!("browser: skipped: {missing}");
        let skipped = TESTS.len();
        println!("test result: ok. 0 passed; 0 failed; {skipped} ignored");
        return Ok(ExitCode::SUCCESS);
    };
    let opened = Opened::new(browser)?;
    let mut failed = 0;
    for (name, test) in TESTS {
        match test(&opened) {
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                failed += 1;
                println!("test {name} ... FAILED\n{error:#}");
            }
        }
    }
    let passed = TESTS.len() - failed;
    let outcome = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {outcome}. {passed} passed; {failed} failed; 0 ignored");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// The page of figures that are made up, and what a browser makes of it.
struct Opened {
    browser: Chromium,
    record: Record,
    page: PathBuf,
    pictures: PathBuf,
    on_desk: Seen,
    on_phone: Seen,
}

/// What the probe has seen.
#[derive(Debug, Deserialize)]
struct Seen {
    window: f64,
    page: f64,
    is_dark: bool,
    plots: Vec<Plot>,
}

#[derive(Debug, Deserialize)]
struct Plot {
    label: String,
    kind: String,
    width: f64,
    height: f64,
    marks: usize,
    lines: usize,
    overlaps: Vec<String>,
    outside: Vec<String>,
    smallest_text: f64,
}

impl Opened {
    fn new(browser: Chromium) -> Result<Self> {
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        fs::create_dir_all(&pictures)?;
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/made-up.json");
        let record = Record::read(&file)?;
        let html = page::html(&record);
        let page = pictures.join(page::FILE);
        fs::write(&page, &html)?;
        let probe = format!("<script>{}</script></body>", include_str!("probe.js"));
        let probed = html.replace("</body>", &probe);
        let see = |look| -> Result<Seen> {
            let framed = pictures.join("framed.html");
            fs::write(&framed, frame(&probed, look))?;
            seen(&browser.document(&framed, DESK)?)
        };
        Ok(Opened {
            on_desk: see(DESK)?,
            on_phone: see(PHONE)?,
            browser,
            record,
            page,
            pictures,
        })
    }
}

/// The page in a frame as wide as `look`: a window of the browser is never as narrow as a phone.
fn frame(page: &str, look: Look) -> String {
    let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
    let (width, height) = (look.width, look.height);
    format!(
        "<!doctype html><meta charset=\"utf-8\"><body>\
         <iframe width=\"{width}\" height=\"{height}\" style=\"border: 0\" srcdoc=\"{escaped}\"></iframe>"
    )
}

fn seen(document: &str) -> Result<Seen> {
    // The frame's own copy of the words, in its attribute, is escaped.
    let note = document.split("<pre id=\"seen\">").nth(1);
    let note = note.and_then(|rest| rest.split("</pre>").next());
    let note = note.context("the probe has left no note: its script did not run")?;
    let note = note
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&note).with_context(|| format!("the probe's note: {note}"))
}

fn every_row_is_drawn_once(opened: &Opened) -> Result<()> {
    let drawn: usize = opened.on_desk.plots.iter().map(|plot| plot.marks).sum();
    let rows = opened.record.rows.len();
    ensure!(drawn == rows, "{drawn} marks for {rows} rows");
    Ok(())
}

fn every_plot_has_its_size_on_a_desk(opened: &Opened) -> Result<()> {
    let count = |kind: &str| {
        let plots = opened.on_desk.plots.iter();
        plots.filter(|plot| plot.kind == kind).count()
    };
    let counts = ["bars", "curve", "ladder"].map(count);
    // As they are in the file: four workloads of the pool and two costs, one of queues, idling, timers
    // and overload each; four curves of latency, one of length, one of workers; the floor.
    ensure!(counts == [10, 6, 1], "{counts:?} plots of each kind");
    for plot in &opened.on_desk.plots {
        ensure!((300.0..=520.0).contains(&plot.width), "{plot:?}");
        ensure!(plot.height > 20.0 && plot.height < 1_500.0, "{plot:?}");
        ensure!(plot.marks > 0, "{plot:?}");
    }
    Ok(())
}

fn every_curve_has_a_line_per_candidate(opened: &Opened) -> Result<()> {
    for plot in opened
        .on_desk
        .plots
        .iter()
        .filter(|plot| plot.kind == "curve")
    {
        let rows = opened.record.rows.iter();
        let of_it = rows.filter(|row| {
            let curve = row.curve.as_deref();
            curve.is_some_and(|curve| plot.label.contains(curve))
        });
        let mut candidates: Vec<&str> = of_it.map(|row| row.candidate.as_str()).collect();
        candidates.sort_unstable();
        candidates.dedup();
        ensure!(
            !candidates.is_empty() && plot.lines == candidates.len(),
            "{plot:?}"
        );
    }
    Ok(())
}

fn no_label_lies_on_another_or_outside(opened: &Opened) -> Result<()> {
    for seen in [&opened.on_desk, &opened.on_phone] {
        for plot in &seen.plots {
            ensure!(
                plot.overlaps.is_empty(),
                "{}: {:?}",
                plot.label,
                plot.overlaps
            );
            ensure!(
                plot.outside.is_empty(),
                "{}: {:?}",
                plot.label,
                plot.outside
            );
        }
    }
    Ok(())
}

fn a_phone_shows_it_whole_and_legible(opened: &Opened) -> Result<()> {
    let seen = &opened.on_phone;
    ensure!(seen.window <= f64::from(PHONE.width), "{}", seen.window);
    // Wide tables scroll within the page; the page itself does not.
    ensure!(seen.page <= seen.window, "{} in {}", seen.page, seen.window);
    for plot in &seen.plots {
        ensure!(plot.width > 280.0 && plot.width <= seen.window, "{plot:?}");
        ensure!(plot.smallest_text > 9.0, "{plot:?}");
    }
    Ok(())
}

fn the_pictures_are_not_blank_and_dark_is_dark(opened: &Opened) -> Result<()> {
    let take = |name: &str, look: Look| {
        let file = opened.pictures.join(name);
        let picture = opened.browser.picture(&opened.page, look, &file)?;
        let size = (picture.width, picture.height);
        ensure!(size == (look.width, look.height), "{name}: {size:?}");
        // Paper, cards, ink, rules, ours, peers, losses: and their blends at the edges.
        let colours = picture.colours(200);
        ensure!(
            colours > 20,
            "{name} has {colours} colours: it is nearly blank"
        );
        Ok(picture)
    };
    let dark = |look| Look {
        is_dark: true,
        ..look
    };
    ensure!(!opened.on_desk.is_dark, "a light page was asked for");
    for (look, names) in [
        (DESK, ["desk-light.png", "desk-dark.png"]),
        (PHONE, ["phone-light.png", "phone-dark.png"]),
    ] {
        let light = take(names[0], look)?.brightness();
        let dark = take(names[1], dark(look))?.brightness();
        ensure!(
            light > 200.0 && dark < 80.0,
            "brightness {light} and {dark}"
        );
    }
    Ok(())
}
