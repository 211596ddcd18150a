//! What a worker runs while it waits, and what it leaves to others.

use crate::{TIMEOUT, fib, until};
use millpond::executor::ExecutorExt;
use millpond::forkjoin::{self, ForkJoinPool, HelpPolicy};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

thread_local! {
    static HOLDS_LOCK: Cell<bool> = const { Cell::new(false) };
}

/// A pool whose waiting workers are not replaced.
fn without_spares(parallelism: usize) -> ForkJoinPool {
    let builder = ForkJoinPool::builder("mill").parallelism(parallelism);
    builder.max_spares(0).build().unwrap()
}

/// Runs `f` on a thread of its own. Fails if that hangs.
#[track_caller]
pub(crate) fn within<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || _ = tell.send(f()));
    told.recv_timeout(TIMEOUT).expect("it hangs, or panicked")
}

/// In a scope, joins under a lock while another worker has the other side; that side ends when this worker sleeps, or when
/// the stranger has run, which `spawn_here` or else the other side spawns in the scope. Returns whether the stranger met
/// the lock on the stack of its holder.
fn meets_its_holder(spawn_here: bool) -> bool {
    let pool = without_spares(2);
    let (is_taken, has_run, met) = Default::default();
    let (is_taken, has_run, met): (&AtomicBool, &AtomicBool, &AtomicBool) =
        (&is_taken, &has_run, &met);
    pool.scope(|scope| {
        let spawn = || {
            scope.spawn(|_| {
                met.store(HOLDS_LOCK.get(), Ordering::Relaxed);
                has_run.store(true, Ordering::Release);
            });
        };
        HOLDS_LOCK.set(true);
        forkjoin::join(
            || {
                until(|| is_taken.load(Ordering::Acquire));
                if spawn_here {
                    spawn();
                }
            },
            || {
                is_taken.store(true, Ordering::Release);
                if !spawn_here {
                    spawn();
                }
                until(|| pool.snapshot().joining == 1 || has_run.load(Ordering::Acquire));
            },
        );
        HOLDS_LOCK.set(false);
    });
    assert!(has_run.load(Ordering::Acquire));
    met.load(Ordering::Relaxed)
}

#[test]
fn a_join_under_a_lock_does_not_run_a_job_that_was_spawned_inside_of_it_in_an_outer_scope() {
    for _ in 0..20 {
        assert!(!meets_its_holder(true));
    }
}

#[test]
fn nor_does_it_take_such_a_job_from_the_worker_that_runs_the_other_side() {
    for _ in 0..20 {
        assert!(!meets_its_holder(false));
    }
}

#[test]
fn a_worker_that_leapfrogs_runs_what_it_has_spawned_in_a_scope_of_the_job_that_it_waits_for() {
    let count = within(|| {
        let pool = without_spares(2);
        let (is_taken, has_begun) = (AtomicBool::new(false), AtomicBool::new(false));
        let count = AtomicUsize::new(0);
        pool.join(
            || until(|| is_taken.load(Ordering::Acquire)),
            || {
                is_taken.store(true, Ordering::Release);
                forkjoin::scope(|scope| {
                    // The other worker takes this one, and has the next one in its own deque, out of the owner's reach.
                    scope.spawn(|scope| {
                        has_begun.store(true, Ordering::Release);
                        scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
                    });
                    until(|| has_begun.load(Ordering::Acquire));
                });
            },
        );
        count.into_inner()
    });
    assert_eq!(count, 1);
}

#[test]
fn stress_joins_and_scopes_that_spawn_outwards_end_without_spares() {
    within(|| {
        for parallelism in [1, 2, 3] {
            let pool = without_spares(parallelism);
            for _ in 0..200 {
                let count = AtomicUsize::new(0);
                let bump = || _ = count.fetch_add(fib(4) as usize, Ordering::Relaxed);
                pool.scope(|outer| {
                    for _ in 0..4 {
                        outer.spawn(|outer| {
                            forkjoin::join(
                                || outer.spawn(|_| bump()),
                                || {
                                    forkjoin::scope(|inner| {
                                        inner.spawn(|inner| {
                                            outer.spawn(|_| bump());
                                            inner.spawn(|_| _ = forkjoin::join(bump, bump));
                                        });
                                    });
                                },
                            );
                        });
                    }
                });
                assert_eq!(count.into_inner(), 4 * 4 * 3);
            }
        }
    });
}

/// Little stack is left here, on purpose. Under the address sanitizer frames are several times as large.
#[cfg(not(millpond_plain_memory))]
mod little_stack {
    use super::*;
    use millpond::thread::Threads;
    use std::sync::Barrier;

    /// Calls `f` with that much of the stack used up, and a bit more.
    fn deep<R>(bytes: usize, f: &mut dyn FnMut() -> R) -> R {
        const FRAME: usize = 8 << 10;
        let mut frame = [0_u8; FRAME];
        std::hint::black_box(&mut frame);
        let done = if bytes < FRAME {
            f()
        } else {
            deep(bytes - FRAME, f)
        };
        std::hint::black_box(&mut frame);
        done
    }

    /// A pool with stacks of that size.
    fn with_stacks(parallelism: usize, max_spares: usize, stack_size: usize) -> ForkJoinPool {
        let threads = Threads::named("mill").stack_size(stack_size);
        let builder = ForkJoinPool::builder("mill").parallelism(parallelism);
        builder
            .max_spares(max_spares)
            .threads(threads)
            .build()
            .unwrap()
    }

    fn scope_of_one() -> usize {
        let mut ran = 0;
        forkjoin::scope(|scope| scope.spawn(|_| ran += 1));
        ran
    }

    #[test]
    fn a_scope_runs_its_jobs_however_little_stack_is_left() {
        for (size, used) in [(2 << 20, 1920 << 10), (256 << 10, 144 << 10)] {
            for max_spares in [0, 1] {
                let ran = within(move || {
                    let pool = with_stacks(1, max_spares, size);
                    pool.install(|| deep(used, &mut scope_of_one))
                });
                assert_eq!(ran, 1);
            }
        }
    }

    #[test]
    fn scopes_deep_in_the_stacks_of_all_workers_end() {
        let ran = within(|| {
            let pool = with_stacks(2, 0, 2 << 20);
            let both = Barrier::new(2);
            let part = || {
                deep(1920 << 10, &mut || {
                    both.wait();
                    scope_of_one()
                })
            };
            pool.join(part, part)
        });
        assert_eq!(ran, (1, 1));
    }
}

fn helping_any(max_spares: usize) -> ForkJoinPool {
    let builder = ForkJoinPool::builder("mill").parallelism(2);
    let builder = builder.max_spares(max_spares).help(HelpPolicy::Any);
    builder.build().unwrap()
}

/// Joins, and the side that another worker has taken runs `other`. Says when that has begun.
fn join_with_other(begun: &AtomicBool, other: impl FnOnce() + Send) {
    forkjoin::join(
        || until(|| begun.load(Ordering::Acquire)),
        || {
            begun.store(true, Ordering::Release);
            other();
        },
    );
}

#[test]
fn a_worker_that_may_run_anything_runs_its_own_queued_job_while_it_waits() {
    let pool = helping_any(0);
    let (begun, has_run) = (AtomicBool::new(false), AtomicBool::new(false));
    pool.scope(|scope| {
        forkjoin::join(
            || {
                until(|| begun.load(Ordering::Acquire));
                scope.spawn(|_| has_run.store(true, Ordering::Release));
            },
            || {
                begun.store(true, Ordering::Release);
                // Both workers are here: only the one that waits can run the job.
                until(|| has_run.load(Ordering::Acquire));
            },
        );
    });
}

#[test]
fn what_comes_when_a_worker_that_may_run_anything_sleeps_is_run_by_a_spare() {
    let pool = helping_any(1);
    let (begun, open) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            pool.install(|| join_with_other(&begun, || until(|| open.load(Ordering::Acquire))));
        });
        until(|| pool.snapshot().joining == 1);
        let task = pool.submit(|| 7).unwrap();
        assert_eq!(task.join().unwrap(), 7);
        open.store(true, Ordering::Release);
    });
}
