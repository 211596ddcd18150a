//! The tray: one picture at a time passes between those who ask and the thread that fills it.
//!
//! ```text
//!            hold            ask             serve              serve ends
//!     FREE --------> HELD ---------> ASKED --------> COPYING ---------------> DONE
//!       ^             ^                |                |                       |
//!       |             +--- withdrawn --+                | the asker has gone    |
//!       +-------------- the picture is out -------------|-----------------------+
//!       +-------------- serve ends -------- ORPHAN <----+
//! ```
//!
//! Beside the phase stands one bit, ENDED, that comes once and stays: the thread will not serve
//! any more. What it has done before is still good.
//!
//! `serve` is what runs in the signal handler: two or three atomic steps, the filling, and one call to
//! the kernel.
//!
//! # Invariants
//!
//! G1 of the [module](super), and:
//!
//! - **Y1** Only the owner of a phase leaves it. FREE, HELD and DONE are left by whoever asks, ASKED
//!   by the asker or by the one that serves, whoever is first; COPYING by the one that serves, but
//!   the asker may turn it to ORPHAN, which tells the server that the picture is left to the tray.
//!
//! # Orderings
//!
//! - `[Y-ask]` Laying the picture out releases, serving acquires: the server sees the picture.
//! - `[Y-done]` The end of serving releases, the asker's look acquires: it sees what was filled in.
//! - `[Y-free]` Leaving the tray releases, holding it acquires: the next asker finds it as it was
//!   left, with the picture of an orphan or without.

use crate::sync::atomic::Ordering;
use crate::sync::{Futex, UnsafeCell, Woken};
use core::fmt;
use std::time::Instant;

const FREE: u32 = 0;
const HELD: u32 = 1;
const ASKED: u32 = 2;
const COPYING: u32 = 3;
const DONE: u32 = 4;
const ORPHAN: u32 = 5;
const ENDED: u32 = 8;

const fn phase(word: u32) -> u32 {
    word & !ENDED
}

/// Why a tray gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// Its thread does not serve any more.
    Ended,
    /// The time is up.
    TimedOut,
}

/// Where a picture of type `T` is asked for and filled in.
///
/// ```
/// use millpond_raw::stack::tray::Tray;
/// use std::time::{Duration, Instant};
///
/// let tray = Tray::new();
/// let soon = Instant::now() + Duration::from_secs(1);
/// let asked = tray.hold(soon).unwrap().ask(Box::new(0)).unwrap();
/// // In life this is another thread, in its signal handler.
/// assert!(tray.serve(|picture| *picture = 7));
/// assert_eq!(asked.wait(soon, soon), Ok(Box::new(7)));
/// ```
pub struct Tray<T> {
    word: Futex,
    picture: UnsafeCell<Option<Box<T>>>,
}

// SAFETY: G1 - the picture passes from thread to thread, one at a time.
unsafe impl<T: Send> Sync for Tray<T> {}

impl<T> fmt::Debug for Tray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tray")
            .field("word", &self.word)
            .finish_non_exhaustive()
    }
}

impl<T> Default for Tray<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Tray<T> {
    /// An empty tray.
    pub fn new() -> Self {
        Tray {
            word: Futex::new(FREE),
            picture: UnsafeCell::new(None),
        }
    }

    /// Waits for the tray to be free, and holds it.
    ///
    /// # Errors
    ///
    /// [`Nothing::Ended`], or [`Nothing::TimedOut`] if others had it all the time.
    pub fn hold(&self, deadline: Instant) -> Result<Held<'_, T>, Nothing> {
        let mut out_of_time = false;
        loop {
            let seen = self
                .word
                // [Y-free]
                .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
            match seen {
                Ok(_) => return Ok(Held { tray: self }),
                Err(seen) if seen & ENDED != 0 => return Err(Nothing::Ended),
                Err(_) if out_of_time => return Err(Nothing::TimedOut),
                Err(seen) => out_of_time = self.sleep(seen, deadline),
            }
        }
    }

    /// Fills the picture in, if one is asked for; says whether it did. Any thread may call it, a
    /// signal handler included if `fill` may run there.
    pub fn serve(&self, fill: impl FnOnce(&mut T)) -> bool {
        let taken = self
            .word
            // [Y-ask]
            .compare_exchange(ASKED, COPYING, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            return false;
        }
        self.picture.with_mut(|picture| {
            // SAFETY: G1 - we took it, so it is ours until we put it back.
            let picture = unsafe { &mut *picture };
            if let Some(picture) = picture {
                fill(picture);
            }
        });
        // Relaxed: the look only guesses, the exchange decides.
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let next = match phase(seen) {
                COPYING => DONE,
                // Y1: nobody waits for it any more.
                _ => FREE,
            };
            let put = self.word.compare_exchange(
                seen,
                next | (seen & ENDED),
                // [Y-done] [Y-free]
                Ordering::Release,
                Ordering::Relaxed,
            );
            match put {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        self.word.wake_all();
        true
    }

    /// Says that nobody will serve from now on. Who waits is told.
    pub fn end(&self) {
        self.word.fetch_or(ENDED, Ordering::Relaxed);
        self.word.wake_all();
    }

    /// Whether [`end`](Tray::end) was called.
    pub fn has_ended(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ENDED != 0
    }

    #[cfg(test)]
    #[allow(dead_code, reason = "asked by tests that are not built everywhere")]
    pub(super) fn is_free(&self) -> bool {
        phase(self.word.load(Ordering::Relaxed)) == FREE
    }

    /// Sleeps while the word is `seen`, and says whether the time is up.
    fn sleep(&self, seen: u32, deadline: Instant) -> bool {
        self.word.wait(seen, Some(deadline)) == Woken::TimedOut
    }

    fn swap_picture(&self, new: Option<Box<T>>) -> Option<Box<T>> {
        self.picture.with_mut(|picture| {
            // SAFETY: G1 - called by the one that holds the tray, before it asks or after it has
            // the picture back.
            let picture = unsafe { &mut *picture };
            core::mem::replace(picture, new)
        })
    }

    /// Takes the picture out, and leaves the tray.
    fn clear(&self) -> Option<Box<T>> {
        let picture = self.swap_picture(None);
        // [Y-free]
        self.word.fetch_and(ENDED, Ordering::Release);
        self.word.wake_all();
        picture
    }
}

/// A tray that is held, with nothing asked for yet. Dropped, it is left.
pub struct Held<'a, T> {
    tray: &'a Tray<T>,
}

impl<T> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(self.tray).finish()
    }
}

impl<'a, T> Held<'a, T> {
    /// Lays a picture out, to be filled in.
    ///
    /// # Errors
    ///
    /// [`Nothing::Ended`] if nobody will.
    pub fn ask(self, picture: Box<T>) -> Result<Asked<'a, T>, Nothing> {
        // An orphan may have left one behind; it goes here, on the asker's side.
        drop(self.tray.swap_picture(Some(picture)));
        let laid_out = self.tray.word.compare_exchange(
            HELD,
            ASKED,
            // [Y-ask]
            Ordering::Release,
            Ordering::Relaxed,
        );
        match laid_out {
            Ok(_) => {
                let tray = self.tray;
                core::mem::forget(self);
                Ok(Asked { tray })
            }
            // Only the bit can have come, and `self` clears the tray.
            Err(_) => Err(Nothing::Ended),
        }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        drop(self.tray.clear());
    }
}

/// A picture that is asked for. Dropped, it is withdrawn, or left to whoever is filling it in.
pub struct Asked<'a, T> {
    tray: &'a Tray<T>,
}

impl<T> fmt::Debug for Asked<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(self.tray).finish()
    }
}

impl<T> Asked<'_, T> {
    /// Waits for the picture: until `deadline` for somebody to begin, and until `last` for the end
    /// of what has begun.
    ///
    /// # Errors
    ///
    /// [`Nothing`], and why. What was asked for is withdrawn then, and will not be served.
    pub fn wait(self, deadline: Instant, last: Instant) -> Result<Box<T>, Nothing> {
        let tray = self.tray;
        core::mem::forget(self);
        // The phase whose time is up; each has its own.
        let mut too_long = FREE;
        loop {
            // [Y-done]
            let seen = tray.word.load(Ordering::Acquire);
            match phase(seen) {
                DONE => return tray.clear().ok_or(Nothing::Ended),
                // Nobody takes it any more: serving asks for the phase without the bit.
                ASKED if seen & ENDED != 0 => {
                    drop(tray.clear());
                    return Err(Nothing::Ended);
                }
                ASKED if too_long == ASKED => {
                    if tray.withdraw() {
                        return Err(Nothing::TimedOut);
                    }
                }
                COPYING if too_long == COPYING => {
                    if tray.orphan(seen) {
                        return Err(Nothing::TimedOut);
                    }
                }
                now => {
                    let until = if now == ASKED { deadline } else { last };
                    if tray.sleep(seen, until) {
                        too_long = now;
                    }
                }
            }
        }
    }
}

impl<T> Drop for Asked<'_, T> {
    fn drop(&mut self) {
        let tray = self.tray;
        if tray.withdraw() {
            return;
        }
        loop {
            // [Y-done]
            let seen = tray.word.load(Ordering::Acquire);
            if phase(seen) != COPYING {
                drop(tray.clear());
                return;
            }
            if tray.orphan(seen) {
                return;
            }
        }
    }
}

impl<T> Tray<T> {
    /// Takes back what nobody has begun to fill in, if so.
    fn withdraw(&self) -> bool {
        // Relaxed: the picture is as we laid it out.
        let withdrawn =
            self.word
                .compare_exchange(ASKED, HELD, Ordering::Relaxed, Ordering::Relaxed);
        if withdrawn.is_ok() {
            drop(self.clear());
        }
        withdrawn.is_ok()
    }

    /// Leaves the picture to the one that fills it in, if the tray is still as it was `seen`.
    fn orphan(&self, seen: u32) -> bool {
        self.word
            .compare_exchange(
                seen,
                ORPHAN | (seen & ENDED),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the tray is below the clock")]

    use super::*;

    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn nobody_serves_what_is_not_asked_for() {
        let tray = Tray::<u32>::new();
        assert!(!tray.serve(|_| unreachable!()));
        let held = tray.hold(now()).unwrap();
        assert!(!tray.serve(|_| unreachable!()));
        drop(held);
        assert!(tray.hold(now()).is_ok(), "it was left");
    }

    #[test]
    fn what_is_withdrawn_is_not_served_and_the_tray_is_free_again() {
        let tray = Tray::new();
        let asked = tray.hold(now()).unwrap().ask(Box::new(1)).unwrap();
        assert_eq!(asked.wait(now(), now()), Err(Nothing::TimedOut));
        assert!(!tray.serve(|_| unreachable!()));
        let asked = tray.hold(now()).unwrap().ask(Box::new(1)).unwrap();
        drop(asked);
        assert!(!tray.serve(|_| unreachable!()));
        assert!(tray.hold(now()).is_ok());
    }

    #[test]
    fn a_tray_that_is_held_makes_others_wait_and_then_give_up() {
        let tray = Tray::<u32>::new();
        let held = tray.hold(now()).unwrap();
        assert_eq!(tray.hold(now()).err(), Some(Nothing::TimedOut));
        drop(held);
        assert!(tray.hold(now()).is_ok());
    }

    #[test]
    fn an_asker_that_leaves_in_the_middle_leaves_the_picture_to_the_tray() {
        let tray = Tray::new();
        let asked = tray.hold(now()).unwrap().ask(Box::new(1)).unwrap();
        assert!(tray.serve(|picture| {
            // The asker gives up while we are at it, as when a debugger stops us here.
            assert_eq!(asked.wait(now(), now()), Err(Nothing::TimedOut));
            assert_eq!(tray.hold(now()).err(), Some(Nothing::TimedOut));
            *picture = 2;
        }));
        let asked = tray.hold(now()).unwrap().ask(Box::new(3)).unwrap();
        assert!(tray.serve(|picture| *picture += 1));
        assert_eq!(asked.wait(now(), now()), Ok(Box::new(4)));
    }

    #[test]
    fn the_end_is_told_to_everyone_and_what_was_done_is_still_good() {
        let tray = Tray::new();
        let asked = tray.hold(now()).unwrap().ask(Box::new(1)).unwrap();
        assert!(tray.serve(|picture| *picture = 2));
        tray.end();
        assert_eq!(asked.wait(now(), now()), Ok(Box::new(2)));
        assert_eq!(tray.hold(now()).err(), Some(Nothing::Ended));

        let tray = Tray::new();
        let asked = tray.hold(now()).unwrap().ask(Box::new(1)).unwrap();
        tray.end();
        assert!(!tray.serve(|_| unreachable!()));
        assert_eq!(asked.wait(now(), now()), Err(Nothing::Ended));

        let tray = Tray::new();
        let held = tray.hold(now()).unwrap();
        tray.end();
        assert_eq!(held.ask(Box::new(1)).err(), Some(Nothing::Ended));
        assert!(tray.has_ended());
    }
}
