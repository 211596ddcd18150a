//! How a stack is printed, and what of it is left out.
//!
//! # What is left out
//!
//! From the outside in: everything up to the innermost *floor*, the function that gives the thread something
//! to do; then the *plumbing* on that floor, which carries a closure to where it runs. Both are told
//! by functions and files that belong to millpond and std, so a program without symbols is printed
//! whole, and at least one frame always is. In between nothing is ever left out. Whose a function is says
//! its path, and nothing among its type parameters ([`super::path`]).
//!
//! Type parameters are left out of names, except where a name begins with its type. [`Frame::function`]
//! has them.

use super::path::Path;
use super::{Frame, Stack};
use std::fmt;

/// The functions below which there is nothing but millpond or std: by path, from its beginning.
const FLOORS: &[&str] = &["millpond::pool::worker::", "std::rt::lang_start"];

/// One that is known by its name alone: std has moved it about.
const FLOOR: &str = "__rust_begin_short_backtrace";

/// The same by package and file: an inlined function has a name without a path.
const FLOOR_FILES: &[(&str, &str)] = &[("millpond", "pool/worker.rs")];

/// What carries a closure from the floor to where it runs: by path, from its beginning.
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

/// The same by package and file.
const PLUMBING_FILES: &[(&str, &str)] = &[
    ("millpond-raw", "task/"),
    ("millpond-raw", "scope/"),
    ("millpond-raw", "quiet.rs"),
    ("millpond", "executor/"),
    ("millpond", "task/"),
    ("millpond", "pool/"),
    ("core", "ops/function.rs"),
    ("core", "panic/unwind_safe.rs"),
    ("std", "panic.rs"),
    ("std", "panicking.rs"),
    ("alloc", "boxed.rs"),
];

/// Columns up to which places are lined up.
const WIDEST: usize = 60;

impl Frame {
    fn is_floor(&self) -> bool {
        let path = Path::of(self.function().unwrap_or_default());
        path.begins_with(FLOORS) || path.is_in(FLOOR) || self.is_in(FLOOR_FILES)
    }

    fn is_plumbing(&self) -> bool {
        let path = Path::of(self.function().unwrap_or_default());
        path.begins_with(PLUMBING) || self.is_in(PLUMBING_FILES)
    }

    /// Whether it comes from one of these files, each with its package.
    fn is_in(&self, files: &[(&str, &str)]) -> bool {
        let path = self.file().map(shorten);
        let Some((package, file)) = path.and_then(|path| path.split_once("/src/")) else {
            return false;
        };
        files.iter().any(|(owner, start)| {
            // A package from a registry has its version behind its name.
            let version = package
                .strip_prefix(owner)
                .and_then(|rest| rest.strip_prefix('-'));
            let is_version =
                version.is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()));
            (package == *owner || is_version) && file.starts_with(start)
        })
    }

    fn name(&self) -> String {
        match self.function() {
            Some(name) => without_parameters(name),
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

/// `Receiver<T>::recv` and `recv::<T>` without what is in the angle brackets. Those at the start of a
/// path, as in `<Parker>::park` and `<impl Engine>::add`, say where a method belongs, and stay.
fn without_parameters(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    // How many brackets are open, and at which of them the leaving out began.
    let (mut open, mut left_out) = (0_usize, None);
    for (at, sign) in name.char_indices() {
        match sign {
            '<' => {
                open += 1;
                let before = kept.trim_end_matches(':');
                let follows_a_name =
                    before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '}'));
                let is_impl = name[at..].starts_with("<impl ");
                if left_out.is_none() && follows_a_name && !is_impl {
                    kept.truncate(before.len());
                    left_out = Some(open);
                }
            }
            // The arrow of `fn() -> T` closes nothing.
            '>' if !name[..at].ends_with('-') => {
                let ends_here = left_out == Some(open);
                open = open.saturating_sub(1);
                if ends_here {
                    left_out = None;
                    continue;
                }
            }
            _ => {}
        }
        if left_out.is_none() {
            kept.push(sign);
        }
    }
    kept
}

/// What of a path tells a reader something: from the package's folder on.
fn shorten(path: &str) -> &str {
    let behind = |mark: &str| path.split_once(mark).map(|(_, rest)| rest);
    // std's own: as the toolchain was built, /rustc/<hash>/library/std/src/.., or with its source.
    let std = path
        .strip_prefix("/rustc/")
        .and_then(|rest| rest.split_once("/library/"));
    if let Some(inside) = std
        .map(|(_, rest)| rest)
        .or_else(|| behind("/src/rust/library/"))
    {
        return inside;
    }
    // A package from a registry: ~/.cargo/registry/src/<index>/<package>/src/..
    if let Some((_, inside)) = behind("/registry/src/").and_then(|rest| rest.split_once('/')) {
        return inside;
    }
    // A package of somebody's own: whatever stands before its folder is where it lies today.
    let inside = ["/src/", "/tests/", "/examples/", "/benches/"]
        .iter()
        .find_map(|folder| path.rfind(folder));
    match inside.filter(|_| path.starts_with('/')) {
        Some(folder) => &path[path[..folder].rfind('/').map_or(0, |slash| slash + 1)..],
        None => path,
    }
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
    fn inlined_plumbing_is_known_by_its_file() {
        let plumbing = [
            "/rustc/abc/library/std/src/panicking.rs",
            "/home/me/.cargo/registry/src/index-1/millpond-raw-0.1.0/src/task/cell.rs",
            "/home/me/millpond/crates/millpond-raw/src/task/cell.rs",
        ];
        for file in plumbing {
            assert!(frame("run<X>", Some((file, 1))).is_plumbing(), "{file}");
        }
        for file in [
            "/home/me/millpond-shop/src/task/cell.rs",
            "src/task/cell.rs",
        ] {
            assert!(!frame("run<X>", Some((file, 1))).is_plumbing(), "{file}");
        }
    }

    #[test]
    fn an_inlined_worker_is_a_floor_and_what_the_users_factory_put_below_is_not_shown() {
        let stack = Stack::new(
            vec![
                frame("syscall", None),
                frame("{closure#0}", Some(("src/main.rs", 31))),
                frame("run", Some(("/m/crates/millpond/src/pool/worker.rs", 90))),
                frame("orders::Factory::start", Some(("src/main.rs", 7))),
                frame("start_thread", None),
            ],
            false,
        );
        assert_eq!(stack.shown(), 2);
    }

    #[test]
    fn a_users_frame_is_shown_whatever_its_type_parameters_name() {
        let ours = [
            "millpond::pool::worker::Shift",
            "<millpond::pool::worker::Shift>::live::<millpond::pool::figures::WithoutFigures>",
            "std::sys::backtrace::__rust_begin_short_backtrace<fn(), ()>",
            "std::rt::lang_start<()>::{{closure}}",
        ];
        for parameter in ours {
            let users = [
                format!("orders::settle::<{parameter}>"),
                format!("orders::settle<{parameter}>::{{{{closure}}}}"),
                format!("<orders::Job<{parameter}>>::go"),
                format!("<orders::Job as orders::Takes<{parameter}>>::go"),
                format!("<{parameter} as orders::Ext>::go"),
            ];
            for user in users {
                let frames = vec![
                    frame("syscall", None),
                    frame(&user, None),
                    frame("orders::main::{closure#0}", None),
                    frame("core::ops::function::FnOnce::call_once", None),
                    frame("<millpond::pool::worker::Shift>::run", None),
                    frame("start_thread", None),
                ];
                assert_eq!(Stack::new(frames, false).shown(), 3, "{user}");
            }
        }
    }

    #[test]
    fn a_dump_of_a_release_build_is_shown_down_to_the_users_frames() {
        // As it came, without line tables.
        let frames = [
            "syscall",
            "<std::thread::thread::Thread>::park",
            "std::sync::mpmc::list::Channel<T>::recv::{{closure}}",
            "std::sync::mpmc::list::Channel<T>::recv",
            "orders::waits",
            "orders::settle",
            "millpond_raw::task::layout::TaskCell<F,T,M>::run",
            "millpond_raw::task::cell::CellRef::run",
            "millpond::pool::worker::Shift::run_first",
            "millpond_raw::task::current::enter_engine",
            "millpond::task::in_place::at_home",
            "millpond::pool::worker::Shift::work",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "std::sys::backtrace::__rust_begin_short_backtrace",
            "<std::sys::thread::unix::Thread>::new::thread_start",
            "start_thread",
        ];
        let frames = frames.map(|name| frame(name, None)).to_vec();
        assert_eq!(Stack::new(frames, false).shown(), 6);
        // The same with `-C symbol-mangling-version=v0`.
        let frames = [
            "syscall",
            "<std::thread::thread::Thread>::park",
            "<std::sync::mpmc::list::Channel<()>>::recv",
            "orders::waits",
            "orders::settle::<orders::generic<millpond::pool::ThreadPool>::{closure#0}>",
            "<millpond_raw::task::layout::TaskCell<orders::main::{closure#1}, (), millpond::task::meta::Meta>>::run",
            "<millpond_raw::task::cell::CellRef>::run::<<millpond::pool::worker::Shift>::run<millpond::pool::figures::WithoutFigures>::{closure#2}>",
            "<millpond::pool::worker::Shift>::run_first::<millpond::pool::figures::AtDesk>",
            "millpond_raw::task::current::enter_engine::<(), <millpond::pool::worker::Shift>::work::{closure#1}>",
            "<millpond::pool::worker::Shift>::work",
            "std::sys::backtrace::__rust_begin_short_backtrace::<alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()> + core::marker::Send>, ()>",
            "start_thread",
        ];
        let frames = frames.map(|name| frame(name, None)).to_vec();
        assert_eq!(Stack::new(frames, false).shown(), 5);
    }

    #[test]
    fn names_are_printed_without_type_parameters() {
        let cases = [
            ("recv<()>", "recv"),
            (
                "std::sync::mpsc::Receiver<T>::recv",
                "std::sync::mpsc::Receiver::recv",
            ),
            ("core::iter::fold::<u8, fn(u8) -> u8>", "core::iter::fold"),
            (
                "<a::Safe<F> as a::FnOnce<()>>::call",
                "<a::Safe as a::FnOnce>::call",
            ),
            ("<std::Parker>::park", "<std::Parker>::park"),
            (
                "a::<impl b::Engine<T>>::add::{{closure}}",
                "a::<impl b::Engine>::add::{{closure}}",
            ),
            ("{closure#1}<a::{impl#3}::b<()>, ()>", "{closure#1}"),
            (
                "<fn() -> R<T> as a::B<()>>::call",
                "<fn() -> R as a::B>::call",
            ),
            ("odd>name<", "odd>name"),
        ];
        for (long, short) in cases {
            assert_eq!(without_parameters(long), short);
        }
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
            (
                "/toolchain/lib/rustlib/src/rust/library/core/src/ops.rs",
                "core/src/ops.rs",
            ),
            ("/home/me/orders/tests/one.rs", "orders/tests/one.rs"),
            ("./nptl/pthread_create.c", "./nptl/pthread_create.c"),
        ];
        for (path, short) in cases {
            assert_eq!(shorten(path), short);
        }
    }
}
