//! Cells below each other: words to the left, numbers to the right.

/// One row of a table.
pub(crate) type Cells = Vec<String>;

/// Pads the cells of all rows to their columns, a line each, every one ending in a newline. The first
/// row is the head; all have as many cells as that.
pub(crate) fn columns(rows: &[Cells]) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let padding: Vec<_> = (0..count).map(|column| Padding::of(rows, column)).collect();
    let line = |row: &Cells| {
        let cells = row.iter().zip(&padding);
        let cells: Vec<String> = cells.map(|(cell, padding)| padding.pad(cell)).collect();
        format!("  {}", cells.join("  ")).trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

struct Padding {
    width: usize,
    is_words: bool,
}

impl Padding {
    fn of(rows: &[Cells], column: usize) -> Self {
        let width = |row: &Cells| row[column].chars().count();
        let mut body = rows.iter().skip(1).map(|row| row[column].as_str());
        let count = rows.first().map_or(0, Vec::len);
        Padding {
            width: rows.iter().map(width).max().unwrap_or_default(),
            // The first is names and the last is marks, even if there are none.
            is_words: column == 0 || column + 1 == count || body.any(ends_in_a_letter),
        }
    }

    fn pad(&self, cell: &str) -> String {
        let width = self.width;
        if self.is_words {
            format!("{cell:<width$}")
        } else {
            format!("{cell:>width$}")
        }
    }
}

fn ends_in_a_letter(cell: &str) -> bool {
    cell.ends_with(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_to_the_left_and_numbers_to_the_right() {
        let row = |cells: [&str; 4]| cells.map(String::from).to_vec();
        let rows = [
            row(["", "size", "who", ""]),
            row(["a", "1", "x", ""]),
            row(["bcd", "1000", "yz", "!"]),
        ];
        let expected = "       size  who\n  a       1  x\n  bcd  1000  yz   !\n";
        assert_eq!(columns(&rows), expected);
        assert_eq!(columns(&[]), "");
    }
}
