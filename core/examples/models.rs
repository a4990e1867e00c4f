//! Runs the models with the corpora of the fuzz targets and with pseudorandom inputs, until a guarantee is violated.
//!
//! `cargo xtask mutants` expects a violation for every mutant. Usage: `models CORPORA`. The folder CORPORA contains a
//! folder for each target.
//!
//! Exit status:
//!
//! - 0 if all guarantees hold
//! - 1, with one line, if a guarantee is violated
//! - 2 if the corpora cannot be read

#[path = "../tests/model/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "this program uses a part")]
mod model;

use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::operation::Sequence;
use model::random::Random;
use model::{Broken, Kept, game, secure, wire, world};

/// The number of seeds for each protocol.
const SEEDS: u64 = 12_000;
/// The number of seeds for whole secure peers. Their runs take longer.
const SEEDS_OF_PEERS: u64 = 40;
/// The input length for each seed of the Game Protocol in bytes.
const GAME_INPUT: usize = 400;
/// The input length for each seed of whole secure peers in bytes.
const PEERS_INPUT: usize = 200;
/// The time limit of a case; a case usually takes milliseconds.
const CASE_LIMIT: Duration = Duration::from_secs(60);
const FOUND: u8 = 1;
const NOTHING_RUN: u8 = 2;

type Check = fn(&[u8]) -> Kept;

/// The fuzz targets with corpora that are inputs of the models.
const TARGETS: [(&str, Check); 5] = [
    ("datagram", wire::datagram),
    ("offline", offline),
    ("endpoint", endpoint),
    ("game", transport),
    ("secure", secure::run),
];

/// An input, and the model to run on it.
struct Case {
    name: String,
    input: Vec<u8>,
    check: Check,
}

/// The running case and its start time.
type Current = Arc<Mutex<(String, Instant)>>;

fn main() -> ExitCode {
    let Some(corpora) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: models CORPORA");
        return ExitCode::from(NOTHING_RUN);
    };
    let corpus = match read_corpora(&corpora) {
        Ok(corpus) => corpus,
        Err(error) => {
            eprintln!("{}: {error}", corpora.display());
            return ExitCode::from(NOTHING_RUN);
        }
    };
    // A panic is reported in one line, like any other violation.
    panic::set_hook(Box::new(|_| {}));
    let (from_corpora, started) = (corpus.len(), Instant::now());
    if let Some(found) = first_broken(corpus.into_iter().chain(generated())) {
        println!("{found}");
        return ExitCode::from(FOUND);
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{from_corpora} inputs and {} seeds in {seconds:.1} s", 3 * SEEDS + SEEDS_OF_PEERS);
    ExitCode::SUCCESS
}

fn endpoint(input: &[u8]) -> Kept {
    Sequence::decode(input).map_or(Ok(()), |sequence| world::run(&sequence).map(drop))
}

fn offline(input: &[u8]) -> Kept {
    wire::offline(input).and_then(|()| wire::control(input))
}

fn transport(input: &[u8]) -> Kept {
    game::run(input).map(drop)
}

fn read_corpora(corpora: &Path) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (target, check) in TARGETS {
        let before = cases.len();
        for file in fs::read_dir(corpora.join(target))? {
            let path = file?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            cases.push(Case { name: format!("{target}/{file}"), input: fs::read(&path)?, check });
        }
        if cases.len() == before {
            return Err(io::Error::other(format!("no input for {target}")));
        }
    }
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(cases)
}

fn generated() -> impl Iterator<Item = Case> {
    (0..SEEDS).flat_map(|seed| {
        let raknet =
            Case { name: format!("RakNet, seed {seed}"), input: Sequence::random(seed), check: endpoint };
        let input = Random::new(seed).bytes(GAME_INPUT);
        let game = Case { name: format!("Game Protocol, seed {seed}"), input, check: transport };
        let input = secure::input(&mut Random::new(seed));
        let secure = Case { name: format!("security, seed {seed}"), input, check: secure::run };
        let peers = (seed < SEEDS_OF_PEERS).then(|| {
            let random = Random::new(seed).bytes(PEERS_INPUT);
            let input = [secure::PEERS].into_iter().chain(random).collect();
            Case { name: format!("secure peers, seed {seed}"), input, check: secure::run }
        });
        [raknet, game, secure].into_iter().chain(peers)
    })
}

/// Returns a description of the first case that violates a guarantee, panics or is stuck.
fn first_broken(cases: impl Iterator<Item = Case>) -> Option<String> {
    let current: Current = Arc::new(Mutex::new((String::new(), Instant::now())));
    let watched = Arc::clone(&current);
    thread::spawn(move || end_when_stuck(&watched));
    for case in cases {
        let Case { name, input, check } = case;
        *current.lock().unwrap_or_else(PoisonError::into_inner) = (name.clone(), Instant::now());
        if let Err(broken) = kept(check, &input) {
            return Some(format!("{name}: {broken}"));
        }
    }
    None
}

fn kept(check: Check, input: &[u8]) -> Result<(), Broken> {
    panic::catch_unwind(AssertUnwindSafe(|| check(input))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Err(format!("panic: {}", text.unwrap_or("without a message")))
    })
}

/// Reports a stuck case and exits the process.
fn end_when_stuck(current: &Current) {
    loop {
        thread::sleep(Duration::from_secs(1));
        let (name, started) = &*current.lock().unwrap_or_else(PoisonError::into_inner);
        if started.elapsed() > CASE_LIMIT {
            println!("{name}: not finished within {} s", CASE_LIMIT.as_secs());
            process::exit(FOUND.into());
        }
    }
}
