//! Stacks of running threads: whatever they do, the right functions are named and no thread is disturbed.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond_raw::park::{self, Site, probe};
use millpond_stack::{CaptureError, Stack, ThreadRef, capture};
use millpond_testkit::watch;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

/// A thread that runs `body`, and a reference to it.
fn spawn_target<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> (ThreadRef, JoinHandle<T>) {
    let (say, hear) = mpsc::channel();
    let thread = thread::Builder::new().name(name.into()).spawn(move || {
        say.send(ThreadRef::current()).unwrap();
        body()
    });
    (hear.recv().unwrap(), thread.unwrap())
}

fn names(stack: &Stack) -> Vec<&str> {
    stack
        .frames()
        .iter()
        .filter_map(|frame| frame.function())
        .collect()
}

/// Captures until `is_there` holds, and returns that stack: a thread that has just been started needs a
/// moment to get there.
fn until(target: &ThreadRef, is_there: impl Fn(&Stack) -> bool) -> Stack {
    let mut last = String::new();
    let start = Instant::now();
    while start.elapsed() < LONG {
        match capture(std::slice::from_ref(target), LONG).remove(0) {
            Ok(stack) if is_there(&stack) => return stack,
            Ok(stack) => last = format!("{stack:#}"),
            Err(error) => panic!("{error}"),
        }
        thread::yield_now();
    }
    panic!("it never got there; the last stack was\n{last}");
}

fn until_named(target: &ThreadRef, function: &str) -> Stack {
    until(target, |stack| {
        names(stack).iter().any(|name| name.contains(function))
    })
}

#[inline(never)]
fn waits_in_our_park(tell: &mpsc::Sender<Waker>, over: &AtomicBool) {
    let here = park::current();
    tell.send(here.waker()).unwrap();
    // No loop, so that a park that a signal ends fails the test.
    here.park(Site::new("test.stack_park"));
    assert!(over.load(Ordering::Acquire), "it woke up by itself");
}

#[inline(never)]
fn sleeps_in_the_standard_library(over: &AtomicBool) {
    const NAP: Duration = Duration::from_millis(200);
    while !over.load(Ordering::Relaxed) {
        let start = Instant::now();
        thread::sleep(NAP);
        assert!(start.elapsed() >= NAP, "a nap was cut short");
    }
}

#[inline(never)]
fn reads_from_a_pipe(mut pipe: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = [0; 16];
    // One call, which an interrupted read would end with an error.
    let length = std::hint::black_box(pipe.read(&mut bytes)?);
    Ok(bytes[..length].to_vec())
}

#[inline(never)]
fn computes_in_a_loop(over: &AtomicBool) -> u64 {
    let mut sum = 1_u64;
    while !over.load(Ordering::Relaxed) {
        for step in 0..1_000 {
            sum = std::hint::black_box(sum.wrapping_mul(6_364_136_223_846_793_005) ^ step);
        }
    }
    sum
}

#[test]
fn whatever_a_thread_does_its_stack_names_it_and_it_is_not_disturbed() {
    let _watch = watch();
    let over = Arc::new(AtomicBool::new(false));
    let mut cat = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = cat.stdout.take().unwrap();
    let (tell, told) = mpsc::channel();
    let [for_park, for_naps, for_loop] = [(); 3].map(|()| Arc::clone(&over));
    let (parked, parker) = spawn_target("parker", move || waits_in_our_park(&tell, &for_park));
    let (asleep, sleeper) =
        spawn_target("sleeper", move || sleeps_in_the_standard_library(&for_naps));
    let (reading, reader) = spawn_target("reader", || reads_from_a_pipe(pipe));
    let (busy, computer) = spawn_target("computer", move || computes_in_a_loop(&for_loop));
    probe::await_wait(LONG, |wait| wait.site.name() == "test.stack_park").expect("it parks");
    let expected = [
        (&parked, "waits_in_our_park"),
        (&asleep, "sleeps_in_the_standard_library"),
        (&reading, "reads_from_a_pipe"),
        (&busy, "computes_in_a_loop"),
    ];
    for (target, function) in expected {
        until_named(target, function);
    }

    // All are where they belong. Now all at once, again and again.
    let all = expected.map(|(target, _)| target.clone());
    for round in 0..10 {
        let answers = capture(&all, LONG);
        for ((_, function), answer) in expected.iter().zip(answers) {
            let stack = answer.unwrap_or_else(|error| panic!("round {round}, {function}: {error}"));
            let own: Vec<_> = stack
                .frames()
                .iter()
                .filter(|frame| frame.function().is_some_and(|name| name.contains(function)))
                .collect();
            assert_eq!(own.len(), 1, "round {round}, {function}:\n{stack:#}");
            assert!(own[0].file().unwrap().ends_with("stack_dump.rs"));
            assert!(own[0].line().is_some() && own[0].address() != 0);
            assert!(!stack.is_truncated(), "{function}:\n{stack:#}");
            for (_, other) in expected.iter().filter(|(_, other)| other != function) {
                assert!(
                    !names(&stack).iter().any(|name| name.contains(other)),
                    "{function} is taken for {other}:\n{stack:#}"
                );
            }
        }
    }

    cat.stdin.take().unwrap().write_all(b"grain").unwrap();
    assert_eq!(reader.join().unwrap().unwrap(), b"grain");
    over.store(true, Ordering::Release);
    sleeper.join().unwrap();
    told.recv().unwrap().wake();
    parker.join().unwrap();
    computer.join().unwrap();
    cat.wait().unwrap();
}

#[inline(never)]
fn reads_the_clock(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        std::hint::black_box(Instant::now());
    }
}

#[test]
fn wherever_a_thread_is_interrupted_unwinding_reaches_the_end() {
    let _watch = watch();
    let over = Arc::new(AtomicBool::new(false));
    let inner = Arc::clone(&over);
    let (target, thread) = spawn_target("clock", move || reads_the_clock(&inner));
    until_named(&target, "reads_the_clock");
    // In prologues and epilogues, in std, in the C library and in the vDSO.
    for _ in 0..100 {
        let stack = until_named(&target, "reads_the_clock");
        assert!(!stack.is_truncated(), "{stack:#}");
    }
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn a_thread_that_has_ended_is_an_error_and_the_others_are_captured() {
    let (gone, thread) = spawn_target("gone", || ());
    thread.join().unwrap();
    assert!(gone.has_ended());
    let answers = capture(&[gone.clone(), ThreadRef::current(), gone], LONG);
    assert_eq!(answers[0], Err(CaptureError::ThreadEnded));
    assert!(answers[1].is_ok());
    assert_eq!(answers[2], Err(CaptureError::ThreadEnded));
}

macro_rules! kinds {
    ($($name:ident)*) => {
        $(#[inline(never)]
        fn $name(steps: u64) {
            for step in 0..steps {
                thread::yield_now();
                // Four functions with the same body would be merged.
                std::hint::black_box((stringify!($name), step));
            }
        })*
        const KINDS: &[(&str, fn(u64))] = &[$((stringify!($name), $name)),*];
    };
}

kinds! { grinds_wheat grinds_rye grinds_oats grinds_barley }

/// Living threads, each with the function that it runs.
type Board = Mutex<Vec<(&'static str, ThreadRef)>>;

fn comes_and_goes(board: &Board, number: u64) {
    let (name, body) = KINDS[number as usize % KINDS.len()];
    {
        let mut board = board.lock().unwrap();
        board.push((name, ThreadRef::current()));
        if board.len() > 8 {
            board.remove(0);
        }
    }
    body(number % 97);
}

#[test]
fn no_thread_is_taken_for_another_while_threads_come_and_go() {
    const CAPTURES: usize = 1_000;
    const NAMED: usize = 50;
    let _watch = watch();
    let board = Arc::new(Board::default());
    let over = Arc::new(AtomicBool::new(false));
    let born = Arc::new(AtomicU64::new(0));
    let spawners: Vec<_> = (0..2)
        .map(|_| {
            let (board, over, born) = (Arc::clone(&board), Arc::clone(&over), Arc::clone(&born));
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let number = born.fetch_add(1, Ordering::Relaxed);
                    let board = Arc::clone(&board);
                    thread::spawn(move || comes_and_goes(&board, number))
                        .join()
                        .unwrap();
                }
            })
        })
        .collect();
    let (mut asked, mut named) = (0, 0);
    while asked < CAPTURES || named < NAMED {
        let crowd = board.lock().unwrap().clone();
        let targets: Vec<ThreadRef> = crowd.iter().map(|(_, target)| target.clone()).collect();
        for ((own, _), answer) in crowd.iter().zip(capture(&targets, LONG)) {
            asked += 1;
            match answer {
                Err(error) => assert_eq!(error, CaptureError::ThreadEnded),
                Ok(stack) => {
                    for (kind, _) in KINDS {
                        let is_there = names(&stack).iter().any(|name| name.contains(kind));
                        assert!(!is_there || kind == own, "{own} is {kind}:\n{stack:#}");
                        named += usize::from(is_there);
                    }
                }
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    spawners.into_iter().for_each(|one| one.join().unwrap());
    let born = born.load(Ordering::Relaxed);
    println!("{named} of {asked} named, of {born} threads");
}
