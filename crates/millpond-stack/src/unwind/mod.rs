//! Unwinding a copied stack.
//!
//! | file | what |
//! |---|---|
//! | `modules` | the unwind tables of what is loaded |
//! | `symbols` | from an address to functions and lines |

mod modules;
mod symbols;

use crate::Stack;
use framehop::Unwinder as _;
use framehop::{CacheNative, MayAllocateDuringUnwind, UnwindRegsNative, UnwinderNative};
use millpond_raw::stack::{Registers, StackSnapshot};

/// A stack with more frames is a runaway recursion, of which a thousand frames tell enough, or was
/// unwound wrongly.
const MAX_FRAMES: usize = 1_000;

/// The unwind tables of the program and its libraries; made once for all stacks of a capture.
pub(crate) struct Unwinder {
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Unwinder {
    pub(crate) fn new() -> Self {
        let mut unwinder = UnwinderNative::new();
        for module in modules::loaded() {
            unwinder.add_module(module);
        }
        Unwinder {
            unwinder,
            cache: CacheNative::new(),
        }
    }

    pub(crate) fn unwind(&mut self, snapshot: &StackSnapshot) -> Stack {
        let registers = snapshot.registers();
        let mut read = |address| snapshot.word_at(address).ok_or(());
        let mut addresses = self.unwinder.iter_frames(
            registers.instruction,
            native(registers),
            &mut self.cache,
            &mut read,
        );
        let mut frames = Vec::new();
        let is_truncated = loop {
            match addresses.next() {
                Ok(None) => break false,
                Err(_) => break true,
                Ok(Some(_)) if frames.len() >= MAX_FRAMES => break true,
                Ok(Some(at)) => {
                    symbols::frames_at(at.address_for_lookup(), at.address(), &mut frames);
                }
            }
        };
        Stack::new(frames, is_truncated)
    }
}

#[cfg(target_arch = "x86_64")]
fn native(registers: Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.instruction, registers.stack, registers.frame)
}

#[cfg(target_arch = "aarch64")]
fn native(registers: Registers) -> UnwindRegsNative {
    // Return addresses may be signed in their upper bits, above those of any address of a program.
    const ADDRESS: u64 = (1 << 48) - 1;
    UnwindRegsNative::new_with_ptr_auth_mask(
        framehop::aarch64::PtrAuthMask(ADDRESS),
        registers.link,
        registers.stack,
        registers.frame,
    )
}
