//! The model: what a relay can be configured with.
//!
//! Each field is one option, with a row in [`OPTIONS`](super::OPTIONS) for its flag, its unit and its documentation. A
//! test fails when the two disagree.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use rakwire::wire::IP_UDP_OVERHEAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Table;

use crate::admission::AllowedOrigin;
use crate::flow::{FlowLimits, Rate, Source};
use crate::listen::ListenAddress;
use crate::protocol::{LARGEST_PAYLOAD, ProtocolKind};
use crate::syntax;
use crate::syntax::duration;
use crate::target::{HostPort, TargetName, TargetSpec};

/// The longest payload of a UDP datagram over IPv4.
pub const UDP_PAYLOAD_MAX: usize = 65_507;

/// The configuration of a relay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// The address to listen on, or a name with all of its addresses. Port 0 picks a free one.
    pub listen: ListenAddress,
    /// A directory of static files to serve at `/`, with an `index.html`.
    pub serve: Option<PathBuf>,
    /// A file for the id of the process, for `rakwire-relay reload`.
    pub pid_file: Option<PathBuf>,
    /// How often the names of targets are resolved again.
    #[serde(with = "duration")]
    pub resolve_interval: Duration,
    /// How long a shutdown waits for clients.
    #[serde(with = "duration")]
    pub drain_timeout: Duration,
    /// The game servers that clients can reach.
    pub targets: BTreeMap<TargetName, Target>,
    /// Who may connect.
    pub admission: AdmissionConfig,
    /// Signed tokens.
    pub tokens: TokensConfig,
    /// The limits of the whole relay and of each client.
    pub limits: Limits,
    /// The shares of addresses in the clients.
    pub clients: AddressLimits,
    /// TLS.
    pub tls: TlsConfig,
    /// WebTransport.
    pub webtransport: WebTransportConfig,
    /// The front for clients with UDP of their own.
    pub udp: UdpConfig,
    /// Data channels of WebRTC.
    pub webrtc: WebRtcConfig,
    /// Where game servers announce themselves.
    pub discovery: DiscoveryConfig,
    /// The admin address.
    pub admin: AdminConfig,
    /// The log.
    pub log: LogConfig,
}

impl Config {
    /// A relay on `listen` without targets.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen: listen.into(), ..Self::default() }
    }

    /// Adds a game server with the default settings, or replaces the one of the same name.
    #[must_use]
    pub fn with_target(mut self, target: TargetSpec) -> Self {
        self.targets.insert(target.name, Target::new(target.address));
        self
    }

    /// The configuration as a table. Options that are not set are missing in it.
    pub(super) fn to_table(&self) -> Table {
        // All keys are texts, which is all that could fail.
        Table::try_from(self).unwrap_or_default()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)).into(),
            serve: None,
            pid_file: None,
            resolve_interval: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(5),
            targets: BTreeMap::new(),
            admission: AdmissionConfig::default(),
            tokens: TokensConfig::default(),
            limits: Limits::default(),
            clients: AddressLimits::default(),
            tls: TlsConfig::default(),
            webtransport: WebTransportConfig::default(),
            udp: UdpConfig::default(),
            webrtc: WebRtcConfig::default(),
            discovery: DiscoveryConfig::default(),
            admin: AdminConfig::default(),
            log: LogConfig::default(),
        }
    }
}

/// The most addresses of a game server beside its first.
pub(crate) const SPARE_ADDRESSES_MAX: usize = 7;

/// Reads the further addresses of a game server, of which there are a few.
fn spare_addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostPort>, D::Error> {
    let addresses = Vec::<HostPort>::deserialize(deserializer)?;
    if addresses.len() > SPARE_ADDRESSES_MAX {
        let count = addresses.len();
        return Err(D::Error::custom(format_args!(
            "{count} further addresses are too many: write {SPARE_ADDRESSES_MAX} at most"
        )));
    }
    Ok(addresses)
}

/// A game server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Target {
    /// Its address.
    pub address: HostPort,
    /// Further addresses of it, for new flows while the one before does not answer.
    #[serde(default, deserialize_with = "spare_addresses")]
    pub spare_addresses: Vec<HostPort>,
    /// Whether a host name may resolve to a loopback or private address. An address that is written as a number, and
    /// `localhost`, may always be one.
    #[serde(default)]
    pub allow_private: bool,
    /// What the relay knows of its protocol.
    #[serde(default)]
    pub kind: ProtocolKind,
    /// The source addresses of datagrams to it.
    #[serde(default)]
    pub source: TargetSource,
    /// Whether the first datagrams of a client carry its address in a PROXY protocol v2 header.
    #[serde(default)]
    pub proxy_protocol: bool,
    /// How long the flow of a client that was lost is kept for it; zero keeps none.
    #[serde(default = "Target::resume_within", with = "duration")]
    pub resume_within: Duration,
    /// The age at which a datagram that waits for a client is dropped.
    #[serde(default = "Target::queue_age", with = "duration")]
    pub queue_age: Duration,
    /// The most bytes that wait for a client; above it the oldest datagrams are dropped.
    #[serde(default = "Target::queue_bytes")]
    pub queue_bytes: NonZeroUsize,
}

impl Target {
    /// A game server with the default settings.
    #[must_use]
    pub const fn new(address: HostPort) -> Self {
        Self {
            address,
            spare_addresses: Vec::new(),
            allow_private: false,
            kind: ProtocolKind::Raw,
            source: TargetSource::Shared,
            proxy_protocol: false,
            resume_within: Self::resume_within(),
            queue_age: Self::queue_age(),
            queue_bytes: Self::queue_bytes(),
        }
    }

    const fn resume_within() -> Duration {
        Duration::from_secs(30)
    }

    const fn queue_age() -> Duration {
        Duration::from_secs(1)
    }

    const fn queue_bytes() -> NonZeroUsize {
        const { NonZeroUsize::new(256 * 1024).expect("it is not zero") }
    }
}

/// The source addresses of datagrams to a game server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TargetSource {
    /// The address of the relay, with a port for each client.
    #[default]
    Shared,
    /// An address of 127.0.0.0/8 for each client, for a game server on the same machine.
    LoopbackPool,
}

impl From<TargetSource> for Source {
    fn from(source: TargetSource) -> Self {
        match source {
            TargetSource::Shared => Self::Shared,
            TargetSource::LoopbackPool => Self::LoopbackPool,
        }
    }
}

/// Who may connect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AdmissionConfig {
    /// The web pages that may connect. May be empty only with `allow_any_origin`, or if the relay listens on a
    /// loopback address and trusts no proxy. Then pages of this machine may connect, and clients that are not browsers.
    pub allow_origins: Vec<AllowedOrigin>,
    /// Whether every page may connect, and clients that are not browsers.
    pub allow_any_origin: bool,
    /// The proxies that are trusted to name the address of a client. With one, `allow_origins` or `allow_any_origin` is
    /// needed.
    #[serde(deserialize_with = "syntax::networks")]
    pub trusted_proxies: Vec<IpNet>,
    /// The header in which trusted proxies name the client.
    pub forwarded_header: ForwardedHeader,
    /// Whether connections from trusted proxies begin with a PROXY protocol v2 header.
    pub proxy_protocol: bool,
    /// A file of banned addresses and networks, one per line.
    pub bans: Option<PathBuf>,
    /// Addresses to which the limits per address and prefix do not apply. They apply to trusted proxies nevertheless,
    /// which stand for clients whose address is not known.
    #[serde(deserialize_with = "syntax::networks")]
    pub exempt: Vec<IpNet>,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        let loopback = [
            IpNet::new_assert(Ipv4Addr::new(127, 0, 0, 0).into(), 8),
            IpNet::new_assert(Ipv6Addr::LOCALHOST.into(), 128),
        ];
        Self {
            allow_origins: Vec::new(),
            allow_any_origin: false,
            trusted_proxies: Vec::new(),
            forwarded_header: ForwardedHeader::default(),
            proxy_protocol: false,
            bans: None,
            exempt: loopback.into(),
        }
    }
}

/// The header in which a trusted proxy names the client. The others are ignored: a proxy passes on what it does not set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// None: the client is the peer of the TCP connection, or the one of its PROXY protocol header.
    None,
}

/// Signed tokens. With at least one key every client needs a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TokensConfig {
    /// Files with the keys that verify tokens: Ed25519 public keys, or HMAC-SHA256 secrets.
    pub keys: Vec<PathBuf>,
    /// Whether a token admits once only.
    pub single_use: bool,
    /// The longest time to its expiry that a token may have.
    #[serde(with = "duration")]
    pub max_lifetime: Duration,
    /// By how much the clocks of the issuer and the relay may differ.
    #[serde(with = "duration")]
    pub leeway: Duration,
}

impl Default for TokensConfig {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            single_use: false,
            max_lifetime: Duration::from_secs(60 * 60),
            leeway: Duration::from_secs(5),
        }
    }
}

/// Limits on the resources that clients can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of connected clients.
    pub max_clients: usize,
    /// The longest datagram of a client, in bytes of payload; at most [`UDP_PAYLOAD_MAX`]. Of a target with
    /// [`ProtocolKind::RakNet`] it may be up to 28 bytes longer, but not longer than 1,492 bytes for that.
    pub max_datagram: usize,
    /// The length of the queue in each direction of a client; a full queue drops its oldest datagram.
    pub queue: NonZeroUsize,
    /// How many datagrams a client may send per second; zero is no limit.
    pub datagrams_per_second: usize,
    /// How many bytes of payload a client may send per second; zero is no limit.
    pub bytes_per_second: usize,
    /// How many bytes of payload all clients together may send per second, and how many they may be sent; zero is no limit.
    pub total_bytes_per_second: usize,
    /// How long a session can be without a datagram in either direction.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    /// The interval of pings. A client that sends nothing for three of them is disconnected.
    #[serde(with = "duration")]
    pub ping_interval: Duration,
    /// How long a TCP connection may take to send the header of a request, from its start or from the previous response.
    #[serde(with = "duration")]
    pub header_timeout: Duration,
    /// How long a client may take no byte while data wait for it.
    #[serde(with = "duration")]
    pub write_stall_timeout: Duration,
}

impl Limits {
    /// The maximum number of TCP connections, including those of clients.
    ///
    /// Twice the number of clients, so that a full relay can still reject others with a close code, and some more for the
    /// static files of a small relay.
    #[must_use]
    pub const fn max_connections(&self) -> usize {
        self.max_clients.saturating_mul(2).saturating_add(64)
    }

    /// The limits of a flow to a target.
    pub(crate) fn of_flow(&self, target: &Target) -> FlowLimits {
        FlowLimits {
            max_datagram: self.longest_datagram(target.kind),
            queue: self.queue,
            queue_bytes: target.queue_bytes,
            queue_age: target.queue_age,
            idle_timeout: self.idle_timeout,
            ping_interval: self.ping_interval,
            resume_within: target.resume_within,
            rate: self.rate(),
        }
    }

    /// The longest datagram of a client whose target speaks this protocol. RakNets count the headers below their datagrams
    /// differently, some not at all, so that of RakNet a datagram may be as long as the MTU that the relay lets both ends agree on.
    pub(crate) fn longest_datagram(&self, kind: ProtocolKind) -> usize {
        match kind {
            ProtocolKind::RakNet => {
                self.max_datagram.max(usize::from(self.payload_max().saturating_add(IP_UDP_OVERHEAD)))
            }
            ProtocolKind::GameProtocol | ProtocolKind::Raw => self.max_datagram,
        }
    }

    /// The longest datagram of RakNet's handshake, without IP and UDP headers.
    pub(crate) fn payload_max(&self) -> u16 {
        u16::try_from(self.max_datagram).unwrap_or(LARGEST_PAYLOAD).min(LARGEST_PAYLOAD)
    }

    /// How much a client may send; `None` is no limit.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let datagrams = NonZeroUsize::new(self.datagrams_per_second);
        let bytes = NonZeroUsize::new(self.bytes_per_second);
        let has_limit = datagrams.is_some() || bytes.is_some();
        let unlimited = NonZeroUsize::MAX;
        has_limit
            .then(|| Rate { datagrams: datagrams.unwrap_or(unlimited), bytes: bytes.unwrap_or(unlimited) })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_clients: 1000,
            max_datagram: 1472,
            queue: const { NonZeroUsize::new(256).expect("256 is not zero") },
            datagrams_per_second: 0,
            bytes_per_second: 0,
            total_bytes_per_second: 0,
            idle_timeout: Duration::from_secs(60),
            ping_interval: Duration::from_secs(15),
            header_timeout: Duration::from_secs(10),
            write_stall_timeout: Duration::from_secs(20),
        }
    }
}

/// The shares of one address, and of one prefix, in the clients. Zero means no limit.
///
/// An address is an IPv4 address or an IPv6 /64, the least that a host has; a prefix is an IPv4 /24 or an IPv6 /56, what
/// one customer of a provider commonly has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AddressLimits {
    /// The most at a time from one address.
    pub per_address: u32,
    /// The most at a time from one prefix.
    pub per_prefix: u32,
    /// How many new ones per minute from one address, in the long run.
    pub rate_per_address: u32,
    /// How many new ones at once from one address.
    pub burst_per_address: u32,
    /// How many new ones per minute from one prefix, in the long run.
    pub rate_per_prefix: u32,
    /// How many new ones at once from one prefix.
    pub burst_per_prefix: u32,
}

impl AddressLimits {
    /// The limits for TCP connections, those of clients included: four times as many, because a browser opens up to six
    /// connections for the files of a page, and a rejected client needs one too.
    #[must_use]
    pub const fn for_connections(&self) -> Self {
        const FACTOR: u32 = 4;
        Self {
            per_address: self.per_address.saturating_mul(FACTOR),
            per_prefix: self.per_prefix.saturating_mul(FACTOR),
            rate_per_address: self.rate_per_address.saturating_mul(FACTOR),
            burst_per_address: self.burst_per_address.saturating_mul(FACTOR),
            rate_per_prefix: self.rate_per_prefix.saturating_mul(FACTOR),
            burst_per_prefix: self.burst_per_prefix.saturating_mul(FACTOR),
        }
    }

    /// The limits for files: sixteen times those for connections, because a page has many, and others at the same address load it too.
    #[must_use]
    pub const fn for_files(&self) -> Self {
        self.for_connections().for_connections().for_connections()
    }
}

impl Default for AddressLimits {
    /// Enough for a school behind one address, and for a few reconnects of all of them.
    fn default() -> Self {
        Self {
            per_address: 64,
            per_prefix: 256,
            rate_per_address: 60,
            burst_per_address: 64,
            rate_per_prefix: 240,
            burst_per_prefix: 256,
        }
    }
}

/// TLS: at most one of files, ACME and a self-made certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TlsConfig {
    /// A PEM file with the chain of certificates.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the private key.
    pub key: Option<PathBuf>,
    /// Host names for which a certificate is obtained by ACME.
    pub acme_domains: Vec<String>,
    /// The mail address for the ACME account.
    pub acme_contact: Option<String>,
    /// The directory where the ACME account and certificates are kept.
    pub acme_cache: Option<PathBuf>,
    /// The URL of the ACME directory, if it is not Let's Encrypt.
    pub acme_directory: Option<String>,
    /// Whether to make a certificate at the start, for development.
    pub self_signed: bool,
}

/// WebTransport, which carries datagrams over UDP as QUIC does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebTransportConfig {
    /// Whether it is served.
    pub mode: WebTransportMode,
    /// The UDP address to listen on, if not the address and port of [`Config::listen`].
    #[serde(deserialize_with = "syntax::listen")]
    pub listen: Option<SocketAddr>,
    /// The UDP port that pages are told, of data channels too, if not the one of the relay. Pages that ask through a trusted
    /// proxy are told none without it.
    pub public_port: Option<NonZeroU16>,
}

/// Whether WebTransport is served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WebTransportMode {
    /// If its UDP port is free.
    #[default]
    Auto,
    /// Yes; the relay does not start without its UDP port.
    On,
    /// No.
    Off,
}

/// The front for clients with UDP of their own, before one of the targets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct UdpConfig {
    /// The address to listen on; without it there is no front. Port 0 picks a free one.
    #[serde(deserialize_with = "syntax::listen")]
    pub listen: Option<SocketAddr>,
    /// The target behind it, if there are several.
    pub target: Option<TargetName>,
    /// A file with the keys of cookies. Without it the key is random.
    pub cookie_keys: Option<PathBuf>,
    /// Whether clients of the front, which cannot show a token, are let in although others need one.
    pub allow_without_token: bool,
}

impl UdpConfig {
    /// Whether the front has the port of what listens on `address`, and they share it.
    pub(crate) fn shares(&self, address: SocketAddr) -> bool {
        self.listen == Some(address) && address.port() != 0
    }

    /// Whether the front listens where nothing else can listen on `address` then.
    pub(crate) fn is_in_the_way_of(&self, address: SocketAddr) -> bool {
        self.listen.is_some_and(|front| overlap(front, address) && !self.shares(address))
    }
}

/// Whether two sockets cannot be at these addresses at a time. Port 0 is a free one.
pub(crate) fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    // `[::]` is every address of IPv4, too.
    let has_all = |all: IpAddr, ip: IpAddr| all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4());
    let is_same = ip == other_ip || has_all(ip, other_ip) || has_all(other_ip, ip);
    is_same && one.port() == other.port() && one.port() != 0
}

/// Data channels of WebRTC, on the UDP port with the number of the relay's TCP port.
///
/// Browsers do not tell which page has opened one. So there are data channels only if every page may connect, if clients
/// need a token, or with `allow_without_origin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebRtcConfig {
    /// Whether there are data channels.
    pub enabled: bool,
    /// A PEM file with the certificate and its private key, which is made if it is not there. Without it they are made at
    /// each start, and pages cannot keep the fingerprint.
    pub certificate: Option<PathBuf>,
    /// Whether pages may connect of which nobody knows where they come from, although others may not.
    pub allow_without_origin: bool,
}

impl Default for WebRtcConfig {
    fn default() -> Self {
        Self { enabled: true, certificate: None, allow_without_origin: false }
    }
}

/// Where game servers announce themselves.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DiscoveryConfig {
    /// The URL of the store, Redis or Valkey. It may have a password, which `Debug` leaves out.
    pub store: Option<String>,
    /// A file in PEM form with the authority of its certificate; without it what the system trusts.
    pub ca: Option<PathBuf>,
    /// How often it is looked into.
    #[serde(with = "duration")]
    pub interval: Duration,
    /// The networks that are not public and that announced servers may be in.
    #[serde(deserialize_with = "syntax::networks")]
    pub networks: Vec<IpNet>,
}

impl fmt::Debug for DiscoveryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiscoveryConfig")
            .field("store", &self.store.as_deref().map(without_password))
            .field("ca", &self.ca)
            .field("interval", &self.interval)
            .field("networks", &self.networks)
            .finish()
    }
}

/// A URL whose password, if it has one, is `***`.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "***".to_owned() };
    // A password may have any sign that is not escaped: the last @ ends it, and whatever may be one is left out.
    match rest.rfind('@') {
        Some(at) => {
            let user = rest[..at].split([':', '/']).next().unwrap_or_default();
            format!("{scheme}://{user}:***@{}", &rest[at + 1..])
        }
        // In the query of a path to a socket.
        None => match rest.split_once('?') {
            Some((path, _)) => format!("{scheme}://{path}?***"),
            None => url.to_owned(),
        },
    }
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self { store: None, ca: None, interval: Duration::from_secs(2), networks: Vec::new() }
    }
}

/// The admin address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AdminConfig {
    /// The address for metrics and health.
    #[serde(deserialize_with = "syntax::listen")]
    pub listen: Option<SocketAddr>,
    /// The Unix socket for orders of the operator.
    pub socket: Option<PathBuf>,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LogConfig {
    /// The form of lines.
    pub format: LogFormat,
    /// The level, for all or for one part as in `info,hyper=debug`. `RUST_LOG` takes precedence.
    pub level: String,
    /// Whether client addresses are written as a keyed hash.
    pub hash_addresses: bool,
    /// The most lines per second; more are counted and left out.
    pub lines_per_second: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            level: "info".to_owned(),
            hash_addresses: false,
            lines_per_second: 100,
        }
    }
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}
