//! Tasks that wait for each other: on a naive pool they hang, here the last join fails.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and locks beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt, Lifecycle, Rejected};
use millpond::pool::{Queue, ThreadPool};
use millpond::task::{self, Cycle, SharedHandle, Task, TaskError, TaskHandle, TaskLabel, TaskSpec};
use millpond_conform::kit::{Gate, Latch, case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use millpond_raw::park::probe;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// A pool as one writes it in an afternoon: two threads and a queue.
#[derive(Clone, Debug)]
struct Naive {
    queue: mpsc::Sender<Task>,
    tasks: Arc<Mutex<mpsc::Receiver<Task>>>,
}

impl Naive {
    fn start(name: &str) -> Self {
        let (queue, tasks) = mpsc::channel();
        let naive = Naive {
            queue,
            tasks: Arc::new(Mutex::new(tasks)),
        };
        for worker in 1..=2 {
            let tasks = Arc::clone(&naive.tasks);
            let thread = thread::Builder::new().name(format!("{name}-{worker}"));
            let live = move || {
                loop {
                    // They end with their process; a naive pool cannot be ended.
                    let Ok(task) = tasks.lock().unwrap().recv() else {
                        return;
                    };
                    task.run();
                }
            };
            thread.spawn(live).unwrap();
        }
        naive
    }
}

impl Executor for Naive {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.queue.send(task).unwrap();
        Ok(())
    }
}

/// Two parents on two workers, each of which submits a child to the same pool and joins it. Both have
/// begun when the first child is submitted.
fn parents<E: Executor + Clone + 'static>(
    executor: &E,
    children: &Arc<Mutex<Vec<SharedHandle<u32>>>>,
) -> Vec<TaskHandle<u32>> {
    let both = Latch::new(2);
    let parent = |number: u32| {
        let (own, both, children) = (executor.clone(), both.clone(), Arc::clone(children));
        move || {
            both.arrive();
            both.wait();
            let child = own.submit(move || number).unwrap().shared();
            children.lock().unwrap().push(child.clone());
            *child.join().unwrap()
        }
    };
    let parents = [1, 2].map(|number| executor.submit(parent(number)).unwrap());
    parents.into()
}

fn parked_at(name: &str, site: &str) -> usize {
    let is_one = |wait: &probe::Wait| {
        let own = wait
            .name
            .as_deref()
            .is_some_and(|own| own.starts_with(name));
        own && wait.site.name() == site
    };
    probe::waits().iter().filter(|wait| is_one(wait)).count()
}

#[test]
fn a_naive_pool_hangs_where_ours_answers() {
    case("naive", || {
        let name = fresh_name();
        let naive = Naive::start(&name);
        let children = Arc::default();
        let stuck = parents(&naive, &children);
        until("both workers wait", || parked_at(&name, "task.join") == 2);
        // All workers wait for tasks that only a worker could start: nothing will ever happen.
        let started = |child: &SharedHandle<u32>| child.is_finished();
        assert!(!children.lock().unwrap().iter().any(started));
        assert!(!stuck.iter().any(TaskHandle::is_finished));
        assert_eq!(parked_at(&name, "task.join"), 2);
        // A third hand helps them out.
        let rescue: Vec<Task> = {
            // Both workers are parked in joins, so the queue is ours.
            let tasks = naive.tasks.lock().unwrap();
            tasks.try_iter().collect()
        };
        assert_eq!(rescue.len(), 2);
        for task in rescue {
            task.run();
        }
        let sum: u32 = stuck.into_iter().map(|one| one.join().unwrap()).sum();
        assert_eq!(sum, 3);
    });
    case("ours", || {
        let pool = ThreadPool::builder(fresh_name()).core(2).max(2);
        let pond = Pond::of(pool.queue(Queue::unbounded()));
        let all = parents(&pond.pool(), &Arc::default());
        let sum: u32 = all.into_iter().map(|one| one.join().unwrap()).sum();
        assert_eq!(sum, 3);
    });
}

fn names(cycle: &Cycle) -> Vec<&str> {
    let names = cycle.tasks().iter().map(TaskLabel::name);
    names.map(|name| name.unwrap_or("?")).collect()
}

type Answer = Result<(), Cycle>;

/// Tasks of these names, each on its pool, each of which joins the next one when all of them run.
/// The outcome of each of them, in that order.
fn ring(pools: &[&Pond], ring: &[&'static str]) -> Vec<Answer> {
    let all: Arc<OnceLock<Vec<SharedHandle<Answer>>>> = Arc::default();
    let (running, gate) = (Latch::new(ring.len()), Gate::new());
    let handles: Vec<_> = ring
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let (all, running, gate) = (Arc::clone(&all), running.clone(), gate.clone());
            let next = (place + 1) % ring.len();
            let body = move || {
                running.arrive();
                gate.wait();
                match all.get().unwrap()[next].join() {
                    Ok(_) => Ok(()),
                    Err(TaskError::Deadlock(cycle)) => Err(cycle),
                    Err(other) => panic!("{other}"),
                }
            };
            let spec = TaskSpec::new().name(*name);
            let pool = pools[place % pools.len()];
            pool.submit_with(spec, body).unwrap().shared()
        })
        .collect();
    running.wait();
    all.set(handles.clone()).unwrap();
    gate.open();
    let answers = handles.iter().map(|one| one.join().unwrap().clone());
    let answers = answers.collect();
    // The bodies have the handles.
    drop(all);
    answers
}

#[track_caller]
fn assert_one_is_told(answers: &[Answer], ring: &[&'static str]) {
    let told: Vec<_> = answers.iter().enumerate().collect();
    let told: Vec<_> = told.into_iter().filter(|(_, one)| one.is_err()).collect();
    let [(place, Err(cycle))] = told[..] else {
        panic!("one of them is told, the others get through: {answers:?}");
    };
    let mut expected = ring.to_vec();
    expected.rotate_left(place);
    assert_eq!(names(cycle), expected);
    let found = task::wait_cycles();
    assert!(found.iter().any(|one| names(&one.cycle) == expected));
}

fn pond(workers: usize) -> Pond {
    Pond::of(
        ThreadPool::builder(fresh_name())
            .core(workers)
            .max(workers)
            .queue(Queue::unbounded()),
    )
}

#[test]
fn in_a_cycle_on_one_pool_the_last_join_fails_and_all_others_return() {
    for names in [&["a1"][..], &["a2", "b2"], &["a3", "b3", "c3"]] {
        case("one pool", move || {
            let pool = pond(3);
            assert_one_is_told(&ring(&[&pool], names), names);
        });
    }
}

#[test]
fn so_it_is_in_a_cycle_across_two_pools() {
    for names in [&["p", "q"][..], &["p", "q", "r"]] {
        case("two pools", move || {
            let (one, two) = (pond(2), pond(1));
            assert_one_is_told(&ring(&[&one, &two], names), names);
        });
    }
}

#[test]
fn the_error_says_which_task_waits_for_which_and_what_to_do() {
    case("text", || {
        let pool = pond(2);
        let answers = ring(&[&pool], &["flour", "bread"]);
        let cycle = answers.into_iter().find_map(Result::err).unwrap();
        let text = TaskError::Deadlock(cycle).to_string();
        assert!(text.contains("`flour` (made at "), "{text}");
        assert!(text.contains("wait_cycles.rs:"), "{text}");
        assert!(text.contains(", which waits for `"), "{text}");
        assert!(text.ends_with("or join with a timeout"), "{text}");
    });
}

/// A task waits for the one that it runs inline, although it waits in no join.
#[test]
fn an_inlined_task_that_joins_its_enclosing_task_gets_the_error() {
    case("in place", || {
        let pond = pond(1);
        let (pool, (send, own)) = (pond.pool(), mpsc::channel::<SharedHandle<Vec<String>>>());
        let outer = pond.submit_with(TaskSpec::new().name("outer"), move || {
            let outer = own.recv().unwrap();
            let inner = pool.submit_with(TaskSpec::new().name("inner"), move || {
                let TaskError::Deadlock(cycle) = outer.join().unwrap_err() else {
                    panic!("it waits for itself");
                };
                names(&cycle).into_iter().map(str::to_owned).collect()
            });
            inner.unwrap().join().unwrap()
        });
        let outer = outer.unwrap().shared();
        send.send(outer.clone()).unwrap();
        assert_eq!(*outer.join().unwrap(), ["outer", "inner"]);
    });
}

#[test]
fn an_interrupted_join_is_in_no_cycle() {
    case("interrupted", || {
        // Stopping a pool interrupts a task and does not cancel it: it can still be waited for.
        let (stopped, pond) = (pond(1), pond(1));
        let (may_join, may_end) = (Gate::new(), Gate::new());
        let (send, receive) = mpsc::channel::<SharedHandle<bool>>();
        let gate = may_join.clone();
        let second = pond.submit(move || {
            gate.wait();
            *receive.recv().unwrap().join().unwrap()
        });
        let second = second.unwrap().shared();
        let (gate, other) = (may_end.clone(), second.clone());
        let first = stopped.submit(move || {
            let interrupted = other.join().unwrap_err().is_interrupted();
            gate.wait();
            interrupted
        });
        send.send(first.unwrap().shared()).unwrap();
        until("the first waits", || stopped.waits_at("task.join") == 1);
        assert!(stopped.shutdown_now().is_empty());
        until("it has noticed", || stopped.waits_at("task.join") == 0);
        may_join.open();
        until("the second waits", || pond.waits_at("task.join") == 1);
        may_end.open();
        assert!(*second.join().unwrap());
    });
}

#[test]
fn a_join_with_a_timeout_is_in_no_cycle_and_ends_by_itself() {
    case("timed", || {
        let pond = pond(2);
        let (send, receive) = mpsc::channel::<SharedHandle<bool>>();
        let patient = pond.submit(move || receive.recv().unwrap().join().is_ok());
        let patient = patient.unwrap().shared();
        let other = patient.clone();
        let timed = pond.submit(move || {
            let waited = other.join_timeout(Duration::from_millis(30));
            waited.unwrap_err().is_timed_out()
        });
        let timed = timed.unwrap().shared();
        send.send(timed.clone()).unwrap();
        assert!(*timed.join().unwrap());
        assert!(*patient.join().unwrap());
    });
}

/// The owner waits at the end of its scope when the task joins it.
#[test]
fn a_task_of_a_scope_that_joins_the_scopes_owner_gets_the_error() {
    for scope_is_last in [false, true] {
        case("scope", move || {
            let pond = pond(2);
            let (pool, ends) = (pond.pool(), Gate::new());
            let name = pond.name().to_owned();
            let (send, receive) = mpsc::channel::<SharedHandle<Vec<String>>>();
            let (may_join, told) = (ends.clone(), Arc::new(Mutex::new(Vec::new())));
            let heard = Arc::clone(&told);
            let owner = pond.submit_with(TaskSpec::new().name("owner"), move || {
                let owner = receive.recv().unwrap();
                pool.scope(|s| {
                    let job = s.submit_with(TaskSpec::new().name("job"), || {
                        may_join.wait();
                        let TaskError::Deadlock(cycle) = owner.join().unwrap_err() else {
                            panic!("it waits for itself");
                        };
                        let names = names(&cycle).into_iter().map(str::to_owned);
                        heard.lock().unwrap().extend(names);
                    });
                    let job = job.unwrap();
                    until("the job runs", || job.is_started());
                    if scope_is_last {
                        may_join.open();
                        until("the job waits", || parked_at(&name, "task.join") == 1);
                    }
                });
                Vec::new()
            });
            let owner = owner.unwrap().shared();
            send.send(owner.clone()).unwrap();
            if !scope_is_last {
                until("the scope waits", || pond.waits_at("scope.end") == 1);
                ends.open();
            }
            owner.join().unwrap();
            let told = told.lock().unwrap();
            let expected = if scope_is_last {
                ["owner", "job"]
            } else {
                ["job", "owner"]
            };
            assert_eq!(*told, expected);
        });
    }
}

#[test]
fn a_batch_that_waits_for_its_own_caller_has_the_error_in_that_slot() {
    case("batch", || {
        let pond = pond(2);
        let (pool, (send, own)) = (pond.pool(), mpsc::channel::<SharedHandle<bool>>());
        let caller = pond.submit(move || {
            let caller = own.recv().unwrap();
            let body = move || caller.join().is_err_and(|error| error.is_deadlock());
            let results = pool.invoke_all([body]).unwrap();
            results.into_iter().all(|told| match told {
                // The child was inlined, or was the last to wait.
                Ok(told) => told,
                // The caller was.
                Err(error) => error.is_deadlock(),
            })
        });
        let caller = caller.unwrap().shared();
        send.send(caller.clone()).unwrap();
        assert!(*caller.join().unwrap());
    });
}

#[test]
fn no_join_is_left_in_the_table() {
    case("waits", || {
        let pond = pond(1);
        let (flour, grain) = {
            let (task, handle) = TaskSpec::new().name("the only grain").build(|| 7);
            (handle, task)
        };
        let bread = pond.submit(move || flour.join().unwrap()).unwrap();
        // Other tests have tasks in there, too.
        let wait_for = |name: &str| {
            let mut all = task::blocked_joins().into_iter();
            all.find(|one| one.task.name() == Some(name))
        };
        let grain_waits = || wait_for("the only grain");
        until("it is listed", || grain_waits().is_some());
        let thread = grain_waits().unwrap().thread.unwrap();
        assert!(thread.starts_with(pond.name()), "{thread}");
        grain.run();
        assert_eq!(bread.join().unwrap(), 7);
        assert!(grain_waits().is_none());
        // Nor is one that was interrupted.
        let (_task, never) = TaskSpec::new().name("the rain").build(|| ());
        let waiter = pond.submit(move || never.join().is_err());
        until("it is listed", || wait_for("the rain").is_some());
        assert!(waiter.as_ref().unwrap().interrupt());
        until("it has gone", || pond.idle() == 1);
        assert!(wait_for("the rain").is_none());
    });
}
