//! The configuration of a peer of the Game Protocol, except for its memory; failure, disconnect and drop reasons; and
//! counters.
//!
//! Counters never decrease, and with 64 bits they do not wrap in practice.

use core::time::Duration;

use crate::endpoint::{Carrier, ClientLimits, DropReasons};

/// The Game Protocol as a [`Protocol`](crate::endpoint::Protocol) of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GameProtocol;

/// The time after which an unacknowledged reliable chunk is retransmitted.
///
/// On a long path it is the measured retransmission timeout, up to a quarter of [`Config::timeout`] and at most four
/// seconds, so that a connection retransmits several times before it is lost. If that timeout is shorter than four
/// seconds, the bound is one second or a third of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendInterval {
    /// After this time or, on longer paths, after the measured retransmission timeout.
    ///
    /// Timeouts without an acknowledgement do not lengthen the interval.
    AtLeast(Duration),
    /// After the measured retransmission timeout within these bounds, with exponential backoff up to one second while
    /// no acknowledgement arrives.
    Measured {
        /// The minimum timeout.
        min: Duration,
        /// The maximum timeout, which also applies before the first RTT sample, but then only up to one second.
        max: Duration,
    },
}

impl ResendInterval {
    /// The measured retransmission timeout, between 10 ms and four seconds.
    pub const MEASURED: Self = Self::Measured { min: Duration::from_millis(10), max: Duration::from_secs(4) };
}

impl Default for ResendInterval {
    /// Returns an interval of at least 100 ms (docs/game-protocol.md#resends).
    fn default() -> Self {
        Self::AtLeast(Duration::from_millis(100))
    }
}

/// The behaviour of a client while the server does not respond.
///
/// The original server mistakes a repeated first message for the answer to its challenge. It drops the client without
/// notice and ignores its next packets (docs/game-protocol.md#original-handshake). A client of the original server must
/// therefore retry from a new port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redial {
    /// Sends the first message only once. It works with every server.
    ///
    /// After `handshake_timeout`, [`Event::ConnectFailed`](super::Event::ConnectFailed) is emitted, and the application
    /// or its driver may retry from a new port. The answer to the challenge is retransmitted only to servers for which
    /// that is harmless, such as servers of this crate (docs/game-protocol.md#repeated-seasoning).
    #[default]
    FreshPort,
    /// Retransmits both messages from the client from the same port at this interval.
    ///
    /// It works only with stateless servers, such as servers of this crate.
    SamePort(Duration),
}

/// The configuration of a peer of the Game Protocol.
///
/// [`Config::new`] returns the values of the original implementation; change individual fields as needed.
///
/// ```
/// use core::time::Duration;
/// use rakwire::game_protocol::{Config, Redial, ResendInterval};
///
/// let mut config = Config::new([7; 32]); // 32 random bytes in a real program
/// assert_eq!((config.max_incoming, config.redial), (0, Redial::FreshPort));
/// assert_eq!((config.handshake_timeout, config.timeout), (Duration::from_secs(15), Duration::from_secs(15)));
/// config.max_incoming = 64;
/// config.resend_interval = ResendInterval::MEASURED;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// The key of peppers and hash tables: 128 random, secret bits. `Debug` omits it.
    pub secret: [u8; 16],
    /// The key from which salts are derived: 128 random, secret bits. `Debug` omits it.
    pub salt_key: [u8; 16],
    /// The maximum number of incoming connections, limited by the number of slots.
    ///
    /// Default: 0, a pure client. Without the feature `server` no incoming connection is accepted.
    pub max_incoming: u16,
    /// The maximum number of incoming connections from one address (a whole IPv4 address, or a /64 of IPv6).
    ///
    /// Default: three quarters of [`max_incoming`](Self::max_incoming), so that a school or a carrier-grade NAT
    /// cannot fill the server; no limit below 16 slots, which one household may fill. Addresses that are not routed
    /// on the Internet (loopback, private, link-local and unique local) are never limited, because clients behind a
    /// relay or a container gateway share one.
    pub max_per_address: Option<u16>,
    /// The maximum number of incoming connections from one network (a /24 of IPv4, a /48 of IPv6).
    ///
    /// Default: seven eighths of [`max_incoming`](Self::max_incoming); no limit below 16 slots.
    pub max_per_network: Option<u16>,
    /// The maximum number of blocks that one connection may hold in each direction, at most half of all.
    ///
    /// Default: none. Half of the blocks are guaranteed to the connections in equal parts, and borrowing from the other
    /// half is bounded ([`Resources`](super::Resources)). If your clients need little memory, set a limit: a few
    /// clients with large queues then leave more memory to the others.
    pub connection_blocks: Option<u32>,
    /// The time after which an unacknowledged reliable chunk is retransmitted.
    ///
    /// Default: after 100 ms, as in the original implementation, or after the measured retransmission timeout if it is
    /// longer (docs/game-protocol.md#resends).
    pub resend_interval: ResendInterval,
    /// The transport that carries the datagrams. Default: UDP.
    ///
    /// Over a stream, a reliable chunk that the stream may still deliver is retransmitted after one second, and then
    /// every two seconds (docs/game-protocol.md#resends-over-a-stream).
    /// [`Peer::set_carrier`](super::Peer::set_carrier) changes the carrier later.
    pub carrier: Carrier,
    /// The behaviour of a client while the server does not respond.
    ///
    /// Default: [`Redial::FreshPort`], which the original server requires (docs/game-protocol.md#original-handshake).
    pub redial: Redial,
    /// The time that a client waits for a challenge.
    ///
    /// Default: 15 s, which is also how long the original server waits for the answer
    /// (docs/game-protocol.md#original-handshake).
    pub handshake_timeout: Duration,
    /// The time without received packets after which the connection is lost.
    ///
    /// Default: 15 s, as in the original implementation (docs/game-protocol.md#handshake).
    pub timeout: Duration,
    /// The maximum time that `disconnect` waits for acknowledgements of reliable messages.
    ///
    /// Default: 1 s, ten transmissions at a resend interval of 100 ms. The original implementation does not wait.
    pub close_timeout: Duration,
    /// The time for which a closed connection still answers packets with END, in case the first END was lost.
    ///
    /// Default: 2 s, in which the remote peer retransmits a chunk twenty times at an interval of 100 ms. The
    /// original implementation sends END once.
    pub linger: Duration,
    /// The maximum time that an unreliable message may wait in the send queue, or wait for missing chunks at the
    /// receiver, before it is dropped.
    ///
    /// Default: 1 s. A game state that is older is outdated.
    pub unreliable_timeout: Duration,
    /// The maximum number of challenges per second in total; 0 answers no unconnected peer.
    ///
    /// Default: 10,000, which is 40 KB of payload per second, even if the addresses are forged.
    pub challenges_per_second: u16,
    /// The maximum number of challenges per second to one network (a /24 of IPv4, a /64 of IPv6).
    ///
    /// Default: 200, one fiftieth of the total. The limit also stops a loop: by forged datagrams, two servers can be
    /// made to answer each other's challenges.
    pub challenges_per_network: u16,
}

debug_without_secrets! {
    Config as "Config";
    shown: max_incoming, max_per_address, max_per_network, connection_blocks, resend_interval, carrier, redial, handshake_timeout, timeout,
        close_timeout, linger, unreliable_timeout, challenges_per_second, challenges_per_network;
    hidden: secret, salt_key;
}

impl Config {
    /// Creates a configuration from 32 random bytes, which become the keys of peppers and salts.
    ///
    /// The bytes must be unpredictable: take them from the operating system, `crypto.getRandomValues` or a hardware
    /// generator.
    #[must_use]
    pub fn new(entropy: [u8; 32]) -> Self {
        let (mut secret, mut salt_key) = ([0; 16], [0; 16]);
        let (for_secret, for_salts) = entropy.split_at(16);
        secret.copy_from_slice(for_secret);
        salt_key.copy_from_slice(for_salts);
        Self {
            secret,
            salt_key,
            max_incoming: 0,
            max_per_address: None,
            max_per_network: None,
            connection_blocks: None,
            resend_interval: ResendInterval::default(),
            carrier: Carrier::Datagrams,
            redial: Redial::FreshPort,
            handshake_timeout: Duration::from_secs(15),
            timeout: Duration::from_secs(15),
            close_timeout: Duration::from_secs(1),
            linger: Duration::from_secs(2),
            unreliable_timeout: Duration::from_secs(1),
            challenges_per_second: 10_000,
            challenges_per_network: 200,
        }
    }

    /// Returns the limits of incoming connections from one address and from one network.
    pub(super) const fn client_limits(&self) -> ClientLimits {
        ClientLimits::new(self.max_incoming, self.max_per_address, self.max_per_network)
    }
}

error_enum! {
    /// The reason why an attempt to connect failed.
    #[non_exhaustive]
    pub enum ConnectFailure {
        /// The server sent no challenge within `handshake_timeout`.
        NoAnswer => "the server does not answer",
        /// The operating system or a router signalled the address as unreachable.
        ///
        /// The cause is usually a closed port or a missing route. Only drivers that call
        /// [`handle_unreachable`](crate::endpoint::Peer::handle_unreachable) report it; with others the failure is
        /// [`NoAnswer`](Self::NoAnswer).
        Unreachable => "nothing is listening on this address, or no route leads there",
        /// The application cancelled the attempt with `disconnect`.
        Cancelled => "the attempt was cancelled",
    }
}

error_enum! {
    /// The reason why a connection closed.
    #[non_exhaustive]
    pub enum DisconnectReason {
        /// The application closed the connection with `disconnect`.
        Local => "this application ended the connection",
        /// The remote peer sent END. For a client that has received no data, this means that the server refused it.
        Remote => "the peer ended the connection",
        /// The remote peer sent no packet within `timeout`.
        Lost => "the connection timed out: the peer stopped answering",
        /// A reliable message from the remote peer exceeds the memory that one connection may use.
        MessageTooLarge => "the peer sent a message that exceeds the memory of a connection",
        /// The remote peer started a reliable message, and sent none of its missing chunks within `timeout`.
        MessageUnfinished => "the peer did not finish a message in time",
    }
}

drop_reasons! {
    /// The reason why received data, or an expired outgoing message, was dropped.
    ///
    /// Invalid data from the network never makes a call fail; it is counted here.
    pub enum DropReason {
        /// A datagram of three bytes or fewer.
        TooShort,
        /// A packet from an address without a connection.
        UnknownSource,
        /// An unexpected or repeated handshake message.
        Unexpected,
        /// A salt beyond the rate limit of challenges.
        ChallengeLimit,
        /// A queued response that a later one replaced.
        AnswersFull,
        /// A correct answer to a challenge while every slot is in use.
        Full,
        /// A correct answer to a challenge from an address or network with too many connections.
        AddressLimit,
        /// A malformed chunk.
        ///
        /// It is one of these:
        ///
        /// - an inner chunk with a length other than 504 bytes, or a longer last chunk,
        /// - chunk 255 that is not the last,
        /// - a chunk that contradicts other chunks of its payload.
        BadChunk,
        /// A chunk that was received before, or that belongs to a delivered payload.
        Duplicate,
        /// A chunk at least 1,024 sequences older than the newest.
        OutsideWindow,
        /// A payload that the receive window has passed before all its chunks were received.
        Incomplete,
        /// An unreliable payload with chunks missing for too long, or an outgoing one that was queued too long.
        Expired,
        /// A chunk for which no memory is free. It is not acknowledged, so the remote peer retransmits it if it is
        /// reliable.
        NoMemory,
        /// A chunk dropped because the queue of acknowledgements is full. The remote peer retransmits it.
        AcknowledgementsFull,
        /// An acknowledgement of a chunk that is not in flight.
        UnknownAcknowledgement,
        /// A packet of a connection that has closed.
        Ended,
    }
}

/// Counters and measurements of one connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages that `send` accepted.
    pub messages_sent: u64,
    /// Messages delivered to the application.
    pub messages_received: u64,
    /// Chunks sent for the first time.
    pub chunks_sent: u64,
    /// Retransmissions of chunks. Some chunks may only have been delayed: [`chunks_missing`](Self::chunks_missing)
    /// excludes those known to be received.
    pub chunks_resent: u64,
    /// Chunks retransmitted needlessly: a second acknowledgement shows that an earlier transmission was received.
    pub chunks_late: u64,
    /// Chunks received and accepted.
    pub chunks_received: u64,
    /// Chunks acknowledged by the remote peer.
    pub chunks_acknowledged: u64,
    /// Chunks sent and not acknowledged yet.
    pub in_flight: u32,
    /// Chunks queued for their first transmission.
    pub waiting: u32,
    /// Payloads received in part, with missing chunks.
    pub partial: u32,
    /// The smoothed round-trip time; zero before the first sample.
    pub round_trip: Duration,
}

impl ConnectionStats {
    /// Returns the number of retransmissions without evidence that an earlier transmission of the chunk was received.
    ///
    /// The path dropped these transmissions, or has not delivered them yet. Unlike a counter, the number decreases when
    /// a late acknowledgement arrives.
    #[must_use]
    pub const fn chunks_missing(&self) -> u64 {
        self.chunks_resent.saturating_sub(self.chunks_late)
    }
}
