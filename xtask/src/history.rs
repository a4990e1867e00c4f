//! Records the duration of each part of a run, to show it as an estimate the next time.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::shell::Shell;

const FOLDER: &str = "target/xtask/seconds";

/// Estimates in seconds for the first run of the slowest parts, on two cores with nothing built.
#[rustfmt::skip]
const ESTIMATES: [(&str, u32); 22] = [
    ("set-up tools of xtask", 40), ("set-up wasm-bindgen", 60), ("set-up wasm-pack", 120),
    ("set-up cargo-deny", 240), ("set-up npm packages", 30), ("set-up npm package", 150),
    ("set-up game package", 60), ("set-up page", 30), ("set-up programs", 240),
    ("set-up host tests", 900), ("set-up foreign RakNet in C++", 90),
    ("set-up foreign RakNet peers", 300), ("set-up chromium", 60), ("set-up benchmark", 200),
    ("set-up relay for the benchmark", 200), ("clippy", 300), ("cargo", 600), ("wasm", 300),
    ("interop", 400), ("package", 600), ("mutants", 900), ("fuzz", 600),
];

/// Returns the duration of a part in seconds when it last passed.
pub fn seconds(shell: &Shell, part: &str) -> Option<f64> {
    fs::read_to_string(file(shell, part)).ok()?.trim().parse().ok()
}

/// Records the duration of a part that has passed.
pub fn keep(shell: &Shell, part: &str, took: Duration) {
    let file = file(shell, part);
    // If this fails, the next run shows an estimate or nothing.
    let _ = file.parent().map_or(Ok(()), fs::create_dir_all);
    let _ = fs::write(file, format!("{:.1}\n", took.as_secs_f64()));
}

/// Returns the expected duration of a part in words: the last one, or an estimate.
pub fn expected(shell: &Shell, part: &str) -> Option<String> {
    let estimate = ESTIMATES.iter().find(|(name, _)| *name == part);
    let known = seconds(shell, part);
    // A shorter duration means that the step had nothing to do, so it is no estimate.
    let known = known.filter(|seconds| *seconds >= 1.0).map(|seconds| format!("usually {}", words(seconds)));
    known.or_else(|| {
        estimate.map(|(_, seconds)| format!("about {} the first time", words(f64::from(*seconds))))
    })
}

/// Returns a duration in words.
fn words(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

fn file(shell: &Shell, part: &str) -> PathBuf {
    shell.path(FOLDER).join(part.replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_duration_is_that_of_the_last_run() {
        let shell = Shell::new().unwrap();
        let part = "a part of the tests of xtask";
        let _ = fs::remove_file(file(&shell, part));
        assert_eq!(expected(&shell, part), None);
        keep(&shell, part, Duration::from_millis(41_600));
        assert_eq!(expected(&shell, part).as_deref(), Some("usually 42 s"));
        assert_eq!(seconds(&shell, part), Some(41.6));
        keep(&shell, part, Duration::from_secs(600));
        assert_eq!(expected(&shell, part).as_deref(), Some("usually 10 min"));
        keep(&shell, part, Duration::from_millis(90));
        assert_eq!(expected(&shell, part), None);
        fs::remove_file(file(&shell, part)).unwrap();
    }
}
