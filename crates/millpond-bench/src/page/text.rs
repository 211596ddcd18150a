//! Text on the page: escaped, and no wider than its place.

/// A little room between two texts of a plot, in user units.
pub(super) const GAP: f64 = 7.0;

/// How much wider bold letters are.
pub(super) const BOLD: f64 = 1.15;

/// As text and as the value of an attribute, whatever it is.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            letter => safe.push(letter),
        }
    }
    safe
}

/// How wide a text of a plot is in the widest of the usual fonts, which is DejaVu Sans, in user units.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(letter_width).sum()
}

fn letter_width(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '\'' | '|' => 3.6,
        ' ' | '.' | ',' | ':' | ';' | '!' | '-' | '(' | ')' | '[' | ']' | 'f' | 't' | 'r' | '"' => {
            5.0
        }
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '<' | '>' | '=' | '+' | '&' | '…' => 11.8,
        letter if letter.is_uppercase() => 8.8,
        _ => 7.7,
    }
}

/// As much of `text` as fits, with dots for the rest.
pub(super) fn fit(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut left = room - letter_width('…');
    let fits = |letter: &char| {
        left -= letter_width(*letter);
        left >= 0.0
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}…", kept.trim_end())
}

/// Three digits, and commas between thousands: for reading a figure.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let digits = match value.abs() {
        0.0 => 0,
        size if size < 0.00995 => 4,
        size if size < 0.0995 => 3,
        size if size < 9.995 => 2,
        size => usize::from(size < 99.95),
    };
    let plain = format!("{value:.digits$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    with_commas(whole) + rest
}

/// A whole number, which may have a sign.
fn with_commas(whole: &str) -> String {
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How often, with commas.
pub(super) fn count(value: u64) -> String {
    with_commas(&value.to_string())
}

/// Short, for a tick: 0.5, 20, 5k, 1M.
pub(super) fn tick(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // Ticks are round, so this is exact; the last bits of a sum of tenths are not.
    let digits = format!("{value:.6}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}{suffix}")
}

/// A name for an address within the page.
pub(super) fn anchor(name: &str) -> String {
    let keep = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    format!("suite-{}", name.chars().map(keep).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_comes_from_outside_is_markup() {
        let hostile = r#"<script>alert("x") & 'y'</script>"#;
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'']), "{safe}");
        assert_eq!(escape("a & b"), "a &amp; b");
        assert_eq!(escape("µs/task"), "µs/task");
    }

    #[test]
    fn what_does_not_fit_ends_in_dots() {
        assert_eq!(fit("rayon", 100.0), "rayon");
        let short = fit("Java ScheduledThreadPoolExecutor", 100.0);
        assert!(short.starts_with("Java Sched") && short.ends_with('…'));
        assert!(width(&short) <= 100.0);
    }

    #[test]
    fn figures_keep_three_digits_and_have_commas() {
        let values = [
            0.0,
            0.0012,
            0.5,
            9.996,
            99.96,
            1_234.5,
            1_234_567.0,
            -4_321.0,
        ];
        let texts = [
            "0",
            "0.0012",
            "0.50",
            "10.0",
            "100",
            "1,234",
            "1,234,567",
            "-4,321",
        ];
        assert_eq!(values.map(number), texts);
        assert_eq!(number(f64::NAN), "-");
        assert_eq!(count(12_345), "12,345");
    }

    #[test]
    fn ticks_are_short() {
        let values = [0.0, 0.3, 2.5, 10.0, 999.0, 1_000.0, 2_500.0, 1e6, 3e9];
        let texts = ["0", "0.3", "2.5", "10", "999", "1k", "2.5k", "1M", "3G"];
        assert_eq!(values.map(tick), texts);
        // A sum of tenths is not quite one.
        assert_eq!(tick(0.1 + 0.2), "0.3");
    }
}
