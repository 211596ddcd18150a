//! Ctrl-C in the middle of a run: the terminal is restored, and a line says that nothing is
//! left of the run: files are written at the end, whole or not at all (see
//! [`crate::output_file`]).
//!
//! For a program's `main`, because a process has one way to be interrupted. The thread that waits for
//! it sleeps until then, and so disturbs nothing that is measured.

use anyhow::Result;
use std::io::IsTerminal;

/// From now on Ctrl-C, or a polite `kill`, ends the program in order.
///
/// # Errors
///
/// If signals cannot be listened for.
#[cfg(unix)]
pub fn leave_in_order() -> Result<()> {
    use signal_hook::consts::TERM_SIGNALS;
    use signal_hook::iterator::Signals;

    let mut signals = Signals::new(TERM_SIGNALS)?;
    std::thread::Builder::new()
        .name("ctrl-c".into())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                say_farewell();
                // The exit code that a shell expects of a program that was interrupted.
                std::process::exit(128 + signal);
            }
        })?;
    Ok(())
}

/// Elsewhere the system ends the program by itself, which leaves no file behind either.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn leave_in_order() -> Result<()> {
    let _ = say_farewell;
    Ok(())
}

fn say_farewell() {
    // The bar or the echo of the key on the cursor's line is cleared.
    let clear = if std::io::stderr().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    };
    eprintln!("{clear}bench: interrupted before the end, so no file was written");
}
