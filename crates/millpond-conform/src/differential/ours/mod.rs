//! Our side: runs scripts on our `ThreadPool` and `ForkJoinPool`, in this process.

mod computation;
mod forkjoin;
mod futures;
mod ledger;
mod parts;
mod player;

use super::Side;
use super::judge::Log;
use super::script::{Script, Setup, Step};
use forkjoin::ForkJoinPlayer;
use futures::FuturePlayer;
use player::Player;
use std::io;
use std::time::Duration;

/// Plays scripts on our pool.
#[derive(Debug)]
pub struct Ours {
    timeout: Duration,
    script: Option<Script>,
}

impl Ours {
    /// A player. A step that has not come to rest after `timeout` is stuck.
    pub fn new(timeout: Duration) -> Self {
        Ours {
            timeout,
            script: None,
        }
    }

    /// Plays a script from its beginning to its end.
    pub fn play(&self, script: &Script) -> Log {
        let player = match &script.setup {
            Setup::Pool(setup) => Player::build(setup, self.timeout).map(AnyPlayer::Pool),
            Setup::ForkJoin(setup) => {
                ForkJoinPlayer::build(*setup, self.timeout).map(AnyPlayer::ForkJoin)
            }
            Setup::Futures => Ok(AnyPlayer::Futures(FuturePlayer::new())),
        };
        let Ok(mut player) = player else {
            return vec!["impossible".into()];
        };
        let mut log = Log::new();
        let steps = script.steps.iter().filter(|step| step.is_played());
        let mut steps = steps.map(Some).chain(std::iter::once(None));
        let mut line = player.opening();
        loop {
            let is_stuck = line.is_err();
            log.push(line.unwrap_or_else(|stuck| format!("stuck: {stuck}")));
            line = match steps.next() {
                Some(step) if !is_stuck => player.play(step),
                _ => break,
            };
        }
        player.let_go();
        log
    }
}

/// The player for the pool of a script.
enum AnyPlayer {
    Pool(Player),
    ForkJoin(ForkJoinPlayer),
    Futures(FuturePlayer),
}

impl AnyPlayer {
    fn opening(&mut self) -> Result<String, String> {
        match self {
            AnyPlayer::Pool(player) => player.opening(),
            AnyPlayer::ForkJoin(player) => player.opening(),
            AnyPlayer::Futures(player) => player.opening(),
        }
    }

    fn play(&mut self, step: Option<&Step>) -> Result<String, String> {
        match self {
            AnyPlayer::Pool(player) => player.play(step),
            AnyPlayer::ForkJoin(player) => player.play(step),
            AnyPlayer::Futures(player) => player.play(step),
        }
    }

    fn let_go(&self) {
        match self {
            AnyPlayer::Pool(player) => player.let_go(),
            AnyPlayer::ForkJoin(player) => player.let_go(),
            AnyPlayer::Futures(_) => {}
        }
    }
}

impl Side for Ours {
    fn begin(&mut self, script: &Script) -> io::Result<()> {
        self.script = Some(script.clone());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<Log> {
        let script = self.script.take();
        let script = script.ok_or_else(|| io::Error::other("no script has begun"))?;
        Ok(self.play(&script))
    }
}
