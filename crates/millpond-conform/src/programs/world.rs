//! The engines of a program, built from its lines, each with a ledger of its own.

use super::computation::Pools;
use super::engines::{PerTaskEngine, PoolEngine, SerialEngine, ServiceEngine, TimerEngine};
use super::ephemeral::Ephemeral;
use super::program::{Engine, Program};
use super::queues::QueueEngine;
use crate::chaos::client::Client;
use crate::chaos::ledger::Ledger;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// How many tasks an engine may have; what finds no entry is not submitted.
const MOST_TASKS: usize = 3000;

/// All engines.
pub(super) struct World {
    pub(super) pools: Vec<PoolEngine>,
    pub(super) timers: Vec<TimerEngine>,
    pub(super) per_task: Vec<PerTaskEngine>,
    pub(super) serials: Vec<SerialEngine>,
    pub(super) services: Vec<ServiceEngine>,
    pub(super) queues: Vec<QueueEngine>,
    pub(super) ephemeral: Ephemeral,
    /// Destructors that submit and have not run.
    pub(super) destructors: Arc<AtomicUsize>,
}

/// A ledger for one engine.
pub(super) fn ledger() -> Arc<Ledger> {
    Ledger::new(MOST_TASKS)
}

/// The one with this number, modulo how many there are.
pub(super) fn pick<T>(of: &[T], number: u64) -> Option<&T> {
    of.get(usize::try_from(number).ok()?.checked_rem(of.len())?)
}

impl World {
    pub(super) fn build(program: &Program) -> Self {
        let mut world = World {
            pools: Vec::new(),
            timers: Vec::new(),
            per_task: Vec::new(),
            serials: Vec::new(),
            services: Vec::new(),
            queues: Vec::new(),
            ephemeral: Ephemeral::new(),
            destructors: Arc::default(),
        };
        // Pools first: the others stand on them.
        for engine in &program.engines {
            match engine {
                Engine::Pool { shape } => {
                    world.pools.push(PoolEngine::new(*shape, program.deadlines));
                }
                Engine::ForkJoin { shape } => {
                    let engine = PoolEngine::fork_join(*shape, program.deadlines);
                    world.pools.push(engine);
                }
                _ => {}
            }
        }
        for engine in &program.engines {
            match engine {
                Engine::Pool { .. } | Engine::ForkJoin { .. } => {}
                Engine::Scheduled { shape } => world.timers.push(TimerEngine::owning(*shape)),
                Engine::ScheduledOn { pool } => {
                    let client = world.client(*pool);
                    world.timers.extend(client.map(TimerEngine::on));
                }
                Engine::PerTask { threads } => world.per_task.push(PerTaskEngine::new(*threads)),
                Engine::Serial { pool } => {
                    let client = world.client(*pool);
                    world.serials.extend(client.map(SerialEngine::new));
                }
                Engine::Completion { pool } => {
                    let client = world.client(*pool);
                    world.services.extend(client.map(ServiceEngine::new));
                }
                Engine::Queue { flavor, bound } => {
                    world.queues.push(QueueEngine::new(*flavor, *bound));
                }
            }
        }
        world
    }

    /// All fork-join pools that have not been dropped.
    pub(super) fn fork_join_pools(&self) -> Pools {
        Pools::of(self.pools.iter().filter_map(PoolEngine::client))
    }

    /// A handle of a pool, unless it has been dropped.
    pub(super) fn client(&self, pool: u64) -> Option<Client> {
        pick(&self.pools, pool)?.client()
    }
}
