//! Parses the log of a part of a run: its first error, the number of tests, and the failed tests. Repeats a few failed
//! tests once in isolation. A test that then passes is flaky, and not broken by the change.

use anyhow::{Result, bail};

use crate::artifacts;
use crate::shell::Shell;
use crate::targets::WASM;

/// The prefix of a line that names a flaky test.
const FLAKY: &str = "FLAKY: ";
/// The line between a run and the repeated tests.
const AGAIN: &str = "Repeating the failed tests in isolation:";
/// Maximum number of message lines in a summary.
const MESSAGE_LINES: usize = 8;
/// The maximum number of failed tests that are repeated. More failures are caused by a change rather than by chance.
const FEW: usize = 5;
const PANIC: &str = "panicked at ";

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its name in the form that the test runner accepts.
    name: String,
    /// Its file, if the test runner reports it.
    file: Option<String>,
}

/// A test runner that can run selected tests.
#[derive(Clone, Copy)]
pub enum Runner {
    /// Cargo, with the tests of all crates.
    Cargo,
    /// Node, in this folder.
    Node(&'static str),
}

impl Runner {
    /// Repeats the failed tests once. Succeeds if there are at most `FEW` and all pass.
    pub fn run_again(self, shell: &Shell, failed: &[Failed]) -> Result<()> {
        if failed.is_empty() || failed.len() > FEW {
            bail!("{} tests failed", failed.len());
        }
        shell.note(AGAIN);
        match self {
            Self::Cargo => {
                let names = failed.iter().map(|test| test.name.as_str());
                let args = artifacts::HOST_TESTS.into_iter().chain(["--", "--exact"]).chain(names);
                shell.cmd("cargo", args).run()?;
            }
            Self::Node(folder) => {
                let mut files: Vec<_> = failed.iter().filter_map(|test| test.file.as_deref()).collect();
                files.dedup();
                let args = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
                // Some tests build an example for browsers, so they need the toolchain with that target.
                shell.cmd_for(WASM, folder, "node", args.into_iter().chain(files)).run()?;
            }
        }
        failed.iter().for_each(|test| shell.note(format_args!("{FLAKY}{}", test.name)));
        Ok(())
    }
}

/// Returns the failed tests, or `None` if the log does not name them all, for example because a test program was ended
/// by a signal.
pub fn failed_tests(log: &str) -> Option<Vec<Failed>> {
    let lines: Vec<String> = log.lines().map(plain).collect();
    let of_cargo =
        lines.iter().filter_map(|line| Some(Failed { name: failed_by_cargo(line)?.to_owned(), file: None }));
    let of_node = lines.iter().zip(lines.iter().skip(1)).filter_map(|(place, name)| {
        let (file, _) = place.strip_prefix("test at ")?.split_once(':')?;
        let (name, _) = name.strip_prefix("✖ ")?.rsplit_once(" (")?;
        Some(Failed { name: name.to_owned(), file: Some(file.to_owned()) })
    });
    let failed: Vec<_> = of_cargo.chain(of_node).collect();
    let (_, count) = tests(log)?;
    let is_all = count == failed.len() as u64 && !log.contains("process didn't exit successfully");
    is_all.then_some(failed)
}

/// Returns the name of a test in the line of cargo about its failure.
fn failed_by_cargo(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// Returns the tests that failed and passed when repeated.
pub fn flaky_tests(log: &str) -> Vec<&str> {
    log.lines().filter_map(|line| line.strip_prefix(FLAKY)).collect()
}

/// Returns the first line of a log that looks like an error, with its continuation.
pub fn first_error(log: &str) -> Option<String> {
    let lines: Vec<String> = log.lines().map(|line| plain(line).trim().to_owned()).collect();
    let words = ["error[", "error:", "Error:", "not ok ", "✖ "];
    let is_error = |line: &String| {
        failed_by_cargo(line).is_some()
            || line.contains(PANIC)
            || words.iter().any(|word| line.starts_with(word))
    };
    let place = lines.iter().position(is_error)?;
    let line = &lines[place];
    // Collects the lines of a message, up to an empty line or a note.
    let message = |start: usize| {
        let own = lines.iter().skip(start).skip_while(|line| line.is_empty());
        let own = own.take_while(|line| !line.is_empty() && !line.starts_with("note: "));
        own.take(MESSAGE_LINES).map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    if let Some(name) = failed_by_cargo(line) {
        // The panic follows below, where cargo shows the output of the test.
        let heading = format!("---- {name} stdout ----");
        let start = lines.iter().position(|line| *line == heading).unwrap_or(lines.len());
        let end = |line: &&String| !line.starts_with("---- ") && !line.starts_with("failures:");
        let count =
            lines.iter().skip(start + 1).take_while(end).take_while(|line| !line.contains(PANIC)).count();
        let panic = lines.get(start + 1 + count).filter(|line| line.contains(PANIC));
        return Some(
            panic.map_or_else(|| line.clone(), |_| format!("{line}: {}", message(start + count + 2))),
        );
    }
    if line.starts_with("✖ ") {
        // Node repeats failed tests at the end of its output, with their locations and messages.
        let place = lines.iter().position(|line| line.starts_with("test at ")).unwrap_or(place);
        let block = lines.iter().skip(place).take_while(|line| !line.starts_with("at "));
        let text: Vec<_> =
            block.filter(|line| !line.is_empty()).take(MESSAGE_LINES).map(String::as_str).collect();
        return Some(text.join("\n    "));
    }
    let goes_on = line.ends_with(':') || line.contains(PANIC);
    Some(if goes_on { format!("{line} {}", message(place + 1)) } else { line.clone() })
}

/// Returns the numbers of passed and failed tests of a log, if it has any. Repeated tests are counted once.
pub fn tests(log: &str) -> Option<(u64, u64)> {
    let log = log.split_once(AGAIN).map_or(log, |(first, _)| first);
    log.lines()
        .filter_map(|line| tests_in(plain(line).trim()))
        .reduce(|one, other| (one.0 + other.0, one.1 + other.1))
}

fn tests_in(line: &str) -> Option<(u64, u64)> {
    let before = |words: &str| line.split_once(words)?.0.rsplit(' ').next()?.parse().ok();
    // Cargo and Miri.
    if line.starts_with("test result: ") {
        return Some((before(" passed")?, before(" failed")?));
    }
    // The stage of mutants. Its tests are the mutants of the list.
    if line.contains(" mutants were killed") {
        return Some((before(" mutants were killed")?, 0));
    }
    // Node, in its human-readable and its TAP format.
    let count = line.strip_prefix("ℹ ").or_else(|| line.strip_prefix("# "))?;
    match count.split_once(' ')? {
        ("pass", passed) => Some((passed.parse().ok()?, 0)),
        ("fail", failed) => Some((0, failed.parse().ok()?)),
        _ => None,
    }
}

/// Removes terminal colours from a line.
fn plain(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_reported_with_its_continuation() {
        let panics = "test a::returns ... FAILED\ntest a::panics ... FAILED\n\nfailures:\n\n---- a::returns stdout ----\n\
                      Error: \"no\"\n\n---- a::panics stdout ----\nthread 'a::panics' panicked at a.rs:1:2:\nx\n\nfailures:\n";
        let own = "test a::bad ... FAILED\n\n---- a::bad stdout ----\n\nthread 'a::bad' panicked at a.rs:1:2:\nassertion failed: x\nnote: run\n";
        let node = "✖ b (2ms)\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.test.mjs:5:1\n✖ b (2ms)\n  AssertionError: not equal\n\n  1 !== 2\n\n      at x\n";
        for (log, expected) in [
            (
                "$ x\n\u{1b}[1m\u{1b}[91merror[E0425]\u{1b}[0m: no `x`\n --> a.rs\nerror: two",
                "error[E0425]: no `x`",
            ),
            ("error: could not compile `a`\n", "error: could not compile `a`"),
            (own, "test a::bad ... FAILED: assertion failed: x"),
            // A failed test without a message does not get that of another test.
            (panics, "test a::returns ... FAILED"),
            (
                "thread 'main' panicked at src/a.rs:1:2:\n\n  it broke\nnote: run\n",
                "thread 'main' panicked at src/a.rs:1:2: it broke",
            ),
            ("ok 1 - a\n  not ok 2 - b\n", "not ok 2 - b"),
            (node, "test at a.test.mjs:5:1\n    ✖ b (2ms)\n    AssertionError: not equal\n    1 !== 2"),
            (
                "Error: documents name what does not exist:\n  a.md:1: no b\n",
                "Error: documents name what does not exist: a.md:1: no b",
            ),
        ] {
            assert_eq!(first_error(log).as_deref(), Some(expected));
        }
        assert_eq!(first_error("all is well, no error at all\n"), None);
        let failed = Failed { name: "b".into(), file: Some("a.test.mjs".into()) };
        assert_eq!(failed_tests(node), Some(vec![failed]));
    }

    #[test]
    fn failed_cargo_tests_are_named_unless_a_program_crashed() {
        let log = "test b::c - should panic ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        assert_eq!(failed_tests(log), Some(vec![Failed { name: "b::c".into(), file: None }]));
        assert_eq!(
            failed_tests(&format!("{log}  process didn't exit successfully: `x` (signal: 6)\n")),
            None
        );
        assert_eq!(failed_tests(&log.replace("1 failed", "2 failed")), None);
        assert_eq!(failed_tests("error: could not compile\n"), None);
    }

    #[test]
    fn tests_are_counted_once_in_every_runners_format() {
        let cargo = "test result: ok. 5 passed; 0 failed; 0 ignored\ntest result: FAILED. 2 passed; 1 failed; 0 ignored";
        assert_eq!(tests(cargo), Some((7, 1)));
        let again =
            format!("{cargo}\n{AGAIN}\ntest result: ok. 1 passed; 0 failed; 0 ignored\n{FLAKY}a::b\n");
        assert_eq!((tests(&again), flaky_tests(&again)), (Some((7, 1)), vec!["a::b"]));
        assert_eq!(tests("ℹ tests 4\nℹ pass 3\nℹ fail 1\n"), Some((3, 1)));
        assert_eq!(tests("# tests 4\n# pass 4\n# fail 0\n"), Some((4, 0)));
        assert_eq!(tests("9 of 9 mutants were killed, and nothing is found"), Some((9, 0)));
        assert_eq!(tests("nothing\n# passage 3\n"), None);
    }

    #[test]
    fn tests_do_not_run_again_after_many_failures_or_none() {
        let shell = Shell::new().unwrap();
        let failed = |count| vec![Failed { name: "a".to_owned(), file: None }; count];
        assert!([0, FEW + 1].iter().all(|count| Runner::Cargo.run_again(&shell, &failed(*count)).is_err()));
    }
}
