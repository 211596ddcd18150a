//! The walk up a copied stack.

use super::{Stack, modules, names};
use framehop::{CacheNative, MayAllocateDuringUnwind, Unwinder, UnwinderNative};
use millpond_raw::stack::{Picture, Registers};

/// A stack with more calls than that has lost its way, or is a recursion of which the first thousand
/// tell enough.
const MOST: usize = 1_000;

/// What a walk needs to know of the program; made once for all stacks of a capture.
pub(super) struct Walker {
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Walker {
    pub(super) fn new() -> Self {
        let mut unwinder = UnwinderNative::new();
        for module in modules::loaded() {
            unwinder.add_module(module);
        }
        Walker {
            unwinder,
            cache: CacheNative::new(),
        }
    }

    pub(super) fn walk(&mut self, picture: &Picture) -> Stack {
        let registers = picture.registers();
        let mut read = |address| picture.word_at(address).ok_or(());
        let mut steps = self.unwinder.iter_frames(
            registers.instruction,
            starting_from(registers),
            &mut self.cache,
            &mut read,
        );
        let mut frames = Vec::new();
        let is_truncated = loop {
            match steps.next() {
                Ok(None) => break false,
                Err(_) => break true,
                Ok(Some(_)) if frames.len() >= MOST => break true,
                Ok(Some(at)) => {
                    names::frames_at(at.address_for_lookup(), at.address(), &mut frames);
                }
            }
        };
        Stack::new(frames, is_truncated)
    }
}

#[cfg(target_arch = "x86_64")]
fn starting_from(registers: Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.instruction, registers.stack, registers.frame)
}

#[cfg(target_arch = "aarch64")]
fn starting_from(registers: Registers) -> framehop::UnwindRegsNative {
    // Return addresses may be signed in their upper bits, above those of any address of a program.
    const ADDRESS: u64 = (1 << 48) - 1;
    framehop::UnwindRegsNative::new_with_ptr_auth_mask(
        framehop::aarch64::PtrAuthMask(ADDRESS),
        registers.link,
        registers.stack,
        registers.frame,
    )
}
