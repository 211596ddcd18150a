//! The summary of a run: the machine, how much is won, what is lost, and all in one table.

use super::panels::{self, Panel};
use super::suite::{self, Section};
use super::text::{escape, number};
use crate::condition::Condition;
use crate::origin::Run;
use crate::record::{Record, Row, Standing, best};
use crate::verdict::Verdict;
use std::fmt::Write;

/// The head of the page: what it is, and where it was measured.
pub(super) fn head(record: &Record) -> String {
    let [ahead, level, behind] = record.verdicts();
    let mut html = String::from("<header>\n<h1>Millpond beside its peers</h1>\n");
    html += &lead(record);
    html += "<div class=\"tiles\">\n";
    tile(
        &mut html,
        "kept",
        ahead,
        "rows of ours are ahead of the best peer",
    );
    tile(&mut html, "", level, "are level within noise");
    tile(&mut html, "lost", behind, "are behind");
    let workloads = groups(record).len();
    tile(&mut html, "", workloads, "workloads and curves");
    let mut candidates: Vec<&str> = record
        .rows
        .iter()
        .map(|row| row.candidate.as_str())
        .collect();
    candidates.sort_unstable();
    candidates.dedup();
    tile(&mut html, "", candidates.len(), "candidates");
    html += "</div>\n";
    html += &machine(record);
    if record.heading(Condition::Quiet).is_quick {
        html += "<p class=\"warning\">QUICK RUN: few and short rounds, good for a look and not to be \
                 quoted.</p>\n";
    }
    // The first line is the machine; what follows is a warning.
    for warning in record.machine.lines().lines().skip(1) {
        let _ = writeln!(html, "<p class=\"warning\">{}</p>", escape(warning));
    }
    html += "</header>\n";
    html
}

/// What was done, in a sentence or two.
fn lead(record: &Record) -> String {
    let how = match &record.published {
        Some(published) => format!(
            "Every figure is the median of {} processes on one commit, in each condition.",
            published.processes
        ),
        None => "All figures are from one run.".into(),
    };
    format!(
        "<p class=\"lead\">Candidates took turns, round by round, in orders drawn by a seed. {how} What \
         counts is the ratio to the best peer; rows in which millpond is behind are marked.</p>\n"
    )
}

fn tile(html: &mut String, class: &str, number: usize, text: &str) {
    let _ = writeln!(
        html,
        "<div class=\"tile {class}\"><b>{number}</b> {text}</div>"
    );
}

fn machine(record: &Record) -> String {
    let machine = &record.machine;
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let is_virtual = match machine.hypervisor {
        Some(true) => " (virtual)",
        _ => "",
    };
    let percent = |value: f64| format!("{value:.1} %");
    let facts = [
        ("CPU", format!("{}{is_virtual}", known(&machine.cpu_model))),
        ("CPUs to use", format!("{}", machine.effective_cpus)),
        ("architecture", machine.arch.clone()),
        ("kernel", known(&machine.kernel)),
        ("clock", known(&machine.clock_source)),
        (
            "load before",
            machine.load_before.map_or("unknown".into(), number),
        ),
        (
            "CPU time given to other machines",
            machine.steal_percent.map_or("unknown".into(), percent),
        ),
    ];
    let mut html = String::from("<dl class=\"machine\">\n");
    for (name, fact) in facts.into_iter().chain(origin(record)) {
        let _ = writeln!(
            html,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escape(name),
            escape(&fact)
        );
    }
    html += "</dl>\n";
    html
}

/// What was measured, and how.
fn origin(record: &Record) -> Vec<(&'static str, String)> {
    let Some(origin) = &record.origin else {
        return Vec::new();
    };
    let run = match origin.run {
        Run::Quick => "quick",
        Run::Full => "full",
        Run::Budget => "by a budget of time",
    };
    let rounds = format!(
        "{run}: at most {} rounds of {} ms",
        origin.most_rounds, origin.round_millis
    );
    vec![
        ("sources", origin.sources.text()),
        ("date", origin.date.clone()),
        ("compiler", origin.rustc.clone()),
        ("profile", origin.profile.clone()),
        ("allocator", origin.allocator.clone()),
        ("rounds", rounds),
        ("seed of the orders", origin.seed.to_string()),
    ]
}

/// Links to the suites.
pub(super) fn contents(suites: &[Section<'_>]) -> String {
    let mut html = String::from("<nav>\n");
    for suite in suites {
        let lost = match suite.losses() {
            0 => String::new(),
            lost => {
                format!(" <span class=\"count\" title=\"plots with a loss\">{lost} lost</span>")
            }
        };
        let (id, name) = (suite.anchor(), escape(&suite.title()));
        let _ = writeln!(html, "<a href=\"#{id}\">{name}{lost}</a>");
    }
    html +=
        "<a href=\"#all\">all in one table</a>\n<a href=\"#reading\">how to read it</a>\n</nav>\n";
    html
}

/// Every row of ours that a peer beats beyond noise, or that misses its limit.
pub(super) fn losses(record: &Record) -> String {
    let mut items: Vec<String> = Vec::new();
    for panel in groups(record) {
        let mut candidates: Vec<&str> = Vec::new();
        for row in panel.rows().iter().filter(|row| row.lost) {
            if !candidates.contains(&row.candidate.as_str()) {
                candidates.push(&row.candidate);
                items.push(loss(&panel, row));
            }
        }
    }
    if items.is_empty() {
        return "<section id=\"lost\">\n<h2>Where we lose</h2>\n<p>Nowhere in this run.</p>\n</section>\n"
            .into();
    }
    let mut html =
        String::from("<section id=\"lost\">\n<h2>Where we lose</h2>\n<ul class=\"losses\">\n");
    for item in items {
        let _ = writeln!(html, "<li>{item}</li>");
    }
    html += "</ul>\n</section>\n";
    html
}

fn loss(panel: &Panel<'_>, row: &Row) -> String {
    let place = format!(
        "<a href=\"#{}\">{}</a>: {}: <b>{}</b>",
        suite::place(&row.suite, row.in_condition()),
        escape(&with_condition(row)),
        escape(&panel.title()),
        escape(&row.candidate)
    );
    let of_it = panel
        .rows()
        .iter()
        .filter(|other| other.candidate == row.candidate);
    if matches!(panel, Panel::Curve(_)) {
        let all = of_it.clone().filter(|row| row.has_goal()).count();
        let mut at: Vec<f64> = of_it
            .filter(|row| row.lost)
            .filter_map(|row| row.x)
            .collect();
        at.sort_by(f64::total_cmp);
        let at: Vec<String> = at.into_iter().map(super::text::tick).collect();
        let axis = escape(row.axis.as_deref().unwrap_or("x"));
        return format!(
            "{place} at {} of {all} points ({axis}: {})",
            at.len(),
            at.join(", ")
        );
    }
    if let Some(limit) = row.limit {
        let (median, limit, unit) = (number(row.median), number(limit), escape(&row.unit));
        return format!("{place} is at {median} and must be below {limit} {unit}");
    }
    let peers = panel.rows().iter().copied().filter(|row| row.is_peer());
    let rival = best(peers).map_or("the best peer", |peer| &peer.candidate);
    let ratio = row.ratio_to_best_peer.map_or("-".into(), number);
    format!("{place} has {ratio} x {}", escape(rival))
}

/// Every workload and every curve in one line: the best of ours beside the best peer.
pub(super) fn overview(record: &Record) -> String {
    let mut html = String::from(
        "<section id=\"all\">\n<h2>All in one table</h2>\n\
         <p class=\"about\">the best of ours beside the best peer</p>\n\
         <div class=\"scroll\"><table>\n<thead><tr><th class=\"word\">suite</th>\
         <th class=\"word\">workload</th><th class=\"word\">unit</th><th>ours</th>\
         <th>best peer</th><th class=\"word\"></th><th>ratio</th><th>cpu ns</th><th>its cpu</th>\
         <th></th></tr></thead>\n<tbody>\n",
    );
    for panel in groups(record) {
        html += &overview_line(&panel);
    }
    html += "</tbody></table></div>\n</section>\n";
    html
}

fn overview_line(panel: &Panel<'_>) -> String {
    let rows = panel.rows();
    let verdict = suite::verdict(rows);
    let is_lost = verdict.as_ref().is_some_and(|verdict| verdict.is_lost);
    let (unit, better) = (&rows[0].unit, rows[0].better.words());
    let unit = format!("{unit}, {better}");
    let words = [&with_condition(rows[0]), &panel.title(), &unit].map(|word| escape(word));
    let mut html = format!("<tr class=\"{}\">", if is_lost { "lost" } else { "" });
    for word in words {
        let _ = write!(html, "<td class=\"word\">{word}</td>");
    }
    if matches!(panel, Panel::Curve(_)) {
        let text = verdict.map_or(String::from("shown"), |verdict| verdict.text);
        let _ = writeln!(
            html,
            "<td colspan=\"6\" class=\"word\">{}</td><td class=\"mark\">{}</td></tr>",
            escape(text.trim_start_matches("BEHIND ")),
            if is_lost { "BEHIND" } else { "" }
        );
        return html;
    }
    let of = |standing| best(rows.iter().copied().filter(|row| row.standing == standing));
    let (ours, peer) = (of(Standing::Ours), of(Standing::Peer));
    let median = |row: Option<&Row>| row.map_or("-".into(), |row| number(row.median));
    let cpu = |row: Option<&Row>| {
        let nanos = row.and_then(|row| row.per_operation.cpu_ns);
        nanos.map_or("-".into(), number)
    };
    let rival = peer.map_or(String::new(), |row| escape(&row.candidate));
    let goal = ours.map_or("-".into(), |row| {
        match (row.ratio_to_best_peer, row.limit) {
            (Some(ratio), _) => number(ratio),
            (None, Some(limit)) => format!("&lt; {}", number(limit)),
            (None, None) => "-".into(),
        }
    });
    let _ = writeln!(
        html,
        "<td>{}</td><td>{}</td><td class=\"word\">{rival}</td><td>{goal}</td><td>{}</td><td>{}</td>\
         <td class=\"mark\">{}</td></tr>",
        median(ours),
        median(peer),
        cpu(ours),
        cpu(peer),
        ours.and_then(|row| row.verdict).map_or("", Verdict::mark)
    );
    html
}

/// A suite, and what else the machine did if it was not quiet.
fn with_condition(row: &Row) -> String {
    match row.in_condition() {
        Condition::Quiet => row.suite.clone(),
        other => format!("{}, {}", row.suite, other.words()),
    }
}

/// All plots but ladders, which compare nothing.
fn groups(record: &Record) -> Vec<Panel<'_>> {
    let key = |row: &Row| (row.suite.clone(), row.in_condition());
    let suites = record.rows.chunk_by(|a, b| key(a) == key(b));
    let panels = suites.flat_map(|rows| panels::of_suite(&rows.iter().collect::<Vec<_>>()));
    panels
        .filter(|panel| !matches!(panel, Panel::Ladder(_)))
        .collect()
}
