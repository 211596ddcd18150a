//! A task is inside the span that it was made in.

#![cfg(all(feature = "tracing", not(any(millpond_loom, millpond_shuttle))))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{DirectExecutor, ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use std::sync::{Arc, mpsc};

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
    threads.close().unwrap();

    // A closure that a full pool leaves to its caller.
    let full = ThreadPool::builder("full").core(1).max(1);
    let full = full
        .queue(Queue::bounded(1))
        .rejection(RejectionPolicy::CallerRuns)
        .build()
        .unwrap();
    let (open, opened) = mpsc::channel::<()>();
    let (say, started) = mpsc::channel();
    full.execute(move || {
        say.send(()).unwrap();
        let _ = opened.recv();
    })
    .unwrap();
    started.recv().unwrap();
    full.execute(|| ()).unwrap();
    for inside in [None, Some("request")] {
        let (send, seen) = mpsc::channel();
        let submit = || full.execute(move || send.send(name_here()).unwrap());
        match inside {
            None => submit(),
            Some(_) => span.in_scope(submit),
        }
        .unwrap();
        assert_eq!(seen.try_recv(), Ok(inside));
        assert_eq!(name_here(), None);
    }
    assert_eq!(full.snapshot().caller_ran, 2);
    drop(open);
    full.close().unwrap();
}
