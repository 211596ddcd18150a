//! Scopes: jobs that borrow.

use crate::{fib, pool, until};
use millpond::executor::Lifecycle;
use millpond::forkjoin::{self, ForkJoinPool, ForkScope};
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{io, thread};

/// A factory that has no threads.
#[derive(Debug)]
struct Refuses;

impl ThreadFactory for Refuses {
    fn start(&self, _: Body) -> io::Result<JoinHandle<()>> {
        Err(io::Error::other("none"))
    }
}

#[test]
fn all_jobs_are_over_when_the_scope_ends_also_those_that_jobs_have_spawned() {
    fn tree<'scope>(scope: &'scope ForkScope<'scope, '_>, depth: u32, count: &'scope AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
        if depth > 0 {
            scope.spawn(move |scope| tree(scope, depth - 1, count));
            scope.spawn(move |scope| tree(scope, depth - 1, count));
        }
    }
    for parallelism in [1, 2, 4] {
        let pool = pool(parallelism);
        for _ in 0..50 {
            let count = AtomicUsize::new(0);
            pool.scope(|scope| tree(scope, 8, &count));
            assert_eq!(count.load(Ordering::Relaxed), 511);
        }
    }
}

#[test]
fn scopes_inside_joins_and_joins_inside_scopes() {
    let pool = pool(3);
    for _ in 0..100 {
        let mut out = vec![0; 20];
        pool.scope(|scope| {
            for (index, slot) in out.iter_mut().enumerate() {
                scope.spawn(move |_| {
                    let (left, right) = forkjoin::join(
                        || {
                            let mut inner = 0;
                            forkjoin::scope(|scope| scope.spawn(|_| inner = fib(index as u64)));
                            inner
                        },
                        || fib(5),
                    );
                    *slot = left + right;
                });
            }
        });
        let expected: Vec<_> = (0..20).map(|n| fib(n) + 5).collect();
        assert_eq!(out, expected);
    }
}

#[test]
fn the_panic_of_a_job_comes_when_all_are_over() {
    let pool = pool(2);
    for _ in 0..100 {
        let ran = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                for each in 0..10 {
                    let ran = &ran;
                    scope.spawn(move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        if each % 4 == 1 {
                            panic_any("a job");
                        }
                    });
                }
            });
        }));
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "a job");
        assert_eq!(ran.load(Ordering::Relaxed), 10);
    }
}

#[test]
fn a_job_that_another_thread_spawns_is_run_by_the_owner_of_the_scope_when_its_body_is_over() {
    let pool = pool(2);
    let ran = Mutex::new(None);
    let owner = pool.scope(|scope| {
        thread::scope(|threads| {
            threads.spawn(|| scope.spawn(|_| *ran.lock().unwrap() = Some(thread::current().id())));
        });
        assert_eq!(*ran.lock().unwrap(), None, "not yet");
        thread::current().id()
    });
    assert_eq!(ran.into_inner().unwrap(), Some(owner));
}

#[test]
fn an_owner_that_sleeps_at_the_end_of_its_scope_is_woken_for_a_job_that_another_thread_spawns() {
    let pool = pool(2);
    let (begun, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    pool.scope(|scope| {
        scope.spawn(|scope| {
            begun.store(true, Ordering::Release);
            until(|| pool.snapshot().joining == 1);
            thread::scope(|threads| {
                threads.spawn(|| scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed)));
            });
            // Only the owner can have run it.
            until(|| count.load(Ordering::Relaxed) == 1);
        });
        until(|| begun.load(Ordering::Acquire));
    });
}

fn chain<'scope>(scope: &'scope ForkScope<'scope, '_>, left: u32, count: &'scope AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
    if left > 1 {
        scope.spawn(move |scope| chain(scope, left - 1, count));
    }
}

#[test]
fn in_a_pool_that_was_closed_a_long_chain_of_jobs_needs_no_more_stack_than_one() {
    let pool = pool(1);
    pool.close().unwrap();
    let count = AtomicUsize::new(0);
    pool.scope(|scope| chain(scope, 300_000, &count));
    assert_eq!(count.into_inner(), 300_000);
}

#[test]
fn a_job_that_is_spawned_under_a_lock_does_not_meet_it_where_there_are_no_workers() {
    let refuses = ForkJoinPool::builder("mill").threads(Refuses).build();
    let closed = pool(1);
    closed.close().unwrap();
    for pool in [closed, refuses.unwrap()] {
        let lock = Mutex::new(0);
        pool.scope(|scope| {
            let held = lock.lock().unwrap();
            scope.spawn(|_| *lock.try_lock().unwrap() += 1);
            drop(held);
        });
        assert_eq!(lock.into_inner().unwrap(), 1);
    }
}

#[test]
fn panics_of_jobs_that_were_set_aside_come_when_all_are_over() {
    let pool = pool(1);
    pool.close().unwrap();
    let ran = AtomicUsize::new(0);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|_| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    panic_any("a job");
                });
            }
        });
    }));
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "a job");
    assert_eq!(ran.into_inner(), 3);
}

#[test]
fn a_worker_that_waits_for_a_scope_runs_no_outer_job_that_was_published_late() {
    thread_local! {
        static IS_LOCKED: Cell<bool> = const { Cell::new(false) };
    }
    fn wait_for(flag: &AtomicBool) {
        while !flag.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    }
    let met = AtomicUsize::new(0);
    for _ in 0..50 {
        let pool = pool(4);
        let flags: [AtomicBool; 3] = Default::default();
        let [is_first_taken, is_spawned_taken, is_scope_over] = &flags;
        let compute = || {
            forkjoin::join(
                || {
                    // The job of this join is taken by another worker, so that of the next one stays private.
                    while !is_first_taken.load(Ordering::Acquire) {
                        forkjoin::join(|| (), || ());
                    }
                    let published = pool.snapshot().published;
                    forkjoin::join(
                        || {
                            IS_LOCKED.set(true);
                            forkjoin::scope(|scope| {
                                scope.spawn(|_| {
                                    is_spawned_taken.store(true, Ordering::Release);
                                    _ = fib(16);
                                });
                                wait_for(is_spawned_taken);
                                // Joins publish the oldest private job: the other side of the join around.
                                for _ in 0..20_000 {
                                    forkjoin::join(|| (), || ());
                                    if pool.snapshot().published > published {
                                        break;
                                    }
                                }
                            });
                            IS_LOCKED.set(false);
                            is_scope_over.store(true, Ordering::Release);
                        },
                        || _ = met.fetch_add(usize::from(IS_LOCKED.get()), Ordering::Relaxed),
                    );
                },
                || {
                    is_first_taken.store(true, Ordering::Release);
                    wait_for(is_scope_over);
                },
            )
        };
        pool.install(compute);
    }
    assert_eq!(met.load(Ordering::Relaxed), 0);
}
