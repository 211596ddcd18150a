//! Every scenario on real threads, many times over.
//!
//! This covers what models leave out: the real futex, the real memory, and sanitizers and chaos, when built
//! with them. `MILLPOND_ROUNDS` changes the number of rounds.
#![cfg(not(any(millpond_loom, millpond_shuttle)))]

mod scenarios;

fn stress(scenario: fn()) {
    let rounds = match std::env::var("MILLPOND_ROUNDS") {
        Err(_) => 300,
        Ok(text) => text.parse().unwrap_or_else(|_| {
            panic!("MILLPOND_ROUNDS is `{text}`: give it the number of rounds per scenario")
        }),
    };
    if let Some(seed) = millpond_raw::sync::chaos::seed() {
        println!("chaos seed {seed}: run again with MILLPOND_CHAOS_SEED={seed}");
    }
    for _ in 0..rounds {
        scenario();
    }
}

scenarios::drive!(stress);
