//! One suite on the page: its question, its plots, and their figures.

use super::panels::{self, Panel};
use super::text::{anchor, escape, number};
use super::{bars, curve, ladder, tables};
use crate::condition::Condition;
use crate::origin::Heading;
use crate::record::{Record, Row, best};
use crate::verdict::Verdict as Judged;
use crate::workloads::SUITES;
use std::fmt::Write;

/// A suite that was run.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    /// Published figures have a section for each condition.
    pub(super) heading: Heading,
    panels: Vec<Panel<'a>>,
}

/// The suites of a run, in its order.
pub(super) fn all(record: &Record) -> Vec<Section<'_>> {
    let mut names: Vec<(&str, Condition)> = Vec::new();
    for row in &record.rows {
        let name = (row.suite.as_str(), row.in_condition());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let section = |(name, condition)| {
        let is_in = |row: &&Row| row.suite == name && row.in_condition() == condition;
        let rows = record.rows.iter().filter(is_in);
        Section {
            name,
            heading: record.heading(condition),
            panels: panels::of_suite(&rows.collect::<Vec<_>>()),
        }
    };
    names.into_iter().map(section).collect()
}

impl Section<'_> {
    /// How many of its plots have a loss of ours in them.
    pub(super) fn losses(&self) -> usize {
        let lost = |panel: &&Panel<'_>| panel.rows().iter().any(|row| row.lost);
        self.panels.iter().filter(lost).count()
    }

    /// Its name, and what else the machine did.
    pub(super) fn title(&self) -> String {
        format!("{}{}", self.name, self.heading.text())
    }

    /// Where a link to it leads.
    pub(super) fn anchor(&self) -> String {
        place(self.name, self.heading.condition)
    }

    pub(super) fn html(&self) -> String {
        let (id, name) = (self.anchor(), escape(&self.title()));
        let mut html = format!("<section id=\"{id}\">\n<h2>{name}</h2>\n");
        // A suite of another version may have no question here.
        if let Some(suite) = SUITES.iter().find(|suite| suite.name == self.name) {
            let _ = writeln!(html, "<p class=\"about\">{}</p>", escape(suite.about));
        }
        // A plot without a neighbour has room for its figures beside it.
        let is_alone = self.panels.len() == 1;
        html += if is_alone {
            "<div class=\"panels alone\">\n"
        } else {
            "<div class=\"panels\">\n"
        };
        for panel in &self.panels {
            html += &figure(panel, is_alone, self.heading);
        }
        html += "</div>\n</section>\n";
        html
    }
}

/// Where a link to a suite in a condition leads.
pub(super) fn place(suite: &str, condition: Condition) -> String {
    match condition {
        Condition::Quiet => anchor(suite),
        other => format!("{}-{}", anchor(suite), other.name()),
    }
}

fn figure(panel: &Panel<'_>, is_open: bool, heading: Heading) -> String {
    let (rows, title) = (panel.rows(), panel.title());
    let first = rows[0];
    let label = format!("{}: {title}, in {}", first.suite, first.unit);
    let plot = match panel {
        Panel::Bars(_) => bars::draw(rows, &label),
        Panel::Curve(_) => curve::draw(rows, &label),
        Panel::Ladder(_) => ladder::draw(rows, &label),
    };
    let badge = verdict(rows).map_or(String::new(), |verdict| verdict.badge());
    let better = first.better.words();
    let is_log = match panel {
        Panel::Bars(_) => false,
        Panel::Curve(_) => curve::is_logarithmic(rows),
        Panel::Ladder(_) => true,
    };
    let log = if is_log { ", logarithmic" } else { "" };
    let (title, unit) = (escape(&title), escape(&first.unit));
    let mut html = String::from("<figure class=\"panel\">\n");
    let _ = writeln!(html, "<figcaption><h3>{title}</h3>{badge}");
    let (rounds, end) = (first.rounds, escape(&heading.text()));
    let _ = writeln!(
        html,
        "<p class=\"unit\">{unit}, {better}{log}, {rounds} rounds{end}</p></figcaption>"
    );
    let _ = writeln!(html, "<div class=\"drawing\">{plot}</div>");
    let open = if is_open { " open" } else { "" };
    let _ = writeln!(html, "<details{open}><summary>figures</summary>");
    html += &tables::figures(rows);
    html += &tables::fates(rows);
    html += "</details>\n</figure>\n";
    html
}

/// The verdict on a plot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) is_lost: bool,
    /// Within noise, at one point at least.
    is_level: bool,
    pub(super) text: String,
}

impl Verdict {
    fn badge(&self) -> String {
        let class = match (self.is_lost, self.is_level) {
            (true, _) => "lost",
            (_, true) => "level",
            _ => "kept",
        };
        format!(
            "<span class=\"badge {class}\">{}</span>\n",
            escape(&self.text)
        )
    }
}

/// How the best of ours does, at each point if there are several; `None` if there is no goal.
pub(super) fn verdict(rows: &[&Row]) -> Option<Verdict> {
    let mut points: Vec<f64> = rows.iter().filter_map(|row| row.x).collect();
    points.sort_by(f64::total_cmp);
    points.dedup();
    let ours_at = |x: Option<f64>| {
        let ours = rows.iter().copied();
        best(ours.filter(|row| row.is_ours() && row.has_goal() && row.x == x))
    };
    if points.is_empty() {
        let row = ours_at(None)?;
        let is_level = row.verdict == Some(Judged::Level);
        let word = row.verdict.map_or("", Judged::mark);
        return Some(Verdict {
            is_lost: row.lost,
            is_level,
            text: match (row.ratio_to_best_peer, row.limit, row.lost) {
                (Some(ratio), ..) => format!("{word}: {} x the best peer", number(ratio)),
                (None, Some(limit), true) => format!("BEHIND: not below {}", number(limit)),
                (None, limit, _) => format!("below {}", number(limit.unwrap_or_default())),
            },
        });
    }
    let judged: Vec<&Row> = points.iter().filter_map(|&x| ours_at(Some(x))).collect();
    let lost = judged.iter().filter(|row| row.lost).count();
    let level = judged
        .iter()
        .filter(|row| row.verdict == Some(Judged::Level))
        .count();
    let all = judged.len();
    (!judged.is_empty()).then(|| Verdict {
        is_lost: lost > 0,
        is_level: level > 0,
        text: match (lost, level) {
            (0, 0) => format!("ahead at all {all} points"),
            (0, _) => format!("level at {level} of {all} points, ahead at the others"),
            _ => format!("BEHIND at {lost} of {all} points"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Standing::{Ours, Peer};
    use crate::record::tests::{record, row};

    fn ours(ratio: Option<f64>, lost: bool) -> Row {
        Row {
            ratio_to_best_peer: ratio,
            verdict: Some(if lost { Judged::Behind } else { Judged::Ahead }),
            lost,
            ..row("millpond", Ours, 90.0)
        }
    }

    fn text(rows: &[Row]) -> Option<String> {
        let verdict = verdict(&rows.iter().collect::<Vec<_>>());
        verdict.map(|verdict| verdict.text)
    }

    #[test]
    fn suites_come_in_the_order_of_the_run() {
        let mut rows = vec![
            row("a", Ours, 1.0),
            row("b", Peer, 1.0),
            row("c", Peer, 1.0),
        ];
        rows[1].suite = "queue".into();
        rows[2].suite = "from the future".into();
        let record = record(rows);
        let names: Vec<_> = all(&record).iter().map(|section| section.name).collect();
        assert_eq!(names, ["pool", "queue", "from the future"]);
    }

    #[test]
    fn a_suite_that_was_measured_in_two_conditions_has_two_sections() {
        let mut rows = vec![row("a", Ours, 1.0), row("a", Ours, 2.0)];
        rows[1].condition = Some(Condition::OneCpu);
        let record = record(rows);
        let titles: Vec<_> = all(&record).iter().map(Section::title).collect();
        assert_eq!(titles, ["pool", "pool, one CPU"]);
        let places: Vec<_> = all(&record).iter().map(Section::anchor).collect();
        assert_ne!(places[0], places[1]);
    }

    #[test]
    fn a_plot_is_judged_by_the_best_of_ours() {
        let lost = text(&[ours(Some(1.5), true)]);
        assert_eq!(lost.as_deref(), Some("BEHIND: 1.50 x the best peer"));
        let better = Row {
            median: 30.0,
            ..ours(Some(0.5), false)
        };
        let both = text(&[ours(Some(1.5), true), better]);
        assert_eq!(both.as_deref(), Some("ahead: 0.50 x the best peer"));
        assert_eq!(text(&[ours(None, false), row("kanal", Peer, 1.0)]), None);
        let limited = Row {
            limit: Some(25.0),
            ..ours(None, true)
        };
        assert_eq!(text(&[limited]).as_deref(), Some("BEHIND: not below 25.0"));
    }

    #[test]
    fn a_curve_is_judged_point_by_point() {
        let at = |x, lost| Row {
            curve: Some("c".into()),
            x: Some(x),
            ..ours(Some(1.0), lost)
        };
        let some = text(&[at(1.0, false), at(2.0, true), at(3.0, false)]);
        assert_eq!(some.as_deref(), Some("BEHIND at 1 of 3 points"));
        let none = text(&[at(1.0, false), at(2.0, false)]);
        assert_eq!(none.as_deref(), Some("ahead at all 2 points"));
        let level = Row {
            verdict: Some(Judged::Level),
            ..at(2.0, false)
        };
        let near = text(&[at(1.0, false), level]);
        assert_eq!(
            near.as_deref(),
            Some("level at 1 of 2 points, ahead at the others")
        );
    }
}
