use super::*;
use std::sync::mpsc;
use std::time::Duration;

/// Long enough to cancel what is due then.
const SOON: Duration = Duration::from_millis(20);
const NEVER: Duration = Duration::from_secs(3_600);

/// No task runs before it is due, and what is cancelled does not run. Which of two comes first is up to
/// their workers, where the machine lets both become due at once.
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
    let mut ran = [told.recv().ok(), told.recv().ok()];
    ran.sort_unstable();
    let expected = [Some(("first", true)), Some(("second", true))];
    assert_eq!(ran, expected, "{}", T::NAME);
    // Once it is closed no thread holds a task any more, so nothing else can come.
    timers.close();
    let late: Vec<_> = told.iter().collect();
    assert!(late.is_empty(), "{}: {late:?}", T::NAME);
}

#[test]
fn every_candidate_keeps_time_and_fires_no_cancelled_timer() {
    keeps_time::<millpond::Millpond>();
    keeps_time::<delay_queue::Delayed>();
    keeps_time::<scheduled_thread_pool::Scheduled>();
    keeps_time::<tokio::Sleep>();
    keeps_time::<tokio::Queue>();
    keeps_time::<async_io::AsyncIo>();
}
