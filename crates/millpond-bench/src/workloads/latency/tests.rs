use super::*;
use crate::harness::Settings;
use crate::peers::pool::hand_rolled::{Crossbeam, HandRolled};
use crate::progress::Silent;
use std::sync::atomic::{AtomicBool, Ordering};

/// So few that no machine is too busy for them.
const CALM: f64 = 2_000.0;

#[test]
fn every_task_is_answered_once_and_no_sooner_than_its_work_is_done() {
    struct Books;
    impl Visitor for Books {
        type Found = ();

        fn visit<P: Pool + 'static>(&self, _standing: Standing) {
            for arrivals in [Arrivals::Poisson, Arrivals::Bursts] {
                let sample = round::<P>(&arrivals.plan(CALM, 50)).unwrap();
                assert_eq!(sample.operations, 50, "{}", P::NAME);
                for figure in Figure::tail(Goal::Shown) {
                    assert!((figure.of)(&sample).is_some(), "{}: {figure:?}", P::NAME);
                }
                let p50 = sample.quantiles.unwrap().p50();
                // Half of the length: where work was measured, it may have been slower than here.
                assert!(p50 > TASK.as_nanos() as u64 / 2, "{}: {p50} ns", P::NAME);
            }
        }
    }
    field::visit(&Books);
}

/// Holds up whoever brings the first task.
struct Blocking {
    pool: HandRolled<Crossbeam>,
    has_blocked: AtomicBool,
}

const HELD_UP: Duration = Duration::from_millis(30);

impl Pool for Blocking {
    const NAME: &'static str = "blocking";
    type Handle = oneshot::Receiver<u64>;

    fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        Ok(Blocking {
            pool: HandRolled::with_workers(workers, queue)?,
            has_blocked: AtomicBool::new(false),
        })
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        // Not while it is warmed up: the first task after that is larger, it knows when it was to come.
        if size_of::<F>() > 24 && !self.has_blocked.swap(true, Ordering::Relaxed) {
            std::thread::sleep(HELD_UP);
        }
        self.pool.run(f);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.pool.submit(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        self.pool.join(handle)
    }

    fn close(self) {
        self.pool.close();
    }
}

#[test]
fn a_pool_that_holds_up_the_bringer_has_every_delay_in_its_books() {
    // All are to come within 10 ms, and none comes before 30 ms are over: each is 20 ms late at least.
    let plan = Plan::poisson(SEED, 10_000.0, 100);
    assert!(plan.end() < HELD_UP / 2, "seed {SEED:#x}: {:?}", plan.end());
    let quantiles = round::<Blocking>(&plan).unwrap().quantiles.unwrap();
    let least = (HELD_UP - plan.end()).as_nanos() as u64;
    assert!(quantiles.p50() >= least, "{} ns", quantiles.p50());
    // From the time when it really came, only the first would be that late.
}

#[test]
fn the_sweep_goes_from_a_tenth_to_beyond_the_peak_on_one_axis() {
    let all = workloads();
    assert_eq!(all.len(), 2 * LOADS.len());
    let xs = |curve: &str| -> Vec<f64> {
        let points = all.iter().filter_map(|one| one.point.as_ref());
        let points = points.filter(|point| point.curve == curve);
        points.map(|point| point.x).collect()
    };
    let loads = LOADS.map(f64::from);
    assert_eq!(xs("latency against load, Poisson arrivals"), loads);
    assert_eq!(xs("latency against load, bursts of 20"), loads);
    assert_eq!(all[0].name, "Poisson arrivals, 10 % load");
}

#[test]
fn what_nobody_can_keep_up_with_is_shown_and_not_judged() {
    let goals = |percent| {
        let arrivals = Arrivals::Poisson;
        let figures = workload(Load { arrivals, percent }).figures;
        figures.iter().map(|figure| figure.goal).collect::<Vec<_>>()
    };
    use Goal::{BestPeer, Shown};
    assert_eq!(goals(90), [BestPeer, BestPeer, BestPeer, Shown]);
    assert_eq!(goals(100), [Shown; 4]);
}

#[test]
fn a_point_has_four_rows_for_every_candidate() {
    let settings = Settings {
        rounds: 1,
        round_time: Duration::from_millis(5),
    };
    let load = Load {
        arrivals: Arrivals::Poisson,
        percent: 10,
    };
    let found = workload(load).measure(settings, None, &Silent).unwrap();
    assert_eq!(found.rows.len(), 4 * 6);
    let row = serde_json::to_value(&found.rows[6]).unwrap();
    assert_eq!(row["curve"], "latency against load, Poisson arrivals: p99");
    assert_eq!((&row["x"], &row["unit"]), (&10.0.into(), &"µs".into()));
    assert!(row["p999"].as_f64().unwrap() >= row["p50"].as_f64().unwrap());
    assert_eq!(notes(&found.rows).len(), 1);
}
