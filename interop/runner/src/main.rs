//! The command line of the runner.

use clap::Parser;
use rakwire_interop_runner::cases::{self, Case};
use rakwire_interop_runner::cell::{self, Outcome, Verdict};
use rakwire_interop_runner::judge::Task;
use rakwire_interop_runner::limits::{self, Limit};
use rakwire_interop_runner::peers::{self, Peer, Role};
use rakwire_interop_runner::report::{self, Cell, Document};
use rakwire_interop_runner::{page, rules, workers};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Runs RakNet servers and clients against each other, and judges the captures of their datagrams.
///
/// The exit status is 0 if every cell passes, is not supported, or fails as listed in limits.json. It is 1
/// if another cell fails, the failure of a limit no longer occurs, or a limit covers no cell. It is 2 if the
/// runner could not run.
#[derive(Debug, Parser)]
#[command(name = "rakwire-interop-runner", version, max_term_width = 100)]
struct Arguments {
    /// List the peers and the cases, and exit.
    #[arg(long)]
    list: bool,
    /// Run only the cases with one of these texts in their names.
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    only: Vec<String>,
    /// Run only these servers.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    server: Vec<String>,
    /// Run only these clients.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    client: Vec<String>,
    /// Run nothing, and read results from these JSON documents of earlier runs. If several contain a cell,
    /// the last counts.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["only", "server", "client", "seed"])]
    from: Vec<PathBuf>,
    /// Print one JSON document. The line for each cell goes to standard error.
    #[arg(long)]
    json: bool,
    /// Write the results page in Markdown.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Write the captures of failed cells as pcap files, and the output of all programs, into this folder.
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// The seed of the path faults.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The maximum number of pairs that run at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// The list of peers, as JSON.
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/peers.json"))]
    peers: PathBuf,
    /// The list of known limits, as JSON.
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/limits.json"))]
    limits: PathBuf,
}

/// The number of datagrams that are shown before and after the datagram of a failure.
const EXCERPT: usize = 3;

/// A server and a client that run all cases in sequence.
#[derive(Clone, Copy, Debug)]
struct Pair<'a> {
    server: &'a Peer,
    client: &'a Peer,
}

/// The cases to run, and the expected failures.
#[derive(Clone, Copy, Debug)]
struct Plan<'a> {
    cases: &'a [Case],
    limits: &'a [Limit],
}

/// The results of a run.
#[derive(Debug, Default)]
struct Cells {
    cells: Vec<Cell>,
    /// Descriptions of limits with failures that no longer occur.
    stale: Vec<String>,
}

impl Extend<Self> for Cells {
    fn extend<T: IntoIterator<Item = Self>>(&mut self, others: T) {
        for other in others {
            self.cells.extend(other.cells);
            self.stale.extend(other.stale);
        }
    }
}

/// Prints a line to standard output, or to standard error if standard output is for the JSON document.
fn say(arguments: &Arguments, text: &str) {
    // A reader such as `head` may close the pipe early.
    let _ = if arguments.json { writeln!(io::stderr(), "{text}") } else { writeln!(io::stdout(), "{text}") };
}

fn is_named(names: &[String], peer: &Peer) -> bool {
    names.is_empty() || names.contains(&peer.name)
}

fn pairs<'a>(arguments: &Arguments, peers: &'a [Peer]) -> Vec<Pair<'a>> {
    let servers = peers.iter().filter(|peer| peer.plays(Role::Server) && is_named(&arguments.server, peer));
    let clients =
        || peers.iter().filter(|peer| peer.plays(Role::Client) && is_named(&arguments.client, peer));
    servers.flat_map(|server| clients().map(move |client| Pair { server, client })).collect()
}

fn selected_cases(arguments: &Arguments) -> Vec<Case> {
    let is_selected = |case: &&Case| {
        arguments.only.is_empty() || arguments.only.iter().any(|text| case.name.contains(&text[..]))
    };
    cases::ALL.iter().filter(is_selected).copied().collect()
}

/// Returns the outcome of a cell that did not run.
fn without_run(verdict: Verdict) -> Outcome {
    Outcome { verdict, capture: Default::default(), client_status: None, took: Duration::ZERO }
}

/// Runs the cases of a pair. If no echo arrives in the case `handshake`, skips the other cases with a
/// connection.
fn run_pair(arguments: &Arguments, plan: &Plan<'_>, pair: Pair<'_>) -> Result<Cells, String> {
    let protocol = pair.client.protocol_with(pair.server);
    let mut is_broken = false;
    let mut found = Cells::default();
    for case in plan.cases {
        let outcome = match protocol {
            None => without_run(Verdict::Unsupported("no common version".to_owned())),
            Some(_) if is_broken && !case.is_offline() => without_run(Verdict::Skipped),
            Some(protocol) => run_cell(arguments, pair, &Task { case: *case, protocol })?,
        };
        let fails = matches!(&outcome.verdict, Verdict::Fail(broken) if !broken.rule.is_formal());
        is_broken |= case.is_about_the_handshake() && fails;
        let mut cell = Cell::new(pair.server, pair.client, case.name, &outcome);
        found.stale.extend(limits::apply(plan.limits, std::slice::from_mut(&mut cell)));
        say(arguments, &cell.line());
        if let Some(record) = cell.datagram.filter(|_| cell.verdict == "fail") {
            say(arguments, outcome.capture.excerpt(record, EXCERPT).trim_end());
        }
        found.cells.push(cell);
    }
    Ok(found)
}

fn run_cell(arguments: &Arguments, pair: Pair<'_>, task: &Task) -> Result<Outcome, String> {
    let name = format!("{}-{}-{}", pair.server.name, pair.client.name, task.case.name);
    let file = |end: &str| arguments.captures.as_ref().map(|folder| folder.join(format!("{name}.{end}")));
    let explain =
        |error: io::Error| format!("server {}, client {}: {error}", pair.server.name, pair.client.name);
    let log = file("log");
    let outcome =
        cell::run(pair.server, pair.client, task, arguments.seed, log.as_deref()).map_err(explain)?;
    if let (Verdict::Fail(_), Some(path)) = (&outcome.verdict, file("pcap")) {
        let mut file = io::BufWriter::new(File::create(path).map_err(explain)?);
        outcome.capture.write_pcap(&mut file).and_then(|()| file.flush()).map_err(explain)?;
    }
    Ok(outcome)
}

/// Runs all pairs, several in parallel. Returns their cells in the order of the pairs.
fn run_all(arguments: &Arguments, plan: &Plan<'_>, pairs: Vec<Pair<'_>>) -> Result<Cells, String> {
    let mut found = Cells::default();
    found.extend(workers::for_each(arguments.jobs, pairs, |pair| run_pair(arguments, plan, pair))?);
    Ok(found)
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}

fn list(peers: &[Peer]) {
    let mut out = io::stdout().lock();
    for peer in peers {
        let roles: Vec<&str> = peer.roles.iter().map(|role| role.name()).collect();
        // A reader such as `head` may close the pipe early.
        let _ = writeln!(out, "peer {:22} {:14} {}", peer.name, roles.join(", "), peer.about);
    }
    for case in &cases::ALL {
        let _ = writeln!(out, "case {:39} {}", case.name, case.about);
    }
    for rule in rules::ALL {
        let _ = writeln!(out, "rule {:14} {}", rule.name, rule.text);
    }
}

/// Runs the pairs and cases that the command line selects.
fn run_selected(arguments: &Arguments, plan: &Plan<'_>, peers: &[Peer]) -> Result<Cells, String> {
    let pairs = pairs(arguments, peers);
    if pairs.is_empty() || plan.cases.is_empty() {
        return Err("no peer or no case has such a name; see --list".to_owned());
    }
    if let Some(folder) = &arguments.captures {
        at(folder, fs::create_dir_all(folder))?;
    }
    run_all(arguments, plan, pairs)
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Document>, String> {
    let read = |path: &PathBuf| {
        let text = at(path, fs::read_to_string(path))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    };
    files.iter().map(read).collect()
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let peers = at(&arguments.peers, peers::read(&arguments.peers))?;
    if arguments.list {
        list(&peers);
        return Ok(true);
    }
    let limits = at(&arguments.limits, limits::read(&arguments.limits, &peers))?;
    let cases = selected_cases(arguments);
    let plan = Plan { cases: &cases, limits: &limits };
    let (seed, Cells { cells, mut stale }) = match arguments.from.as_slice() {
        [] => (arguments.seed, run_selected(arguments, &plan, &peers)?),
        files => read_cells(&plan, &peers, files)?,
    };
    stale.extend(limits::unused(&limits, &cells, &peers));
    finish(arguments, &limits, &Document::new(seed, &cases, &peers, cells), &stale)
}

/// Reads the cells of earlier runs, and their seed.
fn read_cells(plan: &Plan<'_>, peers: &[Peer], files: &[PathBuf]) -> Result<(u64, Cells), String> {
    let documents = read_all(files)?;
    let mut cells = report::merged(&documents, peers);
    let stale = limits::apply(plan.limits, &mut cells);
    Ok((report::common_seed(&documents)?, Cells { cells, stale }))
}

/// Writes the results. Returns true if there are no unexpected failures.
fn finish(
    arguments: &Arguments,
    limits: &[Limit],
    document: &Document,
    stale: &[String],
) -> Result<bool, String> {
    if let Some(path) = &arguments.page {
        at(path, fs::write(path, page::markdown(document, limits)))?;
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(document).map_err(|error| error.to_string())?;
        at(Path::new("standard output"), writeln!(io::stdout(), "{text}"))?;
    }
    let failed = document.count("fail");
    let counts = ["pass", "limit", "unsupported", "skipped"].map(|verdict| document.count(verdict));
    let [passed, limited, unsupported, skipped] = counts;
    say(
        arguments,
        &format!(
            "{passed} passed, {failed} failed, {limited} known limits, {unsupported} not supported, {skipped} skipped"
        ),
    );
    document.cells.iter().filter(|cell| cell.verdict == "fail").for_each(|cell| say(arguments, &cell.line()));
    stale.iter().for_each(|line| say(arguments, line));
    Ok(failed == 0 && stale.is_empty())
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(reason) => {
            // The exit status is 2 even if standard error is closed.
            let _ = writeln!(io::stderr(), "rakwire-interop-runner: {reason}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_select_runs_conflict_with_documents_of_earlier_runs() {
        let parses = |option: &[&str]| {
            Arguments::try_parse_from(["runner", "--from", "a.json"].iter().chain(option)).is_ok()
        };
        assert!(parses(&[]) && parses(&["--json"]));
        for option in [["--server", "cpp"], ["--client", "cpp"], ["--only", "loss"], ["--seed", "2"]] {
            assert!(!parses(&option), "{option:?}");
        }
    }
}
