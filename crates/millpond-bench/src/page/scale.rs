//! From values to places, and which values to name on the way.

use super::text;

/// Values whose largest is more than this many times their smallest are shown on a logarithmic
/// scale: on a linear one the small ones would be on the axis.
pub(super) const WIDE: f64 = 30.0;

/// A range of values, laid along a line of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    pub(super) is_log: bool,
}

impl Scale {
    /// A scale along which all `values` fit between the places `start` and `end`; logarithmic if
    /// they span much and are all above zero. A linear one begins at zero if `with_zero`.
    pub(super) fn of(values: &[f64], (start, end): (f64, f64), with_zero: bool) -> Self {
        let finite = values.iter().copied().filter(|value| value.is_finite());
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in finite {
            (min, max) = (min.min(value), max.max(value));
        }
        if min > max {
            (min, max) = (0.0, 1.0);
        }
        if min > 0.0 && max / min > WIDE {
            return Self::logarithmic(min, max, (start, end));
        }
        let (mut from, mut to) = if with_zero {
            (min.min(0.0), max.max(0.0))
        } else {
            (min, max)
        };
        if from == to {
            to = from + 1.0;
        }
        if with_zero {
            let step = nice_step((to - from) / 5.0);
            from = (from / step).floor() * step;
            to = (to / step).ceil() * step;
        }
        Self::linear(from, to, (start, end))
    }

    /// From `from` to `to`, which need not be round.
    pub(super) fn linear(from: f64, to: f64, (start, end): (f64, f64)) -> Self {
        let to = if from == to { from + 1.0 } else { to };
        Scale {
            from,
            to,
            start,
            end,
            is_log: false,
        }
    }

    /// From a round value at or below `min` to one at or above `max`; both are above zero.
    pub(super) fn logarithmic(min: f64, max: f64, (start, end): (f64, f64)) -> Self {
        let below =
            |value: f64| one_two_five(value).filter(move |&round| round <= value * 1.000_001);
        let above =
            |value: f64| one_two_five(value).filter(move |&round| round >= value * 0.999_999);
        let from = below(min).last().unwrap_or(min);
        let mut to = above(max).next().unwrap_or(max);
        if to <= from {
            to = from * 10.0;
        }
        Scale {
            from,
            to,
            start,
            end,
            is_log: true,
        }
    }

    /// The largest value that has a place.
    pub(super) fn farthest(&self) -> f64 {
        self.to
    }

    /// The position of `value`; a value outside is at the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Round values along the scale, at most about `most` of them.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        if self.is_log {
            return self.log_ticks(most);
        }
        let step = nice_step((self.to - self.from) / most as f64);
        let first = (self.from / step - 1e-9).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|index| index as f64 * step).collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let (from, to) = (self.from * 0.999_999, self.to * 1.000_001);
        let decades = (from.log10().floor() as i32)..=(to.log10().ceil() as i32);
        let all = |factors: &'static [f64]| {
            let powers = decades.clone().map(|power| 10f64.powi(power));
            powers.flat_map(move |power| factors.iter().map(move |factor| factor * power))
        };
        let within = |factors| -> Vec<f64> {
            let ticks = all(factors);
            ticks.filter(|&tick| from <= tick && tick <= to).collect()
        };
        let fine = within(&[1.0, 2.0, 5.0]);
        if fine.len() <= most {
            return fine;
        }
        let coarse = within(&[1.0]);
        let every = coarse.len().div_ceil(most.max(1));
        coarse.into_iter().step_by(every.max(1)).collect()
    }

    /// The ticks whose labels have room beside each other, with their places, from left to right.
    pub(super) fn labels(&self, most: usize) -> Vec<(f64, String)> {
        let mut kept: Vec<(f64, String)> = Vec::new();
        for value in self.ticks(most) {
            let (place, label) = (self.at(value), text::tick(value));
            let has_room = kept.last().is_none_or(|(before, beside)| {
                let apart = (text::width(beside) + text::width(&label)) / 2.0 + text::GAP;
                (place - before).abs() >= apart
            });
            if has_room {
                kept.push((place, label));
            }
        }
        kept
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is no smaller than `least`.
fn nice_step(least: f64) -> f64 {
    let steps = one_two_five(least);
    steps
        .into_iter()
        .find(|&step| step >= least * 0.999_999)
        .unwrap_or(1.0)
}

/// Round values near `value`, ascending: one decade below and one above.
fn one_two_five(value: f64) -> impl Iterator<Item = f64> {
    let power = value.log10().floor() as i32;
    let round = move |power: i32| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power));
    (power - 1..=power + 1).flat_map(round)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: (f64, f64) = (0.0, 100.0);

    #[test]
    fn a_linear_scale_begins_at_zero_if_asked_and_ends_at_a_round_value() {
        let scale = Scale::of(&[3.0, 47.0], LINE, true);
        assert!(!scale.is_log);
        assert_eq!(scale.ticks(5), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(
            [0.0, 25.0, 50.0].map(|value| scale.at(value)),
            [0.0, 50.0, 100.0]
        );
        let own = Scale::of(&[10.0, 120.0], LINE, false);
        assert_eq!((own.at(10.0), own.at(120.0)), (0.0, 100.0));
        assert_eq!(own.ticks(6), [20.0, 40.0, 60.0, 80.0, 100.0, 120.0]);
    }

    #[test]
    fn values_that_span_much_are_on_a_logarithmic_scale() {
        let scale = Scale::of(&[100.0, 1e6], LINE, true);
        assert!(scale.is_log);
        assert_eq!(scale.ticks(6), [1e2, 1e3, 1e4, 1e5, 1e6]);
        assert!((scale.at(1e4) - 50.0).abs() < 1e-9);
        assert_eq!((scale.at(1.0), scale.at(1e9)), (0.0, 100.0));
        // A pool that used nothing at all cannot be on such a scale.
        assert!(!Scale::of(&[0.0, 1e6], LINE, true).is_log);
    }

    #[test]
    fn few_decades_have_more_ticks_and_many_have_fewer() {
        let narrow = Scale::logarithmic(2.0, 80.0, LINE);
        assert_eq!(narrow.ticks(6), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let vast = Scale::logarithmic(1.0, 1e12, LINE);
        assert!(vast.ticks(5).len() <= 5);
    }

    #[test]
    fn odd_values_make_a_scale_all_the_same() {
        for values in [
            &[][..],
            &[f64::NAN],
            &[7.0],
            &[0.0],
            &[-3.0, -3.0],
            &[0.0, 0.0],
        ] {
            for with_zero in [false, true] {
                let scale = Scale::of(values, LINE, with_zero);
                let ticks = scale.ticks(5);
                assert!(
                    !ticks.is_empty() && ticks.len() < 10,
                    "{values:?}: {ticks:?}"
                );
                assert!(
                    ticks
                        .iter()
                        .all(|tick| (0.0..=100.0).contains(&scale.at(*tick)))
                );
            }
        }
        let single = Scale::logarithmic(5.0, 5.0, LINE);
        assert!(single.at(5.0).is_finite());
    }

    #[test]
    fn values_below_zero_are_left_of_it() {
        let scale = Scale::of(&[-20.0, 60.0], LINE, true);
        assert!(scale.at(-20.0) < scale.at(0.0) && scale.at(0.0) < scale.at(60.0));
        assert!(scale.ticks(5).contains(&0.0));
    }

    #[test]
    fn labels_keep_their_distance() {
        let scale = Scale::of(&[1_000.0, 1_900.0], (0.0, 60.0), false);
        let labels = scale.labels(10);
        assert!(labels.len() < scale.ticks(10).len());
        for pair in labels.windows(2) {
            let [(left, one), (right, other)] = pair else {
                unreachable!("windows of two")
            };
            let half = (text::width(one) + text::width(other)) / 2.0;
            assert!(right - left > half, "{labels:?}");
        }
    }
}
