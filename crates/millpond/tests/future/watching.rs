//! What is pending, what a completable waits for, and completables that wait for themselves.

use millpond::future::{self, Completable};
use std::sync::{Arc, Mutex};

type Number = Completable<u32, &'static str>;

fn is_pending(name: &str) -> bool {
    future::pending()
        .iter()
        .any(|stage| stage.name() == Some(name))
}

#[test]
fn named_stages_are_listed_until_they_are_complete() {
    let (promise, source) = future::promise::<u32, &str>();
    let stage = source.map(|value| value + 1).named("grind the rye");
    assert!(is_pending("grind the rye"));
    promise.complete(7).unwrap();
    assert!(!is_pending("grind the rye"));
    assert_eq!(stage.name().as_deref(), Some("grind the rye"));
    let cancelled = Number::never().named("grind the wheat");
    assert!(is_pending("grind the wheat"));
    assert!(cancelled.cancel() && !is_pending("grind the wheat"));
}

#[test]
fn an_explanation_names_what_is_waited_for() {
    let (_promise, source) = future::promise::<u32, &str>();
    let (_other, salt) = future::promise::<u32, &str>();
    let bread = source
        .named("flour")
        .zip(salt.named("salt"))
        .map(|(one, other)| one + other);
    let text = bread.named("bread").explain();
    for part in [
        "`bread`",
        "waits for all",
        "`flour`",
        "`salt`",
        "watching.rs",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    let done = Number::completed(7).explain();
    assert!(done.contains("is complete: has a value"), "{done}");
    let failed = Number::failed("no wind").explain();
    assert!(failed.contains("is complete: failed"), "{failed}");
}

#[test]
fn looking_at_a_stage_does_not_disturb_it() {
    let (promise, source) = future::promise::<u32, &str>();
    let stage = source.map(|value| value + 1);
    let watcher = stage.clone();
    let looker = std::thread::spawn(move || {
        while !watcher.is_complete() {
            let _ = watcher.explain();
        }
    });
    promise.complete(7).unwrap();
    assert_eq!(stage.join().unwrap(), 8);
    looker.join().unwrap();
}

#[test]
fn a_stage_that_waits_for_itself_is_found() {
    let own: Arc<Mutex<Option<Number>>> = Arc::default();
    let (promise, source) = future::promise::<u32, &str>();
    let inside = Arc::clone(&own);
    let stage = source.and_then(move |_| inside.lock().unwrap().take().unwrap());
    *own.lock().unwrap() = Some(stage.clone().map(|value| value));
    promise.complete(7).unwrap();
    assert!(
        stage.explain().contains("it will never be complete"),
        "{}",
        stage.explain()
    );
    let failure = stage.clone().join().unwrap_err();
    assert!(failure.is_deadlock(), "{failure}");
    assert!(stage.cancel());
}

#[test]
fn a_stage_that_joins_what_waits_for_it_is_told() {
    let own: Arc<Mutex<Option<Number>>> = Arc::default();
    let (promise, source) = future::promise::<u32, &str>();
    let inside = Arc::clone(&own);
    let stage = source.map(move |_| {
        let below = inside.lock().unwrap().take().unwrap();
        u32::from(below.join().unwrap_err().is_deadlock())
    });
    *own.lock().unwrap() = Some(stage.clone().map(|value| value));
    promise.complete(7).unwrap();
    assert_eq!(stage.join().unwrap(), 1);
}

#[test]
fn a_failure_tells_where_it_arose() {
    let (promise, source) = future::promise::<u32, &str>();
    let line = line!() + 1;
    let stage = source.map(|_| -> u32 { panic!("the dam broke") });
    let below = stage
        .named("mill")
        .map(|value| value)
        .handle(|outcome| outcome.unwrap_err());
    promise.complete(7).unwrap();
    let failure = below.join().unwrap();
    assert_eq!(failure.origin().location().line(), line);
    assert_eq!(failure.origin().name(), Some("mill"));
    assert!(
        failure.to_string().contains("`mill`") && failure.to_string().contains("the dam broke")
    );
}
