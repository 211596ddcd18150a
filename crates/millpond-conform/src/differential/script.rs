//! A script: a pool to begin with, and steps.
//!
//! The text form is the one of the files, of the pipe to Java and of what is printed on failure;
//! `docs/differential.md` documents it. A script that was parsed is valid: a player needs to
//! check nothing.

use super::futures::FutureStep;
use super::tree::Tree;
use std::fmt;

/// The number of a task, as a script gives it.
pub type Number = u32;

/// The pool a script begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setup {
    /// A thread pool.
    Pool(PoolSetup),
    /// A fork-join pool.
    ForkJoin(ForkJoinSetup),
    /// No pool: completable futures.
    Futures,
}

impl Setup {
    /// The thread pool, if it is one.
    pub fn pool(&self) -> Option<&PoolSetup> {
        match self {
            Setup::Pool(pool) => Some(pool),
            Setup::ForkJoin(_) | Setup::Futures => None,
        }
    }
}

/// A fork-join pool to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkJoinSetup {
    /// How many workers compute at a time.
    pub parallelism: usize,
    /// Whether a worker takes the oldest of its forked tasks first: `asyncMode`.
    pub is_fifo: bool,
}

/// A thread pool to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSetup {
    /// The core size.
    pub core: usize,
    /// The maximum size.
    pub max: usize,
    /// The queue.
    pub queue: Flavor,
    /// The rejection policy.
    pub policy: Policy,
    /// The keep-alive, in seconds.
    pub keep_alive: u64,
    /// Whether core workers may time out.
    pub core_may_time_out: bool,
}

/// The queue of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// The linked queue with a bound, which may change.
    Linked(usize),
    /// The array queue.
    Array(usize),
    /// The linked queue without a bound.
    Unbounded,
    /// From hand to hand.
    HandOff,
}

/// The rejection policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It is rejected.
    Abort,
    /// The caller runs it.
    CallerRuns,
    /// It is dropped.
    Discard,
    /// The one that has waited longest is dropped instead.
    DiscardOldest,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [
        Policy::Abort,
        Policy::CallerRuns,
        Policy::Discard,
        Policy::DiscardOldest,
    ];

    /// Its name in scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Abort => "abort",
            Policy::CallerRuns => "caller-runs",
            Policy::Discard => "discard",
            Policy::DiscardOldest => "discard-oldest",
        }
    }
}

/// A task that a step submits to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Its number.
    pub number: Number,
    /// Whether it is submitted (with a handle) or merely run.
    pub has_handle: bool,
    /// Whether its body ignores interrupts.
    pub is_stubborn: bool,
    /// How many tasks its body forks before it waits; in a fork-join pool.
    pub forks: usize,
}

/// A computation that a step submits to a fork-join pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computation {
    /// Its number.
    pub number: Number,
    /// Whether the order is told in which its parts ran.
    pub is_traced: bool,
    /// The computation.
    pub tree: Tree,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Submits a task.
    Submission(Submission),
    /// Submits a computation to a fork-join pool.
    Compute(Computation),
    /// Lets the bodies that run among these return.
    Release(Vec<Number>),
    /// Lets the body panic, if it runs.
    Fail(Number),
    /// Cancels a task through its handle.
    Cancel(Number),
    /// Interrupts a task through its handle.
    Interrupt(Number),
    /// Removes a task from the queue.
    Remove(Number),
    /// Sets the core size.
    Core(usize),
    /// Sets the maximum size.
    Max(usize),
    /// Sets the bound of the queue.
    Capacity(usize),
    /// Sets the keep-alive, in seconds.
    KeepAlive(u64),
    /// Lets core workers time out, or not.
    CoreMayTimeOut(bool),
    /// Sets the rejection policy.
    Policy(Policy),
    /// Starts one core worker.
    Prestart,
    /// Starts all core workers.
    PrestartAll,
    /// Lets every idle worker that may leave leave.
    IdleOut,
    /// From now on threads can be started, or not.
    Threads(bool),
    /// Shuts down.
    Shutdown,
    /// Shuts down at once.
    ShutdownNow,
    /// Asks whether the pool is quiescent, and waits for it if it is bound to be.
    Quiescence,
    /// Makes a completable future, or does something to one.
    Future(FutureStep),
    /// Checks readings of both sides: names and values.
    Expect(Vec<(String, String)>),
}

impl Step {
    /// The tasks it speaks of.
    pub fn numbers(&self) -> &[Number] {
        match self {
            Step::Submission(submission) => std::slice::from_ref(&submission.number),
            Step::Compute(computation) => std::slice::from_ref(&computation.number),
            Step::Future(step) => &step.names,
            Step::Release(numbers) => numbers,
            Step::Fail(number)
            | Step::Cancel(number)
            | Step::Interrupt(number)
            | Step::Remove(number) => std::slice::from_ref(number),
            _ => &[],
        }
    }

    /// The task that it submits.
    pub fn submits(&self) -> Option<Number> {
        match self {
            Step::Submission(submission) => Some(submission.number),
            Step::Compute(computation) => Some(computation.number),
            Step::Future(step) => step.makes().then_some(step.node),
            _ => None,
        }
    }

    /// Whether it is a step for pools of this kind.
    fn fits(&self, setup: &Setup) -> bool {
        let is_fork_join = matches!(setup, Setup::ForkJoin(_));
        if *setup == Setup::Futures {
            return matches!(self, Step::Future(_) | Step::Expect(_));
        }
        match self {
            Step::Future(_) => false,
            Step::Submission(submission) => is_fork_join || submission.forks == 0,
            Step::Compute(_) | Step::Quiescence => is_fork_join,
            Step::Release(_)
            | Step::Fail(_)
            | Step::Cancel(_)
            | Step::Shutdown
            | Step::ShutdownNow
            | Step::Expect(_) => true,
            // DIFF-12 is why a task of a fork-join pool is not interrupted.
            _ => !is_fork_join,
        }
    }

    /// Whether a player does something at this step; the others are for the judge.
    pub fn is_played(&self) -> bool {
        !matches!(self, Step::Expect(_))
    }
}

/// A pool, and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The pool.
    pub setup: Setup,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// The first contradiction in it, if any: the index of the step and the reason.
    ///
    /// # Errors
    ///
    /// The first step that cannot be played.
    pub fn check(&self) -> Result<(), (usize, String)> {
        let mut known = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let wrong = |reason: String| Err((index, reason));
            if let Some(number) = step.submits() {
                if known.contains(&number) {
                    return wrong(format!("task {number} has been submitted before"));
                }
                known.push(number);
            }
            if !step.fits(&self.setup) {
                return wrong(format!("`{step}` is not for a pool of this kind"));
            }
            if let Some(number) = step
                .numbers()
                .iter()
                .find(|&number| !known.contains(number))
            {
                return wrong(format!("task {number} has not been submitted"));
            }
            let queue = self.setup.pool().map(|pool| pool.queue);
            match step {
                Step::Capacity(_) if !matches!(queue, Some(Flavor::Linked(_))) => {
                    return wrong(
                        "only a queue `linked:N` can change its capacity (DIFF-7)".into(),
                    );
                }
                Step::Capacity(0) => {
                    return wrong("a capacity of 0 is another queue: begin with `hand-off`".into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The lines that go to a player: the pool, the steps it plays, and the end.
    pub fn lines(&self) -> Vec<String> {
        let steps = self.steps.iter().filter(|step| step.is_played());
        std::iter::once(self.setup.to_string())
            .chain(steps.map(Step::to_string))
            .chain(std::iter::once("end".to_owned()))
            .collect()
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setup::Pool(pool) => pool.fmt(f),
            Setup::ForkJoin(pool) => write!(
                f,
                "fork-join parallelism={} fifo={}",
                pool.parallelism,
                yes_or_no(pool.is_fifo)
            ),
            Setup::Futures => f.write_str("futures"),
        }
    }
}

impl fmt::Display for PoolSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pool core={} max={} queue={} policy={} keep-alive={} core-may-time-out={}",
            self.core,
            self.max,
            self.queue,
            self.policy.name(),
            self.keep_alive,
            yes_or_no(self.core_may_time_out)
        )
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flavor::Linked(bound) => write!(f, "linked:{bound}"),
            Flavor::Array(capacity) => write!(f, "array:{capacity}"),
            Flavor::Unbounded => f.write_str("unbounded"),
            Flavor::HandOff => f.write_str("hand-off"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Submission(submission) => {
                let verb = if submission.has_handle {
                    "submit"
                } else {
                    "run"
                };
                let manner = if submission.is_stubborn {
                    " stubborn"
                } else {
                    ""
                };
                write!(f, "{verb} {}{manner}", submission.number)?;
                match submission.forks {
                    0 => Ok(()),
                    forks => write!(f, " forks={forks}"),
                }
            }
            Step::Compute(computation) => {
                let verb = if computation.is_traced {
                    "trace"
                } else {
                    "compute"
                };
                write!(f, "{verb} {} {}", computation.number, computation.tree)
            }
            Step::Release(numbers) => {
                f.write_str("release")?;
                numbers.iter().try_for_each(|number| write!(f, " {number}"))
            }
            Step::Fail(number) => write!(f, "fail {number}"),
            Step::Cancel(number) => write!(f, "cancel {number}"),
            Step::Interrupt(number) => write!(f, "interrupt {number}"),
            Step::Remove(number) => write!(f, "remove {number}"),
            Step::Core(size) => write!(f, "core {size}"),
            Step::Max(size) => write!(f, "max {size}"),
            Step::Capacity(bound) => write!(f, "capacity {bound}"),
            Step::KeepAlive(seconds) => write!(f, "keep-alive {seconds}"),
            Step::CoreMayTimeOut(yes) => write!(f, "core-may-time-out {}", yes_or_no(*yes)),
            Step::Policy(policy) => write!(f, "policy {}", policy.name()),
            Step::Prestart => f.write_str("prestart"),
            Step::PrestartAll => f.write_str("prestart-all"),
            Step::IdleOut => f.write_str("idle-out"),
            Step::Threads(true) => f.write_str("threads work"),
            Step::Threads(false) => f.write_str("threads fail"),
            Step::Shutdown => f.write_str("shutdown"),
            Step::ShutdownNow => f.write_str("shutdown-now"),
            Step::Quiescence => f.write_str("quiescence"),
            Step::Future(step) => step.fmt(f),
            Step::Expect(readings) => {
                f.write_str("expect")?;
                let mut each = readings.iter();
                each.try_for_each(|(name, value)| write!(f, " {name}={value}"))
            }
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.setup)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

/// A yes or no, as scripts and logs spell it.
pub const fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}
