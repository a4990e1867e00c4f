//! Tests that each case passes against the correct model, and fails against the model with the case's fault.

use rakwire_conformance::case::{Case, Needs, Options, Outcome, Role, run};
use rakwire_conformance::cases;
use rakwire_conformance::check::Timing;
use rakwire_conformance::model::{Fault, Model, Setup};
use rakwire_conformance::start::{Dialler, Listening};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Cases wait more than they compute, so many run in parallel.
const THREADS: usize = 12;

const TIMING: Timing = Timing {
    answer: Duration::from_millis(500),
    quiet: Duration::from_millis(120),
    lifetime: Duration::from_millis(1000),
};

fn judge(case: &'static Case, fault: Fault) -> Outcome {
    let password = (case.needs == Needs::Password).then(|| "swordfish".to_owned());
    let capacity = (case.needs == Needs::Capacity).then_some(2);
    let setup = Setup {
        cookies: case.needs == Needs::Cookies,
        password: password.clone().unwrap_or_default().into_bytes(),
        capacity,
    };
    let mut options = Options { version: 6, echo: true, password, capacity, listening: None, server: None };
    match case.role {
        Role::Server => {
            let model = Model::start(setup, fault).expect("a socket");
            run(case, model.address(), TIMING, &options).expect("a socket").outcome
        }
        Role::Client => {
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            let patience = Duration::from_secs(2);
            options.listening = Some(Listening { address, dialler: Dialler::Model(fault), patience });
            run(case, address, TIMING, &options).expect("a socket").outcome
        }
        Role::SecureServer => {
            let model = Model::secure(fault).expect("a socket");
            run(case, model.address(), TIMING, &options).expect("a socket").outcome
        }
        Role::GameServer => {
            let model = Model::game(fault).expect("a socket");
            run(case, model.address(), TIMING, &options).expect("a socket").outcome
        }
    }
}

/// The number of times that a case with an unexpected outcome is repeated, one at a time. On a busy machine a single
/// outcome may be wrong, but a real fault appears in each repetition.
const REPEATS: usize = 3;

/// Runs every case, and returns a line for each case with an unexpected outcome.
fn judge_all(
    fault: impl Fn(&Case) -> Fault + Sync,
    expected: impl Fn(&Outcome) -> bool + Sync,
) -> Vec<String> {
    let cases: Vec<_> = cases::all().collect();
    let next = AtomicUsize::new(0);
    let doubtful = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !expected(&judge(case, fault(case))) {
                        doubtful.lock().expect("no thread panicked").push(*case);
                    }
                }
            });
        }
    });
    let mut doubtful = doubtful.into_inner().expect("no thread panicked");
    doubtful.sort_by_key(|case| case.number);
    let unexpected = |case: &&'static Case| {
        let outcomes = (0..REPEATS).map(|_| judge(case, fault(case)));
        let outcome = outcomes.take_while(|outcome| !expected(outcome)).collect::<Vec<_>>();
        (outcome.len() == REPEATS)
            .then(|| format!("{} {} with {:?}: {outcome:?}", case.number, case.name, fault(case)))
    };
    doubtful.iter().filter_map(unexpected).collect()
}

#[test]
fn every_case_passes_against_the_correct_model() {
    let wrong = judge_all(|_| Fault::None, |outcome| *outcome == Outcome::Passed);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_fails_against_the_model_with_its_fault() {
    let wrong = judge_all(|case| case.fault, |outcome| matches!(outcome, Outcome::Failed(_)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_names_a_fault() {
    let without: Vec<_> =
        cases::all().filter(|case| case.fault == Fault::None).map(|case| case.number).collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn case_numbers_increase_and_case_names_are_unique() {
    let numbers: Vec<_> = cases::all().map(|case| case.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    // A case for clients may have the same name as the case for servers.
    let names: HashSet<_> = cases::all().map(|case| (case.number > 2000, case.name)).collect();
    assert_eq!(names.len(), numbers.len());
}

/// Returns the anchors and headings of a page.
fn sections(page: &str) -> HashSet<String> {
    let slug = |heading: &str| -> String {
        let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    let headings =
        page.lines().filter(|line| line.starts_with("##")).map(|line| slug(line.trim_matches('#').trim()));
    let anchors = page.lines().filter_map(|line| line.strip_prefix("<a id=\"")?.split('"').next());
    headings.chain(anchors.map(str::to_owned)).collect()
}

#[test]
fn every_section_cited_by_a_case_exists() {
    let raknet = sections(include_str!("documents/raknet.md"));
    let game = sections(include_str!("documents/game-protocol.md"));
    let secure = sections(include_str!("documents/secure.md"));
    for case in cases::all() {
        let sections = match case.role {
            Role::Server | Role::Client => &raknet,
            Role::GameServer => &game,
            Role::SecureServer => &secure,
        };
        assert!(sections.contains(case.section), "{} names {}#{}", case.number, case.page(), case.section);
    }
}

#[test]
fn the_readme_states_the_number_of_cases() {
    let of = |role: Role| cases::all().filter(|case| case.role == role).count();
    let [servers, clients, games, secure] =
        [Role::Server, Role::Client, Role::GameServer, Role::SecureServer].map(of);
    let all = servers + clients + games + secure;
    let line = format!(
        "There are {all} cases: {servers} for servers, {clients} for clients, {games} for servers of the Game \
         Protocol, and {secure} for servers with secure\nconnections."
    );
    assert!(include_str!("../README.md").contains(&line), "{line}");
}
