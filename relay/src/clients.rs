//! The clients and bans of a running relay, as JSON for its admin socket and as tables for the operator.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use rakwire_udp::printable;
use serde::{Deserialize, Serialize};

use crate::directory::table;

/// Clients with a flow, ordered by the number of the flow. Served at `GET /clients`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientList {
    /// The clients, ordered by the number of their flow.
    pub clients: Vec<ClientEntry>,
    /// The number of clients omitted because a response has at most 10,000.
    pub left_out: usize,
}

/// A client with a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientEntry {
    /// The number of the flow, as in the log.
    pub flow: u64,
    /// The current or last address of the client.
    pub client: SocketAddr,
    /// The name of the target.
    pub target: String,
    /// The transport: `websocket`, `webtransport`, `webrtc` or `udp`.
    pub transport: String,
    /// True if the connection is lost and the flow waits for the client to return.
    pub is_away: bool,
    /// The age of the flow in seconds.
    pub seconds: u64,
    /// Payload bytes sent to the game server.
    pub bytes_to_server: u64,
    /// Payload bytes sent to the client.
    pub bytes_to_client: u64,
}

/// Bans imposed while the relay runs. Served at `GET /bans`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BanList {
    /// The bans, by network.
    pub bans: Vec<BanEntry>,
}

/// A ban imposed while the relay runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BanEntry {
    /// The banned address or network.
    pub network: IpNet,
    /// The remaining seconds; without a value the ban lasts until the relay stops.
    pub seconds_left: Option<u64>,
}

/// The number of flows ended by a command: the response to `POST /kick` and `POST /ban`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndedFlows {
    /// The number of flows.
    pub ended: usize,
}

impl EndedFlows {
    pub(crate) const fn new(ended: usize) -> Self {
        Self { ended }
    }
}

impl ClientList {
    /// Formats the list as a table, with a line for each client.
    #[must_use]
    pub fn to_table(&self) -> String {
        let head =
            ["FLOW", "CLIENT", "TARGET", "TRANSPORT", "AGE", "TO SERVER", "TO CLIENT"].map(str::to_owned);
        let row = |entry: &ClientEntry| {
            let transport = printable(&entry.transport);
            [
                entry.flow.to_string(),
                entry.client.to_string(),
                printable(&entry.target),
                if entry.is_away { format!("{transport} (away)") } else { transport },
                humantime::format_duration(Duration::from_secs(entry.seconds)).to_string(),
                entry.bytes_to_server.to_string(),
                entry.bytes_to_client.to_string(),
            ]
        };
        let mut text = table(std::iter::once(head).chain(self.clients.iter().map(row)).collect());
        if self.left_out > 0 {
            text.push_str(&format!(
                "and {} more: pass an address or network to narrow the list\n",
                self.left_out
            ));
        }
        text
    }
}

impl BanEntry {
    /// Creates an entry with the remaining time.
    pub(crate) fn new(network: IpNet, left: Option<Duration>) -> Self {
        Self { network, seconds_left: left.map(|left| left.as_secs()) }
    }
}

impl BanList {
    pub(crate) const fn new(bans: Vec<BanEntry>) -> Self {
        Self { bans }
    }

    /// Formats the list as a table, with a line for each ban.
    #[must_use]
    pub fn to_table(&self) -> String {
        let head = ["NETWORK", "LEFT"].map(str::to_owned);
        let left = |seconds| humantime::format_duration(Duration::from_secs(seconds)).to_string();
        let row = |entry: &BanEntry| {
            let left = entry.seconds_left.map_or_else(|| "until the relay stops".to_owned(), left);
            [entry.network.to_string(), left]
        };
        table(std::iter::once(head).chain(self.bans.iter().map(row)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_escape_foreign_control_characters() {
        let entry = ClientEntry {
            flow: 7,
            client: "192.0.2.7:5000".parse().unwrap(),
            target: "game\u{1b}[2J".to_owned(),
            transport: "websocket".to_owned(),
            is_away: true,
            seconds: 61,
            bytes_to_server: 12,
            bytes_to_client: 345,
        };
        let list = ClientList { clients: vec![entry], left_out: 2 };
        let expected = "FLOW  CLIENT          TARGET         TRANSPORT         AGE    TO SERVER  TO CLIENT\n\
                        7     192.0.2.7:5000  game\\u{1b}[2J  websocket (away)  1m 1s  12         345\n\
                        and 2 more: pass an address or network to narrow the list\n";
        assert_eq!(list.to_table(), expected);
    }

    #[test]
    fn a_ban_entry_shows_the_remaining_time() {
        let ban = |network: &str, seconds_left| BanEntry { network: network.parse().unwrap(), seconds_left };
        let list = BanList { bans: vec![ban("192.0.2.0/24", Some(90)), ban("2001:db8::1/128", None)] };
        let expected = "NETWORK          LEFT\n\
                        192.0.2.0/24     1m 30s\n\
                        2001:db8::1/128  until the relay stops\n";
        assert_eq!(list.to_table(), expected);
    }
}
