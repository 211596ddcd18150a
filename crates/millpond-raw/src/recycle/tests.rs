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

/// A multiple of what goes to and from a depot at a time, and more than a rack holds.
const COUNT: usize = 192;

/// Where some boxes of one kind are while all of them live.
fn addresses<T: Default>() -> Vec<usize> {
    let boxes: Vec<_> = (0..COUNT).map(|_| Recycled::new(T::default())).collect();
    let address = |place: &T| core::ptr::from_ref(place).addr();
    boxes.iter().map(|one| address(one)).collect()
}

fn are_aligned_and_apart<T: Default>() {
    // Again and again, so that most of them are in memory that was used before.
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
    crate::quiet::drop(first);
    let next = Recycled::new(Grenade([0; 32]));
    let reused = place(&next) == was;
    crate::quiet::drop(next);
    assert!(reused || cfg!(millpond_plain_memory));
}

#[test]
#[cfg(not(millpond_plain_memory))]
fn a_thread_that_ends_leaves_its_slabs_to_the_others() {
    use crate::sync::thread;

    // No other test of this crate has boxes of this size, so what is in their depot is ours.
    type Odd = [u64; 20];
    const SIZE: usize = 192;
    let there = thread::spawn(addresses::<Odd>).join().unwrap();
    assert!(kept() >= there.len() * SIZE);
    let here = thread::spawn(addresses::<Odd>).join().unwrap();
    assert!(here.iter().all(|address| there.contains(address)));
}

#[test]
#[cfg(not(millpond_plain_memory))]
fn boxes_can_be_made_and_dropped_while_a_thread_is_torn_down() {
    use crate::sync::{local, thread};
    use core::cell::RefCell;

    /// It makes and drops boxes when its thread ends, after its racks or before.
    struct Late(Vec<Recycled<[u64; 30]>>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.truncate(10);
            self.0
                .extend((0..200).map(|number| Recycled::new([number; 30])));
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
    let fill = |late: &RefCell<Late>| {
        let boxes = (0..20).map(|_| Recycled::new([0; 30]));
        late.borrow_mut().0.extend(boxes);
    };
    // Thread-local values go in the order in which they were made, or the other way round.
    let first = thread::spawn(move || LATE.with(fill));
    let second = thread::spawn(move || {
        drop(Recycled::new([0_u64; 30]));
        LATE.with(fill);
    });
    first.join().unwrap();
    second.join().unwrap();
}
