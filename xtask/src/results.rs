//! Parses the log of a part of a run: its first error, the number of tests, and the failed ones.

/// The prefix of a line that names a flaky test.
pub const FLAKY: &str = "FLAKY: ";
/// The line between a run and the repeated tests.
pub const AGAIN: &str = "Repeating the failed tests in isolation:";

/// Maximum number of message lines in a summary.
const MESSAGE_LINES: usize = 8;

/// The numbers of tests of a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
}

impl Tests {
    /// Returns the total number.
    pub const fn all(self) -> u64 {
        self.passed + self.failed
    }

    const fn plus(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its name in the form that its runner accepts.
    pub name: String,
    /// Its file, if its runner reports it.
    pub file: Option<String>,
}

/// Returns the failed tests, or `None` if the log does not name them all, for example because a test program was ended
/// by a signal.
pub fn failed_tests(log: &str) -> Option<Vec<Failed>> {
    let lines: Vec<String> = log.lines().map(plain).collect();
    let of_cargo = lines.iter().filter_map(|line| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        Some(Failed { name: name.to_owned(), file: None })
    });
    let of_node = lines.iter().zip(lines.iter().skip(1)).filter_map(|(place, name)| {
        let (file, _) = place.strip_prefix("test at ")?.split_once(':')?;
        let (name, _) = name.strip_prefix("✖ ")?.rsplit_once(" (")?;
        Some(Failed { name: name.to_owned(), file: Some(file.to_owned()) })
    });
    let failed: Vec<_> = of_cargo.chain(of_node).collect();
    let is_all = tests(log)?.failed == u64::try_from(failed.len()).ok()?
        && !log.contains("process didn't exit successfully");
    is_all.then_some(failed)
}

/// Returns the tests that failed and passed when repeated.
pub fn flaky_tests(log: &str) -> Vec<&str> {
    log.lines().filter_map(|line| line.strip_prefix(FLAKY)).collect()
}

/// Returns the first line of a log that looks like an error, with its continuation.
pub fn first_error(log: &str) -> Option<String> {
    let lines: Vec<String> = log.lines().map(plain).collect();
    let (place, kind) =
        lines.iter().enumerate().find_map(|(place, line)| Some((place, kind(line.trim())?)))?;
    let line = lines.get(place)?.trim();
    let after = |place: usize| {
        let rest = lines.get(place + 1..).unwrap_or_default();
        rest.iter().map(|line| line.trim()).find(|line| !line.is_empty()).unwrap_or_default()
    };
    Some(match kind {
        Kind::NodeTest => in_node(&lines).unwrap_or_else(|| line.to_owned()),
        Kind::Message if line.ends_with(':') => format!("{line} {}", after(place)),
        Kind::Message => line.to_owned(),
        Kind::Panic => format!("{line} {}", after(place)),
        // The panic follows below, where cargo shows the output of the test.
        Kind::Test => {
            let (start, end) = printed_by(&lines, place, line);
            let printed = lines.iter().enumerate().take(end).skip(start);
            let panic = printed.into_iter().find(|(_, line)| line.contains(PANIC));
            panic.map_or_else(
                || line.to_owned(),
                |(panic, _)| format!("{line}: {}", message(&lines, panic + 1)),
            )
        }
    })
}

/// Returns the message of a panic that begins at this line and ends at the next line of the runner.
fn message(lines: &[String], start: usize) -> String {
    let lines = lines.iter().skip(start).map(|line| line.trim());
    let own = lines.take_while(|line| !line.is_empty() && !line.starts_with("note: "));
    own.take(MESSAGE_LINES).collect::<Vec<_>>().join(" ")
}

/// Returns the first failed test of Node with its location and message, which are at the end of a log.
fn in_node(lines: &[String]) -> Option<String> {
    let place = lines.iter().position(|line| line.starts_with("test at "))?;
    let block = lines.iter().skip(place).map(|line| line.trim_end()).take_while(|line| {
        let is_stack = line.trim_start().starts_with("at ");
        !is_stack
    });
    let text: Vec<_> = block.filter(|line| !line.is_empty()).take(MESSAGE_LINES + 2).collect();
    Some(text.join("\n    "))
}

/// Returns the lines after `place` that a failed test printed, if its runner is cargo; for other runners, all following
/// lines.
fn printed_by(lines: &[String], place: usize, line: &str) -> (usize, usize) {
    let name = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
    let Some(name) = name else { return (place, lines.len()) };
    let find = |from: usize, is_it: &dyn Fn(&str) -> bool| {
        let below = lines.iter().enumerate().skip(from);
        below.into_iter().find(|(_, line)| is_it(line.trim())).map_or(lines.len(), |(place, _)| place)
    };
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let heading = format!("---- {name} stdout ----");
    let start = find(place, &|line| line == heading);
    let end = find(start + 1, &|line| line.starts_with("---- ") || line.starts_with("failures:"));
    (start, end)
}

const PANIC: &str = "panicked at ";

/// The kinds of lines that are errors.
#[derive(Clone, Copy)]
enum Kind {
    Message,
    Panic,
    Test,
    NodeTest,
}

fn kind(line: &str) -> Option<Kind> {
    if line.starts_with("test ") && line.ends_with("... FAILED") {
        Some(Kind::Test)
    } else if line.contains(PANIC) {
        Some(Kind::Panic)
    } else if line.starts_with("✖ ") {
        Some(Kind::NodeTest)
    } else {
        let words = ["error[", "error:", "Error:", "not ok "];
        words.iter().any(|word| line.starts_with(word)).then_some(Kind::Message)
    }
}

/// Counts the tests of a log, if it has any. Repeated tests are counted once.
pub fn tests(log: &str) -> Option<Tests> {
    let log = log.split_once(AGAIN).map_or(log, |(first, _)| first);
    let found = log.lines().filter_map(|line| tests_in(plain(line).trim()));
    found.reduce(Tests::plus)
}

fn tests_in(line: &str) -> Option<Tests> {
    // Cargo and Miri.
    if let Some(result) = line.strip_prefix("test result: ") {
        let (_, counts) = result.split_once(". ")?;
        return Some(Tests { passed: before(counts, " passed")?, failed: before(counts, " failed")? });
    }
    // xtask, which counts the mutants of the list.
    if let Some((counts, _)) = line.split_once(" mutants were killed") {
        let (passed, all) = counts.split_once(" of ")?;
        let (passed, all): (u64, u64) = (passed.parse().ok()?, all.parse().ok()?);
        return Some(Tests { passed, failed: all.saturating_sub(passed) });
    }
    // Node, in its human-readable and its TAP format.
    let count = line.strip_prefix("ℹ ").or_else(|| line.strip_prefix("# "))?;
    match count.split_once(' ')? {
        ("pass", passed) => Some(Tests { passed: passed.parse().ok()?, failed: 0 }),
        ("fail", failed) => Some(Tests { passed: 0, failed: failed.parse().ok()? }),
        _ => None,
    }
}

/// Returns the number before these words.
fn before(text: &str, words: &str) -> Option<u64> {
    let (head, _) = text.split_once(words)?;
    head.rsplit(' ').next()?.parse().ok()
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
    fn the_first_error_of_a_compiler_is_found() {
        let log = "$ cargo test\nwarning: unused\n\u{1b}[1m\u{1b}[91merror[E0425]\u{1b}[0m: no `x`\n --> a.rs\nerror: two";
        assert_eq!(first_error(log).as_deref(), Some("error[E0425]: no `x`"));
        assert_eq!(
            first_error("error: could not compile `a`\n").as_deref(),
            Some("error: could not compile `a`")
        );
        assert_eq!(first_error("all is well, no error at all\n"), None);
    }

    #[test]
    fn a_failed_test_is_reported_with_its_name_and_panic_message() {
        let log = "test a::good ... ok\ntest a::bad ... FAILED\n\nfailures:\n\n---- a::bad stdout ----\n\n\
                   thread 'a::bad' panicked at core/src/a.rs:1:2:\nassertion failed: x\nnote: run with\n\n\
                   test result: FAILED. 1 passed; 1 failed; 0 ignored\n\nerror: test failed, to rerun pass `--lib`\n";
        assert_eq!(first_error(log).as_deref(), Some("test a::bad ... FAILED: assertion failed: x"));
    }

    #[test]
    fn a_failed_test_never_gets_the_message_of_another() {
        let log = "test a::returns ... FAILED\ntest a::panics ... FAILED\n\nfailures:\n\n\
                   ---- a::returns stdout ----\nError: \"no\"\n\n---- a::panics stdout ----\n\
                   thread 'a::panics' panicked at core/src/a.rs:1:2:\nassertion failed: x\n\nfailures:\n    a::returns\n";
        assert_eq!(first_error(log).as_deref(), Some("test a::returns ... FAILED"));
        let silent = "test b::silent ... FAILED\n\nthread 'c' panicked at c.rs:1:2:\nof another\n";
        assert_eq!(first_error(silent).as_deref(), Some("test b::silent ... FAILED"));
    }

    #[test]
    fn a_panic_is_reported_with_its_message() {
        let log =
            "thread 'main' panicked at src/a.rs:1:2:\n\n  it broke\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(first_error(log).as_deref(), Some("thread 'main' panicked at src/a.rs:1:2: it broke"));
    }

    #[test]
    fn failures_of_node_and_xtask_are_found() {
        assert_eq!(first_error("ok 1 - a\n  not ok 2 - b\n").as_deref(), Some("not ok 2 - b"));
        assert_eq!(first_error("✔ a (1ms)\n✖ b (2ms)\n").as_deref(), Some("✖ b (2ms)"));
        let log = "$ cargo metadata\nError: documents name what does not exist:\n  a.md:1: no b\n  c.md\n";
        let expected = "Error: documents name what does not exist: a.md:1: no b";
        assert_eq!(first_error(log).as_deref(), Some(expected));
    }

    #[test]
    fn a_failed_node_test_is_reported_with_location_and_message() {
        let log = "✔ a (1ms)\n✖ b (2ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:\n\n\
                   test at tests/a.test.mjs:5:1\n✖ b (2ms)\n  AssertionError: not equal\n\n  1 !== 2\n\n      at x\n";
        let expected =
            "test at tests/a.test.mjs:5:1\n    ✖ b (2ms)\n      AssertionError: not equal\n      1 !== 2";
        assert_eq!(first_error(log).as_deref(), Some(expected));
        let failed = Failed { name: "b".into(), file: Some("tests/a.test.mjs".into()) };
        assert_eq!(failed_tests(log), Some(vec![failed]));
    }

    #[test]
    fn failed_cargo_tests_are_named_unless_a_program_crashed() {
        let log = "test a ... ok\ntest b::c - should panic ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        assert_eq!(failed_tests(log), Some(vec![Failed { name: "b::c".into(), file: None }]));
        let log = format!("{log}  process didn't exit successfully: `x` (signal: 6, SIGABRT)\n");
        assert_eq!(failed_tests(&log), None);
        let more = "test b ... FAILED\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        assert_eq!(failed_tests(more), None);
        assert_eq!(failed_tests("error: could not compile\n"), None);
    }

    #[test]
    fn repeated_tests_are_counted_once() {
        let result = "test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        let log = format!("{result}{AGAIN}\ntest result: ok. 1 passed; 0 failed; 0 ignored\n{FLAKY}a::b\n");
        assert_eq!(tests(&log), Some(Tests { passed: 2, failed: 1 }));
        assert_eq!(flaky_tests(&log), ["a::b"]);
    }

    #[test]
    fn tests_are_counted_in_the_format_of_each_runner() {
        let passed = |passed| Some(Tests { passed, failed: 0 });
        let cargo = "test result: ok. 5 passed; 0 failed; 0 ignored\ntest result: FAILED. 2 passed; 1 failed; 0 ignored";
        assert_eq!(tests(cargo), Some(Tests { passed: 7, failed: 1 }));
        assert_eq!(tests(cargo).map(Tests::all), Some(8));
        assert_eq!(tests("ℹ tests 4\nℹ pass 3\nℹ fail 1\n"), Some(Tests { passed: 3, failed: 1 }));
        assert_eq!(tests("# tests 4\n# pass 4\n# fail 0\n"), passed(4));
        assert_eq!(tests("9 of 9 mutants were killed, and nothing is found"), passed(9));
        assert_eq!(tests("nothing\n# passage 3\n"), None);
    }
}
