//! Runs a program, shuts everything down and checks the ledgers.

use super::computation::Plan;
use super::engines::PoolEngine;
use super::judge;
use super::outside::{Submits, drop_with_the_thread, fork};
use super::program::{Program, Step};
use super::world::{World, pick};
use crate::chaos::actions;
use crate::chaos::client::{self, Client, let_go, small_task, submit_other, submit_some};
use crate::chaos::ledger::{Fact, lock};
use crate::chaos::round::wait_for;
use crate::chaos::shape::End;
use crate::kit::Rng;
use millpond::executor::ExecutorExt;
use millpond::task::TaskLocal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Inherited by a task whose end is to submit another.
static SUBMITS: TaskLocal<Submits> = TaskLocal::new();

/// The result of a program.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// How many tasks and elements there were.
    pub tasks: u64,
    /// All that is wrong; nothing, if all is well.
    pub wrong: Vec<String>,
}

/// Plays a program. One that hangs never returns: watch it.
///
/// # Panics
///
/// If the operating system refuses a thread for the players.
pub fn play(program: &Program) -> Played {
    let world = World::build(program);
    thread::scope(|s| {
        for (thread, steps) in program.threads.iter().enumerate() {
            let world = &world;
            s.spawn(move || {
                for step in steps {
                    world.take_step(thread, step);
                }
            });
        }
    });
    end(world)
}

impl World {
    /// A step that finds nothing to do does nothing.
    fn take_step(&self, thread: usize, step: &Step) -> Option<()> {
        match *step {
            Step::Storm { pool, seed, tasks } => {
                let tasks = usize::try_from(tasks).unwrap_or(0);
                drop(actions::produce(&self.client(pool)?, Rng::new(seed), tasks));
            }
            Step::Meddle { pool, seed } => pick(&self.pools, pool)?.meddle(seed),
            Step::Scope { pool, seed } => {
                client::scope(&self.client(pool)?, &mut Rng::new(seed), false);
            }
            Step::Relay { pool, to, seed } => self.relay(pool, to, seed)?,
            Step::Destructor { pool, to, seed } => self.destructor(pool, to, seed)?,
            Step::Ephemeral { pool, seed } => {
                self.ephemeral.come_and_go(self.client(pool)?, seed);
            }
            Step::Local { pool, to, seed } => {
                let (client, rng) = (self.client(pool)?, &mut Rng::new(seed));
                let to = pick(&self.pools, to)?.bank_for_a_thread_local()?;
                let submits = Submits::new(to, rng.any(), &self.destructors);
                let submitted = submit_other(&client, rng, move || drop_with_the_thread(submits));
                keep(&client, submitted);
            }
            Step::DropIn { pool, of } => {
                let client = self.client(pool)?;
                let dropped = pick(&self.pools, of)?.take_bank()?;
                let submitted = submit_other(&client, &mut Rng::new(of), move || drop(dropped));
                keep(&client, submitted);
            }
            Step::Stop { pool, seed } => {
                let end = match seed % 5 {
                    0 => End::ShutdownNow,
                    1 => End::ShutdownThenNow,
                    2 => End::Close,
                    3 => End::FromWithin,
                    _ => End::Shutdown,
                };
                client::end(&self.client(pool)?, &mut Rng::new(seed), end);
            }
            Step::Compute { pool, seed } => self.compute(pool, seed)?,
            Step::Fork { pool } => fork(&self.client(pool)?),
            Step::Invoke { pool, seed, tasks } => invoke(&self.client(pool)?, seed, tasks),
            Step::Spawn {
                threads,
                seed,
                tasks,
            } => pick(&self.per_task, threads)?.spawn_some(seed, tasks),
            Step::Serial {
                serial,
                key,
                seed,
                tasks,
            } => pick(&self.serials, serial)?.submit_some(thread, key, seed, tasks),
            Step::Complete {
                service,
                seed,
                tasks,
            } => {
                let (service, rng) = (pick(&self.services, service)?, &mut Rng::new(seed));
                (0..tasks).for_each(|_| service.submit(rng));
            }
            Step::Feed {
                from,
                to,
                seed,
                results,
            } => {
                let (from, to) = (pick(&self.services, from)?, pick(&self.services, to)?);
                let rng = &mut Rng::new(seed);
                for _ in 0..results {
                    if from.take(Duration::from_millis(1)) {
                        to.submit(rng);
                    }
                }
            }
            Step::Schedule { timer, seed, tasks } => {
                pick(&self.timers, timer)?.schedule_some(seed, tasks);
            }
            Step::Repeat { timer, seed } => pick(&self.timers, timer)?.repeat(seed),
            Step::Put {
                queue,
                seed,
                elements,
            } => {
                let (queue, rng) = (pick(&self.queues, queue)?, &mut Rng::new(seed));
                (0..elements).for_each(|_| queue.put(rng));
            }
            Step::Take {
                queue,
                seed,
                elements,
            } => {
                let (queue, rng) = (pick(&self.queues, queue)?, &mut Rng::new(seed));
                for _ in 0..elements {
                    queue.take(rng);
                }
            }
            Step::Change { queue, seed } => {
                pick(&self.queues, queue)?.change(&mut Rng::new(seed));
            }
            Step::Pipe {
                pool,
                from,
                to,
                seed,
            } => {
                let (client, rng) = (self.client(pool)?, &mut Rng::new(seed));
                let from = pick(&self.queues, from)?.clone();
                let to = pick(&self.queues, to)?.clone();
                let mut own = rng.fork();
                let pipe = move || {
                    for _ in 0..3 {
                        if from.take(&mut own) {
                            to.put(&mut own);
                        }
                    }
                };
                let submitted = submit_other(&client, rng, pipe);
                keep(&client, submitted);
            }
        }
        Some(())
    }

    fn destructor(&self, pool: u64, to: u64, seed: u64) -> Option<()> {
        let (client, rng) = (self.client(pool)?, &mut Rng::new(seed));
        let submits = Submits::new(self.client(to)?, rng.any(), &self.destructors);
        let is_carried = rng.once_in(2);
        let submitted = if is_carried {
            SUBMITS.scope(submits, || submit_other(&client, rng, || ()))
        } else {
            submit_other(&client, rng, move || drop(submits))
        };
        if let Some((id, handle)) = submitted {
            if rng.once_in(2) {
                client.ledger.entry(id).note(Fact::Asked);
                handle.cancel();
            }
            // A value is carried as long as there is a handle.
            if is_carried {
                let_go(&client, id, handle)
            } else {
                lock(&client.ledger.unjoined).push((id, handle))
            }
        }
        Some(())
    }

    fn compute(&self, pool: u64, seed: u64) -> Option<()> {
        let (pools, rng) = (self.fork_join_pools(), &mut Rng::new(seed));
        let here = usize::try_from(pool).ok()?.checked_rem(pools.len())?;
        let plan = Plan::draw(rng, here, pools.len());
        let wrong = pools.check(rng, here, plan);
        if let Some(wrong) = wrong {
            pools.ledger(here).wrong(wrong);
        }
        Some(())
    }

    fn relay(&self, pool: u64, to: u64, seed: u64) -> Option<()> {
        let (client, to, rng) = (self.client(pool)?, self.client(to)?, &mut Rng::new(seed));
        let mut own = rng.fork();
        let submitted = submit_other(&client, rng, move || submit_some(&to, &mut own, 1));
        keep(&client, submitted);
        Some(())
    }
}

type Submitted = Option<(
    usize,
    millpond::task::TaskHandle<crate::chaos::ledger::Value>,
)>;

/// Its handle is looked at in the end.
fn keep(client: &Client, submitted: Submitted) {
    lock(&client.ledger.unjoined).extend(submitted);
}

/// Many at once. A caller that stops waiting cancels, so any of them may not have run.
fn invoke(client: &Client, seed: u64, tasks: u64) {
    let rng = &mut Rng::new(seed);
    let mut all = Vec::new();
    for _ in 0..tasks {
        let Some((id, task)) = small_task(&client.ledger, rng) else {
            return;
        };
        let entry = client.ledger.entry(id);
        entry.note(Fact::Accepted);
        entry.note(Fact::Asked);
        all.push(task);
    }
    let timeout = rng.timeout() * 20;
    match rng.below(3) {
        0 => drop(client.invoke_all(all)),
        1 => drop(client.invoke_all_timeout(all, timeout)),
        _ => {
            let all = all.into_iter().map(|task| move || Ok::<_, ()>(task()));
            drop(client.invoke_any_timeout(all, timeout));
        }
    }
}

/// Ends every engine, those first that stand on others, and judges.
fn end(world: World) -> Played {
    let World {
        pools,
        timers,
        per_task,
        serials,
        services,
        queues,
        ephemeral,
        destructors,
    } = world;
    let timers = (pools.len() as u64..).zip(timers);
    let timers: Vec<_> = timers.map(|(seed, timer)| timer.end(seed)).collect();
    services.iter().for_each(|service| service.end());
    per_task.iter().for_each(|engine| engine.end());
    let mut played = Played::default();
    // The other engines must drop their handles of the pools before a pool can end with its last handle.
    let mut ledgers = Vec::new();
    ledgers.extend(services.iter().map(|service| Arc::clone(&service.ledger)));
    drop(services);
    ledgers.extend(serials.iter().map(|serial| Arc::clone(&serial.ledger)));
    drop(serials);
    ledgers.extend(per_task.iter().map(|engine| Arc::clone(&engine.ledger)));

    // On a thread that ends: it may run returned tasks, and have thread-locals then.
    let last: Vec<Option<Client>> = thread::scope(|s| {
        let ender = s.spawn(|| pools.iter().map(PoolEngine::end).collect());
        ender.join().expect("to end a pool does not panic")
    });
    for (pool, last) in pools.iter().zip(&last) {
        pool.wait(last.as_ref());
    }
    wait_for(|| destructors.load(Ordering::SeqCst) == 0);
    for (pool, last) in pools.iter().zip(last) {
        judge::pool(pool, last);
        played.take(&pool.ledger);
    }
    ledgers.extend(timers.into_iter().map(judge::timers));
    ledgers.push(judge::timers(ephemeral.end()));
    for ledger in ledgers {
        judge::loosely(&ledger);
        played.take(&ledger);
    }
    for queue in queues {
        queue.end();
        judge::queue(&queue.ledger);
        played.take(&queue.ledger);
    }
    played
}

impl Played {
    fn take(&mut self, ledger: &crate::chaos::ledger::Ledger) {
        self.tasks += ledger.len() as u64;
        self.wrong.extend(ledger.all_wrong());
    }
}
