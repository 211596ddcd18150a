//! The demo for programs: one JSON object per line, for each second one, and one for the end.
//!
//! `{"second":1,"tide":0.3,"load":100,"pools":[{..},{..},{..}]}` and at last `{"summary":{..}}`. Times
//! are in microseconds and null where nothing ended; rates are per second.

use anyhow::Result;
use serde::Serialize;

use super::lines::{Second, Writing};
use super::reading::{Flow, Reading, Times};
use super::shop::{Books, Counts};

#[derive(Debug)]
pub(super) struct Json;

#[derive(Serialize)]
struct Line<'a> {
    second: u64,
    tide: f64,
    load: u32,
    pools: Vec<Pool<'a>>,
}

#[derive(Serialize)]
struct Pool<'a> {
    name: &'a str,
    state: String,
    core: usize,
    max: usize,
    workers: usize,
    active: usize,
    extra_threads: usize,
    queued: usize,
    capacity: Option<usize>,
    growth: String,
    policy: String,
    in_per_second: f64,
    out_per_second: f64,
    refused_per_second: f64,
    wait_p50_us: Option<f64>,
    wait_p99_us: Option<f64>,
    run_p50_us: Option<f64>,
    run_p99_us: Option<f64>,
    /// Since the shop was opened.
    so_far: Counts,
}

impl<'a> Pool<'a> {
    fn new(reading: &'a Reading, flow: &Flow) -> Self {
        let pool = &reading.snapshot;
        let p50 = |times: Option<Times>| times.map(|times| times.p50.as_nanos() as f64 / 1e3);
        let p99 = |times: Option<Times>| times.map(|times| times.p99.as_nanos() as f64 / 1e3);
        Pool {
            name: &pool.name,
            state: pool.state.to_string(),
            core: pool.core,
            max: pool.max,
            workers: pool.workers,
            active: pool.active,
            extra_threads: pool.extra_threads,
            queued: pool.queued,
            capacity: pool.capacity,
            growth: pool.growth.to_string(),
            policy: reading.policy.to_string(),
            in_per_second: flow.came,
            out_per_second: flow.done,
            refused_per_second: flow.rejected,
            wait_p50_us: p50(flow.wait),
            wait_p99_us: p99(flow.wait),
            run_p50_us: p50(flow.run),
            run_p99_us: p99(flow.run),
            so_far: reading.counts,
        }
    }
}

impl Writing for Json {
    fn head(&self, _names: &[&str]) -> String {
        String::new()
    }

    fn second(&self, second: &Second) -> Result<String> {
        let pools = second.pools.iter();
        line(&Line {
            second: second.number,
            tide: second.tide,
            load: second.load,
            pools: pools
                .map(|(reading, flow)| Pool::new(reading, flow))
                .collect(),
        })
    }

    fn closing(&self, _inside: u64) -> String {
        String::new()
    }
}

/// The last line.
pub(super) fn summary(books: &Books) -> Result<String> {
    #[derive(Serialize)]
    struct Last<'a> {
        summary: &'a Books,
    }
    line(&Last { summary: books })
}

fn line(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}
