//! Runs the target that `FUZZ_TARGET` names under libFuzzer, whose own arguments and `main` these are.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mailgate::fuzzing::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    let Some((_, target)) = found else {
        eprintln!("FUZZ_TARGET={wanted:?} names no target (src/fuzzing.rs lists them)");
        std::process::exit(2);
    };
    *target
});

fuzz_target!(|data: &[u8]| TARGET(data));
