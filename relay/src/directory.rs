//! The list of servers, as pages get it and as people read it.

use std::fmt::Write as _;
use std::time::Instant;

use rakwire::codec::advertisement::{Advertisement, PongFraming};
use rakwire_udp::printable;
use serde::{Deserialize, Serialize};

use crate::protocol::{Pong, PongCache, ProtocolKind};

/// All servers that a relay offers: the body of `GET /servers.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerList {
    /// The servers, by name.
    pub servers: Vec<ServerEntry>,
}

/// A server as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerEntry {
    /// The name of the target, which a client asks for.
    pub name: String,
    /// The protocol that it speaks.
    pub kind: ProtocolKind,
    /// Whether it answers pings; none for a protocol without pings.
    pub online: Option<bool>,
    /// The time between the relay's ping and the pong, in milliseconds.
    pub latency_ms: Option<f64>,
    /// What the server says of itself: the title of an advertisement as Bedrock's servers write it, or all of its text.
    pub title: Option<String>,
    /// How many players are in it.
    pub players: Option<u32>,
    /// How many may be in it.
    pub max_players: Option<u32>,
    /// The version of the game.
    pub version: Option<String>,
}

impl ServerEntry {
    /// What is known of a target.
    pub(crate) fn new(name: &str, kind: ProtocolKind, pongs: &PongCache, now: Instant) -> Self {
        let pong = pongs.last(now);
        let mut entry = Self {
            name: name.to_owned(),
            kind,
            online: (kind == ProtocolKind::RakNet).then_some(pong.is_some()),
            latency_ms: None,
            title: None,
            players: None,
            max_players: None,
            version: None,
        };
        if let Some(pong) = pong {
            entry.describe(&pong);
        }
        entry
    }

    fn describe(&mut self, pong: &Pong) {
        self.latency_ms = pong.latency.map(|latency| (latency.as_secs_f64() * 1e6).round() / 1e3);
        let text = PongFraming::of(&pong.data).unframe(&pong.data).unwrap_or(&pong.data);
        match Advertisement::parse(text) {
            Ok(server) => {
                self.title = Some(server.motd.to_string());
                self.players = Some(server.players);
                self.max_players = Some(server.max_players);
                self.version = Some(server.version.to_string());
            }
            Err(_) => {
                let text = String::from_utf8_lossy(text);
                let title: String = text.chars().filter(|character| !character.is_control()).collect();
                self.title = Some(title).filter(|title| !title.is_empty());
            }
        }
    }
}

impl ServerList {
    /// The list as a table for people, a line for each server.
    #[must_use]
    pub fn to_table(&self) -> String {
        let head = ["NAME", "KIND", "STATE", "PLAYERS", "PING", "TITLE"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(self.servers.iter().map(ServerEntry::row)).collect();
        table(rows)
    }
}

/// Rows with columns of equal width.
pub(crate) fn table<const N: usize>(rows: Vec<[String; N]>) -> String {
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    rows.iter().fold(String::new(), |mut table, row| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        // Writing to a string does not fail.
        let _ = writeln!(table, "{}", line.trim_end());
        table
    })
}

impl ServerEntry {
    fn row(&self) -> [String; 6] {
        let state = match self.online {
            Some(true) => "online",
            Some(false) => "silent",
            None => "-",
        };
        let players = match (self.players, self.max_players) {
            (Some(players), Some(max)) => format!("{players}/{max}"),
            _ => "-".to_owned(),
        };
        let ping = self.latency_ms.map_or_else(|| "-".to_owned(), |latency| format!("{latency:.1} ms"));
        let title = self.title.as_deref().map(printable).unwrap_or_default();
        [printable(&self.name), self.kind.to_string(), state.to_owned(), players, ping, title]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rakwire::wire::offline::PingScope;

    use super::*;

    fn entry(data: &[u8]) -> ServerEntry {
        let (pongs, now) = (PongCache::default(), Instant::now());
        let latency = Some(Duration::from_micros(1_500));
        pongs.learn(PingScope::Any, Pong { guid: 1, data: data.to_vec(), at: now, latency });
        ServerEntry::new("game", ProtocolKind::RakNet, &pongs, now)
    }

    #[test]
    fn an_advertisement_is_taken_apart() {
        let raw = entry(b"MCPE;Snow \xC2\xA7aworld;594;1.20.13;3;20;");
        assert_eq!(raw.title.as_deref(), Some("Snow \u{a7}aworld"));
        assert_eq!((raw.players, raw.max_players, raw.online), (Some(3), Some(20), Some(true)));
        assert_eq!((raw.version.as_deref(), raw.latency_ms), (Some("1.20.13"), Some(1.5)));
        let mut framed = vec![0, 31];
        framed.extend(b"MCPE;Snow world;594;1.20.13;3;20;");
        framed[1] = u8::try_from(framed.len() - 2).unwrap();
        assert_eq!(entry(&framed).players, Some(3));
    }

    #[test]
    fn any_other_text_is_the_title() {
        assert_eq!(entry(b"snowfight 8999").title.as_deref(), Some("snowfight 8999"));
        assert_eq!(entry(b"").title, None);
        assert_eq!(entry(b"\x1B[2Jx\xFF").title.as_deref(), Some("[2Jx\u{fffd}"));
    }

    #[test]
    fn a_silent_server_and_one_without_pings_differ() {
        let (pongs, now) = (PongCache::default(), Instant::now());
        assert_eq!(ServerEntry::new("a", ProtocolKind::RakNet, &pongs, now).online, Some(false));
        assert_eq!(ServerEntry::new("a", ProtocolKind::GameProtocol, &pongs, now).online, None);
    }

    #[test]
    fn the_table_has_a_line_for_each_server() {
        let (pongs, now) = (PongCache::default(), Instant::now());
        let other = ServerEntry::new("other", ProtocolKind::Raw, &pongs, now);
        // One that turns round what follows on a terminal.
        let list =
            ServerList { servers: vec![entry("MCPE;World\u{202e};594;1.20.13;3;20;".as_bytes()), other] };
        let expected = "NAME   KIND    STATE   PLAYERS  PING    TITLE\n\
                        game   raknet  online  3/20     1.5 ms  World\\u{202e}\n\
                        other  raw     -       -        -\n";
        assert_eq!(list.to_table(), expected);
    }
}
