//! `crossbeam-channel`.

use super::{Channel, Ends, Opened, Receive, Send};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

/// `crossbeam_channel::bounded` and `unbounded`.
#[derive(Debug)]
pub struct Crossbeam;

impl Channel for Crossbeam {
    const NAME: &'static str = "crossbeam-channel";
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
