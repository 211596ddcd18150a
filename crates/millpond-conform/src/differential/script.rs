//! A script: a pool to begin with, and steps.
//!
//! The text form is the one of the files, of the pipe to Java and of what is printed on failure;
//! `docs/differential.md` documents it. A script that was parsed is valid: a player needs to
//! check nothing.

use std::fmt;

/// The number of a task, as a script gives it.
pub type Number = u32;

/// The pool a script begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
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
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Submits a task.
    Submission(Submission),
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
    /// Checks readings of both sides: names and values.
    Expect(Vec<(String, String)>),
}

impl Step {
    /// The tasks it speaks of.
    pub fn numbers(&self) -> &[Number] {
        match self {
            Step::Submission(submission) => std::slice::from_ref(&submission.number),
            Step::Release(numbers) => numbers,
            Step::Fail(number)
            | Step::Cancel(number)
            | Step::Interrupt(number)
            | Step::Remove(number) => std::slice::from_ref(number),
            _ => &[],
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
            if let Step::Submission(submission) = step {
                if known.contains(&submission.number) {
                    return wrong(format!(
                        "task {} has been submitted before",
                        submission.number
                    ));
                }
                known.push(submission.number);
            }
            if let Some(number) = step
                .numbers()
                .iter()
                .find(|&number| !known.contains(number))
            {
                return wrong(format!("task {number} has not been submitted"));
            }
            match step {
                Step::Capacity(_) if !matches!(self.setup.queue, Flavor::Linked(_)) => {
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
                write!(f, "{verb} {}{manner}", submission.number)
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
