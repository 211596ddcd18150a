//! [`Stack`] and [`Frame`].

/// The frames of a thread at one moment, the innermost first.
///
/// `{}` leaves out the outermost frames that belong to the runtime, such as the worker loop and the start
/// of the thread, where they are known for sure. `{:#}` prints all frames.
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
    pub(crate) fn new(frames: Vec<Frame>, is_truncated: bool) -> Self {
        Stack {
            frames,
            is_truncated,
        }
    }

    /// All frames, those of the runtime included, the innermost first.
    ///
    /// ```
    /// use millpond_stack::{DEFAULT_TIMEOUT, ThreadRef, capture};
    ///
    /// for stack in capture(&[ThreadRef::current()], DEFAULT_TIMEOUT).iter().flatten() {
    ///     let functions: Vec<&str> = stack.frames().iter().filter_map(|f| f.function()).collect();
    ///     assert!(!functions.is_empty());
    /// }
    /// ```
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Whether the outermost frames are missing: the stack is deeper than what is copied, or it leads
    /// through code without unwind tables.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}

/// One frame of a [`Stack`]: a call, or a function that was inlined into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) address: u64,
    pub(crate) is_inlined: bool,
}

impl Frame {
    pub(crate) fn nameless(address: u64) -> Self {
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

    /// The line in that file: of the call, or, in the innermost frame, of the next instruction.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// The address of the next instruction of this call.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Whether the compiler has inlined this function into the next frame. Both have the same address.
    pub fn is_inlined(&self) -> bool {
        self.is_inlined
    }
}
