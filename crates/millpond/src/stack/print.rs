//! How a stack is printed, and what of it is left out.
//!
//! # What is left out
//!
//! From the outside in: everything up to the first frame, seen from the innermost, that is the *floor* of what
//! a thread was given to do; then the *plumbing* on that floor, which carries a closure to where it
//! runs. Both are told by the names of functions that belong to millpond and std, so a program without
//! symbols is printed whole, and at least one frame always is. In between nothing is ever left
//! out.

use super::{Frame, Stack};
use std::fmt;

/// The functions below which there is nothing but millpond or std.
const FLOORS: &[&str] = &[
    "millpond::pool::worker::",
    "__rust_begin_short_backtrace",
    "std::rt::lang_start",
];

/// What carries a closure from the floor to where it runs.
const PLUMBING: &[&str] = &[
    "millpond_raw::task::",
    "millpond_raw::scope::",
    "millpond_raw::quiet::",
    "millpond::executor::",
    "millpond::task::",
    "core::ops::function::",
    "core::panic::unwind_safe::",
    "std::panic::catch_unwind",
    "std::panicking::catch_unwind",
    "std::panicking::try",
    "__rust_try",
    "alloc::boxed::",
];

/// Columns up to which places are lined up.
const WIDEST: usize = 60;

impl Frame {
    fn is_floor(&self) -> bool {
        let name = self.function().unwrap_or_default();
        FLOORS.iter().any(|floor| name.contains(floor))
    }

    /// By where the name begins: a body may well mention plumbing among its type parameters.
    fn is_plumbing(&self) -> bool {
        let name = self.function().unwrap_or_default();
        let name = name.trim_start_matches(['<', '&', '(']);
        PLUMBING.iter().any(|start| name.starts_with(start))
    }

    fn name(&self) -> String {
        match self.function() {
            Some(name) => name.to_owned(),
            None => format!("{:#x}", self.address()),
        }
    }

    fn place(&self) -> Option<String> {
        let file = shorten(self.file()?);
        Some(match self.line() {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        })
    }
}

/// What of a path tells a reader something: from the crate's folder on.
fn shorten(path: &str) -> &str {
    // std's own, as the toolchain was built: /rustc/<hash>/library/std/src/..
    if let Some((_, inside)) = path
        .strip_prefix("/rustc/")
        .and_then(|rest| rest.split_once("/library/"))
    {
        return inside;
    }
    // A package from a registry: ~/.cargo/registry/src/<index>/<package>/src/..
    if let Some((_, inside)) = path
        .split_once("/registry/src/")
        .and_then(|(_, rest)| rest.split_once('/'))
    {
        return inside;
    }
    // A package of somebody's own: whatever stands before `<package>/src/` is where it lies today.
    if let Some(source) = path.rfind("/src/").filter(|_| path.starts_with('/')) {
        let package = path[..source].rfind('/').map_or(0, |slash| slash + 1);
        return &path[package..];
    }
    path
}

impl Stack {
    /// How many frames are worth showing.
    fn shown(&self) -> usize {
        let frames = self.frames();
        let Some(mut shown) = frames.iter().position(Frame::is_floor) else {
            return frames.len();
        };
        while shown > 0 && frames[shown - 1].is_plumbing() {
            shown -= 1;
        }
        match shown {
            0 => frames.len(),
            shown => shown,
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() {
            self.frames().len()
        } else {
            self.shown()
        };
        let frames = &self.frames()[..shown];
        let lengths = frames.iter().map(|frame| frame.name().chars().count());
        let width = lengths
            .filter(|&length| length <= WIDEST)
            .max()
            .unwrap_or(0);
        for (number, frame) in frames.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            match frame.place() {
                Some(place) => write!(f, "{number:>4}  {:<width$}  {place}", frame.name())?,
                None => write!(f, "{number:>4}  {}", frame.name())?,
            }
        }
        match self.frames().len() - shown {
            0 => {}
            hidden => write!(f, "\n      … and {hidden} of the runtime")?,
        }
        if self.is_truncated() {
            f.write_str("\n      … and more, which was not copied or could not be walked")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, place: Option<(&str, u32)>) -> Frame {
        Frame {
            function: Some(function.to_owned()),
            file: place.map(|(file, _)| file.to_owned()),
            line: place.map(|(_, line)| line),
            address: 0x10,
            is_inlined: false,
        }
    }

    fn worker_stack() -> Stack {
        Stack::new(
            vec![
                frame("syscall", None),
                frame(
                    "orders::settle",
                    Some(("/home/me/orders/src/settle.rs", 114)),
                ),
                frame("orders::main::{closure#0}", Some(("src/main.rs", 31))),
                frame("core::ops::function::FnOnce::call_once", None),
                frame("<millpond_raw::task::Cell<orders::X>>::run", None),
                frame("<millpond::pool::worker::Shift>::run", None),
                frame("std::sys::backtrace::__rust_begin_short_backtrace", None),
                frame("start_thread", None),
            ],
            false,
        )
    }

    #[test]
    fn a_stack_is_printed_down_to_the_tasks_body_and_says_what_it_left_out() {
        assert_eq!(
            worker_stack().to_string(),
            "   0  syscall\n\
             \x20  1  orders::settle             orders/src/settle.rs:114\n\
             \x20  2  orders::main::{closure#0}  src/main.rs:31\n\
             \x20     … and 5 of the runtime"
        );
    }

    #[test]
    fn the_alternate_form_leaves_nothing_out() {
        let text = format!("{:#}", worker_stack());
        assert_eq!(text.lines().count(), 8);
        assert!(text.ends_with("7  start_thread"), "{text}");
    }

    #[test]
    fn plumbing_in_the_middle_stays() {
        let stack = Stack::new(
            vec![
                frame("std::panicking::try", None),
                frame("orders::settle", None),
                frame("__rust_try", None),
                frame("millpond::pool::worker::Shift::run", None),
            ],
            false,
        );
        assert_eq!(stack.shown(), 2);
    }

    #[test]
    fn a_stack_without_names_or_of_plumbing_alone_is_printed_whole() {
        let nameless = Stack::new(vec![Frame::nameless(0xabc), Frame::nameless(0xdef)], true);
        assert_eq!(
            nameless.to_string(),
            "   0  0xabc\n   1  0xdef\n      … and more, which was not copied or could not be walked"
        );
        let plumbing = Stack::new(
            vec![
                frame("__rust_try", None),
                frame("millpond::pool::worker::Shift::run", None),
            ],
            false,
        );
        assert_eq!(plumbing.shown(), 2);
    }

    #[test]
    fn paths_are_shortened_to_what_tells_something() {
        let cases = [
            ("/rustc/abc/library/std/src/rt.rs", "std/src/rt.rs"),
            (
                "/home/me/.cargo/registry/src/index.crates.io-1/object-0.37.3/src/lib.rs",
                "object-0.37.3/src/lib.rs",
            ),
            ("/home/me/orders/src/a/b.rs", "orders/src/a/b.rs"),
            ("src/main.rs", "src/main.rs"),
            ("/build/tests/one.rs", "/build/tests/one.rs"),
        ];
        for (path, short) in cases {
            assert_eq!(shorten(path), short);
        }
    }
}
