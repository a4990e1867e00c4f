//! The configuration of a RakNet peer, except for its memory.
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

/// The policy by which a server requests cookies, which validate the addresses of clients (docs/raknet.md#cookies).
///
/// A server requests a cookie by setting the security flag of reply 1. That flag has two meanings:
///
/// - Minecraft Bedrock and the usual builds of C++ RakNet read a cookie after it and return it.
/// - C++ RakNet built with `LIBCAT_SECURITY` expects a cookie and a public key, even for a plain connection. Without
///   the key it fails with `ID_PUBLIC_KEY_MISMATCH`.
///
/// Before reply 1 a server cannot distinguish the two kinds of clients. [`UnderLoad`](Self::UnderLoad) admits the
/// second kind while few clients connect at the same time, and [`Off`](Self::Off) always does.
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
    /// `unvalidated` is an eighth of `max_incoming`, at least 2 (1 below 8 slots) and at most 16. While few clients
    /// connect at the same time, all clients are admitted, including those without cookie support: rust-raknet,
    /// jsp-raknet, raknet-node and Cloudburst Network. `docs/attacks.md` (A4) describes what an attacker with forged
    /// addresses can achieve. The attacker never takes more than `unvalidated` slots.
    #[default]
    Automatic,
    /// Always request a cookie.
    ///
    /// A client's second request without the cookie is dropped and counted as
    /// [`MissingCookie`](super::DropReason::MissingCookie).
    ///
    /// Requests from forged addresses create no state.
    Required,
    /// Request a cookie only under load, like TCP's SYN cookies.
    ///
    /// At most `unvalidated` clients may be connecting or connected without a validated address at a time
    /// (docs/raknet.md#address-validation). New clients of this kind are also rate-limited: `unvalidated` in a burst,
    /// refilled one by one in the course of one [`handshake_timeout`](Config::handshake_timeout). A client that has
    /// answered a ping is validated and does not count. With `unvalidated` 0 the policy is the same as
    /// [`Required`](Self::Required).
    ///
    /// Below the limit, requests from forged addresses are treated as with `Off`. An attacker can occupy up to
    /// `unvalidated` slots, each for ten seconds. It can also make the server send three times the bytes of its
    /// requests to a victim (`docs/attacks.md`, A4). At the limit, clients with cookie support are admitted as usual
    /// and others are refused. A server that expects clients without cookie support sets
    /// [`max_incoming`](Config::max_incoming) to the number of its players plus twice `unvalidated`.
    ///
    /// A full server evicts half-open connections to admit new clients. A client without a cookie evicts only
    /// connections that were opened without one, and each eviction counts towards the rate limit.
    UnderLoad {
        /// The maximum number of clients without a validated address, and the number of new ones in a burst.
        unvalidated: u16,
    },
    /// Never request a cookie.
    ///
    /// Use it for clients that fail on a cookie: rust-raknet, and C++ RakNet built with `LIBCAT_SECURITY`. An
    /// attacker can fill the connection table with half-open connections from forged addresses, each for ten seconds,
    /// but at most [`max_half_open_per_network`](Config::max_half_open_per_network) from one network. It can also
    /// make the server send three times the bytes of its requests to a victim (`docs/attacks.md`, A4).
    Off,
}

/// The MTU of Ethernet in bytes (RFC 894).
const ETHERNET_MTU: u16 = 1_500;

/// The maximum of `unvalidated` with [`CookiePolicy::Automatic`].
const MAX_UNVALIDATED: u16 = 16;

/// The server address that a client writes into the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialledAddress {
    /// The address given to `connect`.
    #[default]
    Known,
    /// The unassigned address, 0.0.0.0:0.
    ///
    /// Use it for clients behind a relay: only the relay has the address of the server.
    Unknown,
}

/// The congestion control algorithm. `docs/congestion.md` compares measurements of the two algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// Limits the queueing delay of the path.
    ///
    /// A loss without a queueing delay counts as random and does not reduce the window. This is the default, unless
    /// the crate is built without the feature `delay-based`.
    #[cfg(feature = "delay-based")]
    #[cfg_attr(feature = "delay-based", default)]
    DelayBased,
    #[cfg_attr(not(feature = "delay-based"), default)]
    /// Treats every loss as congestion and halves the window (RFC 6582).
    NewReno,
}

/// The configuration of a RakNet peer.
///
/// [`Config::new`] returns the behaviour of C++ RakNet; change individual fields as needed.
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
    /// It must be random and unique, because servers refuse a GUID that is already connected.
    pub guid: Guid,
    /// The key of cookies and hash tables: 128 random, secret bits. `Debug` omits it.
    pub secret: [u8; 16],
    /// The protocol version that `connect` offers first. Default: 6, as in C++ RakNet.
    ///
    /// It is replaced by a version that the server names
    /// ([`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version)). Current versions of Minecraft
    /// Bedrock use 11 ([`Config::bedrock`]).
    pub protocol_version: u8,
    /// True if `connect` queries the server's protocol version with an unconnected ping before the first request.
    ///
    /// Default: false. The query avoids a wrong first version, after which some servers ignore the client's address
    /// for 10 to 20 s. It costs a round trip or, without a pong, the `connect_interval` (at most a quarter of
    /// `connect_timeout`). The query is skipped:
    ///
    /// - if `protocol_version` is above 6,
    /// - if the server has named its version before (feature `alloc`; without it no version is remembered),
    /// - with [`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version),
    /// - for secure connections.
    ///
    /// `learn_version` requires the feature `unconnected`.
    ///
    /// Drivers on operating system sockets enable it in [`Protocol::config`](crate::endpoint::Protocol::config). The
    /// embassy driver does not: the query takes flash, and firmware usually knows the version of its server. Without
    /// the query, a wrong version costs a round trip too. The attempt then continues with the version that the server
    /// names. If [`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version) is set, it fails with
    /// [`ConnectFailure::IncompatibleProtocol`](super::ConnectFailure).
    pub learn_version: bool,
    /// The protocol versions that a server accepts, at most eight.
    ///
    /// Default: 6 (C++ RakNet), 10 and 11 (current versions of Minecraft Bedrock).
    pub accepted_versions: ProtocolVersions,
    /// The maximum number of incoming connections, limited by the number of slots.
    ///
    /// Default: 0, a pure client.
    pub max_incoming: u16,
    /// The maximum number of blocks that one connection may hold in each direction, at most half of all.
    ///
    /// Default: none. Half of the blocks are guaranteed to the connections in equal parts, and borrowing from the other
    /// half is bounded ([`Resources`](super::Resources)). If your clients need little memory, set a limit: a few
    /// clients with large queues then leave more memory to the others.
    pub connection_blocks: Option<u32>,
    /// The maximum number of half-open connections from one network (a /24 of IPv4, a /64 of IPv6).
    ///
    /// It applies to clients without a cookie; clients that return one are not limited. Default: 8, which suffices
    /// for players behind one address that join together, and prevents forged addresses from filling a server.
    pub max_half_open_per_network: u16,
    /// The maximum number of open incoming connections from one address (a whole IPv4 address, or a /64 of IPv6).
    ///
    /// Default: three quarters of [`max_incoming`](Self::max_incoming), so that a school or a carrier-grade NAT
    /// cannot fill the server; no limit below 16 slots, which one household may fill. Addresses that are not routed
    /// on the Internet (loopback, private, link-local and unique local) are never limited, because clients behind a
    /// relay or a container gateway share one.
    pub max_per_address: Option<u16>,
    /// The maximum number of open incoming connections from one network (a /24 of IPv4, a /48 of IPv6).
    ///
    /// Default: seven eighths of [`max_incoming`](Self::max_incoming); no limit below 16 slots.
    pub max_per_network: Option<u16>,
    /// The minimum time between two connections from one address; loopback addresses are exempt.
    ///
    /// Default: none, as in C++ RakNet, which uses 100 ms if the check is enabled (`docs/raknet.md#request-2`).
    pub connection_interval: Option<Duration>,
    /// The maximum number of pongs per second in total; 0 answers no pings.
    ///
    /// Default: 1,000, at most 432 KB of payload per second, even if the addresses are forged.
    pub pongs_per_second: u16,
    /// The maximum number of pongs per second to one network (a /24 of IPv4, a /64 of IPv6).
    ///
    /// Default: 20, one fiftieth of the total. Within the network each address is guaranteed a quarter of the rate:
    /// once the rate is used up, addresses below their quarter may together exceed it by half a second's worth of
    /// pongs. An address may also use the part that other addresses leave unused.
    pub pongs_per_network: u16,
    /// The framing of pong data: with or without a preceding length. Default: derived from the protocol versions.
    ///
    /// By default a server writes the length, as Minecraft Bedrock does, in two cases:
    ///
    /// - if it accepts only protocol versions above 6,
    /// - if it accepts at least one version above 6 and its advertisement begins with `MCPE;` or `MCEE;`.
    ///
    /// A client strips a leading length that matches the data (`docs/raknet.md#advertisements`). Advertisements and the
    /// data of [`Event::Pong`](super::Event::Pong) never include the length.
    pub pong_framing: Option<PongFraming>,
    /// The policy by which a server requests cookies.
    ///
    /// Default: [`CookiePolicy::Automatic`]. Cookies are requested once several clients without a validated address
    /// connect at about the same time, so forged addresses take few slots.
    pub cookies: CookiePolicy,
    /// The server address that a client writes into the handshake.
    ///
    /// Default: the address given to `connect`, as in C++ RakNet.
    pub dialled_address: DialledAddress,
    /// The transport that carries the datagrams.
    ///
    /// Default: UDP. [`Peer::set_carrier`](super::Peer::set_carrier) changes it later.
    pub carrier: Carrier,
    /// The maximum MTU that is offered or accepted, 576 to 1492 bytes including 28 bytes of IP and UDP headers.
    ///
    /// Default: 1492, the maximum of C++ RakNet (`docs/raknet.md#connection-attempts`).
    pub mtu: u16,
    /// The MTU of the network interface in bytes, at least 576 (1,280 for IPv6).
    ///
    /// It limits the MTU of each connection, including the IPv4 or IPv6 header. Default: 1,500, as on Ethernet.
    /// Operating systems detect an interface with a smaller MTU themselves (`docs/raknet.md#path-mtu`); set it where
    /// there is no operating system.
    pub interface_mtu: u16,
    /// The number of addresses in "connection request accepted" and "new incoming connection", at most 20.
    ///
    /// Default: derived from the protocol version of the connection. It is 10 up to version 8, as in C++ RakNet, and
    /// 20 from 9 on, as in Minecraft Bedrock. Many Bedrock peers cannot parse any other number
    /// (`docs/raknet.md#internal-addresses`).
    pub address_count: Option<u8>,
    /// The number of retransmissions of the first request, 3 to 254; other values are clamped.
    ///
    /// A third of this number of requests is sent at each of the first two MTU steps, and the remaining requests at the
    /// smallest MTU. Default: 12, or 13 requests in total, as in C++ RakNet (`docs/raknet.md#connection-attempts`).
    pub connect_attempts: u8,
    /// The interval between transmissions of the first request; values above 71 minutes are clamped.
    ///
    /// Default: 500 ms, as in C++ RakNet (`docs/raknet.md#connection-attempts`).
    pub connect_interval: Duration,
    /// The timeout of the part of the handshake that follows reply 2.
    ///
    /// Default: 10 s. A server then frees the slot of the incomplete connection (`docs/raknet.md#request-2`).
    pub handshake_timeout: Duration,
    /// The time without any datagram from the remote peer after which a connection with unacknowledged data is lost.
    ///
    /// It is rounded up to milliseconds and clamped to 49 days. Default: 10 s, as in C++ RakNet.
    pub timeout: Duration,
    /// The maximum time for which `disconnect` waits until queued messages are acknowledged.
    ///
    /// Default: 5 s, half of the default `timeout`, so that an application can exit before an unresponsive peer times
    /// out.
    pub close_timeout: Duration,
    /// The interval between connected pings, or `None` to send none. Default: 5 s, as in C++ RakNet.
    pub ping_interval: Option<Duration>,
    /// The maximum delay of an acknowledgement.
    ///
    /// Default: 10 ms, as in C++ RakNet; retransmission timeouts of other implementations allow for it.
    pub ack_delay: Duration,
    /// The number of parts of a split message between two [`Event::Progress`](super::Event::Progress) events.
    ///
    /// Default: 0, which disables these events, as in C++ RakNet.
    pub progress_interval: u32,
    /// The maximum length of a message that `send` accepts, in bytes.
    ///
    /// The memory of a connection may allow less ([`Peer::max_message_len`](super::Peer::max_message_len)). Default:
    /// 4,000,000, which a peer with the memory of [`Capacity::for_connections`](super::Capacity::for_connections) can
    /// receive at any MTU. Raise it if the remote peers have more memory.
    pub max_message_len: u32,
    /// The maximum time that an unreliable message stays in the send queue before it is dropped.
    ///
    /// Default: 1 s, as in C++ RakNet.
    pub unreliable_timeout: Duration,
    /// The minimum retransmission timeout.
    ///
    /// Default: 50 ms, more than the 30 ms by which the timeout allows for delayed acknowledgements.
    pub min_resend_timeout: Duration,
    /// The maximum retransmission timeout. Default: 2 s, as in C++ RakNet (`docs/raknet.md#round-trip`).
    pub max_resend_timeout: Duration,
    /// The maximum number of times that the retransmission timeout doubles without an acknowledgement, at most 16.
    ///
    /// Default: 4, the exponential backoff of RFC 6298 section 5.5 with a bound. With 0 the timeout never doubles, as
    /// in C++ RakNet.
    pub resend_backoff: u8,
    /// The congestion control algorithm.
    ///
    /// Default: [`CongestionControl::DelayBased`] if the feature `delay-based` is enabled. `docs/congestion.md`
    /// compares it with NewReno.
    pub congestion_control: CongestionControl,
    /// The maximum send rate of each connection in bits per second. The rate counts data datagrams, including IP and
    /// UDP headers.
    ///
    /// Default: none, so that only congestion control limits the rate.
    pub outgoing_limit: Option<u64>,
    /// The treatment of out-of-band messages and advertisements from unconnected peers.
    ///
    /// Default: they are dropped, because their sender addresses may be forged.
    pub out_of_band: OutOfBand,
    /// Keys for secure connections, and what a server requires of its clients (`docs/secure.md`).
    ///
    /// Default: none. A server with a key requests a cookie from every client, regardless of `cookies`.
    #[cfg(feature = "secure")]
    pub security: Option<Security>,
    /// The packet protection of connections without keys.
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

/// The packet protection of connections without keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protection {
    #[default]
    Plain,
    /// A simple cipher for tests.
    #[cfg(test)]
    Test,
}

/// The treatment of messages from unconnected peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfBand {
    /// The messages are dropped and counted, and take no memory.
    #[default]
    Refuse,
    /// The messages are reported as events. At most eight are queued at a time; their sender addresses may be forged.
    Accept,
}

impl Config {
    /// Creates a configuration from 32 random bytes, the source of the GUID and the secret.
    ///
    /// The bytes must be unpredictable: take them from the operating system, `crypto.getRandomValues` or a hardware
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

    /// Creates a configuration for C++ RakNet 4, with protocol version 6.
    #[must_use]
    pub fn original(entropy: [u8; 32]) -> Self {
        Self { accepted_versions: versions(&[6]), ..Self::new(entropy) }
    }

    /// Creates a configuration for Minecraft Bedrock, with protocol version 11; a server also accepts 9 and 10.
    ///
    /// Pongs contain the length of their data.
    #[must_use]
    pub fn bedrock(entropy: [u8; 32]) -> Self {
        Self { protocol_version: 11, accepted_versions: versions(&[9, 10, 11]), ..Self::new(entropy) }
    }

    /// Returns the cookie policy in effect.
    ///
    /// A server with a key always requires cookies: it must not compute a handshake for a forged address.
    pub(crate) fn cookie_policy(&self) -> CookiePolicy {
        if self.has_server_key() { CookiePolicy::Required } else { self.cookies }
    }

    /// Returns the framing of `data` in the pongs that this peer sends.
    ///
    /// An unconnected ping does not contain the framing that its sender expects, so the framing depends on the game
    /// that `data` advertises.
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

    /// Returns true if `connect` queries an unknown protocol version.
    ///
    /// A pong reveals only the version of Minecraft Bedrock.
    pub(super) fn queries_version(&self) -> bool {
        self.learn_version && PongFraming::of_version(self.protocol_version) == PongFraming::Raw
    }

    /// Returns the framing of `data` in a received pong.
    pub(crate) fn received_pong_framing(&self, data: &[u8]) -> PongFraming {
        self.pong_framing.unwrap_or_else(|| PongFraming::of(data))
    }

    /// Returns the limit for clients without a cookie, or `None` if there is none.
    pub(super) fn unvalidated(&self) -> Option<Allowance> {
        let unvalidated = match self.cookies {
            CookiePolicy::UnderLoad { unvalidated } => unvalidated,
            CookiePolicy::Automatic => {
                // Small servers still admit one or two unvalidated clients at a time.
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

    /// Clamps `mtu` to the range allowed for a peer at this address.
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
    /// Returns the identity of this peer as a server, if configured.
    pub(crate) fn server_identity(&self) -> Option<&ServerIdentity> {
        self.security.as_ref()?.server.as_ref()
    }

    /// Returns true if reply 1 contains a public key.
    pub(crate) fn has_server_key(&self) -> bool {
        self.server_identity().is_some()
    }

    /// Returns true if plain clients are refused.
    pub(crate) fn requires_security(&self) -> bool {
        self.server_identity().is_some_and(ServerIdentity::refuses_plain)
    }

    /// Returns the security fields of reply 1; `field` holds the public key.
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

/// The size of the public key in reply 1, in bytes.
#[cfg(not(feature = "secure"))]
const PUBLIC_KEY_FIELD: usize = 64;

// Without the feature `secure` a configuration has no keys.
#[cfg(not(feature = "secure"))]
impl Config {
    /// Returns true if reply 1 contains a public key.
    pub(crate) const fn has_server_key(&self) -> bool {
        false
    }

    /// Returns true if plain clients are refused.
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

/// RakNet as a [`Protocol`](crate::endpoint::Protocol) of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RakNet;

/// The options of a single connection; for unset options the configuration applies.
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
    /// In a plain connection it is sent unencrypted. `Debug` omits it.
    pub password: &'p [u8],
    /// The server key to trust. The connection is then secure, or the attempt fails.
    ///
    /// Default: none, for a plain connection. It requires [`security`](super::Config::security) in the configuration.
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The key by which this client identifies itself in a secure connection.
    ///
    /// Default: [`Security::identity`](super::Security::identity). It requires `trust`.
    #[cfg(feature = "secure")]
    pub identity: Option<&'p StaticKey>,
    /// Application data for the server, encrypted and bound to the identity.
    ///
    /// Its length is 0 to [`MAX_IDENTITY_DATA`](crate::secure::MAX_IDENTITY_DATA) bytes. The server reads it as
    /// [`ClientIdentity::data`](crate::secure::ClientIdentity::data). It requires an identity, in these options or in
    /// the configuration.
    #[cfg(feature = "secure")]
    pub identity_data: &'p [u8],
    /// The only protocol version to offer.
    ///
    /// Default: the version that this server named last (feature `alloc`), or else the version in the configuration. If
    /// the server then names another version, the attempt continues with that version.
    pub protocol_version: Option<u8>,
    /// The timeout of the attempt, from `connect` to the open connection.
    ///
    /// The first request is retransmitted during the whole time. Default: the first request is sent for `interval`
    /// times (`attempts` + 1), or for 21 s once the server has named another version. The rest of the handshake then
    /// has the configuration's `handshake_timeout`.
    pub connect_timeout: Option<Duration>,
    /// The number of retransmissions of the first request
    /// ([`Config::connect_attempts`](super::Config::connect_attempts)).
    pub attempts: Option<u8>,
    /// The interval between transmissions of the first request; values above 71 minutes are clamped.
    pub interval: Option<Duration>,
    /// The timeout of the open connection ([`Config::timeout`](super::Config::timeout)).
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
    /// Creates options for a connection that presents a connect token.
    ///
    /// The client trusts only the key of `server`, one of the token's servers. `identity` must be the client key for
    /// which the token was issued. Resolve [`TokenServer::name`] to an address yourself.
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

/// True if peers may connect to this one (feature `server`).
pub(crate) const SERVER: bool = cfg!(feature = "server");

/// True if this peer sends and receives messages without a connection (feature `unconnected`).
pub(crate) const UNCONNECTED: bool = cfg!(feature = "unconnected");

/// True if there are channels beyond those stored in the connection itself (feature `full`).
pub(crate) const FAR_CHANNELS: bool = cfg!(feature = "full");

/// True if buffered messages share blocks (feature `full`).
pub(crate) const PACKING: bool = cfg!(feature = "full");

/// True if messages may be longer than a datagram (feature `full`).
pub(crate) const SPLITTING: bool = cfg!(feature = "full");

/// True if messages have priorities (feature `full`).
pub(crate) const PRIORITIES: bool = cfg!(feature = "full");

/// Returns the table size `room` if a feature (`part`) is enabled, or else 1, the minimum.
pub(crate) const fn room(part: bool, room: usize) -> usize {
    if part { room } else { 1 }
}
