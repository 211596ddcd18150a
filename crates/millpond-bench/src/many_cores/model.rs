//! From counts to tasks per second on so many cores.
//!
//! The threads of one role are the customers of a closed queueing network. Each visit spends some time for
//! itself (its instructions, and transfers that nobody else waits for) and some at stations that serve one
//! thread at a time: a lock, for as long as it is held. Mean value analysis gives the throughput of such a
//! network exactly, for any number of customers:
//!
//! ```text
//!   R_r(n) = S_r * (1 + Q_r(n - 1))        time at station r, waiting included
//!   X(n)   = n / (Z + sum of R_r(n))       visits per second
//!   Q_r(n) = X(n) * R_r(n)                 threads at station r
//! ```
//!
//! A pool on C cores has p producers and w = C - p workers, and does as many tasks per second as the slower
//! side; the model takes the best p.
//!
//! # What it leaves out
//!
//! Waiting costs nothing but time here: no futex, no context switch, no failed attempt that takes the line
//! from the owner. Real locks get slower, and not only level, when many threads want them. So every curve is
//! an upper bound, and where it is level the real one falls. Memory bandwidth and clock rates that fall with
//! the number of busy cores are left out, too.

use super::count::Role;

/// How long a cache line takes from one core to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// What it is called in the tables.
    pub name: &'static str,
    /// Cores that share a last-level cache.
    pub group: usize,
    /// Cores of a socket.
    pub socket: usize,
    /// ns within a group.
    pub near: f64,
    /// ns between groups of a socket.
    pub far: f64,
    /// ns between sockets.
    pub remote: f64,
}

impl Machine {
    /// The mean time of a transfer if each of `cores` cores is equally likely to have had the line before.
    pub fn transfer(&self, cores: usize) -> f64 {
        if cores < 2 {
            return 0.0;
        }
        let near = cores.min(self.group) - 1;
        let far = cores.min(self.socket) - 1 - near;
        let remote = cores - 1 - near - far;
        (near as f64 * self.near + far as f64 * self.far + remote as f64 * self.remote)
            / (cores - 1) as f64
    }
}

/// What a visit costs that no other core is involved in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// ns per visit of a thread that has everything in its own cache.
    pub visit: f64,
    /// ns of each access under a lock.
    pub access: f64,
}

/// The throughput of `threads` threads of a role, in visits per second, where `cores` cores take part.
pub fn throughput(
    role: &Role,
    alone: Alone,
    machine: &Machine,
    threads: usize,
    cores: usize,
) -> f64 {
    let transfer = machine.transfer(cores);
    let mut held_alone = 0.0;
    let stations: Vec<f64> = role
        .locks
        .iter()
        .map(|lock| {
            held_alone += lock.accesses * alone.access;
            lock.transfers * transfer + lock.accesses * alone.access
        })
        .collect();
    let by_itself = (alone.visit - held_alone).max(0.0) + role.outside * transfer;
    1e9 * mean_value(by_itself, &stations, threads)
}

/// Visits per ns of a closed network.
fn mean_value(by_itself: f64, stations: &[f64], threads: usize) -> f64 {
    let mut queued = vec![0.0; stations.len()];
    let mut rate = 0.0;
    for customers in 1..=threads {
        let times: Vec<f64> = stations
            .iter()
            .zip(&queued)
            .map(|(service, before)| service * (1.0 + before))
            .collect();
        rate = customers as f64 / (by_itself + times.iter().sum::<f64>());
        queued = times.iter().map(|time| rate * time).collect();
    }
    rate
}

/// A pool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Those that submit.
    pub producer: Role,
    /// What a submit costs alone.
    pub submit: Alone,
    /// Those that run tasks.
    pub worker: Role,
    /// What taking and running a task costs alone.
    pub run: Alone,
}

/// What the model says for one number of cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Cores.
    pub cores: usize,
    /// Producers among them; the others are workers.
    pub producers: usize,
    /// Tasks per second.
    pub rate: f64,
}

impl Pool {
    /// The best division of `cores` cores into producers and workers, with one queue for all.
    pub fn on(&self, machine: &Machine, cores: usize) -> Point {
        self.sharded(machine, cores, 1)
    }

    /// The same with `shards` queues, to which producers and workers are evenly assigned.
    ///
    /// A shard's lock is contended by its own threads only, and these are on neighbouring cores.
    pub fn sharded(&self, machine: &Machine, cores: usize, shards: usize) -> Point {
        // A shard has a producer and a worker at least.
        let neighbours = cores.div_ceil(shards).max(2);
        (1..cores)
            .map(|producers| {
                let side = |role: &Role, alone: Alone, threads: usize| {
                    let shards = shards.min(threads);
                    // Some shards have one thread more than others.
                    let (each, more) = (threads / shards, threads % shards);
                    (0..shards)
                        .map(|shard| {
                            let threads = each + usize::from(shard < more);
                            throughput(role, alone, machine, threads, neighbours)
                        })
                        .sum::<f64>()
                };
                Point {
                    cores,
                    producers,
                    rate: side(&self.producer, self.submit, producers).min(side(
                        &self.worker,
                        self.run,
                        cores - producers,
                    )),
                }
            })
            .max_by(|a, b| a.rate.total_cmp(&b.rate))
            .unwrap_or(Point {
                cores,
                producers: 0,
                rate: 0.0,
            })
    }

    /// The highest rate that locks allow, whatever the number of cores, and the lock that sets it.
    pub fn ceiling(&self, transfer: f64) -> Option<(f64, String)> {
        [(&self.producer, self.submit), (&self.worker, self.run)]
            .into_iter()
            .flat_map(|(role, alone)| role.locks.iter().map(move |lock| (lock, alone)))
            .map(|(lock, alone)| {
                let held = lock.transfers * transfer + lock.accesses * alone.access;
                (1e9 / held, lock.site.clone())
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::count::Lock;
    use super::*;

    const FLAT: Machine = Machine {
        name: "flat",
        group: 128,
        socket: 128,
        near: 50.0,
        far: 50.0,
        remote: 50.0,
    };

    fn role(transfers: f64, outside: f64) -> Role {
        Role {
            outside,
            locks: vec![Lock {
                site: "inbox".to_owned(),
                taken: 1.0,
                transfers,
                accesses: 0.0,
            }],
            ..Role::default()
        }
    }

    const ALONE: Alone = Alone {
        visit: 100.0,
        access: 0.0,
    };

    #[test]
    fn a_lone_thread_pays_for_its_own_time_only() {
        let rate = throughput(&role(2.0, 1.0), ALONE, &FLAT, 1, 1);
        assert!((rate - 1e7).abs() < 1.0, "{rate}");
    }

    #[test]
    fn threads_without_a_common_lock_scale_without_end() {
        let without = Role::default();
        let one = throughput(&without, ALONE, &FLAT, 1, 64);
        let many = throughput(&without, ALONE, &FLAT, 64, 64);
        assert!((many / one - 64.0).abs() < 1e-6);
    }

    #[test]
    fn a_lock_is_a_ceiling_that_many_threads_reach_and_none_passes() {
        // 2 transfers of 50 ns: 10 million a second.
        let at = |threads| throughput(&role(2.0, 0.0), ALONE, &FLAT, threads, 64);
        assert!(at(2) < at(8) && at(8) < at(64));
        assert!(at(64) <= 1e7 && at(64) > 0.99e7, "{}", at(64));
    }

    #[test]
    fn the_time_of_a_transfer_grows_with_the_part_of_the_machine_that_takes_part() {
        let machine = Machine {
            name: "two sockets",
            group: 8,
            socket: 64,
            near: 20.0,
            far: 80.0,
            remote: 200.0,
        };
        assert_eq!(machine.transfer(1), 0.0);
        assert_eq!(machine.transfer(2), 20.0);
        assert_eq!(machine.transfer(8), 20.0);
        let (at_64, at_128) = (machine.transfer(64), machine.transfer(128));
        assert!(at_64 > 70.0 && at_64 < 80.0, "{at_64}");
        assert!(at_128 > 130.0 && at_128 < 150.0, "{at_128}");
    }

    #[test]
    fn shards_lift_the_ceiling() {
        let pool = Pool {
            producer: role(2.0, 0.0),
            submit: ALONE,
            worker: role(2.0, 0.0),
            run: ALONE,
        };
        let (one, eight) = (pool.on(&FLAT, 64), pool.sharded(&FLAT, 64, 8));
        assert!(one.rate < 1.000_001e7 && eight.rate > 4.0 * one.rate);
        assert_eq!(pool.ceiling(50.0), Some((1e7, "inbox".to_owned())));
    }
}
