//! The configuration of a peer: everything but its memory.
//!
//! It also contains the options of a single connection, and the features of the crate as constants.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::Vec;

#[cfg(feature = "secure")]
use super::security::Security;
use super::wire::offline::ServerSecurity;
use super::wire::{Guid, IPV6_EXTRA, MAX_MTU, MAX_MTU_IPV6, MIN_MTU, PongFraming};
use crate::endpoint::{Carrier, ClientLimits};
use crate::rate_limit::Allowance;
#[cfg(feature = "secure")]
use crate::secure::{
    ConnectToken, DatagramCipher, PUBLIC_KEY_FIELD, RustCrypto, ServerIdentity, ServerTrust, StaticKey,
    TokenServer,
};

/// The protocol versions that a server accepts, at most eight.
pub type ProtocolVersions = Vec<u8, 8>;

/// The address validation policy (docs/raknet.md#cookies).
///
/// It determines when a client must return a cookie before the server keeps any state. A cookie sets the security flag
/// of reply 1, which has two meanings. Minecraft Bedrock and the usual builds of the original read a cookie after it.
/// The original built with its own security (`LIBCAT_SECURITY`) also reads a public key, even for a connection without
/// security; it finds none, and fails with `ID_PUBLIC_KEY_MISMATCH`. Before reply 1 the two kinds of clients cannot be
/// distinguished. [`UnderLoad`](Self::UnderLoad) admits such clients while few clients arrive at the same time, and
/// [`Off`](Self::Off) always does.
///
/// ```
/// use rakwire::raknet::{Config, CookiePolicy};
///
/// let mut config = Config::new([7; 32]); // 32 random bytes in a real program
/// config.max_incoming = 200;
/// config.cookies = CookiePolicy::UnderLoad { unvalidated: 20 };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookiePolicy {
    /// [`UnderLoad`](Self::UnderLoad) with a limit derived from [`max_incoming`](Config::max_incoming).
    ///
    /// `unvalidated` is an eighth of it, at least 2 (1 below 8 slots) and at most 16. Every client is admitted while
    /// few arrive at the same time, including rust-raknet, jsp-raknet, raknet-node and Cloudburst Network, which do not
    /// support cookies. `docs/attacks.md` (A4) describes what forged addresses can achieve then: they never take more
    /// than that number of slots.
    #[default]
    Automatic,
    /// Reply 1 carries a keyed cookie. Request 2 without it is dropped and counted as
    /// [`MissingCookie`](super::DropReason::MissingCookie).
    ///
    /// A forged source leaves no state.
    Required,
    /// Reply 1 carries a cookie only while the server is under load, like TCP's SYN cookies.
    ///
    /// `unvalidated` clients may be admitted without a cookie, and as many again, one at a time, within each
    /// [`handshake_timeout`](Config::handshake_timeout). This applies while fewer than `unvalidated` connections have
    /// neither returned a cookie nor answered a ping (docs/raknet.md#address-validation). A client that has answered a
    /// ping no longer counts. 0 is [`Required`](Self::Required).
    ///
    /// Until the limit is reached a forged source is treated as with `Off`: it can take `unvalidated` slots, each for
    /// ten seconds unless it forges more, and for each of them have a victim sent three times its bytes
    /// (`docs/attacks.md`, A4). After that it gets nothing. During such a flood, clients that support cookies are
    /// admitted as always, and clients that do not are refused. A server that expects such clients sets
    /// [`max_incoming`](Config::max_incoming) to the number of its players plus twice `unvalidated`.
    ///
    /// A full server ends half-open connections to make room for newcomers. A newcomer without a cookie only ends
    /// connections that were made without one, and each of these counts towards `unvalidated`.
    UnderLoad {
        /// The number of clients that are admitted without a validated address.
        unvalidated: u16,
    },
    /// No cookie and no flag.
    ///
    /// This is for clients that do not support the form: rust-raknet, and the original built with its own security. A
    /// forged source can fill the connection table with half-open entries, each for ten seconds, but at most
    /// [`max_half_open_per_network`](Config::max_half_open_per_network) of a network. It can also have a victim sent
    /// three times its bytes (`docs/attacks.md`, A4).
    Off,
}

/// The longest IP packet of Ethernet in bytes (RFC 894).
const ETHERNET_MTU: u16 = 1_500;

/// The maximum number of clients that [`CookiePolicy::Automatic`] admits without a cookie.
const MAX_UNVALIDATED: u16 = 16;

/// The value that a client writes where the protocol requires the server's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialledAddress {
    /// The address that was given to `connect`.
    #[default]
    Known,
    /// The unassigned address.
    ///
    /// The datagrams go through a relay, and only the relay knows their destination.
    Unknown,
}

/// The congestion control algorithm. `docs/congestion.md` has measurements of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// Follows the queueing delay of the path.
    ///
    /// Losses without a queue count as random and do not reduce the window. The default, unless the crate is built
    /// without the feature `delay-based`.
    #[cfg(feature = "delay-based")]
    #[cfg_attr(feature = "delay-based", default)]
    DelayBased,
    #[cfg_attr(not(feature = "delay-based"), default)]
    /// Treats every loss as congestion and halves the window (RFC 6582).
    NewReno,
}

/// The configuration of a peer.
///
/// [`Config::new`] fills in the behaviour of the original; change the fields that should differ.
///
/// ```
/// use rakwire::raknet::Config;
///
/// let mut config = Config::new([7; 32]); // 32 random bytes in a real program
/// assert_eq!((config.max_incoming, config.protocol_version), (0, 6));
/// assert_eq!(config.accepted_versions, [6, 10, 11]);
/// config.max_incoming = 64;
/// config.accepted_versions = [11].into_iter().collect();
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// The identity of this peer.
    ///
    /// It must be random, because servers refuse a GUID that is already connected.
    pub guid: Guid,
    /// The key of cookies and hash tables. It must be random and secret; `Debug` does not show it.
    pub secret: [u8; 16],
    /// The protocol version that `connect` announces first. Default: 6, that of the original.
    ///
    /// The server may name another one ([`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version)).
    /// Current versions of Minecraft Bedrock have 11 ([`Config::bedrock`]).
    pub protocol_version: u8,
    /// Set if `connect` queries a server's version with an unconnected ping before the first request.
    ///
    /// Default: false. Some servers ignore an address for 10 to 20 s after a request with a version other than theirs.
    /// The query costs a round trip or, if no pong arrives, the `connect_interval` (at most a quarter of
    /// `connect_timeout`). It is left out if the version is known: if `protocol_version` is above 6, if the server has
    /// named its version before, with [`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version),
    /// and for secure connections. It requires the feature `unconnected`. Without the feature `alloc` no version is
    /// remembered, so each attempt sends the query.
    ///
    /// Drivers for the sockets of a system enable it; their defaults are
    /// [`Protocol::config`](crate::endpoint::Protocol::config). The driver for microcontrollers does not, because the
    /// query takes flash and a round trip for each attempt, and firmware usually knows the version of its server. The
    /// answer of a server to a wrong version is handled in any case: the attempt continues with the version that the
    /// server names, or fails with [`ConnectFailure::IncompatibleProtocol`](super::ConnectFailure) if the application
    /// requires its version.
    pub learn_version: bool,
    /// The protocol versions that a server accepts, at most eight.
    ///
    /// Default: 6, 10 and 11, which are those of the original and of current versions of Minecraft Bedrock.
    pub accepted_versions: ProtocolVersions,
    /// The maximum number of incoming connections, within the available slots.
    ///
    /// Default: 0, a pure client, so that a peer is a server only by intent.
    pub max_incoming: u16,
    /// The maximum number of blocks that one connection may hold in each direction; never more than half of all.
    ///
    /// Default: none, because each connection has a guaranteed part in any case. Half of the blocks are guaranteed to
    /// the connections, and the blocks that a connection borrows are bounded ([`Resources`](super::Resources)). If
    /// clients need little memory, a server sets this to what they need, so that a few clients leave more than the
    /// guaranteed part to all.
    pub connection_blocks: Option<u32>,
    /// The maximum number of half-open connections of one network (24 bits of IPv4, 64 of IPv6).
    ///
    /// The limit applies when a client without a cookie requests another one. Clients that return a cookie are not
    /// limited. Default: 8, which is enough for players behind one address that join together, and too few to fill a
    /// server with forged addresses.
    pub max_half_open_per_network: u16,
    /// The maximum number of open incoming connections of one address (64 bits of IPv6).
    ///
    /// Default: three quarters of [`max_incoming`](Self::max_incoming), so that a school or a carrier's NAT may fill
    /// most of a server, but not all of it; no limit below 16 slots, which one household may fill. Addresses that are
    /// not routed on the Internet (loopback, private, link-local and unique local) are not limited, so that a relay or
    /// a container gateway may bring as many clients as there are slots.
    pub max_per_address: Option<u16>,
    /// The same limit for one network (24 bits of IPv4, 48 of IPv6).
    ///
    /// Default: seven eighths of [`max_incoming`](Self::max_incoming).
    pub max_per_network: Option<u16>,
    /// The least time between two connections of an address; addresses of this machine never wait.
    ///
    /// Default: none, as in the original, which uses 100 ms if enabled (`docs/raknet.md#request-2`).
    pub connection_interval: Option<Duration>,
    /// The maximum number of pongs per second in total; 0 answers no ping.
    ///
    /// Default: 1,000, which is at most 432 KB of payload per second, however many addresses are forged.
    pub pongs_per_second: u16,
    /// The maximum number of pongs per second for one network (24 bits of IPv4, 64 of IPv6).
    ///
    /// Default: 20, a fiftieth of the total, so that one network cannot take all pongs. Within the network each address
    /// is guaranteed a quarter of them, up to half a second's worth at once, and the rest if the others leave it.
    pub pongs_per_network: u16,
    /// The framing of the data in sent and received pongs. Default: derived from the versions.
    ///
    /// By default a server writes the length before the data, as Minecraft Bedrock does, in two cases: if it only
    /// accepts versions above 6, or if it accepts some and its advertisement begins like that of a Minecraft Bedrock
    /// server (`MCPE;` or `MCEE;`). A client removes the length if the data begin with it
    /// (`docs/raknet.md#advertisements`). Advertisements and the data of [`Event::Pong`](super::Event::Pong) never
    /// include the length.
    pub pong_framing: Option<PongFraming>,
    /// The policy by which clients must validate their address.
    ///
    /// Default: once several have arrived at about the same time without validation, so that forged addresses take few
    /// slots.
    pub cookies: CookiePolicy,
    /// The value that a client writes where the protocol requires the server's address.
    ///
    /// Default: the address, as in the original.
    pub dialled_address: DialledAddress,
    /// The carrier of the datagrams. Default: datagrams. [`Peer::set_carrier`](super::Peer::set_carrier) changes it.
    pub carrier: Carrier,
    /// The largest MTU that is offered or accepted, 576 to 1492 bytes including 28 bytes of IP and UDP headers.
    ///
    /// Default: 1492, the largest one of the original (`docs/raknet.md#connection-attempts`).
    pub mtu: u16,
    /// The longest IP packet that the network interface sends, in bytes, at least 576 (1,280 for IPv6).
    ///
    /// The MTU of each connection, including the headers of IPv4 or IPv6, stays within it. Default: 1,500, that of
    /// Ethernet. Operating systems detect an interface with a smaller MTU themselves (`docs/raknet.md#path-mtu`);
    /// drivers without such a system set it.
    pub interface_mtu: u16,
    /// The number of addresses in "connection request accepted" and "new incoming connection", at most 20.
    ///
    /// Default: none, which depends on the version that the two peers use: 10 up to version 8, as in the original,
    /// and 20 from 9 on, as in Minecraft Bedrock, where peers often read no other number
    /// (`docs/raknet.md#internal-addresses`).
    pub address_count: Option<u8>,
    /// The number of times that a client sends its first request, at least 3, with a third of them at each MTU.
    ///
    /// Default: 12, as in the original, which sends it once more than this (`docs/raknet.md#connection-attempts`).
    pub connect_attempts: u8,
    /// The time between two first requests; capped at 71 minutes.
    ///
    /// Default: 500 ms, as in the original (`docs/raknet.md#connection-attempts`).
    pub connect_interval: Duration,
    /// The timeout of the handshake inside the connection.
    ///
    /// Default: 10 s, after which the slot of an incomplete connection is free again (`docs/raknet.md#request-2`).
    pub handshake_timeout: Duration,
    /// The time for which a peer may be silent while it owes an acknowledgement.
    ///
    /// It is rounded up to milliseconds, and at most 49 days. Default: 10 s, as in the original.
    pub timeout: Duration,
    /// The time for which `disconnect` waits for earlier messages to be acknowledged.
    ///
    /// Default: 5 s, half of the default `timeout`, so that an application does not wait as long to exit as for an
    /// unresponsive peer.
    pub close_timeout: Duration,
    /// The time between two pings of a connection, if any. Default: 5 s, as in the original.
    pub ping_interval: Option<Duration>,
    /// The longest delay of an acknowledgement.
    ///
    /// Default: 10 ms, as in the original; the timeouts of other peers allow for it.
    pub ack_delay: Duration,
    /// The number of parts of a message after which [`Event::Progress`](super::Event::Progress) reports its progress.
    ///
    /// Default: 0, which is never, as in the original.
    pub progress_interval: u32,
    /// The longest message that `send` accepts, in bytes.
    ///
    /// The memory of the connection may allow less ([`Peer::max_message_len`](super::Peer::max_message_len)). Default:
    /// 4,000,000, which each peer with the memory of [`Capacity::for_connections`](super::Capacity::for_connections)
    /// can receive at any MTU. A peer that sends to peers with more memory sets it higher.
    pub max_message_len: u32,
    /// The time that an unreliable message may wait to be sent before it is dropped.
    ///
    /// Default: 1 s, as in the original.
    pub unreliable_timeout: Duration,
    /// The minimum retransmission timeout.
    ///
    /// Default: 50 ms, more than the 30 ms that a timeout allows for delayed acknowledgements.
    pub min_resend_timeout: Duration,
    /// The maximum retransmission timeout. Default: 2 s, as in the original (`docs/raknet.md#round-trip`).
    pub max_resend_timeout: Duration,
    /// The number of times that the retransmission timeout may double without an acknowledgement, at most 16.
    ///
    /// Default: 4, the exponential backoff of RFC 6298 section 5.5 with a bound; 0 is the behaviour of the original.
    pub resend_backoff: u8,
    /// The congestion control algorithm.
    ///
    /// Default: [`CongestionControl::DelayBased`] if the feature `delay-based` is built in. `docs/congestion.md`
    /// compares it with NewReno.
    pub congestion_control: CongestionControl,
    /// The maximum number of bits per second that each connection may send in data datagrams, including IP and UDP
    /// headers.
    ///
    /// Default: none, which leaves the rate to the congestion control.
    pub outgoing_limit: Option<u64>,
    /// The handling of messages from peers without a connection.
    ///
    /// Default: refused, because their senders may be forged.
    pub out_of_band: OutOfBand,
    /// Keys for secure connections, and the requirements of a server for its clients (`docs/secure.md`).
    ///
    /// Default: none. With a server key each client must validate its address, regardless of `cookies`.
    #[cfg(feature = "secure")]
    pub security: Option<Security>,
    /// The protection of datagrams in connections without keys.
    pub(crate) protection: Protection,
}

debug_without_secrets! {
    Config as "Config";
    shown: guid, protocol_version, learn_version, accepted_versions, max_incoming, connection_blocks,
        max_half_open_per_network, max_per_address, max_per_network, connection_interval,
        pongs_per_second, pongs_per_network,
        pong_framing, cookies, dialled_address, carrier, mtu, interface_mtu, address_count, connect_attempts,
        connect_interval, handshake_timeout, timeout, close_timeout, ping_interval, ack_delay,
        progress_interval, max_message_len, unreliable_timeout, min_resend_timeout, max_resend_timeout,
        resend_backoff, congestion_control, outgoing_limit, out_of_band,
        #[cfg(feature = "secure")] security, protection;
    hidden: secret;
}

/// The protection of datagrams in connections without keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protection {
    #[default]
    Plain,
    /// The protection used by tests.
    #[cfg(test)]
    Test,
}

/// The handling of messages from peers without a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfBand {
    /// They are dropped and counted, so that a peer without a connection takes no memory.
    #[default]
    Refuse,
    /// They are reported, with at most eight waiting at a time. Their senders may be forged.
    Accept,
}

impl Config {
    /// Creates a configuration from 32 random bytes, which become the GUID and the secret.
    ///
    /// The bytes must come from an unpredictable source: the operating system, `crypto.getRandomValues` or a hardware
    /// generator.
    #[must_use]
    pub fn new(entropy: [u8; 32]) -> Self {
        let mut guid = [0; 8];
        let mut secret = [0; 16];
        let (for_guid, for_secret) = entropy.split_at(8);
        guid.copy_from_slice(for_guid);
        secret.iter_mut().zip(for_secret).for_each(|(to, from)| *to = *from);
        Self {
            guid: Guid(u64::from_be_bytes(guid)),
            secret,
            protocol_version: 6,
            learn_version: false,
            accepted_versions: Vec::from_array([6, 10, 11]),
            max_incoming: 0,
            connection_blocks: None,
            max_half_open_per_network: 8,
            max_per_address: None,
            max_per_network: None,
            connection_interval: None,
            pongs_per_second: 1_000,
            pongs_per_network: 20,
            pong_framing: None,
            cookies: CookiePolicy::Automatic,
            dialled_address: DialledAddress::Known,
            carrier: Carrier::Datagrams,
            mtu: MAX_MTU,
            interface_mtu: ETHERNET_MTU,
            address_count: None,
            connect_attempts: 12,
            connect_interval: Duration::from_millis(500),
            handshake_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(5),
            ping_interval: Some(Duration::from_secs(5)),
            ack_delay: Duration::from_millis(10),
            progress_interval: 0,
            max_message_len: 4_000_000,
            unreliable_timeout: Duration::from_secs(1),
            min_resend_timeout: Duration::from_millis(50),
            max_resend_timeout: Duration::from_secs(2),
            resend_backoff: 4,
            congestion_control: CongestionControl::default(),
            outgoing_limit: None,
            out_of_band: OutOfBand::Refuse,
            #[cfg(feature = "secure")]
            security: None,
            protection: Protection::Plain,
        }
    }

    /// Creates a configuration for the original RakNet 4: protocol 6.
    #[must_use]
    pub fn original(entropy: [u8; 32]) -> Self {
        Self { accepted_versions: versions(&[6]), ..Self::new(entropy) }
    }

    /// Creates a configuration for Minecraft Bedrock.
    ///
    /// It has protocol 11 (10 and 9 are accepted), and the length before the data of pongs.
    #[must_use]
    pub fn bedrock(entropy: [u8; 32]) -> Self {
        Self { protocol_version: 11, accepted_versions: versions(&[9, 10, 11]), ..Self::new(entropy) }
    }

    /// Returns the effective cookie policy.
    ///
    /// A server with a key performs no computation for a client with a possibly forged address.
    pub(crate) fn cookie_policy(&self) -> CookiePolicy {
        if self.has_server_key() { CookiePolicy::Required } else { self.cookies }
    }

    /// Returns the framing of `data` in the pongs that this peer sends.
    ///
    /// An unconnected ping does not show which framing its sender reads, but the data show for which clients they are
    /// meant.
    pub(crate) fn sent_pong_framing(&self, data: &[u8]) -> PongFraming {
        let versions = &self.accepted_versions;
        let is_prefixed = |version: &u8| PongFraming::of_version(*version) == PongFraming::Prefixed;
        self.pong_framing.unwrap_or_else(|| {
            let is_like_bedrock = data.starts_with(b"MCPE;") || data.starts_with(b"MCEE;");
            let any_prefixed = versions.iter().any(is_prefixed);
            let fits = any_prefixed && (is_like_bedrock || versions.iter().all(is_prefixed));
            if fits { PongFraming::Prefixed } else { PongFraming::Raw }
        })
    }

    /// Returns true if the unknown version of a server is queried.
    ///
    /// A pong only shows the version of Minecraft Bedrock.
    pub(super) fn queries_version(&self) -> bool {
        self.learn_version && PongFraming::of_version(self.protocol_version) == PongFraming::Raw
    }

    /// Returns the framing of the data of a received pong.
    pub(crate) fn received_pong_framing(&self, data: &[u8]) -> PongFraming {
        self.pong_framing.unwrap_or_else(|| PongFraming::of(data))
    }

    /// Returns the allowance of clients without a cookie, if that depends on the load.
    pub(super) fn unvalidated(&self) -> Option<Allowance> {
        let unvalidated = match self.cookies {
            CookiePolicy::UnderLoad { unvalidated } => unvalidated,
            CookiePolicy::Automatic => {
                // On small servers too, two clients that arrive at the same time are both admitted, as long as most of
                // the slots remain.
                (self.max_incoming / 4).clamp(1, 2).max(self.max_incoming / 8).min(MAX_UNVALIDATED)
            }
            CookiePolicy::Required | CookiePolicy::Off => return None,
        };
        Some(Allowance { events: unvalidated, period: self.handshake_timeout })
    }

    /// Returns the limits of connections from one address and from one network.
    pub(super) const fn client_limits(&self) -> ClientLimits {
        ClientLimits::new(self.max_incoming, self.max_per_address, self.max_per_network)
    }

    /// Returns the MTU closest to `mtu` that may be used with a peer at this address.
    pub(crate) fn clamp_mtu(&self, mtu: u16, remote: SocketAddr) -> u16 {
        let (largest, extra) = if remote.is_ipv6() { (MAX_MTU_IPV6, IPV6_EXTRA) } else { (MAX_MTU, 0) };
        mtu.min(self.mtu).min(self.interface_mtu.saturating_sub(extra)).clamp(MIN_MTU, largest)
    }
}

#[cfg(feature = "secure")]
impl Config {
    /// Returns the cipher for the datagrams of secure connections.
    pub(super) fn cipher(&self) -> &'static dyn DatagramCipher {
        self.security.as_ref().map_or(&RustCrypto, |security| security.cipher)
    }
}

fn versions(list: &[u8]) -> ProtocolVersions {
    Vec::from_slice(list).unwrap_or_default()
}

#[cfg(feature = "secure")]
impl Config {
    /// Returns the identity of this peer as a server, if it has one.
    pub(crate) fn server_identity(&self) -> Option<&ServerIdentity> {
        self.security.as_ref()?.server.as_ref()
    }

    /// Returns true if reply 1 contains a key.
    pub(crate) fn has_server_key(&self) -> bool {
        self.server_identity().is_some()
    }

    /// Returns true if clients without security are refused.
    pub(crate) fn requires_security(&self) -> bool {
        self.server_identity().is_some_and(ServerIdentity::refuses_plain)
    }

    /// Returns the security fields of reply 1, with the key in `field`.
    pub(crate) fn server_security<'f>(
        &self,
        cookie: u32,
        mtu: u16,
        field: &'f mut [u8; PUBLIC_KEY_FIELD],
    ) -> ServerSecurity<'f> {
        let Some(identity) = self.server_identity() else { return ServerSecurity::Cookie(cookie) };
        *field = identity.field(mtu);
        ServerSecurity::PublicKey { cookie, key: field }
    }
}

/// The size of the key in reply 1, in bytes.
#[cfg(not(feature = "secure"))]
const PUBLIC_KEY_FIELD: usize = 64;

// Without the feature `secure` a configuration has no keys.
#[cfg(not(feature = "secure"))]
impl Config {
    /// Returns true if reply 1 contains a key.
    pub(crate) const fn has_server_key(&self) -> bool {
        false
    }

    /// Returns true if clients without security are refused.
    pub(crate) const fn requires_security(&self) -> bool {
        false
    }

    /// Returns the security fields of reply 1.
    pub(crate) const fn server_security<'f>(
        &self,
        cookie: u32,
        _mtu: u16,
        _field: &'f mut [u8; PUBLIC_KEY_FIELD],
    ) -> ServerSecurity<'f> {
        ServerSecurity::Cookie(cookie)
    }
}

/// RakNet, as a [`Protocol`](crate::endpoint::Protocol).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RakNet;

/// The options of a single connection, where they differ from the configuration.
///
/// ```
/// use core::time::Duration;
/// use rakwire::Instant;
/// use rakwire::raknet::{Config, ConnectError, ConnectOptions, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let to = ([192, 0, 2, 1], 19132).into();
/// let options = ConnectOptions { password: &[b'x'; 256], ..Default::default() };
/// assert_eq!(peer.connect_with(Instant::ZERO, to, &options), Err(ConnectError::PasswordTooLong));
/// let options = ConnectOptions { password: b"secret", timeout: Some(Duration::from_secs(3)), ..Default::default() };
/// assert!(peer.connect_with(Instant::ZERO, to, &options).is_ok());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectOptions<'p> {
    /// The password for the server, 0 to 255 bytes.
    ///
    /// It crosses the network in the clear, except in a secure connection. `Debug` does not show it.
    pub password: &'p [u8],
    /// The server to trust. The connection is then secure, or the attempt fails.
    ///
    /// Default: none, for a plain connection. It requires a configuration with [`security`](super::Config::security).
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The key that identifies this client in a secure connection.
    ///
    /// Default: that of [`Security::identity`](super::Security::identity). It requires `trust`.
    #[cfg(feature = "secure")]
    pub identity: Option<&'p StaticKey>,
    /// The data that the server receives with the identity, encrypted and bound to it.
    ///
    /// It has 0 to [`MAX_IDENTITY_DATA`](crate::secure::MAX_IDENTITY_DATA) bytes. The server reads it as
    /// [`ClientIdentity::data`](crate::secure::ClientIdentity::data). It requires an identity, from these options or
    /// from the configuration.
    #[cfg(feature = "secure")]
    pub identity_data: &'p [u8],
    /// The only protocol version to announce.
    ///
    /// Default: the version that the server named in its last answer (with the feature `alloc`), or else that of the
    /// configuration; if the server then turns out to use another one, that one.
    pub protocol_version: Option<u8>,
    /// The timeout of the attempt until the connection is open.
    ///
    /// The first request is repeated for all that time. Default: the result of `attempts` and `interval`, or 21 s after
    /// the server named another version; then the configuration's `handshake_timeout`.
    pub connect_timeout: Option<Duration>,
    /// The number of first requests, at least 3.
    pub attempts: Option<u8>,
    /// The time between two first requests; capped at 71 minutes.
    pub interval: Option<Duration>,
    /// The time for which the remote peer may be silent once the connection is open.
    pub timeout: Option<Duration>,
}

debug_without_secrets! {
    ConnectOptions<'_> as "ConnectOptions";
    shown: #[cfg(feature = "secure")] trust, #[cfg(feature = "secure")] identity,
        #[cfg(feature = "secure")] identity_data, protocol_version, connect_timeout, attempts,
        interval, timeout;
    hidden: password;
}

impl ConnectOptions<'_> {
    /// Returns true if the connection must be secure.
    pub(crate) const fn is_secure(&self) -> bool {
        #[cfg(feature = "secure")]
        let is_secure = self.trust.is_some();
        #[cfg(not(feature = "secure"))]
        let is_secure = false;
        is_secure
    }
}

#[cfg(feature = "secure")]
impl<'p> ConnectOptions<'p> {
    /// Creates options that open a connection with a connect token.
    ///
    /// Only the key of `server`, one of the token's servers, is trusted, and `key` is the client key for which the
    /// token was issued. Resolving [`TokenServer::name`] is left to the application.
    ///
    /// ```
    /// use rakwire::raknet::ConnectOptions;
    /// use rakwire::secure::{ConnectToken, ServerTrust, StaticKey, TokenServer};
    ///
    /// let key = StaticKey::from_bytes([2; 32]); // its public key was given to the backend
    /// let server = TokenServer { key: StaticKey::from_bytes([1; 32]).public(), name: "game.example.org:19132" };
    /// let servers = [server].into_iter().collect();
    /// let token = ConnectToken { expires: 1_800_000_060, servers, sealed: b"as the backend made it" };
    /// let options = ConnectOptions::connect_token(&token, &token.servers[0], &key);
    /// assert_eq!(options.trust, Some(ServerTrust::Key(server.key)));
    /// assert_eq!(options.password, token.sealed);
    /// ```
    #[must_use]
    pub fn connect_token(
        token: &ConnectToken<'p>,
        server: &TokenServer<'_>,
        identity: &'p StaticKey,
    ) -> Self {
        let trust = Some(ServerTrust::Key(server.key));
        Self { password: token.sealed, trust, identity: Some(identity), ..Self::default() }
    }
}

/// True if others may connect to this peer (feature `server`).
pub(crate) const SERVER: bool = cfg!(feature = "server");

/// True if this peer can exchange messages without a connection (feature `unconnected`).
pub(crate) const UNCONNECTED: bool = cfg!(feature = "unconnected");

/// True if there are more channels than those stored in a connection (feature `channels`).
pub(crate) const FAR_CHANNELS: bool = cfg!(feature = "channels");

/// True if buffered messages share blocks (feature `packing`).
pub(crate) const PACKING: bool = cfg!(feature = "packing");

/// True if messages may be longer than a datagram (feature `splitting`).
pub(crate) const SPLITTING: bool = cfg!(feature = "splitting");

/// True if messages may be sequenced, so that only the newest counts (feature `sequencing`).
pub(crate) const SEQUENCING: bool = cfg!(feature = "sequencing");

/// True if messages have priorities (feature `priorities`).
pub(crate) const PRIORITIES: bool = cfg!(feature = "priorities");

/// Returns `room` if a part is built in; else the smallest size of a table.
pub(crate) const fn room(part: bool, room: usize) -> usize {
    if part { room } else { 1 }
}
