//! Measurements of the demo with a slow page: the delay of what it shows, and the datagrams that each part drops or
//! leaves out.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::process::describe;
use crate::shell::Shell;

const DRIVER: &str = "web/tests/slow-page.mjs";
/// The output of a demo under measurement, in the folder of the smoke test.
pub const LOG: &str = "target/demo/slow-page.log";
const LIMIT: Duration = Duration::from_secs(300);
/// The protocols and the kinds of snapshots, each without and with pacing. They alternate, so that other load on the
/// machine affects both alike.
pub const CASES: [Case; 8] = [
    Case { protocol: "game", snapshots: "whole", paced: false },
    Case { protocol: "game", snapshots: "whole", paced: true },
    Case { protocol: "raknet", snapshots: "whole", paced: false },
    Case { protocol: "raknet", snapshots: "whole", paced: true },
    Case { protocol: "game", snapshots: "changes", paced: false },
    Case { protocol: "game", snapshots: "changes", paced: true },
    Case { protocol: "raknet", snapshots: "changes", paced: false },
    Case { protocol: "raknet", snapshots: "changes", paced: true },
];
/// The counters in each report of the game server.
const COUNTS: [&str; 4] = ["snapshots", "thinned", "backlogged", "datagrams"];

/// A case to measure.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    protocol: &'static str,
    snapshots: &'static str,
    paced: bool,
}

impl Case {
    /// Returns the arguments of the game server.
    pub const fn server(self) -> &'static [&'static str] {
        if self.paced { &["--report", "1"] } else { &["--report", "1", "--unpaced"] }
    }
}

/// Lets two pages walk around at this address, and returns the output line of the driver.
pub fn drive(shell: &Shell, url: &str, case: Case, blocked_ms: u8, seconds: u16) -> Result<Value> {
    let (blocked_ms, seconds) = (blocked_ms.to_string(), seconds.to_string());
    let args = [DRIVER, url, case.protocol, case.snapshots, &blocked_ms, &seconds];
    let output = shell.cmd("node", args).limit(LIMIT).output()?;
    let line = output.stdout.lines().last().unwrap_or_default();
    if !output.status.success() {
        bail!("the pages failed in the browser ({}): {line}", describe(output.status));
    }
    serde_json::from_str(line).with_context(|| format!("{DRIVER} printed {line:?}"))
}

/// Returns the row of a case: the measurements of the pages, and the counters of the game server and the relay from
/// their output.
pub fn row(case: Case, run: u32, pages: &Value, said: &str) -> Result<Value> {
    let Case { protocol, snapshots, paced } = case;
    let mut row = json!({ "protocol": protocol, "snapshots": snapshots, "paced": paced, "run": run });
    for part in ["slow", "other"] {
        row[part] = pages
            .get(part)
            .with_context(|| format!("{DRIVER} reports nothing about the {part} page"))?
            .clone();
    }
    row["server"] = server_counts(said);
    let relay = said.lines().rev().find_map(|line| line.split_once("ended: "));
    let (_, relay) = relay.context("the relay did not report its counters")?;
    row["relay"] = json!({ "datagrams_to_clients": to_clients(relay), "dropped": dropped(relay) });
    row["events"] = pages.get("events").cloned().unwrap_or_default();
    Ok(row)
}

/// Returns the sums of the game server's reports.
fn server_counts(said: &str) -> Value {
    let reports = said.lines().filter_map(|line| line.split_once("] {"));
    let reports: Vec<Value> =
        reports.filter_map(|(_, report)| serde_json::from_str(&format!("{{{report}")).ok()).collect();
    let sum = |name: &str| reports.iter().filter_map(|report| report.get(name)?.as_u64()).sum::<u64>();
    COUNTS.iter().map(|name| ((*name).to_owned(), json!(sum(name)))).collect::<Map<_, _>>().into()
}

/// Returns the number in `…, 12 datagrams (34 bytes) to clients`.
fn to_clients(counted: &str) -> Option<u64> {
    let part = counted.split(", ").find(|part| part.ends_with("to clients"))?;
    part.split_once(' ')?.0.parse().ok()
}

/// Returns the reasons and numbers in `…, dropped ClientQueueFull: 3`.
fn dropped(counted: &str) -> Map<String, Value> {
    let parts = counted.split(", ").filter_map(|part| part.strip_prefix("dropped ")?.split_once(": "));
    parts
        .filter_map(|(reason, count)| Some((reason.to_owned(), count.trim().parse::<u64>().ok()?.into())))
        .collect()
}

/// Returns all rows as a line of JSON.
pub fn line(blocked_ms: u8, seconds: u16, rows: &[Value]) -> impl Display {
    json!({ "blocked_ms_of_100": blocked_ms, "seconds": seconds, "rows": rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "[the game server] listening on 127.0.0.1:1\n\
        [the game server] {\"ticks\":60,\"datagrams\":800,\"snapshots\":60,\"thinned\":5,\"backlogged\":0}\n\
        [the game server] {\"ticks\":60,\"datagrams\":30,\"snapshots\":2,\"thinned\":51,\"backlogged\":7}\n\
        2026-01-01T00:00:00Z  INFO rakwire_relay::relay: ended: 0 clients of 2 flows, 9 datagrams (99 bytes) to \
        servers, 700 datagrams (7000 bytes) to clients, dropped ClientQueueFull: 130, dropped SendRefused: 1\n";

    #[test]
    fn a_row_combines_pages_server_and_relay() {
        let pages = json!({ "slow": { "age_ms": 7 }, "other": {}, "events": 650 });
        let row = row(CASES[1], 3, &pages, OUTPUT).unwrap();
        let expected = json!({
            "protocol": "game", "snapshots": "whole", "paced": true, "run": 3, "slow": { "age_ms": 7 }, "other": {},
            "server": { "snapshots": 62, "thinned": 56, "backlogged": 7, "datagrams": 830 }, "events": 650,
            "relay": { "datagrams_to_clients": 700, "dropped": { "ClientQueueFull": 130, "SendRefused": 1 } },
        });
        assert_eq!(row, expected);
    }

    #[test]
    fn missing_parts_are_named() {
        let pages = json!({ "slow": {}, "other": {} });
        let reason = |pages, said| row(CASES[0], 1, pages, said).unwrap_err().to_string();
        assert_eq!(reason(&pages, "nothing"), "the relay did not report its counters");
        assert!(reason(&json!({ "slow": {} }), OUTPUT).ends_with("reports nothing about the other page"));
    }
}
