//! Jobs of fork-join: an owner that forks, publishes and waits; thieves that run, or give back.

use super::{Probe, few_or_many, join_all, leak, spawn_all};
use millpond_raw::forkjoin::{
    self, Awaited, Demand, HandedOver, Host, JobRef, Local, PendingJobs, SpawnScope, hand_over,
};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use millpond_raw::task::{Token, current};
use std::any::Any;
use std::sync::Arc;

const HERE: Site = Site::new("scenario.wait");

/// Publishes all that is demanded, and parks while it waits.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<JobRef>>>);

impl Shared {
    fn take(&self) -> Option<JobRef> {
        self.0.lock().pop()
    }
}

impl Host for Shared {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn on_demand(&self, local: &Local<'_>) -> u32 {
        self.0.lock().extend(local.publish_oldest());
        0
    }

    fn reclaim(&self, id: usize) -> Option<JobRef> {
        let mut jobs = self.0.lock();
        let at = jobs.iter().position(|job| job.id() == id)?;
        Some(jobs.remove(at))
    }

    fn wait(&self, _: &Local<'_>, job: &Awaited<'_>) {
        park_for(job);
    }
}

fn park_for(job: &Awaited<'_>) {
    let here = park::current();
    if job.register(&here.waker()) {
        here.park(HERE);
    }
}

fn demanded() -> Demand {
    let demand = Demand::new();
    demand.word().store(1, Ordering::Relaxed);
    demand
}

/// Forks a job on this thread, while `thieves` look for it once each.
fn join_against(thieves: usize, thief: impl Fn(JobRef) + Clone + Send + 'static) {
    let host = Shared::default();
    let (probe, ran) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let others = host.clone();
    let threads = spawn_all(thieves, move |_| {
        if let Some(job) = others.take() {
            thief(job);
        }
    });
    let (own, count) = (probe.clone(), Arc::clone(&ran));
    let (left, right) = forkjoin::enter(&demanded(), &host, || {
        forkjoin::with_current(|here| {
            here.expect("it has entered").join(
                || 3,
                move || {
                    // A load and a store: two runs would show, and so would a run that nobody waits for.
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    own
                },
            )
        })
    });
    assert_eq!((left, right.others()), (3, 1));
    assert_eq!(
        ran.load(Ordering::Relaxed),
        1,
        "it ran once, and that is seen"
    );
    join_all(threads);
    drop(right);
    assert_eq!(probe.others(), 0);
}

pub(crate) fn stealing_and_reclaiming_agree() {
    join_against(few_or_many(1, 3), |job| {
        job.set_runner(7);
        job.run();
    });
}

pub(crate) fn a_job_that_comes_back_is_run_by_its_owner() {
    join_against(few_or_many(1, 3), drop);
}

pub(crate) fn a_job_that_is_handed_over_runs_elsewhere_or_comes_back() {
    let (shared, probe) = (Shared::default(), Probe::default());
    let threads: Vec<_> = [true, false]
        .into_iter()
        .take(few_or_many(1, 2))
        .map(|runs| {
            let shared = shared.clone();
            spawn(move || match shared.take() {
                Some(job) if runs => job.run(),
                Some(job) => drop(job),
                None => {}
            })
        })
        .collect();
    let own = probe.clone();
    let give = |job| shared.0.lock().push(job);
    let wait = |job: &Awaited<'_>| match shared.take() {
        // No thief has seen it.
        Some(job) => drop(job),
        None => park_for(job),
    };
    match hand_over(move || own, give, wait) {
        HandedOver::Ran(probe) => drop(probe),
        HandedOver::Returned(closure) => drop(closure()),
    }
    join_all(threads);
    assert_eq!(probe.others(), 0);
}

pub(crate) fn a_scope_waits_for_all_jobs_and_sees_what_they_did() {
    let (shared, probe) = (Shared::default(), Probe::default());
    let jobs = few_or_many(2, 4);
    let ran = AtomicUsize::new(0);
    let scope = SpawnScope::new();
    let threads = scope.enter(
        || {
            for _ in 0..jobs {
                let (own, ran) = (probe.clone(), &ran);
                let job = scope.job(move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    drop(own);
                });
                shared.0.lock().extend(job.ok());
            }
            let shared = shared.clone();
            spawn_all(jobs, move |_| shared.take().expect("one each").run())
        },
        |scope| {
            let here = park::current();
            if scope.register(&here.waker()) {
                here.park(HERE);
            }
        },
    );
    assert_eq!((ran.load(Ordering::Relaxed), probe.others()), (jobs, 0));
    assert!(scope.job(|| ()).is_err(), "it is over");
    join_all(threads);
}

pub(crate) fn a_job_spawned_by_a_job_is_waited_for() {
    let ran = AtomicUsize::new(0);
    let scope = SpawnScope::new();
    let (shared, count) = (&Shared::default(), &ran);
    scope.enter(
        || {
            let spawning = scope.job(|| {
                let inner = scope.job(|| _ = count.fetch_add(1, Ordering::Relaxed));
                shared.0.lock().extend(inner.ok());
                count.fetch_add(1, Ordering::Relaxed);
            });
            let job = spawning.ok().expect("it is open");
            spawn(move || job.run());
        },
        |scope| {
            if let Some(job) = shared.take() {
                job.run();
                return;
            }
            let here = park::current();
            // The job that is spawned wakes nobody: look again before each park, as a worker is woken by a signal.
            if scope.register(&here.waker()) && shared.0.lock().is_empty() {
                millpond_raw::sync::thread::yield_now();
            }
        },
    );
    assert_eq!(ran.load(Ordering::Relaxed), 2);
}

/// A worker that holds shares, and no private jobs.
struct Holder;

impl Host for Holder {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn on_demand(&self, _: &Local<'_>) -> u32 {
        0
    }

    fn holds_shares(&self) -> bool {
        true
    }

    fn reclaim(&self, _: usize) -> Option<JobRef> {
        None
    }

    fn wait(&self, _: &Local<'_>, job: &Awaited<'_>) {
        park_for(job);
    }
}

/// `[Q-scope]`: workers run jobs of a scope, one of which makes a further one out of the share that another has left. The
/// scope is over when the last share is given back, and sees what the jobs did.
pub(crate) fn a_share_of_a_scope_that_is_given_back_may_end_it() {
    let ran = AtomicUsize::new(0);
    let scope = SpawnScope::new();
    let count = &ran;
    let threads = scope.enter(
        || {
            let first = scope.job(|| _ = count.fetch_add(1, Ordering::Relaxed));
            let second = scope.job(|| {
                let inner = scope.job(|| _ = count.fetch_add(1, Ordering::Relaxed));
                inner.ok().expect("it is open").run();
            });
            let other = scope.job(|| _ = count.fetch_add(1, Ordering::Relaxed));
            let both = [first.ok(), second.ok()];
            spawn_jobs([
                both.into_iter().flatten().collect(),
                other.into_iter().collect(),
            ])
        },
        |scope| {
            let here = park::current();
            if scope.register(&here.waker()) {
                here.park(HERE);
            }
        },
    );
    assert_eq!(ran.load(Ordering::Relaxed), 3);
    join_all(threads);
}

/// A worker for each of these lists.
fn spawn_jobs(lists: [Vec<JobRef>; 2]) -> Vec<millpond_raw::sync::thread::JoinHandle<()>> {
    let run = |jobs: Vec<JobRef>| {
        forkjoin::enter(&Demand::new(), &Holder, || {
            jobs.into_iter().for_each(JobRef::run);
            forkjoin::with_current(|here| here.map(Local::give_share_back));
        });
    };
    lists.map(|jobs| spawn(move || run(jobs))).into()
}

/// `[Q-frame]`: a thread makes a job while a task enters the scope. The scope is not open yet, or the job obeys the
/// interrupts of the task.
pub(crate) fn a_job_of_another_thread_is_a_part_of_the_task_of_its_scope() {
    let scope: &SpawnScope<'_> = leak(SpawnScope::new());
    let makers = spawn_all(few_or_many(1, 3), move |_| {
        if let Ok(job) = scope.job(|| assert!(current::take(), "the task was interrupted")) {
            job.run();
        }
    });
    let token = Token::new();
    token.set();
    token.enter(|| {
        let wait = |jobs: &PendingJobs<'_, '_>| {
            let here = park::current();
            if jobs.register(&here.waker()) {
                here.park(HERE);
            }
        };
        scope.enter(|| (), wait);
    });
    join_all(makers);
}
