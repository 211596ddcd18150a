//! The Block seam: how anything waits and is woken.
//!
//! A *strand* is whatever runs code one step after another: an operating-system thread or a virtual thread. A
//! strand that has to wait [`park`](Strand::park)s, and is woken through its [`Waker`]. Everything that waits
//! in millpond (queues, handles, futures, latches) is written once on top of these two and works on every
//! kind of strand.
//!
//! | file | what |
//! |---|---|
//! | `block` | the trait behind every wait, and which implementation the current thread uses |
//! | `thread_block` | the implementation of an operating-system thread: one futex word |
//! | `probe` | the registry of parked strands, for tests |
//!
//! # The token rule
//!
//! 1. A wake leaves a token with the strand. Two wakes before a park leave one token, not two.
//! 2. A park that finds a token takes it and returns at once; otherwise it sleeps until a token comes, and
//!    takes that.
//! 3. A park may return spuriously. A token may be left over from an earlier wait. Hence every wait is a loop
//!    around *its own* condition, and a token is only a hint to check it again.
//! 4. What the waking thread wrote before the wake is visible after the park that took its token.
//!
//! # The hook
//!
//! A thread waits through its own [`ThreadBlock`], a futex, unless a [`Block`] is installed with
//! [`with_block`]: then every wait of that thread goes through that block. A carrier installs the block of
//! the virtual thread that it mounts, whose `park` unmounts it and lets the carrier go on; a fork-join worker
//! installs one that starts a spare worker, parks the thread and retires the spare.
//!
//! # Why std's `Waker`
//!
//! A wait queue that holds wakers serves threads and futures alike, and needs one kind of entry. A thread's
//! waker is its block in an `Arc`; waking it costs one virtual call more than unparking directly, next to a
//! system call.
//!
//! # Observing waits
//!
//! Each park names its [`Site`]. With the feature `probe` (tests) a registry records them: [`probe`] answers
//! "thread `consumer` is parked in queue.take", the only reliable way to know that a thread has really
//! blocked before a test interrupts it.

mod block;
pub mod probe;
mod thread_block;

pub use crate::sync::Woken;
pub use block::{Block, with_block};
pub use thread_block::ThreadBlock;

use crate::user_code::{self, Kind};
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// Where a strand waits, for observers: the name of the call, and the object it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    name: &'static str,
    object: usize,
}

impl Site {
    /// A site by name, in the form `room.call`: `"queue.take"`.
    pub const fn new(name: &'static str) -> Self {
        Site { name, object: 0 }
    }

    /// The same site, at this object.
    pub fn on<T: ?Sized>(self, object: &T) -> Self {
        Site {
            object: core::ptr::from_ref(object).cast::<()>().addr(),
            ..self
        }
    }

    /// The name of the site.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The address of the object it is about, 0 if none was given.
    pub fn object(&self) -> usize {
        self.object
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object {
            0 => f.write_str(self.name),
            object => write!(f, "{} of {object:#x}", self.name),
        }
    }
}

/// The current strand, ready to wait.
///
/// Get it once per wait, hand out its [`waker`](Strand::waker), and park in a loop around the condition:
///
/// ```
/// use millpond_raw::park::{self, Site};
/// use millpond_raw::sync::{atomic::{AtomicBool, Ordering}, thread};
/// use std::sync::Arc;
///
/// let ready = Arc::new(AtomicBool::new(false));
/// let here = park::current();
///
/// let (signal, waker) = (Arc::clone(&ready), here.waker());
/// let other = thread::spawn(move || {
///     signal.store(true, Ordering::Release);
///     waker.wake();
/// });
///
/// while !ready.load(Ordering::Acquire) {
///     here.park(Site::new("example.wait"));
/// }
/// other.join().unwrap();
/// ```
#[derive(Debug)]
pub struct Strand {
    block: Arc<dyn Block>,
    // A strand parks only itself.
    _stays_here: PhantomData<*const ()>,
}

/// The current strand.
pub fn current() -> Strand {
    Strand {
        block: block::current(),
        _stays_here: PhantomData,
    }
}

/// The current thread, whatever block is installed: for a wait that must work where the block has failed.
/// Tokens for other strands of this thread do not reach it.
pub(crate) fn bare_thread() -> Strand {
    Strand {
        block: Arc::new(ThreadBlock::new()),
        _stays_here: PhantomData,
    }
}

impl Strand {
    /// A waker that ends this strand's park. Any thread may call it, any number of times, at any time.
    pub fn waker(&self) -> Waker {
        Arc::clone(&self.block).waker()
    }

    /// Waits for a token. May return spuriously.
    pub fn park(&self, site: Site) {
        let _ = self.wait(site, None);
    }

    /// Waits for a token until `deadline`. May return spuriously. `TimedOut` means that the deadline has
    /// passed and no token was taken.
    pub fn park_until(&self, site: Site, deadline: Instant) -> Woken {
        self.wait(site, Some(deadline))
    }

    fn wait(&self, site: Site, deadline: Option<Instant>) -> Woken {
        user_code::check(Kind::Wait);
        let _recorded = probe::record(site, deadline.is_some());
        self.block.park(deadline)
    }
}
