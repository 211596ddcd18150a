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
fn a_linked_chain_of_a_million_stages_is_cancelled() {
    on_a_small_stack(|| {
        let (promise, chain) = future::promise::<usize, ()>();
        let mut chain = chain.linked();
        for _ in 0..LENGTH {
            chain = chain.map(|n| n + 1);
        }
        assert!(chain.cancel());
        assert!(promise.is_complete());
    });
}

#[test]
fn a_million_composed_stages_are_completed() {
    on_a_small_stack(|| {
        let (promise, mut chain) = future::promise::<usize, ()>();
        for _ in 0..LENGTH {
            chain = chain.and_then(|n| Completable::completed(n + 1));
        }
        promise.complete(0).unwrap();
        assert_eq!(chain.join().unwrap(), LENGTH);
    });
}
