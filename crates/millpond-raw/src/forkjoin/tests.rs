//! Unit tests of jobs on one thread and of their panics.

use super::*;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, Ordering};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

/// Publishes everything and runs it in order of age, on the thread itself, when it is waited for.
#[derive(Default)]
struct Alone {
    published: RefCell<Vec<JobRef>>,
    reclaims: bool,
    drops: bool,
}

impl Host for Alone {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn on_demand(&self, local: &Local<'_>) -> u32 {
        self.published.borrow_mut().extend(local.publish_oldest());
        0
    }

    fn reclaim(&self, id: usize) -> Option<JobRef> {
        let mut published = self.published.borrow_mut();
        let at = published.iter().position(|job| job.id() == id)?;
        self.reclaims.then(|| published.remove(at))
    }

    fn wait(&self, _: &Local<'_>, job: &Awaited<'_>) {
        let at = self
            .published
            .borrow()
            .iter()
            .position(|each| each.id() == job.id());
        let job = self
            .published
            .borrow_mut()
            .remove(at.expect("nobody else takes it"));
        if self.drops {
            drop(job);
        } else {
            job.set_runner(7);
            job.run();
        }
    }
}

fn hosts() -> [Alone; 3] {
    [(false, false), (true, false), (false, true)].map(|(reclaims, drops)| Alone {
        reclaims,
        drops,
        ..Alone::default()
    })
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (left, right) = with_current(|here| here.unwrap().join(|| fib(n - 1), || fib(n - 2)));
    left + right
}

fn demanded() -> Demand {
    let demand = Demand::new();
    demand.word().store(1, Ordering::Relaxed);
    demand
}

#[test]
fn published_jobs_come_back_or_are_run_and_give_their_results() {
    for host in hosts() {
        assert_eq!(enter(&demanded(), &host, || fib(12)), 144);
        assert_eq!(enter(&Demand::new(), &host, || fib(12)), 144);
        assert!(host.published.borrow().is_empty());
    }
}

#[test]
fn a_panic_of_either_side_crosses_the_join_and_drops_both_closures_once() {
    for host in hosts() {
        for demand in [demanded(), Demand::new()] {
            for panicking in 1..4_u8 {
                let count = std::sync::Arc::new(());
                let (left, right) = (count.clone(), count.clone());
                let caught = enter(&demand, &host, || {
                    catch_unwind(AssertUnwindSafe(|| {
                        with_current(|here| {
                            here.unwrap().join(
                                move || {
                                    let _left = left;
                                    if panicking & 1 != 0 {
                                        panic_any(1_u8);
                                    }
                                },
                                move || {
                                    let _right = right;
                                    if panicking & 2 != 0 {
                                        panic_any(2_u8);
                                    }
                                },
                            )
                        })
                    }))
                });
                let payload = *caught.unwrap_err().downcast::<u8>().unwrap();
                assert_eq!(payload, if panicking & 1 != 0 { 1 } else { 2 });
                assert_eq!(std::sync::Arc::strong_count(&count), 1);
                assert!(host.published.borrow().is_empty());
            }
        }
    }
}

#[test]
fn the_oldest_job_is_published_first() {
    let host = Alone::default();
    let runs = Mutex::new(Vec::new());
    enter(&Demand::new(), &host, || {
        with_current(|here| {
            let here = here.unwrap();
            here.join(
                || {
                    here.join(
                        || {
                            let oldest = here.publish_oldest().unwrap();
                            let second = here.publish_oldest().unwrap();
                            assert!(here.publish_oldest().is_none() && here.is_empty());
                            oldest.run();
                            assert_eq!(*runs.lock(), ["oldest"]);
                            host.published.borrow_mut().push(second);
                        },
                        || runs.lock().push("second"),
                    )
                },
                || runs.lock().push("oldest"),
            );
        });
    });
}

#[test]
fn nobody_finds_a_worker_where_there_is_none() {
    assert!(with_current(|here| here.is_none()));
    let host = Alone::default();
    let inner = Alone::default();
    enter(&Demand::new(), &host, || {
        enter(&Demand::new(), &inner, || {
            let found = with_current(|here| here.unwrap().host().is::<Alone>());
            assert!(found);
        });
        let unwound = catch_unwind(|| enter(&Demand::new(), &Alone::default(), || panic_any(())));
        assert!(unwound.is_err());
        with_current(|here| {
            assert!(std::ptr::eq(
                here.unwrap().host().downcast_ref().unwrap(),
                &host
            ))
        });
    });
    assert!(with_current(|here| here.is_none()));
}

#[test]
fn a_scope_ends_after_its_jobs_and_with_their_first_panic() {
    let ran = AtomicU32::new(0);
    let scope = SpawnScope::new();
    let jobs = RefCell::new(Vec::new());
    let wait = |_: &PendingJobs<'_, '_>| {
        let job: Option<JobRef> = jobs.borrow_mut().pop();
        job.expect("it is not over").run();
    };
    let counter = &ran;
    let caught = catch_unwind(AssertUnwindSafe(|| {
        scope.enter(
            || {
                for number in 0..3 {
                    let job = scope.job(move || {
                        counter.fetch_add(1, Ordering::Relaxed);
                        panic_any(number)
                    });
                    jobs.borrow_mut().push(job.ok().unwrap());
                }
                drop(scope.job(|| unreachable!("it is dropped")).ok());
            },
            wait,
        )
    }));
    assert_eq!(*caught.unwrap_err().downcast::<i32>().unwrap(), 2);
    assert_eq!(ran.load(Ordering::Relaxed), 3);
    assert!(scope.job(|| ()).is_err(), "it is over");
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the thread borrows from the test, and makes jobs until it is told that the scope is over"
)]
fn a_job_that_another_thread_makes_at_the_end_of_a_scope_is_waited_for_or_refused() {
    struct Quiet;
    impl std::task::Wake for Quiet {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let waker = std::task::Waker::from(std::sync::Arc::new(Quiet));
    for _ in 0..2_000 {
        let scope = SpawnScope::new();
        let (accepted, ran) = (AtomicU32::new(0), AtomicU32::new(0));
        let is_begun = AtomicU32::new(0);
        std::thread::scope(|threads| {
            let (scope, accepted, ran, is_begun) = (&scope, &accepted, &ran, &is_begun);
            // Joined by hand: a thread sanitizer sees that, and not how a scope of threads ends.
            let other = threads.spawn(move || {
                while is_begun.load(Ordering::Acquire) == 0 {
                    std::hint::spin_loop();
                }
                while let Ok(job) = scope.job(move || _ = ran.fetch_add(1, Ordering::Relaxed)) {
                    accepted.fetch_add(1, Ordering::Relaxed);
                    job.run();
                }
            });
            let own = RefCell::new(None);
            scope.enter(
                || {
                    *own.borrow_mut() = scope.job(|| ()).ok();
                    is_begun.store(1, Ordering::Release);
                },
                |pending| {
                    pending.register(&waker);
                    if let Some(job) = own.borrow_mut().take() {
                        JobRef::run(job);
                    }
                },
            );
            assert!(scope.job(|| ()).is_err(), "it is over");
            other.join().unwrap();
        });
        let ends = (
            accepted.load(Ordering::Relaxed),
            ran.load(Ordering::Relaxed),
        );
        assert_eq!(ends.0, ends.1);
    }
}

#[test]
fn a_scope_that_was_entered_cannot_be_entered_again_and_makes_no_job_outside() {
    let scope = SpawnScope::new();
    assert!(scope.job(|| ()).is_err(), "not yet");
    let again = || catch_unwind(AssertUnwindSafe(|| scope.enter(|| (), |_| ())));
    scope.enter(
        || {
            assert!(again().is_err(), "it is open");
            let job = scope.job(|| ()).ok();
            job.expect("it is open").run();
        },
        |_| (),
    );
    assert!(again().is_err(), "it is over");
    assert!(scope.job(|| ()).is_err(), "it is over");
}
