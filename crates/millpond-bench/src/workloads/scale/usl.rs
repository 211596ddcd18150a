//! The universal scalability law (N. J. Gunther): what more workers gain, and what they cost.
//!
//! ```text
//!                     lambda N
//!   X(N) = ------------------------------
//!           1 + sigma (N-1) + kappa N (N-1)
//! ```
//!
//! | | |
//! |---|---|
//! | lambda | the throughput of one worker |
//! | sigma | the share of the work that only one can do at a time: contention |
//! | kappa | what every pair costs to agree on what they share: coherence |
//!
//! With `kappa > 0` throughput has a peak, at `N = sqrt((1 - sigma) / kappa)`, and falls beyond it.
//!
//! # The fit
//!
//! `N / X(N)` is linear in what is sought: `a + b (N-1) + c N (N-1)`, with `lambda = 1/a`, `sigma = b/a`
//! and `kappa = c/a`. So least squares have one answer, and no starting point to guess. Each point
//! counts by its *relative* error: in absolute terms the slowest points would decide alone. Nothing can
//! be negative; where the best answer is, the best one with that term at nought is taken.
//!
//! `lambda` is fitted and not read off the point with one worker. That would make every error of that
//! one point an error of the whole curve.

/// The fitted law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Throughput of one worker.
    pub lambda: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherence.
    pub kappa: f64,
    /// How far the points are from the curve, in percent of themselves (root of the mean square).
    pub error_percent: f64,
}

impl Law {
    /// Fits the law to throughputs by number of workers. `None` if fewer than three numbers of workers
    /// were measured: so few points say nothing about three unknowns.
    pub fn fit(points: &[(f64, f64)]) -> Option<Law> {
        let points: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|&(n, x)| n >= 1.0 && x > 0.0 && x.is_finite())
            .collect();
        let mut numbers: Vec<f64> = points.iter().map(|&(n, _)| n).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
        if numbers.len() < 3 {
            return None;
        }
        // Which of sigma and kappa are sought. One without both always exists.
        let choices = [[true, true], [true, false], [false, true], [false, false]];
        let fits = choices.iter().filter_map(|&with| fit_with(&points, with));
        fits.min_by(|a, b| a.error_percent.total_cmp(&b.error_percent))
    }

    /// The throughput of `workers`.
    pub fn throughput(&self, workers: f64) -> f64 {
        let extra = workers - 1.0;
        self.lambda * workers / (1.0 + self.sigma * extra + self.kappa * workers * extra)
    }

    /// How many workers have the most throughput; `None` if more always have more.
    pub fn peak(&self) -> Option<f64> {
        if self.sigma >= 1.0 {
            return Some(1.0);
        }
        // Below this a peak is beyond any machine.
        (self.kappa > 1e-9).then(|| ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0))
    }
}

/// The best fit with some terms at nought; `None` if one of the others is negative, or there is none.
fn fit_with(points: &[(f64, f64)], [with_sigma, with_kappa]: [bool; 2]) -> Option<Law> {
    // Least squares of the relative error of N/X: each equation is divided by what it should give.
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for &(n, x) in points {
        let terms = [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * x / n);
        for (row, &term) in terms.iter().enumerate() {
            for (column, &other) in terms.iter().enumerate() {
                normal[row][column] += term * other;
            }
            right[row] += term;
        }
    }
    for (term, is_sought) in [(1, with_sigma), (2, with_kappa)] {
        if !is_sought {
            normal[term] = [0.0; 3];
            normal.iter_mut().for_each(|row| row[term] = 0.0);
            normal[term][term] = 1.0;
            right[term] = 0.0;
        }
    }
    let [a, b, c] = solve(normal, right)?;
    if a <= 0.0 || b < 0.0 || c < 0.0 {
        return None;
    }
    let mut law = Law {
        lambda: 1.0 / a,
        sigma: b / a,
        kappa: c / a,
        error_percent: 0.0,
    };
    let errors = points.iter().map(|&(n, x)| law.throughput(n) / x - 1.0);
    let squares: f64 = errors.map(|error| error * error).sum();
    law.error_percent = 100.0 * (squares / points.len() as f64).sqrt();
    Some(law)
}

/// Gauss, with the largest pivot first; `None` if there is no single answer.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|&a, &b| {
            let size = |row: usize| matrix[row][column].abs();
            size(a).total_cmp(&size(b))
        })?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let diagonal = matrix[column][column];
        if diagonal.abs() < 1e-300 {
            return None;
        }
        let top = matrix[column];
        for row in column + 1..3 {
            let factor = matrix[row][column] / diagonal;
            for (cell, above) in matrix[row].iter_mut().zip(top) {
                *cell -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut answer = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3)
            .map(|later| matrix[row][later] * answer[later])
            .sum();
        answer[row] = (right[row] - known) / matrix[row][row];
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(lambda: f64, sigma: f64, kappa: f64) -> Law {
        Law {
            lambda,
            sigma,
            kappa,
            error_percent: 0.0,
        }
    }

    fn points(law: Law, numbers: &[u32]) -> Vec<(f64, f64)> {
        let numbers = numbers.iter().map(|&n| f64::from(n));
        numbers.map(|n| (n, law.throughput(n))).collect()
    }

    fn assert_near(found: f64, wanted: f64, what: &str) {
        let far = (found - wanted).abs();
        assert!(
            far <= 1e-6 * wanted.abs().max(1e-3),
            "{what}: {found}, not {wanted}"
        );
    }

    #[test]
    fn a_law_is_found_again_in_what_it_says() {
        let laws = [
            law(950.0, 0.05, 0.02),
            law(1e6, 0.0, 0.001),
            law(0.25, 0.3, 0.0),
            law(40.0, 0.0, 0.0),
            law(7.0, 0.9, 0.5),
        ];
        for wanted in laws {
            for numbers in [&[1, 2, 3, 4][..], &[1, 2, 4], &[1, 2, 4, 8, 16, 32, 64]] {
                let found = Law::fit(&points(wanted, numbers)).unwrap();
                let what = format!("{wanted:?} from {numbers:?} gave {found:?}");
                assert_near(found.lambda, wanted.lambda, &what);
                assert_near(found.sigma, wanted.sigma, &what);
                assert_near(found.kappa, wanted.kappa, &what);
                assert!(found.error_percent < 1e-6, "{what}");
            }
        }
    }

    #[test]
    fn the_peak_is_where_throughput_is_greatest() {
        let law = law(100.0, 0.04, 0.01);
        let peak = law.peak().unwrap();
        assert_near(peak, 96_f64.sqrt(), "peak");
        assert!(law.throughput(peak) > law.throughput(peak - 0.1));
        assert!(law.throughput(peak) > law.throughput(peak + 0.1));
        assert_eq!(super::tests::law(1.0, 0.1, 0.0).peak(), None);
        assert_eq!(super::tests::law(1.0, 1.2, 0.0).peak(), Some(1.0));
        // One that only ever falls has it at the first worker.
        assert_eq!(super::tests::law(1.0, 0.5, 2.0).peak(), Some(1.0));
    }

    #[test]
    fn more_than_linear_is_linear_and_the_error_says_so() {
        let found = Law::fit(&[(1.0, 10.0), (2.0, 25.0), (4.0, 60.0)]).unwrap();
        assert_eq!((found.sigma, found.kappa), (0.0, 0.0));
        assert!(found.error_percent > 5.0, "{found:?}");
    }

    #[test]
    fn noise_of_a_percent_moves_the_answer_by_little() {
        let wanted = law(500.0, 0.1, 0.01);
        let mut points = points(wanted, &[1, 2, 3, 4, 6, 8, 12, 16]);
        for (index, point) in points.iter_mut().enumerate() {
            point.1 *= if index % 2 == 0 { 1.01 } else { 0.99 };
        }
        let found = Law::fit(&points).unwrap();
        assert!((found.sigma - 0.1).abs() < 0.03, "{found:?}");
        assert!((found.kappa - 0.01).abs() < 0.003, "{found:?}");
        assert!((0.5..2.0).contains(&found.error_percent), "{found:?}");
    }

    #[test]
    fn too_few_numbers_of_workers_make_no_law() {
        assert_eq!(Law::fit(&[]), None);
        assert_eq!(Law::fit(&[(1.0, 5.0), (2.0, 9.0), (2.0, 9.1)]), None);
        // Nothing came of one of them, so it is no point.
        assert_eq!(Law::fit(&[(1.0, 5.0), (2.0, 9.0), (4.0, 0.0)]), None);
    }
}
