//! The task that the current thread runs, and what its blocking calls obey: the token of the task, and the
//! stops of the enclosing engines.
//!
//! ```text
//!   Stop::enter ( Stop::enter ( task ( task run inline ) ) )
//!        |             |                       |
//!        +---- next <--+---- stops <-- here --> token          reported: how many of the stops that
//!                                                              are set this task has reported
//! ```
//!
//! A token interrupts one task, and reporting it clears it. A [`Stop`] interrupts every task that an engine
//! runs, also future ones, so reporting it must not clear it: the task only remembers that it has reported
//! it. All of that is in four words of the thread. Running a task swaps the token and leaves the stops alone,
//! so a stop costs a task nothing until it blocks. The fourth word leads to the enclosing frame, so that the
//! bodies on the stack can be listed ([`bodies`]).
//!
//! The four words are four thread-locals and not one of four words. A struct would be copied by wide loads
//! that overlap the narrow stores just made, and the failed store forwarding took a twentieth of a small
//! task.
//!
//! # Branches
//!
//! A job that a task has forked, and that another thread runs, is a *branch* of the task. It obeys the token of the task,
//! which it has by reference ([`Carried`]), and the stops of the thread that runs it. All branches are to hear of an
//! interrupt, and the task itself as well, so a branch reports it once and leaves the token set; and one that looks only
//! after the task has cleared the token finds that it was taken. So a branch may miss an interrupt only if the task had
//! reported another one before the branch was made, and reports this one before the branch looks.
//!
//! Nothing outside this file reaches a token through the thread. So no caller can obey the token and forget
//! the stops.
//!
//! # Rules
//!
//! 1. Code outside tasks is never interrupted, also inside an engine.
//! 2. A task that is run inline obeys its own token and not that of the enclosing task. The stops are the
//!    same: it is the same thread.
//! 3. Each task reports a stop once. What the enclosing task had reported before it ran this one inline is
//!    not reported again: a task that cleans up after a stop may run another one for that.
//!
//! # Invariants
//!
//! - **CURRENT-1** Each pointer of a frame is null or points to what is borrowed by a running [`enter`] or
//!   [`enter_engine`] of this thread, or to the former frame in the [`within`] that has replaced it; `within`
//!   puts the former frame back before its borrow ends, also when it unwinds.
//! - **CURRENT-2** Frames are read on their own thread only, and no reference made from one outlives the call
//!   of this module that made it.
//! - **CURRENT-3** A stop that is set stays set. So the number of set stops of a frame only grows, and if it
//!   is above `reported` there is an unreported one.
//! - **CURRENT-4** The token word of a frame is tagged with [`BRANCH`] if it points to a [`Branch`], which is borrowed by
//!   a running [`Carried::enter`]. Its token outlives that call, as the caller of `enter` promises.

use super::{Stop, Token};
use crate::forkjoin;
use crate::sync::local;
use crate::wait_queue::Ticket;
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
    static REPORTED: Cell<usize> = Cell::new(0);
}

local! {
    static PARENT: Cell<*const Frame> = Cell::new(ptr::null());
}

/// The mark of a token word that points to a [`Branch`] (CURRENT-4).
const BRANCH: usize = 1;

/// What a branch of a task knows of interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    /// It has reported one.
    Reported,
    /// It has reported one, and has taken that back.
    Pending,
}

/// A part of a task that another thread runs.
struct Branch {
    token: *const Token,
    /// The task had reported an interrupt before the branch was made.
    ignores_taken: bool,
    heard: Cell<Heard>,
}

impl Branch {
    #[inline]
    fn token(&self) -> &Token {
        // SAFETY: CURRENT-4 - it outlives the `enter` that this branch is in.
        unsafe { &*self.token }
    }

    fn is_set(&self) -> bool {
        match self.heard.get() {
            Heard::Nothing => {
                let token = self.token();
                token.is_set() || !self.ignores_taken && token.was_taken()
            }
            Heard::Reported => false,
            Heard::Pending => true,
        }
    }
}

/// Whose code runs in a frame.
enum Body<'a> {
    Task(&'a Token),
    Branch(&'a Branch),
}

impl<'a> Body<'a> {
    #[inline]
    fn is_set(&self) -> bool {
        match self {
            Body::Task(token) => token.is_set(),
            Body::Branch(branch) => branch.is_set(),
        }
    }

    #[inline]
    fn take(&self) -> bool {
        match self {
            Body::Task(token) => token.take(),
            Body::Branch(branch) => {
                let is_set = branch.is_set();
                if is_set {
                    branch.heard.set(Heard::Reported);
                }
                is_set
            }
        }
    }

    fn set(&self) {
        match self {
            Body::Task(token) => token.set(),
            Body::Branch(branch) => branch.heard.set(Heard::Pending),
        }
    }

    fn token(&self) -> &'a Token {
        match self {
            Body::Task(token) => token,
            Body::Branch(branch) => branch.token(),
        }
    }
}

/// The four words of a thread at one moment.
#[derive(Clone, Copy)]
struct Frame {
    /// Null outside tasks; tagged in a branch (CURRENT-4).
    token: *const Token,
    /// That of the innermost engine; null outside engines.
    stops: *const Link,
    /// How many of the set stops the task has reported.
    reported: usize,
    /// The enclosing frame; null if there is none.
    parent: *const Frame,
}

/// A stop, and those of the enclosing engines.
struct Link {
    stop: *const Stop,
    next: *const Link,
}

impl Frame {
    const EMPTY: Frame = Frame {
        token: ptr::null(),
        stops: ptr::null(),
        reported: 0,
        parent: ptr::null(),
    };

    #[inline]
    fn here() -> Self {
        // A thread that is being torn down has no thread-locals, and runs no task.
        Frame {
            token: TOKEN.try_with(Cell::get).unwrap_or(ptr::null()),
            stops: STOPS.try_with(Cell::get).unwrap_or(ptr::null()),
            reported: REPORTED.try_with(Cell::get).unwrap_or(0),
            parent: PARENT.try_with(Cell::get).unwrap_or(ptr::null()),
        }
    }

    /// Makes it the current frame. Does nothing in a thread that is being torn down.
    #[inline]
    fn set(self) {
        let _ = TOKEN.try_with(|token| token.set(self.token));
        let _ = STOPS.try_with(|stops| stops.set(self.stops));
        let _ = REPORTED.try_with(|reported| reported.set(self.reported));
        let _ = PARENT.try_with(|parent| parent.set(self.parent));
    }

    #[inline]
    fn body(&self) -> Option<Body<'_>> {
        if self.token.addr() & BRANCH != 0 {
            let branch = self.token.map_addr(|address| address & !BRANCH);
            // SAFETY: CURRENT-4 - borrowed by a `Carried::enter` further down this stack; CURRENT-2 - for one call.
            return Some(Body::Branch(unsafe { &*branch.cast::<Branch>() }));
        }
        // SAFETY: CURRENT-1 - null, or borrowed by an `enter` further down this stack; CURRENT-2 - for one call.
        unsafe { self.token.as_ref() }.map(Body::Task)
    }

    #[inline]
    fn stops(&self) -> impl Iterator<Item = &Stop> {
        // SAFETY: CURRENT-1 - null, or in an `enter_engine` further down this stack; CURRENT-2 - for one call.
        let first = unsafe { self.stops.as_ref() };
        // SAFETY: CURRENT-1, CURRENT-2 - as above.
        iter::successors(first, |link| unsafe { link.next.as_ref() })
            // SAFETY: CURRENT-1 - never null, and borrowed by the `enter_engine` that the link is in.
            .map(|link| unsafe { &*link.stop })
    }

    /// CURRENT-3.
    #[inline]
    fn stops_set(&self) -> usize {
        self.stops().filter(|stop| stop.is_set()).count()
    }
}

/// Runs `f` in a frame derived from the current one.
///
/// Jobs that the current one has forked are published first: what they carry is the frame that is current then (JOB-9).
#[inline]
fn within<R>(frame: impl FnOnce(Frame) -> Frame, f: impl FnOnce() -> R) -> R {
    struct Restore(Frame);

    impl Drop for Restore {
        #[inline]
        fn drop(&mut self) {
            self.0.set();
        }
    }

    forkjoin::publish_private();
    let restore = Restore(Frame::here());
    let inside = Frame {
        parent: ptr::from_ref(&restore.0),
        ..frame(restore.0)
    };
    inside.set();
    f()
}

/// Calls `see` with the token of each task whose body is on the stack of this thread, the innermost first.
/// Masked ones are included, for they wait as well. Branches are not: the body is on another stack.
pub fn bodies(mut see: impl FnMut(&Token)) {
    let mut frame = Frame::here();
    loop {
        if let Some(Body::Task(token)) = frame.body() {
            see(token);
        }
        // SAFETY: CURRENT-1 - null, or in a `within` further down this stack; CURRENT-2 - copied at once.
        match unsafe { frame.parent.as_ref() } {
            Some(parent) => frame = *parent,
            None => return,
        }
    }
}

/// Runs `f` as the body of a task with this token.
#[inline]
pub(super) fn enter<R>(token: &Token, f: impl FnOnce() -> R) -> R {
    within(
        |parent| Frame {
            token: ptr::from_ref(token),
            ..parent
        },
        f,
    )
}

/// The token of the current frame, for a job that another thread runs.
#[derive(Clone, Copy)]
pub(crate) struct Carried {
    /// Null outside tasks.
    token: *const Token,
    ignores_taken: bool,
    heard: Heard,
}

impl Carried {
    pub(crate) fn here() -> Self {
        let here = Frame::here();
        let (token, ignores_taken, heard) = match here.body() {
            None => (ptr::null(), false, Heard::Nothing),
            Some(Body::Task(token)) => (ptr::from_ref(token), token.was_taken(), Heard::Nothing),
            Some(Body::Branch(branch)) => (branch.token, branch.ignores_taken, branch.heard.get()),
        };
        Carried {
            token,
            ignores_taken,
            heard,
        }
    }

    /// The token; null outside tasks.
    pub(crate) fn token(&self) -> *const Token {
        self.token
    }

    /// What is carried to a part of the task with this token that is made now, by code that is in no frame of the task.
    ///
    /// # Safety
    ///
    /// The token is null, or alive.
    pub(crate) unsafe fn of(token: *const Token) -> Self {
        Carried {
            token,
            // SAFETY: CURRENT-4 - null or alive, as the caller promises.
            ignores_taken: unsafe { token.as_ref() }.is_some_and(Token::was_taken),
            heard: Heard::Nothing,
        }
    }

    /// Runs `f` as a branch of the task that this was made in, or in no task if it was made in none.
    ///
    /// # Safety
    ///
    /// The token outlives what runs inside of `f` (CURRENT-4).
    pub(crate) unsafe fn enter<R>(self, f: impl FnOnce() -> R) -> R {
        if self.token.is_null() {
            return outside(f);
        }
        let branch = Branch {
            token: self.token,
            ignores_taken: self.ignores_taken,
            heard: Cell::new(self.heard),
        };
        let tagged = ptr::from_ref(&branch)
            .cast::<Token>()
            .map_addr(|address| address | BRANCH);
        within(
            |parent| Frame {
                token: tagged,
                ..parent
            },
            f,
        )
    }
}

/// Runs `f` outside any task, with this stop behind all tasks that it runs.
pub(super) fn enter_engine<R>(stop: &Stop, f: impl FnOnce() -> R) -> R {
    let link = Link {
        stop: ptr::from_ref(stop),
        next: Frame::here().stops,
    };
    within(
        |parent| Frame {
            token: ptr::null(),
            stops: ptr::from_ref(&link),
            ..parent
        },
        f,
    )
}

/// Runs `f` outside any task, as an engine's own code: nothing interrupts it. The tasks that it runs obey the
/// enclosing engines all the same.
///
/// This is for a task that is itself an engine, between the tasks that it runs.
#[inline]
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    within(
        |parent| Frame {
            token: ptr::null(),
            ..parent
        },
        f,
    )
}

/// Runs `f` outside any task and engine: nothing interrupts it or the tasks that it runs. What comes
/// meanwhile is noticed afterwards.
#[inline]
pub fn masked<R>(f: impl FnOnce() -> R) -> R {
    within(|_| Frame::EMPTY, f)
}

/// Whether the running task is interrupted: by its token, or by a stop that it has not reported.
#[inline]
pub fn is_set() -> bool {
    let here = Frame::here();
    here.body()
        .is_some_and(|body| body.is_set() || here.stops_set() > here.reported)
}

/// Reports an interrupt of the running task: clears its token and marks all set stops as reported. All that
/// has come by now is one interrupt.
#[inline]
pub fn take() -> bool {
    let here = Frame::here();
    let Some(body) = here.body() else {
        return false;
    };
    let taken = body.take();
    let reported = here.stops_set();
    if reported <= here.reported {
        return taken;
    }
    let _ = REPORTED.try_with(|now| now.set(reported));
    true
}

/// Interrupts the running task, to undo that it has reported an interrupt. Returns false outside tasks.
pub fn set() -> bool {
    let here = Frame::here();
    here.body().map(|body| body.set()).is_some()
}

/// Whether an enclosing engine has been stopped, and the code that runs here has not reported it. An engine
/// that is itself run by another one asks this before it runs the next task.
pub fn is_stopped() -> bool {
    let here = Frame::here();
    here.stops_set() > here.reported
}

/// Runs `f`, in which the running task blocks: an interrupt or a stop wakes `waker` meanwhile. `f` must check
/// ([`take`], [`is_set`]) before it parks: what was set before wakes nothing.
pub fn with_interrupt_waker<R>(waker: &Waker, f: impl FnOnce() -> R) -> R {
    let here = Frame::here();
    match here.body() {
        None => f(),
        Some(body) => {
            let _registered = Registered::new(body.token(), waker);
            registered_with(here.stops(), waker, f)
        }
    }
}

/// Registers the waker with all stops, by recursion, so that nothing is allocated.
fn registered_with<'a, R>(
    mut stops: impl Iterator<Item = &'a Stop>,
    waker: &Waker,
    f: impl FnOnce() -> R,
) -> R {
    match stops.next() {
        None => f(),
        Some(stop) => {
            let _registered = Registered::new(stop.token(), waker);
            registered_with(stops, waker, f)
        }
    }
}

/// A waker registered with a token.
struct Registered<'a> {
    token: &'a Token,
    /// `None` if the token was set.
    ticket: Option<Ticket>,
}

impl<'a> Registered<'a> {
    fn new(token: &'a Token, waker: &Waker) -> Self {
        Registered {
            token,
            ticket: token.register(waker),
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.token.unregister(ticket);
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

    /// Runs `f` as a branch.
    fn branch<R>(carried: Carried, f: impl FnOnce() -> R) -> R {
        // SAFETY: CURRENT-4 - the tokens of these tests outlive the branches.
        unsafe { carried.enter(f) }
    }

    #[test]
    fn each_branch_and_the_task_report_an_interrupt_once() {
        let token = Token::new();
        let carried = token.enter(Carried::here);
        branch(carried, || assert!(!is_set() && !take()));
        token.set();
        for _ in 0..2 {
            branch(carried, || {
                let inner = Carried::here();
                branch(inner, || assert!(take() && !take()));
                assert!(take() && !is_set() && !take());
                branch(Carried::here(), || {
                    assert!(!take(), "it was reported before")
                });
            });
        }
        token.enter(|| assert!(take() && !take()));
        branch(carried, || {
            assert!(take(), "it was reported by the task only")
        });
        let later = token.enter(Carried::here);
        branch(later, || assert!(!take(), "the task had reported it"));
        token.set();
        branch(later, || {
            assert!(take() && !take());
            assert!(set() && take() && !take(), "it was put back");
        });
        assert!(token.is_set(), "a branch leaves it for the task");
    }

    #[test]
    fn a_branch_of_no_task_is_in_no_task_and_no_branch_is_a_body() {
        let token = Token::new();
        token.set();
        let (none, carried) = (Carried::here(), token.enter(Carried::here));
        token.enter(|| branch(none, || assert!(!is_set() && !take() && !set())));
        branch(carried, || {
            bodies(|_| unreachable!("its stack is another one"))
        });
    }

    #[test]
    fn an_engine_inside_a_task_is_in_no_task() {
        let (token, stop) = set_both();
        token.enter(|| {
            stop.enter(|| {
                assert!(!is_set() && !take() && !set());
                assert!(is_stopped(), "it was not reported");
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
    fn an_interrupt_that_is_put_back_is_reported_again() {
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
    fn a_blocking_task_is_in_every_queue_and_leaves_them_all() {
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
            stops[0]
                .enter(|| stops[1].enter(|| token.enter(|| with_interrupt_waker(&waker, rings))));
            bell.0.load(Ordering::Relaxed)
        };
        assert_eq!(block(&|| assert_eq!(Arc::strong_count(&bell), 5)), 0);
        assert_eq!(Arc::strong_count(&bell), 2, "it is in no queue");
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
