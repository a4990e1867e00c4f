//! Packet protection, applied last before sending and first after receiving.
//!
//! It stores the keys of a connection and the state of the handshake that produces them.

#[cfg(feature = "secure")]
use core::fmt;

use crate::raknet::config::Protection;
#[cfg(feature = "secure")]
use crate::raknet::security::SecurePeer;
#[cfg(feature = "secure")]
use crate::raknet::wire::control::Proof;
use crate::raknet::wire::protection::{PacketProtection, Plain};
#[cfg(feature = "secure")]
use crate::secure::{
    AcceptedToken, CHALLENGE, ClientHandshake, DatagramProtection, IDENTITY, MAX_IDENTITY_DATA, PROOF,
    ServerHandshake, ServerTrust, StaticKey,
};
use crate::time::Instant;

/// The packet protection of a connection, and the handshake state from which it is derived.
#[derive(Debug)]
pub(crate) enum ConnectionProtection {
    Plain(Plain),
    /// Client: opening a secure connection, before the key agreement.
    #[cfg(feature = "secure")]
    Dialling(Stored<Dialling>),
    #[cfg(feature = "secure")]
    Sealed(Stored<Sealed>),
    #[cfg(test)]
    TestProtection(tests::TestProtection),
}

impl Default for ConnectionProtection {
    fn default() -> Self {
        Self::Plain(Plain)
    }
}

impl ConnectionProtection {
    pub(crate) fn new(protection: Protection) -> Self {
        match protection {
            Protection::Plain => Self::default(),
            #[cfg(test)]
            Protection::Test => Self::TestProtection(tests::TestProtection::default()),
        }
    }

    /// Returns true if datagrams are, or will be, sealed with negotiated keys.
    pub(crate) const fn is_secure(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "secure")]
            Self::Dialling(_) | Self::Sealed(_) => true,
            #[cfg(test)]
            Self::TestProtection(_) => false,
        }
    }

    /// Returns true if datagrams are sent and received unprotected.
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    pub(crate) fn overhead(&self) -> u16 {
        match self {
            Self::Plain(plain) => plain.overhead(),
            #[cfg(feature = "secure")]
            Self::Dialling(_) | Self::Sealed(_) => crate::secure::OVERHEAD,
            #[cfg(test)]
            Self::TestProtection(protection) => protection.overhead(),
        }
    }

    /// Returns the part of `buffer` into which the plain datagram is written before [`seal`](Self::seal).
    pub(crate) fn place<'b>(&self, buffer: &'b mut [u8]) -> &'b mut [u8] {
        #[cfg(feature = "secure")]
        if matches!(self, Self::Sealed(_)) {
            return buffer.get_mut(crate::secure::HEADER..).unwrap_or(&mut []);
        }
        buffer
    }

    /// Seals the `length` bytes written at their [`place`](Self::place) in `datagram`.
    ///
    /// Returns `None` if the datagram cannot be sent.
    #[cfg_attr(not(feature = "secure"), expect(unused_variables, reason = "only keys have an age"))]
    pub(crate) fn seal(&mut self, now: Instant, datagram: &mut [u8], length: usize) -> Option<usize> {
        match self {
            Self::Plain(plain) => plain.seal(datagram, length),
            #[cfg(feature = "secure")]
            Self::Dialling(_) => None,
            #[cfg(feature = "secure")]
            Self::Sealed(sealed) => sealed.datagrams.seal_in_place(now, datagram, length),
            #[cfg(test)]
            Self::TestProtection(protection) => protection.seal(datagram, length),
        }
    }

    /// Opens a datagram; if it was sealed, the plain bytes are in `buffer`.
    ///
    /// Returns `None` if the datagram is forged, damaged or replayed.
    #[cfg_attr(not(feature = "secure"), expect(unused_variables, reason = "only keys have an age"))]
    pub(crate) fn open<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        buffer: &'d mut [u8],
    ) -> Option<&'d [u8]> {
        match self {
            Self::Plain(plain) => plain.open_copy(datagram, buffer),
            #[cfg(feature = "secure")]
            Self::Dialling(_) => None,
            #[cfg(feature = "secure")]
            Self::Sealed(sealed) => {
                let length = sealed.datagrams.open_copy(now, datagram, buffer).ok()?;
                buffer.get(..length)
            }
            #[cfg(test)]
            Self::TestProtection(protection) => protection.open_copy(datagram, buffer),
        }
    }
}

/// With an allocator, a plain connection takes no memory for the state of a secure one.
#[cfg(all(feature = "secure", feature = "alloc"))]
pub(super) type Stored<T> = alloc::boxed::Box<T>;
#[cfg(all(feature = "secure", not(feature = "alloc")))]
pub(super) type Stored<T> = T;

/// The application data sent with an identity.
#[cfg(feature = "secure")]
pub(super) type IdentityData = heapless::Vec<u8, MAX_IDENTITY_DATA>;

/// The state of a client until a server has answered its challenge.
#[cfg(feature = "secure")]
pub(crate) struct Dialling {
    pub(super) trust: ServerTrust,
    /// The identity key for this attempt, if the options contain one.
    pub(super) identity: Option<StaticKey>,
    /// The data for the server, sent with the identity.
    pub(super) data: IdentityData,
    pub(super) challenge: [u8; CHALLENGE],
    pub(super) handshake: ClientHandshake,
}

/// The state of a secure connection.
#[cfg(feature = "secure")]
pub(crate) struct Sealed {
    pub(super) datagrams: DatagramProtection,
    pub(super) stage: Stage,
    pub(super) peer: SecurePeer,
}

#[cfg(feature = "secure")]
pub(super) enum Stage {
    /// Client: the connection request has not been sent yet.
    Requesting(Stored<ClientProof>),
    /// Server: the connection request has not been received yet.
    HalfOpen {
        handshake: Stored<ServerHandshake>,
        /// Set while reply 2 is to be sent.
        reply_due: bool,
    },
    Open {
        /// Server: the connect token of the client, if required.
        token: Option<Stored<AcceptedToken>>,
    },
}

/// The proof in a client's connection request.
#[cfg(feature = "secure")]
pub(super) struct ClientProof {
    pub(super) proof: [u8; PROOF],
    pub(super) identity: Option<[u8; IDENTITY]>,
}

#[cfg(feature = "secure")]
impl ClientProof {
    pub(super) fn as_field(&self) -> Proof<'_> {
        Proof { proof: &self.proof, identity: self.identity.as_ref().map(|identity| &identity[..]) }
    }
}

#[cfg(feature = "secure")]
impl fmt::Debug for Dialling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialling").field("trust", &self.trust).finish_non_exhaustive()
    }
}

#[cfg(feature = "secure")]
impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("peer", &self.peer).finish_non_exhaustive()
    }
}

#[cfg(feature = "secure")]
impl Sealed {
    /// Returns the handshake of a half-open connection and its flags.
    ///
    /// The first flag is set while reply 2 is due, the second once a datagram has been opened.
    pub(super) fn half_open(&mut self) -> Option<(&ServerHandshake, &mut bool, bool)> {
        let has_opened = self.datagrams.has_opened();
        match &mut self.stage {
            Stage::HalfOpen { handshake, reply_due } => Some((handshake, reply_due, has_opened)),
            Stage::Requesting(_) | Stage::Open { .. } => None,
        }
    }
}

/// Returns the stored value.
#[cfg(feature = "secure")]
pub(super) fn place<T>(stored: &mut Stored<T>) -> &mut T {
    stored
}

#[cfg(test)]
pub(crate) mod tests {
    use core::net::SocketAddr;
    use std::collections::VecDeque;
    use std::vec::Vec;

    use super::*;
    use crate::raknet::stats::DropReason;
    use crate::raknet::wire::datagram::VALID;
    use crate::raknet::{Capacity, Config, ConnectionId, Delivery, Event, Peer};
    use crate::time::Instant;

    /// Flips every bit but the first, numbers datagrams, and appends the number and a checksum.
    ///
    /// The overhead equals that of an authentication tag (16 bytes) and a truncated counter (3 bytes).
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct TestProtection {
        sent: u32,
        opened: u32,
    }

    const OVERHEAD: usize = 19;

    fn flip(bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        if let Some(first) = bytes.first_mut() {
            *first ^= VALID;
        }
    }

    fn sum(bytes: &[u8]) -> u64 {
        bytes.iter().fold(7, |sum: u64, byte| sum.rotate_left(5) ^ u64::from(*byte))
    }

    impl PacketProtection for TestProtection {
        fn overhead(&self) -> u16 {
            OVERHEAD as u16
        }

        fn seal(&mut self, datagram: &mut [u8], length: usize) -> Option<usize> {
            let whole = datagram.get_mut(..length + OVERHEAD)?;
            let (body, mark) = whole.split_at_mut(length);
            self.sent += 1;
            mark[..3].copy_from_slice(&self.sent.to_le_bytes()[..3]);
            mark[3..11].copy_from_slice(&sum(body).to_le_bytes());
            mark[11..].fill(0);
            flip(whole);
            Some(length + OVERHEAD)
        }

        fn open(&mut self, datagram: &mut [u8]) -> Option<usize> {
            flip(datagram);
            let length = datagram.len().checked_sub(OVERHEAD)?;
            let (body, mark) = datagram.split_at(length);
            let number = u32::from_le_bytes([mark[0], mark[1], mark[2], 0]);
            let is_whole = mark[3..11] == sum(body).to_le_bytes();
            let is_new = number > self.opened;
            if is_whole && is_new {
                self.opened = number;
            }
            (is_whole && is_new).then_some(length)
        }
    }

    const ADDRESSES: [SocketAddr; 2] = [SocketAddr::V4(address(1)), SocketAddr::V4(address(2))];

    const fn address(host: u8) -> core::net::SocketAddrV4 {
        core::net::SocketAddrV4::new(core::net::Ipv4Addr::new(192, 0, 2, host), 7)
    }

    struct Two {
        peers: [Peer<'static>; 2],
        now: Instant,
        /// Every datagram sent: the index of the receiver, and the bytes.
        log: Vec<(usize, Vec<u8>)>,
        arrived: Vec<Vec<u8>>,
    }

    impl Two {
        fn new() -> Self {
            let peers = core::array::from_fn(|index| {
                let mut config = Config::new([index as u8 + 1; 32]);
                config.max_incoming = 1;
                config.protection = Protection::Test;
                Peer::with_capacity(Capacity { connections: 1, blocks: 512, block_size: 512 }, config)
            });
            Self { peers, now: Instant::ZERO, log: Vec::new(), arrived: Vec::new() }
        }

        fn run(&mut self, seconds: u32) {
            for _ in 0..seconds * 100 {
                self.now = self.now.plus_micros(10_000);
                let mut under_way = VecDeque::new();
                for (from, peer) in self.peers.iter_mut().enumerate() {
                    peer.handle_timeout(self.now);
                    let mut buffer = [0; crate::raknet::wire::MAX_DATAGRAM];
                    while let Some(transmit) = peer.poll_transmit(self.now, &mut buffer) {
                        under_way.push_back((1 - from, transmit.payload.to_vec()));
                    }
                }
                for (to, bytes) in under_way {
                    self.peers[to].handle_datagram(self.now, ADDRESSES[1 - to], &bytes);
                    self.log.push((to, bytes));
                }
                while let Some(event) = self.peers[1].poll_event() {
                    if let Event::Message { message, .. } = event {
                        self.arrived.push(message.to_vec());
                    }
                }
                while self.peers[0].poll_event().is_some() {}
            }
        }

        fn connect() -> (Self, ConnectionId) {
            let mut two = Self::new();
            let id = two.peers[0].connect(two.now, ADDRESSES[1]).expect("a slot");
            two.run(1);
            (two, id)
        }
    }

    #[test]
    fn messages_arrive_and_no_plaintext_is_sent_with_packet_protection() {
        let (mut two, id) = Two::connect();
        let messages = [std::vec![0x86; 20], std::vec![0x87; 20_000], std::vec![0x88; 1_400]];
        for message in &messages {
            two.peers[0].send(two.now, id, message, Delivery::RELIABLE_ORDERED).expect("enough space");
        }
        two.run(2);
        assert_eq!(two.arrived, messages);
        let longest = two.log.iter().map(|(_, bytes)| bytes.len()).max();
        assert_eq!(longest, Some(1_464), "request 1 fills the MTU, and nothing is longer");
        let in_clear = two.log.iter().filter(|(_, bytes)| bytes.windows(16).any(|part| part == [0x87; 16]));
        assert_eq!(in_clear.count(), 0, "the bytes on the wire are sealed");
    }

    /// The bits that distinguish data from acknowledgements are sealed; only bit 7 stays visible, for routing.
    #[test]
    fn every_datagram_after_the_offline_handshake_is_sealed() {
        let (mut two, id) = Two::connect();
        two.log.clear();
        two.peers[0].send(two.now, id, &[0x86; 5_000], Delivery::RELIABLE).expect("enough space");
        two.run(6);
        let mut protections = [TestProtection::default(), TestProtection::default()];
        let mut kinds = [[0; 2]; 2];
        for (to, bytes) in &mut two.log {
            assert_ne!(bytes[0] & VALID, 0, "bit 7 stays set for routing");
            // The log does not start with the first datagram; the counter only requires ascending numbers.
            let length = protections[*to].open(bytes).expect("a sealed datagram");
            assert!(length >= 3 && bytes[0] & VALID != 0);
            kinds[*to][usize::from(bytes[0] & 0x40 != 0)] += 1;
        }
        assert!(
            kinds.iter().flatten().all(|count| *count > 0),
            "data and acknowledgements in both directions: {kinds:?}"
        );
    }

    #[test]
    fn forged_replayed_and_plain_datagrams_are_dropped_and_counted() {
        let (mut two, id) = Two::connect();
        two.peers[0].send(two.now, id, b"\x86once", Delivery::RELIABLE).expect("enough space");
        two.run(1);
        let before = two.peers[1].stats().dropped(DropReason::Unauthentic);
        let mut to_server = two.log.iter().filter(|(to, bytes)| *to == 1 && bytes.len() < 100);
        let (_, old) = to_server.next_back().expect("something was sent").clone();
        let mut forged = old.clone();
        forged[4] ^= 1;
        for bytes in [old, forged, b"\x84\0\0\0\x40\0\x08\0\0\0\x86".to_vec()] {
            two.peers[1].handle_datagram(two.now, ADDRESSES[0], &bytes);
        }
        two.run(1);
        assert_eq!(two.peers[1].stats().dropped(DropReason::Unauthentic), before + 3);
        assert_eq!(two.arrived, [b"\x86once"]);
    }

    #[test]
    fn plain_protection_adds_no_bytes_and_test_protection_adds_19() {
        assert_eq!(ConnectionProtection::new(Protection::Plain).overhead(), 0);
        assert_eq!(ConnectionProtection::new(Protection::Test).overhead(), 19);
    }
}
