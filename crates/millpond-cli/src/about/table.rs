//! Columns of text. Cells are painted after their width is known: colours have no width.

/// Where a cell's text stands in its column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Pads the cells of all rows to their columns. The last left column is not padded, so no line
/// ends in spaces.
pub(super) fn columns<const N: usize>(rows: &[[String; N]], align: [Align; N]) -> Vec<[String; N]> {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    rows.iter()
        .map(|row| {
            std::array::from_fn(|column| {
                let (cell, width) = (&row[column], widths[column]);
                match align[column] {
                    Align::Left if column + 1 == N => cell.clone(),
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                }
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [
            ["name", "p50", "meaning"].map(String::from),
            ["a lock", "7", "x"].map(String::from),
        ];
        let padded = columns(&rows, [Align::Left, Align::Right, Align::Left]);
        assert_eq!(padded[0], ["name  ", "p50", "meaning"]);
        assert_eq!(padded[1], ["a lock", "  7", "x"]);
    }

    #[test]
    fn width_is_counted_in_characters_and_not_in_bytes() {
        let rows = [
            ["µµ", "1"].map(String::from),
            ["abc", "2"].map(String::from),
        ];
        assert_eq!(columns(&rows, [Align::Left, Align::Left])[0][0], "µµ ");
    }

    #[test]
    fn no_rows_make_no_lines() {
        assert!(columns::<1>(&[], [Align::Left]).is_empty());
    }
}
