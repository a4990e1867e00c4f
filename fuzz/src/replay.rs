//! Runs all targets on their committed inputs as ordinary tests, so that fixed bugs stay fixed.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tar::Archive;

use crate::targets::{self, Target};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a target on its committed inputs and returns their number.
fn replay(name: &str, target: Target) -> usize {
    let path = here(&format!("corpus/{name}.tar.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut count = 0;
    for entry in Archive::new(GzDecoder::new(file)).entries().expect("an archive") {
        let mut entry = entry.expect("an input");
        println!("{name}: {}", entry.path().expect("a name").display());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("the bytes of an input");
        target(&bytes);
        count += 1;
    }
    count
}

#[test]
fn every_fuzz_target_passes_on_its_committed_inputs() {
    for (name, target) in targets::ALL {
        let count = replay(name, target);
        assert!(count > 10, "{name} has only {count} committed inputs");
    }
}

#[test]
fn every_fuzz_target_has_a_program() {
    let programs = std::fs::read_dir(here("fuzz_targets")).expect("the programs");
    let mut found: Vec<_> = programs.map(|entry| entry.expect("a program").file_name()).collect();
    found.sort();
    assert_eq!(found, targets::ALL.map(|(name, _)| OsString::from(format!("{name}.rs"))));
}
