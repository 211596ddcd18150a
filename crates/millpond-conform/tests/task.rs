//! The handle of a task, for every kind of engine.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's threads and locks beside what it tests"
)]

use millpond::executor::{Executor, ThreadPerTask};
use millpond::task::TaskSpec;
use millpond_conform::ask;
use std::sync::LazyLock;

static THREADS: LazyLock<ThreadPerTask> =
    LazyLock::new(|| ThreadPerTask::builder("tasks", 256).build().unwrap());

ask! { in_place, |task| drop(task.run()), task_suite }
ask! { in_a_thread, |task| drop(std::thread::spawn(move || task.run())), task_suite }
ask! { in_an_executor, |task| THREADS.execute_task(task).unwrap(), task_suite }

/// Holds: ExecutorsTest.testCallable_withResult_toString, ExecutorsTest.testCallable_toString
#[test]
fn the_debug_text_of_a_task_has_its_name_and_location() {
    let (task, _handle) = TaskSpec::new().name("grind").build(|| 7);
    let text = format!("{task:?}");
    assert!(text.contains("grind") && text.contains("task.rs"), "{text}");
}
