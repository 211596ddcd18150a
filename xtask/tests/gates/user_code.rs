//! The gate `ledger`: calls into user code.

use xtask::gates::ledger::user_code::check;

use crate::tree::{Tree, fails, passes};

const FILE: &str = "crates/millpond/src/pool.rs";

fn pool(code: &str) -> Tree {
    Tree::new(&[
        (FILE, code),
        ("crates/millpond-raw/src/lib.rs", "//! Raw.\n"),
    ])
}

#[test]
fn a_call_with_the_guard_passes() {
    let text = "fn f() {\n    user_code::check(Kind::Hook);\n    let _ = catch_unwind(g);\n}\n";
    passes(check, &pool(text));
    let text = "fn f() {\n    let _ = catch_unwind(|| except_locks(|| g()));\n}\n";
    passes(check, &pool(text));
}

#[test]
fn a_call_without_the_guard_fails() {
    let text = "use millpond_raw::user_code::Kind;\nfn f() {\n    let _ = std::panic::catch_unwind(g);\n}\n";
    fails(
        check,
        &pool(text),
        &format!("{FILE}:3"),
        "without the guard",
    );
    let far = "\n".repeat(20);
    let text =
        format!("fn e() {{ user_code::check(Kind::Hook) }}\n{far}fn f() {{ catch_unwind(g); }}\n");
    fails(check, &pool(&text), FILE, "without the guard");
    let text = "// user_code::check\nfn f() { catch_unwind(g); }\n";
    fails(check, &pool(text), FILE, "without the guard");
}

#[test]
fn tests_and_the_catching_module_may_do_without() {
    let clean = "fn f() {\n    user_code::check(Kind::Hook);\n    let _ = catch_unwind(g);\n}\n";
    let far = "\n".repeat(20);
    let tests = "#[cfg(test)]\nmod tests {\n    fn f() { catch_unwind(g); }\n}\n";
    passes(check, &pool(&format!("{clean}{far}{tests}")));
    let door = "fn call() { catch_unwind(g); }\n";
    let doors = pool(clean).with("crates/millpond-raw/src/catch_panic.rs", door);
    passes(check, &doors);
}
