//! How do I keep rejected tasks, and run them after a restart?
//!
//! ```sh
//! cargo run -p examples --example 21_rejected_to_disk
//! ```
//!
//! ```text
//! # Before the restart
//! the last one: the task was cancelled: its executor rejected it
//! 89 rejected
//! 10 handed back
//! 1 done, 99 in the file
//! # After it
//! the first in the file: Job { number: 12, customer: "customer 5" }
//! 100 done altogether
//! each once: true
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, Rejected};
use millpond::interrupt;
use millpond::pool::{Queue, RejectionContext, RejectionHandler, RejectionPolicy, ThreadPool};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::{CancelReason, Task, TaskHandle, TaskLocal, TaskSpec};
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The work to be done. It can be serialized, which a closure cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Job {
    number: u32,
    customer: String,
}

impl Job {
    fn new(number: u32) -> Self {
        let customer = format!("customer {}", number % 7);
        Job { number, customer }
    }
}

/// The job that a task does, for code that is given the task. Tasks that a task submits inherit it:
/// a rejected part writes its whole job to the file, which is then done again. Give parts a pool of their own
/// if that is wrong.
static JOB: TaskLocal<Job> = TaskLocal::new();

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("millpond-21-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("rejected.txt");
    let done = Arc::new(FifoQueue::unbounded());

    println!("# Before the restart");
    let store = Arc::new(Store::open(&file)?);
    let keeper: Arc<dyn RejectionHandler> = Arc::clone(&store) as _;
    let pool = one_worker(RejectionPolicy::Custom(keeper))?;
    // The first job runs until it is interrupted, so the queue fills up.
    submit(&pool, Job::new(1), Duration::MAX, &done)?;
    while pool.snapshot().active == 0 {
        interrupt::sleep(Duration::from_millis(1))?;
    }
    let mut last = None;
    for number in 2..=100 {
        last = Some(submit(&pool, Job::new(number), Duration::ZERO, &done)?);
    }
    let error = last.ok_or("there are more")?.join().unwrap_err();
    println!("the last one: {error}");
    println!("{} rejected", pool.snapshot().left_to_policy);
    // Tasks that still wait go the same way.
    let waiting = pool.shutdown_now();
    println!("{} handed back", waiting.len());
    for task in &waiting {
        store.keep(task)?;
    }
    pool.await_termination()?;
    println!("{} done, {} in the file", done.len(), stored(&file)?.len());

    println!("# After it");
    // Here submitters wait for room, so no job is rejected.
    let pool = one_worker(RejectionPolicy::Block(Duration::MAX))?;
    let jobs = stored(&file)?;
    println!("the first in the file: {:?}", jobs[0]);
    for job in jobs {
        submit(&pool, job, Duration::ZERO, &done)?;
    }
    pool.close()?;
    // Only now: a crash meanwhile would have done some jobs twice, and lost none.
    fs::remove_dir_all(&folder)?;

    let mut numbers: Vec<u32> = std::iter::from_fn(|| done.poll()).collect();
    println!("{} done altogether", numbers.len());
    numbers.sort_unstable();
    println!("each once: {}", numbers == Vec::from_iter(1..=100));
    Ok(())
}

fn one_worker(rejection: RejectionPolicy) -> Result<ThreadPool, Box<dyn Error>> {
    let pool = ThreadPool::builder("mill").max(1).queue(Queue::bounded(10));
    Ok(pool.rejection(rejection).build()?)
}

/// Submits a job: names it, and submits its closure.
fn submit(
    pool: &ThreadPool,
    job: Job,
    takes: Duration,
    done: &Arc<FifoQueue<u32>>,
) -> Result<TaskHandle<()>, Box<dyn Error>> {
    let (job, done) = (Arc::new(job), Arc::clone(done));
    let own = Arc::clone(&job);
    let body = move || {
        // Or until it is interrupted.
        interrupt::sleep(takes).unwrap_or_default();
        // It has room for all.
        done.offer(own.number).unwrap_or_default();
    };
    // All have one name, so the metrics are those of all jobs together.
    let submit = || pool.submit_with(TaskSpec::new().name("job"), body);
    Ok(JOB.scope(job, submit)?)
}

/// Keeps the jobs of tasks in a file, a line each.
#[derive(Debug)]
struct Store(File);

impl Store {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Store(file))
    }

    /// Returns when the job is on the disk.
    fn keep(&self, task: &Task) -> io::Result<()> {
        let job = JOB.of(task).ok_or(io::ErrorKind::InvalidInput)?;
        let line = format!("{}\t{}\n", job.number, job.customer);
        // Appended in one go, so lines of several threads do not mix.
        (&self.0).write_all(line.as_bytes())?;
        self.0.sync_data()
    }
}

impl RejectionHandler for Store {
    fn reject(&self, task: Task, context: RejectionContext<'_>) -> Result<(), Rejected<Task>> {
        match self.keep(&task) {
            // The handle says that the task was rejected.
            Ok(()) => {
                task.cancel(CancelReason::Rejected);
                Ok(())
            }
            // No handler takes it, so its caller has to.
            Err(error) => {
                eprintln!("{}: {error}; {}", context.reason, context.pool.explain());
                context.give_back(task)
            }
        }
    }
}

/// The jobs in a file. A line that a crash has cut short is none.
fn stored(path: &Path) -> io::Result<Vec<Job>> {
    let text = fs::read_to_string(path)?;
    let lines = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    let jobs = lines.filter_map(|line| {
        let (number, customer) = line.split_once('\t')?;
        let (number, customer) = (number.parse().ok()?, customer.to_owned());
        Some(Job { number, customer })
    });
    Ok(jobs.collect())
}
