//! Pictures of running threads: registers and stack as they are at one moment, taken by a signal.
//!
//! A thread makes itself a [`Subject`]; whoever holds that may [`capture`] a [`Picture`] of it. The
//! process is not stopped, the thread loses the microseconds that copying takes, and it does not
//! matter whether it computes, waits in one of our parks or sleeps in the kernel. What a picture
//! means (which functions, which lines) is worked out afterwards, from the copy, by whoever asked.
//!
//! # The protocol
//!
//! ```text
//!   requester                          subject
//!   ---------                          -------
//!   lays an empty picture in its tray
//!   sends SIGURG  -------------------> handler: takes the picture from the tray,
//!   sleeps on the tray                 copies registers and stack into it,
//!   is woken  <----------------------- puts it back, wakes
//!   takes the picture out
//! ```
//!
//! - The signal carries nothing but a mark that it is ours. What is asked for is in the
//!   [`tray`], and the handler looks there whatever signal has come. That is needed: the system
//!   keeps *one* pending SIGURG for a thread and throws others away, so the one that arrives may be
//!   an older one, or a stranger's.
//! - SIGURG, because it is ignored by default: one that arrives when nobody expects it any more kills
//!   nothing. A handler that was there before us is called for every signal without our mark.
//! - A requester that has waited long enough takes its picture back out of the tray, in one step that
//!   fails if the handler has it. So a handler that runs late finds an empty tray and does nothing.
//!   If the handler was stopped in the middle (a debugger does that) the picture is left to it, and
//!   goes with the tray.
//! - Thread numbers are used again. A signal is sent under the subject's lock, and only while the
//!   thread has not left; it leaves under the same lock. So no number is used after its thread.
//!
//! # What it costs the subject
//!
//! A signal interrupts system calls. Those that can be resumed are (`SA_RESTART`): reads, writes,
//! locks, our own parks. Some never are, whatever the flags: `poll`, `epoll_wait`, `nanosleep`,
//! sockets with a time-out. They return `EINTR`, as for any other signal; std's own callers
//! (`thread::sleep` and the like) go on by themselves, a call of your own must.
//!
//! # Invariants
//!
//! - **G1** A tray's picture is touched by the requester that moved the tray from FREE until it
//!   lays the picture out (ASKED) and after it has it back (HELD, DONE); by the subject from the
//!   moment it took it (COPYING) until it put it back; by nobody else.
//! - **G2** The handler finds its subject through a thread-local pointer, which is null or points to
//!   a sitter that the same thread keeps alive: set after the sitter is made, cleared before it is
//!   let go. A handler interrupts its own thread, so it sees either.
//! - **G3** A signal is sent with the sitter's lock held and the thread not left; leaving takes that lock.
//!   So the number belongs to the thread for the length of the call.
//! - **G4** The handler does not allocate, lock, panic or unwind, and leaves `errno` as it was. It
//!   uses atomics, memory that was there before, and the call that wakes.
//! - **G5** What is copied lies between the stack pointer and the top of the thread's own stack, as
//!   the system told its bounds. All of that is mapped and readable while the thread runs on it. It
//!   is copied by instructions that the compiler does not look into, because other functions' frames
//!   are nothing that the language lets us read.
//! - **G6** The system passes a handler of three arguments a `siginfo_t` and a `ucontext_t`
//!   that live until it returns; a call to `sigaction`, `pthread_getattr_np` or
//!   `rt_tgsigqueueinfo` gets pointers to live locals of the type it wants.
//! - **G7** The handler that was there before ours is a function of one argument or of three, as its
//!   flags say, and stays where it is.
//!
//! # Where it is not built
//!
//! Without the feature `stack-dump`, elsewhere than on Linux on x86-64 or AArch64, in models (which
//! have no signals) and with the portable futex (whose wake takes a lock), [`Subject`] is empty, and
//! every capture answers [`Refusal::NotBuilt`].

#[cfg(any(
    not(feature = "stack-dump"),
    not(target_os = "linux"),
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    millpond_loom,
    millpond_shuttle,
    millpond_portable
))]
mod absent;
#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod linux;
pub mod tray;

#[cfg(any(
    not(feature = "stack-dump"),
    not(target_os = "linux"),
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    millpond_loom,
    millpond_shuttle,
    millpond_portable
))]
pub use absent::{IS_BUILT, Picture, Subject, capture};
#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
pub use linux::{IS_BUILT, Picture, Subject, capture};

/// The registers that the walk up a stack starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Where the thread was: the next instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The frame pointer, or whatever else the code keeps in that register.
    pub frame: u64,
    /// The link register of AArch64, which holds the return address of a function that calls none; 0
    /// elsewhere.
    pub link: u64,
}

/// Why there is no picture of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This build, or this platform, cannot take pictures.
    NotBuilt,
    /// The thread has ended.
    Ended,
    /// The thread did not look up in time.
    Silent,
    /// Others were taking pictures of the thread all the time.
    Busy,
    /// The system did not send the signal, with this error number.
    NotSent(i32),
}
