//! The model: the settings of a relay, each defined once.
//!
//! Each row of [`options!`] defines a field. Its doc comment is also the help text of the flag. The row also defines
//! the key in the file, the environment variable, the default, the accepted values, and the line in the documentation.

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

use super::error::{ConfigError, ExposedFile, exposed, file_error, read};
use super::options::OptionKind::{Choice, Switch, Targets, Text, Texts};
use super::options::{DAY, OptionInfo, choices, millis, number, options, secs, time};
use crate::addresses::{HostPort, ListenAddress, TargetName, TargetSpec};
use crate::admission::{AllowedOrigin, Bans, OriginPolicy};
use crate::flow::{FlowLimits, Rate, Source};
use crate::protocol::{LARGEST_PAYLOAD, ProtocolKind};
use crate::syntax;
use crate::syntax::duration;
use crate::token::VerifyingKey;

/// The longest payload of a UDP datagram over IPv4.
pub const UDP_PAYLOAD_MAX: usize = 65_507;

options! {
    /// The configuration of a relay.
    #[derive(Debug, Clone, PartialEq)]
    #[serde(default)]
    pub struct Config[""] {
        /// Address and port to listen on, or a name such as localhost with all of its addresses; port 0 picks a free
        /// one. An address that other machines can reach requires --allow-origin or --allow-any-origin.
        listen: ListenAddress = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)).into(),
            Text("ADDR"), "listen", Restart;
        /// Directory of static files to serve at /. It must have an index.html.
        serve: Option<PathBuf> = None, Text("DIR"), "serve", Restart;
        /// File for the process id, removed when the relay ends.
        pid_file: Option<PathBuf> = None, Text("FILE"), "pid-file", Restart;
        /// Interval at which the host names of targets are resolved again; an open flow keeps its address.
        #[serde(with = "duration")]
        resolve_interval: Duration = secs(60), time(secs(1), DAY), "resolve-interval", Reload;
        /// Time that a shutdown waits for clients to leave.
        #[serde(with = "duration")]
        drain_timeout: Duration = secs(5), time(Duration::ZERO, DAY), "drain-timeout", Reload;
        /// A game server and its name for browsers, as NAME=HOST:PORT[,SETTING=VALUE]...; can be repeated.
        targets: BTreeMap<TargetName, Target> = BTreeMap::new(), Targets, "target", Reload;
    } tables {
        /// Clients that may connect.
        admission: AdmissionConfig;
        /// Signed tokens.
        tokens: TokensConfig;
        /// The limits of the whole relay and of each client.
        limits: Limits;
        /// The limits for the clients of one address and of one prefix.
        clients: AddressLimits;
        /// TLS.
        tls: TlsConfig;
        /// WebTransport.
        webtransport: WebTransportConfig;
        /// The front for native UDP clients.
        udp: UdpConfig;
        /// Data channels of WebRTC.
        webrtc: WebRtcConfig;
        /// The store in which game servers announce themselves.
        discovery: DiscoveryConfig;
        /// The admin address.
        admin: AdminConfig;
        /// The log.
        log: LogConfig;
    }

    /// A game server.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Target["targets.*."] needs {
        /// Address of the game server. Link-local, multicast, metadata and broadcast addresses are refused.
        address: HostPort, Text("HOST:PORT"), "", Reload;
    } and {
        /// Further addresses of the game server. While the address in use is down, new flows go to the next one that is
        /// up, including those of a name with several addresses.
        #[serde(default = "Target::spare_addresses", deserialize_with = "spare_addresses")]
        spare_addresses: Vec<HostPort> = Vec::new(), Texts("HOST:PORT"), "", Reload;
        /// Let the host name resolve to loopback or private addresses; numeric addresses and localhost are exempt.
        #[serde(default = "Target::allow_private")]
        allow_private: bool = false, Switch, "", Reload;
        /// The protocol of the game server, as far as the relay uses it.
        #[serde(default = "Target::kind")]
        kind: ProtocolKind = ProtocolKind::Raw, Choice(ProtocolKind::NAMES), "", Reload;
        /// Source address of datagrams: that of the relay, or one in 127.0.0.0/8 for each client.
        #[serde(default = "Target::source")]
        source: TargetSource = TargetSource::Shared, Choice(TargetSource::NAMES), "", Reload;
        /// Begin the first datagrams of a client with a PROXY protocol v2 header that contains its address.
        #[serde(default = "Target::proxy_protocol")]
        proxy_protocol: bool = false, Switch, "", Reload;
        /// Time that the flow of a lost client is kept for its return; 0s disables it.
        #[serde(default = "Target::resume_within", with = "duration")]
        resume_within: Duration = secs(30), time(Duration::ZERO, millis(3_600_000)), "", Reload;
        /// Age at which a datagram that is queued for a client is dropped.
        #[serde(default = "Target::queue_age", with = "duration")]
        queue_age: Duration = secs(1), time(millis(10), millis(60_000)), "", Reload;
        /// Maximum bytes queued for a client; beyond it the oldest datagrams are dropped.
        #[serde(default = "Target::queue_bytes")]
        queue_bytes: NonZeroUsize = at_least_one(256 * 1024),
            number("bytes", 2048, 16 * 1024 * 1024), "", Reload;
    }

    /// Clients that may connect.
    #[derive(Debug, Clone, PartialEq)]
    #[serde(default)]
    #[allow(rustdoc::bare_urls, reason = "the help of the command line has the same text")]
    pub struct AdmissionConfig["admission."] {
        /// Origins of pages that may connect, such as https://play.example.org; https://*.example.org means all hosts
        /// below example.org, '*' any origin. Without it a relay on a loopback address accepts pages of this machine,
        /// and clients that are not browsers.
        allow_origins: Vec<AllowedOrigin> = Vec::new(), Texts("ORIGIN"), "allow-origin", Reload;
        /// Accept every page, and clients that are not browsers.
        allow_any_origin: bool = false, Switch, "allow-any-origin", Reload;
        /// Addresses or networks of reverse proxies that are trusted to name the address of a client.
        #[serde(deserialize_with = "syntax::networks")]
        trusted_proxies: Vec<IpNet> = Vec::new(), Texts("NETWORK"), "trusted-proxy", Reload;
        /// Header in which trusted proxies name the client. Other headers are ignored.
        forwarded_header: ForwardedHeader = ForwardedHeader::XForwardedFor,
            Choice(ForwardedHeader::NAMES), "forwarded-header", Reload;
        /// Expect a PROXY protocol v2 header at the start of connections of trusted proxies.
        proxy_protocol: bool = false, Switch, "proxy-protocol", Restart;
        /// File with banned addresses and networks, one per line; read again on reload.
        bans: Option<PathBuf> = None, Text("FILE"), "bans", Reload;
        /// Addresses or networks without limits per address and prefix; trusted proxies are never exempt.
        #[serde(deserialize_with = "syntax::networks")]
        exempt: Vec<IpNet> = loopback(), Texts("NETWORK"), "exempt", Reload;
    }

    /// Signed tokens. With at least one key every client needs a token.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct TokensConfig["tokens."] {
        /// Files with keys that verify tokens; with at least one every client needs a token.
        keys: Vec<PathBuf> = Vec::new(), Texts("FILE"), "token-key", Reload;
        /// Admit only one client per token; the token's id is stored until the token expires.
        single_use: bool = false, Switch, "token-single-use", Reload;
        /// Maximum remaining validity of a token.
        #[serde(with = "duration")]
        max_lifetime: Duration = secs(60 * 60),
            time(secs(1), secs(7 * 24 * 60 * 60)), "token-max-lifetime", Reload;
        /// Maximum difference between the clocks of the token issuer and the relay.
        #[serde(with = "duration")]
        leeway: Duration = secs(5), time(Duration::ZERO, secs(300)), "token-leeway", Reload;
    }

    /// Limits on the resources that clients can use.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(default)]
    pub struct Limits["limits."] {
        /// Maximum number of connected clients. The limit for TCP connections, 2 x this + 64, changes on restart.
        max_clients: usize = 1000, number("clients", 1, 1_000_000), "max-clients", Reload;
        /// Maximum length of a client's datagram; to RakNet targets it may be 28 bytes longer, up to 1492.
        max_datagram: usize = 1472, number("bytes", 1, UDP_PAYLOAD_MAX as u64), "max-datagram", Reload;
        /// Maximum datagrams queued for a client in each direction; a full queue drops its oldest datagram.
        queue: NonZeroUsize = at_least_one(256), number("datagrams", 1, 65_536), "queue", Reload;
        /// Rate of datagrams from a client to its game server; 0 is unlimited.
        datagrams_per_second: usize = 0,
            number("datagrams per second", 0, 10_000_000), "datagrams-per-second", Reload;
        /// Rate of payload from a client to its game server; 0 is unlimited.
        bytes_per_second: usize = 0,
            number("bytes per second", 0, 10_000_000_000), "bytes-per-second", Reload;
        /// Rate of payload in each direction for all clients together, with a fair share for each; 0 is unlimited.
        total_bytes_per_second: usize = 0,
            number("bytes per second", 0, 100_000_000_000), "total-bytes-per-second", Reload;
        /// Close a session after this time without a datagram in either direction.
        #[serde(with = "duration")]
        idle_timeout: Duration = secs(60), time(secs(1), DAY), "idle-timeout", Reload;
        /// Interval of WebSocket pings. A client that sends nothing for three of them is disconnected.
        #[serde(with = "duration")]
        ping_interval: Duration = secs(15), time(secs(1), DAY), "ping-interval", Reload;
        /// Time limit for a TCP connection to send a request header.
        #[serde(with = "duration")]
        header_timeout: Duration = secs(10), time(millis(100), secs(600)), "header-timeout", Restart;
        /// Time after which a client that accepts none of the pending data is disconnected.
        #[serde(with = "duration")]
        write_stall_timeout: Duration = secs(20), time(millis(100), DAY), "write-stall-timeout", Reload;
    }

    /// The limits for the clients of one address, and of one prefix. Zero is unlimited.
    ///
    /// An address is an IPv4 address or an IPv6 /64, the least that a host has. A prefix is an IPv4 /24 or an IPv6 /56,
    /// as commonly assigned to one customer of a provider. The defaults suffice for a school behind one address, and
    /// for a few reconnects of all of its pupils.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(default)]
    pub struct AddressLimits["clients."] {
        /// Maximum number of simultaneous clients of one address (IPv4 address or IPv6 /64); 0 is unlimited.
        per_address: u32 = 64, number("clients", 0, 1_000_000), "clients-per-address", Reload;
        /// Maximum number of simultaneous clients of one prefix (IPv4 /24 or IPv6 /56); 0 is unlimited.
        per_prefix: u32 = 256, number("clients", 0, 1_000_000), "clients-per-prefix", Reload;
        /// Long-term rate of new clients from one address; 0 is unlimited.
        rate_per_address: u32 = 60,
            number("clients per minute", 0, 1_000_000), "client-rate-per-address", Reload;
        /// Burst of new clients from one address.
        burst_per_address: u32 = 64, number("clients", 1, 1_000_000), "client-burst-per-address", Reload;
        /// Long-term rate of new clients from one prefix; 0 is unlimited.
        rate_per_prefix: u32 = 240,
            number("clients per minute", 0, 1_000_000), "client-rate-per-prefix", Reload;
        /// Burst of new clients from one prefix.
        burst_per_prefix: u32 = 256, number("clients", 1, 1_000_000), "client-burst-per-prefix", Reload;
    }

    /// TLS: files, ACME or a self-signed certificate, at most one of them.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct TlsConfig["tls."] {
        /// PEM file with the certificate chain.
        certificate: Option<PathBuf> = None, Text("FILE"), "tls-certificate", Reload;
        /// PEM file with the private key of the certificate.
        key: Option<PathBuf> = None, Text("FILE"), "tls-key", Reload;
        /// Host names for which a certificate is obtained by ACME.
        acme_domains: Vec<String> = Vec::new(), Texts("HOST"), "acme-domain", Restart;
        /// Mail address for the ACME account.
        acme_contact: Option<String> = None, Text("MAIL"), "acme-contact", Restart;
        /// Directory for the ACME account and its certificates.
        acme_cache: Option<PathBuf> = None, Text("DIR"), "acme-cache", Restart;
        /// ACME directory URL to use instead of Let's Encrypt.
        acme_directory: Option<String> = None, Text("URL"), "acme-directory", Restart;
        /// Generate a certificate at the start, for development.
        self_signed: bool = false, Switch, "tls-self-signed", Restart;
    }

    /// WebTransport, which carries datagrams over QUIC.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(default)]
    pub struct WebTransportConfig["webtransport."] {
        /// Let pages connect by WebTransport, which needs a UDP port: auto if the port is free, on to require it at the
        /// start, or off.
        mode: WebTransportMode = WebTransportMode::Auto,
            Choice(WebTransportMode::NAMES), "webtransport", Restart;
        /// UDP address and port for WebTransport, if different from --listen; port 0 picks a free one.
        #[serde(deserialize_with = "syntax::listen")]
        listen: Option<SocketAddr> = None, Text("ADDR"), "webtransport-listen", Restart;
        /// UDP port by which pages reach WebTransport and data channels at the host of the relay's URL, if the relay
        /// listens on another port; pages that connect through a trusted proxy are offered UDP only if this is set.
        public_port: Option<NonZeroU16> = None, number("", 1, 65_535), "webtransport-public-port", Restart;
    }

    /// The front for native UDP clients, before one of the targets. Without an address there is no front.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct UdpConfig["udp."] {
        /// Address and port of a front for native UDP clients, which validate their address by a cookie.
        #[serde(deserialize_with = "syntax::listen")]
        listen: Option<SocketAddr> = None, Text("ADDR"), "udp-listen", Restart;
        /// The target behind the front, if there are several. It needs a kind other than raw.
        target: Option<TargetName> = None, Text("NAME"), "udp-target", Restart;
        /// File with cookie keys, 32 hexadecimal digits per line, the first of which issues cookies; random by default.
        cookie_keys: Option<PathBuf> = None, Text("FILE"), "udp-cookie-keys", Reload;
        /// Admit clients of the front, which cannot send tokens, even if other clients need one.
        allow_without_token: bool = false, Switch, "udp-allow-without-token", Reload;
    }

    /// Data channels of WebRTC, on the UDP port with the number of the relay's TCP port.
    ///
    /// Browsers do not reveal which page has opened a data channel. Data channels are therefore offered only if every
    /// page may connect, if clients need a token, or with `allow_without_origin`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct WebRtcConfig["webrtc."] {
        /// Offer data channels of WebRTC, on the UDP port with the number of the TCP port. Without --allow-any-origin,
        /// --token-key or --webrtc-allow-without-origin, data channels are not offered.
        enabled: bool = true, Switch, "webrtc", Restart;
        /// PEM file with the certificate of the data channels and its key, created if missing; without it a new one is
        /// generated at each start, and pages cannot keep the fingerprint.
        certificate: Option<PathBuf> = None, Text("FILE"), "webrtc-certificate", Restart;
        /// Let every page connect by data channels, which do not reveal a page's origin, even if --allow-origin
        /// restricts pages on other transports.
        allow_without_origin: bool = false, Switch, "webrtc-allow-without-origin", Reload;
    }

    /// The store in which game servers announce themselves. `Debug` leaves out the password of the URL.
    #[derive(Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct DiscoveryConfig["discovery."] {
        /// Redis or Valkey in which game servers announce themselves, as redis://HOST:PORT/, rediss://HOST:PORT/ (TLS)
        /// or unix:///PATH; set a URL with a password in the file or the variable.
        store: Option<String> = None, Text("URL"), "discover", Restart;
        /// PEM file with the authority of the store's certificate, for rediss://; by default the system's trust store.
        ca: Option<PathBuf> = None, Text("FILE"), "discover-ca", Restart;
        /// Interval at which the relay reads the announced servers.
        #[serde(with = "duration")]
        interval: Duration = secs(2), time(millis(100), DAY), "discover-interval", Restart;
        /// Loopback or private networks that announced servers may be in; by default their addresses must be public.
        #[serde(deserialize_with = "syntax::networks")]
        networks: Vec<IpNet> = Vec::new(), Texts("NETWORK"), "discover-network", Restart;
    }

    /// The admin address.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct AdminConfig["admin."] {
        /// Address and port for metrics and health, which should be a loopback address.
        #[serde(deserialize_with = "syntax::listen")]
        listen: Option<SocketAddr> = None, Text("ADDR"), "admin-listen", Restart;
        /// Unix socket to list, kick and ban clients, with mode 0600: only the relay's user and root can open it.
        socket: Option<PathBuf> = None, Text("FILE"), "admin-socket", Restart;
    }

    /// The log.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct LogConfig["log."] {
        /// Format of log lines.
        format: LogFormat = LogFormat::Text, Choice(LogFormat::NAMES), "log-format", Restart;
        /// Log level, for everything or for one part as in info,hyper=debug; RUST_LOG takes precedence.
        level: String = "info".to_owned(), Text("LEVELS"), "log-level", Restart;
        /// Log client addresses as a hash with a key generated at the start.
        hash_addresses: bool = false, Switch, "log-hash-addresses", Restart;
        /// Maximum rate of log lines; further lines are counted and omitted.
        lines_per_second: u32 = 100,
            number("lines per second", 1, 1_000_000), "log-lines-per-second", Restart;
    }
}

choices! {
    /// The source address of datagrams to a game server.
    TargetSource {
        /// The address of the relay, with a port for each client.
        #[default]
        Shared = "shared",
        /// An address in 127.0.0.0/8 for each client, for a game server on the same machine.
        LoopbackPool = "loopback-pool",
    }

    /// The header in which a trusted proxy names the client. Other headers are ignored, because a proxy forwards
    /// headers that it does not set.
    ForwardedHeader {
        /// `X-Forwarded-For`.
        #[default]
        XForwardedFor = "x-forwarded-for",
        /// `Forwarded` (RFC 7239).
        Forwarded = "forwarded",
        /// None: the client is the peer of the TCP connection, or the one named in its PROXY protocol header.
        None = "none",
    }

    /// The condition for serving WebTransport.
    WebTransportMode {
        /// WebTransport is served if its UDP port is free.
        #[default]
        Auto = "auto",
        /// WebTransport is always served. The relay does not start without its UDP port.
        On = "on",
        /// WebTransport is never served.
        Off = "off",
    }

    /// The format of log lines.
    LogFormat {
        /// Text for people.
        #[default]
        Text = "text",
        /// One JSON object per line.
        Json = "json",
    }
}

/// Returns the number, or one if it is zero.
const fn at_least_one(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

/// Returns the loopback networks.
fn loopback() -> Vec<IpNet> {
    vec![
        IpNet::new_assert(Ipv4Addr::new(127, 0, 0, 0).into(), 8),
        IpNet::new_assert(Ipv6Addr::LOCALHOST.into(), 128),
    ]
}

impl Config {
    /// Creates a configuration for `listen` without targets.
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

    /// Reads the ban list from its file.
    pub(crate) fn bans(&self) -> Result<Bans, ConfigError> {
        let Some(path) = &self.admission.bans else { return Ok(Bans::default()) };
        let key = "admission.bans";
        let text = read(key, path)?;
        Bans::parse(&text).map_err(|(line, reason)| file_error(key, path, Some(line), reason))
    }

    /// Reads the token keys from their files.
    pub(crate) fn token_keys(&self) -> Result<Vec<VerifyingKey>, ConfigError> {
        let name = "tokens.keys";
        let key = |path| {
            let key = VerifyingKey::from_text(&read(name, path)?);
            key.map_err(|error| file_error(name, path, None, error.to_string()))
        };
        self.tokens.keys.iter().map(|path| key(path)).collect()
    }

    /// Returns the files named by options that contain secrets and that every user of this machine can read.
    #[must_use]
    pub fn exposed_files(&self) -> Vec<ExposedFile> {
        let is_secret = |path: &&PathBuf| {
            // A public key is not secret.
            let key = read("tokens.keys", path).ok().and_then(|text| VerifyingKey::from_text(&text).ok());
            key.is_some_and(|key| key.is_secret())
        };
        let of_tokens = self.tokens.keys.iter().filter(is_secret).map(|path| ("tokens.keys", path));
        let others = [
            ("tls.key", &self.tls.key),
            ("udp.cookie_keys", &self.udp.cookie_keys),
            ("webrtc.certificate", &self.webrtc.certificate),
        ];
        let others = others.into_iter().filter_map(|(key, path)| Some((key, path.as_ref()?)));
        others.chain(of_tokens).filter_map(|(key, path)| exposed(key, path)).collect()
    }

    /// Returns the policy for the origins of pages.
    pub(crate) fn origins(&self) -> Result<OriginPolicy, ConfigError> {
        let AdmissionConfig { allow_origins, allow_any_origin, trusted_proxies, .. } = &self.admission;
        if *allow_any_origin {
            return Ok(OriginPolicy::Any);
        }
        // A proxy forwards clients of other machines, even if it runs on this one.
        if allow_origins.is_empty() && !trusted_proxies.is_empty() {
            return Err(ConfigError::Contradiction {
                key: "admission.trusted_proxies",
                reason: "clients on other machines can connect through a trusted proxy: choose the pages that may \
                         connect with \
                         {admission.allow_origins} ('*' means any), or admit all with {admission.allow_any_origin}",
            });
        }
        let policy_on =
            |address| OriginPolicy::new(address, allow_origins).ok_or(ConfigError::OriginsRequired(address));
        // Both addresses admit the same clients, so origins are required if other machines can reach either address.
        self.webtransport_listen().map_or(Ok(()), |address| policy_on(address).map(drop))?;
        // A name is checked with each of its addresses after it is resolved.
        policy_on(self.listen.address().unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()))
    }

    /// Returns the configured UDP address of WebTransport, unless WebTransport is off.
    const fn webtransport_listen(&self) -> Option<SocketAddr> {
        match self.webtransport.mode {
            WebTransportMode::Off => None,
            WebTransportMode::Auto | WebTransportMode::On => self.webtransport.listen,
        }
    }

    /// Returns the configuration as a table, without unset options.
    pub(super) fn to_table(&self) -> Table {
        // Serialization fails only for a table with keys other than strings, and there is none.
        Table::try_from(self).unwrap_or_default()
    }
}

/// The maximum number of spare addresses of a game server.
pub(crate) const SPARE_ADDRESSES_MAX: usize = 7;

/// Parses the spare addresses of a game server, up to the maximum.
fn spare_addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostPort>, D::Error> {
    let addresses = Vec::<HostPort>::deserialize(deserializer)?;
    if addresses.len() > SPARE_ADDRESSES_MAX {
        let count = addresses.len();
        return Err(D::Error::custom(format_args!(
            "{count} spare addresses are too many: write at most {SPARE_ADDRESSES_MAX}"
        )));
    }
    Ok(addresses)
}

impl From<TargetSource> for Source {
    fn from(source: TargetSource) -> Self {
        match source {
            TargetSource::Shared => Self::Shared,
            TargetSource::LoopbackPool => Self::LoopbackPool,
        }
    }
}

impl Limits {
    /// Returns the maximum number of TCP connections, including those of clients.
    ///
    /// The limit is twice the number of clients, so that a full relay can still reject others with a close code. 64
    /// more are for the static files of a small relay.
    #[must_use]
    pub const fn max_connections(&self) -> usize {
        self.max_clients.saturating_mul(2).saturating_add(64)
    }

    /// Returns the limits of a flow to a target.
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

    /// Returns the longest datagram that a client may send to a target with this protocol. Some RakNet implementations
    /// do not count the headers below a datagram in the MTU. A RakNet datagram may therefore be as long as the MTU that
    /// both peers negotiate through the relay.
    pub(crate) fn longest_datagram(&self, kind: ProtocolKind) -> usize {
        match kind {
            ProtocolKind::RakNet => {
                self.max_datagram.max(usize::from(self.payload_max().saturating_add(IP_UDP_OVERHEAD)))
            }
            ProtocolKind::GameProtocol | ProtocolKind::Raw => self.max_datagram,
        }
    }

    /// Returns the longest datagram of RakNet's handshake in bytes, without IP and UDP headers.
    pub(crate) fn payload_max(&self) -> u16 {
        u16::try_from(self.max_datagram).unwrap_or(LARGEST_PAYLOAD).min(LARGEST_PAYLOAD)
    }

    /// Returns the rate limit of a client; `None` is unlimited.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let datagrams = NonZeroUsize::new(self.datagrams_per_second);
        let bytes = NonZeroUsize::new(self.bytes_per_second);
        let has_limit = datagrams.is_some() || bytes.is_some();
        let unlimited = NonZeroUsize::MAX;
        has_limit
            .then(|| Rate { datagrams: datagrams.unwrap_or(unlimited), bytes: bytes.unwrap_or(unlimited) })
    }
}

impl AddressLimits {
    /// Returns the limits for TCP connections, including those of clients. They are four times the limits for clients:
    /// a browser opens up to six connections for the files of a page, and rejecting a client takes one too.
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

    /// Returns the limits for file requests. They are sixteen times the limits for connections, because a page has many
    /// files, and several clients at one address load it.
    #[must_use]
    pub const fn for_files(&self) -> Self {
        self.for_connections().for_connections().for_connections()
    }
}

impl UdpConfig {
    /// Returns true if the front shares the port of a UDP listener on `address`.
    pub(crate) fn shares(&self, address: SocketAddr) -> bool {
        self.listen == Some(address) && address.port() != 0
    }

    /// Returns true if the front prevents a UDP listener on `address`.
    pub(crate) fn is_in_the_way_of(&self, address: SocketAddr) -> bool {
        self.listen.is_some_and(|front| overlap(front, address) && !self.shares(address))
    }
}

/// Returns true if two sockets cannot use these addresses at the same time.
pub(crate) fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    // `[::]` includes every IPv4 address.
    let has_all = |all: IpAddr, ip: IpAddr| all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4());
    let is_same = ip == other_ip || has_all(ip, other_ip) || has_all(other_ip, ip);
    is_same && one.port() == other.port() && one.port() != 0
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

/// Replaces the password of a URL, if there is one, by `***`.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "***".to_owned() };
    // A password may contain any unescaped character: it ends at the last @, and everything that may belong to it is
    // removed.
    match rest.rfind('@') {
        Some(at) => {
            let user = rest[..at].split([':', '/']).next().unwrap_or_default();
            format!("{scheme}://{user}:***@{}", &rest[at + 1..])
        }
        // The password may be in the query of a socket path.
        None => match rest.split_once('?') {
            Some((path, _)) => format!("{scheme}://{path}?***"),
            None => url.to_owned(),
        },
    }
}
