//! Copies of the registers and the stack of a running thread, taken by a signal.
//!
//! A thread makes a [`ThreadRef`] to itself; any thread that holds it can [`capture`] a [`StackSnapshot`].
//! The process is not stopped. The target thread loses the microseconds that copying takes, whether it
//! computes, waits in one of our parks or sleeps in the kernel. The snapshot is unwound and resolved to
//! functions and lines afterwards, by the crate `millpond-stack`.
//!
//! # Protocol
//!
//! ```text
//!   requester                          target thread
//!   ---------                          -------------
//!   puts an empty snapshot into
//!   the target's mailbox
//!   sends SIGURG  -------------------> handler: takes the snapshot from the mailbox,
//!   sleeps on the mailbox              copies registers and stack into it,
//!   is woken  <----------------------- puts it back, wakes the requester
//!   takes the snapshot out
//! ```
//!
//! - The signal carries nothing but a mark that it is ours. The request is in the [`mailbox`], and the
//!   handler looks there for any SIGURG. This is necessary: the kernel keeps *one* pending SIGURG for a
//!   thread and discards others, so the signal that arrives may be an older one, or foreign.
//! - SIGURG is ignored by default, so a signal that arrives late, when no handler is installed, kills
//!   nothing. The handler that was installed before ours is called for every signal without our mark.
//! - A requester that times out takes its snapshot back out of the mailbox, in one step that fails if the
//!   handler has it. So a handler that runs late finds an empty mailbox and does nothing. If the handler was
//!   stopped in the middle (by a debugger) the snapshot is abandoned to it, and is freed with the mailbox.
//! - Thread ids are reused. A signal is sent under the target's lock, and only while the thread is alive;
//!   an ending thread takes the same lock. So no id is used after its thread has ended.
//!
//! # What it costs the target thread
//!
//! A signal interrupts system calls. Those that can be restarted are (`SA_RESTART`): reads, writes,
//! locks, our own parks. Some never are, whatever the flags: `poll`, `epoll_wait`, `nanosleep`,
//! sockets with a timeout. They return `EINTR`, as for any other signal; std's own callers
//! (`thread::sleep` and others) retry, a call of the user's own must do so itself.
//!
//! # Invariants
//!
//! - **STACK-1** The snapshot of a mailbox is accessed by the requester that moved the mailbox from FREE, until
//!   it makes the request (REQUESTED) and after it has the snapshot back (LOCKED, READY); by the target
//!   thread from FILLING until it puts the snapshot back; by no other thread.
//! - **STACK-2** The handler finds its target through a thread-local pointer, which is null or points to
//!   a `Target` that the same thread keeps alive: set after the target is made, cleared before it is
//!   released. A handler interrupts its own thread, so it sees one of the two.
//! - **STACK-3** A signal is sent with the target's lock held and the mailbox not closed; an ending thread closes
//!   the mailbox under that lock. So the id belongs to the thread for the length of the call.
//! - **STACK-4** The handler does not allocate, lock, panic or unwind, and preserves `errno`. It
//!   uses atomics, preallocated memory, and the system call that wakes.
//! - **STACK-5** The copied memory lies between the stack pointer and the top of the thread's own stack, by the
//!   bounds that the system reported. All of it is mapped and readable while the thread runs on it. It
//!   is copied by instructions that the compiler does not look into, because the language does not let us
//!   read the frames of other functions.
//! - **STACK-6** The system passes a handler of three arguments a `siginfo_t` and a `ucontext_t`
//!   that live until it returns; a call to `sigaction`, `pthread_getattr_np` or
//!   `rt_tgsigqueueinfo` gets pointers to live locals of the right type.
//! - **STACK-7** The handler that was installed before ours is a function of one argument or of three, as its
//!   flags say, and is never unloaded.
//!
//! # Where it is not supported
//!
//! Without the feature `stack-dump`, elsewhere than on Linux on x86-64 or AArch64, in models (which
//! have no signals) and with the portable futex (whose wake takes a lock), [`ThreadRef`] is empty, and
//! every capture returns [`CaptureError::Unsupported`].
//!
//! # Files
//!
//! | file | what |
//! |---|---|
//! | [`mailbox`] | one request at a time, between requesters and the handler |
//! | `linux` | the target thread, the snapshot, the signal and its handler, by architecture |
//! | `unsupported` | the same names where it is not supported |

#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod linux;
pub mod mailbox;
#[cfg(any(
    not(feature = "stack-dump"),
    not(target_os = "linux"),
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    millpond_loom,
    millpond_shuttle,
    millpond_portable
))]
mod unsupported;

#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
pub use linux::{IS_SUPPORTED, StackSnapshot, ThreadRef, capture};
#[cfg(any(
    not(feature = "stack-dump"),
    not(target_os = "linux"),
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    millpond_loom,
    millpond_shuttle,
    millpond_portable
))]
pub use unsupported::{IS_SUPPORTED, StackSnapshot, ThreadRef, capture};

/// The registers from which a stack is unwound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The instruction pointer: the next instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The frame pointer, or anything else if the code uses that register otherwise.
    pub frame: u64,
    /// The link register of AArch64, which holds the return address in a leaf function; 0 elsewhere.
    pub link: u64,
}

/// Why there is no snapshot of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// This build, or this platform, cannot take snapshots.
    Unsupported,
    /// The thread has ended.
    ThreadEnded,
    /// The handler did not run in time.
    TimedOut,
    /// Other requests to the thread were under way all the time.
    Busy,
    /// The system did not send the signal, with this error number.
    SignalNotSent(i32),
}
