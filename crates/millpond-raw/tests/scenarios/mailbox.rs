//! The mailbox through which snapshots of threads pass.

use super::{join_all, spawn_all};
use millpond_raw::stack::mailbox::{Mailbox, MailboxError};
use millpond_raw::sync::thread;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A near deadline. Models have no clock; there it only says that the wait has one.
#[allow(clippy::disallowed_methods, reason = "the mailbox is below the clock")]
fn soon() -> Instant {
    Instant::now() + Duration::from_micros(50)
}

/// Requests once. An answer is what the server made of the value.
fn request(mailbox: &Mailbox<u64>, value: u64) -> Result<(), MailboxError> {
    let request = mailbox.lock(soon())?.request(Box::new(value))?;
    let answer = request.wait(soon(), soon())?;
    assert_eq!(*answer, value + 1);
    Ok(())
}

/// The server and a requester that may time out at any moment: one of them has the value at a time,
/// and an answer is filled in.
pub(crate) fn serving_and_timing_out_agree() {
    let mailbox = Arc::new(Mailbox::new());
    let server = spawn_all(1, {
        let mailbox = Arc::clone(&mailbox);
        move |_| mailbox.serve(|value| *value += 1)
    });
    let answer = request(&mailbox, 6);
    let served = join_all(server)[0];
    assert!(served || answer.is_err());
    // Whatever happened, the mailbox is free again.
    let request = mailbox
        .lock(soon())
        .expect("free")
        .request(Box::new(1))
        .expect("open");
    assert!(mailbox.serve(|value| *value += 1));
    assert_eq!(request.wait(soon(), soon()), Ok(Box::new(2)));
}

/// As above, by dropping the request.
pub(crate) fn serving_and_withdrawing_agree() {
    let mailbox = Arc::new(Mailbox::new());
    let server = spawn_all(1, {
        let mailbox = Arc::clone(&mailbox);
        move |_| mailbox.serve(|value| *value += 1)
    });
    if let Ok(locked) = mailbox.lock(soon()) {
        let request = locked.request(Box::new(6)).expect("open");
        thread::yield_now();
        drop(request);
    }
    join_all(server);
    assert!(!mailbox.serve(|_| unreachable!("it was withdrawn")));
    assert!(mailbox.lock(soon()).is_ok());
}

/// Two requesters take turns.
pub(crate) fn two_requesters_take_turns() {
    let mailbox = Arc::new(Mailbox::new());
    let requesters = spawn_all(2, {
        let mailbox = Arc::clone(&mailbox);
        move |number| {
            let _ = request(&mailbox, 10 * number as u64);
        }
    });
    mailbox.serve(|value| *value += 1);
    join_all(requesters);
    assert!(mailbox.lock(soon()).is_ok());
}

/// Closing against a requester: it gets an error, and is not served afterwards.
pub(crate) fn closing_and_requesting_agree() {
    let mailbox = Arc::new(Mailbox::new());
    let server = spawn_all(1, {
        let mailbox = Arc::clone(&mailbox);
        move |_| {
            let served = mailbox.serve(|value| *value += 1);
            mailbox.close();
            assert!(!mailbox.serve(|_| unreachable!("it is closed")));
            served
        }
    });
    let answer = request(&mailbox, 6);
    let served = join_all(server)[0];
    assert!(served || answer.is_err());
    assert_eq!(request(&mailbox, 1), Err(MailboxError::Closed));
}
