//! Threads that take boxed closures out of a channel: the pool that is written again and again.
//!
//! Where a channel has one receiver only, its threads take turns behind a lock.

use super::{Job, Pool, Queue, receive, with_handle};
use anyhow::Result;
use std::fmt;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

/// A channel of boxed closures.
pub trait JobChannel: Sized + 'static {
    /// Its name.
    const NAME: &'static str;

    /// The sending end of the jobs.
    type Sender: Send + Sync;

    /// The receiving end of the jobs.
    type Receiver: Clone + Send + 'static;

    /// Opens one.
    fn open(bound: Option<usize>) -> (Self::Sender, Self::Receiver);

    /// Puts a job in, and waits as long as there is no room.
    fn send(sender: &Self::Sender, job: Job);

    /// Puts a job in, or gives it back if there is no room.
    ///
    /// # Errors
    ///
    /// The job.
    fn try_send(sender: &Self::Sender, job: Job) -> Result<(), Job>;

    /// Takes the next job, and waits as long as there is none; `None` once all senders are gone.
    fn receive(receiver: &Self::Receiver) -> Option<Job>;
}

/// A pool over a channel.
pub struct HandRolled<C: JobChannel> {
    sender: C::Sender,
    caller_runs: bool,
    threads: Vec<JoinHandle<()>>,
}

impl<C: JobChannel> HandRolled<C> {
    /// Puts a job in, and does what the queue says if there is no room.
    pub(super) fn bring(&self, job: Job) {
        if !self.caller_runs {
            C::send(&self.sender, job);
        } else if let Err(job) = C::try_send(&self.sender, job) {
            job();
        }
    }
}

impl<C: JobChannel> Pool for HandRolled<C> {
    const NAME: &'static str = C::NAME;
    type Handle = oneshot::Receiver<u64>;

    fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        let (sender, receiver) = C::open(queue.bound());
        let work = |receiver: C::Receiver| {
            std::thread::spawn(move || {
                while let Some(job) = C::receive(&receiver) {
                    job();
                }
            })
        };
        Ok(HandRolled {
            sender,
            caller_runs: queue.caller_runs(),
            threads: (0..workers).map(|_| work(receiver.clone())).collect(),
        })
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.bring(Box::new(f));
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        let (job, handle) = with_handle(f);
        self.bring(Box::new(job));
        handle
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        receive(handle)
    }

    fn close(self) {
        drop(self.sender);
        for thread in self.threads {
            thread.join().expect("a worker of the bench does not panic");
        }
    }
}

impl<C: JobChannel> fmt::Debug for HandRolled<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandRolled").field(&C::NAME).finish()
    }
}

const GONE: &str = "the workers are there until the pool is closed";

/// `crossbeam-channel`.
#[derive(Debug)]
pub struct Crossbeam;

impl JobChannel for Crossbeam {
    const NAME: &'static str = "crossbeam-channel";
    type Sender = crossbeam_channel::Sender<Job>;
    type Receiver = crossbeam_channel::Receiver<Job>;

    fn open(bound: Option<usize>) -> (Self::Sender, Self::Receiver) {
        bound.map_or_else(crossbeam_channel::unbounded, crossbeam_channel::bounded)
    }

    fn send(sender: &Self::Sender, job: Job) {
        sender.send(job).expect(GONE);
    }

    fn try_send(sender: &Self::Sender, job: Job) -> Result<(), Job> {
        sender.try_send(job).map_err(|error| error.into_inner())
    }

    fn receive(receiver: &Self::Receiver) -> Option<Job> {
        receiver.recv().ok()
    }
}

/// `flume`.
#[derive(Debug)]
pub struct Flume;

impl JobChannel for Flume {
    const NAME: &'static str = "flume";
    type Sender = flume::Sender<Job>;
    type Receiver = flume::Receiver<Job>;

    fn open(bound: Option<usize>) -> (Self::Sender, Self::Receiver) {
        bound.map_or_else(flume::unbounded, flume::bounded)
    }

    fn send(sender: &Self::Sender, job: Job) {
        sender.send(job).expect(GONE);
    }

    fn try_send(sender: &Self::Sender, job: Job) -> Result<(), Job> {
        sender
            .try_send(job)
            .map_err(flume::TrySendError::into_inner)
    }

    fn receive(receiver: &Self::Receiver) -> Option<Job> {
        receiver.recv().ok()
    }
}

/// `kanal`.
#[derive(Debug)]
pub struct Kanal;

impl JobChannel for Kanal {
    const NAME: &'static str = "kanal";
    type Sender = kanal::Sender<Job>;
    type Receiver = kanal::Receiver<Job>;

    fn open(bound: Option<usize>) -> (Self::Sender, Self::Receiver) {
        bound.map_or_else(kanal::unbounded, kanal::bounded)
    }

    fn send(sender: &Self::Sender, job: Job) {
        sender.send(job).expect(GONE);
    }

    fn try_send(sender: &Self::Sender, job: Job) -> Result<(), Job> {
        // A job that was not sent stays in the option.
        let mut job = Some(job);
        let sent = sender.try_send_option(&mut job).expect(GONE);
        match job {
            Some(job) if !sent => Err(job),
            _ => Ok(()),
        }
    }

    fn receive(receiver: &Self::Receiver) -> Option<Job> {
        receiver.recv().ok()
    }
}

/// `std::sync::mpsc`, its receiver behind a lock.
#[derive(Debug)]
pub struct StdMpsc;

/// std has a type of sender for each kind of channel.
#[derive(Debug)]
pub enum StdSender {
    /// Of a channel with a bound.
    Bounded(mpsc::SyncSender<Job>),
    /// Of a channel without.
    Unbounded(mpsc::Sender<Job>),
}

impl JobChannel for StdMpsc {
    const NAME: &'static str = "std::sync::mpsc";
    type Sender = StdSender;
    type Receiver = Arc<Mutex<mpsc::Receiver<Job>>>;

    fn open(bound: Option<usize>) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = match bound {
            Some(bound) => {
                let (sender, receiver) = mpsc::sync_channel(bound);
                (StdSender::Bounded(sender), receiver)
            }
            None => {
                let (sender, receiver) = mpsc::channel();
                (StdSender::Unbounded(sender), receiver)
            }
        };
        (sender, Arc::new(Mutex::new(receiver)))
    }

    fn send(sender: &Self::Sender, job: Job) {
        let sent = match sender {
            StdSender::Bounded(sender) => sender.send(job),
            StdSender::Unbounded(sender) => sender.send(job),
        };
        sent.expect(GONE);
    }

    fn try_send(sender: &Self::Sender, job: Job) -> Result<(), Job> {
        match sender {
            StdSender::Bounded(sender) => sender.try_send(job).map_err(|error| match error {
                mpsc::TrySendError::Full(job) | mpsc::TrySendError::Disconnected(job) => job,
            }),
            StdSender::Unbounded(sender) => sender.send(job).map_err(|error| error.0),
        }
    }

    fn receive(receiver: &Self::Receiver) -> Option<Job> {
        // Not in the head of a loop: there the lock would be held while the job runs.
        let job = receiver.lock().expect("no job runs under this lock").recv();
        job.ok()
    }
}
