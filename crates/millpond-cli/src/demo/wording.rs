//! Times and numbers in few characters.

use std::time::Duration;

/// Two or three digits and a unit: `3.1 ms`, `250 µs`.
pub(super) fn time(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    // A value that would be rounded up to 1000 is one of the next unit.
    let fits = units.iter().find(|(_, size)| nanos / size < 999.5);
    let (unit, size) = fits.unwrap_or(&units[3]);
    let value = nanos / size;
    let digits = usize::from(value < 9.95 && *unit != "ns");
    format!("{value:.digits$} {unit}")
}

/// At most five characters, for any number that a demo will see: `9999`, `12k`, `3M`.
pub(super) fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}M", number / 1_000_000),
    }
}

/// `1:05`, and with hours `1:02:05`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_or_three_digits_and_a_unit() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.0 µs"),
            (9_940, "9.9 µs"),
            (9_960, "10 µs"),
            (999_400, "999 µs"),
            (999_600, "1.0 ms"),
            (12_345_678, "12 ms"),
            (2_500_000_000, "2.5 s"),
            (5_000_000_000_000, "5000 s"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn counts_are_short() {
        for (number, text) in [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10k"),
            (999_999, "999k"),
            (12_345_678, "12M"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn clocks_have_hours_only_if_there_are_any() {
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_secs(3725)), "1:02:05");
    }
}
