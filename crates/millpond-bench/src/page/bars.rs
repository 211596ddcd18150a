//! Bars: one workload, a bar per candidate, the best on top.
//!
//! ```text
//!              |       : best peer
//!     millpond |====|-|:           97.1   0.97
//!        kanal |=======-            100   1.00
//!       python |==================//  9,100  91.0     torn off
//! ```
//!
//! The thin line at the end of a bar goes from the smallest round to the largest.

use super::scale::Scale;
use super::svg::{Anchor, Svg, WIDTH};
use super::text::{BOLD, fit, number, width};
use crate::record::{Row, Standing, best};

const BAR: f64 = 11.0;
const PITCH: f64 = 19.0;
/// With its name above, a bar needs more.
const TALL_PITCH: f64 = 33.0;
/// Over the bars is room for what stands over the columns.
const TOP: f64 = 18.0;
const HEADS: f64 = 11.0;
/// Names get no more than this to the left of their bars; if one is longer, all stand above them.
const NAMES: f64 = 182.0;
const BARS_END: f64 = 290.0;
const VALUE: f64 = 346.0;
const RATIO: f64 = WIDTH - 1.0;

/// A bar that is longer than this many times what matters is torn off.
const TORN: f64 = 5.0;

/// The plot.
pub(super) fn draw(rows: &[&Row], label: &str) -> String {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| a.cmp_by_median(b));
    let widest = rows.iter().map(|row| {
        let bold = if row.is_ours() { BOLD } else { 1.0 };
        width(&row.candidate) * bold
    });
    let names = Some(widest.fold(0.0, f64::max)).filter(|&widest| widest <= NAMES);
    let frame = Frame {
        names,
        scale: scale(rows, names.map_or(1.0, |names| names + 6.0)),
    };
    let height = TOP + frame.pitch() * rows.len() as f64 + 2.0;
    let mut svg = Svg::new("bars", height, label);
    frame.heads(&mut svg);
    frame.guides(&mut svg, rows);
    for (index, row) in sorted.iter().enumerate() {
        svg.group(class(row), &tip(row), |svg| frame.row(svg, row, index));
    }
    svg.finish()
}

/// Zero to the longest bar, but no further than [`TORN`] times the longer of the best of ours and the
/// best peer.
fn scale(rows: &[&Row], start: f64) -> Scale {
    let of = |standing| best(rows.iter().copied().filter(|row| row.standing == standing));
    let matters = [of(Standing::Ours), of(Standing::Peer)];
    let matters = matters.iter().flatten().map(|row| row.median);
    let matters = matters.fold(0.0, f64::max);
    let limit = rows.iter().filter_map(|row| row.limit);
    let values = rows.iter().map(|row| row.median).chain(limit);
    let cut = |value: f64| {
        if matters > 0.0 {
            value.min(matters * TORN)
        } else {
            value
        }
    };
    // Bars have a length, so they begin at zero, whatever they span.
    let range = values
        .map(cut)
        .fold((0.0, 0.0), |(min, max): (f64, f64), value| {
            (min.min(value), max.max(value))
        });
    Scale::linear(range.0, range.1, (start, BARS_END))
}

struct Frame {
    /// Where the names to the left of the bars end; `None` if they stand above.
    names: Option<f64>,
    scale: Scale,
}

impl Frame {
    fn pitch(&self) -> f64 {
        self.names.map_or(TALL_PITCH, |_| PITCH)
    }

    /// From where to where the bar of a row has room, without its name.
    fn lane(&self, index: usize) -> (f64, f64) {
        let foot = TOP + self.pitch() * (index + 1) as f64;
        (foot - PITCH + 1.0, foot)
    }

    fn heads(&self, svg: &mut Svg) {
        svg.text("head", (VALUE, HEADS), Anchor::End, "median");
        svg.text("head", (RATIO, HEADS), Anchor::End, "ratio");
    }

    /// The goal: the best peer, or the limit.
    fn guides(&self, svg: &mut Svg, rows: &[&Row]) {
        let peer = best(rows.iter().copied().filter(|row| row.is_peer())).map(|row| row.median);
        let limit = rows.iter().find_map(|row| row.limit);
        for (value, class, name) in [(peer, "guide", "best peer"), (limit, "limit", "limit")] {
            let Some(value) = value.filter(|&value| value > 0.0) else {
                continue;
            };
            // Where there is a limit, being better than a peer is not the question.
            if class == "guide" && limit.is_some() {
                continue;
            }
            let x = self.scale.at(value);
            for index in 0..rows.len() {
                let (from, to) = self.lane(index);
                svg.line(class, (x, from), (x, to));
            }
            let half = width(name) / 2.0;
            let middle = x.clamp(half, VALUE - width("median") - half);
            svg.text("head", (middle, HEADS), Anchor::Middle, name);
        }
    }

    fn row(&self, svg: &mut Svg, row: &Row, index: usize) {
        let (lane, _) = self.lane(index);
        let (bar_y, text_y) = (lane + 2.0, lane + 11.5);
        if let Some(end) = self.names {
            svg.text("name", (end, text_y), Anchor::End, &row.candidate);
        } else {
            let name = fit(&row.candidate, WIDTH);
            svg.text("name", (1.0, lane - 2.5), Anchor::Start, &name);
        }
        let (zero, end) = (self.scale.at(0.0), self.scale.at(row.median));
        let (left, right) = (zero.min(end), zero.max(end));
        // A bar of nothing is still there to be seen.
        svg.rect("bar", (left, bar_y), ((right - left).max(1.0), BAR));
        self.spread(svg, row, bar_y + BAR / 2.0);
        if row.median > self.scale.farthest() * 1.000_001 {
            tear(svg, bar_y);
        }
        svg.text("value", (VALUE, text_y), Anchor::End, &number(row.median));
        let ratio = match (row.ratio_to_best_peer, row.limit) {
            (Some(ratio), _) => number(ratio),
            (None, Some(limit)) if row.is_ours() => format!("< {}", number(limit)),
            (None, _) => "-".into(),
        };
        svg.text("ratio", (RATIO, text_y), Anchor::End, &ratio);
    }

    fn spread(&self, svg: &mut Svg, row: &Row, y: f64) {
        let (min, max) = (self.scale.at(row.min), self.scale.at(row.max));
        if max - min > 1.0 {
            svg.line("spread", (min, y), (max, y));
        }
    }
}

/// Two slanted cuts across the end of a bar.
fn tear(svg: &mut Svg, y: f64) {
    for x in [BARS_END - 14.0, BARS_END - 8.0] {
        svg.line("tear", (x, y + BAR + 2.0), (x + 5.0, y - 2.0));
    }
}

/// The class of a row: what it is to us, and whether it is lost.
pub(super) fn class(row: &Row) -> &'static str {
    match (row.standing, row.lost) {
        (Standing::Ours, true) => "row ours lost",
        (Standing::Ours, false) => "row ours",
        (Standing::Peer, _) => "row peer",
        (Standing::Reference, _) => "row reference",
    }
}

/// Everything about a row that has no room in the plot.
pub(super) fn tip(row: &Row) -> String {
    let [median, min, max] = [row.median, row.min, row.max].map(number);
    let mut tip = format!(
        "{}: {median} {} ({min} to {max} in {} rounds)",
        row.candidate, row.unit, row.rounds
    );
    if let Some(ratio) = row.ratio_to_best_peer {
        tip += &format!(", {} x the best peer", number(ratio));
    }
    if let Some(verdict) = row.verdict {
        tip += &format!(", {}", verdict.mark());
    }
    tip
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Standing::{Ours, Peer, Reference};
    use crate::record::tests::row;

    fn drawn(rows: &[Row]) -> String {
        draw(&rows.iter().collect::<Vec<_>>(), "burst")
    }

    #[test]
    fn there_is_a_bar_per_candidate_the_best_on_top_and_ours_marked() {
        let lost = Row {
            verdict: Some(crate::verdict::Verdict::Behind),
            lost: true,
            ratio_to_best_peer: Some(1.5),
            ..row("millpond", Ours, 90.0)
        };
        let text = drawn(&[
            lost,
            row("kanal", Peer, 60.0),
            row("spinner", Reference, 6.0),
        ]);
        assert_eq!(text.matches("class=\"bar\"").count(), 3, "{text}");
        let places = ["row reference", "row peer", "row ours lost"].map(|class| text.find(class));
        assert!(places.is_sorted() && places[0].is_some(), "{text}");
        assert!(text.contains(">1.50</text>"), "{text}");
        assert!(text.contains("BEHIND</title>"), "{text}");
    }

    #[test]
    fn a_bar_that_would_press_the_others_flat_is_torn_off_and_says_its_number() {
        let text = drawn(&[
            row("millpond", Ours, 100.0),
            row("kanal", Peer, 100.0),
            row("slow", Peer, 40_000.0),
        ]);
        assert_eq!(text.matches("class=\"tear\"").count(), 2, "{text}");
        assert!(text.contains(">40,000</text>"), "{text}");
        // The others are still a fifth of the whole.
        let rows = [row("m", Ours, 100.0), row("slow", Peer, 40_000.0)];
        let scale = scale(&[&rows[0], &rows[1]], 0.0);
        assert!(scale.at(100.0) < BARS_END);
        let even = drawn(&[row("millpond", Ours, 100.0), row("kanal", Peer, 400.0)]);
        assert!(!even.contains("tear"), "{even}");
    }

    #[test]
    fn long_names_stand_above_their_bars_and_are_whole() {
        let name = "Java ThreadPoolExecutor, hand-off queue";
        let text = drawn(&[row("millpond", Ours, 1.0), row(name, Peer, 2.0)]);
        assert!(text.contains(&format!(">{name}</text>")), "{text}");
    }

    #[test]
    fn nothing_and_less_than_nothing_can_be_drawn() {
        let difference = Row {
            limit: Some(25.0),
            ..row("millpond", Ours, -3.0)
        };
        for text in [drawn(&[difference]), drawn(&[row("idle", Ours, 0.0)])] {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(text.contains("class=\"bar\""), "{text}");
        }
    }
}
