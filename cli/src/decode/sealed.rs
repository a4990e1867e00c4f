//! Opens the sealed datagrams of a capture with the keys of a key log (docs/secure.md#key-log).

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;

use rakwire::Instant;
use rakwire::secure::{DatagramProtection, KeyDirection, LoggedKey};
use rakwire::wire::SecuritySizes;
use rakwire::wire::datagram::VALID;
use rakwire::wire::offline::Offline;

use super::fields::Recorder;
use crate::failure::Failure;

/// The maximum size of a key log in bytes.
const LONGEST: u64 = 256 << 20;

/// The keys of a key log, by connection, direction and epoch.
#[derive(Default)]
pub(super) struct Keys(HashMap<([u8; 32], KeyDirection, u8), LoggedKey>);

impl Keys {
    /// Reads a key log, skipping empty lines and lines that begin with #.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let failure =
            |why: &dyn std::fmt::Display| Failure::usage(format!("--key-log {}: {why}", path.display()));
        let file = File::open(path).map_err(|error| failure(&error))?;
        let mut keys = Self::default();
        for (number, line) in (1..).zip(BufReader::new(file.take(LONGEST)).lines()) {
            let at_line = |why: &dyn std::fmt::Display| failure(&format_args!("line {number}: {why}"));
            let line = line.map_err(|error| at_line(&error))?;
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let key: LoggedKey = line.parse().map_err(|error| at_line(&error))?;
            keys.0.insert((*key.connection(), key.direction(), key.epoch()), key);
        }
        Ok(keys)
    }

    fn protection(&self, connection: [u8; 32], direction: KeyDirection) -> Option<DatagramProtection> {
        let key = |epoch| self.0.get(&(connection, direction, epoch));
        Some(DatagramProtection::from_logged_keys(key(0)?, key(1)))
    }
}

/// The result of opening a datagram of a capture.
pub(super) enum Seen {
    /// The datagram was not sealed.
    Clear,
    /// The datagram was sealed; these are its plain bytes.
    Opened(Vec<u8>),
    /// The datagram was sealed, and no key opens it.
    Sealed,
}

/// A secure connection of a capture.
struct Connection {
    name: [u8; 32],
    to_server: Option<DatagramProtection>,
    to_client: Option<DatagramProtection>,
}

/// Tracks the connections of a capture.
pub(super) struct Connections {
    keys: Keys,
    /// The secure connections by the addresses of client and server.
    secure: HashMap<(SocketAddr, SocketAddr), Connection>,
}

impl Connections {
    pub(super) fn new(keys: Keys) -> Self {
        Self { keys, secure: HashMap::new() }
    }

    /// Opens the next datagram of the capture, if a key is known.
    pub(super) fn see(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Seen {
        if bytes.first().is_none_or(|first| first & VALID == 0) {
            self.see_offline(from, to, bytes);
            return Seen::Clear;
        }
        let protection = if let Some(connection) = self.secure.get_mut(&(from, to)) {
            connection.to_server.as_mut()
        } else if let Some(connection) = self.secure.get_mut(&(to, from)) {
            connection.to_client.as_mut()
        } else {
            return Seen::Clear;
        };
        let mut plain = vec![0; bytes.len()];
        // The time is constant, so that keys of earlier epochs never expire.
        let opened = protection.and_then(|keys| keys.open_copy(Instant::ZERO, bytes, &mut plain).ok());
        opened.map_or(Seen::Sealed, |length| {
            plain.truncate(length);
            Seen::Opened(plain)
        })
    }

    /// Tracks secure connections by reply 2, which contains the server's handshake answer only for a secure connection.
    fn see_offline(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let mut source = Recorder::new(bytes, 0);
        let Ok(Offline::Reply2 { answer, .. }) = Offline::read_with(&mut source, &SecuritySizes::ORIGINAL)
        else {
            return;
        };
        // A repeated or forged reply 2 must not discard a connection with known keys.
        let known = self.secure.get(&(to, from));
        let Some(name) = answer.and_then(|answer| answer.first_chunk::<32>().copied()) else {
            if known.is_some_and(|known| known.to_server.is_none()) {
                self.secure.remove(&(to, from));
            }
            return;
        };
        let to_server = self.keys.protection(name, KeyDirection::ToServer);
        if known.is_some_and(|known| known.name == name || (known.to_server.is_some() && to_server.is_none()))
        {
            return;
        }
        let to_client = self.keys.protection(name, KeyDirection::ToClient);
        self.secure.insert((to, from), Connection { name, to_server, to_client });
    }
}
