//! A small picture. Everything that is written into it is escaped here and nowhere else.

use super::text::escape;
use std::fmt::Write;

/// How wide every plot is, in user units: as wide as a phone is in pixels, so that a letter is as
/// large as beside it.
pub(super) const WIDTH: f64 = 400.0;

/// A place in a picture.
pub(super) type Place = (f64, f64);

/// A picture in the making.
#[derive(Debug)]
pub(super) struct Svg {
    body: String,
}

/// Which part of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

impl Svg {
    /// A picture [`WIDTH`] wide and so high. `kind` is its class, and `label` says what it shows to
    /// readers that cannot see it.
    pub(super) fn new(kind: &str, height: f64, label: &str) -> Self {
        let (kind, label) = (escape(kind), escape(label));
        Svg {
            body: format!(
                "<svg class=\"plot {kind}\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
                 aria-label=\"{label}\">\n"
            ),
        }
    }

    /// A picture of 26 by 12, to stand beside a name in a legend.
    pub(super) fn sample() -> Self {
        let head = "<svg class=\"sample\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">";
        Svg { body: head.into() }
    }

    /// A rectangle from its upper left corner.
    pub(super) fn rect(&mut self, class: &str, (x, y): Place, (width, height): Place) {
        let width = width.max(0.0);
        self.push(format_args!(
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
            escape(class)
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): Place, (x2, y2): Place) {
        self.push(format_args!(
            "<line class=\"{}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>",
            escape(class)
        ));
    }

    /// A line through places, or the area within them.
    pub(super) fn path(&mut self, class: &str, places: &[Place], is_closed: bool) {
        let mut steps = String::new();
        for (index, (x, y)) in places.iter().enumerate() {
            let step = if index == 0 { 'M' } else { 'L' };
            let _ = write!(steps, "{step}{x:.1} {y:.1}");
        }
        if is_closed {
            steps.push('Z');
        }
        self.push(format_args!(
            "<path class=\"{}\" d=\"{steps}\"/>",
            escape(class)
        ));
    }

    /// One line of text; `y` is where its letters stand.
    pub(super) fn text(&mut self, class: &str, (x, y): Place, anchor: Anchor, text: &str) {
        self.push(format_args!(
            "<text class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{}\">{}</text>",
            escape(class),
            anchor.name(),
            escape(text)
        ));
    }

    /// `draw` draws one thing: a pointer that rests on it shows `tip`.
    pub(super) fn group(&mut self, class: &str, tip: &str, draw: impl FnOnce(&mut Self)) {
        self.push(format_args!(
            "<g class=\"{}\"><title>{}</title>",
            escape(class),
            escape(tip)
        ));
        draw(self);
        self.body += "</g>\n";
    }

    /// The picture.
    pub(super) fn finish(self) -> String {
        self.body + "</svg>\n"
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let mut svg = Svg::new("bars", 20.0, "a \"quoted\" <name>");
        svg.group("row", "1 < 2", |svg| {
            svg.text("label", (1.0, 2.0), Anchor::End, "</text><script>");
        });
        let text = svg.finish();
        assert!(
            !text.contains("<script>") && !text.contains("<name>"),
            "{text}"
        );
        assert!(text.contains("<title>1 &lt; 2</title>"), "{text}");
        assert!(text.contains("aria-label=\"a &quot;quoted&quot; &lt;name&gt;\""));
    }

    #[test]
    fn a_path_begins_somewhere_and_goes_on_from_there() {
        let mut svg = Svg::new("curve", 20.0, "");
        svg.path("line", &[(0.0, 1.0), (2.25, 3.0)], false);
        svg.path("band", &[(0.0, 1.0), (2.0, 3.0), (4.0, 0.0)], true);
        let text = svg.finish();
        assert!(text.contains("d=\"M0.0 1.0L2.2 3.0\""), "{text}");
        assert!(text.contains("d=\"M0.0 1.0L2.0 3.0L4.0 0.0Z\""), "{text}");
    }
}
