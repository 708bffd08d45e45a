//! Runs the targets on the committed corpora: bugs that the fuzzer found stay fixed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::TARGETS;

/// The maximum total size of all corpora, in bytes.
const MOST_BYTES: usize = 300_000;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn every_corpus_passes_its_target() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(
        names(&corpora()),
        targets,
        "fuzz/corpus has a folder for each target"
    );
    let (mut failed, mut bytes) = (Vec::new(), 0);
    for (name, target) in TARGETS {
        let folder = corpora().join(name);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in inputs {
            let data = fs::read(folder.join(&input)).unwrap();
            bytes += data.len();
            // Names all failures.
            if catch_unwind(AssertUnwindSafe(|| target(&data))).is_err() {
                failed.push(format!("{name}/{input}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(
        bytes <= MOST_BYTES,
        "the corpora take {bytes} bytes; `make fuzz-corpus` shrinks them"
    );
}

#[test]
fn every_target_takes_anything() {
    let inputs: [&[u8]; 5] = [b"", b"\0", b"\xff\xff\xff\xff", &[0; 600], &[0xff; 600]];
    for (name, target) in TARGETS {
        for input in inputs {
            let taken = catch_unwind(AssertUnwindSafe(|| target(input)));
            assert!(taken.is_ok(), "{name} fails on {input:02x?}");
        }
    }
}
