//! Interrupts, deadlines, names and task-locals reach the parts of a task that other workers run.

use crate::{pool, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinPool, HelpPolicy};
use millpond::interrupt::{self, Interrupted};
use millpond::preset;
use millpond::task::{self, TaskLocal, TaskSpec};
use millpond::time::{Clock, Deadline};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

static ORDER: TaskLocal<u32> = TaskLocal::new();

const LONG: Duration = Duration::from_secs(60);

/// Says that something has happened, to whoever waits for it on another thread.
#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn wait(&self) {
        let begin = std::time::Instant::now();
        while !self.0.load(Ordering::Acquire) {
            assert!(begin.elapsed() < LONG, "nobody has raised it");
            thread::yield_now();
        }
    }

    /// Waits on a worker: its joins give others what there is to steal.
    fn wait_and_join(&self) {
        let begin = std::time::Instant::now();
        while !self.0.load(Ordering::Acquire) {
            assert!(begin.elapsed() < LONG, "nobody has raised it");
            forkjoin::join(thread::yield_now, || ());
        }
    }
}

/// Joins two closures, of which the second is stolen for sure.
fn join_apart<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    let begun = Flag::default();
    let (tell, here) = (begun.clone(), thread::current().id());
    forkjoin::join(
        move || {
            begun.wait_and_join();
            a()
        },
        move || {
            assert_ne!(thread::current().id(), here, "it was stolen");
            tell.raise();
            b()
        },
    )
}

fn until_interrupted() {
    let begin = std::time::Instant::now();
    while interrupt::check().is_ok() {
        assert!(begin.elapsed() < LONG, "nobody has interrupted it");
        thread::yield_now();
    }
}

#[test]
fn an_interrupt_reaches_the_task_and_all_its_stolen_parts() {
    let pool = pool(3);
    let (tell, told) = mpsc::channel();
    let begins = Flag::default();
    let tells = begins.clone();
    let task = pool.submit(move || {
        join_apart(
            || {
                join_apart(
                    || {
                        tells.raise();
                        until_interrupted();
                    },
                    until_interrupted,
                )
            },
            until_interrupted,
        );
        tell.send(interrupt::check()).unwrap();
    });
    let task = task.unwrap();
    begins.wait();
    assert!(task.interrupt());
    assert_eq!(told.recv_timeout(LONG), Ok(Ok(())), "the task reported it");
    pool.close().unwrap();
}

#[test]
fn a_stolen_part_hears_of_an_interrupt_that_the_task_has_reported_before_it_looks() {
    let pool = pool(2);
    let (taken, begun) = (Flag::default(), Flag::default());
    let (tell, told) = mpsc::channel();
    let (takes, begins) = (taken.clone(), begun.clone());
    let task = pool.submit(move || {
        let seen = join_apart(
            || {
                begins.raise();
                until_interrupted();
                takes.raise();
            },
            || {
                taken.wait();
                [interrupt::check(), interrupt::check()]
            },
        );
        // What is forked after the report is not interrupted.
        let later = join_apart(|| (), interrupt::check);
        tell.send((seen.1, later.1)).unwrap();
    });
    let task = task.unwrap();
    begun.wait();
    assert!(task.interrupt());
    let seen = told.recv_timeout(LONG).unwrap();
    assert_eq!(seen, ([Err(Interrupted), Ok(())], Ok(())));
    pool.close().unwrap();
}

#[test]
fn an_interrupt_wakes_a_stolen_part_that_sleeps_and_parts_of_parts() {
    let pool = pool(3);
    let (tell, told) = mpsc::channel();
    let begun = Flag::default();
    let begins = begun.clone();
    let task = pool.submit(move || {
        let hour = Duration::from_secs(3600);
        let slept = join_apart(
            || (),
            || {
                join_apart(
                    || interrupt::sleep(hour),
                    || {
                        begins.raise();
                        interrupt::sleep(hour)
                    },
                )
            },
        );
        tell.send((slept.1, interrupt::is_interrupted())).unwrap();
    });
    let task = task.unwrap();
    begun.wait();
    assert!(task.interrupt());
    let (slept, rest) = told.recv_timeout(LONG).unwrap();
    assert_eq!(slept, (Err(Interrupted), Err(Interrupted)));
    assert!(rest, "a part leaves the token for the task");
    pool.close().unwrap();
}

#[test]
fn a_part_of_a_masked_join_is_masked_and_that_of_an_outer_one_is_not() {
    let pool = pool(3);
    let (tell, told) = mpsc::channel();
    let (begun, set) = (Flag::default(), Flag::default());
    let (begins, seen) = (begun.clone(), set.clone());
    let task = pool.submit(move || {
        let outer_begun = Flag::default();
        let outer_begins = outer_begun.clone();
        let found = join_apart(
            || {
                // The second one is private still when the mask begins.
                forkjoin::join(
                    || {
                        interrupt::uninterruptible(|| {
                            outer_begun.wait_and_join();
                            begins.raise();
                            seen.wait();
                            forkjoin::join(interrupt::check, interrupt::check)
                        })
                    },
                    || {
                        outer_begins.raise();
                        seen.wait();
                        interrupt::check()
                    },
                )
            },
            || seen.wait(),
        );
        tell.send(found.0).unwrap();
    });
    let task = task.unwrap();
    begun.wait();
    assert!(task.interrupt());
    set.raise();
    let (masked, outer) = told.recv_timeout(LONG).unwrap();
    assert_eq!((masked, outer), ((Ok(()), Ok(())), Err(Interrupted)));
    pool.close().unwrap();
}

/// The thread, the task-local, and the name and deadline that a task would inherit.
fn surroundings() -> (ThreadId, Option<u32>, Option<String>, Deadline) {
    let (inner, _handle) = TaskSpec::new().build(|| ());
    let order = ORDER.get().map(|order| *order);
    let name = inner.name().map(String::from);
    (thread::current().id(), order, name, inner.deadline())
}

#[test]
fn deadlines_names_and_task_locals_reach_stolen_parts() {
    let pool = pool(2);
    let noon = Clock::system().deadline(Duration::from_secs(3600));
    let (task, handle) = ORDER.scope(42, || {
        let spec = TaskSpec::new().name("grind").deadline(noon);
        spec.build(|| join_apart(surroundings, surroundings))
    });
    millpond::executor::Executor::execute_task(&pool, task).unwrap();
    let (left, right) = handle.join().unwrap();
    assert_ne!(left.0, right.0);
    let wanted = (Some(42), Some("grind".to_owned()), noon);
    assert_eq!((left.1, left.2, left.3), wanted);
    assert_eq!((right.1, right.2, right.3), wanted);
    // The next one finds nothing of it.
    let next = pool.submit(|| join_apart(surroundings, surroundings));
    let (left, right) = next.unwrap().join().unwrap();
    assert_eq!((left.1, left.2, left.3), (None, None, Deadline::NEVER));
    assert_eq!((right.1, right.2, right.3), (None, None, Deadline::NEVER));
    pool.close().unwrap();
}

#[test]
fn a_job_that_is_published_inside_of_an_inline_task_belongs_to_the_outer_one() {
    let pool = pool(3);
    let end = Flag::default();
    let ends = end.clone();
    let found = ORDER.scope(1, || {
        pool.submit(move || {
            let begun = Flag::default();
            let begins = begun.clone();
            let inner = || {
                let (task, handle) = ORDER.scope(2, || {
                    task::new(move || {
                        begun.wait_and_join();
                        ORDER.get().map(|order| *order)
                    })
                });
                // It runs here, with the token of its own.
                task.run();
                handle.join().unwrap()
            };
            let outer = || {
                begins.raise();
                ORDER.get().map(|order| *order)
            };
            let found = join_apart(|| forkjoin::join(inner, outer), || end.wait());
            found.0
        })
    });
    let found = found.unwrap();
    // The third worker has nothing else to do than to take the outer job.
    while !found.is_started() {
        thread::yield_now();
    }
    ends.raise();
    assert_eq!(found.join().unwrap(), (Some(2), Some(1)));
    pool.close().unwrap();
}

#[test]
fn jobs_of_a_scope_and_the_jobs_that_they_spawn_hear_of_an_interrupt() {
    let pool = pool(2);
    let (tell, told) = mpsc::channel();
    let begun = Flag::default();
    let begins = begun.clone();
    let task = pool.submit(move || {
        let (begins, tell) = (&begins, &tell);
        forkjoin::scope(|scope| {
            scope.spawn(move |scope| {
                scope.spawn(move |_| {
                    begins.raise();
                    until_interrupted();
                    tell.send(2).unwrap();
                });
                until_interrupted();
                tell.send(1).unwrap();
            });
        });
    });
    let task = task.unwrap();
    begun.wait();
    assert!(task.interrupt());
    let jobs = [(); 2].map(|()| told.recv_timeout(LONG).unwrap());
    assert_eq!(jobs.iter().sum::<i32>(), 3);
    pool.close().unwrap();
}

#[test]
fn an_interrupt_of_a_task_elsewhere_reaches_what_it_installs_here() {
    let (outer, pool) = (preset::single("outer").build().unwrap(), pool(2));
    let (inner, begun) = (pool.clone(), Flag::default());
    let (tell, told) = mpsc::channel();
    let begins = begun.clone();
    let work = move || {
        let begins = &begins;
        inner.install(|| {
            join_apart(
                || {
                    begins.raise();
                    until_interrupted();
                },
                until_interrupted,
            )
        });
        tell.send(ORDER.get().map(|order| *order)).unwrap();
    };
    let task = ORDER.scope(3, || outer.submit(work)).unwrap();
    begun.wait();
    assert!(task.interrupt());
    assert_eq!(told.recv_timeout(LONG), Ok(Some(3)));
    outer.close().unwrap();
    pool.close().unwrap();
}

#[test]
fn what_a_task_runs_for_others_while_it_helps_sees_nothing_of_it() {
    let pool = pool(1);
    let (inner, begun) = (pool.clone(), Flag::default());
    let begins = begun.clone();
    let helper = ORDER.scope(5, || {
        pool.submit(move || {
            begins.raise();
            // The job from outside may come late.
            let helped = Flag::default();
            thread::scope(|threads| {
                let (pool, done) = (&inner, helped.clone());
                let caller = threads.spawn(move || {
                    let seen = pool.install(|| (ORDER.get().is_none(), surroundings().3));
                    done.raise();
                    seen
                });
                while !caller.is_finished() {
                    inner.help_quiesce();
                    thread::yield_now();
                }
                helped.wait();
                let own = ORDER.get().map(|order| *order);
                (caller.join().unwrap(), own)
            })
        })
    });
    begun.wait();
    let seen = helper.unwrap().join().unwrap();
    assert_eq!(seen, ((true, Deadline::NEVER), Some(5)));
    pool.close().unwrap();
}

#[test]
fn an_interrupt_does_not_hit_a_stranger_that_runs_on_the_stack_of_the_interrupted_task() {
    // By a worker that waits in a join, and may run anything.
    let pool = ForkJoinPool::builder("mill").parallelism(2);
    let pool = pool.help(HelpPolicy::Any).build().unwrap();
    let (taken, open, end) = (Flag::default(), Flag::default(), Flag::default());
    let (begins, opens, ends) = (taken.clone(), open.clone(), end.clone());
    let task = pool.submit(move || {
        forkjoin::join(
            || {
                begins.wait();
                opens.wait();
                interrupt::is_interrupted()
            },
            || {
                begins.raise();
                ends.wait();
            },
        )
    });
    let task = task.unwrap();
    taken.wait();
    task.interrupt();
    let seen = thread::scope(|threads| {
        let stranger = threads.spawn(|| pool.install(interrupt::is_interrupted));
        until(|| pool.snapshot().queued_outside > 0 || stranger.is_finished());
        open.raise();
        let seen = stranger.join().unwrap();
        end.raise();
        seen
    });
    assert!(!seen);
    assert!(task.join().is_err(), "the task itself is interrupted");

    // By a task that runs all that is queued: a job, and a task.
    let pool = self::pool(1);
    let (begun, open) = (Flag::default(), Flag::default());
    let (inner, begins, opens) = (pool.clone(), begun.clone(), open.clone());
    let task = pool.submit(move || {
        begins.raise();
        opens.wait();
        inner.help_quiesce();
        interrupt::is_interrupted()
    });
    let task = task.unwrap();
    begun.wait();
    task.interrupt();
    let other = pool.submit(interrupt::is_interrupted).unwrap();
    let seen = thread::scope(|threads| {
        let stranger = threads.spawn(|| pool.install(interrupt::is_interrupted));
        until(|| pool.snapshot().queued_outside == 2);
        open.raise();
        stranger.join().unwrap()
    });
    assert!(!seen && !other.join().unwrap());
    assert!(task.join().is_err());
}

#[test]
fn a_stop_of_the_pool_reaches_stolen_parts() {
    let pool: ForkJoinPool = pool(2);
    let (tell, told) = mpsc::channel();
    let begun = Flag::default();
    let begins = begun.clone();
    let task = pool.submit(move || {
        join_apart(
            || {
                begins.raise();
                until_interrupted();
            },
            until_interrupted,
        );
        tell.send(()).unwrap();
    });
    begun.wait();
    assert!(pool.shutdown_now().is_empty());
    told.recv_timeout(LONG).unwrap();
    assert!(pool.await_termination_timeout(LONG).unwrap());
    drop(task);
}
