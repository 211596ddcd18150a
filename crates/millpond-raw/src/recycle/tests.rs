use super::*;
use std::sync::Arc;

#[test]
fn what_is_put_in_is_there_until_the_box_drops() {
    let probe = Arc::new(());
    let mut sack = Recycled::new((7, Arc::clone(&probe)));
    sack.0 += 1;
    assert_eq!(sack.0, 8);
    assert_eq!(format!("{sack:?}"), "(8, ())");
    let copy = sack.clone();
    assert_eq!(Arc::strong_count(&probe), 3);
    drop((sack, copy));
    assert_eq!(Arc::strong_count(&probe), 1);
}

/// A multiple of a batch, and more than a magazine holds.
const COUNT: usize = 192;

/// The addresses of some boxes of one type while all of them live.
fn addresses<T: Default>() -> Vec<usize> {
    let boxes: Vec<_> = (0..COUNT).map(|_| Recycled::new(T::default())).collect();
    let address = |place: &T| core::ptr::from_ref(place).addr();
    boxes.iter().map(|one| address(one)).collect()
}

fn are_aligned_and_apart<T: Default>() {
    // Repeated, so that most of them are in recycled memory.
    for _ in 0..5 {
        let mut found = addresses::<T>();
        found.sort_unstable();
        assert!(found.iter().all(|address| address % align_of::<T>() == 0));
        assert!(
            found
                .windows(2)
                .all(|two| two[1] - two[0] >= size_of::<T>().max(1))
        );
    }
}

#[derive(Default)]
#[repr(align(64))]
struct OnLines(#[allow(dead_code, reason = "it takes room")] [u8; 32]);

#[test]
fn boxes_of_every_size_are_aligned_and_do_not_overlap() {
    are_aligned_and_apart::<()>();
    are_aligned_and_apart::<u8>();
    are_aligned_and_apart::<u128>();
    are_aligned_and_apart::<[u64; 8]>();
    are_aligned_and_apart::<([u64; 8], u8)>();
    are_aligned_and_apart::<[u64; 16]>();
    are_aligned_and_apart::<[[u64; 16]; 2]>();
    are_aligned_and_apart::<([[u64; 16]; 2], u8)>();
    are_aligned_and_apart::<OnLines>();
}

#[test]
fn a_destructor_that_panics_does_not_keep_the_memory() {
    struct Grenade(#[allow(dead_code, reason = "it takes room")] [u64; 32]);
    impl Drop for Grenade {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(()));
        }
    }
    let place = |one: &Recycled<Grenade>| core::ptr::from_ref::<Grenade>(one).addr();
    let first = Recycled::new(Grenade([0; 32]));
    let was = place(&first);
    crate::catch_panic::drop(first);
    let next = Recycled::new(Grenade([0; 32]));
    let reused = place(&next) == was;
    crate::catch_panic::drop(next);
    assert!(reused || cfg!(millpond_plain_memory));
}

/// A write through a stale pointer. The magazine is a stack, so the next box gets this very object and finds
/// out.
#[cfg(all(
    target_os = "linux",
    debug_assertions,
    not(any(millpond_plain_memory, millpond_tsan))
))]
#[test]
fn memory_that_is_written_to_after_it_was_freed_ends_the_process_when_it_is_had_again() {
    use crate::fork::{Child, run_in_child};
    for (word, ends) in [(None, 7), (Some(0), -1), (Some(19), -1)] {
        let child = run_in_child(30, || {
            let place = Recycled::new([0_u64; 20]).into_raw();
            // SAFETY: RECYCLE-5 - from `into_raw`, once.
            drop(unsafe { Recycled::from_raw(place) });
            if let Some(word) = word {
                // SAFETY: RECYCLE-3 - it is memory, because a slab lives as long as this thread's magazines
                // hold objects of it; that RECYCLE-4 is broken is the point of this test.
                let word = unsafe { place.cast::<u64>().add(word) };
                // SAFETY: RECYCLE-3 - as above.
                unsafe { word.write(7) };
            }
            let again = Recycled::new([7_u64; 20]);
            again[0] as i32
        });
        let ended = match ends {
            -1 => Child::Killed(libc::SIGABRT),
            code => Child::Exited(code),
        };
        assert_eq!(child.unwrap(), ended, "{word:?}");
    }
}

/// Objects that move between threads. All of these tests use one class, which no other test of this crate
/// uses, and run one at a time.
#[cfg(not(millpond_plain_memory))]
mod going_round {
    use super::super::depot::BATCH;
    use super::super::object::SizeClass;
    use super::super::thread_cache::idle;
    use super::*;
    use crate::sync::{Mutex, local, thread};
    use core::cell::RefCell;

    type Odd = [u64; 20];

    static ALONE: Mutex<()> = Mutex::new(());

    fn in_depot() -> usize {
        idle(SizeClass::of(Layout::new::<Odd>()).unwrap())
    }

    fn boxes(count: usize) -> Vec<Recycled<Odd>> {
        (0..count).map(|_| Recycled::new([0; 20])).collect()
    }

    #[test]
    fn a_thread_that_ends_leaves_its_objects_to_the_others() {
        let _alone = ALONE.lock();
        let there = thread::spawn(addresses::<Odd>).join().unwrap();
        assert!(in_depot() >= there.len());
        let here = thread::spawn(addresses::<Odd>).join().unwrap();
        assert!(here.iter().all(|address| there.contains(address)));
    }

    #[test]
    fn objects_go_to_and_from_the_depot_by_batches() {
        let _alone = ALONE.lock();
        thread::spawn(|| drop(boxes(10 * BATCH))).join().unwrap();
        let (made_here, all) = thread::spawn(|| (boxes(3), in_depot())).join().unwrap();
        thread::spawn(move || {
            let all = all + BATCH - 3;
            assert_eq!(in_depot(), all, "the rest of the maker's batch is back");
            let mut held = boxes(1);
            assert_eq!(in_depot(), all - BATCH, "the first takes a batch");
            held.extend(boxes(BATCH - 1));
            assert_eq!(in_depot(), all - BATCH, "which serves a whole batch");
            held.extend(boxes(1));
            assert_eq!(in_depot(), all - 2 * BATCH);
            drop(held);
            assert_eq!(in_depot(), all - 2 * BATCH, "a magazine holds two batches");
            drop(made_here);
            assert_eq!(in_depot(), all - BATCH, "and returns one for the third");
        })
        .join()
        .unwrap();
    }

    /// It makes and drops boxes during its thread's teardown.
    struct Late(Vec<Recycled<Odd>>);

    impl Drop for Late {
        fn drop(&mut self) {
            self.0.truncate(10);
            self.0
                .extend((0..200).map(|number| Recycled::new([number; 20])));
            let (mut sum, count) = (0, self.0.len());
            for one in self.0.drain(..) {
                assert!(one.iter().all(|number| *number == one[0]));
                sum += one[0];
            }
            assert_eq!((sum, count), (199 * 200 / 2, 210));
        }
    }

    local! {
        static LATE: RefCell<Late> = RefCell::new(Late(Vec::new()));
    }

    #[test]
    fn a_thread_that_is_torn_down_makes_and_drops_boxes_and_loses_none() {
        let _alone = ALONE.lock();
        let fill = |late: &RefCell<Late>| late.borrow_mut().0.extend(boxes(20));
        // Thread-local values are dropped in the order of their creation, or in reverse: so the magazines are
        // gone in one of these threads, and in the other they are not.
        let ends = [
            thread::spawn(move || LATE.with(fill)),
            thread::spawn(move || {
                drop(boxes(1));
                LATE.with(fill);
            }),
        ];
        for thread in ends {
            thread.join().unwrap();
        }
        let after_two = in_depot();
        for _ in 0..3 {
            thread::spawn(move || LATE.with(fill)).join().unwrap();
            thread::spawn(move || drop((boxes(1), LATE.with(fill))))
                .join()
                .unwrap();
            assert_eq!(in_depot(), after_two);
        }
    }
}
