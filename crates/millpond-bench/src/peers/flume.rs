//! `flume`.

use super::{Channel, Ends, Opened, Receive, Send};
use flume::{Receiver, Sender, bounded, unbounded};

/// `flume::bounded` and `unbounded`.
#[derive(Debug)]
pub struct Flume;

impl Channel for Flume {
    const NAME: &'static str = "flume";
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;

    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
        let (sender, receiver) = ends.bound.map_or_else(unbounded, bounded);
        Opened::cloned(ends, sender, receiver)
    }
}

impl Send for Sender<u64> {
    fn send(&mut self, message: u64) {
        Sender::send(self, message).expect("a receiver is there");
    }
}

impl Receive for Receiver<u64> {
    fn receive(&mut self) -> u64 {
        self.recv().expect("a sender is there, or a message")
    }
}
