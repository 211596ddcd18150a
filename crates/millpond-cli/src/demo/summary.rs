//! The summary at the end: what became of every task.

use std::fmt::Write;

use super::shop::Books;

pub(super) fn text(books: &Books) -> String {
    let mut text = format!(
        "\nThe shop was open for {:.1} s (seed {}). What became of every task:\n\n",
        books.seconds, books.seed
    );
    let heads = ["came", "done", "rejected", "dropped", "lost"];
    let _ = write!(text, "  {:8}", "");
    for head in heads {
        let _ = write!(text, "{head:>9}");
    }
    text.push('\n');
    let mut sum = [0; 5];
    for page in &books.pools {
        let counts = page.counts;
        let row = [
            counts.came,
            counts.done,
            counts.rejected,
            counts.dropped,
            page.lost,
        ];
        line(&mut text, &page.pool, row);
        sum.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
    }
    line(&mut text, "all", sum);
    let gave_up: u64 = books.pools.iter().map(|page| page.counts.gave_up).sum();
    if gave_up > 0 {
        let _ = write!(
            text,
            "\n{gave_up} more had waited at a door for too long and gave up before they came in.\n"
        );
    }
    text.push('\n');
    match (books.balanced, sum[4]) {
        (true, _) => text.push_str(
            "Nothing was lost. The books balance: the pools counted the same as the shop.\n",
        ),
        (false, 0) => text.push_str("Nothing was lost, but the books do NOT balance:\n"),
        (false, lost) => {
            let _ = writeln!(text, "{lost} tasks were LOST. The books do NOT balance:");
        }
    }
    for page in &books.pools {
        for wrong in &page.wrong {
            let _ = writeln!(text, "  {}: {wrong}", page.pool);
        }
    }
    text
}

fn line(text: &mut String, name: &str, row: [u64; 5]) {
    let _ = write!(text, "  {name:8}");
    for number in row {
        let _ = write!(text, "{number:>9}");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::shop::{Counts, Page};
    use super::*;

    fn books(lost: u64, wrong: &[&str]) -> Books {
        let page = |pool: &str, wrong: &[&str], lost| Page {
            pool: pool.into(),
            counts: Counts {
                came: 130 + lost,
                gave_up: 0,
                done: 100,
                rejected: 20,
                dropped: 10,
            },
            lost,
            wrong: wrong.iter().map(|text| (*text).to_owned()).collect(),
        };
        Books {
            seconds: 12.34,
            seed: 7,
            pools: vec![page("orders", wrong, lost), page("mails", &[], 0)],
            balanced: wrong.is_empty(),
        }
    }

    #[test]
    fn books_that_balance_say_so() {
        assert_eq!(
            text(&books(0, &[])),
            "
The shop was open for 12.3 s (seed 7). What became of every task:

               came     done rejected  dropped     lost
  orders        130      100       20       10        0
  mails         130      100       20       10        0
  all           260      200       40       20        0

Nothing was lost. The books balance: the pools counted the same as the shop.
"
        );
    }

    #[test]
    fn books_that_do_not_balance_say_what_is_wrong() {
        let lost = text(&books(3, &["3 tasks came and were never heard of again"]));
        assert!(
            lost.contains("3 tasks were LOST. The books do NOT balance:\n  orders: 3 tasks came")
        );
        let counted = text(&books(0, &["the pool knows of 9"]));
        assert!(counted.contains("Nothing was lost, but the books do NOT balance:\n  orders: the"));
    }

    #[test]
    fn visitors_who_gave_up_at_the_door_are_reported() {
        let mut books = books(0, &[]);
        books.pools[0].counts.gave_up = 17;
        assert!(text(&books).contains("\n17 more had waited at a door for too long"));
    }
}
