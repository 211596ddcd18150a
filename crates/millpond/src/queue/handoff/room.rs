//! The two lines of a meeting, without the lock: what it guards, and the steps under it.
//!
//! Nothing here wakes anybody or drops anything of the users': each step hands back what is to be
//! woken or dropped (M5 of `meeting.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

/// Who of a line is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) enum Order {
    /// Who came first.
    Fair,
    /// Who came last: its thread is the likeliest to be awake, and its memory to be in a cache.
    Unfair,
}

/// The number of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(i64);

pub(super) struct Room<T> {
    order: Order,
    next: i64,
    next_in_front: i64,
    givers: VecDeque<Giver<T>>,
    takers: VecDeque<Taker>,
    handed: BTreeMap<Number, T>,
}

pub(super) struct Giver<T> {
    number: Number,
    pub(super) element: T,
    /// `None` if nobody waits for it to be taken.
    pub(super) waker: Option<Waker>,
}

struct Taker {
    number: Number,
    waker: Waker,
}

/// Below this many places a line is not worth making smaller.
const SMALL_LINE: usize = 64;

impl<T> Room<T> {
    pub(super) fn new(order: Order) -> Self {
        Room {
            order,
            next: 0,
            next_in_front: -1,
            givers: VecDeque::new(),
            takers: VecDeque::new(),
            handed: BTreeMap::new(),
        }
    }

    pub(super) fn givers(&self) -> &VecDeque<Giver<T>> {
        &self.givers
    }

    pub(super) fn waiting_takers(&self) -> usize {
        self.takers.len()
    }

    fn number(&mut self) -> Number {
        self.next += 1;
        Number(self.next - 1)
    }

    /// Matches the next taker with this element, and returns who must be woken.
    pub(super) fn hand(&mut self, element: T) -> Result<Waker, T> {
        let Some(taker) = next(&mut self.takers, self.order) else {
            return Err(element);
        };
        self.handed.insert(taker.number, element);
        Ok(taker.waker)
    }

    /// Takes the next giver out of its line. If it waits it must be woken.
    pub(super) fn next_giver(&mut self) -> Option<Giver<T>> {
        let giver = next(&mut self.givers, self.order);
        // A long line that has become short gives its memory back. It is moved again only after
        // half of what is there has gone or as much has come, so each element pays for one move.
        let held = self.givers.capacity();
        if held > SMALL_LINE && self.givers.len() < held / 4 {
            self.givers.shrink_to(held / 2);
        }
        giver
    }

    /// Joins the givers, as the last of a fair line. No taker waits: `hand` has been tried.
    pub(super) fn join_givers(&mut self, element: T, waker: Option<Waker>) -> Number {
        debug_assert!(self.takers.is_empty(), "M1");
        let number = self.number();
        self.givers.push_back(Giver {
            number,
            element,
            waker,
        });
        number
    }

    /// Stands an element where it is the next to be taken. No taker waits: `hand` has been tried.
    pub(super) fn join_givers_in_front(&mut self, element: T) {
        debug_assert!(self.takers.is_empty(), "M1");
        match self.order {
            Order::Fair => {
                let number = Number(self.next_in_front);
                self.next_in_front -= 1;
                self.givers.push_front(Giver {
                    number,
                    element,
                    waker: None,
                });
            }
            Order::Unfair => {
                self.join_givers(element, None);
            }
        }
    }

    /// Joins the takers. No giver is in line: `next_giver` has been tried.
    pub(super) fn join_takers(&mut self, waker: Waker) -> Number {
        debug_assert!(self.givers.is_empty(), "M1");
        let number = self.number();
        self.takers.push_back(Taker { number, waker });
        number
    }

    /// The waker of a giver, while it waits.
    pub(super) fn giver_waker(&mut self, number: Number) -> Option<&mut Waker> {
        let at = position(&self.givers, number, |giver| giver.number)?;
        self.givers[at].waker.as_mut()
    }

    /// The waker of a taker, while it waits.
    pub(super) fn taker_waker(&mut self, number: Number) -> Option<&mut Waker> {
        let at = position(&self.takers, number, |taker| taker.number)?;
        Some(&mut self.takers[at].waker)
    }

    /// Fetches what was handed to a taker.
    pub(super) fn fetch(&mut self, number: Number) -> Option<T> {
        self.handed.remove(&number)
    }

    pub(super) fn remove_giver(&mut self, number: Number) -> Option<Giver<T>> {
        let at = position(&self.givers, number, |giver| giver.number)?;
        self.givers.remove(at)
    }

    pub(super) fn remove_taker(&mut self, number: Number) -> Option<Waker> {
        let at = position(&self.takers, number, |taker| taker.number)?;
        self.takers.remove(at).map(|taker| taker.waker)
    }

    /// Takes the givers at these positions, which go up, out of their line.
    pub(super) fn remove_givers_at(&mut self, positions: &[usize]) -> Vec<Giver<T>> {
        let mut removed = Vec::with_capacity(positions.len());
        let mut chosen = positions.iter().copied().peekable();
        for (at, giver) in std::mem::take(&mut self.givers).into_iter().enumerate() {
            match chosen.next_if_eq(&at) {
                Some(_) => removed.push(giver),
                None => self.givers.push_back(giver),
            }
        }
        removed
    }
}

fn next<W>(line: &mut VecDeque<W>, order: Order) -> Option<W> {
    match order {
        Order::Fair => line.pop_front(),
        Order::Unfair => line.pop_back(),
    }
}

fn position<W>(
    line: &VecDeque<W>,
    number: Number,
    number_of: impl Fn(&W) -> Number,
) -> Option<usize> {
    line.binary_search_by_key(&number, number_of).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_long_ago_and_of_now_stay_apart_and_in_order() {
        for start in [(1 << 31) - 2, (1 << 32) - 2, i64::MAX - 9] {
            let mut room = Room::new(Order::Fair);
            let oldest = room.join_givers(1, Some(Waker::noop().clone()));
            (room.next, room.next_in_front) = (start, -start);
            room.join_givers_in_front(0);
            let newer: Vec<_> = (2..6).map(|n| room.join_givers(n, None)).collect();
            assert!(room.giver_waker(oldest).is_some());
            assert_eq!(room.remove_giver(newer[1]).map(|g| g.element), Some(3));
            assert!(room.remove_giver(newer[1]).is_none());
            assert_eq!(room.remove_giver(oldest).map(|g| g.element), Some(1));
            let left = std::iter::from_fn(|| room.next_giver().map(|g| g.element));
            assert_eq!(left.collect::<Vec<_>>(), [0, 2, 4, 5]);
        }
    }

    #[test]
    fn a_line_that_was_long_gives_its_memory_back() {
        let mut room = Room::new(Order::Fair);
        for element in 0..10_000 {
            room.join_givers(element, None);
        }
        assert!(room.givers.capacity() >= 10_000);
        while room.givers.len() > 10 {
            let giver = room.next_giver().expect("there are more");
            assert_eq!(giver.element, 10_000 - 1 - room.givers.len());
        }
        assert!(room.givers.capacity() <= 2 * SMALL_LINE);
    }

    #[test]
    fn a_number_is_never_given_twice_in_front_or_behind() {
        for order in [Order::Fair, Order::Unfair] {
            let mut room = Room::new(order);
            let mut seen = std::collections::BTreeSet::new();
            for element in 0..10 {
                room.join_givers(element, None);
                room.join_givers_in_front(element);
                if element % 3 == 0 {
                    let giver = room.next_giver().expect("there are two");
                    assert!(seen.insert(giver.number));
                }
            }
            while let Some(giver) = room.next_giver() {
                assert!(seen.insert(giver.number));
            }
            assert_eq!(seen.len(), 20);
        }
    }

    #[test]
    fn whoever_leaves_is_found_wherever_it_stands() {
        for leaver in 0..7 {
            let mut room = Room::new(Order::Fair);
            let numbers: Vec<_> = (0..7)
                .map(|element| room.join_givers(element, Some(Waker::noop().clone())))
                .collect();
            room.join_givers_in_front(7);
            let left = room.remove_giver(numbers[leaver]).expect("it is in line");
            assert_eq!(left.element, leaver);
            assert!(room.remove_giver(numbers[leaver]).is_none(), "once");
            assert!(room.giver_waker(numbers[leaver]).is_none());
            let rest = std::iter::from_fn(|| room.next_giver()).map(|giver| giver.element);
            let expected = [7].into_iter().chain((0..7).filter(|at| *at != leaver));
            assert!(rest.eq(expected));
        }
    }
}
