//! Chains of any length on small stacks.

use millpond::future::{self, Completable};

const STACK: usize = 256 * 1024;
const LENGTH: usize = 1_000_000;

fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(f)
        .unwrap();
    thread.join().unwrap();
}

#[test]
fn a_chain_of_a_million_stages_is_completed() {
    on_a_small_stack(|| {
        let (promise, mut chain) = future::promise::<usize, ()>();
        for _ in 0..LENGTH {
            chain = chain.map(|n| n + 1);
        }
        promise.complete(0).unwrap();
        assert_eq!(chain.join().unwrap(), LENGTH);
    });
}

#[test]
fn a_chain_of_a_million_stages_is_abandoned() {
    on_a_small_stack(|| {
        let (promise, mut chain) = future::promise::<usize, ()>();
        for _ in 0..LENGTH {
            chain = chain.map(|n| n + 1);
        }
        drop(promise);
        assert!(chain.join().unwrap_err().is_abandoned());
    });
}

#[test]
fn a_long_linked_chain_is_cancelled() {
    on_a_small_stack(|| {
        let (promise, chain) = future::promise::<usize, ()>();
        let mut chain = chain.linked();
        for _ in 0..LENGTH / 5 {
            chain = chain.map(|n| n + 1);
        }
        assert!(chain.cancel());
        assert!(promise.is_complete());
    });
}

#[test]
fn a_long_row_of_composed_stages_is_completed() {
    on_a_small_stack(|| {
        let (promise, mut chain) = future::promise::<usize, ()>();
        for _ in 0..LENGTH / 5 {
            chain = chain.and_then(|n| Completable::completed(n + 1));
        }
        promise.complete(0).unwrap();
        assert_eq!(chain.join().unwrap(), LENGTH / 5);
    });
}

/// Each promise is completed by a callback of the one before.
#[test]
fn a_chain_of_callbacks_of_any_length_is_completed_and_abandoned() {
    on_a_small_stack(|| {
        for completed in [true, false] {
            let (promise, mut reader) = future::promise::<usize, ()>();
            for _ in 0..100_000 {
                let (next, after) = future::promise();
                reader.forward(next);
                reader = after;
            }
            if completed {
                promise.complete(7).unwrap();
                assert_eq!(reader.join().unwrap(), 7);
            } else {
                drop(promise);
                assert!(reader.join().unwrap_err().is_abandoned());
            }
        }
    });
}

/// A closure deep in a row of callbacks joins what those around it have left for later.
#[test]
fn a_join_in_a_deep_row_of_callbacks_does_not_wait_for_what_its_own_thread_left() {
    let (promise, mut reader) = future::promise::<usize, ()>();
    for _ in 0..200 {
        let (next, after) = future::promise();
        reader.forward(next);
        reader = after;
    }
    let last = reader.map(|value| {
        let (promise, own) = future::promise::<usize, ()>();
        let stage = own.map(|value| value + 1);
        promise.complete(value).unwrap();
        stage.join().unwrap()
    });
    promise.complete(7).unwrap();
    assert_eq!(last.join().unwrap(), 8);
}

/// Memory does not grow with the number of stages that pass by a source that is never complete.
#[test]
fn a_million_selections_against_one_pending_source_leave_nothing() {
    let forever = Completable::<usize, ()>::never();
    for number in 0..LENGTH {
        let any = future::any_of([forever.clone(), Completable::completed(number)]);
        assert_eq!(any.join().unwrap(), number);
        if number % 4 == 0 {
            let (promise, reader) = future::promise();
            let any = forever.clone().race(reader);
            promise.complete(number).unwrap();
            assert_eq!(any.join().unwrap(), number);
        }
    }
    assert!(forever.dependents() <= 64);
}
