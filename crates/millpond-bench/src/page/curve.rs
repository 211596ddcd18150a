//! A curve: a line per candidate through its points.
//!
//! Lines differ in colour, in the shape of their points and, when the colours begin again, in their
//! dashes. Ours is thicker, lies on top and has a band from its smallest rounds to its largest. Resting
//! on a name in the legend fades the other lines: that is done by the style sheet alone.

use super::bars::tip;
use super::scale::Scale;
use super::svg::{Anchor, Place, Svg, WIDTH};
use super::text::{escape, number, width};
use crate::record::{Row, Standing};
use crate::workloads::scale;
use crate::workloads::scale::usl::Law;
use std::fmt::Write;

/// The number of colours in the style sheet for candidates that are not ours.
const COLOURS: usize = 9;
/// So many for ours.
const OUR_COLOURS: usize = 3;
/// No plot has more lines with a highlight of their own.
const MOST_LINES: usize = 32;

/// Units of which the ratio counts and not the difference.
const TIMES: [&str; 4] = ["ns", "µs", "ms", "s"];

/// How smooth a fitted law is drawn.
const STEPS: u32 = 40;

const HEIGHT: f64 = 290.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 8.0;
const FOOT: f64 = HEIGHT - 42.0;

/// One candidate's line.
struct Line<'a> {
    /// Which of the plot's lines it is.
    index: usize,
    /// Which of the colours of its kind it has, and how often they have begun again.
    colour: (usize, usize),
    points: Vec<&'a Row>,
}

impl<'a> Line<'a> {
    /// The lines of a plot, in the order of their first points.
    fn all(rows: &[&'a Row]) -> Vec<Line<'a>> {
        let mut lines: Vec<Line<'a>> = Vec::new();
        let (mut ours, mut others) = (0, 0);
        for &row in rows {
            let found = lines
                .iter_mut()
                .find(|line| line.points[0].candidate == row.candidate);
            if let Some(line) = found {
                line.points.push(row);
                continue;
            }
            let (count, colours) = if row.is_ours() {
                (&mut ours, OUR_COLOURS)
            } else {
                (&mut others, COLOURS)
            };
            lines.push(Line {
                index: lines.len(),
                colour: (*count % colours, *count / colours),
                points: vec![row],
            });
            *count += 1;
        }
        for line in &mut lines {
            line.points.sort_by(|a, b| x_of(a).total_cmp(&x_of(b)));
        }
        lines
    }

    fn standing(&self) -> Standing {
        self.points[0].standing
    }

    fn class(&self) -> String {
        let (colour, again) = self.colour;
        let (kind, letter) = match self.standing() {
            Standing::Ours => ("ours", 'o'),
            Standing::Peer => ("peer", 'c'),
            Standing::Reference => ("reference", 'c'),
        };
        format!("line {kind} {letter}{colour} dash{again} n{}", self.index)
    }

    /// The shape of its points: those of a neighbour in colour or in the legend differ.
    fn mark(&self, svg: &mut Svg, (x, y): Place) {
        let r = if self.standing() == Standing::Ours {
            4.0
        } else {
            3.2
        };
        let around = |places: &[Place]| -> Vec<Place> {
            places.iter().map(|(a, b)| (x + a * r, y + b * r)).collect()
        };
        let shape = match self.index % 4 {
            0 => around(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            1 => around(&[(0.0, -1.3), (1.2, 0.9), (-1.2, 0.9)]),
            2 => around(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            _ => around(&[(0.0, 1.3), (1.2, -0.9), (-1.2, -0.9)]),
        };
        svg.path("mark", &shape, true);
    }
}

fn x_of(row: &Row) -> f64 {
    row.x.unwrap_or_default()
}

/// The quantity on the vertical axis.
fn upwards(rows: &[&Row]) -> Scale {
    let values: Vec<f64> = rows.iter().map(|row| row.median).collect();
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(0.0, f64::max);
    // Twice as long is as much worse for a short time as for a long one.
    if min > 0.0 && TIMES.contains(&rows[0].unit.as_str()) {
        return Scale::logarithmic(min, max, (FOOT, TOP));
    }
    Scale::of(&values, (FOOT, TOP), true)
}

/// The law that fits the points of a line of ours, where they are numbers of workers.
fn law(line: &Line<'_>) -> Option<Law> {
    let is_fitted = line.standing() == Standing::Ours && line.points[0].suite == scale::SUITE.name;
    let points = line.points.iter().map(|row| (x_of(row), row.median));
    is_fitted.then(|| Law::fit(&points.collect::<Vec<_>>()))?
}

/// Whether the vertical axis is logarithmic.
pub(super) fn is_logarithmic(rows: &[&Row]) -> bool {
    upwards(rows).is_log
}

/// The plot, and its legend beside it.
pub(super) fn draw(rows: &[&Row], label: &str) -> String {
    let lines = Line::all(rows);
    let xs: Vec<f64> = rows.iter().map(|row| x_of(row)).collect();
    let x = Scale::of(&xs, (LEFT, RIGHT), false);
    let y = upwards(rows);
    let mut svg = Svg::new("curve", HEIGHT, label);
    axes(&mut svg, &x, &y, rows[0].axis.as_deref().unwrap_or("x"));
    let mut in_depth: Vec<&Line<'_>> = lines.iter().collect();
    in_depth.sort_by_key(|line| std::cmp::Reverse(line.standing()));
    for line in in_depth {
        draw_line(&mut svg, line, &x, &y);
    }
    svg.finish() + &legend(&lines)
}

fn axes(svg: &mut Svg, x: &Scale, y: &Scale, axis: &str) {
    for tick in y.ticks(6) {
        let at = y.at(tick);
        svg.line("grid", (LEFT, at), (RIGHT, at));
        svg.text(
            "tick",
            (LEFT - 6.0, at + 4.0),
            Anchor::End,
            &super::text::tick(tick),
        );
    }
    svg.line("axis", (LEFT, FOOT), (RIGHT, FOOT));
    for (at, label) in x.labels(8) {
        svg.line("axis", (at, FOOT), (at, FOOT + 4.0));
        let half = width(&label) / 2.0;
        svg.text(
            "tick",
            (at.min(WIDTH - half), FOOT + 17.0),
            Anchor::Middle,
            &label,
        );
    }
    let axis = if x.is_log {
        format!("{axis} (logarithmic)")
    } else {
        axis.to_owned()
    };
    svg.text(
        "head",
        (f64::midpoint(LEFT, RIGHT), HEIGHT - 6.0),
        Anchor::Middle,
        &axis,
    );
}

fn draw_line(svg: &mut Svg, line: &Line<'_>, x: &Scale, y: &Scale) {
    let place = |row: &&Row| (x.at(x_of(row)), y.at(row.median));
    let places: Vec<Place> = line.points.iter().map(place).collect();
    svg.group(&line.class(), &line.points[0].candidate, |svg| {
        if line.standing() == Standing::Ours {
            let upper = line
                .points
                .iter()
                .map(|row| (x.at(x_of(row)), y.at(row.max)));
            let lower = line.points.iter().rev();
            let lower = lower.map(|row| (x.at(x_of(row)), y.at(row.min)));
            svg.path("band", &upper.chain(lower).collect::<Vec<_>>(), true);
        }
        if let Some(law) = law(line) {
            let (first, last) = (line.points[0], line.points[line.points.len() - 1]);
            let (from, to) = (x_of(first), x_of(last));
            let at = |step| from + (to - from) * f64::from(step) / f64::from(STEPS);
            let fitted = (0..=STEPS).map(at);
            let fitted = fitted.map(|workers| (x.at(workers), y.at(law.throughput(workers))));
            svg.path("fit", &fitted.collect::<Vec<_>>(), false);
        }
        svg.path("stroke", &places, false);
        for (row, &place) in line.points.iter().zip(&places) {
            let axis = row.axis.as_deref().unwrap_or("x");
            let tip = format!("{axis}: {}\n{}", number(x_of(row)), tip(row));
            let class = if row.lost { "point lost" } else { "point" };
            svg.group(class, &tip, |svg| line.mark(svg, place));
        }
    });
}

fn legend(lines: &[Line<'_>]) -> String {
    let mut html = String::from("<ul class=\"legend\">\n");
    for line in lines {
        let class = line.class();
        let mut sample = Svg::sample();
        sample.path("stroke", &[(1.0, 6.0), (25.0, 6.0)], false);
        line.mark(&mut sample, (13.0, 6.0));
        let sample = sample.finish();
        let name = escape(&line.points[0].candidate);
        let _ = writeln!(html, "<li class=\"{class}\">{sample}{name}</li>");
    }
    if let Some(line) = lines.iter().find(|line| law(line).is_some()) {
        let mut sample = Svg::sample();
        sample.path("fit", &[(1.0, 6.0), (25.0, 6.0)], false);
        let (class, sample) = (line.class(), sample.finish());
        let _ = writeln!(
            html,
            "<li class=\"{class}\">{sample}fitted law of scalability</li>"
        );
    }
    html += "</ul>\n";
    html
}

/// The rules that fade all lines but the one whose name a pointer rests on.
pub(super) fn highlights() -> String {
    let mut rules = String::new();
    for index in 0..MOST_LINES {
        let _ = writeln!(
            rules,
            "figure:has(.legend .n{index}:hover) svg.curve .line:not(.n{index}) {{ opacity: .12; }}"
        );
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Standing::{Ours, Peer};
    use crate::record::tests::row;

    fn point(candidate: &str, standing: Standing, x: f64, y: f64) -> Row {
        Row {
            curve: Some("p99 against load".into()),
            axis: Some("load, %".into()),
            x: Some(x),
            ..row(candidate, standing, y)
        }
    }

    fn drawn(rows: &[Row]) -> String {
        draw(&rows.iter().collect::<Vec<_>>(), "p99")
    }

    #[test]
    fn there_is_a_line_per_candidate_a_mark_per_point_and_a_legend() {
        let text = drawn(&[
            point("millpond", Ours, 50.0, 20.0),
            point("rayon", Peer, 50.0, 40.0),
            point("millpond", Ours, 10.0, 10.0),
            point("rayon", Peer, 10.0, 30.0),
        ]);
        let (plot, legend) = text.split_once("<ul class=\"legend\">").unwrap();
        assert_eq!(plot.matches("class=\"stroke\"").count(), 2, "{text}");
        assert_eq!(plot.matches("class=\"mark\"").count(), 4, "{text}");
        assert_eq!(legend.matches("<li ").count(), 2, "{text}");
        // Ours is drawn last, on top of the others.
        assert!(plot.find("line ours").unwrap() > plot.find("line peer").unwrap());
    }

    #[test]
    fn points_come_in_the_order_of_their_axis_whatever_theirs_is() {
        let text = drawn(&[
            point("millpond", Ours, 100.0, 20.0),
            point("millpond", Ours, 10.0, 10.0),
            point("millpond", Ours, 55.0, 30.0),
        ]);
        let path = text.split("class=\"stroke\" d=\"").nth(1).unwrap();
        let path = path.split('"').next().unwrap();
        let steps = path.trim_start_matches('M').split('L');
        let xs: Vec<f64> = steps
            .map(|step| step.split(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(xs.len() == 3 && xs.is_sorted(), "{path}");
    }

    #[test]
    fn a_wide_axis_says_that_it_is_logarithmic() {
        let rows = [0.1, 10.0, 1_000.0].map(|x| point("millpond", Ours, x, 50.0));
        assert!(drawn(&rows).contains("load, % (logarithmic)"));
    }

    #[test]
    fn times_are_on_a_logarithmic_scale_however_little_they_span() {
        let micros = |y| Row {
            unit: "µs".into(),
            ..point("millpond", Ours, y, y)
        };
        let rows = [micros(20.0), micros(90.0)];
        assert!(is_logarithmic(&[&rows[0], &rows[1]]));
        let rates = [20.0, 90.0].map(|y| point("millpond", Ours, y, y));
        assert!(!is_logarithmic(&[&rates[0], &rates[1]]));
    }

    #[test]
    fn the_law_is_drawn_where_workers_are_counted_and_for_ours_alone() {
        let scaled = |candidate, standing, workers| Row {
            suite: "scale".into(),
            ..point(
                candidate,
                standing,
                workers,
                10.0 * workers / (1.0 + 0.2 * (workers - 1.0)),
            )
        };
        let workers = [1.0, 2.0, 3.0, 4.0];
        let ours = workers.map(|workers| scaled("millpond", Ours, workers));
        let peer = workers.map(|workers| scaled("rayon", Peer, workers));
        let text = drawn(&[ours, peer].concat());
        // Once in the plot and once in the legend.
        assert_eq!(text.matches("class=\"fit\"").count(), 2, "{text}");
        let other = workers.map(|workers| point("millpond", Ours, workers, workers));
        assert!(!drawn(&other).contains("class=\"fit\""));
    }

    #[test]
    fn many_candidates_have_colours_again_and_then_dashes() {
        let rows: Vec<Row> = (0..12)
            .map(|index| point(&format!("peer {index}"), Peer, 1.0, 1.0))
            .collect();
        let lines = Line::all(&rows.iter().collect::<Vec<_>>()).into_iter();
        let mut classes: Vec<String> = lines.map(|line| line.class()).collect();
        assert!(classes[9].contains("c0 dash1"), "{classes:?}");
        classes.dedup();
        assert_eq!(classes.len(), 12);
    }
}
