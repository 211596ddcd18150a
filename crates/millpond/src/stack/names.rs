//! From an address to functions and lines.

use super::Frame;
use std::ffi::c_void;

/// The calls at an address, the innermost first: the function there, and before it whatever the
/// compiler has put into it.
///
/// `look_up` is an address inside the call; `shown` is what the frame will say.
pub(super) fn frames_at(look_up: u64, shown: u64, into: &mut Vec<Frame>) {
    let first = into.len();
    // It takes a return address, and looks one byte before it.
    let behind = usize::try_from(look_up).unwrap_or(0).wrapping_add(1);
    let behind = std::ptr::without_provenance_mut::<c_void>(behind);
    backtrace::resolve(behind, |symbol| {
        into.push(Frame {
            function: symbol.name().map(|name| format!("{name:#}")),
            file: symbol.filename().map(|file| file.display().to_string()),
            line: symbol.lineno(),
            address: shown,
            is_inlined: true,
        });
    });
    match into[first..].last_mut() {
        Some(outermost) => outermost.is_inlined = false,
        None => into.push(Frame::nameless(shown)),
    }
}
