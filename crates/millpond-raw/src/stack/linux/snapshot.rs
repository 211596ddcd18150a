//! A snapshot of a thread: its registers, and its stack from the stack pointer upwards.

use super::arch;
use crate::stack::Registers;
use core::fmt;
use core::ops::Range;

/// At most this much of a stack is copied: 64 KiB, hundreds of frames of usual size.
const WORDS: usize = 64 * 1024 / WORD;
const WORD: usize = size_of::<u64>();

/// The registers of a thread and a copy of its stack, at one moment.
pub struct StackSnapshot {
    registers: Registers,
    /// The address of the first word.
    start: u64,
    /// Filled from the front.
    words: Box<[u64]>,
    filled: usize,
    is_whole: bool,
}

impl StackSnapshot {
    /// An empty snapshot, with all the memory it will need.
    pub(super) fn empty() -> Self {
        StackSnapshot {
            registers: Registers::default(),
            start: 0,
            words: vec![0; WORDS].into_boxed_slice(),
            filled: 0,
            is_whole: false,
        }
    }

    /// Copies registers and stack of the calling thread, from its signal handler. `stack` is the thread's own
    /// stack; if the thread was interrupted on another one (a signal stack), only the registers are copied.
    ///
    /// It runs in the handler: nothing here allocates or can panic (STACK-4).
    pub(super) fn fill(&mut self, context: &libc::ucontext_t, stack: &Range<u64>) {
        self.registers = arch::registers(context);
        self.start = self.registers.stack & !(WORD as u64 - 1);
        self.filled = 0;
        self.is_whole = false;
        if !stack.contains(&self.start) {
            return;
        }
        let available = (stack.end - self.start) as usize / WORD;
        let words = available.min(self.words.len());
        let from = core::ptr::with_exposed_provenance::<u64>(self.start as usize);
        // SAFETY: STACK-5 - the words from the stack pointer to the top of the stack; the snapshot has
        // room for them, and lies elsewhere.
        unsafe { arch::copy(from, self.words.as_mut_ptr(), words) };
        self.filled = words;
        self.is_whole = words == available;
    }

    /// The registers.
    pub fn registers(&self) -> Registers {
        self.registers
    }

    /// The word at an address of the stack, if it was copied.
    pub fn word_at(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start)?;
        if offset % WORD as u64 != 0 {
            return None;
        }
        let index = usize::try_from(offset / WORD as u64).ok()?;
        self.words[..self.filled].get(index).copied()
    }

    /// Whether the copy reaches to the top of the stack.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

impl fmt::Debug for StackSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackSnapshot")
            .field("registers", &self.registers)
            .field("words", &self.filled)
            .field("is_whole", &self.is_whole)
            .finish()
    }
}
