//! What a task costs: wall and CPU time, or instructions by stage.
//!
//! ```text
//! cargo run --release -p millpond-bench --example cost -- time  [tasks=N] [producers=N] [rounds=N] [plain] [join] [cpus=1]
//! cargo run --release -p millpond-bench --example cost -- count [tasks=N] [producers=N] [plain] [join]
//! ```
//!
//! `time` submits tiny tasks to a pool of two workers, and prints the nanoseconds a task of each round. `count` runs
//! that in `valgrind --tool=callgrind`, once with few tasks and once with many, and prints the difference a task:
//! instructions and locked instructions, by the source file that they come from, which is the stage. Under callgrind
//! one thread runs at a time, so the counts are those of a machine with one CPU. `plain` is a pool without metrics,
//! `join` joins the tasks in groups of a thousand.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "it measures from outside")]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{Queue, ThreadPool};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What is to be done.
#[derive(Clone, Copy)]
struct Plan {
    tasks: u64,
    producers: u64,
    rounds: u32,
    is_plain: bool,
    joins: bool,
}

impl Plan {
    fn parse(words: &[String]) -> Outcome<Plan> {
        let mut plan = Plan {
            tasks: 1_000_000,
            producers: 1,
            rounds: 5,
            is_plain: false,
            joins: false,
        };
        for word in words {
            match word.split_once('=') {
                None if word == "plain" => plan.is_plain = true,
                None if word == "join" => plan.joins = true,
                Some(("tasks", number)) => plan.tasks = number.parse()?,
                Some(("producers", number)) => plan.producers = number.parse()?,
                Some(("rounds", number)) => plan.rounds = number.parse()?,
                _ => {
                    let help = "write tasks=N, producers=N, rounds=N, plain or join";
                    return Err(format!("what is `{word}`? {help}").into());
                }
            }
        }
        Ok(plan)
    }

    fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("tasks={}", self.tasks),
            format!("producers={}", self.producers),
            format!("rounds={}", self.rounds),
        ];
        words.extend(self.is_plain.then(|| "plain".to_owned()));
        words.extend(self.joins.then(|| "join".to_owned()));
        words
    }

    fn pool(&self) -> Outcome<ThreadPool> {
        let builder = ThreadPool::builder("cost")
            .core(2)
            .max(2)
            .queue(Queue::unbounded());
        let builder = if self.is_plain {
            builder.without_metrics()
        } else {
            builder
        };
        Ok(builder.build()?)
    }

    /// One round: all tasks are submitted, and have run when it returns.
    fn run(&self, pool: &ThreadPool, done: u64) -> Outcome<()> {
        let share = self.tasks / self.producers;
        std::thread::scope(|scope| {
            for _ in 1..self.producers {
                scope.spawn(|| self.produce(pool, share));
            }
            self.produce(pool, share);
        });
        while pool.snapshot().completed < done + share * self.producers {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn produce(&self, pool: &ThreadPool, share: u64) {
        if self.joins {
            for _ in 0..share / 1000 {
                let handles: Vec<_> = (0..1000_u64)
                    .map(|number| pool.submit(move || black_box(number)).expect("it is open"))
                    .collect();
                for handle in handles {
                    handle.join().expect("it runs");
                }
            }
        } else {
            for number in 0..share {
                pool.execute(move || {
                    black_box(number);
                })
                .expect("it is open");
            }
        }
    }
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (verb, words) = words.split_first().ok_or("say `time` or `count`")?;
    let plan = Plan::parse(words)?;
    match verb.as_str() {
        "time" => time(&plan),
        "count" => count(&plan),
        _ => Err(format!("what is `{verb}`? say `time` or `count`").into()),
    }
}

fn time(plan: &Plan) -> Outcome<()> {
    let pool = plan.pool()?;
    for round in 0..plan.rounds {
        let (start, cpu) = (Instant::now(), cpu_time()?);
        plan.run(&pool, pool.snapshot().completed)?;
        let (wall, cpu) = (start.elapsed(), cpu_time()?.saturating_sub(cpu));
        let per_task = |time: Duration| time.as_nanos() as f64 / plan.tasks as f64;
        println!(
            "round {round}: {:.1} ns a task, {:.1} ns of CPU",
            per_task(wall),
            per_task(cpu)
        );
    }
    pool.close()?;
    Ok(())
}

/// The time that the threads of this process have had a CPU.
fn cpu_time() -> Outcome<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += text
            .split(' ')
            .next()
            .ok_or("no schedstat")?
            .parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Instructions and locked instructions.
type Costs = [f64; 2];

fn count(plan: &Plan) -> Outcome<()> {
    let few = Plan {
        tasks: 50_000,
        rounds: 1,
        ..*plan
    };
    let many = Plan {
        tasks: 250_000,
        ..few
    };
    let (before, after) = (count_in(&few)?, count_in(&many)?);
    let tasks = (many.tasks - few.tasks) as f64;
    let mut rows: Vec<(&String, Costs)> = Vec::new();
    for (file, costs) in &after {
        let less = before.get(file).copied().unwrap_or_default();
        let each = [0, 1].map(|event| (costs[event] - less[event]) / tasks);
        if each[0] >= 0.05 {
            rows.push((file, each));
        }
    }
    rows.sort_by(|one, other| other.1[0].total_cmp(&one.1[0]));
    println!("{:>12} {:>8}  file", "instructions", "locked");
    for (file, [instructions, locked]) in &rows {
        println!("{instructions:>12.1} {locked:>8.2}  {file}");
    }
    let sum = |event: usize| rows.iter().map(|(_, costs)| costs[event]).sum::<f64>();
    println!("{:>12.1} {:>8.2}  all", sum(0), sum(1));
    Ok(())
}

/// The costs of a run of this program, by source file.
fn count_in(plan: &Plan) -> Outcome<BTreeMap<String, Costs>> {
    let out = std::env::temp_dir().join(format!("millpond-cost-{}", std::process::id()));
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--collect-bus=yes"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .arg("time")
        .args(plan.words())
        .stdout(std::process::Stdio::null())
        .status()?;
    if !status.success() {
        return Err("valgrind has failed".into());
    }
    let text = fs::read_to_string(&out)?;
    fs::remove_file(&out)?;
    Ok(by_file(&text))
}

/// Adds up a file of callgrind's, by source file. Calls are left out: what is called has lines of its own.
fn by_file(text: &str) -> BTreeMap<String, Costs> {
    let (mut files, mut sums) = (BTreeMap::new(), BTreeMap::<String, Costs>::new());
    let (mut file, mut is_call) = (String::new(), false);
    for line in text.lines() {
        if let Some((key, value)) = line.split_once('=') {
            let (id, name) = value.split_once(' ').unwrap_or((value, ""));
            let is_file = matches!(key, "fl" | "fi" | "fe" | "cfi" | "cfl");
            if is_file && !name.is_empty() {
                files.insert(id.to_owned(), short(name));
            }
            if matches!(key, "fl" | "fi" | "fe") {
                file = files.get(id).cloned().unwrap_or_default();
            }
            is_call |= key == "calls";
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            && !std::mem::take(&mut is_call)
        {
            let costs = line
                .split(' ')
                .skip(1)
                .map(|cost| cost.parse().unwrap_or(0.0));
            let sum = sums.entry(file.clone()).or_default();
            sum.iter_mut()
                .zip(costs)
                .for_each(|(sum, cost): (&mut f64, f64)| *sum += cost);
        }
    }
    sums
}

/// The path from the crate on.
fn short(path: &str) -> String {
    let after = |mark: &str| path.rsplit_once(mark).map(|(_, rest)| rest.to_owned());
    after("/crates/")
        .or_else(|| after("/library/").map(|rest| format!("std: {rest}")))
        .unwrap_or_else(|| path.to_owned())
}
