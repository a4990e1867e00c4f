//! Measures the sizes of programs with the static library: `cargo bench --bench size`.
//!
//! Links `examples/echo.c` with the library from `cargo build --release`: with all features, and without each of them.
//! Unused code and symbols are removed.

use std::path::{Path, PathBuf};
use std::process::Command;

mod library;

use library::{build, run};

const FEATURES: [&str; 3] = ["", "sim", "secure,sim"];

fn size(file: &Path) -> u64 {
    file.metadata().expect("a file that was made").len()
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("size");
    println!("| features | program with the static library | shared library |\n|---|---|---|");
    for features in FEATURES {
        let libraries = build(&to, features);
        let (program, shared) = (to.join("echo"), to.join("shared.so"));
        run(Command::new("cc")
            .args(["-Os", "-s", "-Wl,--gc-sections", "-o"])
            .arg(&program)
            .arg("-I")
            .arg(folder.join("include"))
            .arg(folder.join("examples/echo.c"))
            .arg(libraries.join("librakwire_c.a"))
            .args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]));
        run(Command::new("strip").arg("-o").arg(&shared).arg(libraries.join("librakwire_c.so")));
        let features = if features.is_empty() { "none" } else { features };
        println!("| {features} | {} bytes | {} bytes |", size(&program), size(&shared));
    }
}
