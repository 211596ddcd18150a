//! A ladder: candidates that do not compete, on one logarithmic scale, the cheapest on top.
//!
//! A dot and not a bar, because a logarithmic scale has no zero that a bar could begin at.

use super::bars::{class, tip};
use super::scale::Scale;
use super::svg::{Anchor, Svg, WIDTH};
use super::text::{fit, number, width};
use crate::record::Row;

const PITCH: f64 = 30.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;
const RADIUS: f64 = 4.5;

/// The plot.
pub(super) fn draw(rows: &[&Row], label: &str) -> String {
    let values = rows.iter().flat_map(|row| [row.median, row.min, row.max]);
    let values: Vec<f64> = values.filter(|&value| value > 0.0).collect();
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(0.0, f64::max);
    let scale = Scale::logarithmic(min, max, (8.0, WIDTH - 8.0));
    let foot = TOP + PITCH * rows.len() as f64;
    let mut svg = Svg::new("ladder", foot + BOTTOM, label);
    for tick in scale.ticks(8) {
        let x = scale.at(tick);
        svg.line("grid", (x, TOP), (x, foot + 4.0));
    }
    for (x, tick) in scale.labels(8) {
        let half = width(&tick) / 2.0;
        let x = x.clamp(half, WIDTH - half);
        svg.text("tick", (x, foot + 17.0), Anchor::Middle, &tick);
    }
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| a.cmp_by_median(b));
    for (index, row) in sorted.iter().enumerate() {
        let y = TOP + PITCH * index as f64;
        svg.group(class(row), &tip(row), |svg| rung(svg, row, &scale, y));
    }
    svg.finish()
}

fn rung(svg: &mut Svg, row: &Row, scale: &Scale, y: f64) {
    let value = number(row.median);
    let room = WIDTH - width(&value) - 12.0;
    svg.text(
        "name",
        (1.0, y + 11.0),
        Anchor::Start,
        &fit(&row.candidate, room),
    );
    svg.text("value", (WIDTH - 1.0, y + 11.0), Anchor::End, &value);
    let y = y + 20.0;
    svg.line("track", (0.0, y), (WIDTH, y));
    svg.line("spread", (scale.at(row.min), y), (scale.at(row.max), y));
    let x = scale.at(row.median);
    let corner = (x - RADIUS, y - RADIUS);
    svg.rect("dot", corner, (2.0 * RADIUS, 2.0 * RADIUS));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Standing::Reference;
    use crate::record::tests::row;

    #[test]
    fn every_candidate_has_a_dot_and_its_number_the_cheapest_on_top() {
        let rows = [
            row("thread, started and joined", Reference, 44_000.0),
            row("CAS", Reference, 8.0),
        ];
        let text = draw(&[&rows[0], &rows[1]], "floor");
        assert_eq!(text.matches("class=\"dot\"").count(), 2, "{text}");
        assert!(text.find("CAS") < text.find("thread, started"), "{text}");
        assert!(text.contains(">CAS</text>") && text.contains(">44,000</text>"));
        assert!(
            text.contains(">100</text>") && text.contains(">10k</text>"),
            "{text}"
        );
    }
}
