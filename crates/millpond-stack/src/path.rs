//! The crate that a function belongs to, by its demangled name.
//!
//! A name contains more than the function: type parameters, the type of a method, the trait
//! that it is a method of. All of them may name functions and types of other crates. Only the path of the
//! function tells which crate it is from:
//!
//! | name | path |
//! |---|---|
//! | `a::f::<b::T>`, `a::f<b::T>` | `a::f` |
//! | `a::f::<b::T>::{closure#0}`, `a::f::{{closure}}` | `a::f::{closure#0}`, `a::f::{{closure}}` |
//! | `<a::S<b::T>>::f`, `a::S<T>::f` | `a::S::f` |
//! | `<a::S<b::T> as c::Trait<d::U>>::f` | `a::S::f`, see below |
//! | `<fn() -> b::T as c::Trait>::f`, `<T as c::Trait>::f` | `c::Trait::f`: the type has no path |
//! | `a::<impl b::S<c::T>>::f`, `a::<impl c::Trait for b::S>::f` | `a::f`: that is where it is written |
//!
//! A method of a trait is written in the crate of the trait or in that of the type, and the name does not say
//! in which. So a function belongs to the runtime only if type *and* trait do: a trait of the user's on a
//! type of ours is the user's, as is a trait of ours on a type of the user's.
//!
//! Both mangling schemes of the compiler give the same paths, except for closures (`{closure#0}` and
//! `{{closure}}`).

/// The path of a function, and of the trait that it is a method of, both without type parameters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path {
    own: String,
    /// The trait, if its type has a path of its own.
    of_trait: Option<String>,
}

/// The crates of the runtime.
const RUNTIME: &[&str] = &["core", "alloc", "std", "millpond", "millpond_raw"];

impl Path {
    pub(crate) fn of(name: &str) -> Self {
        let Some((inside, rest)) = qualifier(name) else {
            let (own, of_trait) = (without_brackets(name), None);
            return Path { own, of_trait };
        };
        let rest = without_brackets(rest);
        let inside = inside.strip_prefix("impl ").unwrap_or(inside);
        let (of_type, of_trait) = match split_at_top(inside, " as ") {
            Some((of_type, of_trait)) => (of_type, Some(without_brackets(of_trait))),
            None => (inside, None),
        };
        match (type_path(of_type), of_trait) {
            (Some(of_type), of_trait) => Path {
                own: of_type + &rest,
                of_trait,
            },
            (None, Some(of_trait)) => Path {
                own: of_trait + &rest,
                of_trait: None,
            },
            (None, None) => Path {
                own: without_brackets(inside) + &rest,
                of_trait: None,
            },
        }
    }

    /// Whether it begins with one of these, and belongs to the runtime.
    pub(crate) fn begins_with(&self, starts: &[&str]) -> bool {
        starts.iter().any(|start| self.own.starts_with(start)) && !self.has_foreign_trait()
    }

    /// Whether it is a function of this name, or inside one, and belongs to the runtime.
    pub(crate) fn is_in(&self, function: &str) -> bool {
        self.own.split("::").any(|part| part == function) && !self.has_foreign_trait()
    }

    fn has_foreign_trait(&self) -> bool {
        let first = self
            .of_trait
            .as_ref()
            .and_then(|path| path.split("::").next());
        first.is_some_and(|krate| !RUNTIME.contains(&krate))
    }
}

/// The end of the bracket that is opened at the beginning.
fn end_of_bracket(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, sign) in text.char_indices() {
        match sign {
            '<' => open += 1,
            // The arrow of `fn() -> T` closes nothing.
            '>' if !text[..at].ends_with('-') => {
                open = open.checked_sub(1)?;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// `inside` and `::rest` of `<inside>::rest`.
fn qualifier(name: &str) -> Option<(&str, &str)> {
    if !name.starts_with('<') {
        return None;
    }
    let end = end_of_bracket(name)?;
    Some((&name[1..end], &name[end + 1..]))
}

/// The texts before and after the first `mark` outside brackets.
fn split_at_top<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(after) = rest.strip_prefix(mark) {
            return Some((&text[..at], after));
        }
        at += if rest.starts_with('<') {
            end_of_bracket(rest)? + 1
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
    }
    None
}

/// The path without everything in angle brackets.
fn without_brackets(path: &str) -> String {
    let mut kept = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(start) = rest.find('<') {
        kept.push_str(&rest[..start]);
        let bracket = &rest[start..];
        let Some(end) = end_of_bracket(bracket) else {
            // The name is truncated, or not a name.
            return kept;
        };
        rest = &bracket[end + 1..];
        // `f::<T>` and `a::<impl S>::f` leave their colons behind.
        let length = kept.trim_end_matches("::").len();
        kept.truncate(length);
    }
    kept.push_str(rest);
    kept
}

/// The path of a type, through references and pointers; `None` if it has none: a parameter, a function, a
/// tuple, a slice.
fn type_path(text: &str) -> Option<String> {
    let mut text = text.trim_start();
    loop {
        let before = text;
        for sign in ["&", "*const ", "*mut ", "mut ", "dyn "] {
            text = text.strip_prefix(sign).unwrap_or(text);
        }
        // `&'a T` and `for<'a> Fn(&'a T)`.
        if text.starts_with('\'') {
            text = text.split_once(' ').map_or(text, |(_, rest)| rest);
        }
        if let Some(bound) = text.strip_prefix("for") {
            if bound.starts_with('<') {
                let end = end_of_bracket(bound)?;
                text = bound[end + 1..].trim_start();
            }
        }
        if text == before {
            break;
        }
    }
    if text.starts_with('<') {
        return Some(Path::of(text).own);
    }
    let path = without_brackets(text);
    // `dyn Fn(u8) -> u8 + Send`
    let end = path.find(['(', ' ', '+', '[', ',']).unwrap_or(path.len());
    let path = &path[..end];
    path.contains("::").then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str) -> String {
        Path::of(name).own
    }

    #[test]
    fn the_path_of_a_function_has_nothing_of_its_type_parameters() {
        // The first of each is how `-C symbol-mangling-version=v0` has it.
        let cases = [
            (
                "orders::run::<millpond::pool::worker::Shift>",
                "orders::run",
            ),
            ("orders::run<millpond::pool::worker::Shift>", "orders::run"),
            (
                "orders::run::<<millpond::pool::worker::Shift>::work::{closure#0}>::{closure#1}",
                "orders::run::{closure#1}",
            ),
            ("orders::run::{{closure}}", "orders::run::{{closure}}"),
            (
                "<orders::Job<millpond::task::runnable::Task>>::go",
                "orders::Job::go",
            ),
            ("orders::Job<T>::go", "orders::Job::go"),
            (
                "<orders::Job<fn(u8) -> millpond::task::Task> as core::ops::Drop>::drop",
                "orders::Job::drop",
            ),
            (
                "<millpond::pool::engine::Engine>::admit",
                "millpond::pool::engine::Engine::admit",
            ),
            (
                "millpond::pool::worker::<impl millpond::pool::engine::Engine>::rest",
                "millpond::pool::worker::rest",
            ),
            (
                "orders::ext::<impl orders::Ext for millpond::task::TaskHandle<T>>::all",
                "orders::ext::all",
            ),
            (
                "<&mut dyn core::ops::function::FnMut(u8) -> u8 + Send as a::B>::call",
                "core::ops::function::FnMut::call",
            ),
            (
                "<dyn for<'a> orders::Visit<&'a u8> as a::B>::call",
                "orders::Visit::call",
            ),
            (
                "<fn() -> orders::Bill as core::ops::function::FnOnce<()>>::call_once",
                "core::ops::function::FnOnce::call_once",
            ),
            (
                "<F as core::ops::function::FnOnce<Args>>::call_once",
                "core::ops::function::FnOnce::call_once",
            ),
            (
                "<(orders::A, orders::B) as core::clone::Clone>::clone",
                "core::clone::Clone::clone",
            ),
            (
                "<<orders::A as orders::Has>::Of as core::clone::Clone>::clone",
                "orders::A::Of::clone",
            ),
            ("{closure#1}<a::{impl#3}::b<()>, ()>", "{closure#1}"),
            ("start_thread", "start_thread"),
            ("odd>name<", "odd>name"),
            ("<odd", ""),
            ("", ""),
        ];
        for (name, path) in cases {
            assert_eq!(own(name), path, "{name}");
        }
    }

    #[test]
    fn a_method_belongs_to_the_runtime_only_if_type_and_trait_do() {
        let ours = &["millpond::", "alloc::boxed::"];
        let is_ours = |name: &str| Path::of(name).begins_with(ours);
        for name in [
            "<millpond::pool::worker::Shift as core::ops::drop::Drop>::drop",
            "<alloc::boxed::Box<orders::Job> as core::ops::function::FnOnce<()>>::call_once",
            "<millpond::pool::Seat as millpond::task::in_place::Host>::begins",
            "<F as millpond::executor::traits::ExecutorExt>::run",
        ] {
            assert!(is_ours(name), "{name}");
        }
        for name in [
            "<millpond::task::TaskHandle<u8> as orders::Ext>::wait_for_all",
            "<alloc::boxed::Box<T> as orders::Visit>::go",
            "<orders::Executor as millpond::executor::traits::Executor>::execute",
            "<orders::main::{closure#0} as core::ops::function::FnOnce<()>>::call_once",
            "millpond_shop::pool::worker::run",
        ] {
            assert!(!is_ours(name), "{name}");
        }
    }

    #[test]
    fn a_function_is_known_by_its_name_wherever_it_is() {
        let function = "__rust_begin_short_backtrace";
        for name in [
            "std::sys::backtrace::__rust_begin_short_backtrace::<orders::main::{closure#0}, ()>",
            "std::sys_common::backtrace::__rust_begin_short_backtrace",
            "__rust_begin_short_backtrace<fn(), ()>",
        ] {
            assert!(Path::of(name).is_in(function), "{name}");
        }
        let other = "orders::run::<std::sys::backtrace::__rust_begin_short_backtrace<fn(), ()>>";
        assert!(!Path::of(other).is_in(function));
    }
}
