//! Events go to `tracing` with fields that a log can be searched by, beside their text.

#![cfg(all(feature = "tracing", not(any(millpond_loom, millpond_shuttle))))]
#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::ThreadPool;
use millpond::task::TaskSpec;
use millpond::time::{Deadline, ManualClock};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

type Fields = BTreeMap<String, String>;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Fields>>>);

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: tracing::Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::new();
        event.record(&mut Reader(&mut fields));
        self.0.lock().unwrap().push(fields);
    }
}

#[test]
fn a_dropped_task_is_an_event_with_its_engine_its_name_its_place_and_the_reason() {
    let log = Log::default();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    // By a manual clock the event is delivered before the pool has ended.
    let hand = ManualClock::new();
    let pool = ThreadPool::builder("mill")
        .clock(hand.clock())
        .build()
        .unwrap();
    let late = Deadline::at(hand.clock().now());
    let spec = TaskSpec::new().name("grind").deadline(late);
    let line = line!() - 1;
    pool.execute_with(spec, || ()).unwrap();
    pool.close().unwrap();
    let events = log.0.lock().unwrap();
    let found = events
        .iter()
        .find(|fields| fields["event"] == "dropped_detached");
    let fields = found.expect("it was logged");
    for (name, value) in [("engine", "mill"), ("task", "grind"), ("count", "1")] {
        assert_eq!(fields[name], value, "{name}");
    }
    assert_eq!(fields["reason"], "its deadline passed before it ran");
    assert!(fields["location"].contains(&format!("{}:{line}:", file!())));
    assert!(fields["message"].contains("mill") && !fields.contains_key("millis"));
}
