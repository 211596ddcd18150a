//! A task is inside the span that it was made in.

#![cfg(all(feature = "tracing", not(any(millpond_loom, millpond_shuttle))))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{DirectExecutor, ExecutorExt, Lifecycle, ThreadPerTask};
use std::sync::Arc;

fn name_here() -> Option<&'static str> {
    tracing::Span::current().metadata().map(|m| m.name())
}

#[test]
fn a_task_is_inside_the_span_it_was_made_in_through_all_executors_and_out_of_it_afterwards() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
    let threads = Arc::new(ThreadPerTask::builder("traced", 4).build().unwrap());
    let span = tracing::info_span!("request");
    let handle = span.in_scope(|| {
        let below = Arc::clone(&threads);
        threads.submit(move || {
            let here = name_here();
            let inner = below.submit(name_here).unwrap().join().unwrap();
            (here, inner)
        })
    });
    assert_eq!(
        handle.unwrap().join().unwrap(),
        (Some("request"), Some("request"))
    );
    assert_eq!(threads.submit(name_here).unwrap().join().unwrap(), None);

    let panicked = span
        .in_scope(|| DirectExecutor::new().submit(|| std::panic::resume_unwind(Box::new("over"))));
    assert!(panicked.unwrap().join().is_err());
    assert_eq!(name_here(), None, "a panic leaves the span, too");
    threads.close();
}
