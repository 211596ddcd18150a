//! What depends on the architecture: where the registers are, and copying memory without the compiler's
//! knowledge.

use crate::stack::Registers;

/// The registers of the thread that a handler interrupted.
pub(super) fn registers(context: &libc::ucontext_t) -> Registers {
    imp::registers(context)
}

/// Copies `words` words of 8 bytes, by instructions that neither the compiler nor a sanitizer
/// looks into.
///
/// # Safety
///
/// `from` is readable and `to` writable for that length, and they do not overlap.
pub(super) unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: STACK-5 - the caller says so.
    unsafe { imp::copy(from, to, words) }
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use super::Registers;

    pub(super) fn registers(context: &libc::ucontext_t) -> Registers {
        let named = |name: libc::c_int| {
            // The names are small and positive, and the array has room for all of them.
            context.uc_mcontext.gregs[name as usize] as u64
        };
        Registers {
            instruction: named(libc::REG_RIP),
            stack: named(libc::REG_RSP),
            frame: named(libc::REG_RBP),
            link: 0,
        }
    }

    /// # Safety
    ///
    /// As [`super::copy`].
    pub(super) unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
        // SAFETY: STACK-5 - reads and writes what the caller allows; the direction flag is clear in
        // Rust code, and the system clears it for a handler.
        unsafe {
            core::arch::asm!(
                "rep movsq",
                inout("rcx") words => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod imp {
    use super::Registers;

    pub(super) fn registers(context: &libc::ucontext_t) -> Registers {
        let saved = &context.uc_mcontext;
        Registers {
            instruction: saved.pc,
            stack: saved.sp,
            frame: saved.regs[29],
            link: saved.regs[30],
        }
    }

    /// # Safety
    ///
    /// As [`super::copy`].
    pub(super) unsafe fn copy(from: *const u64, to: *mut u64, words: usize) {
        // SAFETY: STACK-5 - reads and writes what the caller allows.
        unsafe {
            core::arch::asm!(
                "cbz {left}, 3f",
                "2:",
                "ldr {word}, [{from}], #8",
                "str {word}, [{to}], #8",
                "subs {left}, {left}, #1",
                "b.ne 2b",
                "3:",
                left = inout(reg) words => _,
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                word = out(reg) _,
                options(nostack),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_copied_and_nothing_beside_them() {
        let from: Vec<u64> = (1..=100).collect();
        for words in [0, 1, 7, 100] {
            let mut to = vec![0_u64; 101];
            // SAFETY: STACK-5 - both are at least that long and distinct.
            unsafe { copy(from.as_ptr(), to.as_mut_ptr(), words) };
            assert_eq!(to[..words], from[..words]);
            assert!(to[words..].iter().all(|&word| word == 0));
        }
    }
}
