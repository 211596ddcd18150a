//! Small pictures of a line: bars and sparklines.

/// The characters of a bar.
const FULL: char = '█';
const HALF: char = '▒';
const NONE: char = '·';

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of `width` cells for `most`: first the cells of `first`, then those of `second`, then empty ones.
/// A share above zero has at least one cell, and only a full bar looks full.
pub(super) fn bar(width: usize, first: usize, second: usize, most: usize) -> [String; 3] {
    let most = most.max(first + second).max(1);
    let cells = |share: usize| {
        let least = usize::from(share > 0).min(width);
        (share * width / most).max(least)
    };
    let filled = cells(first);
    let both = cells(first + second)
        .max(filled + usize::from(second > 0))
        .min(width);
    [(FULL, filled), (HALF, both - filled), (NONE, width - both)]
        .map(|(cell, many)| cell.to_string().repeat(many))
}

/// The latest values, the newest at the right; each as high as it is compared with the greatest shown.
pub(super) fn sparkline<'a>(
    values: impl DoubleEndedIterator<Item = &'a f64> + ExactSizeIterator + Clone,
    width: usize,
) -> String {
    let skipped = values.len().saturating_sub(width);
    let shown = values.skip(skipped);
    let most = shown.clone().copied().fold(0.0, f64::max);
    let cell = |value: &f64| {
        if *value <= 0.0 || most <= 0.0 {
            return STEPS[0];
        }
        let step = (value / most * 7.0).ceil() as usize;
        STEPS[step.min(7)]
    };
    let drawn: String = shown.map(cell).collect();
    format!("{drawn:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: usize, first: usize, second: usize, most: usize) -> String {
        bar(width, first, second, most).concat()
    }

    #[test]
    fn a_bar_is_as_full_as_what_it_shows() {
        assert_eq!(drawn(10, 0, 0, 40), "··········");
        assert_eq!(drawn(10, 20, 0, 40), "█████·····");
        assert_eq!(drawn(10, 39, 0, 40), "█████████·");
        assert_eq!(drawn(10, 40, 0, 40), "██████████");
        assert_eq!(drawn(6, 2, 1, 6), "██▒···");
    }

    #[test]
    fn little_is_never_nothing_and_too_much_is_no_more_than_full() {
        assert_eq!(drawn(10, 1, 0, 1000), "█·········");
        assert_eq!(drawn(10, 1, 1, 1000), "█▒········");
        assert_eq!(drawn(10, 80, 0, 40), "██████████");
        assert_eq!(drawn(10, 0, 0, 0), "··········");
        assert_eq!(drawn(0, 3, 3, 6), "");
    }

    #[test]
    fn a_sparkline_is_as_wide_as_asked_and_newest_at_the_right() {
        let values = [1.0, 4.0, 7.0, 0.0];
        assert_eq!(sparkline(values.iter(), 6), "  ▂▅█▁");
        assert_eq!(sparkline(values.iter(), 2), "█▁");
        assert_eq!(sparkline([].iter(), 3), "   ");
        assert_eq!(sparkline([0.0, 0.0].iter(), 2), "▁▁");
    }
}
