//! What queues do that keep the order of arrival.

use super::item::{Make, ROOM, empty, offer_all, polled, ranks};

/// Tests of a queue that keeps the order of arrival, made by a [`Make`].
#[macro_export]
macro_rules! fifo_suite {
    ($make:expr) => {
        $crate::bodies! { fifo, ($make as $crate::suites::item::Make);
            the_first_element_in_is_the_first_out
            the_order_survives_removals
        }
    };
}

/// Ranks do not matter here.
pub fn the_first_element_in_is_the_first_out(make: &Make) {
    let queue = empty(make);
    for turn in 0..3 * ROOM as u32 {
        offer_all(&queue, [9, 3, turn, 7, 3]);
        assert_eq!(ranks(&queue), [9, 3, turn, 7, 3]);
        assert_eq!(polled(&queue), [9, 3, turn, 7, 3]);
    }
}

/// Whatever is taken out of the middle, the others stay in line.
pub fn the_order_survives_removals(make: &Make) {
    let queue = empty(make);
    for gone in 0..5 {
        offer_all(&queue, [5, 4, 3, 2, 1]);
        let taken = queue.remove_where(1, &mut |item| item.rank == gone + 1);
        assert_eq!(taken.len(), 1);
        let mut left = vec![5, 4, 3, 2, 1];
        left.retain(|rank| *rank != gone + 1);
        assert_eq!(polled(&queue), left);
    }
}
