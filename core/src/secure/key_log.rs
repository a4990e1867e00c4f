//! Export of datagram keys, to decrypt captures of your own connections (docs/secure.md#key-log).

use core::fmt;
use core::str::FromStr;

use super::datagrams::DatagramProtection;
use super::primitives::{KEY, Secret};

error_enum! {
    /// The reason why a line of a key log cannot be parsed (docs/secure.md#key-log).
    #[non_exhaustive]
    pub enum KeyLogError {
        /// The line does not consist of three parts, separated by single spaces.
        WrongParts => "the line must have a label, a connection name and a key, separated by single spaces",
        /// The label is unknown.
        UnknownLabel => "the label is not one of rakwire's key log",
        /// The connection name or the key does not have 64 hexadecimal digits.
        BadDigits => "the connection name and the key must have 64 hexadecimal digits each",
    }
}

/// The direction in which a key protects datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyDirection {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// The labels of all lines.
const LABELS: [(&str, KeyDirection, u8); 4] = [
    ("RAKWIRE_TO_SERVER_0", KeyDirection::ToServer, 0),
    ("RAKWIRE_TO_CLIENT_0", KeyDirection::ToClient, 0),
    ("RAKWIRE_TO_SERVER_1", KeyDirection::ToServer, 1),
    ("RAKWIRE_TO_CLIENT_1", KeyDirection::ToClient, 1),
];

/// A key of a connection. `Display` writes it as a line of a key log, and `FromStr` parses one.
///
/// The key is erased on drop.
///
/// ```
/// use rakwire::secure::{KeyDirection, LoggedKey};
///
/// let line = format!("RAKWIRE_TO_SERVER_0 {} {}", "ab".repeat(32), "07".repeat(32));
/// let key: LoggedKey = line.parse()?;
/// assert_eq!((key.direction(), key.epoch(), key.connection()), (KeyDirection::ToServer, 0, &[0xAB; 32]));
/// assert_eq!(key.to_string(), line);
/// # Ok::<(), rakwire::secure::KeyLogError>(())
/// ```
pub struct LoggedKey {
    direction: KeyDirection,
    epoch: u8,
    connection: [u8; KEY],
    key: Secret,
}

impl LoggedKey {
    /// Returns the direction of the datagrams that the key opens.
    #[must_use]
    pub const fn direction(&self) -> KeyDirection {
        self.direction
    }

    /// Returns the epoch of the key: 0, or 1 for a connection of a client with an identity.
    ///
    /// The keys of all other epochs are derived by rekeying.
    #[must_use]
    pub const fn epoch(&self) -> u8 {
        self.epoch
    }

    /// Returns the first 32 bytes of the answer in reply 2, which are unique to the connection.
    #[must_use]
    pub const fn connection(&self) -> &[u8; KEY] {
        &self.connection
    }
}

/// A sink for the keys of a peer's connections.
///
/// The sink must not block for long.
pub trait KeyLog: Send + Sync {
    /// Called with each key, for both directions, as soon as the handshake of a connection has derived it.
    fn log(&self, key: &LoggedKey);
}

impl DatagramProtection {
    /// Passes the keys that the handshake has derived so far to the log.
    pub(crate) fn log_keys(&self, is_client: bool, answer: &[u8], log: &dyn KeyLog) {
        let Some(connection) = answer.first_chunk() else { return };
        let directions = match is_client {
            true => [KeyDirection::ToServer, KeyDirection::ToClient],
            false => [KeyDirection::ToClient, KeyDirection::ToServer],
        };
        for (epoch, keys) in (0..).zip(self.keys_of_handshake()) {
            for (direction, key) in directions.into_iter().zip(keys.into_iter().flatten()) {
                log.log(&LoggedKey {
                    direction,
                    epoch,
                    connection: *connection,
                    key: Secret::new(*key.as_bytes()),
                });
            }
        }
    }

    /// Creates packet protection that opens the datagrams of one direction in all epochs.
    ///
    /// It takes the key of epoch 0, and the key of epoch 1 if the client has an identity. Do not seal with the result.
    #[must_use]
    pub fn from_logged_keys(epoch_0: &LoggedKey, epoch_1: Option<&LoggedKey>) -> Self {
        Self::opening(epoch_0.key.as_bytes(), epoch_1.map(|logged| logged.key.as_bytes()))
    }
}

impl fmt::Display for LoggedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label =
            LABELS.iter().find(|(_, direction, epoch)| (*direction, *epoch) == (self.direction, self.epoch));
        f.write_str(label.map_or("", |(label, _, _)| label))?;
        for bytes in [&self.connection, self.key.as_bytes()] {
            f.write_str(" ")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

impl FromStr for LoggedKey {
    type Err = KeyLogError;

    fn from_str(line: &str) -> Result<Self, KeyLogError> {
        let mut parts = line.split_ascii_whitespace();
        let (Some(label), Some(connection), Some(key), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(KeyLogError::WrongParts);
        };
        let label = LABELS.iter().find(|(known, _, _)| *known == label).ok_or(KeyLogError::UnknownLabel)?;
        let (_, direction, epoch) = *label;
        Ok(Self { direction, epoch, connection: digits(connection)?, key: Secret::new(digits(key)?) })
    }
}

/// Parses 64 hexadecimal digits.
fn digits(text: &str) -> Result<[u8; KEY], KeyLogError> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = [0; KEY];
    if pairs.len() != KEY || !rest.is_empty() {
        return Err(KeyLogError::BadDigits);
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Ok(bytes)
}

fn digit(character: u8) -> Result<u8, KeyLogError> {
    let digit = char::from(character).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digit.ok_or(KeyLogError::BadDigits)
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::{String, ToString};
    use std::sync::Mutex;
    use std::vec::Vec;

    use super::*;
    use crate::secure::RekeyLimits;
    use crate::time::Instant;

    /// The log of one connection.
    struct Log(Mutex<Vec<String>>);

    impl KeyLog for Log {
        fn log(&self, key: &LoggedKey) {
            self.0.lock().expect("no panic").push(key.to_string());
        }
    }

    #[test]
    fn logged_keys_open_both_directions_in_all_epochs() {
        const NOW: Instant = Instant::ZERO;
        let limits = RekeyLimits { datagrams: 3, ..RekeyLimits::DEFAULT };
        let mut client = DatagramProtection::with_keys([1; 32], [2; 32], NOW);
        let mut server = DatagramProtection::with_keys([2; 32], [1; 32], NOW);
        client.set_limits(limits);
        server.set_limits(limits);
        let log = Log(Mutex::new(Vec::new()));
        server.log_keys(false, &[9; 128], &log);
        let lines = log.0.into_inner().expect("no panic");
        let keys: Vec<LoggedKey> = lines.iter().map(|line| line.parse().expect("a line")).collect();
        assert_eq!(keys.len(), 2, "the keys of later epochs follow");
        let observer = |direction| {
            let key = keys.iter().find(|key| key.direction() == direction).expect("a key");
            DatagramProtection::from_logged_keys(key, None)
        };
        let mut observers = [observer(KeyDirection::ToServer), observer(KeyDirection::ToClient)];
        for round in 0..40_u8 {
            for (at, observer) in observers.iter_mut().enumerate() {
                let (from, to) =
                    if at == 0 { (&mut client, &mut server) } else { (&mut server, &mut client) };
                let mut datagram = [round; 32];
                let length = from.seal(NOW, &mut datagram, 8).expect("enough space");
                let mut copy = [0; 32];
                assert_eq!(observer.open_copy(NOW, &datagram[..length], &mut copy), Ok(8));
                assert_eq!(copy[..8], [round; 8]);
                to.open(NOW, &mut datagram[..length]).expect("a sealed datagram");
            }
        }
        assert!(client.epoch() > 5, "{}", client.epoch());
    }

    #[test]
    fn malformed_key_log_lines_have_distinct_errors() {
        let digits = "0123456789abcdef".repeat(4);
        for (label, direction, epoch) in LABELS {
            let line = format!("{label} {digits} {digits}");
            let key: LoggedKey = line.parse().expect("a line");
            assert_eq!((key.direction(), key.epoch(), key.to_string()), (direction, epoch, line));
        }
        let error = |line: &str| line.parse::<LoggedKey>().err();
        assert_eq!(error(""), Some(KeyLogError::WrongParts));
        assert_eq!(error(&format!("RAKWIRE_TO_SERVER_0 {digits}")), Some(KeyLogError::WrongParts));
        assert_eq!(error(&format!("RAKWIRE_TO_SERVER_0 {digits} {digits} 1")), Some(KeyLogError::WrongParts));
        assert_eq!(error(&format!("RAKWIRE_TO_SERVER_2 {digits} {digits}")), Some(KeyLogError::UnknownLabel));
        for bad in [&digits[1..], &digits.replace('f', "g"), &format!("{digits}00")] {
            assert_eq!(error(&format!("RAKWIRE_TO_SERVER_0 {digits} {bad}")), Some(KeyLogError::BadDigits));
            assert_eq!(error(&format!("RAKWIRE_TO_SERVER_0 {bad} {digits}")), Some(KeyLogError::BadDigits));
        }
    }
}
