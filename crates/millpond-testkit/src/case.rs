//! One test of a suite: watched, and checked for what it leaves behind.

use super::{Watchdog, delays};

/// Runs the body of a test under a watchdog.
///
/// # Panics
///
/// If the body does, or leaves an interrupt behind.
pub fn case(name: &str, body: impl FnOnce()) {
    let mut body = Some(body);
    watched(name, &mut || {
        if let Some(body) = body.take() {
            body();
        }
    });
}

/// The same, compiled once: there are thousands of cases.
fn watched(name: &str, body: &mut dyn FnMut()) {
    let _watchdog = Watchdog::arm(name, delays::hang());
    body();
    assert!(
        !millpond::interrupt::is_interrupted(),
        "`{name}` leaves an interrupt behind"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_raw::task::Token;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn an_interrupt_that_is_left_pending_is_caught() {
        let token = Token::new();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            token.enter(|| case("careless", || token.set()));
        }));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("`careless` leaves an interrupt behind"));
    }
}
