//! Parallel loops: results, order, early exit, panics, interruption.

use crate::pool;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::parallel;
use millpond::interrupt::Interrupted;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const LENGTHS: [usize; 8] = [0, 1, 2, 3, 100, 1_023, 10_000, 50_001];

/// Runs the test in pools of several sizes, and outside of any.
fn everywhere(test: impl Fn() + Sync) {
    for parallelism in [1, 2, 3, 8] {
        pool(parallelism).install(&test);
    }
    test();
}

/// Something that takes a moment, so that other workers get their share.
fn grind(n: u64) -> u64 {
    (0..50).fold(n, |n, _| {
        n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)
    })
}

#[test]
fn results_are_those_of_the_sequential_loop_for_every_length() {
    everywhere(|| {
        for len in LENGTHS {
            let items: Vec<u64> = (0..len as u64).collect();
            let sum: u64 = items.iter().sum();
            assert_eq!(parallel::over(&items).sum::<u64>(), sum);
            assert_eq!(parallel::over(0..len as u64).sum::<u64>(), sum);
            assert_eq!(parallel::over(items.clone()).sum::<u64>(), sum);
            let max = parallel::over(&items).map(|n| *n).reduce(|| 0, u64::max);
            assert_eq!(max, items.iter().copied().max().unwrap_or(0));
            let even = parallel::over(&items).filter(|n| **n % 2 == 0).count();
            assert_eq!(even, len.div_ceil(2));
            let longest = parallel::over(&items).max_by(|a, b| (*a % 7).cmp(&(*b % 7)));
            assert_eq!(longest, items.iter().max_by_key(|n| **n % 7));
            let shortest = parallel::over(&items).min_by(|a, b| (*a % 7).cmp(&(*b % 7)));
            assert_eq!(shortest, items.iter().min_by_key(|n| **n % 7));
        }
    });
}

#[test]
fn what_is_collected_or_folded_is_in_order() {
    everywhere(|| {
        for len in LENGTHS {
            let items: Vec<u64> = (0..len as u64).collect();
            let expected: Vec<u64> = items.iter().map(|n| grind(*n)).collect();
            assert_eq!(
                parallel::over(&items).map(|n| grind(*n)).collect(),
                expected
            );
            assert_eq!(parallel::over(items.clone()).map(grind).collect(), expected);
            let odd = parallel::over(&items).filter(|n| grind(**n) % 3 == 1);
            let expected: Vec<&u64> = items.iter().filter(|n| grind(**n) % 3 == 1).collect();
            assert_eq!(odd.collect(), expected);
            let push = |mut all: Vec<u64>, n: &u64| {
                all.push(*n);
                all
            };
            let folded =
                parallel::over(&items).fold(Vec::new, push, |left, right| [left, right].concat());
            assert_eq!(folded, items);
        }
    });
}

#[test]
fn items_can_be_changed_in_place_each_once() {
    everywhere(|| {
        for len in LENGTHS {
            let mut items: Vec<u64> = (0..len as u64).collect();
            parallel::over(&mut items).for_each(|n| *n += grind(*n) % 5 + 1);
            let expected: Vec<u64> = (0..len as u64).map(|n| n + grind(n) % 5 + 1).collect();
            assert_eq!(items, expected);
        }
    });
}

#[test]
fn chunks_are_those_of_the_standard_library() {
    everywhere(|| {
        for (len, size) in [
            (0, 3),
            (1, 3),
            (3, 3),
            (10, 3),
            (10_000, 7),
            (100, usize::MAX),
        ] {
            let mut items: Vec<usize> = (0..len).collect();
            let expected: Vec<Vec<usize>> = items.chunks(size).map(<[_]>::to_vec).collect();
            assert_eq!(
                parallel::chunks(&items, size).map(<[_]>::to_vec).collect(),
                expected
            );
            parallel::chunks_mut(&mut items, size).for_each(|chunk| chunk.reverse());
            let expected: Vec<usize> = expected
                .iter()
                .flat_map(|chunk| chunk.iter().rev())
                .copied()
                .collect();
            assert_eq!(items, expected);
        }
    });
    let caught = catch_unwind(|| parallel::chunks(&[1], 0).count());
    assert!(caught.is_err(), "chunks of nothing have no end");
}

#[test]
fn ranges_go_to_the_limits_of_their_integers() {
    assert_eq!(parallel::over(0..=u8::MAX).count(), 256);
    assert_eq!(
        parallel::over(i8::MIN..=i8::MAX)
            .map(i64::from)
            .sum::<i64>(),
        -128
    );
    assert_eq!(
        parallel::over(u64::MAX - 2..=u64::MAX).collect(),
        [u64::MAX - 2, u64::MAX - 1, u64::MAX]
    );
    assert_eq!(
        parallel::over(i64::MAX - 1..i64::MAX).collect(),
        [i64::MAX - 1]
    );
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    let empty = (parallel::over(7..3).count(), parallel::over(7..=6).count());
    assert_eq!(empty, (0, 0));
    let mut used_up = 1..=3;
    used_up.by_ref().for_each(drop);
    assert_eq!(parallel::over(used_up).count(), 0);
}

#[test]
fn a_long_loop_runs_on_all_free_workers() {
    let pool = pool(2);
    let threads = Mutex::new(BTreeSet::new());
    // Until it has happened: a worker may come late.
    while threads.lock().unwrap().len() < 2 {
        pool.install(|| {
            parallel::over(0..100_000_u64).for_each(|n| {
                std::hint::black_box(grind(n));
                if n % 1_000 == 0 {
                    let name = std::thread::current().name().map(String::from);
                    threads.lock().unwrap().insert(name);
                }
            });
        });
    }
}

#[test]
fn init_is_called_once_for_a_part_and_not_for_each_item() {
    let pool = pool(2);
    let inits = AtomicUsize::new(0);
    let init = || {
        inits.fetch_add(1, Ordering::Relaxed);
        Vec::with_capacity(1)
    };
    let use_buffer = |buffer: &mut Vec<u64>, n: u64| {
        buffer.clear();
        buffer.push(n);
        buffer[0]
    };
    let sum: u64 = pool.install(|| {
        parallel::over(0..100_000_u64)
            .map_init(init, use_buffer)
            .sum()
    });
    assert_eq!(sum, 4_999_950_000);
    let inits = inits.into_inner();
    assert!((1..1_000).contains(&inits), "{inits} parts");
}

#[test]
fn a_search_finds_what_is_there_and_ends_early() {
    everywhere(|| {
        for wanted in [0, 1, 999, 99_999] {
            let found = parallel::over(0..100_000_u64).find_any(|n| *n == wanted);
            assert_eq!(found, Some(wanted));
        }
        assert_eq!(
            parallel::over(0..100_000_u64).find_any(|n| *n == 100_000),
            None
        );
        let looked = AtomicUsize::new(0);
        let found = parallel::over(0..u64::from(u32::MAX)).find_any(|_| {
            looked.fetch_add(1, Ordering::Relaxed);
            true
        });
        assert!(found.is_some());
        assert!(
            looked.into_inner() < 1_000_000,
            "it did not look at all of them"
        );
    });
}

#[test]
fn a_panic_ends_the_loop_early_and_crosses_to_the_caller() {
    everywhere(|| {
        let ran = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            parallel::over(0..u64::from(u32::MAX)).for_each(|n| {
                ran.fetch_add(1, Ordering::Relaxed);
                if n == 100 {
                    panic_any("the dam broke");
                }
            });
        }));
        assert_eq!(
            *caught.unwrap_err().downcast::<&str>().unwrap(),
            "the dam broke"
        );
        assert!(ran.into_inner() < 1_000_000_000, "the rest was not begun");
    });
}

#[test]
fn a_panic_in_one_part_stops_a_part_that_another_worker_runs() {
    const HALF: u64 = 1 << 31;
    let pool = pool(2);
    for is_left_to_panic in [true, false] {
        let (ran, other) = (AtomicUsize::new(0), AtomicBool::new(false));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| {
                parallel::over(0..2 * HALF).for_each(|n| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    if (n < HALF) != is_left_to_panic {
                        other.store(true, Ordering::Relaxed);
                    } else if other.load(Ordering::Relaxed) {
                        panic_any("the dam broke");
                    }
                });
            });
        }));
        assert!(caught.is_err());
        let ran = ran.into_inner() as u64;
        assert!(
            ran < HALF / 2,
            "the other part was stopped, not run to its end"
        );
    }
}

#[test]
fn items_that_a_panic_leaves_over_are_dropped_each_once() {
    struct Counted<'a>(&'a AtomicUsize);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    everywhere(|| {
        let dropped = AtomicUsize::new(0);
        let items: Vec<_> = (0..10_000).map(|n| (n, Counted(&dropped))).collect();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let kept = parallel::over(items).map(|(n, item)| {
                assert_ne!(grind(n), grind(5_000), "the dam broke");
                item
            });
            kept.collect().len()
        }));
        assert!(caught.is_err());
        assert_eq!(dropped.into_inner(), 10_000);
    });
}

#[test]
fn the_first_error_ends_the_loop() {
    #[derive(Debug, PartialEq)]
    enum Failure {
        Odd(u64),
        Interrupted,
    }

    impl From<Interrupted> for Failure {
        fn from(_: Interrupted) -> Self {
            Failure::Interrupted
        }
    }

    everywhere(|| {
        assert_eq!(
            parallel::over(0..1_000_u64).try_for_each(|_| Ok::<_, Failure>(())),
            Ok(())
        );
        let is_even = |n: u64| {
            if n == 4_001 {
                Err(Failure::Odd(n))
            } else {
                Ok(())
            }
        };
        let failed = parallel::over(0..u64::from(u32::MAX)).try_for_each(is_even);
        assert_eq!(failed, Err(Failure::Odd(4_001)));
    });
}

#[test]
fn an_interrupt_of_the_calling_task_ends_a_loop_in_all_its_parts() {
    for parallelism in [1, 2] {
        let pool = pool(parallelism);
        let began = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&began);
        let handle = pool.submit(move || {
            // Years, if it is not interrupted.
            let done = parallel::over(0..u64::MAX / 2).try_for_each(|_| {
                tell.store(true, Ordering::Relaxed);
                Ok::<_, Interrupted>(())
            });
            assert_eq!(done, Err(Interrupted));
        });
        let handle = handle.unwrap();
        while !began.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        assert!(handle.interrupt());
        pool.close().unwrap();
    }
}

#[test]
fn loops_inside_of_loops() {
    everywhere(|| {
        let sums = parallel::over(0..50_u64).map(|n| {
            parallel::over(0..n * 100)
                .map(grind)
                .reduce(|| 0, u64::wrapping_add)
        });
        let expected: Vec<u64> = (0..50)
            .map(|n| (0..n * 100).map(grind).fold(0, u64::wrapping_add))
            .collect();
        assert_eq!(sums.collect(), expected);
    });
}
