//! Configuration of a peer apart from its memory, the reasons why connections fail and end, and counters.
//!
//! Counters only grow; at 64 bits they never wrap in practice.

use core::time::Duration;

use crate::endpoint::{Carrier, ClientLimits, DropReasons};

/// The Game Protocol, as a [`Protocol`](crate::endpoint::Protocol).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GameProtocol;

/// The time after which an unacknowledged reliable chunk is resent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendInterval {
    /// A fixed time; the original implementation uses 100 ms.
    Fixed(Duration),
    /// The measured retransmission timeout within these bounds, backed off while no acknowledgement arrives.
    Measured {
        /// The shortest time.
        min: Duration,
        /// The longest time, which also applies until the first measurement.
        max: Duration,
    },
}

impl ResendInterval {
    /// Follows the measured round-trip time, between 10 ms and one second.
    pub const MEASURED: Self = Self::Measured { min: Duration::from_millis(10), max: Duration::from_secs(1) };
}

impl Default for ResendInterval {
    /// Returns the fixed interval of 100 ms (docs/game-protocol.md#resends).
    fn default() -> Self {
        Self::Fixed(Duration::from_millis(100))
    }
}

/// The behaviour of a client while the server does not answer.
///
/// The original server takes a second first message for the answer to its challenge, drops the client silently and
/// ignores what it sends next (docs/game-protocol.md#original-handshake). With such a server a client may retry
/// only from another port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redial {
    /// Sends the first message only once. Right for every server.
    ///
    /// When `handshake_timeout` is over, [`Event::ConnectFailed`](super::Event::ConnectFailed) is emitted, and the
    /// application or its driver may connect again from another port. The answer to the challenge is repeated if
    /// that is harmless (docs/game-protocol.md#repeated-seasoning), as it is with servers of this crate.
    #[default]
    FreshPort,
    /// Repeats both messages of the client after this time from the same port. Right for stateless servers, such as
    /// those of this crate.
    SamePort(Duration),
}

/// The configuration of a peer. [`Config::new`] sets the values of the original; change the fields that should
/// differ.
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
    /// The key of peppers and hash tables; must be random and stay secret. `Debug` does not show it.
    pub secret: [u8; 16],
    /// The key from which salts are derived; must be random and stay secret. `Debug` does not show it.
    pub salt_key: [u8; 16],
    /// The number of incoming connections, within the available slots.
    ///
    /// Default: 0, a pure client, so that a peer becomes a server only on purpose. Without the feature `server` no
    /// incoming connection is accepted.
    pub max_incoming: u16,
    /// The number of incoming connections from one address (64 bits of IPv6).
    ///
    /// Default: three quarters of [`max_incoming`](Self::max_incoming), so that a school or a carrier-grade NAT may
    /// fill most of a server, but not all of it. Below 16 slots there is no limit, since one household may fill
    /// them. Addresses that are not routed on the Internet (loopback, private, link-local and unique local) are not
    /// limited, so that a relay or a gateway of containers may use every slot.
    pub max_per_address: Option<u16>,
    /// The same for one network (24 bits of IPv4, 48 of IPv6). Default: seven eighths of
    /// [`max_incoming`](Self::max_incoming).
    pub max_per_network: Option<u16>,
    /// The maximum number of blocks that one connection may hold for sending, and as many for receiving; at most half
    /// of all blocks.
    ///
    /// Default: none. Every connection has a share in any case: half of the blocks are guaranteed to the
    /// connections, and borrowing from the other half is bounded ([`Resources`](super::Resources)). A server whose
    /// clients need little memory may set this to what they need, so that a few clients cannot take much.
    pub connection_blocks: Option<u32>,
    /// The time after which an unacknowledged reliable chunk is resent. Default: 100 ms, as in the original
    /// (docs/game-protocol.md#resends).
    pub resend_interval: ResendInterval,
    /// The carrier of the datagrams. Default: datagrams.
    ///
    /// Over a stream, a reliable chunk that the stream may still deliver is resent after one second, and then every
    /// two seconds (docs/game-protocol.md#resends-over-a-stream). [`Peer::set_carrier`](super::Peer::set_carrier)
    /// changes the carrier.
    pub carrier: Carrier,
    /// The behaviour of a client while the server does not answer. Default: [`Redial::FreshPort`], which servers of
    /// the original need (docs/game-protocol.md#original-handshake).
    pub redial: Redial,
    /// The total time that a client waits for a challenge. Default: 15 s, the time that a server of the original
    /// waits for the answer (docs/game-protocol.md#original-handshake).
    pub handshake_timeout: Duration,
    /// The time without received packets after which the connection is lost. Default: 15 s, as in the original
    /// (docs/game-protocol.md#handshake).
    pub timeout: Duration,
    /// The time that `disconnect` waits for acknowledgements of reliable messages.
    ///
    /// Default: 1 s, which is ten transmissions at the default resend interval; the original does not wait.
    pub close_timeout: Duration,
    /// The time during which an ended connection still answers packets with END, in case the first END was lost.
    ///
    /// Default: 2 s, in which the peer resends twenty times at 100 ms; the original sends END once.
    pub linger: Duration,
    /// The time after which an unreliable message is dropped if it is still unsent, or received with chunks
    /// missing.
    ///
    /// Default: 1 s, after which the game state that it describes is long outdated.
    pub unreliable_timeout: Duration,
    /// The number of challenges per second for all unconnected peers together; 0 answers none.
    ///
    /// Default: 10,000, which is 40 KB of payload per second, regardless of how many addresses are forged.
    pub challenges_per_second: u16,
    /// The number of challenges per second for one network (24 bits of IPv4, 64 of IPv6).
    ///
    /// Default: 200, a fiftieth of the total, so that one network cannot take all challenges. It also stops two
    /// servers that are tricked into answering each other's challenges.
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
    /// The bytes must come from an unpredictable source: the operating system, `crypto.getRandomValues` or a
    /// hardware generator.
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
    /// The reason why a connection could not be opened.
    #[non_exhaustive]
    pub enum ConnectFailure {
        /// No challenge arrived.
        NoAnswer => "the server does not answer",
        /// The operating system or a router reported the address as unreachable.
        ///
        /// The port is closed, or no route leads to the host. Only drivers that call
        /// [`handle_unreachable`](crate::endpoint::Peer::handle_unreachable) report this; otherwise the reason is
        /// [`NoAnswer`](Self::NoAnswer).
        Unreachable => "nothing listens at this address, or no route leads there",
        /// The application cancelled the attempt.
        Cancelled => "the attempt was cancelled",
    }
}

error_enum! {
    /// The reason why a connection ended.
    #[non_exhaustive]
    pub enum DisconnectReason {
        /// The application disconnected.
        Local => "this application ended the connection",
        /// The peer sent END. For a client that received nothing before, this means that it was refused.
        Remote => "the peer ended the connection",
        /// No packet arrived from the peer within the timeout.
        Lost => "the connection timed out: the peer stopped answering",
        /// A reliable message of the peer exceeds the memory that one connection may use.
        MessageTooLarge => "the peer sent a message that exceeds the memory of a connection",
        /// The peer began a reliable message and did not finish it.
        MessageUnfinished => "the peer did not finish a message in time",
    }
}

drop_reasons! {
    /// The reason why something received, or something that waited too long to be sent, was dropped.
    ///
    /// Input from the network never makes a call fail; it is counted here instead.
    pub enum DropReason {
        /// A datagram of three bytes or fewer.
        TooShort,
        /// A packet from an address without a connection.
        UnknownSource,
        /// An unexpected or repeated message of the handshake.
        Unexpected,
        /// A salt beyond the limit of challenges.
        ChallengeLimit,
        /// An answer that was displaced from its queue by a later one.
        AnswersFull,
        /// A right answer to a challenge while every slot is taken.
        Full,
        /// A right answer to a challenge from an address or network that has reached its connection limit.
        AddressLimit,
        /// An invalid chunk.
        ///
        /// It is an inner one that is not 504 bytes long, a last one that is longer, chunk 255 that is not the
        /// last, or one that contradicts the others of its payload.
        BadChunk,
        /// A chunk that arrived before, or that belongs to a delivered payload.
        Duplicate,
        /// A chunk 1,024 sequences or more behind the newest.
        OutsideWindow,
        /// A payload that lacked chunks when the window moved past it.
        Incomplete,
        /// An unreliable payload that lacked chunks for too long, or an outgoing one that waited too long to be
        /// sent.
        Expired,
        /// A chunk without memory to store it. It is not acknowledged, so a reliable chunk is resent by the peer.
        NoMemory,
        /// A chunk dropped because the queue had no room for its acknowledgement. The peer resends it.
        AcknowledgementsFull,
        /// An acknowledgement of a chunk that is not in flight.
        UnknownAcknowledgement,
        /// A packet of a connection that has ended.
        Ended,
    }
}

/// Counters and measurements of one connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Application messages accepted by `send`.
    pub messages_sent: u64,
    /// Messages delivered to the application.
    pub messages_received: u64,
    /// Chunks sent for the first time.
    pub chunks_sent: u64,
    /// Chunks resent. Some may only have been late: [`chunks_missing`](Self::chunks_missing) excludes those.
    pub chunks_resent: u64,
    /// Chunks resent needlessly: an additional acknowledgement shows that an earlier transmission had arrived too.
    pub chunks_late: u64,
    /// Chunks received and accepted.
    pub chunks_received: u64,
    /// Chunks acknowledged by the peer.
    pub chunks_acknowledged: u64,
    /// Chunks sent and not acknowledged yet.
    pub in_flight: u32,
    /// Chunks that wait for their first transmission.
    pub waiting: u32,
    /// Partially received payloads.
    pub partial: u32,
    /// The smoothed round-trip time, zero before the first sample.
    pub round_trip: Duration,
}

impl ConnectionStats {
    /// Returns the number of resent chunks without evidence that an earlier transmission arrived.
    ///
    /// They were lost on the path or are still delayed. Unlike the counters, this number falls when a chunk arrives
    /// late.
    #[must_use]
    pub const fn chunks_missing(&self) -> u64 {
        self.chunks_resent.saturating_sub(self.chunks_late)
    }
}
