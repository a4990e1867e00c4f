//! Writes reports as text, JSON and JUnit XML.

use crate::case::{Level, Outcome, Report};
use crate::cases;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::time::Duration;

/// The number of cases by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that count as failed.
    pub failed: usize,
    /// Cases of a SHOULD that failed, without `--strict`.
    pub deviations: usize,
    /// Cases that do not apply.
    pub skipped: usize,
}

impl Totals {
    /// Counts the outcomes of reports.
    #[must_use]
    pub fn of(reports: &[Report], strict: bool) -> Self {
        let mut totals = Self::default();
        for report in reports {
            match report.outcome {
                Outcome::Passed => totals.passed += 1,
                Outcome::Skipped(_) => totals.skipped += 1,
                Outcome::Failed(_) if report.counts_as_failure(strict) => totals.failed += 1,
                Outcome::Failed(_) => totals.deviations += 1,
            }
        }
        totals
    }
}

/// Returns the word for a level.
#[must_use]
pub fn level(level: Level) -> &'static str {
    match level {
        Level::Must => "MUST",
        Level::Should => "SHOULD",
    }
}

/// Returns the word for an outcome, and its reason.
pub(crate) fn outcome(report: &Report, strict: bool) -> (&'static str, &str) {
    match &report.outcome {
        Outcome::Passed => ("passed", ""),
        Outcome::Skipped(reason) => ("skipped", reason),
        Outcome::Failed(reason) if report.counts_as_failure(strict) => ("failed", reason),
        Outcome::Failed(reason) => ("deviates", reason),
    }
}

/// Returns one line for a case, and its datagrams if it failed.
#[must_use]
pub fn text(report: &Report, strict: bool) -> String {
    let case = report.case;
    let (word, reason) = outcome(report, strict);
    let mut out = format!("{word:8} {:4} {} ({})", case.number, case.name, level(case.level));
    if reason.is_empty() {
        return out;
    }
    let _ = write!(out, ": {reason}");
    if matches!(report.outcome, Outcome::Failed(_)) {
        let _ = write!(
            out,
            "\n  {} [{}#{}]\n{}",
            case.requirement,
            case.page(),
            case.section,
            report.trace.dump()
        );
    }
    out
}

#[derive(Serialize)]
struct JsonDatagram {
    seconds: f64,
    socket: usize,
    sent: bool,
    hex: String,
}

#[derive(Serialize)]
struct JsonCase<'a> {
    number: u16,
    name: &'a str,
    group: &'a str,
    level: &'a str,
    section: String,
    requirement: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    seconds: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    datagrams: Vec<JsonDatagram>,
}

/// The tested peer, as described on the command line. Fields that were not given are empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The command line that started it.
    pub start: String,
    /// A limitation of the run that readers should know.
    pub note: String,
}

/// The peer under test, and the command that tested it.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The address of the peer.
    pub target: String,
    /// `server`, `client`, `game-server` or `secure-server`.
    pub role: String,
    /// The command line of the suite.
    pub command: String,
    /// The description of the peer.
    pub peer: Peer,
}

#[derive(Serialize)]
struct Json<'a> {
    target: &'a str,
    role: &'a str,
    command: &'a str,
    peer: &'a Peer,
    strict: bool,
    totals: Totals,
    cases: Vec<JsonCase<'a>>,
}

/// Returns all reports as JSON, with the datagrams of failures.
///
/// # Errors
///
/// Never fails for these types; the serialiser's signature has an error.
pub fn json(subject: &Subject, reports: &[Report], strict: bool) -> serde_json::Result<String> {
    let case = |report| -> JsonCase<'_> { json_case(report, strict) };
    let cases = reports.iter().map(case).collect();
    serde_json::to_string_pretty(&Json {
        target: &subject.target,
        role: &subject.role,
        command: &subject.command,
        peer: &subject.peer,
        strict,
        totals: Totals::of(reports, strict),
        cases,
    })
}

fn json_case(report: &Report, strict: bool) -> JsonCase<'_> {
    let (outcome, reason) = outcome(report, strict);
    let failed = matches!(report.outcome, Outcome::Failed(_));
    let datagrams = if failed { report.trace.entries() } else { Vec::new() };
    JsonCase {
        number: report.case.number,
        name: report.case.name,
        group: cases::group(report.case.number),
        level: level(report.case.level),
        section: format!("{}#{}", report.case.page(), report.case.section),
        requirement: report.case.requirement,
        outcome,
        reason,
        seconds: seconds(report.took),
        datagrams: datagrams
            .into_iter()
            .map(|entry| JsonDatagram {
                seconds: seconds(entry.at),
                socket: entry.socket,
                sent: entry.sent,
                hex: hex(&entry.bytes),
            })
            .collect(),
    }
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10_000.0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns all reports in the JUnit format.
#[must_use]
pub fn junit(target: &str, reports: &[Report], strict: bool) -> String {
    let totals = Totals::of(reports, strict);
    let time: f64 = reports.iter().map(|report| seconds(report.took)).sum();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rakwire-conformance {}\" tests=\"{}\" \
         failures=\"{}\" skipped=\"{}\" time=\"{time:.3}\">\n",
        escape(target),
        reports.len(),
        totals.failed,
        totals.skipped,
    );
    for report in reports {
        let case = report.case;
        let (word, reason) = outcome(report, strict);
        let _ = write!(
            out,
            "  <testcase classname=\"{}\" name=\"{} {}\" time=\"{:.3}\"",
            escape(cases::group(case.number)),
            case.number,
            case.name,
            seconds(report.took),
        );
        let reason = escape(reason);
        let _ = match word {
            "failed" => {
                let dump = escape(&report.trace.dump());
                let about = format!("{} [{}#{}]", escape(case.requirement), case.page(), case.section);
                writeln!(out, "><failure message=\"{reason}\">{about}\n{dump}</failure></testcase>")
            }
            "skipped" => writeln!(out, "><skipped message=\"{reason}\"/></testcase>"),
            "deviates" => writeln!(out, "><system-out>deviates: {reason}</system-out></testcase>"),
            _ => writeln!(out, "/>"),
        };
    }
    out.push_str("</testsuite>\n");
    out
}

/// Returns the totals as a sentence.
#[must_use]
pub fn summary(totals: Totals) -> String {
    let Totals { passed, failed, deviations, skipped } = totals;
    format!("{passed} passed, {failed} failed, {deviations} deviate from a SHOULD, {skipped} skipped")
}
