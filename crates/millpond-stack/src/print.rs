//! How a stack is printed, and which frames are left out.
//!
//! # Frames that are left out
//!
//! From the outermost frame inwards: all frames up to the innermost *entry point*, the function that gives the
//! thread its work, such as a worker loop; then the *shims* above it, which pass a closure on to the place
//! where it is called. Both are recognised by the functions and files of millpond and std, so the stack of a
//! program without symbols is printed whole. At least one frame is printed, and frames between others are
//! never left out. The path of a function decides whose it is, not its type parameters ([`crate::path`]).
//!
//! Type parameters are left out of names, except where a name begins with its type. [`Frame::function`]
//! has them.

use crate::path::Path;
use crate::{Frame, Stack};
use std::fmt;

/// Entry points, by the beginning of their path: below them there is nothing but millpond and std.
const ENTRY_POINTS: &[&str] = &[
    "millpond::pool::worker::",
    "millpond::forkjoin::worker::",
    "std::rt::lang_start",
];

/// An entry point known by its name alone, as std has moved it between modules.
const STD_ENTRY_POINT: &str = "__rust_begin_short_backtrace";

/// Entry points by package and file, because the name of an inlined function has no path.
const ENTRY_FILES: &[(&str, &str)] = &[
    ("millpond", "pool/worker.rs"),
    ("millpond", "forkjoin/worker.rs"),
];

/// Shims, by the beginning of their path.
const SHIMS: &[&str] = &[
    "millpond_raw::task::",
    "millpond_raw::scope::",
    "millpond_raw::forkjoin::",
    "millpond_raw::catch_panic::",
    "millpond::executor::",
    "millpond::task::",
    "millpond::forkjoin::",
    "core::ops::function::",
    "core::panic::unwind_safe::",
    "std::panic::catch_unwind",
    "std::panicking::catch_unwind",
    "std::panicking::try",
    "__rust_try",
    "alloc::boxed::",
];

/// Shims by package and file.
const SHIM_FILES: &[(&str, &str)] = &[
    ("millpond-raw", "task/"),
    ("millpond-raw", "scope/"),
    ("millpond-raw", "forkjoin/"),
    ("millpond-raw", "catch_panic.rs"),
    ("millpond", "executor/"),
    ("millpond", "task/"),
    ("millpond", "pool/"),
    ("millpond", "forkjoin/"),
    ("core", "ops/function.rs"),
    ("core", "panic/unwind_safe.rs"),
    ("std", "panic.rs"),
    ("std", "panicking.rs"),
    ("alloc", "boxed.rs"),
];

/// The widest name after which locations are aligned.
const MAX_ALIGNED: usize = 60;

impl Frame {
    fn is_entry_point(&self) -> bool {
        let path = Path::of(self.function().unwrap_or_default());
        path.begins_with(ENTRY_POINTS) || path.is_in(STD_ENTRY_POINT) || self.is_in(ENTRY_FILES)
    }

    fn is_shim(&self) -> bool {
        let path = Path::of(self.function().unwrap_or_default());
        path.begins_with(SHIMS) || self.is_in(SHIM_FILES)
    }

    /// Whether its file is one of these, or in one of these folders; each with its package.
    fn is_in(&self, files: &[(&str, &str)]) -> bool {
        let path = self.file().map(shorten);
        let Some((package, file)) = path.and_then(|path| path.split_once("/src/")) else {
            return false;
        };
        files.iter().any(|(owner, start)| {
            // A package from a registry has its version after its name.
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

    fn location(&self) -> Option<String> {
        let file = shorten(self.file()?);
        Some(match self.line() {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        })
    }
}

/// `Receiver<T>::recv` and `recv::<T>` without their type parameters. Angle brackets at the start of a path,
/// as in `<Parker>::park` and `<impl Engine>::add`, name the type of a method, and stay.
fn without_parameters(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    // How many brackets are open, and the depth at which a parameter list began.
    let (mut open, mut skipped) = (0_usize, None);
    for (at, sign) in name.char_indices() {
        match sign {
            '<' => {
                open += 1;
                let before = kept.trim_end_matches(':');
                let follows_a_name =
                    before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '}'));
                let is_impl = name[at..].starts_with("<impl ");
                if skipped.is_none() && follows_a_name && !is_impl {
                    kept.truncate(before.len());
                    skipped = Some(open);
                }
            }
            // The arrow of `fn() -> T` closes nothing.
            '>' if !name[..at].ends_with('-') => {
                let ends_here = skipped == Some(open);
                open = open.saturating_sub(1);
                if ends_here {
                    skipped = None;
                    continue;
                }
            }
            _ => {}
        }
        if skipped.is_none() {
            kept.push(sign);
        }
    }
    kept
}

/// The part of a path from the package's folder on.
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
    // Any other package: the folders around it are of no interest.
    let inside = ["/src/", "/tests/", "/examples/", "/benches/"]
        .iter()
        .find_map(|folder| path.rfind(folder));
    match inside.filter(|_| path.starts_with('/')) {
        Some(folder) => &path[path[..folder].rfind('/').map_or(0, |slash| slash + 1)..],
        None => path,
    }
}

impl Stack {
    /// How many frames are printed.
    fn shown(&self) -> usize {
        let frames = self.frames();
        let Some(mut shown) = frames.iter().position(Frame::is_entry_point) else {
            return frames.len();
        };
        while shown > 0 && frames[shown - 1].is_shim() {
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
            .filter(|&length| length <= MAX_ALIGNED)
            .max()
            .unwrap_or(0);
        for (number, frame) in frames.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            match frame.location() {
                Some(location) => write!(f, "{number:>4}  {:<width$}  {location}", frame.name())?,
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
    fn a_stack_is_printed_down_to_the_tasks_body_and_says_what_it_skipped() {
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
    fn shims_in_the_middle_are_printed() {
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
    fn a_stack_without_names_or_of_shims_alone_is_printed_whole() {
        let nameless = Stack::new(vec![Frame::nameless(0xabc), Frame::nameless(0xdef)], true);
        assert_eq!(
            nameless.to_string(),
            "   0  0xabc\n   1  0xdef\n      … and more, which was not copied or could not be walked"
        );
        let shims = Stack::new(
            vec![
                frame("__rust_try", None),
                frame("millpond::pool::worker::Shift::run", None),
            ],
            false,
        );
        assert_eq!(shims.shown(), 2);
    }

    #[test]
    fn an_inlined_shim_is_known_by_its_file() {
        let shims = [
            "/rustc/abc/library/std/src/panicking.rs",
            "/home/me/.cargo/registry/src/index-1/millpond-raw-0.1.0/src/task/cell.rs",
            "/home/me/millpond/crates/millpond-raw/src/task/cell.rs",
        ];
        for file in shims {
            assert!(frame("run<X>", Some((file, 1))).is_shim(), "{file}");
        }
        for file in [
            "/home/me/millpond-shop/src/task/cell.rs",
            "src/task/cell.rs",
        ] {
            assert!(!frame("run<X>", Some((file, 1))).is_shim(), "{file}");
        }
    }

    #[test]
    fn an_inlined_worker_is_an_entry_point_and_frames_of_the_thread_factory_are_left_out() {
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
    fn a_users_frame_is_printed_whatever_its_type_parameters_name() {
        let ours = [
            "millpond::pool::worker::Shift",
            "<millpond::pool::worker::Shift>::live::<millpond::pool::figures::WithoutMetrics>",
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
    fn a_dump_of_a_release_build_is_printed_down_to_the_users_frames() {
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
            "<millpond_raw::task::cell::CellRef>::run::<<millpond::pool::worker::Shift>::run<millpond::pool::figures::WithoutMetrics>::{closure#2}>",
            "<millpond::pool::worker::Shift>::run_first::<millpond::pool::figures::AtDesk>",
            "millpond_raw::task::current::enter_engine::<(), <millpond::pool::worker::Shift>::work::{closure#1}>",
            "<millpond::pool::worker::Shift>::work",
            "std::sys::backtrace::__rust_begin_short_backtrace::<alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()> + core::marker::Send>, ()>",
            "start_thread",
        ];
        let frames = frames.map(|name| frame(name, None)).to_vec();
        assert_eq!(Stack::new(frames, false).shown(), 5);
    }

    /// Modules and files of millpond that have moved would be printed again, and no other test would say so.
    #[test]
    fn the_modules_and_files_of_millpond_that_are_named_here_exist() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let exists = |package: &str, path: &str| {
            let sources = crates.join(package).join("src");
            let is_there =
                sources.join(path).exists() || sources.join(format!("{path}.rs")).exists();
            assert!(is_there, "{package}: {path}");
        };
        for path in ENTRY_POINTS.iter().chain(SHIMS) {
            let mut parts = path.split("::");
            let package = match parts.next() {
                Some("millpond") => "millpond",
                Some("millpond_raw") => "millpond-raw",
                _ => continue,
            };
            exists(
                package,
                parts.collect::<Vec<_>>().join("/").trim_end_matches('/'),
            );
        }
        for (package, path) in ENTRY_FILES.iter().chain(SHIM_FILES) {
            if package.starts_with("millpond") {
                exists(package, path);
            }
        }
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
    fn paths_are_shortened_to_the_package() {
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
