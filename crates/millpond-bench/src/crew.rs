//! Threads that start together, and what they used.
//!
//! Starting a thread takes longer than a thousand messages. So all threads of a round are started
//! first and wait, awake, until the last of them is there. The time runs from the first that begins
//! its work to the last that ends it; threads come and go outside of it.
//!
//! They meet twice: once when they are there, and again when each has read what it has used so far.
//! So what the early ones burn while they wait for the late ones is not counted as work.

use crate::usage::Usage;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The work of one thread.
pub type Member<'a, R> = Box<dyn FnOnce() -> R + Send + 'a>;

/// The result of a team of threads.
pub struct Done<R> {
    /// The values of the threads, in their order.
    pub results: Vec<R>,
    /// From the first beginning to the last end.
    pub elapsed: Duration,
    /// The usage of all of them together.
    pub usage: Usage,
}

impl<R> fmt::Debug for Done<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Done")
            .field("elapsed", &self.elapsed)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

struct Shift<R> {
    result: R,
    began: Instant,
    ended: Instant,
    usage: Usage,
}

/// Runs every member on a thread of its own, and waits for all.
///
/// # Panics
///
/// If a member panics, or a thread cannot be started.
pub fn run<R: Send>(members: Vec<Member<'_, R>>) -> Done<R> {
    let [there, ready] = [(); 2].map(|()| Gate(AtomicUsize::new(members.len())));
    let shifts: Vec<Shift<R>> = std::thread::scope(|scope| {
        let threads: Vec<_> = members
            .into_iter()
            .map(|member| scope.spawn(|| shift(&there, &ready, member)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a member of a crew panicked"))
            .collect()
    });
    let began = shifts.iter().map(|shift| shift.began).min();
    let ended = shifts.iter().map(|shift| shift.ended).max();
    Done {
        elapsed: ended
            .zip(began)
            .map_or(Duration::ZERO, |(ended, began)| ended - began),
        usage: shifts.iter().map(|shift| shift.usage).sum(),
        results: shifts.into_iter().map(|shift| shift.result).collect(),
    }
}

/// Opens when as many have come as are missing.
struct Gate(AtomicUsize);

impl Gate {
    fn pass(&self) {
        // Relaxed: it says when to begin, and hands nothing over.
        self.0.fetch_sub(1, Ordering::Relaxed);
        while self.0.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
    }
}

fn shift<R>(there: &Gate, ready: &Gate, member: Member<'_, R>) -> Shift<R> {
    there.pass();
    let before = Usage::of_this_thread();
    ready.pass();
    let began = Instant::now();
    let result = member();
    let ended = Instant::now();
    Shift {
        result,
        began,
        ended,
        usage: Usage::of_this_thread() - before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_threads() {
        let members = (0..6)
            .map(|n| Box::new(move || n * n) as Member<'_, _>)
            .collect();
        assert_eq!(run(members).results, [0, 1, 4, 9, 16, 25]);
    }

    #[test]
    fn no_thread_begins_before_all_have_started() {
        let there = AtomicUsize::new(0);
        // Each member waits until it has seen all three at work at once.
        let member = || {
            there.fetch_add(1, Ordering::Relaxed);
            while there.load(Ordering::Relaxed) < 3 {
                std::thread::yield_now();
            }
        };
        let done = run((0..3).map(|_| Box::new(member) as Member<'_, _>).collect());
        assert_eq!(done.results.len(), 3);
    }

    #[test]
    fn a_team_of_no_threads_takes_no_time() {
        assert_eq!(run::<()>(Vec::new()).elapsed, Duration::ZERO);
    }
}
