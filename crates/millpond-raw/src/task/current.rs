//! What the present thread runs, and what its blocking calls obey: the token of the task, and the
//! stops of the engines behind it.
//!
//! ```text
//!   Stop::enter ( Stop::enter ( task ( task run in place ) ) )
//!        |             |                       |
//!        +---- next <--+---- stops <-- here --> token          told: how many of the stops that are
//!                                                              set have been reported here
//! ```
//!
//! A token interrupts one task, and reporting it clears it. A [`Stop`] interrupts every task that an
//! engine runs, those to come included, so reporting it must not clear it: the task only remembers
//! that it has been told. All of that is in four words of the thread. Running a task swaps the
//! token and leaves the stops alone, so being stopped costs a task nothing, unless it blocks. The fourth
//! word leads to the frame around, so that one can ask which bodies are on the stack ([`bodies`]).
//!
//! The four words are four thread-locals and not one of four words. Together they would be copied by
//! halves that do not match what has just been written, and a processor waits at such a copy until
//! the writes are through: that was a twentieth of a small task.
//!
//! Nobody outside this file gets at a token through the thread. So no caller can obey the token and
//! forget the stops.
//!
//! # Rules
//!
//! 1. What runs in no task is never interrupted, also inside an engine.
//! 2. A task that is run in place obeys its own token and not that of the task around it. The stops
//!    are the same: it is the same thread.
//! 3. Each task is told of a stop once. What the task around it was told before it began, it is not
//!    told again: whoever has reported a stop and cleans up may run a task in place for that.
//!
//! # Invariants
//!
//! - **N1** Each pointer of a frame is null or points to what is borrowed by a running [`enter`] or
//!   [`enter_engine`] of this thread, or to the former frame in the [`within`] that has replaced it; which
//!   puts the former frame back before its borrow ends, also when it unwinds.
//! - **N2** Frames are read on their own thread only, and no reference that is made from one outlives
//!   the call of this module that has made it.
//! - **N3** A stop that is set stays set. So among the stops of a frame the number of those that are
//!   set only grows, and one that is above `told` says that there is something new.

use super::{Stop, Token};
use crate::sync::local;
use crate::waits::Ticket;
use core::cell::Cell;
use core::{iter, ptr};
use std::task::Waker;

local! {
    static TOKEN: Cell<*const Token> = Cell::new(ptr::null());
}

local! {
    static STOPS: Cell<*const Link> = Cell::new(ptr::null());
}

local! {
    static TOLD: Cell<usize> = Cell::new(0);
}

local! {
    static AROUND: Cell<*const Frame> = Cell::new(ptr::null());
}

/// What is obeyed: the four words of a thread at one moment.
#[derive(Clone, Copy)]
struct Frame {
    /// Null outside tasks.
    token: *const Token,
    /// The innermost engine's; null outside engines.
    stops: *const Link,
    /// How many of the stops that are set have been reported to the task.
    told: usize,
    /// What was here before; null if nothing was.
    around: *const Frame,
}

/// A stop, and those of the engines around it.
struct Link {
    stop: *const Stop,
    next: *const Link,
}

impl Frame {
    const NOWHERE: Frame = Frame {
        token: ptr::null(),
        stops: ptr::null(),
        told: 0,
        around: ptr::null(),
    };

    #[inline]
    fn here() -> Self {
        // In a thread that is being torn down nothing can be noted, so nothing runs there.
        Frame {
            token: TOKEN.try_with(Cell::get).unwrap_or(ptr::null()),
            stops: STOPS.try_with(Cell::get).unwrap_or(ptr::null()),
            told: TOLD.try_with(Cell::get).unwrap_or(0),
            around: AROUND.try_with(Cell::get).unwrap_or(ptr::null()),
        }
    }

    /// Puts it in the place of what is here. In a thread that is being torn down there is nowhere to
    /// note it.
    #[inline]
    fn set(self) {
        let _ = TOKEN.try_with(|token| token.set(self.token));
        let _ = STOPS.try_with(|stops| stops.set(self.stops));
        let _ = TOLD.try_with(|told| told.set(self.told));
        let _ = AROUND.try_with(|around| around.set(self.around));
    }

    #[inline]
    fn token(&self) -> Option<&Token> {
        // SAFETY: N1 - null, or borrowed by an `enter` further down this stack; N2 - for one call.
        unsafe { self.token.as_ref() }
    }

    #[inline]
    fn stops(&self) -> impl Iterator<Item = &Stop> {
        // SAFETY: N1 - null, or in an `enter_engine` further down this stack; N2 - for one call.
        let first = unsafe { self.stops.as_ref() };
        // SAFETY: N1, N2 - as above.
        iter::successors(first, |link| unsafe { link.next.as_ref() })
            // SAFETY: N1 - never null, and borrowed by the `enter_engine` that the link is in.
            .map(|link| unsafe { &*link.stop })
    }

    /// N3.
    #[inline]
    fn stops_set(&self) -> usize {
        self.stops().filter(|stop| stop.is_set()).count()
    }
}

/// Runs `f` with a frame made of the present one.
#[inline]
fn within<R>(frame: impl FnOnce(Frame) -> Frame, f: impl FnOnce() -> R) -> R {
    struct Restore(Frame);

    impl Drop for Restore {
        #[inline]
        fn drop(&mut self) {
            self.0.set();
        }
    }

    let restore = Restore(Frame::here());
    let inside = Frame {
        around: ptr::from_ref(&restore.0),
        ..frame(restore.0)
    };
    inside.set();
    f()
}

/// Shows the tokens of all tasks whose bodies are on the stack of this thread, the innermost first.
/// Masked ones are among them, for they wait as well.
pub fn bodies(mut see: impl FnMut(&Token)) {
    let mut frame = Frame::here();
    loop {
        if let Some(token) = frame.token() {
            see(token);
        }
        // SAFETY: N1 - null, or in a `within` further down this stack; N2 - copied at once.
        match unsafe { frame.around.as_ref() } {
            Some(around) => frame = *around,
            None => return,
        }
    }
}

/// Runs `f` as the body of a task with this token.
#[inline]
pub(super) fn enter<R>(token: &Token, f: impl FnOnce() -> R) -> R {
    within(
        |around| Frame {
            token: ptr::from_ref(token),
            ..around
        },
        f,
    )
}

/// Runs `f`, in no task, with this stop behind all tasks that it runs.
pub(super) fn enter_engine<R>(stop: &Stop, f: impl FnOnce() -> R) -> R {
    let link = Link {
        stop: ptr::from_ref(stop),
        next: Frame::here().stops,
    };
    within(
        |around| Frame {
            token: ptr::null(),
            stops: ptr::from_ref(&link),
            ..around
        },
        f,
    )
}

/// Runs `f` in no task, as an engine's own code does: nothing interrupts it. The tasks that it runs
/// obey the engines all the same.
///
/// This is for a task that is itself an engine, between the tasks that it runs.
#[inline]
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    within(
        |around| Frame {
            token: ptr::null(),
            ..around
        },
        f,
    )
}

/// Runs `f` in no task and in no engine: nothing interrupts it, and no stop the tasks that it runs.
/// What comes meanwhile is noticed afterwards.
#[inline]
pub fn masked<R>(f: impl FnOnce() -> R) -> R {
    within(|_| Frame::NOWHERE, f)
}

/// Whether the running task is interrupted: by its token, or by a stop that it has not been told of.
#[inline]
pub fn is_set() -> bool {
    let here = Frame::here();
    here.token()
        .is_some_and(|token| token.is_set() || here.stops_set() > here.told)
}

/// Reports an interrupt of the running task: clears its token, and has told it of all stops. All
/// that has come by now is one interrupt.
#[inline]
pub fn take() -> bool {
    let here = Frame::here();
    let Some(token) = here.token() else {
        return false;
    };
    let taken = token.take();
    let told = here.stops_set();
    if told <= here.told {
        return taken;
    }
    let _ = TOLD.try_with(|now| now.set(told));
    true
}

/// Interrupts the running task, as when it takes back that it has reported an interrupt. Returns
/// false if none runs here.
pub fn set() -> bool {
    let here = Frame::here();
    here.token().map(Token::set).is_some()
}

/// Whether an engine around has been stopped, and whoever runs here has not been told of it. An
/// engine that is itself run by another one asks this before it runs the next task.
pub fn is_stopped() -> bool {
    let here = Frame::here();
    here.stops_set() > here.told
}

/// Runs `f`, in which the running task blocks: whatever may interrupt it wakes the waker meanwhile.
/// `f` looks ([`take`], [`is_set`]) before it parks: what has come before wakes nobody.
pub fn listed<R>(waker: &Waker, f: impl FnOnce() -> R) -> R {
    let here = Frame::here();
    match here.token() {
        None => f(),
        Some(token) => {
            let _listed = Listed::new(token, waker);
            listed_at(here.stops(), waker, f)
        }
    }
}

/// Has the waker in the lists of all stops: a call for each, so that nothing is allocated.
fn listed_at<'a, R>(
    mut stops: impl Iterator<Item = &'a Stop>,
    waker: &Waker,
    f: impl FnOnce() -> R,
) -> R {
    match stops.next() {
        None => f(),
        Some(stop) => {
            let _listed = Listed::new(stop.token(), waker);
            listed_at(stops, waker, f)
        }
    }
}

/// Being in the list of a token.
struct Listed<'a> {
    token: &'a Token,
    /// None if it was set before.
    ticket: Option<Ticket>,
}

impl<'a> Listed<'a> {
    fn new(token: &'a Token, waker: &Waker) -> Self {
        Listed {
            token,
            ticket: token.enlist(waker),
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.token.leave(ticket);
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicU32, Ordering};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Arc;
    use std::task::Wake;

    fn set_both() -> (Token, Stop) {
        let both = (Token::new(), Stop::new());
        both.0.set();
        both.1.set();
        both
    }

    #[test]
    fn an_interrupt_and_a_stop_that_come_together_are_one() {
        let (token, stop) = set_both();
        stop.enter(|| {
            token.enter(|| {
                assert!(take());
                assert!(!take());
            });
        });
        assert!(!token.is_set() && stop.is_set());
    }

    #[test]
    fn an_engine_inside_a_task_is_in_no_task() {
        let (token, stop) = set_both();
        token.enter(|| {
            stop.enter(|| {
                assert!(!is_set() && !take() && !set());
                assert!(is_stopped(), "nobody was told");
            });
            assert!(is_set() && !is_stopped());
        });
    }

    #[test]
    fn all_bodies_of_the_stack_are_seen_from_within_and_none_afterwards() {
        let seen = || {
            let mut seen = Vec::new();
            bodies(|token| seen.push(ptr::from_ref(token)));
            seen
        };
        let (outer, inner, stop) = (Token::new(), Token::new(), Stop::new());
        let both = [&raw const inner, &raw const outer];
        outer.enter(|| {
            assert_eq!(seen(), both[1..]);
            stop.enter(|| inner.enter(|| masked(|| assert_eq!(seen(), both))));
            outside(|| assert_eq!(seen(), both[1..]));
            assert_eq!(seen(), both[1..]);
        });
        assert!(seen().is_empty());
    }

    #[test]
    fn an_interrupt_that_is_put_back_is_told_once_more() {
        let stop = Stop::new();
        stop.set();
        stop.enter(|| {
            Token::new().enter(|| {
                assert!(take());
                assert!(set(), "there is a task to interrupt");
                assert!(take());
                assert!(!take());
            });
        });
    }

    #[test]
    fn whoever_blocks_is_in_every_list_and_leaves_them_all() {
        struct Bell(AtomicU32);
        impl Wake for Bell {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let bell = Arc::new(Bell(AtomicU32::new(0)));
        let waker = Waker::from(Arc::clone(&bell));
        let (token, stops) = (Token::new(), [Stop::new(), Stop::new()]);
        let block = |rings: &dyn Fn()| {
            stops[0].enter(|| stops[1].enter(|| token.enter(|| listed(&waker, rings))));
            bell.0.load(Ordering::Relaxed)
        };
        assert_eq!(block(&|| assert_eq!(Arc::strong_count(&bell), 5)), 0);
        assert_eq!(Arc::strong_count(&bell), 2, "it is in no list");
        assert_eq!(block(&|| token.set()), 1);
        assert_eq!(block(&|| stops[0].set()), 2);
        assert_eq!(block(&|| stops[1].set()), 3);
        assert_eq!(Arc::strong_count(&bell), 2);
    }

    #[test]
    fn a_body_or_a_loop_that_unwinds_leaves_nothing_behind() {
        let (token, stop) = set_both();
        let bodies: [&dyn Fn(); 3] = [
            &|| token.enter(|| resume_unwind(Box::new(()))),
            &|| stop.enter(|| resume_unwind(Box::new(()))),
            &|| stop.enter(|| token.enter(|| masked(|| resume_unwind(Box::new(()))))),
        ];
        for body in bodies {
            assert!(catch_unwind(AssertUnwindSafe(body)).is_err());
            assert!(!is_set() && !is_stopped() && !set());
        }
    }
}
