//! The tray through which pictures of threads pass.

use super::{crew, gather};
use millpond_raw::stack::tray::{Nothing, Tray};
use millpond_raw::sync::thread;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A near deadline. Models have no clock; there it only says that the wait has one.
#[allow(clippy::disallowed_methods, reason = "the tray is below the clock")]
fn soon() -> Instant {
    Instant::now() + Duration::from_micros(50)
}

/// Asks once. Had, the picture is what the server made of what was laid out.
fn ask(tray: &Tray<u64>, laid_out: u64) -> Result<(), Nothing> {
    let asked = tray.hold(soon())?.ask(Box::new(laid_out))?;
    let picture = asked.wait(soon(), soon())?;
    assert_eq!(*picture, laid_out + 1);
    Ok(())
}

/// The server and an asker that may lose patience at any moment: the picture is had by one at a time,
/// and what is had is filled in.
pub(crate) fn serving_and_giving_up_agree() {
    let tray = Arc::new(Tray::new());
    let server = crew(1, {
        let tray = Arc::clone(&tray);
        move |_| tray.serve(|picture| *picture += 1)
    });
    let answer = ask(&tray, 6);
    let served = gather(server)[0];
    assert!(served || answer.is_err());
    // Whatever happened, the tray is as good as new.
    let asked = tray
        .hold(soon())
        .expect("free")
        .ask(Box::new(1))
        .expect("open");
    assert!(tray.serve(|picture| *picture += 1));
    assert_eq!(asked.wait(soon(), soon()), Ok(Box::new(2)));
}

/// As above, by dropping what was asked for.
pub(crate) fn serving_and_withdrawing_agree() {
    let tray = Arc::new(Tray::new());
    let server = crew(1, {
        let tray = Arc::clone(&tray);
        move |_| tray.serve(|picture| *picture += 1)
    });
    if let Ok(held) = tray.hold(soon()) {
        let asked = held.ask(Box::new(6)).expect("open");
        thread::yield_now();
        drop(asked);
    }
    gather(server);
    assert!(!tray.serve(|_| unreachable!("it was withdrawn")));
    assert!(tray.hold(soon()).is_ok());
}

/// Two who ask take turns at the tray.
pub(crate) fn two_who_ask_take_turns() {
    let tray = Arc::new(Tray::new());
    let askers = crew(2, {
        let tray = Arc::clone(&tray);
        move |number| {
            let _ = ask(&tray, 10 * number as u64);
        }
    });
    tray.serve(|picture| *picture += 1);
    gather(askers);
    assert!(tray.hold(soon()).is_ok());
}

/// The end of the thread against one who asks: it is told, and not served afterwards.
pub(crate) fn the_end_and_an_asker_agree() {
    let tray = Arc::new(Tray::new());
    let server = crew(1, {
        let tray = Arc::clone(&tray);
        move |_| {
            let served = tray.serve(|picture| *picture += 1);
            tray.end();
            assert!(!tray.serve(|_| unreachable!("it has ended")));
            served
        }
    });
    let answer = ask(&tray, 6);
    let served = gather(server)[0];
    assert!(served || answer.is_err());
    assert_eq!(ask(&tray, 1), Err(Nothing::Ended));
}
