//! A stack, and the calls it is made of.

/// The calls that a thread was in at one moment, the innermost first.
///
/// `{}` prints what the thread was about: what the runtime has put below it, the worker's loop and
/// the thread's start, is left out where it can be told for sure. `{:#}` prints everything.
///
/// ```text
///    0  syscall
///    1  millpond_raw::sync::futex::linux::wait    millpond-raw/src/sync/futex/linux.rs:82
///    2  orders::settle                            src/orders.rs:114
///    3  orders::main::{closure#0}                 src/orders.rs:31
///       … and 14 of the runtime
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    frames: Vec<Frame>,
    is_truncated: bool,
}

impl Stack {
    pub(super) fn new(frames: Vec<Frame>, is_truncated: bool) -> Self {
        Stack {
            frames,
            is_truncated,
        }
    }

    /// All calls, those of the runtime included, the innermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Whether the outermost calls are missing: the stack is deeper than what is copied, or it led
    /// through code that has no tables to walk by.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub(super) function: Option<String>,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    pub(super) address: u64,
    pub(super) is_inlined: bool,
}

impl Frame {
    pub(super) fn nameless(address: u64) -> Self {
        Frame {
            function: None,
            file: None,
            line: None,
            address,
            is_inlined: false,
        }
    }

    /// The function, if its name is known: as written in the source, without the compiler's hash.
    pub fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// The source file, as the compiler was given it, if the program has line tables.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The line in that file: of the call, or, in the innermost frame, of what was about to be done.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Where in memory: the next instruction of this call.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Whether the compiler has put this function into the next one. Both have the same address.
    pub fn is_inlined(&self) -> bool {
        self.is_inlined
    }
}
