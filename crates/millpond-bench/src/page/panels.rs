//! Which rows are one plot.

use crate::record::Row;

/// Rows that are drawn together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Panel<'a> {
    /// One workload, several candidates.
    Bars(Vec<&'a Row>),
    /// The points of one curve, several candidates.
    Curve(Vec<&'a Row>),
    /// Workloads of one candidate each, in the same unit.
    Ladder(Vec<&'a Row>),
}

impl<'a> Panel<'a> {
    /// Its rows.
    pub(super) fn rows(&self) -> &[&'a Row] {
        match self {
            Panel::Bars(rows) | Panel::Curve(rows) | Panel::Ladder(rows) => rows,
        }
    }

    /// What it shows.
    pub(super) fn title(&self) -> String {
        let first = self.rows()[0];
        match self {
            Panel::Bars(_) => first.workload.clone(),
            Panel::Curve(_) => first.curve.clone().unwrap_or_default(),
            Panel::Ladder(_) => format!("all of them, in {}", first.unit),
        }
    }
}

/// The panels of a suite, in the order of its rows. None is empty.
pub(super) fn of_suite<'a>(rows: &[&'a Row]) -> Vec<Panel<'a>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for &row in rows {
        match groups.iter_mut().find(|group| is_one_plot(group[0], row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for group in groups {
        let first = group[0];
        if first.point().is_some() {
            panels.push(Panel::Curve(group));
        } else if group.len() > 1 || !can_climb(first) {
            panels.push(Panel::Bars(group));
        } else {
            let rungs = panels.iter_mut().find_map(|panel| match panel {
                Panel::Ladder(rungs) if rungs[0].unit == first.unit => Some(rungs),
                _ => None,
            });
            match rungs {
                Some(rungs) => rungs.push(first),
                None => panels.push(Panel::Ladder(group)),
            }
        }
    }
    panels.into_iter().map(with_rungs_enough).collect()
}

fn is_one_plot(one: &Row, other: &Row) -> bool {
    one.unit == other.unit
        && match (one.point(), other.point()) {
            (Some((curve, _)), Some((other, _))) => curve == other,
            (None, None) => one.workload == other.workload,
            _ => false,
        }
}

/// A lone row with a goal of its own is a plot of its own: its limit is drawn beside it.
fn can_climb(row: &Row) -> bool {
    row.median > 0.0 && row.min > 0.0 && row.limit.is_none()
}

fn with_rungs_enough(panel: Panel<'_>) -> Panel<'_> {
    match panel {
        Panel::Ladder(rungs) if rungs.len() == 1 => Panel::Bars(rungs),
        panel => panel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Standing::{Ours, Peer, Reference};
    use crate::record::tests::row;

    fn named(workload: &str, row: Row) -> Row {
        Row {
            workload: workload.into(),
            ..row
        }
    }

    fn point(curve: &str, x: f64, row: Row) -> Row {
        Row {
            curve: Some(curve.into()),
            axis: Some("load, %".into()),
            x: Some(x),
            ..row
        }
    }

    #[test]
    fn candidates_of_a_workload_are_one_plot_and_so_are_all_points_of_a_curve() {
        let rows = [
            named("a", row("millpond", Ours, 1.0)),
            named("a", row("kanal", Peer, 2.0)),
            point("p99", 10.0, named("10 %", row("millpond", Ours, 1.0))),
            point("p99", 20.0, named("20 %", row("millpond", Ours, 1.0))),
            point("p50", 10.0, named("10 %", row("millpond", Ours, 1.0))),
            named("b", row("millpond", Ours, 1.0)),
            named("b", row("kanal", Peer, 2.0)),
        ];
        let panels = of_suite(&rows.iter().collect::<Vec<_>>());
        let titles: Vec<_> = panels.iter().map(Panel::title).collect();
        assert_eq!(titles, ["a", "p99", "p50", "b"]);
        assert_eq!(panels[1], Panel::Curve(vec![&rows[2], &rows[3]]));
    }

    #[test]
    fn lone_candidates_are_rungs_of_a_ladder_for_each_unit() {
        let micros = Row {
            unit: "µs".into(),
            ..named("thread", row("machine", Reference, 40.0))
        };
        let rows = [
            named("CAS", row("machine", Reference, 8.0)),
            named("fence", row("machine", Reference, 9.0)),
            micros,
        ];
        let panels = of_suite(&rows.iter().collect::<Vec<_>>());
        assert_eq!(panels[0], Panel::Ladder(vec![&rows[0], &rows[1]]));
        assert_eq!(panels[1], Panel::Bars(vec![&rows[2]]));
    }

    #[test]
    fn a_lone_row_with_a_limit_is_a_plot_of_its_own() {
        let cost = Row {
            limit: Some(25.0),
            ..row("millpond", Ours, 20.0)
        };
        let rows = [named("a", cost.clone()), named("b", cost)];
        let panels = of_suite(&rows.iter().collect::<Vec<_>>());
        assert_eq!(panels.len(), 2);
        assert!(panels.iter().all(|panel| matches!(panel, Panel::Bars(_))));
    }
}
