//! The page for people.

use super::page::{Cost, Found, Page};
use super::table::{Align, columns};
use crate::terminal::Paint;

/// The whole page, ending in a newline.
pub(super) fn page(page: &Page, paint: Paint) -> String {
    let mut lines = vec![format!("{} {}", paint.title(page.name), page.version)];
    lines.push(page.about.to_owned());
    heading(&mut lines, "What is in the box", paint);
    boxes(&mut lines, page, paint);
    heading(&mut lines, "This machine", paint);
    facts(&mut lines, page, paint);
    if let Some(costs) = &page.costs {
        heading(&mut lines, "What things cost here", paint);
        table(&mut lines, costs, paint);
    }
    lines.push(String::new());
    lines.push(paint.faint("More: millpond --help"));
    lines.push(String::new());
    lines.join("\n")
}

fn heading(lines: &mut Vec<String>, text: &str, paint: Paint) {
    lines.push(String::new());
    lines.push(paint.strong(text));
}

fn boxes(lines: &mut Vec<String>, page: &Page, paint: Paint) {
    let rows: Vec<_> = page
        .ready
        .iter()
        .map(|room| [room.path, room.holds].map(String::from))
        .collect();
    for [path, holds] in columns(&rows, [Align::Left; 2]) {
        lines.push(format!("  {}    {path}  {holds}", paint.good("ready")));
    }
    // One line would run past the screen's edge.
    let plan: Vec<String> = page.planned.chunks(6).map(|some| some.join(", ")).collect();
    let plan = plan.join(&format!(",\n  {:7}  ", ""));
    lines.push(format!("  {}  {plan}", paint.faint("planned")));
}

fn facts(lines: &mut Vec<String>, page: &Page, paint: Paint) {
    let rows: Vec<_> = page
        .machine
        .lines()
        .into_iter()
        .map(|(name, text)| [name.to_owned(), text])
        .collect();
    for [name, text] in columns(&rows, [Align::Left; 2]) {
        lines.push(format!("  {}  {text}", paint.faint(&name)));
    }
}

fn table(lines: &mut Vec<String>, costs: &[Cost], paint: Paint) {
    let mut rows = vec![["", "p50", "p99", "unit", "what it means"].map(String::from)];
    rows.extend(costs.iter().map(row));
    let align = [
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
    ];
    for (index, cells) in columns(&rows, align).into_iter().enumerate() {
        let line = format!("  {}", cells.join("  ")).trim_end().to_owned();
        lines.push(if index == 0 { paint.faint(&line) } else { line });
    }
}

fn row(cost: &Cost) -> [String; 5] {
    match &cost.found {
        Found::Measured {
            p50_ns,
            p99_ns,
            meaning,
            ..
        } => {
            let unit = Unit::of(*p50_ns);
            let [p50, p99] = [p50_ns, p99_ns].map(|nanos| unit.number(*nanos));
            [
                cost.label.into(),
                p50,
                p99,
                unit.name.into(),
                meaning.clone(),
            ]
        }
        Found::Skipped { skipped } => [
            cost.label.into(),
            "-".into(),
            "-".into(),
            String::new(),
            skipped.clone(),
        ],
    }
}

/// A line has one unit, that of its p50, so that p50 and p99 can be compared at a glance.
struct Unit {
    name: &'static str,
    nanos: f64,
}

impl Unit {
    fn of(nanos: f64) -> Self {
        let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)];
        let (name, size) = units
            .into_iter()
            .rev()
            .find(|u| nanos >= u.1)
            .unwrap_or(units[0]);
        Self { name, nanos: size }
    }

    fn number(&self, nanos: f64) -> String {
        let value = nanos / self.nanos;
        let digits = if value < 9.995 {
            2
        } else {
            usize::from(value < 99.95)
        };
        format!("{value:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Facts;

    use super::super::costs::tests::planted;
    use super::*;

    fn shown(medians: &[(&str, f64)], paint: Paint) -> String {
        page(&Page::new(Facts::unknown(), Some(planted(medians))), paint)
    }

    #[test]
    fn a_line_shows_both_percentiles_in_one_unit() {
        let text = shown(
            &[("task", 50.0), ("wake_call", 2500.0)],
            Paint::fixed(false),
        );
        let line = text
            .lines()
            .find(|line| line.contains("wake-up: the call"))
            .unwrap();
        let words: Vec<_> = line.split_whitespace().skip(3).take(3).collect();
        assert_eq!(words, ["2.50", "5.00", "µs"]);
        assert!(line.contains("as much as 50 tasks"), "{line}");
    }

    #[test]
    fn a_skipped_line_says_why() {
        let text = shown(&[], Paint::fixed(false));
        let line = text
            .lines()
            .find(|line| line.contains("cache line"))
            .unwrap();
        assert!(line.ends_with("it was left out"), "{line}");
    }

    #[test]
    fn every_room_is_on_the_page() {
        let value = Page::new(Facts::unknown(), None);
        let text = page(&value, Paint::fixed(false));
        for room in value.ready {
            assert!(
                text.contains(room.path) && text.contains(room.holds),
                "{}",
                room.path
            );
        }
        for planned in value.planned {
            assert!(text.contains(planned), "{planned}");
        }
        assert!(!text.contains("What things cost"));
    }

    #[test]
    fn lines_fit_a_screen_and_end_without_spaces() {
        let all = [
            "clock",
            "atomic_add",
            "lock",
            "lock_std",
            "line",
            "alloc",
            "task",
        ];
        let mut medians: Vec<_> = all.map(|key| (key, 1234.5)).into();
        medians.extend([
            ("wake_call", 9.9e8),
            ("wake_delay", 9.9e8),
            ("thread", 9.9e8),
        ]);
        for line in shown(&medians, Paint::fixed(false)).lines() {
            assert!(line.chars().count() <= 110, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }

    #[test]
    fn colours_change_nothing_but_the_colour() {
        let medians = [("task", 50.0)];
        let mut painted = shown(&medians, Paint::fixed(true));
        for code in ["1;36", "1", "2", "32", "0"] {
            painted = painted.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(painted, shown(&medians, Paint::fixed(false)));
    }

    #[test]
    fn a_unit_is_the_largest_that_leaves_a_whole_number() {
        let shown = |nanos| format!("{} {}", Unit::of(nanos).number(nanos), Unit::of(nanos).name);
        assert_eq!(shown(0.4), "0.40 ns");
        assert_eq!(shown(999.0), "999 ns");
        assert_eq!(shown(1_000.0), "1.00 µs");
        assert_eq!(shown(45_678.0), "45.7 µs");
        assert_eq!(shown(2.5e9), "2500 ms");
    }
}
