//! May a pool use another pool, and who runs what then?
//!
//! ```sh
//! cargo run -p examples --example 33_nested_pools
//! ```
//!
//! ```text
//! outside: main
//! in the outer pool: outer-1
//! in the inner pool: inner-1
//! back in the outer one: outer-1
//! a panic crosses both: the dam broke
//! ```

#![forbid(unsafe_code)]

use millpond::executor::Lifecycle;
use millpond::forkjoin::{self, ForkJoinPool};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

fn here() -> String {
    let thread = thread::current();
    thread.name().unwrap_or("a thread").to_owned()
}

fn main() -> Result<(), Box<dyn Error>> {
    // One for what is urgent, one for what may take long: they do not steal from each other.
    let outer = ForkJoinPool::builder("outer").parallelism(1).build()?;
    let inner = ForkJoinPool::builder("inner").parallelism(1).build()?;
    println!("outside: {}", here());
    outer.install(|| {
        println!("in the outer pool: {}", here());
        // This worker waits, and runs nothing of the outer pool meanwhile.
        let sum = inner.install(|| {
            println!("in the inner pool: {}", here());
            let (left, right) = forkjoin::join(|| 3, || 4);
            left + right
        });
        assert_eq!(sum, 7);
        println!("back in the outer one: {}", here());
    });

    let broken = catch_unwind(AssertUnwindSafe(|| {
        outer.install(|| inner.install(|| resume_unwind(Box::new("the dam broke"))));
    }));
    if let Some(why) = broken
        .err()
        .and_then(|payload| payload.downcast::<&str>().ok())
    {
        println!("a panic crosses both: {why}");
    }
    outer.close()?;
    inner.close()?;
    Ok(())
}
