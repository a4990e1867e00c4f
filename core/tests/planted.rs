//! Every planted bug is found, by the sequences of `operations.rs` or by what the fuzzers kept; without one, nothing is.
//!
//! The bugs are switched for the whole process, so this file has one test.

mod model;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::Instant;

use model::operation::Sequence;
use model::random::Random;
use model::{Kept, game, wire, world};
use rakwire::planted::{self, Planted};

/// Sequences within which a bug must show.
const SEQUENCES: u64 = 4_000;

type Check = fn(&[u8]) -> Kept;

/// What a run is made from: bytes, and the model that reads them.
struct Case {
    name: String,
    bytes: Vec<u8>,
    check: Check,
}

fn endpoint(bytes: &[u8]) -> Kept {
    Sequence::decode(bytes).map_or(Ok(()), |sequence| world::run(&sequence).map(drop))
}

fn offline(bytes: &[u8]) -> Kept {
    wire::offline(bytes).and_then(|()| wire::control(bytes))
}

fn transport(bytes: &[u8]) -> Kept {
    game::run(bytes).map(drop)
}

fn kept_by_fuzzers() -> Vec<Case> {
    let targets: [(&str, Check); 4] =
        [("datagram", wire::datagram), ("offline", offline), ("endpoint", endpoint), ("game", transport)];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut cases = Vec::new();
    for (target, check) in targets {
        let files = fs::read_dir(corpus.join(target)).expect("the corpus is committed");
        for file in files {
            let file = file.expect("a readable folder").path();
            let bytes = fs::read(&file).expect("a readable file");
            cases.push(Case { name: format!("{target}/{}", file.display()), bytes, check });
        }
    }
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    assert!(cases.len() > 100, "only {} cases", cases.len());
    cases
}

fn generated() -> impl Iterator<Item = Case> {
    (0..SEQUENCES).flat_map(|seed| {
        let raknet = Case { name: format!("seed {seed}"), bytes: Sequence::random(seed), check: endpoint };
        let bytes = Random::new(seed).bytes(400);
        [raknet, Case { name: format!("seed {seed} of the Game Protocol"), bytes, check: transport }]
    })
}

/// The first case that shows something, by a broken promise or a panic.
fn find(cases: impl Iterator<Item = Case>) -> Option<(usize, String)> {
    cases.enumerate().find_map(|(number, case)| {
        let kept = panic::catch_unwind(AssertUnwindSafe(|| (case.check)(&case.bytes)));
        let broken = match kept {
            Ok(Ok(())) => return None,
            Ok(Err(broken)) => broken,
            Err(_) => "a panic".to_owned(),
        };
        Some((number + 1, format!("{}: {broken}", case.name)))
    })
}

#[test]
fn every_planted_bug_is_found() {
    // A bug may end in a panic, which is a finding too and need not be told a thousand times.
    let loud = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let (mut lines, mut missed) = (Vec::new(), Vec::new());
    for bug in Planted::ALL {
        planted::plant(Some(bug));
        let started = Instant::now();
        let by_corpus = find(kept_by_fuzzers().into_iter());
        let by_seeds = find(generated());
        if by_corpus.is_none() && by_seeds.is_none() {
            missed.push(bug);
        }
        lines.push(format!(
            "{bug:?} in {:.1?}\n  corpus: {by_corpus:?}\n  seeds: {by_seeds:?}",
            started.elapsed()
        ));
    }
    planted::plant(None);
    let healthy = find(kept_by_fuzzers().into_iter().chain(generated()));
    panic::set_hook(loud);
    println!("{}", lines.join("\n"));
    assert_eq!(missed, [], "these were not found");
    assert_eq!(healthy, None, "something was found with all of them off");
}
