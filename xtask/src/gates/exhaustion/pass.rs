//! Bodies that are refused threads, each in a process of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::child::{self, Ran};
use super::judge::{self, Verdict};
use super::{AGAIN, Body, HASTY, Row};
use crate::house::House;
use crate::stage::Stage;

/// How many run at once. Most of them wait for something, so they are more than there are CPUs.
const AT_ONCE: usize = 6;

/// Longer than the kit's own watchdog has patience, which says more than we can.
const LIMIT: Duration = Duration::from_secs(20);

/// How many get a second look. Where more are at fault, nobody doubts the rest.
const MOST_AGAIN: usize = 24;

/// Progress is told so often.
const STEP: usize = 250;

/// Runs the bodies; also returns those that were refused a thread.
pub(super) fn run<'a>(
    house: &House,
    stage: &mut Stage,
    condition: &str,
    bodies: &[Body<'a>],
) -> Result<(Row, Vec<Body<'a>>)> {
    let begin = Instant::now();
    let mut row = Row::new(condition);
    let mut refused = Vec::new();
    let mut doubtful = Vec::new();
    each(
        house,
        stage,
        condition,
        bodies,
        HASTY,
        judge::of_refused,
        |body, ran, verdict| {
            if judge::refusals(&ran.output) > 0 {
                refused.push(body);
            }
            match verdict {
                Verdict::Fault(..) if doubtful.len() < MOST_AGAIN => {
                    doubtful.push(body);
                    None
                }
                verdict => row.count(body, HASTY, verdict),
            }
        },
    )?;
    let factor = HASTY * AGAIN;
    each(
        house,
        stage,
        condition,
        &doubtful,
        factor,
        judge::of_refused,
        |body, _, verdict| row.count(body, factor, verdict),
    )?;
    row.time = begin.elapsed();
    Ok((row, refused))
}

/// Runs each body alone, some at a time, and hands over what became of it. What comes back is told.
pub(super) fn each<'a>(
    house: &House,
    stage: &mut Stage,
    condition: &str,
    bodies: &[Body<'a>],
    factor: f64,
    judge: fn(&Ran) -> Verdict,
    mut ended: impl FnMut(Body<'a>, &Ran, Verdict) -> Option<String>,
) -> Result<()> {
    let limit = LIMIT.mul_f64((factor / HASTY).max(1.0));
    let next = AtomicUsize::new(0);
    let trouble = Mutex::new(None);
    thread::scope(|scope| {
        let (send, results) = mpsc::channel();
        for _ in 0..AT_ONCE {
            let (send, next, trouble) = (send.clone(), &next, &trouble);
            scope.spawn(move || {
                while let Some(&body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut command = body.command(&house.root, condition, factor);
                    match child::run(&mut command, limit) {
                        Ok(ran) => drop(send.send((body, ran))),
                        Err(error) => *trouble.lock().expect("nobody panics with it") = Some(error),
                    }
                }
            });
        }
        drop(send);
        for (number, (body, ran)) in results.iter().enumerate() {
            let verdict = judge(&ran);
            if let Some(fault) = ended(body, &ran, verdict) {
                stage.say(&fault)?;
            }
            if (number + 1) % STEP == 0 || number + 1 == bodies.len() {
                stage.say(&format!(
                    "{condition}: {} of {} bodies",
                    number + 1,
                    bodies.len()
                ))?;
            }
        }
        Ok::<_, anyhow::Error>(())
    })?;
    match trouble.into_inner().expect("nobody panics with it") {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
