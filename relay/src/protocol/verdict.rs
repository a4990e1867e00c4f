//! Decisions on datagrams, and the protocols that the relay supports.
//!
//! The handshakes of a flow are bounded in two ways. Two token buckets, of datagrams and of bytes, limit the traffic of
//! a client before its server has answered. The MTU in RakNet's handshake is clamped to the MTU of the path to the
//! client.
//!
//! The length of request 1 encodes the MTU: the client pads the request to the MTU, and its arrival shows that the path
//! carries it. A request that is longer than the path to the client permits is therefore cut, and the server proposes
//! no larger MTU. The other three messages of the handshake contain the MTU in a field.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rakwire::wire::offline::{ClientSecurity, MAGIC, Offline, ServerSecurity};
use rakwire::wire::{IP_UDP_OVERHEAD, MAX_DATAGRAM, MIN_MTU};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::time::{Bucket, cost};

/// The decision on a datagram from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The datagram is forwarded to the server with this change.
    Pass(Change),
    /// The datagram is not forwarded; this reply is sent to the client.
    Answer(Vec<u8>),
    /// The datagram is dropped.
    Drop(Refusal),
}

/// The change to a datagram that is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The datagram is forwarded unchanged.
    None,
    /// Only this many bytes are forwarded, fewer than the datagram has.
    Cut(usize),
    /// The MTU at a position, a big-endian `u16`, is replaced.
    Mtu {
        /// The offset of the field's first byte.
        at: usize,
        /// The MTU to write.
        mtu: u16,
    },
}

impl Change {
    /// Applies the change to a copy of its datagram, and returns the part to forward.
    ///
    /// ```
    /// use rakwire_relay::protocol::Change;
    ///
    /// assert_eq!(Change::Cut(2).apply(&mut [1, 2, 3]), [1, 2]);
    /// assert_eq!(Change::Mtu { at: 1, mtu: 0x0485 }.apply(&mut [1, 0xFF, 0xFF]), [1, 0x04, 0x85]);
    /// ```
    #[must_use]
    pub fn apply(self, datagram: &mut [u8]) -> &mut [u8] {
        match self {
            Self::None => datagram,
            Self::Cut(length) => {
                let length = length.min(datagram.len());
                &mut datagram[..length]
            }
            Self::Mtu { at, mtu } => {
                if let Some(field) = datagram.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                    *field = mtu.to_be_bytes();
                }
                datagram
            }
        }
    }

    /// Returns a changed copy of the part of the datagram to forward.
    #[must_use]
    pub(crate) fn copy(self, datagram: &[u8]) -> Vec<u8> {
        let mut copy = datagram.to_vec();
        let length = self.apply(&mut copy).len();
        copy.truncate(length);
        copy
    }
}

/// The reason why a datagram from a client is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The datagram is not part of a handshake, and the server has not answered one.
    NoHandshake,
    /// The client has exceeded its handshake budget.
    HandshakeBudget,
    /// The datagram begins a handshake of a protocol other than that of the target; the field is the target's protocol.
    OtherProtocol(ProtocolKind),
}

/// The protocol of a target.
///
/// ```
/// use rakwire_relay::protocol::ProtocolKind;
///
/// assert_eq!("game-protocol".parse(), Ok(ProtocolKind::GameProtocol));
/// assert_eq!(ProtocolKind::RakNet.to_string(), "raknet");
/// assert_eq!(ProtocolKind::default(), ProtocolKind::Raw);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProtocolKind {
    /// RakNet: connection datagrams pass once the server has accepted a connection, pings are answered from a cache,
    /// and the MTU is clamped.
    #[serde(rename = "raknet")]
    RakNet,
    /// The Game Protocol: packets pass once the server has answered the handshake.
    #[serde(rename = "game-protocol")]
    GameProtocol,
    /// Any other protocol: everything passes.
    #[default]
    #[serde(rename = "raw")]
    Raw,
}

impl ProtocolKind {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::RakNet, Self::GameProtocol, Self::Raw];

    /// The names of all protocols in a configuration, the default first.
    pub(crate) const NAMES: &[&str] =
        &[Self::Raw.as_str(), Self::RakNet.as_str(), Self::GameProtocol.as_str()];

    /// Returns the name in a configuration: `raknet`, `game-protocol` or `raw`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RakNet => "raknet",
            Self::GameProtocol => "game-protocol",
            Self::Raw => "raw",
        }
    }
}

impl fmt::Display for ProtocolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProtocolKind {
    type Err = ProtocolKindSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(ProtocolKindSyntaxError)
    }
}

/// The error for a text that is not the name of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write raknet, game-protocol or raw")]
pub struct ProtocolKindSyntaxError;

/// The limits for the handshakes of a flow.
///
/// The budgets apply until the server has answered. Each is the amount that may be sent in a burst, and is refilled
/// evenly within [`refill`](Self::refill).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handshake {
    /// The maximum length in bytes of a datagram that the path to the client carries, without IP and UDP headers.
    /// RakNet's first requests are cut to it, and every MTU in a handshake is at most 28 more. Default: 1,464, which is
    /// RakNet's own limit.
    pub payload_max: u16,
    /// Maximum number of datagrams in a burst. Default: 64.
    pub datagrams: u32,
    /// Maximum bytes in a burst. Default: 65,536, the requests of three connection attempts of C++ RakNet.
    pub bytes: u32,
    /// The time within which an empty budget is refilled. Default: 8 s, slightly longer than a connection attempt of
    /// C++ RakNet.
    pub refill: Duration,
}

impl Default for Handshake {
    fn default() -> Self {
        Self { payload_max: LARGEST_PAYLOAD, datagrams: 64, bytes: 64 * 1024, refill: Duration::from_secs(8) }
    }
}

/// The handshake budget of one flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    handshake: Handshake,
    datagrams: Bucket,
    bytes: Bucket,
}

impl Budget {
    pub(crate) const fn new(handshake: &Handshake, now: Instant) -> Self {
        Self { handshake: *handshake, datagrams: Bucket::full(now), bytes: Bucket::full(now) }
    }

    /// Returns true if no part of the budget is used.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        [self.datagrams, self.bytes].into_iter().all(|bucket| bucket.missing(now).is_zero())
    }

    /// Returns true if the budget allows a datagram of `length` bytes, and charges it.
    pub(crate) fn take(&mut self, now: Instant, length: usize) -> bool {
        let Handshake { datagrams, bytes, refill, .. } = self.handshake;
        let of_datagram = cost(1, datagrams as usize, refill);
        let of_bytes = cost(length, bytes as usize, refill);
        // A budget that refills immediately is never used up, but still has a size.
        let fits = datagrams > 0 && length <= bytes as usize;
        let has_both =
            fits && self.datagrams.has(now, of_datagram, refill) && self.bytes.has(now, of_bytes, refill);
        if has_both {
            self.datagrams.spend(now, of_datagram);
            self.bytes.spend(now, of_bytes);
        }
        has_both
    }
}

/// The maximum length of a RakNet datagram in bytes, without IP and UDP headers: 1,464.
pub const LARGEST_PAYLOAD: u16 = MAX_DATAGRAM as u16;

/// Returns the maximum length of a RakNet datagram after `header` bytes: both together are at most [`LARGEST_PAYLOAD`].
pub(crate) fn largest_behind(header: usize) -> u16 {
    LARGEST_PAYLOAD.saturating_sub(u16::try_from(header).unwrap_or(u16::MAX))
}

/// The length of the id and the magic, with which all four messages begin.
const HEAD: usize = 1 + MAGIC.len();
const GUID: usize = 8;
const SECURITY_FLAG: usize = 1;
const COOKIE: usize = 4;
const ADDRESS_V4: usize = 7;
const ADDRESS_V6: usize = 29;

/// Returns the change that clamps the MTU in `datagram`, which encodes `message`, to a path for `payload_max` bytes.
pub(super) fn clamp(message: &Offline<'_>, datagram: &[u8], payload_max: u16) -> Change {
    let limit = payload_max.min(LARGEST_PAYLOAD).saturating_add(IP_UDP_OVERHEAD).max(MIN_MTU);
    match *message {
        Offline::Request1 { .. } => {
            let length = usize::from(limit - IP_UDP_OVERHEAD);
            if datagram.len() > length { Change::Cut(length) } else { Change::None }
        }
        Offline::Reply1 { security, mtu, .. } => at_most(limit, mtu, HEAD + GUID + server_security(security)),
        Offline::Request2 { security, mtu, .. } => {
            let address = HEAD + client_security(security);
            at_most(limit, mtu, address + address_at(datagram, address))
        }
        Offline::Reply2 { mtu, .. } => {
            let address = HEAD + GUID;
            at_most(limit, mtu, address + address_at(datagram, address))
        }
        Offline::Ping { .. }
        | Offline::Pong { .. }
        | Offline::IncompatibleProtocol { .. }
        | Offline::OutOfBand { .. }
        | Offline::Refused { .. }
        | _ => Change::None,
    }
}

const fn at_most(limit: u16, mtu: u16, at: usize) -> Change {
    if mtu > limit { Change::Mtu { at, mtu: limit } } else { Change::None }
}

const fn server_security(security: ServerSecurity<'_>) -> usize {
    match security {
        ServerSecurity::None => SECURITY_FLAG,
        ServerSecurity::Cookie(_) => SECURITY_FLAG + COOKIE,
        ServerSecurity::PublicKey { key, .. } => SECURITY_FLAG + COOKIE + key.len(),
    }
}

const fn client_security(security: ClientSecurity<'_>) -> usize {
    match security {
        ClientSecurity::None => 0,
        ClientSecurity::Cookie(_) => COOKIE + SECURITY_FLAG,
        ClientSecurity::Challenge { challenge, .. } => COOKIE + SECURITY_FLAG + challenge.len(),
    }
}

/// Returns the length of the address at an offset. As in C++ RakNet, any version other than 4 counts as 6.
fn address_at(datagram: &[u8], at: usize) -> usize {
    if datagram.get(at) == Some(&4) { ADDRESS_V4 } else { ADDRESS_V6 }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use rakwire::raknet::Guid;
    use rakwire::wire::{Reader, Wire, Writer};

    use super::*;

    #[test]
    fn a_change_beyond_the_end_of_a_datagram_is_ignored() {
        assert_eq!(Change::None.apply(&mut [1]), [1]);
        assert_eq!(Change::Cut(9).apply(&mut [1, 2]), [1, 2]);
        for at in 1..4 {
            assert_eq!(Change::Mtu { at, mtu: 0 }.apply(&mut [1, 2]), [1, 2]);
        }
        assert!(Change::Mtu { at: usize::MAX, mtu: 0 }.apply(&mut []).is_empty());
    }

    #[test]
    fn every_protocol_name_round_trips() {
        for kind in ProtocolKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), serde_json::json!(kind.as_str()));
        }
        assert_eq!("RakNet".parse::<ProtocolKind>(), Err(ProtocolKindSyntaxError));
    }

    const HANDSHAKE: Handshake =
        Handshake { payload_max: 1_464, datagrams: 8, bytes: 1_000, refill: Duration::from_secs(8) };

    fn taken(budget: &mut Budget, now: Instant, length: usize) -> usize {
        (0..100).filter(|_| budget.take(now, length)).count()
    }

    #[test]
    fn budgets_bound_datagrams_and_bytes_and_refill() {
        let start = Instant::now();
        let mut budget = Budget::new(&HANDSHAKE, start);
        assert_eq!(taken(&mut budget, start, 10), 8);
        assert_eq!(taken(&mut budget, start + Duration::from_secs(1), 10), 1);
        assert_eq!(taken(&mut budget, start + Duration::from_secs(100), 250), 4);
        assert!(!budget.take(start + Duration::from_secs(1_000), 1_001));
        assert_eq!(taken(&mut budget, start + Duration::from_secs(1_000), 10), 8);
    }

    #[test]
    fn a_clock_set_back_refills_no_budget() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut budget = Budget::new(&HANDSHAKE, start);
        assert_eq!(taken(&mut budget, start, 10), 8);
        assert_eq!(taken(&mut budget, start - Duration::from_secs(5), 10), 0);
        assert_eq!(taken(&mut budget, start, 10), 0);
    }

    #[test]
    fn a_handshake_budget_of_zero_passes_no_datagram() {
        let start = Instant::now();
        let none = Handshake { datagrams: 0, ..HANDSHAKE };
        assert_eq!(taken(&mut Budget::new(&none, start), start + Duration::from_secs(60), 1), 0);
        let at_once = Handshake { refill: Duration::ZERO, ..HANDSHAKE };
        assert_eq!(taken(&mut Budget::new(&at_once, start), start, 10), 100);
        assert!(!Budget::new(&at_once, start).take(start, HANDSHAKE.bytes as usize + 1));
    }

    const PAYLOAD: u16 = 1_200;
    const LIMIT: u16 = PAYLOAD + IP_UDP_OVERHEAD;

    /// Returns the clamped message as the receiver parses it.
    fn clamped(message: &Offline<'_>) -> Vec<u8> {
        let mut buffer = [0; 2_048];
        let mut writer = Writer::new(&mut buffer);
        message.write(&mut writer).unwrap();
        let mut bytes = writer.finish().to_vec();
        let change = clamp(message, &bytes, PAYLOAD);
        change.apply(&mut bytes).to_vec()
    }

    fn mtu_of(bytes: &[u8]) -> u16 {
        let (Offline::Request1 { mtu, .. }
        | Offline::Reply1 { mtu, .. }
        | Offline::Request2 { mtu, .. }
        | Offline::Reply2 { mtu, .. }) = Offline::read(&mut Reader::new(bytes)).unwrap()
        else {
            panic!("no MTU in {bytes:02x?}")
        };
        mtu
    }

    fn messages(mtu: u16) -> Vec<Offline<'static>> {
        let guid = Guid(0x0102_0304_0506_0708);
        let addresses: [SocketAddr; 2] =
            ["192.0.2.1:19132".parse().unwrap(), "[2001:db8::1]:19132".parse().unwrap()];
        let servers = [
            ServerSecurity::None,
            ServerSecurity::Cookie(7),
            ServerSecurity::PublicKey { cookie: 7, key: &[9; 64] },
        ];
        let clients = [
            ClientSecurity::None,
            ClientSecurity::Cookie(7),
            ClientSecurity::Challenge { cookie: 7, challenge: &[9; 64] },
        ];
        let mut all = vec![Offline::Request1 { protocol: 11, mtu }];
        all.extend(servers.map(|security| Offline::Reply1 { guid, security, mtu }));
        for address in addresses {
            all.extend(clients.map(|security| Offline::Request2 { security, server: address, mtu, guid }));
            all.push(Offline::Reply2 { guid, client: address, mtu, answer: None });
            all.push(Offline::Reply2 { guid, client: address, mtu, answer: Some(&[5; 128]) });
        }
        all
    }

    #[test]
    fn every_mtu_of_the_handshake_is_clamped_and_nothing_else_changes() {
        for (message, expected) in messages(1_492).iter().zip(&messages(LIMIT)) {
            let bytes = clamped(message);
            assert_eq!(mtu_of(&bytes), LIMIT, "{message:?}");
            assert_eq!(Offline::read(&mut Reader::new(&bytes)).as_ref(), Ok(expected));
        }
    }

    #[test]
    fn a_fitting_mtu_is_unchanged() {
        for mtu in [576, 1_000, LIMIT] {
            for message in messages(mtu) {
                let mut buffer = [0; 2_048];
                let mut writer = Writer::new(&mut buffer);
                message.write(&mut writer).unwrap();
                assert_eq!(clamp(&message, writer.finish(), PAYLOAD), Change::None, "{message:?}");
            }
        }
    }

    #[test]
    fn the_mtu_stays_between_its_minimum_and_maximum() {
        let request = Offline::Request1 { protocol: 6, mtu: 2_000 };
        assert_eq!(clamp(&request, &[0; 1_972], 100), Change::Cut(usize::from(MIN_MTU - IP_UDP_OVERHEAD)));
        assert_eq!(clamp(&request, &[0; 1_972], u16::MAX), Change::Cut(1_464));
    }

    #[test]
    fn messages_without_an_mtu_are_unchanged() {
        let ping = Offline::OutOfBand { guid: Guid(1), data: &[1] };
        assert_eq!(clamp(&ping, &[0; 1_500], 576), Change::None);
    }
}
