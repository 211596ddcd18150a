//! What a task of a scope costs in allocations. A program of its own, because it counts those of all
//! threads.

// With plain memory no cell is used again.
#![cfg(not(any(millpond_loom, millpond_shuttle, millpond_plain_memory)))]

use millpond::executor::{DirectExecutor, Executor, ExecutorExt, Rejected};
use millpond::task::Task;
use millpond_raw::count_alloc::CountingAlloc;
use millpond_raw::sync::Mutex;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc::new();

/// Keeps all tasks, in a list that has room for them.
#[derive(Debug)]
struct Keeps(Mutex<Vec<Task>>);

impl Executor for Keeps {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.0.lock().push(task);
        Ok(())
    }
}

/// How many allocations a scope with so many tasks makes, at the least: the thread that runs the test
/// may allocate meanwhile, but not each time.
fn allocations(executor: &dyn Executor, tasks: u64) -> u64 {
    (0..3).map(|_| of_one(executor, tasks)).min().unwrap_or(0)
}

/// One scope. Half of its tasks have a handle that is joined.
fn of_one(executor: &dyn Executor, tasks: u64) -> u64 {
    let cells: Vec<u64> = (0..tasks).collect();
    let ((), counts) = ALLOC.count(|| {
        executor.scope(|s| {
            for pair in cells.chunks(2) {
                s.execute(|| pair[0]).expect("it is taken");
                let handle = s.submit(|| &pair[1]).expect("it is taken");
                assert_eq!(handle.join().expect("it runs"), &pair[1]);
            }
        });
    });
    counts.allocations
}

#[test]
fn a_task_of_a_scope_costs_one_allocation_when_its_cell_is_used_again() {
    let direct = DirectExecutor::new();
    // The first scope also makes what a thread has once, cells among them.
    allocations(&direct, 2);
    let few = allocations(&direct, 100);
    let many = allocations(&direct, 1_100);
    // A slab now and then.
    assert!(
        (1_000..1_000 + 50).contains(&(many - few)),
        "{few} and {many}"
    );

    // One that keeps all cells lets none be used again; these come in slabs, many at a time.
    let keeps = Keeps(Mutex::new(Vec::with_capacity(10_000)));
    allocations(&keeps, 2);
    let few = allocations(&keeps, 100);
    let many = allocations(&keeps, 1_100);
    assert!(
        (1_000..2 * 1_000).contains(&(many - few)),
        "{few} and {many}"
    );
}
