//! Every time span of every test, scaled by `MILLPOND_DELAY_FACTOR`.
//!
//! A span is a *timeout* (how long to wait for something that must happen) or a *delay to be waited
//! out* (how long something must really block before it gives up). The first may be long, because it
//! is waited out only if the test fails; the second is as short as a scheduling quantum allows.

use std::sync::OnceLock;
use std::time::Duration;

/// The name of the variable that scales all delays.
pub const FACTOR: &str = "MILLPOND_DELAY_FACTOR";

const UNIT: Duration = Duration::from_millis(50);
const QUANTUM: Duration = Duration::from_millis(12);

/// The factor in use.
///
/// # Panics
///
/// If the variable holds something that is no positive number.
pub fn factor() -> f64 {
    static SEEN: OnceLock<f64> = OnceLock::new();
    *SEEN.get_or_init(|| match std::env::var(FACTOR) {
        Err(_) => 1.0,
        Ok(text) => parse(&text).unwrap_or_else(|problem| panic!("{problem}")),
    })
}

fn parse(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err(format!(
            "{FACTOR} is `{text}`: give a number above 0, such as 4"
        )),
    }
}

/// 50 ms: longer than any scheduling hiccup of an idle machine.
pub fn short() -> Duration {
    UNIT.mul_f64(factor())
}

/// 250 ms.
pub fn small() -> Duration {
    short() * 5
}

/// 500 ms.
pub fn medium() -> Duration {
    short() * 10
}

/// 10 s: the timeout for what must come. Only a failing test waits that long.
pub fn long() -> Duration {
    short() * 200
}

/// 20 s: the timeout for the end of something that has to end others first.
pub fn longer() -> Duration {
    short() * 400
}

/// 80 s: a test that has not ended by then hangs, and the watchdog ends it. Longer than any chain of
/// timeouts in one test, so that the innermost wait fails first and names what is missing.
pub fn hang() -> Duration {
    longer() * 4
}

/// 12 ms: a timeout that a test really waits out. It grows with the cube root of the factor
/// only, because thousands of them are waited out.
pub fn timeout() -> Duration {
    QUANTUM.mul_f64(factor().cbrt())
}

/// Patiences that are over at once or nearly so.
pub fn instants() -> [Duration; 2] {
    [Duration::ZERO, Duration::from_nanos(1)]
}

/// Patiences that never end, at the edge of what arithmetic can hold.
pub fn eternities() -> [Duration; 4] {
    [
        Duration::MAX,
        Duration::MAX - Duration::from_nanos(1),
        Duration::from_secs(u64::MAX),
        Duration::from_nanos(u64::MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spans_grow_from_short_to_longer_and_with_the_factor() {
        let spans = [
            timeout(),
            short(),
            small(),
            medium(),
            long(),
            longer(),
            hang(),
        ];
        assert!(spans.is_sorted(), "{spans:?}");
        assert_eq!(longer(), short() * 400);
        assert_eq!(hang(), short() * 1600);
    }

    #[test]
    fn a_factor_that_is_no_number_above_zero_is_an_error_with_advice() {
        assert_eq!(parse(" 2.5 "), Ok(2.5));
        for bad in ["", "fast", "0", "-1", "inf", "NaN"] {
            assert!(parse(bad).unwrap_err().contains("give a number above 0"));
        }
    }
}
