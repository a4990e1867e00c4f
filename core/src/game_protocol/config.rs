//! What applications choose and are told, beside messages: how a peer behaves, everything but its memory; why connections do
//! not open, and why they end; and counters, which only grow, and at 64 bits never wrap in practice.

use core::time::Duration;

use crate::endpoint::{Carrier, ClientLimits, DropReasons};

/// The Game Protocol, as a [`Protocol`](crate::endpoint::Protocol).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GameProtocol;

/// When a reliable chunk that was not acknowledged is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendInterval {
    /// After a fixed time, as the original does with 100 ms.
    Fixed(Duration),
    /// After the round-trip time as it is measured, within these bounds; longer while nothing comes back.
    Measured {
        /// The shortest time.
        min: Duration,
        /// The longest time, which also holds until the first measurement.
        max: Duration,
    },
}

impl ResendInterval {
    /// After the measured round-trip time, 10 ms to a second.
    pub const MEASURED: Self = Self::Measured { min: Duration::from_millis(10), max: Duration::from_secs(1) };
}

impl Default for ResendInterval {
    /// Every 100 ms (docs/game-protocol.md#resends).
    fn default() -> Self {
        Self::Fixed(Duration::from_millis(100))
    }
}

/// What a client does when the server does not answer.
///
/// The original takes a second first message for the answer to its challenge, drops the client without a word and
/// swallows what it sends next (docs/game-protocol.md#original-handshake). Only from another port may a client try
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redial {
    /// The first message is not repeated. [`Event::ConnectFailed`](super::Event::ConnectFailed) tells when
    /// `handshake_timeout` is over, and the application or its driver may connect again from another port. The answer to
    /// the challenge is repeated if it does no harm (docs/game-protocol.md#repeated-seasoning), as towards the servers of this
    /// crate. Right for every server.
    #[default]
    FreshPort,
    /// Both messages of the client are repeated after this time from the same port. Right for servers that keep no
    /// state, as those of this crate.
    SamePort(Duration),
}

/// How a peer behaves. [`Config::new`] fills in what the original does; change the fields that should differ.
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
    /// Where salts come from; must be random and stay secret. `Debug` does not show it.
    pub salt_key: [u8; 16],
    /// How many connections others may open, within the slots that there are. Default: 0, a pure client, so that a
    /// peer is a server only by intent. Without the feature `server` none may.
    pub max_incoming: u16,
    /// How many connections one address (64 bits of IPv6) may have open, of those that others open. Default: three quarters
    /// of [`max_incoming`](Self::max_incoming), so that a school or a carrier's NAT may fill most of a server, but not
    /// all of it; no limit below 16 places, which one household may fill. Addresses that the Internet does not pass on (loopback, private, link-local and unique local ones) are
    /// not limited, so that a relay or a gateway of containers brings as many clients as there are places.
    pub max_per_address: Option<u16>,
    /// The same for one network (24 bits of IPv4, 48 of IPv6). Default: seven eighths of
    /// [`max_incoming`](Self::max_incoming).
    pub max_per_network: Option<u16>,
    /// The most blocks that one connection may hold for what it sends, and as many for what it receives; never more
    /// than half of all. Default: none, since a connection is sure of its part in any case: half of the blocks are
    /// guaranteed to the connections, and what one borrows of the others is bounded ([`Resources`](super::Resources)). A
    /// server whose clients need little sets this to what they need, so that a few of them leave more than that to all.
    pub connection_blocks: Option<u32>,
    /// When a reliable chunk that was not acknowledged is sent again. Default: every 100 ms, as the original does
    /// (`docs/game-protocol.md#resends`).
    pub resend_interval: ResendInterval,
    /// What carries the datagrams. Default: datagrams. Over a stream a reliable chunk that it may still bring is sent again
    /// after a second, and then every two (`docs/game-protocol.md#resends-over-a-stream`).
    /// [`Peer::set_carrier`](super::Peer::set_carrier) changes it.
    pub carrier: Carrier,
    /// What a client does when the server does not answer. Default: [`Redial::FreshPort`], which servers of the
    /// original need (`docs/game-protocol.md#original-handshake`).
    pub redial: Redial,
    /// How long a client waits for a challenge in all. Default: 15 s, as long as a server of the original waits for the
    /// answer (`docs/game-protocol.md#original-handshake`).
    pub handshake_timeout: Duration,
    /// How long a peer may stay silent. Default: 15 s, as in the original (`docs/game-protocol.md#handshake`).
    pub timeout: Duration,
    /// How long `disconnect` waits for what was sent reliably to be acknowledged. Default: 1 s, which is ten
    /// transmissions at the default interval of resends; the original does not wait at all.
    pub close_timeout: Duration,
    /// How long an ended connection still answers packets with END, in case the first one was lost. Default: 2 s, in
    /// which the other peer sends what it resends every 100 ms twenty times; the original sends END once.
    pub linger: Duration,
    /// How long an unreliable message may wait to be sent, and how long one that arrives may lack a chunk, before it
    /// is dropped. Default: 1 s, after which the state of a game that it describes is long outdated.
    pub unreliable_timeout: Duration,
    /// How many challenges a second all peers without a connection get together; 0 answers none. Default: 10,000,
    /// which is 40 KB of payload a second, however many addresses are forged.
    pub challenges_per_second: u16,
    /// How many challenges a second one network (24 bits of IPv4, 64 of IPv6) gets. Default: 200, a fiftieth of all,
    /// so that one network cannot have all challenges. Two servers that are made to answer each other's challenges stop
    /// here.
    pub challenges_per_network: u16,
}

debug_without_secrets! {
    Config as "Config";
    shown: max_incoming, max_per_address, max_per_network, connection_blocks, resend_interval, carrier, redial, handshake_timeout, timeout,
        close_timeout, linger, unreliable_timeout, challenges_per_second, challenges_per_network;
    hidden: secret, salt_key;
}

impl Config {
    /// A configuration from 32 random bytes, which become the keys of peppers and salts.
    ///
    /// The bytes must come from a source that nobody can guess: the operating system, `crypto.getRandomValues`, a
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

    /// How many connections may come from one address and from one network.
    pub(super) const fn client_limits(&self) -> ClientLimits {
        ClientLimits::new(self.max_incoming, self.max_per_address, self.max_per_network)
    }
}

error_enum! {
    /// Why a connection could not be opened.
    #[non_exhaustive]
    pub enum ConnectFailure {
        /// No challenge came.
        NoAnswer => "the server does not answer",
        /// The system or a router reports that nothing can be reached at the address: nothing listens at the port, or no route
        /// leads to the host. Only drivers that call
        /// [`handle_unreachable`](crate::endpoint::Peer::handle_unreachable) notice that; elsewhere it is [`NoAnswer`](Self::NoAnswer).
        Unreachable => "nothing listens at this address, or no route leads there",
        /// The application gave up.
        Cancelled => "the attempt was cancelled",
    }
}

error_enum! {
    /// Why a connection ended.
    #[non_exhaustive]
    pub enum DisconnectReason {
        /// This application asked for it.
        Local => "this side disconnected",
        /// The other peer sent END. A client that is told so before anything else came was not let in.
        Remote => "the other peer disconnected",
        /// The other peer fell silent.
        Lost => "the other peer fell silent",
        /// A reliable message of the other peer can never fit into the memory that one connection may take.
        MessageTooLarge => "a message of the other peer is larger than a connection may hold",
        /// The other peer began a reliable message and never finished it.
        MessageUnfinished => "the other peer began a message and never finished it",
    }
}

drop_reasons! {
    /// Why something that arrived, or waited too long to leave, was dropped. Nothing from the network is ever an error
    /// of a call: it is counted here.
    pub enum DropReason {
        /// Three bytes or fewer.
        TooShort,
        /// A packet from an address that has no connection.
        UnknownSource,
        /// A message of the handshake that nobody waits for, or that comes again.
        Unexpected,
        /// A salt beyond the limit of challenges.
        ChallengeLimit,
        /// An answer that a later one pushed out of its queue.
        AnswersFull,
        /// A right answer to a challenge while every place is taken.
        Full,
        /// A right answer to a challenge from an address or network that has as many connections as it may have.
        AddressLimit,
        /// A chunk that breaks the rules: an inner one that is not 504 bytes long, a last one that is longer, chunk 255
        /// that is not the last, or one that contradicts the others of its payload.
        BadChunk,
        /// A chunk that arrived before, or of a payload that was delivered before.
        Duplicate,
        /// A chunk 1,024 sequences or more behind the newest.
        OutsideWindow,
        /// A payload that lacked chunks when the window passed it.
        Incomplete,
        /// An unreliable payload that lacked chunks for too long, or one of our own that waited too long to be sent.
        Expired,
        /// A chunk for which there is no memory: it is not acknowledged, and a peer that sent it reliably resends it.
        NoMemory,
        /// A chunk whose acknowledgement would find no room. The peer resends it.
        AcknowledgementsFull,
        /// An acknowledgement of nothing that is under way.
        UnknownAcknowledgement,
        /// A packet of a connection that is over.
        Ended,
    }
}

/// Counters and measurements of one connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages of the application accepted by `send`.
    pub messages_sent: u64,
    /// Messages given to the application.
    pub messages_received: u64,
    /// Chunks sent for the first time.
    pub chunks_sent: u64,
    /// Chunks sent again. Some may only have been late: [`chunks_missing`](Self::chunks_missing) is without them.
    pub chunks_resent: u64,
    /// Chunks sent again for nothing: they were acknowledged once more than needed, so that an earlier one had arrived, too.
    pub chunks_late: u64,
    /// Chunks that arrived and were of use.
    pub chunks_received: u64,
    /// Chunks that were acknowledged.
    pub chunks_acknowledged: u64,
    /// Chunks sent and not acknowledged yet.
    pub in_flight: u32,
    /// Chunks that wait to be sent for the first time.
    pub waiting: u32,
    /// Payloads that arrived in part.
    pub partial: u32,
    /// Smoothed round-trip time, zero before the first sample.
    pub round_trip: Duration,
}

impl ConnectionStats {
    /// Chunks sent again that nothing shows to have arrived before: what the path has lost, and what it still delays. Unlike the
    /// counters it falls when a chunk arrives late.
    #[must_use]
    pub const fn chunks_missing(&self) -> u64 {
        self.chunks_resent.saturating_sub(self.chunks_late)
    }
}
