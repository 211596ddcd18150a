use super::*;
use std::sync::mpsc;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(5);
const NEVER: Duration = Duration::from_secs(3_600);

/// Tasks run in the order of their due times and not before; what is cancelled does not run.
fn keeps_time<T: Timers>() {
    let mut timers = T::open().unwrap();
    let (tell, told) = mpsc::channel();
    let start = Instant::now();
    let task = |name: &'static str, due: Instant| {
        let tell = tell.clone();
        move || {
            let _ = tell.send((name, Instant::now() >= due));
        }
    };
    let [first, second, cancelled] = [SOON, 3 * SOON, 2 * SOON].map(|after| start + after);
    drop(timers.schedule(second, task("second", second)));
    drop(timers.schedule(first, task("first", first)));
    let ticket = timers.schedule(cancelled, task("cancelled", cancelled));
    timers.cancel(ticket);
    drop(timers.schedule(start + NEVER, task("never", start + NEVER)));
    drop(tell);
    timers.drive(2);
    assert_eq!(told.recv(), Ok(("first", true)), "{}", T::NAME);
    assert_eq!(told.recv(), Ok(("second", true)), "{}", T::NAME);
    // Once it is closed nobody holds a task any more, so nothing else can come.
    timers.close();
    let late: Vec<_> = told.iter().collect();
    assert!(late.is_empty(), "{}: {late:?}", T::NAME);
}

#[test]
fn everybody_keeps_time_and_forgets_what_was_cancelled() {
    keeps_time::<millpond::Millpond>();
    keeps_time::<scheduled_thread_pool::Scheduled>();
    keeps_time::<tokio::Sleep>();
    keeps_time::<tokio::Queue>();
}
