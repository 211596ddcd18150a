//! What errors say, and which spellings are read.

use super::pool;
use millpond::manage::{Growth, Invalid, Patch};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::preset;
use millpond::queue::FifoQueue;
use millpond::schedule::ScheduledPool;

#[test]
fn every_problem_of_a_patch_is_reported_and_each_says_what_would_be_right() {
    let pool = pool().build().unwrap();
    let patch = Patch::new()
        .set("cores", 3)
        .set("max", 0)
        .set("core", -1)
        .set("keep_alive", "20")
        .set("growth", "threads")
        .set("queue", "hand_off")
        .set("capacity", "none")
        .set("rejection", "custom")
        .set("max_queue_wait", "0s");
    let error = pool.apply(&patch).unwrap_err();
    let texts: Vec<String> = error.problems().iter().map(Invalid::to_string).collect();
    let expected = [
        "there is no parameter `cores`: did you mean core?",
        "core cannot be `-1`: write an integer from 0 to 536870911",
        "max cannot be 0: write an integer from 1 to 536870911 (without a worker no task would ever run)",
        "keep_alive cannot be `20`: write a duration with its unit (as 20ms, 5s, 1m)",
        "growth cannot be `threads`: write queue_first or threads_first",
        "queue cannot change while the engine runs: it stays fifo; build a new engine for another value",
        "capacity: a bound cannot be taken away while the pool runs: write the most tasks that may wait",
        "rejection: custom needs a handler, which only the program has: see ThreadPool::set_rejection",
        "max_queue_wait cannot be 0s: write a duration with its unit (as 20ms, 5s, 1m), at least 1ns, or \
         none (every task that has to wait would be dropped)",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_value_that_is_too_large_is_not_advised_as_one_that_is_too_small() {
    let pool = pool().build().unwrap();
    for max in ["536870912", "18446744073709551615"] {
        let error = pool.apply(&Patch::new().set("max", max)).unwrap_err();
        let expected = format!("max cannot be {max}: write an integer from 1 to 536870911");
        assert_eq!(error.to_string(), expected);
    }
    let built = ThreadPool::builder("mill")
        .core(1)
        .max(ThreadPool::MAX_WORKERS + 1);
    let error = built.build().unwrap_err().to_string();
    assert!(!error.contains("without a worker"), "{error}");
}

#[test]
fn a_wrong_value_is_answered_with_those_that_this_pool_can_have() {
    let custom = RejectionPolicy::custom(|task, context| context.give_back(task));
    for (builder, has_custom) in [(pool(), false), (pool().rejection(custom), true)] {
        let pool = builder.build().unwrap();
        let all = pool.parameters();
        let wrong = Patch::new()
            .set("rejection", "sideways")
            .set("capacity", "many");
        let error = pool.apply(&wrong).unwrap_err();
        for problem in error.problems() {
            let listed = all.iter().find(|each| each.name == problem.parameter());
            let listed = listed.unwrap().kind.to_string();
            assert!(
                problem.to_string().ends_with(&listed),
                "{problem}\n{listed}"
            );
        }
        assert_eq!(error.problems().len(), 2);
        assert_eq!(error.to_string().contains("custom"), has_custom, "{error}");
    }
}

#[test]
fn the_help_of_a_capacity_speaks_of_none_only_where_it_can_be_none() {
    for (queue, is_optional) in [
        (Queue::unbounded(), true),
        (Queue::bounded(4), false),
        (Queue::hand_off(), false),
    ] {
        let all = pool().queue(queue).build().unwrap().parameters();
        let capacity = all.iter().find(|each| each.name == "capacity").unwrap();
        assert_eq!(capacity.help.contains("none"), is_optional, "{capacity}");
    }
}

#[test]
fn a_wrong_text_is_not_forgiven_because_a_right_one_comes_later() {
    let pool = pool().build().unwrap();
    let wrong = Patch::new()
        .set("core", "1")
        .set("core", "x")
        .set("core", "3");
    let error = pool.apply(&wrong).unwrap_err().to_string();
    assert_eq!(
        error,
        "core cannot be `x`: write an integer from 0 to 536870911"
    );
    assert_eq!(pool.core(), 2);
    pool.apply(
        &Patch::new()
            .set("core", "1")
            .set("core", 9)
            .set("core", "3"),
    )
    .unwrap();
    assert_eq!(pool.core(), 3, "the last one counts");
    let unknown = Patch::new().set("cores", "x").set("cores", "3");
    assert_eq!(pool.apply(&unknown).unwrap_err().problems().len(), 1);
}

#[test]
fn a_choice_is_read_in_any_spelling_and_told_what_its_argument_lacks() {
    let pool = pool().build().unwrap();
    for text in [
        "threads_first",
        "threads-first",
        "ThreadsFirst",
        "THREADS FIRST",
    ] {
        pool.set_growth(Growth::QueueFirst);
        pool.apply(&Patch::new().set("growth", text)).unwrap();
        assert_eq!(pool.growth(), Growth::ThreadsFirst, "{text}");
    }
    let patch = Patch::new().set("rejection", "block(100)");
    let error = pool.apply(&patch).unwrap_err().to_string();
    assert_eq!(
        error,
        "rejection cannot be `block(100)`: 100 needs a unit: block(100ms)"
    );
}

#[test]
fn a_scheduled_pool_has_parameters_of_its_own_and_says_which_are_those_of_its_executor() {
    let timers = ScheduledPool::owning(pool().build().unwrap());
    let timers = timers.name("bells").build();
    let patch = Patch::new().set("max_pending", "many").core(1);
    let patch = patch.set("colour", "blue");
    let error = timers.apply(&patch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no parameter `core` here: it is one of the executor, `mill`, which takes patches of its own; \
         there is no parameter `colour`: this engine has max_pending, run_delayed_after_shutdown, \
         run_series_after_shutdown; max_pending cannot be `many`: write an integer from 0 on, or none"
    );
    assert_eq!(timers.executor().core(), 2);
    timers.executor().apply(&Patch::new().core(1)).unwrap();
    assert_eq!(timers.executor().core(), 1);
}

#[test]
fn a_patch_with_an_unknown_name_is_told_its_other_problems_as_well() {
    for queue in [
        Queue::bounded(4),
        Queue::custom(FifoQueue::bounded(4).unwrap()),
    ] {
        let pool = pool().queue(queue).build().unwrap();
        let patch = Patch::new().set("nope", 1).capacity(9).core(1_000);
        let error = pool.apply(&patch).unwrap_err().to_string();
        let known = "there is no parameter `nope`: this engine has core, max, ";
        assert!(error.starts_with(known), "{error}");
        assert!(error.contains("core 1000 is above max"), "{error}");
        assert_eq!(pool.capacity(), Some(4));
    }
}

#[test]
fn a_pool_needs_a_name() {
    for name in ["", " \t"] {
        let error = ThreadPool::builder(name)
            .core(9)
            .max(1)
            .build()
            .unwrap_err();
        let about: Vec<_> = error.problems().iter().map(Invalid::parameter).collect();
        assert_eq!(about, ["core", "name"]);
        let error = preset::scheduled(name, 1).unwrap_err();
        assert!(
            error.to_string().starts_with("name: it is empty"),
            "{error}"
        );
    }
}

#[test]
fn an_empty_name_of_a_schedule_is_as_none() {
    let workers = || preset::single("mill").build().unwrap();
    for name in ["", "  "] {
        let named = ScheduledPool::owning(workers()).name(name).build();
        let unnamed = ScheduledPool::owning(workers()).build();
        assert_eq!(named.name(), unnamed.name());
    }
}
