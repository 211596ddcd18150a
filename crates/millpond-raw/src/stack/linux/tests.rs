//! Pictures of real threads. That the walk up a stack names the right functions is tested where it
//! is done, in `millpond`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "threads of every kind are looked at from below the Sync seam"
)]

use super::*;
use crate::park::{self, Site};
use crate::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);

/// A thread that has made itself a subject and then runs `body`.
fn sitting(body: impl FnOnce() + Send + 'static) -> (Subject, std::thread::JoinHandle<()>) {
    let (say, hear) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        say.send(Subject::here()).unwrap();
        body();
    });
    (hear.recv().unwrap(), thread)
}

fn one(subject: &Subject, patience: Duration) -> Result<Picture, Refusal> {
    capture(std::slice::from_ref(subject), patience)
        .pop()
        .expect("one answer for one subject")
}

#[test]
fn a_thread_can_take_a_picture_of_itself() {
    let marker = 0x6d69_6c6c_706f_6e64_u64;
    let place = &raw const marker;
    let picture = one(&Subject::here(), PATIENCE).expect("it is there");
    // A checker of memory may keep the variable elsewhere than on the stack.
    let place = place.addr() as u64;
    let lowest = picture.registers().stack;
    let is_copied = (lowest..lowest + 64 * 1024).contains(&place);
    assert_eq!(picture.word_at(place), is_copied.then_some(marker));
    assert!(picture.word_at(lowest & !7).is_some());
    assert_eq!(picture.word_at((lowest & !7) + 1), None);
    assert_eq!(picture.word_at((lowest & !7) - 8), None);
    assert_eq!(picture.word_at(0), None);
}

#[test]
fn a_thread_that_has_ended_is_refused() {
    let (subject, thread) = sitting(|| ());
    thread.join().unwrap();
    assert!(subject.has_ended());
    assert_eq!(one(&subject, PATIENCE).err(), Some(Refusal::Ended));
}

#[test]
fn a_variable_of_a_thread_that_is_destroyed_late_finds_the_thread_gone() {
    struct Late(mpsc::Sender<Subject>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.send(Subject::here()).unwrap();
        }
    }
    thread_local! {
        static LATE: core::cell::RefCell<Option<Late>> = const { core::cell::RefCell::new(None) };
    }
    let (say, hear) = mpsc::channel();
    let (subject, thread) = sitting(move || {
        // Registered after the sitting, hence destroyed before or after it, as the system likes.
        LATE.with(|late| *late.borrow_mut() = Some(Late(say)));
    });
    thread.join().unwrap();
    let late = hear.recv().unwrap();
    assert!(late.has_ended() && subject.has_ended());
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
    let (subject, thread) = sitting(move || deep(&say, &stay));
    hear.recv().unwrap();
    let picture = one(&subject, PATIENCE).expect("it sleeps");
    assert!(!picture.is_whole());
    assert!(picture.word_at(picture.registers().stack & !7).is_some());
    drop(leave);
    thread.join().unwrap();
}

#[test]
fn who_blocks_the_signal_is_silent_and_a_late_signal_finds_an_empty_tray() {
    let (say, hear) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let (subject, thread) = sitting(move || {
        block_the_signal(true);
        say.send(()).unwrap();
        wait.recv().unwrap();
        block_the_signal(false);
        say.send(()).unwrap();
        let _ = wait.recv();
    });
    hear.recv().unwrap();
    assert_eq!(one(&subject, SHORT).err(), Some(Refusal::Silent));
    // The first signal is still pending, so the system throws the second away: it is the first one
    // that must serve, or nobody.
    assert_eq!(one(&subject, SHORT).err(), Some(Refusal::Silent));
    go_on.send(()).unwrap();
    hear.recv().unwrap();
    assert!(one(&subject, PATIENCE).is_ok());
    drop(go_on);
    thread.join().unwrap();
}

#[test]
fn a_signal_that_was_pending_serves_who_asks_now() {
    let (say, hear) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let (subject, thread) = sitting(move || {
        block_the_signal(true);
        say.send(()).unwrap();
        wait.recv().unwrap();
        block_the_signal(false);
        let _ = wait.recv();
    });
    hear.recv().unwrap();
    assert_eq!(one(&subject, SHORT).err(), Some(Refusal::Silent));
    std::thread::scope(|scope| {
        let asker = scope.spawn(|| one(&subject, PATIENCE));
        while subject.sitter.is_free() {
            std::thread::yield_now();
        }
        go_on.send(()).unwrap();
        assert!(asker.join().unwrap().is_ok());
    });
    drop(go_on);
    thread.join().unwrap();
}

fn block_the_signal(is_blocked: bool) {
    let how = if is_blocked {
        libc::SIG_BLOCK
    } else {
        libc::SIG_UNBLOCK
    };
    let mut set = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: G6 - writes the set whole.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: G6 - the set was written above.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGURG) };
    // SAFETY: G6 - the set was written above, and the old one is not wanted.
    let failed = unsafe { libc::pthread_sigmask(how, set.as_ptr(), core::ptr::null_mut()) };
    assert_eq!(failed, 0);
}

#[test]
fn a_park_is_not_ended_by_a_picture() {
    let is_over = Arc::new(AtomicBool::new(false));
    let (say, hear) = mpsc::channel();
    let over = Arc::clone(&is_over);
    let (subject, thread) = sitting(move || {
        let here = park::current();
        say.send(here.waker()).unwrap();
        // No loop: a park that a signal ends would end the thread.
        here.park(Site::new("test.park"));
        assert!(over.load(Ordering::Relaxed), "nobody woke it");
    });
    let waker = hear.recv().unwrap();
    for _ in 0..50 {
        assert!(one(&subject, PATIENCE).is_ok());
    }
    is_over.store(true, Ordering::Relaxed);
    waker.wake();
    thread.join().unwrap();
}

#[test]
fn a_park_with_a_deadline_is_neither_cut_nor_stretched_by_pictures() {
    const LONG: Duration = Duration::from_millis(60);
    let (say, hear) = mpsc::channel();
    let (subject, thread) = sitting(move || {
        let here = park::current();
        let start = Instant::now();
        say.send(()).unwrap();
        let woken = here.park_until(Site::new("test.park"), start + LONG);
        assert_eq!(woken, park::Woken::TimedOut);
        assert!(start.elapsed() >= LONG);
    });
    hear.recv().unwrap();
    while !subject.has_ended() {
        let _ = one(&subject, PATIENCE);
    }
    thread.join().unwrap();
}

#[test]
fn errno_is_as_it_was_whenever_a_picture_is_taken() {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let (subject, thread) = sitting(move || {
        while !over.load(Ordering::Relaxed) {
            // SAFETY: G4 - this thread's own.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: G4 - as above.
            unsafe { errno.write_volatile(77) };
            for _ in 0..1_000 {
                std::hint::spin_loop();
            }
            // SAFETY: G4 - as above.
            assert_eq!(unsafe { errno.read_volatile() }, 77);
        }
    });
    for _ in 0..200 {
        assert!(one(&subject, PATIENCE).is_ok());
    }
    is_over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn many_may_ask_for_the_same_threads_at_once_and_for_one_twice() {
    let (leave, stay) = mpsc::channel::<()>();
    let stay = Arc::new(crate::sync::Mutex::new(stay));
    let (subjects, threads): (Vec<_>, Vec<_>) = (0..40)
        .map(|_| {
            let stay = Arc::clone(&stay);
            sitting(move || {
                let _ = stay.lock().recv();
            })
        })
        .unzip();
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let mut mine = subjects.clone();
            mine.rotate_left(turn * 10);
            mine.push(subjects[0].clone());
            scope.spawn(move || {
                for _ in 0..5 {
                    for answer in capture(&mine, PATIENCE) {
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
