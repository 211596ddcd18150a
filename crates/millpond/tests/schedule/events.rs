//! Floods of events: bounded, and the rest is told.

use millpond::executor::{Executor, Lifecycle, RejectReason, Rejected, TryExecuteError};
use millpond::schedule::{ScheduleEvent, ScheduledPool};
use millpond::task::Task;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Rejects everything.
#[derive(Debug)]
struct Full;

impl Executor for Full {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        Err(Rejected::new(task, RejectReason::Interrupted))
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }
}

#[test]
fn a_listener_that_does_not_keep_up_is_told_how_many_events_it_has_missed() {
    const TASKS: u64 = 5_000;
    let ((tell, told), (open, gate)) = (channel(), channel::<()>());
    let (tell, gate) = (Mutex::new(tell), Mutex::new(gate));
    let timers = ScheduledPool::on(Full)
        .name("mill")
        .on_event(move |event| {
            tell.lock().unwrap().send(event.clone()).unwrap();
            let _ = gate.lock().unwrap().recv();
        })
        .build();
    let reject = || {
        let task = timers.schedule(Duration::ZERO, || ()).unwrap();
        assert!(task.join().unwrap_err().is_cancelled());
    };
    reject();
    let first = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(first, ScheduleEvent::Rejected(_)), "{first}");
    (1..TASKS).for_each(|_| reject());
    assert_eq!(timers.snapshot().rejected_when_due, TASKS);
    drop(open);
    let (mut heard, mut missed) = (1, 0);
    while heard + missed < TASKS {
        match told.recv_timeout(Duration::from_secs(60)).unwrap() {
            ScheduleEvent::Rejected(_) => heard += 1,
            event => {
                let ScheduleEvent::Dropped { events, .. } = &event else {
                    panic!("nothing else has happened: {event}");
                };
                missed += events;
                let text =
                    format!("mill: {events} more events were dropped, because they came too fast");
                assert_eq!(event.to_string(), text);
            }
        }
    }
    assert!(heard < 200, "{heard} events waited");
    timers.close().unwrap();
}

#[test]
#[cfg(feature = "tracing")]
fn without_a_listener_a_flood_is_logged_in_part_and_the_rest_is_told_at_the_end() {
    use crate::kit::{InPlace, SECOND};
    use millpond::schedule::{Every, OnFailure};
    use millpond::time::ManualClock;
    use std::fmt::Debug;
    use std::sync::Arc;
    use tracing::field::{Field, Visit};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Lines {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            event.record(&mut self.clone());
        }
    }

    impl Visit for Lines {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            // The text of the event, not the fields beside it.
            if field.name() == "message" {
                self.0.lock().unwrap().push(format!("{value:?}"));
            }
        }
    }

    let lines = Lines::default();
    let log = tracing_subscriber::registry().with(lines.clone());
    // By a manual clock events are logged where they arise: on this thread.
    tracing::subscriber::with_default(log, || {
        let clock = ManualClock::new();
        let timers = ScheduledPool::on(InPlace(clock.clock()))
            .name("mill")
            .build();
        let millisecond = SECOND / 1_000;
        let series = timers.series(Every::rate(millisecond)).name("pump");
        let series = series.on_failure(OnFailure::Continue);
        let series = series.start(|| Err::<(), _>("dry")).unwrap();
        (0..100).for_each(|_| clock.advance(millisecond));
        assert_eq!(series.failures(), 100);
        let logged = lines.0.lock().unwrap().len();
        assert_eq!(logged, 16, "of 100 events");
        timers.close().unwrap();
    });
    let lines = lines.0.lock().unwrap();
    assert_eq!(
        lines[0],
        "mill: run 1 of pump failed: dry; the series goes on"
    );
    let last = "mill: 84 more events were dropped, because they came too fast";
    assert_eq!((lines.len(), lines[16].as_str()), (17, last));
}
