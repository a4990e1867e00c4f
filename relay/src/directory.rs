//! The list of servers as JSON for pages and as a table for people, and fetching it from a relay.

use std::fmt::Write as _;
use std::time::Instant;

use rakwire::codec::advertisement::{Advertisement, PongFraming};
use rakwire_udp::printable;
use serde::{Deserialize, Serialize};

use crate::protocol::{Pong, PongCache, ProtocolKind};

/// All servers offered by a relay: the body of `GET /servers.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerList {
    /// The servers, ordered by name.
    pub servers: Vec<ServerEntry>,
}

/// A server in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerEntry {
    /// The name of the target, which clients request.
    pub name: String,
    /// The protocol of the server.
    pub kind: ProtocolKind,
    /// True if the server answers pings, `None` for a protocol without pings.
    pub online: Option<bool>,
    /// The time between the relay's ping and the pong, in milliseconds.
    pub latency_ms: Option<f64>,
    /// The server's own description: the title of an advertisement in the format of Bedrock servers, or else the whole
    /// text.
    pub title: Option<String>,
    /// The number of players.
    pub players: Option<u32>,
    /// The maximum number of players.
    pub max_players: Option<u32>,
    /// The version of the game.
    pub version: Option<String>,
}

impl ServerEntry {
    /// Creates the entry of a target.
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
    /// Formats the list as a table, with a line for each server.
    #[must_use]
    pub fn to_table(&self) -> String {
        let head = ["NAME", "KIND", "STATE", "PLAYERS", "PING", "TITLE"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(self.servers.iter().map(ServerEntry::row)).collect();
        table(rows)
    }
}

/// Formats rows with columns of equal width.
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

/// Fetches the list of servers from a relay.
pub(crate) mod fetch {
    use std::io::{self, Read, Write};
    use std::net::{TcpStream, ToSocketAddrs};
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, StreamOwned};
    use thiserror::Error;

    use crate::trust::client_config;

    /// The timeout of each step: connecting, and each read of the response.
    const TIMEOUT: Duration = Duration::from_secs(10);

    /// An upper limit for the response, above the longest list.
    const LONGEST: u64 = 4 * 1024 * 1024;

    /// The reason why the list could not be fetched.
    #[derive(Debug, Error)]
    #[non_exhaustive]
    pub enum FetchError {
        /// The URL is not that of a relay.
        #[error("write the address of the relay as http://HOST:PORT or https://HOST")]
        Url,
        /// The relay is unreachable, or its certificate is not trusted by this machine.
        #[error("no answer ({0})")]
        Io(#[from] io::Error),
        /// This machine cannot verify certificates.
        #[error("{0}")]
        Tls(String),
        /// The response is not a list.
        #[error("the response is not a list of servers: check that the URL is that of a relay")]
        Unexpected,
    }

    /// The parts of a relay's URL.
    #[derive(Debug, PartialEq, Eq)]
    struct RelayUrl<'a> {
        has_tls: bool,
        /// The host, with the port unless it is the default port of the scheme.
        authority: &'a str,
    }

    impl<'a> RelayUrl<'a> {
        fn parse(url: &'a str) -> Option<Self> {
            let (has_tls, rest) = match url.strip_prefix("https://") {
                Some(rest) => (true, rest),
                None => (false, url.strip_prefix("http://")?),
            };
            let authority = rest.strip_suffix('/').unwrap_or(rest);
            let is_authority = !authority.is_empty() && !authority.contains(['/', '?', '#', '@']);
            is_authority.then_some(Self { has_tls, authority })
        }

        /// Returns the host without brackets, and the port.
        fn host_and_port(&self) -> (&'a str, u16) {
            let by_scheme = if self.has_tls { 443 } else { 80 };
            let (host, port) = match self.authority.rsplit_once(':').map(|(host, port)| (host, port.parse()))
            {
                Some((host, Ok(port))) => (host, port),
                Some((_, Err(_))) | None => (self.authority, by_scheme),
            };
            (host.trim_start_matches('[').trim_end_matches(']'), port)
        }
    }

    /// Fetches `GET /servers.json` of the relay at `url`, such as `https://relay.example.org` or
    /// `http://127.0.0.1:8080`.
    ///
    /// Returns the JSON text, which can be parsed as a [`ServerList`](crate::directory::ServerList). The call blocks.
    /// Connecting, and each read of the response, time out after 10 s. For https, the system must trust the relay's
    /// certificate.
    ///
    /// # Errors
    ///
    /// If the URL has another form, the relay does not answer, or the response is not a list of servers.
    pub fn fetch_server_list(url: &str) -> Result<String, FetchError> {
        let relay = RelayUrl::parse(url).ok_or(FetchError::Url)?;
        let (host, port) = relay.host_and_port();
        let stream = connect(host, port)?;
        let answer = if relay.has_tls {
            let config = client_config(None).map_err(|error| FetchError::Tls(error.to_string()))?;
            let name = ServerName::try_from(host.to_owned()).map_err(|_| FetchError::Url)?;
            let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
            request(StreamOwned::new(connection, stream), relay.authority)?
        } else {
            request(stream, relay.authority)?
        };
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(FetchError::Unexpected)?;
        let is_found = head.split_whitespace().nth(1) == Some("200");
        if is_found { Ok(body.to_owned()) } else { Err(FetchError::Unexpected) }
    }

    /// Connects to the first address of the host that accepts the connection.
    fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
        let mut result = Err(io::Error::other("the host has no address"));
        for address in (host, port).to_socket_addrs()? {
            result = TcpStream::connect_timeout(&address, TIMEOUT);
            if let Ok(stream) = &result {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                break;
            }
        }
        result
    }

    fn request(mut stream: impl Read + Write, authority: &str) -> io::Result<String> {
        // A response to version 1.0 is not chunked.
        write!(stream, "GET /servers.json HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\n\r\n")?;
        stream.flush()?;
        let mut answer = Vec::new();
        match stream.take(LONGEST).read_to_end(&mut answer) {
            // The JSON itself shows whether the list is complete, even if a server ends TLS without a close
            // notification.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            Ok(_) | Err(_) => {}
        }
        String::from_utf8(answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_relay_url_has_a_scheme_and_no_path() {
            let parsed = |url| RelayUrl::parse(url).map(|url| (url.has_tls, url.host_and_port()));
            assert_eq!(parsed("http://127.0.0.1:8080"), Some((false, ("127.0.0.1", 8080))));
            assert_eq!(parsed("http://relay.example.org/"), Some((false, ("relay.example.org", 80))));
            assert_eq!(parsed("https://relay.example.org"), Some((true, ("relay.example.org", 443))));
            assert_eq!(parsed("https://[2001:db8::1]"), Some((true, ("2001:db8::1", 443))));
            assert_eq!(parsed("https://[::1]:8443/"), Some((true, ("::1", 8443))));
            for other in ["wss://a:1", "127.0.0.1:8080", "http://", "http://a/servers.json", "https://me@a"] {
                assert_eq!(parsed(other), None, "{other}");
            }
        }
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
    fn an_advertisement_is_split_into_fields() {
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
    fn an_unstructured_text_becomes_the_title() {
        assert_eq!(entry(b"snowfight 8999").title.as_deref(), Some("snowfight 8999"));
        assert_eq!(entry(b"").title, None);
        assert_eq!(entry(b"\x1B[2Jx\xFF").title.as_deref(), Some("[2Jx\u{fffd}"));
    }

    #[test]
    fn the_list_distinguishes_a_silent_server_from_a_server_without_pings() {
        let (pongs, now) = (PongCache::default(), Instant::now());
        assert_eq!(ServerEntry::new("a", ProtocolKind::RakNet, &pongs, now).online, Some(false));
        assert_eq!(ServerEntry::new("a", ProtocolKind::GameProtocol, &pongs, now).online, None);
    }

    #[test]
    fn the_server_table_has_one_line_per_server() {
        let (pongs, now) = (PongCache::default(), Instant::now());
        let other = ServerEntry::new("other", ProtocolKind::Raw, &pongs, now);
        // A right-to-left override, which would reverse the following text on a terminal.
        let list =
            ServerList { servers: vec![entry("MCPE;World\u{202e};594;1.20.13;3;20;".as_bytes()), other] };
        let expected = "NAME   KIND    STATE   PLAYERS  PING    TITLE\n\
                        game   raknet  online  3/20     1.5 ms  World\\u{202e}\n\
                        other  raw     -       -        -\n";
        assert_eq!(list.to_table(), expected);
    }
}
