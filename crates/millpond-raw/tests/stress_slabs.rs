//! Recycled memory under load: threads make boxes of all sizes, send them to one another and drop them, and
//! every box must hold what was put into it. Two owners of one object would overwrite each other.
//!
//! Threads and locks are ours, so that a thread sanitizer sees all of it. `MILLPOND_ROUNDS` changes the
//! number of rounds.
#![cfg(not(any(millpond_loom, millpond_shuttle)))]

use millpond_raw::recycle::Recycled;
use millpond_raw::sync::{Mutex, thread};
use std::sync::Arc;

const THREADS: u64 = 4;
const BOXES: u64 = 2_000;

fn rounds() -> u64 {
    match std::env::var("MILLPOND_ROUNDS") {
        Err(_) => 20,
        Ok(text) => text.parse().unwrap_or_else(|_| {
            panic!("MILLPOND_ROUNDS is `{text}`: give it the number of rounds")
        }),
    }
}

/// A box of one of the sizes, filled with its mark.
enum Sack {
    One(Recycled<[u64; 8]>),
    Two(Recycled<[u64; 11]>),
    Three(Recycled<[u64; 24]>),
    Four(Recycled<[u64; 31]>),
    Plain(Recycled<[u64; 40]>),
}

impl Sack {
    fn filled(mark: u64) -> Sack {
        match mark % 5 {
            0 => Sack::One(Recycled::new([mark; 8])),
            1 => Sack::Two(Recycled::new([mark; 11])),
            2 => Sack::Three(Recycled::new([mark; 24])),
            3 => Sack::Four(Recycled::new([mark; 31])),
            _ => Sack::Plain(Recycled::new([mark; 40])),
        }
    }

    fn words(&self) -> &[u64] {
        match self {
            Sack::One(words) => &**words,
            Sack::Two(words) => &**words,
            Sack::Three(words) => &**words,
            Sack::Four(words) => &**words,
            Sack::Plain(words) => &**words,
        }
    }

    /// Checks that all words hold the mark, and returns it.
    fn mark(&self) -> u64 {
        let words = self.words();
        assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
        words[0]
    }
}

/// Good enough to choose a neighbour.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

type Inbox = Arc<Vec<Mutex<Vec<Sack>>>>;

/// One thread: makes boxes, sends each to some inbox, and empties its own now and then. Returns the sums of
/// the marks it sent and received.
fn exchange(number: u64, round: u64, inboxes: &Inbox) -> (u64, u64) {
    let mut state = number + THREADS * round;
    let (mut sent, mut received) = (0, 0);
    for count in 0..BOXES {
        let mark = (number * BOXES + count) * 5 + next(&mut state) % 5;
        sent += mark;
        let to = next(&mut state) % THREADS;
        inboxes[to as usize].lock().push(Sack::filled(mark));
        // Rarely, so that magazines run full on one side and empty on the other.
        if next(&mut state) % 300 == 0 {
            received += empty(&inboxes[number as usize]);
        }
    }
    (sent, received)
}

/// Empties an inbox outside its lock, and sums up the marks.
fn empty(inbox: &Mutex<Vec<Sack>>) -> u64 {
    let sacks = std::mem::take(&mut *inbox.lock());
    sacks.iter().map(Sack::mark).sum()
}

#[test]
fn boxes_that_wander_hold_what_was_put_into_them() {
    for round in 0..rounds() {
        let inboxes: Inbox = Arc::new((0..THREADS).map(|_| Mutex::default()).collect());
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let inboxes = Arc::clone(&inboxes);
                thread::spawn(move || exchange(number, round, &inboxes))
            })
            .collect();
        let (mut sent, mut received) = (0, 0);
        for thread in threads {
            let (made, got) = thread.join().expect("no box was overwritten");
            sent += made;
            received += got;
        }
        received += inboxes.iter().map(empty).sum::<u64>();
        assert_eq!(
            sent, received,
            "round {round}: a box was lost or came twice"
        );
    }
}

/// More than the kept slabs hold, so that some go back to the system while others are allocated from.
const BURST: u64 = 50_000;

#[test]
fn boxes_of_a_burst_hold_what_was_put_into_them_while_slabs_come_and_go() {
    for round in 0..rounds().div_ceil(8) {
        let bursts: Arc<[Mutex<Vec<Sack>>; 2]> = Arc::default();
        let threads = [0, 1].map(|number: usize| {
            let bursts = Arc::clone(&bursts);
            thread::spawn(move || {
                let marks = (0..BURST).map(|count| count * 5 + 5 * round);
                for batch in [0, 1] {
                    let burst: Vec<_> = marks
                        .clone()
                        .map(|mark| Sack::filled(mark + batch))
                        .collect();
                    // What the other thread put there is dropped here, or at the end.
                    let theirs = std::mem::replace(&mut *bursts[1 - number].lock(), burst);
                    theirs
                        .iter()
                        .for_each(|sack| assert!(sack.mark() >= 5 * round));
                }
            })
        });
        for thread in threads {
            thread.join().expect("no box was overwritten");
        }
        let left = bursts.iter().map(empty).sum::<u64>();
        let expected: u64 = (0..BURST).map(|count| count * 5 + 5 * round + 1).sum();
        assert_eq!(left, 2 * expected, "round {round}");
    }
    millpond_raw::recycle::trim();
    let kept = millpond_raw::recycle::cached_bytes();
    assert!(kept <= 24 << 20, "{kept} bytes lie idle");
}
