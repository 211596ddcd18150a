//! A rush, or open load: tasks come by a plan, whether there is room or not. Their fates are counted.

use serde::{Deserialize, Serialize};
use std::iter::Sum;
use std::time::Duration;

/// How a rush went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rush {
    /// The fates of its tasks.
    pub fates: Fates,
    /// How many tasks the workers can do in a second, if they always have one.
    pub peak: f64,
}

impl Rush {
    /// Answers in time per second.
    pub fn goodput(&self, elapsed: Duration) -> f64 {
        self.fates.in_time as f64 / elapsed.as_secs_f64().max(1e-9)
    }
}

/// The fates of tasks. Each is counted in `offered`, and in one of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fates {
    /// All.
    pub offered: u64,
    /// They were answered while their client still waited.
    pub in_time: u64,
    /// They were answered when their client had given up.
    pub late: u64,
    /// They were not taken in.
    pub refused: u64,
    /// They were taken in, and dropped when their turn came: they had waited too long.
    pub shed: u64,
    /// They were taken in, and dropped when their turn came: their deadline had passed.
    pub expired: u64,
    /// They were taken in and never heard of again. One is too many.
    pub lost: u64,
}

impl Fates {
    /// The columns of a table.
    pub const NAMES: [&'static str; 7] = [
        "offered", "in time", "late", "refused", "shed", "expired", "lost",
    ];

    /// The cells of a row, in the order of [`NAMES`](Self::NAMES).
    pub fn numbers(&self) -> [u64; 7] {
        let Fates {
            offered,
            in_time,
            late,
            refused,
            shed,
            expired,
            lost,
        } = *self;
        [offered, in_time, late, refused, shed, expired, lost]
    }
}

impl Sum for Fates {
    fn sum<I: Iterator<Item = Fates>>(all: I) -> Fates {
        all.fold(Fates::default(), |sum, one| Fates {
            offered: sum.offered + one.offered,
            in_time: sum.in_time + one.in_time,
            late: sum.late + one.late,
            refused: sum.refused + one.refused,
            shed: sum.shed + one.shed,
            expired: sum.expired + one.expired,
            lost: sum.lost + one.lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FATES: Fates = Fates {
        offered: 28,
        in_time: 7,
        late: 6,
        refused: 5,
        shed: 4,
        expired: 3,
        lost: 3,
    };

    #[test]
    fn fates_of_rounds_add_up_one_by_one() {
        let sum: Fates = [FATES, FATES].into_iter().sum();
        assert_eq!(sum.numbers(), FATES.numbers().map(|number| 2 * number));
    }

    #[test]
    fn goodput_is_what_came_in_time() {
        let rush = Rush {
            fates: FATES,
            peak: 100.0,
        };
        assert_eq!(rush.goodput(Duration::from_millis(500)), 14.0);
    }
}
