//! Runs scripts with both libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rakwire_differential::pairing::Library;
use rakwire_differential::programs::Programs;
use rakwire_differential::script::{Script, parse};
use rakwire_differential::suite::{self, Options, Outcome};
use rakwire_differential::{generate, named_scripts, table};

/// The number of scripts that run simultaneously. They mostly wait, so it may exceed the number of cores.
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
fn random_scripts_show_only_permitted_differences() {
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
wait a messages WAITED
b close @a notify
settle 1000
";

/// A deliberate fault of rakwire's driver.
struct Fault {
    name: &'static str,
    /// A `sed` filter applied to the output of the driver.
    filter: &'static str,
    /// The number of messages that the script waits for before it disconnects.
    waited: &'static str,
    /// The differences that the fault must cause, each as a pairing and a peer with its stream.
    causes: &'static [(&'static str, &'static str)],
}

const FAULTS: [Fault; 5] = [
    Fault {
        name: "a-lost-message",
        filter: "/^! message .* 3 50$/d",
        waited: "4",
        causes: &[
            ("rakwire-original", "a reliable-ordered messages from b"),
            ("rakwire-rakwire", "a reliable-ordered messages from b"),
        ],
    },
    Fault {
        name: "the-last-message-is-lost",
        filter: "/^! message .* 5 50$/d",
        waited: "5",
        causes: &[
            ("rakwire-original", "a reliable-ordered messages from b"),
            ("rakwire-rakwire", "a reliable-ordered messages from b"),
        ],
    },
    Fault {
        name: "another-reason",
        filter: "s/^! disconnected/! lost/",
        waited: "4",
        causes: &[
            ("original-rakwire", "b connection with a"),
            ("rakwire-original", "a connection with b"),
            ("rakwire-rakwire", "a connection with b"),
            ("rakwire-rakwire", "b connection with a"),
        ],
    },
    Fault {
        name: "a-doubled-message",
        filter: "/^! message .* 2 50$/p",
        waited: "4",
        causes: &[
            ("rakwire-original", "a reliable-ordered messages from b"),
            ("rakwire-rakwire", "a reliable-ordered messages from b"),
        ],
    },
    Fault {
        name: "another-result",
        filter: "s/^= started$/= in-progress/",
        waited: "4",
        causes: &[("original-rakwire", "b calls"), ("rakwire-rakwire", "b calls")],
    },
];

/// Creates a driver of rakwire that passes its output through a `sed` filter.
fn faulty(filter: &str, name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let driver = programs().of(Library::Rakwire).display().to_string();
    fs::write(&path, format!("#!/bin/sh\n'{driver}' | sed -u '{filter}'\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

fn scripts(waited: &str) -> Vec<Script> {
    parse(&SCRIPT.replace("WAITED", waited)).expect("a script")
}

#[test]
fn deliberate_faults_are_found_in_every_affected_pairing() {
    for waited in ["4", "5"] {
        assert_eq!(
            differences(&run(&scripts(waited), programs())),
            [""; 0],
            "there must be no differences without a fault"
        );
    }
    for Fault { name, filter, waited, causes } in FAULTS {
        let outcomes = run(&scripts(waited), &programs().clone().with_rakwire(faulty(filter, name)));
        let found = differences(&outcomes);
        for (pairing, stream) in causes {
            let line = format!("{pairing}: planted: {stream}");
            assert!(found.iter().any(|found| found.starts_with(&line)), "{name}: no {line:?} in {found:#?}");
        }
        let is_listed =
            |outcome: &Outcome| causes.iter().any(|(name, _)| *name == outcome.pairing.to_string());
        let others = outcomes.iter().filter(|outcome| !is_listed(outcome) && !outcome.differences.is_empty());
        assert_eq!(
            others.count(),
            0,
            "{name}: other pairings than the listed ones have differences: {found:#?}"
        );
    }
}
