//! Behaviours of executors that run at least four tasks in parallel to their callers.

use super::executor::Make;
use crate::kit::{Actor, FailureSink, Gate, Latch, Stopwatch, Stress, delays};
use millpond::executor::{ExecutorExt, InvokeAllError, InvokeAnyError};
use millpond::interrupt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tests of an executor that runs at least four tasks beside its callers, made by a [`Make`].
#[macro_export]
macro_rules! beside_suite {
    ($make:expr) => {
        $crate::bodies! { beside, ($make as $crate::suites::executor::Make);
            a_batch_that_times_out_cancels_unfinished_tasks_and_keeps_the_rest
            the_first_success_stops_the_others
            a_late_success_is_waited_for
            any_that_times_out_interrupts_all
            an_interrupted_caller_of_any_stops_all
            an_interrupted_caller_of_all_stops_all
            a_cancel_lets_the_body_go_on
            an_interrupt_stops_the_body
            batches_under_pressure_lose_nothing
        }
    };
}

/// Bodies that sleep until they are interrupted, and a latch on which they say that they were.
struct Sleepers {
    started: Latch,
    stopped: Latch,
}

impl Sleepers {
    fn new(count: usize) -> Self {
        Sleepers {
            started: Latch::new(count),
            stopped: Latch::new(count),
        }
    }

    fn body(&self) -> impl FnOnce() + Send + 'static {
        let (started, stopped) = (self.started.clone(), self.stopped.clone());
        move || {
            started.arrive();
            // Not for ever: where threads are refused, the one that interrupts may wait behind it.
            if interrupt::sleep(delays::long()).is_err() {
                stopped.arrive();
            }
        }
    }

    fn candidate(&self) -> Box<dyn FnOnce() -> Result<u32, ()> + Send> {
        let body = self.body();
        Box::new(move || {
            body();
            Err(())
        })
    }
}

/// Holds: AbstractExecutorServiceTest.testTimedInvokeAll6
/// Holds: ThreadPoolExecutorTest.testTimedInvokeAll6
/// Holds: ScheduledExecutorSubclassTest.testTimedInvokeAll6
pub fn a_batch_that_times_out_cancels_unfinished_tasks_and_keeps_the_rest(make: &Make) {
    // How long the quick one takes is the machine's business: try with more and more time.
    for factor in 1..=200 {
        let (sleepers, executor) = (Sleepers::new(2), make());
        let (one, two) = (sleepers.body(), sleepers.body());
        let bodies: [Box<dyn FnOnce() -> u32 + Send>; 3] = [
            Box::new(move || {
                one();
                0
            }),
            Box::new(|| 7),
            Box::new(move || {
                two();
                0
            }),
        ];
        let timeout = delays::timeout() * factor;
        let watch = Stopwatch::start();
        let results = executor.invoke_all_timeout(bodies, timeout).unwrap();
        watch.assert_at_least(timeout);
        let [one, quick, two] = <[_; 3]>::try_from(results).unwrap();
        assert!(one.unwrap_err().is_cancelled() && two.unwrap_err().is_cancelled());
        match quick {
            Ok(value) => {
                assert_eq!(value, 7);
                return;
            }
            Err(error) => assert!(error.is_cancelled()),
        }
    }
    panic!("the quick task never was quick enough");
}

/// Holds: ExecutorService/InvokeTest.testInvokeAny2
pub fn the_first_success_stops_the_others(make: &Make) {
    let sleepers = Sleepers::new(2);
    let started = sleepers.started.clone();
    let winner: Box<dyn FnOnce() -> Result<u32, ()> + Send> = Box::new(move || {
        started.wait();
        Ok(7)
    });
    let bodies = [sleepers.candidate(), sleepers.candidate(), winner];
    assert_eq!(make().invoke_any(bodies).unwrap(), 7);
    sleepers.stopped.wait();
}

/// Holds: ExecutorService/InvokeTest.testInvokeAny6
pub fn a_late_success_is_waited_for(make: &Make) {
    let (gate, failed) = (Gate::new(), Latch::new(2));
    let executor = make();
    let bodies: Vec<Box<dyn FnOnce() -> Result<u32, ()> + Send>> = (0..3)
        .map(|number| -> Box<dyn FnOnce() -> Result<u32, ()> + Send> {
            let (gate, failed) = (gate.clone(), failed.clone());
            match number {
                0 => Box::new(move || {
                    gate.wait();
                    Ok(7)
                }),
                _ => Box::new(move || {
                    failed.arrive();
                    Err(())
                }),
            }
        })
        .collect();
    let caller = Actor::start("caller", move || executor.invoke_any(bodies).unwrap());
    failed.wait();
    caller.await_parked("executor.invoke_any");
    gate.open();
    assert_eq!(caller.finish(), 7);
}

/// Holds: ExecutorService/InvokeTest.testInvokeAnyWithTimeout3
pub fn any_that_times_out_interrupts_all(make: &Make) {
    let sleepers = Sleepers::new(2);
    let bodies = [sleepers.candidate(), sleepers.candidate()];
    let executor = make();
    let watch = Stopwatch::start();
    let timeout = delays::small();
    let error = executor.invoke_any_timeout(bodies, timeout).unwrap_err();
    watch.assert_at_least(timeout);
    assert!(matches!(error, InvokeAnyError::TimedOut));
    sleepers.stopped.wait();
}

/// Holds: ExecutorService/InvokeTest.testInterruptInvokeAny
pub fn an_interrupted_caller_of_any_stops_all(make: &Make) {
    for timed in [false, true] {
        let sleepers = Sleepers::new(2);
        let bodies = [sleepers.candidate(), sleepers.candidate()];
        let executor = make();
        let caller = Actor::start("caller", move || {
            if timed {
                executor.invoke_any_timeout(bodies, delays::longer())
            } else {
                executor.invoke_any(bodies)
            }
        });
        sleepers.started.wait();
        caller.interrupt_at("executor.invoke_any");
        assert!(matches!(caller.finish(), Err(InvokeAnyError::Interrupted)));
        sleepers.stopped.wait();
    }
}

/// Holds: ExecutorService/InvokeTest.testInvokeAllInterrupt4
/// Holds: ExecutorService/InvokeTest.testInvokeAllInterrupt6
pub fn an_interrupted_caller_of_all_stops_all(make: &Make) {
    for timed in [false, true] {
        let sleepers = Sleepers::new(2);
        let bodies = [sleepers.body(), sleepers.body()];
        let executor = make();
        let caller = Actor::start("caller", move || {
            if timed {
                executor.invoke_all_timeout(bodies, delays::longer())
            } else {
                executor.invoke_all(bodies)
            }
        });
        sleepers.started.wait();
        caller.interrupt_at("task.join");
        assert!(matches!(caller.finish(), Err(InvokeAllError::Interrupted)));
        sleepers.stopped.wait();
    }
}

/// Holds: ExecutorService/SubmitTest.testSubmitRunnableWithCancelFalse
pub fn a_cancel_lets_the_body_go_on(make: &Make) {
    let sink = FailureSink::new();
    let (started, gate, ended) = (Latch::new(1), Gate::new(), Latch::new(1));
    let body = {
        let (started, gate, ended) = (started.clone(), gate.clone(), ended.clone());
        sink.checked(move || {
            started.arrive();
            gate.wait();
            assert!(!interrupt::is_interrupted());
            ended.arrive();
        })
    };
    let handle = make().submit(body).unwrap();
    started.wait();
    assert!(handle.cancel());
    assert!(handle.is_finished() && handle.is_cancelled());
    assert!(handle.join().unwrap_err().is_cancelled());
    gate.open();
    ended.wait();
}

/// Holds: ExecutorService/SubmitTest.testSubmitRunnableWithCancelTrue
pub fn an_interrupt_stops_the_body(make: &Make) {
    let sleepers = Sleepers::new(1);
    let handle = make().submit(sleepers.body()).unwrap();
    sleepers.started.wait();
    assert!(handle.interrupt());
    assert!(handle.join().unwrap_err().is_cancelled());
    sleepers.stopped.wait();
}

/// Holds: jtreg FutureTask/Executors/ECS.ExecutorService/Invoke
pub fn batches_under_pressure_lose_nothing(make: &Make) {
    let make = *make;
    Stress::new("batches").one_in(10).run(|_| {
        let executor = make();
        let runs = Arc::new(AtomicUsize::new(0));
        let bodies = |count: usize| {
            let runs = Arc::clone(&runs);
            (0..count).map(move |number| {
                let runs = Arc::clone(&runs);
                move || {
                    runs.fetch_add(1, Ordering::SeqCst);
                    number
                }
            })
        };
        let all = executor.invoke_all(bodies(4)).unwrap();
        assert!(all.into_iter().map(Result::unwrap).eq(0..4));
        assert_eq!(runs.swap(0, Ordering::SeqCst), 4, "each has run once");
        let any = executor.invoke_any(bodies(4).map(|body| move || Ok::<_, ()>(body())));
        assert!(any.unwrap() < 4);
        assert!(runs.load(Ordering::SeqCst) <= 4);
    });
}
