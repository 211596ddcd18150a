//! Snapshots of real threads. Unwinding them is tested in `millpond-stack`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "threads of every kind are captured from below the Sync seam"
)]

use super::*;
use crate::park::{self, Site};
use crate::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

const TIMEOUT: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);

/// A thread that runs `body`, and a reference to it.
fn spawn_target(body: impl FnOnce() + Send + 'static) -> (ThreadRef, std::thread::JoinHandle<()>) {
    let (say, hear) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        say.send(ThreadRef::current()).unwrap();
        body();
    });
    (hear.recv().unwrap(), thread)
}

fn one(target: &ThreadRef, timeout: Duration) -> Result<StackSnapshot, CaptureError> {
    capture(std::slice::from_ref(target), timeout)
        .pop()
        .expect("one answer for one thread")
}

#[test]
fn a_thread_can_capture_itself() {
    let marker = 0x6d69_6c6c_706f_6e64_u64;
    let place = &raw const marker;
    let snapshot = one(&ThreadRef::current(), TIMEOUT).expect("it is alive");
    // A sanitizer may keep the variable elsewhere than on the stack.
    let place = place.addr() as u64;
    let lowest = snapshot.registers().stack;
    let is_copied = (lowest..lowest + 64 * 1024).contains(&place);
    assert_eq!(snapshot.word_at(place), is_copied.then_some(marker));
    assert!(snapshot.word_at(lowest & !7).is_some());
    assert_eq!(snapshot.word_at((lowest & !7) + 1), None);
    assert_eq!(snapshot.word_at((lowest & !7) - 8), None);
    assert_eq!(snapshot.word_at(0), None);
}

#[test]
fn a_thread_that_has_ended_is_an_error() {
    let (target, thread) = spawn_target(|| ());
    thread.join().unwrap();
    assert!(target.has_ended());
    assert_eq!(one(&target, TIMEOUT).err(), Some(CaptureError::ThreadEnded));
}

#[test]
fn a_thread_local_that_is_destroyed_late_finds_the_thread_ended() {
    struct Late(mpsc::Sender<ThreadRef>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.send(ThreadRef::current()).unwrap();
        }
    }
    thread_local! {
        static LATE: core::cell::RefCell<Option<Late>> = const { core::cell::RefCell::new(None) };
    }
    let (say, hear) = mpsc::channel();
    let (target, thread) = spawn_target(move || {
        // Registered after the target's guard, hence destroyed before or after it, as the system likes.
        LATE.with(|late| *late.borrow_mut() = Some(Late(say)));
    });
    thread.join().unwrap();
    let late = hear.recv().unwrap();
    assert!(late.has_ended() && target.has_ended());
}

#[test]
fn a_deep_stack_is_copied_in_part_and_says_so() {
    #[inline(never)]
    fn deep(say: &mpsc::Sender<()>, stay: &mpsc::Receiver<()>) {
        let much = std::hint::black_box([7_u8; 256 * 1024]);
        say.send(()).unwrap();
        let _ = stay.recv();
        std::hint::black_box(&much);
    }
    let (say, hear) = mpsc::channel();
    let (leave, stay) = mpsc::channel();
    let (target, thread) = spawn_target(move || deep(&say, &stay));
    hear.recv().unwrap();
    let snapshot = one(&target, TIMEOUT).expect("it sleeps");
    assert!(!snapshot.is_whole());
    assert!(snapshot.word_at(snapshot.registers().stack & !7).is_some());
    drop(leave);
    thread.join().unwrap();
}

#[test]
fn a_thread_that_blocks_the_signal_times_out_and_a_late_signal_finds_an_empty_mailbox() {
    let (say, hear) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let (target, thread) = spawn_target(move || {
        block_the_signal(true);
        say.send(()).unwrap();
        wait.recv().unwrap();
        block_the_signal(false);
        say.send(()).unwrap();
        let _ = wait.recv();
    });
    hear.recv().unwrap();
    assert_eq!(one(&target, SHORT).err(), Some(CaptureError::TimedOut));
    // The first signal is still pending, so the kernel discards the second: only the first one
    // can be answered.
    assert_eq!(one(&target, SHORT).err(), Some(CaptureError::TimedOut));
    go_on.send(()).unwrap();
    hear.recv().unwrap();
    assert!(one(&target, TIMEOUT).is_ok());
    drop(go_on);
    thread.join().unwrap();
}

#[test]
fn a_pending_signal_answers_the_present_request() {
    let (say, hear) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let (target, thread) = spawn_target(move || {
        block_the_signal(true);
        say.send(()).unwrap();
        wait.recv().unwrap();
        block_the_signal(false);
        let _ = wait.recv();
    });
    hear.recv().unwrap();
    assert_eq!(one(&target, SHORT).err(), Some(CaptureError::TimedOut));
    std::thread::scope(|scope| {
        let requester = scope.spawn(|| one(&target, TIMEOUT));
        while target.target.is_free() {
            std::thread::yield_now();
        }
        go_on.send(()).unwrap();
        assert!(requester.join().unwrap().is_ok());
    });
    drop(go_on);
    thread.join().unwrap();
}

#[test]
fn a_foreign_signal_that_came_first_answers_as_well() {
    signal::install().unwrap();
    let me = ThreadRef::current();
    block_the_signal(true);
    // SAFETY: STACK-6 - a signal to oneself, which is ignored or handled by us.
    assert_eq!(unsafe { libc::raise(libc::SIGURG) }, 0);
    // Ours finds one pending, and is discarded.
    let request = me.target.request(after(TIMEOUT)).unwrap();
    block_the_signal(false);
    assert!(request.wait(after(SHORT), after(SHORT)).is_ok());
}

fn block_the_signal(is_blocked: bool) {
    let how = if is_blocked {
        libc::SIG_BLOCK
    } else {
        libc::SIG_UNBLOCK
    };
    let mut set = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: STACK-6 - writes the set whole.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: STACK-6 - the set was written above.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGURG) };
    // SAFETY: STACK-6 - the set was written above, and the old one is not wanted.
    let failed = unsafe { libc::pthread_sigmask(how, set.as_ptr(), core::ptr::null_mut()) };
    assert_eq!(failed, 0);
}

#[test]
fn a_park_is_not_ended_by_a_capture() {
    let is_over = Arc::new(AtomicBool::new(false));
    let (say, hear) = mpsc::channel();
    let over = Arc::clone(&is_over);
    let (target, thread) = spawn_target(move || {
        let here = park::current();
        say.send(here.waker()).unwrap();
        // No loop: a park that a signal ends would end the thread.
        here.park(Site::new("test.park"));
        assert!(over.load(Ordering::Relaxed), "it woke up by itself");
    });
    let waker = hear.recv().unwrap();
    for _ in 0..50 {
        assert!(one(&target, TIMEOUT).is_ok());
    }
    is_over.store(true, Ordering::Relaxed);
    waker.wake();
    thread.join().unwrap();
}

#[test]
fn a_park_with_a_deadline_is_neither_cut_nor_stretched_by_captures() {
    const LONG: Duration = Duration::from_millis(60);
    let (say, hear) = mpsc::channel();
    let (target, thread) = spawn_target(move || {
        let here = park::current();
        let start = Instant::now();
        say.send(()).unwrap();
        let woken = here.park_until(Site::new("test.park"), start + LONG);
        assert_eq!(woken, park::Woken::TimedOut);
        assert!(start.elapsed() >= LONG);
    });
    hear.recv().unwrap();
    while !target.has_ended() {
        let _ = one(&target, TIMEOUT);
    }
    thread.join().unwrap();
}

#[test]
fn errno_is_preserved_by_captures() {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let (target, thread) = spawn_target(move || {
        while !over.load(Ordering::Relaxed) {
            // SAFETY: STACK-4 - this thread's own.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: STACK-4 - as above.
            unsafe { errno.write_volatile(77) };
            for _ in 0..1_000 {
                std::hint::spin_loop();
            }
            // SAFETY: STACK-4 - as above.
            assert_eq!(unsafe { errno.read_volatile() }, 77);
        }
    });
    for _ in 0..200 {
        assert!(one(&target, TIMEOUT).is_ok());
    }
    is_over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn many_may_capture_the_same_threads_at_once_and_one_thread_twice() {
    let (leave, stay) = mpsc::channel::<()>();
    let stay = Arc::new(crate::sync::Mutex::new(stay));
    let (targets, threads): (Vec<_>, Vec<_>) = (0..40)
        .map(|_| {
            let stay = Arc::clone(&stay);
            spawn_target(move || {
                let _ = stay.lock().recv();
            })
        })
        .unzip();
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let mut mine = targets.clone();
            mine.rotate_left(turn * 10);
            mine.push(targets[0].clone());
            scope.spawn(move || {
                for _ in 0..5 {
                    for answer in capture(&mine, TIMEOUT) {
                        assert!(answer.is_ok(), "{answer:?}");
                    }
                }
            });
        }
    });
    drop(leave);
    for thread in threads {
        thread.join().unwrap();
    }
}
