//! Which rows are one plot.

use crate::record::{Row, Standing};

/// Rows that are drawn together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Panel<'a> {
    /// One workload, several candidates.
    Bars(Vec<&'a Row>),
    /// The points of one curve, several candidates.
    Curve(Vec<&'a Row>),
    /// One workload whose candidates do not compete: what the machine costs.
    Ladder(Vec<&'a Row>),
}

impl<'a> Panel<'a> {
    /// Its rows.
    pub(super) fn rows(&self) -> &[&'a Row] {
        match self {
            Panel::Bars(rows) | Panel::Curve(rows) | Panel::Ladder(rows) => rows,
        }
    }

    /// The quantity that it shows.
    pub(super) fn title(&self) -> String {
        let first = self.rows()[0];
        match self {
            Panel::Bars(_) | Panel::Ladder(_) => first.workload.clone(),
            Panel::Curve(_) => first.curve.clone().unwrap_or_default(),
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
    groups.into_iter().map(panel).collect()
}

fn panel<'a>(group: Vec<&'a Row>) -> Panel<'a> {
    let can_climb = |row: &&Row| row.standing == Standing::Reference && row.min > 0.0;
    if group[0].point().is_some() {
        Panel::Curve(group)
    } else if group.len() > 1 && group.iter().all(can_climb) {
        Panel::Ladder(group)
    } else {
        Panel::Bars(group)
    }
}

fn is_one_plot(one: &Row, other: &Row) -> bool {
    one.unit == other.unit
        && match (one.point(), other.point()) {
            (Some((curve, _)), Some((other, _))) => curve == other,
            (None, None) => one.workload == other.workload,
            _ => false,
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
    fn rows_without_competitors_are_rungs_of_a_ladder() {
        let rows = [
            row("CAS", Reference, 8.0),
            row("fence", Reference, 9.0),
            named("locks", row("millpond", Ours, 5.0)),
            named("locks", row("std", Peer, 5.0)),
            named("idle", row("CAS", Reference, 0.0)),
            named("idle", row("fence", Reference, 0.0)),
        ];
        let panels = of_suite(&rows.iter().collect::<Vec<_>>());
        assert_eq!(panels[0], Panel::Ladder(vec![&rows[0], &rows[1]]));
        assert_eq!(panels[1], Panel::Bars(vec![&rows[2], &rows[3]]));
        // Zero has no place on a logarithmic scale.
        assert_eq!(panels[2], Panel::Bars(vec![&rows[4], &rows[5]]));
    }
}
