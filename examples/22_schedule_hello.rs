//! How do I run something later, and again and again?
//!
//! ```sh
//! cargo run -p examples --example 22_schedule_hello
//! ```
//!
//! ```text
//! after a moment: bread
//! turn 1
//! turn 2
//! turn 3
//! the wheel stands still after turn 3
//! waiting for their time: 1
//! cancelled: true
//! waiting for their time: 0
//! runs: 4
//! ```

#![forbid(unsafe_code)]

use millpond::executor::Lifecycle;
use millpond::preset;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let timers = preset::scheduled("mill", 2)?;

    let bread = timers.schedule(Duration::from_millis(20), || "bread")?;
    println!("after a moment: {}", bread.join()?);

    // A closure that returns nothing is called for ever; this one says when to stop.
    let mut turn = 0;
    let wheel =
        timers.schedule_at_fixed_rate(Duration::ZERO, Duration::from_millis(5), move || {
            turn += 1;
            println!("turn {turn}");
            match turn {
                3 => ControlFlow::Break(turn),
                _ => ControlFlow::Continue(()),
            }
        })?;
    println!("the wheel stands still after turn {}", wheel.join()?);

    // A cancelled task leaves at once, however far away its time was.
    let tomorrow = timers.schedule(Duration::from_secs(86_400), || ())?;
    println!("waiting for their time: {}", timers.snapshot().pending);
    println!("cancelled: {}", tomorrow.cancel());
    println!("waiting for their time: {}", timers.snapshot().pending);

    timers.close()?;
    println!("runs: {}", timers.snapshot().runs);
    Ok(())
}
