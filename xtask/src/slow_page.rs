//! Measurements of the demo with a slow page: the age of the displayed state, and the datagrams that each part drops or
//! omits.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::shell::Shell;
use crate::smoke;

const DRIVER: &str = "web/tests/slow-page.mjs";
/// The output of a demo under measurement, in the folder of the smoke test.
pub const LOG: &str = "target/demo/slow-page.log";
const LIMIT: Duration = Duration::from_secs(300);
/// The counters in each report of the game server.
const COUNTS: [&str; 4] = ["snapshots", "thinned", "backlogged", "datagrams"];

/// A case to measure: the protocol, the kind of snapshots, and true with pacing.
pub type Case = (&'static str, &'static str, bool);

/// Returns all cases. Those with and without pacing alternate, so that other load on the machine affects both alike.
pub fn cases() -> impl Iterator<Item = Case> {
    let kinds =
        ["whole", "changes"].into_iter().flat_map(|kind| ["game", "raknet"].map(|protocol| (protocol, kind)));
    kinds.flat_map(|(protocol, kind)| [false, true].map(|is_paced| (protocol, kind, is_paced)))
}

/// Returns the arguments of the game server.
pub fn server((.., is_paced): Case) -> &'static [&'static str] {
    if is_paced { &["--report", "1"] } else { &["--report", "1", "--unpaced"] }
}

/// Lets the players of two pages walk around, and returns the driver's measurements.
pub fn drive(shell: &Shell, url: &str, case: Case, blocked_ms: u8, seconds: u16) -> Result<Value> {
    let (protocol, snapshots, _) = case;
    let (blocked_ms, seconds) = (blocked_ms.to_string(), seconds.to_string());
    let line = smoke::last_line(shell, &[DRIVER, url, protocol, snapshots, &blocked_ms, &seconds], LIMIT)?;
    serde_json::from_str(&line).with_context(|| format!("{DRIVER} printed {line:?}"))
}

/// Returns the row of a case: the measurements of the pages, and the counters of the game server and the relay from
/// their output.
pub fn row(case: Case, run: u32, pages: &Value, said: &str) -> Result<Value> {
    let (protocol, snapshots, is_paced) = case;
    let reports = said.lines().filter_map(|line| line.split_once("] {"));
    let reports: Vec<Value> =
        reports.filter_map(|(_, report)| serde_json::from_str(&format!("{{{report}")).ok()).collect();
    let sum = |name: &str| reports.iter().filter_map(|report| report.get(name)?.as_u64()).sum::<u64>();
    let server: Map<_, _> = COUNTS.map(|name| (name.to_owned(), json!(sum(name)))).into_iter().collect();
    let relay = said.lines().rev().find_map(|line| line.split_once("ended: "));
    let (_, relay) = relay.context("the relay did not report its counters")?;
    // The relay prints `…, 12 datagrams (34 bytes) to clients, …, dropped ClientQueueFull: 3`.
    let parts = || relay.split(", ");
    let to_clients = parts()
        .find(|part| part.ends_with("to clients"))
        .and_then(|part| part.split_once(' ')?.0.parse::<u64>().ok());
    let drops = parts().filter_map(|part| part.strip_prefix("dropped ")?.split_once(": "));
    let drops = drops
        .filter_map(|(reason, count)| Some((reason.to_owned(), count.trim().parse::<u64>().ok()?.into())));
    Ok(json!({
        "protocol": protocol, "snapshots": snapshots, "paced": is_paced, "run": run, "slow": pages["slow"],
        "other": pages["other"], "server": server, "events": pages["events"],
        "relay": { "datagrams_to_clients": to_clients, "dropped": drops.collect::<Map<_, _>>() },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_combines_the_counters_of_pages_server_and_relay() {
        let said = "[the game server] listening on 127.0.0.1:1\n\
            [the game server] {\"ticks\":60,\"datagrams\":800,\"snapshots\":60,\"thinned\":5,\"backlogged\":0}\n\
            [the game server] {\"ticks\":60,\"datagrams\":30,\"snapshots\":2,\"thinned\":51,\"backlogged\":7}\n\
            INFO rakwire_relay::relay: ended: 0 clients of 2 flows, 9 datagrams (99 bytes) to servers, \
            700 datagrams (7000 bytes) to clients, dropped ClientQueueFull: 130, dropped SendRefused: 1\n";
        let pages = json!({ "slow": { "age_ms": 7 }, "other": {}, "events": 650 });
        let row = |said| row(cases().nth(1).unwrap(), 3, &pages, said);
        let expected = json!({
            "protocol": "game", "snapshots": "whole", "paced": true, "run": 3, "slow": { "age_ms": 7 }, "other": {},
            "server": { "snapshots": 62, "thinned": 56, "backlogged": 7, "datagrams": 830 }, "events": 650,
            "relay": { "datagrams_to_clients": 700, "dropped": { "ClientQueueFull": 130, "SendRefused": 1 } },
        });
        assert_eq!(row(said).unwrap(), expected);
        assert_eq!(row("nothing").unwrap_err().to_string(), "the relay did not report its counters");
    }
}
