//! How do I run something by the calendar, also when clocks change?
//!
//! ```sh
//! cargo run -p examples --example 24_schedule_cron
//! ```
//!
//! ```text
//! # The weekend in which clocks go forward in Berlin, in UTC
//! 30 2 * * * (Europe/Berlin): Sat 01:30, Sun 01:00, Mon 00:30
//! 0 9 * * MON-FRI (Europe/Berlin): Mon 07:00
//! 0 */12 * * * (UTC): Sat 12:00, Sun 00:00, Sun 12:00, Mon 00:00, Mon 12:00
//! # What is wrong with it is said
//! cron "0 25 * * *": hour "25": "25" is not from 0 to 23: midnight is 0
//! # Every second, for two seconds
//! tick
//! tock
//! ```

#![forbid(unsafe_code)]

use millpond::executor::Lifecycle;
use millpond::preset;
use millpond::schedule::Cron;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);

fn main() -> Result<(), Box<dyn Error>> {
    println!("# The weekend in which clocks go forward in Berlin, in UTC");
    let berlin = "Europe/Berlin";
    show(&Cron::parse("30 2 * * *")?.in_zone(berlin)?);
    show(&Cron::parse("0 9 * * Mon-Fri")?.in_zone(berlin)?);
    show(&Cron::parse("0 */12 * * *")?);

    println!("# What is wrong with it is said");
    println!("{}", Cron::parse("0 25 * * *").unwrap_err());

    println!("# Every second, for two seconds");
    let timers = preset::scheduled("clock", 1)?;
    let mut sounds = ["tick", "tock"].into_iter().peekable();
    let clock = timers.schedule_cron(Cron::parse("* * * * * *")?, move || {
        if let Some(sound) = sounds.next() {
            println!("{sound}");
        }
        match sounds.peek() {
            Some(_) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        }
    })?;
    clock.join()?;
    timers.close()?;
    Ok(())
}

/// Its times from Saturday, 28 March 2026, to Monday.
fn show(cron: &Cron) {
    let saturday = SystemTime::UNIX_EPOCH + Duration::from_secs(1_774_656_000);
    let weekend = cron
        .upcoming(saturday)
        .filter_map(|time| time.duration_since(saturday).ok())
        .take_while(|since| *since < 3 * DAY)
        .map(|since| {
            let day = ["Sat", "Sun", "Mon"][(since.as_secs() / DAY.as_secs()) as usize];
            let minutes = since.as_secs() % DAY.as_secs() / 60;
            format!("{day} {:02}:{:02}", minutes / 60, minutes % 60)
        });
    println!("{cron}: {}", weekend.collect::<Vec<_>>().join(", "));
}
