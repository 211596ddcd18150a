//! The parameters that keys change, and what comes of it in a sentence.

use millpond::manage::{Growth, Patch};
use millpond::pool::{PoolSnapshot, ThreadPool};

use super::policy::Policy;
use super::shop::{MOST_LOAD, Shop};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knob {
    Core,
    Max,
    Capacity,
    Growth,
    Policy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Up,
    Down,
}

/// In percent.
const LOAD_STEP: u32 = 25;

/// The patch for a pool in this state. Core and max go by one, the capacity doubles or halves.
fn patch(knob: Knob, turn: Turn, now: &PoolSnapshot) -> Patch {
    let by_one = |size: usize| match turn {
        Turn::Up => size.saturating_add(1),
        Turn::Down => size.saturating_sub(1),
    };
    let doubled = |size: usize| match turn {
        Turn::Up => size.saturating_mul(2).max(1),
        Turn::Down => size / 2,
    };
    match knob {
        Knob::Core => Patch::new().core(by_one(now.core)),
        Knob::Max => Patch::new().max(by_one(now.max)),
        Knob::Capacity => Patch::new().capacity(doubled(now.capacity.unwrap_or_default())),
        Knob::Growth => Patch::new().growth(match now.growth {
            Growth::QueueFirst => Growth::ThreadsFirst,
            Growth::ThreadsFirst => Growth::QueueFirst,
        }),
        // Not a size, and cannot be wrong: it has a way of its own.
        Knob::Policy => Patch::new(),
    }
}

/// Turns it. Returns what has changed, or why nothing has: then all is as it was.
pub(super) fn turn(shop: &Shop, chosen: usize, knob: Knob, turn: Turn) -> Result<String, String> {
    let pool = &shop.departments[chosen].pool;
    let name = pool.name();
    if knob == Knob::Policy {
        let policy = Policy::of(&pool.rejection()).next();
        if policy == Policy::NewThread {
            shop.expect_extra_threads();
        }
        pool.set_rejection(policy.rejection());
        return Ok(format!(
            "{name}: policy {policy}: when there is no room, {}",
            policy.meaning()
        ));
    }
    match pool.apply(&patch(knob, turn, &pool.snapshot())) {
        Ok(_) => Ok(format!("{name}: {}", setting(pool, knob))),
        Err(error) => Err(format!("{name}: rejected, nothing has changed: {error}")),
    }
}

fn setting(pool: &ThreadPool, knob: Knob) -> String {
    let now = pool.snapshot();
    match knob {
        Knob::Core => format!("core {}: so many workers stay", now.core),
        Knob::Max => format!("max {}: so many workers there may be", now.max),
        Knob::Capacity => format!(
            "capacity {}: so many tasks may wait",
            now.capacity.unwrap_or_default()
        ),
        Knob::Growth => format!("{} when the core is busy", now.growth),
        Knob::Policy => Policy::of(&pool.rejection()).to_string(),
    }
}

/// Lets more or less in.
pub(super) fn turn_load(shop: &Shop, turn: Turn) -> String {
    let before = shop.sluice.load();
    let after = match turn {
        Turn::Up => (before + LOAD_STEP).min(MOST_LOAD),
        Turn::Down => before.saturating_sub(LOAD_STEP),
    };
    shop.sluice.set_load(after);
    match after {
        0 => "load 0 %: nobody comes; press + for more".to_owned(),
        MOST_LOAD => format!("load {after} %: no more than that"),
        _ => format!("load {after} % of the usual"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> PoolSnapshot {
        let pool = ThreadPool::builder("mill").core(2).max(4);
        let pool = pool.queue(millpond::pool::Queue::bounded(40));
        pool.build().unwrap().snapshot()
    }

    #[test]
    fn core_and_max_go_by_one_and_the_capacity_doubles_or_halves() {
        let now = snapshot();
        let asked = |knob, turn| patch(knob, turn, &now);
        assert_eq!(asked(Knob::Core, Turn::Up), Patch::new().core(3));
        assert_eq!(asked(Knob::Core, Turn::Down), Patch::new().core(1));
        assert_eq!(asked(Knob::Max, Turn::Up), Patch::new().max(5));
        assert_eq!(asked(Knob::Max, Turn::Down), Patch::new().max(3));
        assert_eq!(asked(Knob::Capacity, Turn::Up), Patch::new().capacity(80));
        assert_eq!(asked(Knob::Capacity, Turn::Down), Patch::new().capacity(20));
    }

    #[test]
    fn nothing_goes_below_none() {
        let mut now = snapshot();
        (now.core, now.capacity) = (0, Some(0));
        assert_eq!(patch(Knob::Core, Turn::Down, &now), Patch::new().core(0));
        assert_eq!(
            patch(Knob::Capacity, Turn::Up, &now),
            Patch::new().capacity(1)
        );
    }

    #[test]
    fn a_rejected_patch_says_why_and_changes_nothing() {
        let shop = Shop::open(7, 0).unwrap();
        let images = &shop.departments[1].pool;
        let error = turn(&shop, 1, Knob::Core, Turn::Up).unwrap_err();
        assert_eq!(
            error,
            "images: rejected, nothing has changed: core 2 is above max 1: raise max or lower core, \
             or change both at once"
        );
        assert_eq!((images.core(), images.max()), (1, 1));
        assert_eq!(
            turn(&shop, 1, Knob::Max, Turn::Up).unwrap(),
            "images: max 2: so many workers there may be"
        );
        assert!(turn(&shop, 1, Knob::Core, Turn::Up).is_ok());
        assert_eq!((images.core(), images.max()), (2, 2));
    }

    #[test]
    fn a_policy_is_set_in_the_pool_and_explained() {
        let shop = Shop::open(7, 0).unwrap();
        let said = turn(&shop, 2, Knob::Policy, Turn::Up).unwrap();
        assert!(said.starts_with("mails: policy caller runs: "), "{said}");
        let now = Policy::of(&shop.departments[2].pool.rejection());
        assert_eq!(now, Policy::CallerRuns);
    }

    #[test]
    fn the_load_stays_within_its_limits() {
        let shop = Shop::open(7, 0).unwrap();
        assert!(turn_load(&shop, Turn::Down).starts_with("load 0 %"));
        for _ in 0..100 {
            turn_load(&shop, Turn::Up);
        }
        assert_eq!(shop.sluice.load(), MOST_LOAD);
    }
}
