//! How a peer behaves: everything but its memory. Its configuration, how one connection is opened, and the features of the
//! crate as constants.

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

/// The versions of the protocol that a server accepts, at most eight.
pub type ProtocolVersions = Vec<u8, 8>;

/// Whether a client must give a cookie back before the server keeps anything of it (docs/raknet.md#cookies).
///
/// A cookie sets the security flag of reply 1, which has two meanings. Minecraft Bedrock and the original as it is mostly
/// built read a cookie behind it. The original built with its own security (`LIBCAT_SECURITY`) also reads a public key,
/// even for a connection without security; it finds none, and gives up with `ID_PUBLIC_KEY_MISMATCH`. Before reply 1
/// nothing tells the two kinds apart. [`UnderLoad`](Self::UnderLoad) lets such clients in as long as few clients come at
/// once, and [`Off`](Self::Off) always.
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
    /// [`UnderLoad`](Self::UnderLoad) with an eighth of [`max_incoming`](Config::max_incoming) as `unvalidated`, at least 2
    /// (1 below 8 places) and at most 16: every client comes in as long as few come at once, those of
    /// rust-raknet, jsp-raknet, raknet-node and Cloudburst Network too, which know no cookies. `docs/attacks.md` (A4) says
    /// what forged addresses get then: never more than so many places.
    #[default]
    Automatic,
    /// Reply 1 carries a keyed cookie; request 2 without it is dropped, counted as
    /// [`MissingCookie`](super::DropReason::MissingCookie). A forged source leaves no trace.
    Required,
    /// Reply 1 carries a cookie only while the server is under load, as TCP does it with SYN cookies: `unvalidated` clients
    /// may be let in without one, and within each [`handshake_timeout`](Config::handshake_timeout) as many again, one
    /// after the other, as long as fewer than `unvalidated` are there that have neither given a cookie back nor answered a ping
    /// (docs/raknet.md#address-validation). A client that has answered one counts no longer. 0 is [`Required`](Self::Required).
    ///
    /// Until then a forged source is treated as with `Off`: it can have `unvalidated` places, each for ten seconds if
    /// nothing more is forged, and have a victim sent three times its bytes for each of them (`docs/attacks.md`, A4). Then
    /// it gets nothing. During such a flood clients that know cookies are let in as always, and clients that do not are
    /// turned away. A server that expects such clients sets [`max_incoming`](Config::max_incoming) to its players and
    /// twice `unvalidated`.
    ///
    /// A full server ends half-open connections for newcomers. One without a cookie ends only connections that were made
    /// without one, and each counts among the `unvalidated`.
    UnderLoad {
        /// How many clients are let in without a validated address.
        unvalidated: u16,
    },
    /// No cookie and no flag, for clients that do not know the form: those of rust-raknet, and of the original built with
    /// its own security. A forged source can fill the connection table with half-open entries, each for ten seconds and
    /// at most [`max_half_open_per_network`](Config::max_half_open_per_network) of a network, and have a victim sent three times its
    /// bytes (`docs/attacks.md`, A4).
    Off,
}

/// The longest IP packet of Ethernet in bytes (RFC 894).
const ETHERNET_MTU: u16 = 1_500;

/// How many clients [`CookiePolicy::Automatic`] lets in without a cookie, at most.
const MOST_UNVALIDATED: u16 = 16;

/// What a client writes where the protocol wants the server's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialledAddress {
    /// The address that was given to `connect`.
    #[default]
    Known,
    /// The unassigned address: the datagrams go through a relay, and only that knows where to.
    Unknown,
}

/// How a connection finds out how much the path carries. `docs/congestion.md` has both measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// Follows the queueing delay of the path: losses without a queue count as random and do not reduce the window. The
    /// default, unless the crate is built without the feature `delay-based`.
    #[cfg(feature = "delay-based")]
    #[cfg_attr(feature = "delay-based", default)]
    DelayBased,
    #[cfg_attr(not(feature = "delay-based"), default)]
    /// Takes every loss for congestion and halves the window (RFC 6582).
    NewReno,
}

/// How a peer behaves. [`Config::new`] fills in what the original does; change the fields that should differ.
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
    /// The identity of this peer; must be random, since servers refuse a GUID that they know.
    pub guid: Guid,
    /// The key of cookies and hash tables; must be random and stay secret. `Debug` does not show it.
    pub secret: [u8; 16],
    /// The protocol version that `connect` announces first; the server may name another one
    /// ([`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version)). Default: 6, that of the original; Minecraft Bedrock of today has
    /// 11 ([`Config::bedrock`]).
    pub protocol_version: u8,
    /// Whether `connect` asks a server for its version before the first request, with an unconnected ping: some servers hear
    /// nothing from an address for 10 to 20 s after a request with another version than theirs. It costs a round trip, or
    /// where no pong comes the `connect_interval` (a quarter of a shorter `connect_timeout`), and is left out where the
    /// version is known: if `protocol_version` is above 6, if the server has named its own before, with
    /// [`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version), and for secure connections. It needs
    /// the feature `unconnected`; without the feature `alloc` no version is remembered, so each attempt asks. Default: no; the
    /// drivers for sockets of a system do, whose defaults are [`Protocol::config`](crate::endpoint::Protocol::config). That for
    /// microcontrollers does not, since the question takes flash and a round trip for each attempt there, and firmware
    /// usually knows the version of its server. A server that answers a wrong version is heard in any case: the attempt goes
    /// on with the version that it names, or fails with [`ConnectFailure::IncompatibleProtocol`](super::ConnectFailure) if the
    /// application has insisted.
    pub learn_version: bool,
    /// The protocol versions that a server accepts, at most eight. Default: 6, 10 and 11, those of the original and of
    /// current versions of Minecraft Bedrock.
    pub accepted_versions: ProtocolVersions,
    /// How many connections others may open, within the slots that there are. Default: 0, a pure client, so that a
    /// peer is a server only by intent.
    pub max_incoming: u16,
    /// The most blocks that one connection may hold for what it sends, and as many for what it receives; never more
    /// than half of all. Default: none, since a connection is sure of its part in any case: half of the blocks are
    /// guaranteed to the connections, and what one borrows of the others is bounded ([`Resources`](super::Resources)). A
    /// server whose clients need little sets this to what they need, so that a few of them leave more than that to all.
    pub connection_blocks: Option<u32>,
    /// How many connections of one network (24 bits of IPv4, 64 of IPv6) may be half open when a client without a cookie
    /// asks for another one; those that give a cookie back are not limited. Default: 8, enough for players behind one
    /// address who join together, and too few to take the slots of a server with forged addresses.
    pub max_half_open_per_network: u16,
    /// How many connections one address (64 bits of IPv6) may have open, of those that others open. Default: three quarters
    /// of [`max_incoming`](Self::max_incoming), so that a school or a carrier's NAT may fill most of a server, but not
    /// all of it; no limit below 16 places, which one household may fill. Addresses that the Internet does not pass on (loopback, private, link-local and unique local ones) are
    /// not limited, so that a relay or a gateway of containers brings as many clients as there are places.
    pub max_per_address: Option<u16>,
    /// The same for one network (24 bits of IPv4, 48 of IPv6). Default: seven eighths of
    /// [`max_incoming`](Self::max_incoming).
    pub max_per_network: Option<u16>,
    /// How long an address must wait between two connections, if at all; addresses of this machine never wait. Default:
    /// none, as in the original, whose interval is 100 ms where it is switched on (`docs/raknet.md#request-2`).
    pub connection_interval: Option<Duration>,
    /// How many pongs a second all others get together; 0 answers no ping. Default: 1,000, which is at most 432 KB of
    /// payload a second, however many addresses are forged.
    pub pongs_per_second: u16,
    /// How many pongs a second one network (24 bits of IPv4, 64 of IPv6) gets. Default: 20, a fiftieth of all, so that
    /// one network cannot have all pongs. Within the network an address is sure of a quarter of them, for which half a
    /// second's worth may be given in advance, and gets the rest if the others leave it.
    pub pongs_per_network: u16,
    /// What stands before the data of pongs, in those that this peer sends and in those that it receives. Default: what
    /// goes with the version. A server writes the length before the data, as Minecraft Bedrock does, if it accepts only
    /// versions above 6, or some and advertises what begins like a server of Minecraft Bedrock (`MCPE;` or `MCEE;`), and
    /// otherwise none; a client takes the length away if the data begin with it (`docs/raknet.md#advertisements`).
    /// Advertisements and the data of [`Event::Pong`](super::Event::Pong) are always without it.
    pub pong_framing: Option<PongFraming>,
    /// Whether clients must prove their address. Default: once several have come at about the same time without a proof, so
    /// that forged addresses take few slots.
    pub cookies: CookiePolicy,
    /// What a client writes where the protocol wants the server's address. Default: the address, as the original does.
    pub dialled_address: DialledAddress,
    /// What carries the datagrams. Default: datagrams. [`Peer::set_carrier`](super::Peer::set_carrier) changes it.
    pub carrier: Carrier,
    /// The largest MTU that is offered or accepted, 576 to 1492 bytes with 28 bytes of IP and UDP headers. Default:
    /// 1492, the largest one of the original (`docs/raknet.md#connection-attempts`).
    pub mtu: u16,
    /// The longest IP packet in bytes that the network interface sends, at least 576 (1,280 for IPv6); the MTU of each connection
    /// stays within it, with the headers of IPv4 or IPv6. Default: 1,500, that of Ethernet. Systems find out by themselves
    /// when the interface carries less (`docs/raknet.md#path-mtu`); drivers without such a system set it.
    pub interface_mtu: u16,
    /// How many addresses "connection request accepted" and "new incoming connection" list, at most 20. Default: none,
    /// which goes by the version that the two peers speak: 10 up to 8, as in the original, and 20 from 9 on, as in
    /// Minecraft Bedrock, whose peers often read no other number (`docs/raknet.md#internal-addresses`).
    pub address_count: Option<u8>,
    /// How often a client repeats its first request, at least 3: a third of them at each MTU. Default: 12, as in the
    /// original, which sends it once more than this (`docs/raknet.md#connection-attempts`).
    pub connect_attempts: u8,
    /// The time between two first requests, at most 71 minutes; more counts as that. Default: 500 ms, as in the
    /// original (`docs/raknet.md#connection-attempts`).
    pub connect_interval: Duration,
    /// How long the handshake inside the connection may take. Default: 10 s, after which a slot that is not connected
    /// is free again (`docs/raknet.md#request-2`).
    pub handshake_timeout: Duration,
    /// How long a peer may stay silent while something that it must acknowledge is under way: whole milliseconds,
    /// rounded up, and at most 49 days. Default: 10 s, as in the original.
    pub timeout: Duration,
    /// How long `disconnect` waits for what was sent before to be acknowledged. Default: 5 s, half of the default
    /// `timeout`: an application that ends waits less than for a peer that has fallen silent.
    pub close_timeout: Duration,
    /// The time between two pings of a connection, if any. Default: 5 s, as in the original.
    pub ping_interval: Option<Duration>,
    /// How long an acknowledgement may wait for others. Default: 10 ms, as in the original; the timeouts of other peers
    /// allow for it.
    pub ack_delay: Duration,
    /// After how many parts of a message [`Event::Progress`](super::Event::Progress) tells how far it has come.
    /// Default: 0, which is never, as in the original.
    pub progress_interval: u32,
    /// The longest message that `send` takes, in bytes, as far as the memory of the connection goes
    /// ([`Peer::max_message_len`](super::Peer::max_message_len)). Default: 4,000,000, which each peer with the memory of
    /// [`Capacity::for_connections`](super::Capacity::for_connections) can receive at any MTU. A peer whose messages go to
    /// others with more memory sets it higher.
    pub max_message_len: u32,
    /// How long an unreliable message may wait to be sent before it is dropped. Default: 1 s, as in the original.
    pub unreliable_timeout: Duration,
    /// The shortest time after which a datagram counts as lost without any other sign. Default: 50 ms, more than
    /// the 30 ms that a timeout allows for delayed acknowledgements.
    pub min_resend_timeout: Duration,
    /// The longest such time. Default: 2 s, as in the original (`docs/raknet.md#round-trip`).
    pub max_resend_timeout: Duration,
    /// How often that time may double while nothing comes back, at most 16. Default: 4, the exponential backoff of RFC
    /// 6298 section 5.5 with a bound; 0 is what the original does.
    pub resend_backoff: u8,
    /// How much may be in flight. Default: [`CongestionControl::DelayBased`] where the feature `delay-based` is built
    /// in, which `docs/congestion.md` compares with NewReno.
    pub congestion_control: CongestionControl,
    /// Bits a second that each connection may send in datagrams of messages, with IP and UDP headers. Default: none,
    /// which leaves the rate to the congestion control.
    pub outgoing_limit: Option<u64>,
    /// What becomes of messages from peers without a connection. Default: they are refused, since their senders may be
    /// forged.
    pub out_of_band: OutOfBand,
    /// Keys for secure connections, and what a server asks of clients (`docs/secure.md`). Default: none. With the key of a
    /// server each client must prove its address, whatever `cookies` says.
    #[cfg(feature = "secure")]
    pub security: Option<Security>,
    /// How the datagrams of connections without keys are protected.
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

/// How the datagrams of connections without keys are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protection {
    #[default]
    Plain,
    /// The protection of a test.
    #[cfg(test)]
    Test,
}

/// What becomes of messages from peers without a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfBand {
    /// They are dropped and counted: a peer without a connection takes no memory.
    #[default]
    Refuse,
    /// They are told, at most eight at a time; their senders may be forged.
    Accept,
}

impl Config {
    /// A configuration from 32 random bytes, which become the GUID and the secret.
    ///
    /// The bytes must come from a source that nobody can guess: the operating system, `crypto.getRandomValues`, a
    /// hardware generator.
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

    /// The original RakNet 4: protocol 6.
    #[must_use]
    pub fn original(entropy: [u8; 32]) -> Self {
        Self { accepted_versions: versions(&[6]), ..Self::new(entropy) }
    }

    /// Minecraft Bedrock: protocol 11 (10 and 9 are accepted). Its pongs have the length before their data.
    #[must_use]
    pub fn bedrock(entropy: [u8; 32]) -> Self {
        Self { protocol_version: 11, accepted_versions: versions(&[9, 10, 11]), ..Self::new(entropy) }
    }

    /// When clients are asked for a cookie. A server with a key computes for no client whose address may be forged.
    pub(crate) fn cookie_policy(&self) -> CookiePolicy {
        if self.has_server_key() { CookiePolicy::Required } else { self.cookies }
    }

    /// What stands before `data` in the pongs that this peer sends. An unconnected ping does not show what its sender
    /// reads, but the data show for which clients they are meant.
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

    /// Whether the version of a server that nothing is known of is asked for: a pong shows that of Minecraft Bedrock, and
    /// no other.
    pub(super) fn asks_version(&self) -> bool {
        self.learn_version && PongFraming::of_version(self.protocol_version) == PongFraming::Raw
    }

    /// What stands before the data of a pong that arrived.
    pub(crate) fn received_pong_framing(&self, data: &[u8]) -> PongFraming {
        self.pong_framing.unwrap_or_else(|| PongFraming::of(data))
    }

    /// How many clients may be let in without a cookie, where that depends on the load.
    pub(super) fn unvalidated(&self) -> Option<Allowance> {
        let unvalidated = match self.cookies {
            CookiePolicy::UnderLoad { unvalidated } => unvalidated,
            CookiePolicy::Automatic => {
                // Two clients that come at once both come in at small servers, too, as long as most of the places are left.
                (self.max_incoming / 4).clamp(1, 2).max(self.max_incoming / 8).min(MOST_UNVALIDATED)
            }
            CookiePolicy::Required | CookiePolicy::Off => return None,
        };
        Some(Allowance { events: unvalidated, period: self.handshake_timeout })
    }

    /// How many connections may come from one address and from one network.
    pub(super) const fn client_limits(&self) -> ClientLimits {
        ClientLimits::new(self.max_incoming, self.max_per_address, self.max_per_network)
    }

    /// The MTU closest to `mtu` that may be used with a peer at this address.
    pub(crate) fn clamp_mtu(&self, mtu: u16, remote: SocketAddr) -> u16 {
        let (largest, extra) = if remote.is_ipv6() { (MAX_MTU_IPV6, IPV6_EXTRA) } else { (MAX_MTU, 0) };
        mtu.min(self.mtu).min(self.interface_mtu.saturating_sub(extra)).clamp(MIN_MTU, largest)
    }
}

#[cfg(feature = "secure")]
impl Config {
    /// What seals and opens the datagrams of secure connections.
    pub(super) fn cipher(&self) -> &'static dyn DatagramCipher {
        self.security.as_ref().map_or(&RustCrypto, |security| security.cipher)
    }
}

fn versions(list: &[u8]) -> ProtocolVersions {
    Vec::from_slice(list).unwrap_or_default()
}

#[cfg(feature = "secure")]
impl Config {
    /// The key of the server that this peer is, if it has one.
    pub(crate) fn server_identity(&self) -> Option<&ServerIdentity> {
        self.security.as_ref()?.server.as_ref()
    }

    /// Whether reply 1 has a key.
    pub(crate) fn has_server_key(&self) -> bool {
        self.server_identity().is_some()
    }

    /// Whether clients without security are refused.
    pub(crate) fn requires_security(&self) -> bool {
        self.server_identity().is_some_and(ServerIdentity::refuses_plain)
    }

    /// What reply 1 asks the client to give back, with the key in `field`.
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

/// Bytes of the key in reply 1.
#[cfg(not(feature = "secure"))]
const PUBLIC_KEY_FIELD: usize = 64;

// A configuration without security.
#[cfg(not(feature = "secure"))]
impl Config {
    /// Whether reply 1 has a key.
    pub(crate) const fn has_server_key(&self) -> bool {
        false
    }

    /// Whether clients without security are refused.
    pub(crate) const fn requires_security(&self) -> bool {
        false
    }

    /// What reply 1 asks the client to give back.
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

/// How one connection is opened, where that differs from the configuration.
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
    /// What the server asks for, 0 to 255 bytes. It crosses the network in the clear, except in a secure connection.
    /// `Debug` does not show it.
    pub password: &'p [u8],
    /// Whom to take for the server, for a secure connection or none at all. Default: none, for a plain connection. It needs a
    /// configuration with [`security`](super::Config::security).
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The key by which the server knows this client in a secure connection. Default: that of
    /// [`Security::identity`](super::Security::identity). It needs `trust`.
    #[cfg(feature = "secure")]
    pub identity: Option<&'p StaticKey>,
    /// What the server gets with the identity, encrypted with it and bound to it: 0 to
    /// [`MAX_IDENTITY_DATA`](crate::secure::MAX_IDENTITY_DATA) bytes, which
    /// [`ClientIdentity::data`](crate::secure::ClientIdentity::data) has there. It needs an identity, of these options or of the
    /// configuration.
    #[cfg(feature = "secure")]
    pub identity_data: &'p [u8],
    /// The protocol version to announce, and no other. Default: the one that the server named in its last answer (with the
    /// feature `alloc`), or else that of the configuration; and if the server turns out to speak another one, that.
    pub protocol_version: Option<u8>,
    /// How long the attempt may take until the connection is open. Default: what `attempts` and `interval` make of it, or
    /// 21 s after the server named another version, and then the configuration's `handshake_timeout`. The first request
    /// is repeated all that time.
    pub connect_timeout: Option<Duration>,
    /// How often the first request is repeated, at least 3.
    pub attempts: Option<u8>,
    /// The time between two first requests, at most 71 minutes; more counts as that.
    pub interval: Option<Duration>,
    /// How long the other peer may stay silent once the connection is open.
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
    /// Whether the connection is to be secure or none at all.
    pub(crate) const fn wants_security(&self) -> bool {
        #[cfg(feature = "secure")]
        let wants = self.trust.is_some();
        #[cfg(not(feature = "secure"))]
        let wants = false;
        wants
    }
}

#[cfg(feature = "secure")]
impl<'p> ConnectOptions<'p> {
    /// Opens a connection with a connect token: with one of its servers, whose key alone is trusted, as the client with the
    /// key that the token is for. Where [`TokenServer::name`] leads to is for the application to find out.
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

/// Whether others may connect to this peer (feature `server`).
pub(crate) const SERVER: bool = cfg!(feature = "server");

/// Whether this peer pings and talks to others without a connection (feature `unconnected`).
pub(crate) const UNCONNECTED: bool = cfg!(feature = "unconnected");

/// Whether there are more channels than those whose state is part of a connection (feature `channels`).
pub(crate) const FAR_CHANNELS: bool = cfg!(feature = "channels");

/// Whether messages that wait for their turn share blocks (feature `packing`).
pub(crate) const PACKING: bool = cfg!(feature = "packing");

/// Whether messages may be longer than a datagram (feature `splitting`).
pub(crate) const SPLITTING: bool = cfg!(feature = "splitting");

/// Whether there are messages of which only the newest counts (feature `sequencing`).
pub(crate) const SEQUENCING: bool = cfg!(feature = "sequencing");

/// Whether some messages go before others (feature `priorities`).
pub(crate) const PRIORITIES: bool = cfg!(feature = "priorities");

/// `room` if a part is built in; else the least that a table can hold.
pub(crate) const fn room(part: bool, room: usize) -> usize {
    if part { room } else { 1 }
}
