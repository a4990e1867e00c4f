//! Scripts with both libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rakwire_differential::pairing::Library;
use rakwire_differential::programs::Programs;
use rakwire_differential::script::{Script, parse};
use rakwire_differential::suite::{self, Options, Outcome};
use rakwire_differential::{generate, named_scripts, table};

/// Scripts that run at the same time: they wait most of the time.
const AT_ONCE: usize = 8;

fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        Programs::build(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("drivers")).expect("both drivers")
    })
}

fn run(scripts: &[Script], programs: &Programs) -> Vec<Outcome> {
    let rows = table::parse(named_scripts::DIFFERENCES).expect("the table");
    let options = Options { seed: 1, at_once: AT_ONCE };
    suite::run_all(scripts, programs, &rows, &options, |_| {}).expect("scripts that run")
}

fn differences(outcomes: &[Outcome]) -> Vec<String> {
    let lines = outcomes.iter().flat_map(|outcome| {
        outcome.differences.iter().map(|difference| format!("{}: {difference}", outcome.pairing))
    });
    lines.collect()
}

#[test]
fn named_scripts_show_only_documented_differences() {
    let outcomes = run(&named_scripts::all().expect("scripts"), programs());
    let found = differences(&outcomes);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let rows = table::parse(named_scripts::DIFFERENCES).expect("the table");
    let unused: Vec<_> = suite::unused_rows(&rows, &outcomes).iter().map(|row| row.line).collect();
    assert!(unused.is_empty(), "no script has the differences of these lines of differences.txt: {unused:?}");
}

#[test]
fn random_scripts_show_no_difference() {
    let text: String = (1..=16).map(generate::script).collect();
    let found = differences(&run(&parse(&text).expect("scripts"), programs()));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_row_of_the_table_cites_an_existing_heading() {
    let rows = table::parse(named_scripts::DIFFERENCES).expect("the table");
    assert!(!rows.is_empty());
    table::check_pages(&rows).expect("pages with the headings");
}

const SCRIPT: &str = "script planted
a start 8 8
b start 1 0
b connect @a
wait b accepted a
wait a incoming b
b send @a 3 0 1 50 5
wait a messages 4
b close @a notify
settle 1000
";

/// Creates a driver of rakwire with its output filtered by `sed`.
fn faulty(filter: &str, name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let driver = programs().of(Library::Rakwire).display().to_string();
    fs::write(&path, format!("#!/bin/sh\n'{driver}' | sed -u '{filter}'\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

#[test]
fn injected_faults_are_found_in_each_pairing_with_the_faulty_library() {
    let faults = [
        ("a-lost-message", "/^! message .* 3 50$/d", "messages from b"),
        ("another-reason", "s/^! disconnected/! lost/", "connection with b"),
        ("a-doubled-message", "/^! message .* 2 50$/p", "messages from b"),
        ("another-result", "s/^= started$/= in-progress/", "calls"),
    ];
    let scripts = parse(SCRIPT).expect("a script");
    let sound = run(&scripts, programs());
    assert_eq!(differences(&sound), [""; 0], "without a fault");
    for (name, filter, stream) in faults {
        let outcomes = run(&scripts, &programs().clone().with_rakwire(faulty(filter, name)));
        let found = differences(&outcomes);
        assert!(found.iter().any(|line| line.contains(stream)), "{name}: {found:?}");
    }
}
