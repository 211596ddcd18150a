//! The fields of the word at their limits. The races are in `tests/scenarios`.

use super::*;

const REASON: CancelReason = CancelReason::RanInline;

/// A word with every flag that can be combined, and the largest reason.
fn cancelled(references: u32, generation: u32) -> AtomicState {
    let state = AtomicState::of_generation(references, generation);
    assert!(state.announce_waiter());
    assert_eq!(state.cancel(REASON), Cancelled::Unrun { waiter: true });
    state
}

#[test]
fn the_fields_of_the_word_do_not_overlap_and_leave_no_gap() {
    let flags = [
        CLAIMED,
        DONE,
        PANICKED,
        CANCELLED,
        WAITER,
        TAKEN,
        INLINE,
        ON_OWN_WORKER,
    ];
    let references = u64::from(u32::MAX) << REF_SHIFT;
    let generation = GENERATION_MASK << GENERATION_SHIFT;
    let fields = flags
        .into_iter()
        .chain([REASON_MASK, generation, references]);
    let filled = fields.fold(0, |filled: u64, field| {
        assert_eq!(filled & field, 0, "{field:#x}");
        filled | field
    });
    assert_eq!(filled, u64::MAX);
}

/// More than any field of 32 bits would have had room for beside the flags.
#[test]
fn a_task_has_room_for_two_thousand_million_references_on_every_machine() {
    for many in [1 << 15, 1 << 16, 1 << 24, (1 << 31) - 3] {
        let state = cancelled(many, u32::MAX);
        state.retain();
        state.retain();
        let seen = state.read();
        assert_eq!(seen.references(), u64::from(many) + 2);
        assert_eq!(seen.cancelled(), Some(REASON));
        assert!(!seen.differs_from(u32::MAX) && seen.has_waiter());
        assert_eq!(state.release(false), Released::Others);
        assert_eq!(state.read().references(), u64::from(many) + 1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_reference_too_many_ends_the_process_and_does_not_wrap() {
    use crate::fork::{Child, run_in_child};
    let child = run_in_child(30, || {
        cancelled((1 << 31) - 1, 0).retain();
        0
    });
    assert_eq!(child.unwrap(), Child::Killed(libc::SIGABRT));
}

#[test]
fn the_last_reference_is_the_last_whatever_else_the_word_holds() {
    let state = cancelled(2, u32::MAX);
    assert_eq!(state.release(true), Released::Others);
    match state.release(false) {
        Released::Last(seen) => assert_eq!(seen.cancelled(), Some(REASON)),
        others => panic!("{others:?}"),
    }
}

/// The generation of a process counts up to 2^32 and may wrap; that of a cell stays what it was.
#[test]
fn a_cell_of_another_process_is_told_apart_at_every_distance_but_a_multiple_of_65536() {
    for born in [0, 1, 255, 256, 65_535, 65_536, u32::MAX] {
        let cell = cancelled(1 << 20, born).read();
        assert!(!cell.differs_from(born));
        for forks in [1, 2, 255, 256, 257, 1 << 15, 65_535, 65_537, u32::MAX] {
            let now = born.wrapping_add(forks);
            assert!(cell.differs_from(now), "{born} after {forks} forks");
        }
        let limit = born.wrapping_add(65_536);
        assert!(!cell.differs_from(limit), "as the header says");
    }
}
