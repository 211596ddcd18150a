//! What this was built with is part of every figure that it measures.
#![forbid(unsafe_code)]

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let said = Command::new(compiler).arg("--version").output();
    let version = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    let version = version.unwrap_or_else(|_| "unknown".into());
    println!("cargo::rustc-env=MILLPOND_BENCH_RUSTC={version}");
    for (name, of) in [
        ("MILLPOND_BENCH_PROFILE", "PROFILE"),
        ("MILLPOND_BENCH_OPT_LEVEL", "OPT_LEVEL"),
        ("MILLPOND_BENCH_TARGET", "TARGET"),
    ] {
        let value = env::var(of).unwrap_or_else(|_| "unknown".into());
        println!("cargo::rustc-env={name}={value}");
    }
}
