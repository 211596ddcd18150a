//! Reads scripts, and says what is wrong with one and where.

use super::futures::FutureStep;
use super::script::{
    Computation, Flavor, ForkJoinSetup, Number, Policy, PoolSetup, Script, Setup, Step, Submission,
};
use super::tree;
use std::fmt;
use std::str::FromStr;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Script {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let lines = text.lines().enumerate().map(|(index, line)| {
            let code = line.split('#').next().unwrap_or_default();
            (index + 1, code.split_whitespace().collect::<Vec<_>>())
        });
        let mut lines = lines.filter(|(_, words)| !words.is_empty());
        let at = |line: usize| move |problem: String| ParseError { line, problem };
        let Some((line, words)) = lines.next() else {
            return Err(at(1)("there is no step in it".into()));
        };
        let setup = setup(&words).map_err(at(line))?;
        let (mut steps, mut places) = (Vec::new(), Vec::new());
        for (line, words) in lines {
            steps.push(step(&words).map_err(at(line))?);
            places.push(line);
        }
        let script = Script { setup, steps };
        match script.check() {
            Ok(()) => Ok(script),
            Err((index, problem)) => Err(at(places[index])(problem)),
        }
    }
}

fn setup(words: &[&str]) -> Result<Setup, String> {
    match words {
        ["pool", settings @ ..] => pool(settings).map(Setup::Pool),
        ["fork-join", settings @ ..] => fork_join(settings).map(Setup::ForkJoin),
        ["futures"] => Ok(Setup::Futures),
        _ => Err("a script begins with its pool: `pool core=1 max=2 ...`".into()),
    }
}

fn fork_join(settings: &[&str]) -> Result<ForkJoinSetup, String> {
    let mut setup = ForkJoinSetup {
        parallelism: 0,
        is_fifo: false,
    };
    for setting in settings {
        let (name, value) = pair(setting)?;
        match name {
            "parallelism" => setup.parallelism = number(value)?,
            "fifo" => setup.is_fifo = yes(value)?,
            _ => return Err(format!("a fork-join pool has no `{name}`")),
        }
    }
    match setup.parallelism {
        0 => Err("the pool needs `parallelism=...`, at least 1".into()),
        _ => Ok(setup),
    }
}

fn pool(settings: &[&str]) -> Result<PoolSetup, String> {
    // Defaults for parts that most scripts leave out.
    let mut setup = PoolSetup {
        core: 0,
        max: 0,
        queue: Flavor::Unbounded,
        policy: Policy::Abort,
        keep_alive: 60,
        core_may_time_out: false,
    };
    let mut missing = vec!["core", "max", "queue"];
    for setting in settings {
        let (name, value) = pair(setting)?;
        match name {
            "core" => setup.core = number(value)?,
            "max" => setup.max = number(value)?,
            "queue" => setup.queue = queue(value)?,
            "policy" => setup.policy = policy(value)?,
            "keep-alive" => setup.keep_alive = number(value)?,
            "core-may-time-out" => setup.core_may_time_out = yes(value)?,
            _ => return Err(format!("a pool has no `{name}`")),
        }
        missing.retain(|needed| *needed != name);
    }
    match missing.first() {
        None => Ok(setup),
        Some(name) => Err(format!("the pool needs `{name}=...`")),
    }
}

fn step(words: &[&str]) -> Result<Step, String> {
    if let Some(step) = FutureStep::read(words) {
        return step.map(Step::Future);
    }
    let first = words.first().copied().unwrap_or_default();
    Ok(match words {
        ["submit" | "run", task, manner @ ..] => {
            let (is_stubborn, manner) = match manner {
                ["stubborn", manner @ ..] => (true, manner),
                _ => (false, manner),
            };
            let forks = match manner {
                [] => 0,
                [forks] if forks.starts_with("forks=") => number(pair(forks)?.1)?,
                _ => return Err(format!("`{}` is no manner of task", manner.join(" "))),
            };
            Step::Submission(Submission {
                number: number(task)?,
                has_handle: words[0] == "submit",
                is_stubborn,
                forks,
            })
        }
        ["compute" | "trace", task, words @ ..] => Step::Compute(Computation {
            number: number(task)?,
            is_traced: first == "trace",
            tree: tree::read(words)?,
        }),
        ["release", tasks @ ..] if !tasks.is_empty() => Step::Release(numbers(tasks)?),
        ["fail", task] => Step::Fail(number(task)?),
        ["cancel", task] => Step::Cancel(number(task)?),
        ["interrupt", task] => Step::Interrupt(number(task)?),
        ["remove", task] => Step::Remove(number(task)?),
        ["core", size] => Step::Core(number(size)?),
        ["max", size] => Step::Max(number(size)?),
        ["capacity", bound] => Step::Capacity(number(bound)?),
        ["keep-alive", seconds] => Step::KeepAlive(number(seconds)?),
        ["core-may-time-out", word] => Step::CoreMayTimeOut(yes(word)?),
        ["policy", name] => Step::Policy(policy(name)?),
        ["prestart"] => Step::Prestart,
        ["prestart-all"] => Step::PrestartAll,
        ["idle-out"] => Step::IdleOut,
        ["threads", "work"] => Step::Threads(true),
        ["threads", "fail"] => Step::Threads(false),
        ["shutdown"] => Step::Shutdown,
        ["shutdown-now"] => Step::ShutdownNow,
        ["quiescence"] => Step::Quiescence,
        ["expect", readings @ ..] if !readings.is_empty() => {
            let owned =
                |word: &&str| pair(word).map(|(name, value)| (name.to_owned(), value.to_owned()));
            Step::Expect(readings.iter().map(owned).collect::<Result<_, _>>()?)
        }
        _ => return Err(format!("`{}` is no step", words.join(" "))),
    })
}

fn pair(word: &str) -> Result<(&str, &str), String> {
    word.split_once('=')
        .ok_or_else(|| format!("`{word}` should be `name=value`"))
}

fn number<N: FromStr>(word: &str) -> Result<N, String> {
    word.parse()
        .map_err(|_| format!("`{word}` should be a number"))
}

fn numbers(words: &[&str]) -> Result<Vec<Number>, String> {
    words.iter().map(|word| number(word)).collect()
}

fn yes(word: &str) -> Result<bool, String> {
    match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("`{word}` should be `yes` or `no`")),
    }
}

fn policy(name: &str) -> Result<Policy, String> {
    let mut all = Policy::ALL.into_iter();
    all.find(|policy| policy.name() == name).ok_or_else(|| {
        let names = Policy::ALL.map(Policy::name).join(", ");
        format!("no policy is called `{name}`; there are: {names}")
    })
}

fn queue(word: &str) -> Result<Flavor, String> {
    let line = match word.split_once(':') {
        Some(("linked", bound)) => Flavor::Linked(number(bound)?),
        Some(("array", capacity)) => Flavor::Array(number(capacity)?),
        None if word == "unbounded" => Flavor::Unbounded,
        None if word == "hand-off" => Flavor::HandOff,
        _ => {
            let there_are = "there are: linked:N, array:N, unbounded, hand-off";
            return Err(format!("no queue is called `{word}`; {there_are}"));
        }
    };
    match line {
        Flavor::Linked(0) | Flavor::Array(0) => Err("a queue for 0 tasks is `hand-off`".into()),
        _ => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "pool core=1 max=2 queue=linked:3 policy=discard keep-alive=5 core-may-time-out=yes\n\
        submit 1\nrun 2 stubborn\nrelease 1 2\nfail 2\ncancel 1\ninterrupt 1\nremove 1\ncore 0\nmax 9\n\
        capacity 7\nkeep-alive 0\ncore-may-time-out no\npolicy caller-runs\nprestart\nprestart-all\n\
        idle-out\nthreads fail\nthreads work\nexpect size=1 queue=[2,3]\nshutdown\nshutdown-now\n";

    #[test]
    fn every_step_is_read_as_it_is_written() {
        let script: Script = ALL.parse().unwrap();
        assert_eq!(script.to_string(), ALL);
        assert_eq!(
            script.lines().len(),
            ALL.lines().count(),
            "all but `expect`, and the end"
        );
    }

    #[test]
    fn a_script_of_a_fork_join_pool_is_read_as_it_is_written() {
        let text = "fork-join parallelism=1 fifo=yes\nsubmit 1 forks=3\nrun 2 stubborn forks=1\n\
            trace 3 (two 1 !2)\ncompute 4 (try !5)\nquiescence\nshutdown-now\n";
        let script: Script = text.parse().unwrap();
        assert_eq!(script.to_string(), text);
        let foreign = format!("{text}core 2\n").parse::<Script>().unwrap_err();
        assert_eq!(
            foreign.to_string(),
            "line 8: `core 2` is not for a pool of this kind"
        );
    }

    #[test]
    fn comments_blank_lines_and_defaults_may_be_left_out() {
        let script: Script = "# Two.\n\n pool core=1 max=1 queue=hand-off # none\n submit 1\n"
            .parse()
            .unwrap();
        let pool = script.setup.pool().unwrap();
        assert_eq!(pool.policy, Policy::Abort);
        assert_eq!(pool.keep_alive, 60);
        assert_eq!(script.steps.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let problems = [
            ("", "line 1: there is no step in it"),
            ("submit 1", "line 1: a script begins with its pool"),
            ("pool core=1 max=2", "line 1: the pool needs `queue=...`"),
            (
                "pool core=1 max=2 queue=heap:2",
                "line 1: no queue is called `heap:2`",
            ),
            (
                "pool core=1 max=2 queue=array:0",
                "line 1: a queue for 0 tasks is `hand-off`",
            ),
            (
                "pool core=1 max=2 queue=array:1 policy=pray",
                "line 1: no policy is called `pray`",
            ),
        ];
        let after_pool = [
            ("sumbit 1", "line 3: `sumbit 1` is no step"),
            ("submit one", "line 3: `one` should be a number"),
            ("submit 1 quietly", "line 3: `quietly` is no manner of task"),
            ("release", "line 3: `release` is no step"),
            ("release 1", "line 3: task 1 has not been submitted"),
            (
                "submit 1\nrun 1",
                "line 4: task 1 has been submitted before",
            ),
            (
                "capacity 2",
                "line 3: only a queue `linked:N` can change its capacity",
            ),
            (
                "core-may-time-out maybe",
                "line 3: `maybe` should be `yes` or `no`",
            ),
            ("expect size", "line 3: `size` should be `name=value`"),
        ];
        let after_pool = after_pool.map(|(steps, problem)| {
            let text = format!("pool core=1 max=1 queue=array:1\n\n{steps}\n");
            (text, problem)
        });
        let problems = problems.map(|(text, problem)| (text.to_owned(), problem));
        for (text, problem) in problems.into_iter().chain(after_pool) {
            let error = text.parse::<Script>().expect_err(&text).to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
