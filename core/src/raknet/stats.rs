//! Counters. They only grow, and at 64 bits never wrap in practice.

use core::time::Duration;

use crate::endpoint::DropReasons;

drop_reasons! {
    /// Why something that arrived was dropped. Nothing from the network is ever an error of a call: it is counted here.
    pub enum DropReason {
        /// Two bytes or fewer.
        TooShort,
        /// An offline message whose bytes make no sense.
        BadOffline,
        /// A datagram, acknowledgement or capsule whose bytes make no sense, from there to its end.
        BadDatagram,
        /// A datagram of a connection from an address that has none.
        UnknownSource,
        /// An offline message that nobody here asked for.
        Unexpected,
        /// Request 2 with a wrong or old cookie.
        BadCookie,
        /// Request 2 without the cookie that was asked for: of a client that does not know cookies, which never gets in while
        /// they are asked ([`CookiePolicy`](super::CookiePolicy)), or forged.
        MissingCookie,
        /// Request 2 of a client that was asked for no cookie, and that is asked for one after all: others have taken the places
        /// without one meanwhile, or connections that may be forged are in its way.
        CookieRequested,
        /// A request too short to be worth its answer.
        WouldAmplify,
        /// An answer that a later one pushed out of its queue.
        AnswersFull,
        /// A datagram that arrived before.
        DuplicateDatagram,
        /// A reliable message in a datagram with the number of an earlier one, as some peers send it, for which there is no
        /// memory: the number is acknowledged, so the peer does not resend it.
        LostInDuplicate,
        /// A datagram too far ahead of or behind the others.
        OutsideWindow,
        /// A reliable message that arrived before.
        DuplicateMessage,
        /// A sequenced message older than one delivered.
        OutOfSequence,
        /// A datagram for which there is no memory: it is not acknowledged, and the peer resends.
        NoMemory,
        /// A part that contradicts the other parts of its message.
        BadSplit,
        /// A message of RakNet itself that makes no sense in this state.
        BadControl,
        /// A message of a connection with an id that belongs to RakNet itself and means nothing inside a connection.
        ReservedId,
        /// An unreliable message of our own that waited too long.
        Expired,
        /// An acknowledgement of more than one datagram can be asked to work through.
        TooManyRecords,
        /// A ping beyond the limit of pongs.
        PongLimit,
        /// A message from a banned address.
        Banned,
        /// A connection that was half open and had to make room, or that its network had no room for.
        HalfOpenLimit,
        /// A client whose address or network has as many connections as it may have.
        AddressLimit,
        /// A part of a secure handshake or a sealed datagram that was forged, damaged or there before.
        Unauthentic,
        /// A secure handshake beyond what its network or all together may have computed.
        HandshakeLimit,
        /// A connection request with another password than the server's.
        WrongPassword,
        /// A connection request whose identity is missing or not right.
        InvalidIdentity,
        /// A connection request without a connect token that counts now, here and for this client.
        RefusedToken,
    }
}

/// Bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Amount {
    /// Since the connection began.
    pub total: u64,
    /// In the last whole second.
    pub last_second: u32,
}

/// Messages that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Waiting {
    /// How many capsules; a split message has several.
    pub messages: u32,
    /// Bytes of them, without headers.
    pub bytes: u32,
}

/// Counters and measurements of one connection (docs/raknet.md#statistics). Without the feature `statistics` the counters and
/// the pings are 0.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages of the application accepted by `send`.
    pub messages_sent: u64,
    /// Messages of the application delivered.
    pub messages_received: u64,
    /// Datagrams of capsules sent, acknowledgements not counted.
    pub datagrams_sent: u64,
    /// Datagrams of capsules that arrived, duplicates not counted.
    pub datagrams_received: u64,
    /// Datagrams taken for lost whose messages were queued again. Some may only have been late:
    /// [`datagrams_missing`](Self::datagrams_missing) is without them.
    pub datagrams_lost: u64,
    /// Datagrams of those that arrived after all, as far as that is known: it is of those whose messages wait to be sent again,
    /// and of the last sixteen of the others.
    pub datagrams_late: u64,
    /// Datagrams that were acknowledged.
    pub datagrams_acknowledged: u64,
    /// Bytes of messages accepted by `send`.
    pub bytes_pushed: Amount,
    /// Bytes of messages sent for the first time.
    pub bytes_sent: Amount,
    /// Bytes of messages sent again.
    pub bytes_resent: Amount,
    /// Bytes of messages delivered.
    pub bytes_processed: Amount,
    /// Bytes of messages that arrived and were of no use: duplicates, outdated.
    pub bytes_ignored: Amount,
    /// Bytes of datagrams sent, without IP and UDP headers.
    pub actual_bytes_sent: Amount,
    /// Bytes of datagrams that arrived, without IP and UDP headers.
    pub actual_bytes_received: Amount,
    /// New messages that wait, by priority from immediate to low.
    pub waiting: [Waiting; 4],
    /// Lost messages that wait to be sent again.
    pub waiting_resends: Waiting,
    /// Smoothed round-trip time, zero before the first sample. It contains the other peer's wait before acknowledging.
    pub round_trip: Duration,
    /// The round-trip time of the last connected ping, zero before the first pong.
    pub last_ping: Duration,
    /// The mean of the last five, zero before the first pong.
    pub average_ping: Duration,
    /// The lowest ever, zero before the first pong.
    pub lowest_ping: Duration,
    /// The other peer's clock minus ours in milliseconds, once a ping has come back.
    pub clock_difference: Option<i64>,
    /// Bytes that may be in flight.
    pub congestion_window: u32,
    /// Bytes in flight.
    pub in_flight: u32,
    /// The MTU of the connection, with 28 bytes of IP and UDP headers.
    pub mtu: u16,
}

impl ConnectionStats {
    /// Datagrams taken for lost of which nothing says that they arrived: what the path has lost, and what it still delays. Unlike
    /// the counters it falls when a datagram arrives late.
    #[must_use]
    pub const fn datagrams_missing(&self) -> u64 {
        self.datagrams_lost.saturating_sub(self.datagrams_late)
    }

    /// The share of bytes that had to be sent again since the beginning, 0 to 1.
    #[must_use]
    pub fn loss(&self) -> f64 {
        share(self.bytes_resent.total, self.bytes_sent.total)
    }

    /// The share of bytes that had to be sent again in the last whole second, 0 to 1: what a game shows its player as the
    /// state of the path now, where [`loss`](Self::loss) moves too slowly.
    #[must_use]
    pub fn loss_last_second(&self) -> f64 {
        share(self.bytes_resent.last_second.into(), self.bytes_sent.last_second.into())
    }
}

/// `part` of both together, as a number from 0 to 1.
fn share(part: u64, rest: u64) -> f64 {
    let all = part + rest;
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}
