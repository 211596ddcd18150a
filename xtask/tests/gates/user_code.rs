//! The gate `ledger`: calls into user code.

use xtask::gates::ledger::user_code::check;

use crate::tree::{Tree, falls, stands};

const FILE: &str = "crates/millpond/src/pool.rs";

fn pool(code: &str) -> Tree {
    Tree::new(&[
        (FILE, code),
        ("crates/millpond-raw/src/lib.rs", "//! Raw.\n"),
    ])
}

#[test]
fn a_call_that_asks_the_guard_stands() {
    let text = "fn f() {\n    user_code::check(Kind::Hook);\n    let _ = catch_unwind(g);\n}\n";
    stands(check, &pool(text));
    let text = "fn f() {\n    let _ = catch_unwind(|| except_locks(|| g()));\n}\n";
    stands(check, &pool(text));
}

#[test]
fn a_call_past_the_guard_falls() {
    let text = "use millpond_raw::user_code::Kind;\nfn f() {\n    let _ = std::panic::catch_unwind(g);\n}\n";
    falls(check, &pool(text), &format!("{FILE}:3"), "past the guard");
    let far = "\n".repeat(20);
    let text =
        format!("fn e() {{ user_code::check(Kind::Hook) }}\n{far}fn f() {{ catch_unwind(g); }}\n");
    falls(check, &pool(&text), FILE, "past the guard");
    let text = "// user_code::check\nfn f() { catch_unwind(g); }\n";
    falls(check, &pool(text), FILE, "past the guard");
}

#[test]
fn tests_and_the_doors_themselves_may() {
    let clean = "fn f() {\n    user_code::check(Kind::Hook);\n    let _ = catch_unwind(g);\n}\n";
    let far = "\n".repeat(20);
    let tests = "#[cfg(test)]\nmod tests {\n    fn f() { catch_unwind(g); }\n}\n";
    stands(check, &pool(&format!("{clean}{far}{tests}")));
    let door = "fn call() { catch_unwind(g); }\n";
    let doors = pool(clean).with("crates/millpond-raw/src/quiet.rs", door);
    stands(check, &doors);
}
