//! Snapshots of threads that come and go, by several requesters at once.
//!
//! Each thread puts a number of its own on its stack, next to a mark. A snapshot must show the number of
//! the thread that was captured, and a thread that has ended must not be signalled: as thread ids are
//! reused, that would show another thread.
#![cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]

use millpond_raw::stack::{CaptureError, StackSnapshot, ThreadRef, capture};
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_raw::sync::{Mutex, thread};
use std::sync::Arc;
use std::time::Duration;

const MARK: u64 = 0x5eed_0f5a_1a4d_e125;
const CAPTURES: usize = 1_000;
const LIVES: u64 = 1_000;
const LIVING: usize = 6;
const TIMEOUT: Duration = Duration::from_secs(20);

/// The words after the mark, wherever it is on the copied stack.
fn number_in(snapshot: &StackSnapshot) -> Option<u64> {
    let start = snapshot.registers().stack & !7;
    (0..8192)
        .map_while(|index| Some((start + 8 * index, snapshot.word_at(start + 8 * index)?)))
        .find(|&(_, word)| word == MARK)
        .and_then(|(address, _)| snapshot.word_at(address + 8))
}

/// A short life: some steps that no optimiser takes away, with the mark on the stack.
#[inline(never)]
fn live(number: u64, board: &Mutex<Vec<(u64, ThreadRef)>>) {
    let note = std::hint::black_box([MARK, number]);
    let place = number as usize % LIVING;
    {
        let mut board = board.lock();
        let me = (number, ThreadRef::current());
        match board.get_mut(place) {
            Some(old) => *old = me,
            None => board.push(me),
        }
    }
    // Some end at once, in the middle of a capture; some give the requesters time.
    for _ in 0..number % 50 {
        thread::yield_now();
    }
    std::hint::black_box(&note);
}

#[test]
fn no_thread_is_taken_for_another_while_threads_come_and_go() {
    let board = Arc::new(Mutex::new(Vec::new()));
    let is_over = Arc::new(AtomicBool::new(false));
    let born = Arc::new(AtomicU64::new(0));
    let spawners: Vec<_> = (0..2)
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
    let requesters: Vec<_> = (0..2)
        .map(|_| {
            let (board, born) = (Arc::clone(&board), Arc::clone(&born));
            thread::spawn(move || {
                let mut seen = 0_usize;
                let mut rounds = 0;
                while rounds < CAPTURES / 2 || born.load(Ordering::Relaxed) < LIVES {
                    let posted: Vec<(u64, ThreadRef)> = board.lock().clone();
                    if posted.is_empty() {
                        thread::yield_now();
                        continue;
                    }
                    rounds += 1;
                    let targets: Vec<ThreadRef> =
                        posted.iter().map(|(_, target)| target.clone()).collect();
                    for ((number, _), answer) in posted.iter().zip(capture(&targets, TIMEOUT)) {
                        match answer {
                            // Before and after `live` there is no number on the stack; an old one
                            // above the stack pointer would be this thread's too.
                            Ok(snapshot) => {
                                seen += 1;
                                let found = number_in(&snapshot);
                                assert!(found.is_none_or(|found| found == *number));
                            }
                            Err(error) => assert_eq!(error, CaptureError::ThreadEnded),
                        }
                    }
                }
                seen
            })
        })
        .collect();
    let seen: usize = requesters.into_iter().map(|one| one.join().unwrap()).sum();
    is_over.store(true, Ordering::Relaxed);
    spawners.into_iter().for_each(|one| one.join().unwrap());
    println!(
        "{seen} snapshots of {} threads",
        born.load(Ordering::Relaxed)
    );
    assert!(seen > 0, "no thread was ever captured alive");
}
