//! The guides' code, compiled and run as tests: `cargo test -p examples --doc`.

#![forbid(unsafe_code)]

/// Which queue, and how.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/queues.md")]
struct Queues;

/// Which executor, and how.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/executors.md")]
struct Executors;

/// Which pool, and how.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/pools.md")]
struct Pools;

/// Metrics, events and overload.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/watching.md")]
struct Watching;

/// Engines of any kind.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/managing.md")]
struct Managing;

/// What "every 5 seconds" means, and how.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/scheduling.md")]
struct Scheduling;

/// Dividing a computation.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/forkjoin.md")]
struct ForkJoin;

/// What is not as in Java.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/from-java.md")]
struct FromJava;

/// Results that are composed.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide/completable.md")]
struct Completables;
