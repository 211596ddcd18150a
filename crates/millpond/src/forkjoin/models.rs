//! Models of the protocols between workers, for loom: `tests/loom_library/forkjoin.rs` walks every interleaving of them.
//!
//! A pool with all its threads has far too many steps. So the threads of a model are workers without a loop: they take the
//! one step that the model is about, with the functions and on the parts of a real pool. Workers are counted, and have
//! slots; no thread is started.
//!
//! Built for loom only, and public so that tests see it.

use super::context::Context;
use super::deque::Item;
use super::slot::{PUBLISH_LATER, Slots};
use super::worker::Worker;
use super::{Completer, CountedCompleter, ForkJoinPool, blocking};
use crate::engine::WorkerEngine;
use crate::executor::ExecutorExt;
use crate::machine::Topology;
use crate::thread::{Body, JoinHandle, ThreadFactory};
use crate::time::{Deadline, ManualClock};
use millpond_raw::forkjoin::{self as raw, Awaited, Host, Local, hand_over};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::atomic::{AtomicU32, Ordering};
use millpond_raw::sync::thread::spawn;
use std::io;
use std::sync::Arc;
use std::task::Waker;

const HERE: Site = Site::new("model");

/// The workers of a model, by their slots.
const FIRST_WORKER: u32 = 0;
const SECOND_WORKER: u32 = 1;

/// Starts no thread.
#[derive(Debug)]
struct NoThreads;

impl ThreadFactory for NoThreads {
    fn start(&self, _: Body) -> io::Result<JoinHandle<()>> {
        Err(io::Error::other("a model has no workers of its own"))
    }
}

/// A pool of so many workers, which all run something. The current thread is woken for the second one.
fn pool(parallelism: usize, workers: usize) -> (ForkJoinPool, Vec<Context>) {
    let pool = ForkJoinPool::builder("model")
        .parallelism(parallelism)
        .max_spares(1)
        .without_metrics()
        .topology(Topology::of([[[[0]]]]))
        .clock(ManualClock::new().clock())
        .threads(NoThreads)
        .build()
        .expect("the parameters are in range");
    let engine = &pool.engine;
    let contexts = (0..workers).map(|number| {
        let is_counted = engine.ctl().try_increment_workers(engine.ctl().read());
        assert!(is_counted, "there is one thread");
        let index = engine.slots.claim(match number as u32 {
            SECOND_WORKER => park::current().waker(),
            _ => Waker::noop().clone(),
        });
        let worker = Worker::new(number as u64 + 1, None, engine.new_part(false));
        Context::new(Arc::clone(engine), Arc::new(worker), index)
    });
    let contexts = contexts.collect();
    (pool, contexts)
}

/// A thread that submits a task.
fn submitter(pool: &ForkJoinPool) -> JoinHandle<()> {
    let pool = pool.clone();
    spawn(move || pool.execute(|| ()).expect("the pool is open"))
}

impl Context {
    fn fall_asleep(&self) {
        self.engine.sleep.begin_search();
        self.engine.sleep.begin_sleep(self.index);
    }

    fn is_asleep(&self) -> bool {
        self.engine.sleep.is_asleep(self.index)
    }

    fn is_asked_patiently(&self) -> bool {
        self.slot().demand.get() & PUBLISH_LATER != 0
    }

    /// Calls `f` as what this worker runs.
    fn run_here<R>(&self, f: impl FnOnce(&Local<'_>) -> R) -> R {
        raw::enter(&self.slot().demand, self, || {
            raw::with_current(|local| f(local.expect("it has entered")))
        })
    }

    /// Wakes waiters as a worker does that sleeps.
    fn tell_quiet(&self) {
        self.engine.quiescence.wake_all();
    }
}

/// `[S-word]`: the only worker falls asleep, and looks for work, while a task is submitted. It does not park, or it is
/// woken.
pub fn a_worker_that_falls_asleep_meets_a_task() {
    let (pool, workers) = pool(1, 1);
    let engine = &pool.engine;
    let submitter = submitter(&pool);
    workers[0].fall_asleep();
    let parks = !engine.has_visible_work();
    submitter.join().expect("it ends well");
    assert!(!parks || !workers[0].is_asleep(), "the task waits for ever");
    drop(engine.remove_tasks(1, &mut |_| true));
}

/// `[S-word]`: a worker falls asleep, and looks for work, while another one submits a task, on its own deque, of which the
/// lock is biased.
pub fn a_worker_that_falls_asleep_meets_a_task_of_another() {
    let (pool, mut workers) = pool(2, 2);
    let owner = workers.remove(0);
    let submit = |pool: &ForkJoinPool| pool.execute(|| ()).expect("the pool is open");
    owner.run_here(|_| submit(&pool));
    drop(owner.pop_own());
    let submitter = spawn({
        let pool = pool.clone();
        move || {
            owner.run_here(|_| submit(&pool));
            owner
        }
    });
    workers[0].fall_asleep();
    let parks = !pool.engine.finds_work();
    let owner = submitter.join().expect("it ends well");
    assert!(!parks || !workers[0].is_asleep(), "the task waits for ever");
    drop(owner.pop_own());
}

/// `[S-front]`: a worker takes one of two tasks from outside, for which it exchanges front and back. Whoever looks meanwhile
/// sees that there is something.
pub fn an_exchange_of_front_and_back_hides_nothing() {
    let (pool, mut workers) = pool(1, 1);
    for _ in 0..2 {
        pool.execute(|| ()).expect("the pool is open");
    }
    let worker = workers.remove(0);
    let taker = spawn(move || drop(worker.steal_any()));
    assert!(pool.engine.has_visible_work(), "a task is not seen");
    taker.join().expect("it ends well");
    drop(pool.engine.remove_tasks(1, &mut |_| true));
}

/// `[S-word]`: a worker stops searching, because it has found something, while a task is submitted. One of the two wakes
/// the other worker.
pub fn a_worker_that_stops_searching_meets_a_task() {
    let (pool, workers) = pool(2, 2);
    let engine = &pool.engine;
    workers[1].fall_asleep();
    engine.sleep.begin_search();
    let submitter = submitter(&pool);
    workers[0].end_search();
    submitter.join().expect("it ends well");
    assert!(!workers[1].is_asleep(), "the task waits for ever");
    drop(engine.remove_tasks(1, &mut |_| true));
}

/// `[S-word]`: the only worker that may run blocks, while a task is submitted. One of the two wakes the spare.
pub fn a_worker_that_blocks_meets_a_task() {
    let (pool, workers) = pool(1, 2);
    let engine = &pool.engine;
    workers[1].fall_asleep();
    let submitter = submitter(&pool);
    workers[0].run_here(|_| {
        blocking(|| {
            submitter.join().expect("it ends well");
            assert!(!workers[1].is_asleep(), "the task waits for ever");
        });
    });
    drop(engine.remove_tasks(1, &mut |_| true));
}

/// A thread that is a worker at a join, at which it takes the request of sleepers back, if there is none.
fn forgetter(worker: Context) -> JoinHandle<Context> {
    worker.slot().ask(PUBLISH_LATER);
    spawn(move || {
        worker.run_here(|local| worker.on_demand(local));
        worker
    })
}

/// `[S-ask]`: a worker takes the request of sleepers back while another one falls asleep.
pub fn a_request_that_is_taken_back_meets_a_worker_that_falls_asleep() {
    let (pool, mut workers) = pool(2, 2);
    let forgetter = forgetter(workers.remove(0));
    workers[0].fall_asleep();
    pool.engine.ask_others(SECOND_WORKER, PUBLISH_LATER);
    let asked = forgetter.join().expect("it ends well");
    assert!(asked.is_asked_patiently(), "the sleeper is forgotten");
}

/// `[S-ask]`: a worker takes the request of sleepers back while another one blocks, for which a spare could be started.
pub fn a_request_that_is_taken_back_meets_a_worker_that_blocks() {
    let (_pool, mut workers) = pool(2, 2);
    let forgetter = forgetter(workers.remove(0));
    workers[0].run_here(|_| {
        blocking(|| {
            let asked = forgetter.join().expect("it ends well");
            assert!(asked.is_asked_patiently(), "the spare is forgotten");
        });
    });
}

/// `[S-ask]`: a worker takes the request of sleepers back while the parallelism is raised.
pub fn a_request_that_is_taken_back_meets_a_higher_parallelism() {
    let (pool, mut workers) = pool(1, 1);
    let forgetter = forgetter(workers.remove(0));
    pool.set_parallelism(2).expect("it is in range");
    let asked = forgetter.join().expect("it ends well");
    assert!(asked.is_asked_patiently(), "the new worker is forgotten");
}

/// `[S-help]`: a worker publishes a job while another one, which waits for what it runs, registers and looks into its
/// deque. It finds the job, or it is woken.
pub fn a_worker_that_waits_meets_a_published_job() {
    const ROOT: usize = 8;
    let (pool, mut workers) = pool(2, 2);
    let owner = workers.remove(0);
    let owner = spawn(move || {
        let give = |job| {
            owner.push_marked(job, ROOT);
            owner.signal_job(true);
        };
        let _ = hand_over(|| (), give, park_for);
    });
    help(&pool, &workers[0], ROOT);
    owner.join().expect("it ends well");
}

/// `[S-help]`: the same, for a private job that is published because its worker blocks, until the job has run.
pub fn a_worker_that_waits_meets_a_job_of_one_that_blocks() {
    let (pool, mut workers) = pool(1, 2);
    let owner = workers.remove(0);
    let owner = spawn(move || {
        owner.run_here(|local| {
            let waker = park::current().waker();
            local.join(|| blocking(|| park::current().park(HERE)), || waker.wake());
        });
    });
    help(&pool, &workers[0], 0);
    owner.join().expect("it ends well");
}

/// Waits for a job of the first worker that was published inside of that root, and runs it.
fn help(pool: &ForkJoinPool, helper: &Context, root: usize) {
    let deque = &pool.engine.slots.get(FIRST_WORKER).deque;
    helper.ask_thief(FIRST_WORKER);
    while !deque.has_job_of(root) {
        park::current().park(HERE);
    }
    let job = deque.steal_from_root(root, helper.index);
    job.expect("it is there").run();
}

fn park_for(job: &Awaited<'_>) {
    let here = park::current();
    if job.register(&here.waker()) {
        here.park(HERE);
    }
}

/// `[S-slot]`: a slot that counts as used is there.
pub fn a_slot_that_is_used_is_there() {
    let slots = Arc::new(Slots::new(1));
    let other = spawn({
        let slots = Arc::clone(&slots);
        move || slots.iter().for_each(|slot| slot.set_cache_group(1))
    });
    assert_eq!(slots.claim(Waker::noop().clone()), FIRST_WORKER);
    other.join().expect("it ends well");
}

/// A worker that sleeps, and a task that is queued: a thread on which the worker awakes, runs the task, which counts
/// one, and sleeps again.
fn awakens(pool: &ForkJoinPool, worker: Context) -> (JoinHandle<()>, Arc<AtomicU32>) {
    let done = Arc::new(AtomicU32::new(0));
    // Of two tasks one is taken here. So the other one is at the front of its stripe, and is taken without an exchange,
    // which would order more than taking from a queue does in general.
    for _ in 0..2 {
        pool.execute(|| ()).expect("the pool is open");
    }
    drop(worker.steal_any());
    worker.fall_asleep();
    let count = Arc::clone(&done);
    let thread = spawn(move || {
        let engine = &worker.engine;
        engine.sleep.end_sleep(worker.index);
        let item = worker.steal_any();
        worker.end_search();
        assert!(matches!(item, Some(Item::Task(_))), "it is queued");
        drop(item);
        count.store(1, Ordering::Relaxed);
        worker.fall_asleep();
        worker.tell_quiet();
    });
    (thread, done)
}

/// `[S-quiet]`: while a worker wakes, takes a task, runs it and sleeps again, another thread asks whether the pool is
/// quiescent. If so, the task is over, and what it has done is seen.
pub fn a_quiescent_pool_has_nothing_in_hand() {
    let (pool, mut workers) = pool(1, 1);
    let (worker, done) = awakens(&pool, workers.remove(0));
    let engine = &pool.engine;
    let (is_quiescent, done) = (engine.is_quiescent(0), done.load(Ordering::Relaxed));
    // Loom does not stop a thread before a fence, but before a lock that another one takes. So this is stopped there,
    // too, as it counts as sleeping.
    engine.sleep.is_asleep(FIRST_WORKER);
    assert!(!is_quiescent || done == 1, "the task is not over");
    worker.join().expect("it ends well");
}

/// `[S-quiet]`: the same, for a thread that waits for that.
pub fn a_thread_that_waits_for_quiescence_meets_the_last_worker() {
    let (pool, mut workers) = pool(1, 1);
    let (worker, done) = awakens(&pool, workers.remove(0));
    let waited = pool.engine.await_quiescence(Deadline::NEVER);
    assert!(waited.expect("nobody interrupts it"));
    assert_eq!(done.load(Ordering::Relaxed), 1, "the task is not over");
    worker.join().expect("it ends well");
}

/// `[S-quiet]`: the same, for a worker.
pub fn a_worker_that_waits_for_quiescence_meets_the_last_other() {
    let (pool, mut workers) = pool(2, 2);
    let done = Arc::new(AtomicU32::new(0));
    let other = spawn({
        let (worker, done) = (workers.remove(0), Arc::clone(&done));
        move || {
            done.store(1, Ordering::Relaxed);
            worker.fall_asleep();
            worker.tell_quiet();
        }
    });
    let waited = workers[0].run_here(|_| pool.engine.await_quiescence(Deadline::NEVER));
    assert!(waited.expect("nobody interrupts it"));
    assert_eq!(done.load(Ordering::Relaxed), 1, "the other runs something");
    other.join().expect("it ends well");
}

/// A computation of two parts, one of which another worker may steal.
#[derive(Default)]
struct Parts {
    is_second: bool,
    /// The second part completes the root at once.
    is_search: bool,
    done: [AtomicU32; 2],
}

impl Parts {
    fn assert_done(&self, of: &[usize]) {
        for part in of {
            let done = self.done[*part].load(Ordering::Relaxed);
            assert_eq!(done, 1, "part {part} is not seen");
        }
    }
}

impl CountedCompleter for Parts {
    fn compute(this: &Completer<'_, '_, Self>) {
        if !this.is_second {
            this.fork_child(Parts {
                is_second: true,
                is_search: this.is_search,
                ..Parts::default()
            });
        }
        let root = this.root();
        root.done[usize::from(this.is_second)].store(1, Ordering::Relaxed);
        if !this.is_search {
            this.try_complete();
        } else if this.is_second {
            this.complete_root();
        } else if this.is_completed() {
            this.assert_done(&[1]);
        }
    }

    fn on_completion(this: &Completer<'_, '_, Self>, _: &Completer<'_, '_, Self>) {
        if this.completer().is_none() {
            this.assert_done(&[0, 1]);
        }
    }
}

fn complete(is_search: bool) {
    let (pool, workers) = pool(2, 2);
    let thief = spawn({
        let pool = pool.clone();
        move || {
            let slot = pool.engine.slots.get(FIRST_WORKER);
            if let Some(Item::Job(job)) = slot.deque.steal(SECOND_WORKER) {
                job.run();
            }
        }
    });
    let root = Parts {
        is_search,
        ..Parts::default()
    };
    let root = workers[0].run_here(|_| root.invoke());
    root.assert_done(&[0, 1]);
    thief.join().expect("it ends well");
}

/// `[C-part]`: whoever brings the last part sees the others.
pub fn the_last_part_sees_all_others() {
    complete(false);
}

/// `[C-part]`: whoever sees that a search is over sees what was found.
pub fn a_search_that_is_over_shows_what_was_found() {
    complete(true);
}
