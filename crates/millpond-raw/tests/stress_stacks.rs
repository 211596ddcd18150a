//! Pictures of threads that come and go, by several who ask at once.
//!
//! Each thread puts a number of its own on its stack, next to a mark. A picture that is had must show
//! the number of the thread that was asked for, and a thread that has ended must not be signalled:
//! with thread numbers used again, that would show another's.
#![cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]

use millpond_raw::stack::{Picture, Refusal, Subject, capture};
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_raw::sync::{Mutex, thread};
use std::sync::Arc;
use std::time::Duration;

const MARK: u64 = 0x5eed_0f5a_1a4d_e125;
const CAPTURES: usize = 1_000;
const LIVES: u64 = 1_000;
const LIVING: usize = 6;
const PATIENCE: Duration = Duration::from_secs(20);

/// The words after the mark, wherever it is on the copied stack.
fn number_in(picture: &Picture) -> Option<u64> {
    let start = picture.registers().stack & !7;
    (0..8192)
        .map_while(|index| Some((start + 8 * index, picture.word_at(start + 8 * index)?)))
        .find(|&(_, word)| word == MARK)
        .and_then(|(address, _)| picture.word_at(address + 8))
}

/// A short life: some steps that no optimiser takes away, with the mark on the stack.
#[inline(never)]
fn live(number: u64, board: &Mutex<Vec<(u64, Subject)>>) {
    let note = std::hint::black_box([MARK, number]);
    let place = number as usize % LIVING;
    {
        let mut board = board.lock();
        let me = (number, Subject::here());
        match board.get_mut(place) {
            Some(old) => *old = me,
            None => board.push(me),
        }
    }
    // Some end at once, in the middle of being asked; some give the askers time.
    for _ in 0..number % 50 {
        thread::yield_now();
    }
    std::hint::black_box(&note);
}

#[test]
fn nobody_is_taken_for_another_while_threads_come_and_go() {
    let board = Arc::new(Mutex::new(Vec::new()));
    let is_over = Arc::new(AtomicBool::new(false));
    let born = Arc::new(AtomicU64::new(0));
    let breeders: Vec<_> = (0..2)
        .map(|_| {
            let (board, is_over, born) =
                (Arc::clone(&board), Arc::clone(&is_over), Arc::clone(&born));
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let crew: Vec<_> = (0..3)
                        .map(|_| {
                            let number = born.fetch_add(1, Ordering::Relaxed);
                            let board = Arc::clone(&board);
                            thread::spawn(move || live(number, &board))
                        })
                        .collect();
                    crew.into_iter().for_each(|one| one.join().unwrap());
                }
            })
        })
        .collect();
    let askers: Vec<_> = (0..2)
        .map(|_| {
            let (board, born) = (Arc::clone(&board), Arc::clone(&born));
            thread::spawn(move || {
                let mut seen = 0_usize;
                let mut rounds = 0;
                while rounds < CAPTURES / 2 || born.load(Ordering::Relaxed) < LIVES {
                    let asked: Vec<(u64, Subject)> = board.lock().clone();
                    if asked.is_empty() {
                        thread::yield_now();
                        continue;
                    }
                    rounds += 1;
                    let subjects: Vec<Subject> =
                        asked.iter().map(|(_, subject)| subject.clone()).collect();
                    for ((number, _), answer) in asked.iter().zip(capture(&subjects, PATIENCE)) {
                        match answer {
                            // Before and after `live` there is no number on the stack; an old one
                            // above the stack pointer would be this thread's too.
                            Ok(picture) => {
                                seen += 1;
                                let found = number_in(&picture);
                                assert!(found.is_none_or(|found| found == *number));
                            }
                            Err(refusal) => assert_eq!(refusal, Refusal::Ended),
                        }
                    }
                }
                seen
            })
        })
        .collect();
    let seen: usize = askers.into_iter().map(|one| one.join().unwrap()).sum();
    is_over.store(true, Ordering::Relaxed);
    breeders.into_iter().for_each(|one| one.join().unwrap());
    println!(
        "{seen} pictures of {} threads",
        born.load(Ordering::Relaxed)
    );
    assert!(seen > 0, "no thread was ever caught alive");
}
