//! How do I ask several and take the first answer?
//!
//! ```sh
//! cargo run -p examples --example 07_first_answer_wins
//! ```
//!
//! ```text
//! the answer: the file, from mirror b
//! the slow one was asked to stop: 0 threads are left
//! no answer at all: all 2 tasks failed, the last one: no answer
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::interrupt;
use std::error::Error;
use std::time::Duration;

#[derive(Clone, Copy)]
enum Mirror {
    Slow,
    Down,
    Up(&'static str),
}

impl Mirror {
    fn fetch(self) -> Result<String, String> {
        match self {
            Mirror::Up(name) => Ok(format!("the file, from mirror {name}")),
            Mirror::Down => Err("no answer".to_owned()),
            // An hour, unless it is interrupted.
            Mirror::Slow => match interrupt::sleep(Duration::from_secs(3600)) {
                Ok(()) => Ok("the file, an hour later".to_owned()),
                Err(interrupted) => Err(interrupted.to_string()),
            },
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let threads = ThreadPerTask::builder("mirrors", 8).build()?;

    let mirrors = [Mirror::Slow, Mirror::Down, Mirror::Up("b")];
    let answer = threads.invoke_any(mirrors.map(|mirror| move || mirror.fetch()))?;
    println!("the answer: {answer}");

    let mirrors = [Mirror::Down, Mirror::Down];
    let failed = threads.invoke_any(mirrors.map(|mirror| move || mirror.fetch()));

    // This would take an hour if the slow one had been left alone.
    threads.close()?;
    let left = threads.threads();
    println!("the slow one was asked to stop: {left} threads are left");
    if let Err(error) = failed {
        println!("no answer at all: {error}");
    }
    Ok(())
}
