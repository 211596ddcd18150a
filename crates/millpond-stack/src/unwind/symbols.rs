//! From an address to functions and lines.

use crate::Frame;
use std::ffi::c_void;

/// Appends the frames at an address, the innermost first: inlined functions, then the function that they
/// were inlined into.
///
/// `look_up` is an address inside the call; `shown` is the address that the frames get.
pub(super) fn frames_at(look_up: u64, shown: u64, frames: &mut Vec<Frame>) {
    let first = frames.len();
    // `resolve` takes a return address, and looks one byte before it.
    let return_address = usize::try_from(look_up).unwrap_or(0).wrapping_add(1);
    let return_address = std::ptr::without_provenance_mut::<c_void>(return_address);
    backtrace::resolve(return_address, |symbol| {
        frames.push(Frame {
            function: symbol.name().map(|name| format!("{name:#}")),
            file: symbol.filename().map(|file| file.display().to_string()),
            line: symbol.lineno(),
            address: shown,
            is_inlined: true,
        });
    });
    match frames[first..].last_mut() {
        Some(outermost) => outermost.is_inlined = false,
        None => frames.push(Frame::nameless(shown)),
    }
}
