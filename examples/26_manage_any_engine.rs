//! How do I show and change an engine that my console has never heard of?
//!
//! ```sh
//! cargo run -p examples --example 26_manage_any_engine
//! ```
//!
//! ```text
//! orders, a thread pool: core, max, keep_alive, core_may_time_out, growth, queue, capacity, rejection, max_queue_wait, shedding_target, shedding_interval, overload_order, finish_percentile, run_warning, max_task_names
//! bells, a scheduled pool: max_pending, run_delayed_after_shutdown, run_series_after_shutdown
//! sums, a fork-join pool: parallelism, max_spares, keep_alive, fifo, help, run_warning, max_task_names
//! orders: capacity = 1024 tasks (an integer from 1 on; default 1024): The most tasks that may wait in the queue.
//! orders: capacity: 1024 -> 64
//! bells: max_pending: 1048576 -> 500
//! orders stays as it is: core cannot be `lots`: write an integer from 0 to 536870911
//! orders stays as it is: there is no parameter `capacty`: did you mean capacity?
//! orders stays as it is: core 9 is above max 4: raise max or lower core, or change both at once
//! orders ended: 3 completed, 0 failed; wheat ran 3 times
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::{Managed, Patch};
use millpond::pool::ThreadPool;
use millpond::preset;
use millpond::task::TaskSpec;
use std::error::Error;

/// The console: it knows the trait and nothing else.
fn show(engine: &dyn Managed) {
    let now = engine.engine_snapshot();
    let names: Vec<_> = engine
        .parameters()
        .into_iter()
        .map(|each| each.name)
        .collect();
    println!("{}, a {}: {}", now.name, now.kind, names.join(", "));
}

/// Changes parameters by name, all or none, from text as it is in a file or an input field.
fn change(engine: &dyn Managed, all: &[(&'static str, &str)]) {
    let name = engine.name();
    let patch = all
        .iter()
        .fold(Patch::new(), |patch, (name, text)| patch.set(*name, *text));
    match engine.apply(&patch) {
        Ok(changes) => {
            for change in changes {
                println!("{name}: {change}");
            }
        }
        Err(error) => println!("{name} stays as it is: {error}"),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let orders = ThreadPool::builder("orders").core(2).max(4).build()?;
    let bells = preset::scheduled("bells", 1)?;
    let sums = ForkJoinPool::builder("sums").build()?;

    let engines: [&dyn Managed; 3] = [&orders, &bells, &sums];
    for engine in engines {
        show(engine);
    }
    let capacity = orders
        .parameters()
        .into_iter()
        .find(|each| each.name == "capacity");
    println!("orders: {}", capacity.expect("it has one"));

    change(&orders, &[("capacity", "64")]);
    change(&bells, &[("max_pending", "500")]);
    for wrong in [("core", "lots"), ("capacty", "64"), ("core", "9")] {
        change(&orders, &[wrong, ("keep_alive", "5s")]);
    }

    for _ in 0..3 {
        orders
            .submit_with(TaskSpec::new().name("wheat"), || "flour")?
            .join()?;
    }
    orders.close()?;
    bells.close()?;
    sums.close()?;
    let end = orders.engine_snapshot();
    let wheat = &end.latencies[0];
    println!(
        "{} ended: {} completed, {} failed; {} ran {} times",
        end.name,
        end.completed,
        end.failed,
        wheat.task,
        wheat.run.count()
    );
    Ok(())
}
