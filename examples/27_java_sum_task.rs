//! How does Java's `RecursiveTask` look here, line by line?
//!
//! ```sh
//! cargo run -p examples --example 27_java_sum_task
//! ```
//!
//! ```text
//! in a pool of its own: 500000500000
//! in the common pool: 500000500000
//! forked, with handles: 500000500000
//! ```

#![forbid(unsafe_code)]

use millpond::executor::Lifecycle;
use millpond::forkjoin::{ForkJoinPool, RecursiveTask};
use millpond::task::TaskError;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

// class SumTask extends RecursiveTask<Long> {
//     static final int THRESHOLD = 10_000;
//     final long[] array; final int start, end;
struct SumTask<'a> {
    part: &'a [i64],
}

const THRESHOLD: usize = 10_000;

impl RecursiveTask for SumTask<'_> {
    type Output = i64;

    // protected Long compute() {
    fn compute(self) -> i64 {
        // if (end - start <= THRESHOLD) { for (..) sum += array[i]; return sum; }
        if self.part.len() <= THRESHOLD {
            return self.part.iter().sum();
        }
        // int mid = (start + end) / 2;
        let (left, right) = self.part.split_at(self.part.len() / 2);
        // SumTask left = new SumTask(array, start, mid), right = new SumTask(array, mid, end);
        // invokeAll(left, right);
        let [left, right] = Self::invoke_all([SumTask { part: left }, SumTask { part: right }]);
        // return left.join() + right.join();
        left + right
    }
}

/// The same with `fork` and `join`. What is forked owns what it uses: a clone of an `Arc`.
struct ForkedSum {
    array: Arc<[i64]>,
    range: Range<usize>,
}

impl RecursiveTask for ForkedSum {
    type Output = Result<i64, TaskError>;

    fn compute(self) -> Self::Output {
        let Range { start, end } = self.range;
        if end - start <= THRESHOLD {
            return Ok(self.array[start..end].iter().sum());
        }
        let middle = start.midpoint(end);
        let part = |range| ForkedSum {
            array: Arc::clone(&self.array),
            range,
        };
        // left.fork(); long right = right.compute(); return left.join() + right;
        let left = part(start..middle).fork();
        let right = part(middle..end).compute()?;
        Ok(left.join()?? + right)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let array: Vec<i64> = (1..=1_000_000).collect();

    // new ForkJoinPool(2).invoke(new SumTask(array, 0, array.length))
    let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
    let sum = pool.install(|| SumTask { part: &array }.compute());
    println!("in a pool of its own: {sum}");

    // new SumTask(array, 0, array.length).invoke()
    let sum = SumTask { part: &array }.invoke();
    println!("in the common pool: {sum}");

    let range = 0..array.len();
    let array = array.into();
    let sum = pool.install(|| ForkedSum { array, range }.compute())?;
    println!("forked, with handles: {sum}");

    pool.close()?;
    Ok(())
}
