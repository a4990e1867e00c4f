//! The model: the settings of a relay, each written once.
//!
//! A row of [`options!`] is a field, and its documentation is the help of the flag. From the same row come the key of the
//! file, the variable of the environment, the default, the values that it takes, and its line in the documentation.

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
        /// one. One that other machines can reach needs --allow-origin or --allow-any-origin.
        listen: ListenAddress = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)).into(),
            Text("ADDR"), "listen", Restart;
        /// Directory of static files to serve at /. It must have an index.html.
        serve: Option<PathBuf> = None, Text("DIR"), "serve", Restart;
        /// File that the relay writes its process id to, and removes at its end.
        pid_file: Option<PathBuf> = None, Text("FILE"), "pid-file", Restart;
        /// How often the host names of targets are resolved again; a running flow keeps its address.
        #[serde(with = "duration")]
        resolve_interval: Duration = secs(60), time(secs(1), DAY), "resolve-interval", Reload;
        /// How long a shutdown waits for clients.
        #[serde(with = "duration")]
        drain_timeout: Duration = secs(5), time(Duration::ZERO, DAY), "drain-timeout", Reload;
        /// A game server and its name for browsers, as NAME=HOST:PORT[,SETTING=VALUE]...; can be repeated.
        targets: BTreeMap<TargetName, Target> = BTreeMap::new(), Targets, "target", Reload;
    } tables {
        /// Who may connect.
        admission: AdmissionConfig;
        /// Signed tokens.
        tokens: TokensConfig;
        /// The limits of the whole relay and of each client.
        limits: Limits;
        /// The shares of addresses in the clients.
        clients: AddressLimits;
        /// TLS.
        tls: TlsConfig;
        /// WebTransport.
        webtransport: WebTransportConfig;
        /// The front for clients with UDP of their own.
        udp: UdpConfig;
        /// Data channels of WebRTC.
        webrtc: WebRtcConfig;
        /// Where game servers announce themselves.
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
        /// Further addresses of the game server: new flows go to the next of them, and of those that a name has, that
        /// is up while the one in use is down.
        #[serde(default = "Target::spare_addresses", deserialize_with = "spare_addresses")]
        spare_addresses: Vec<HostPort> = Vec::new(), Texts("HOST:PORT"), "", Reload;
        /// Whether the host name may resolve to a loopback or private address; a numeric address and localhost always
        /// may.
        #[serde(default = "Target::allow_private")]
        allow_private: bool = false, Switch, "", Reload;
        /// The protocol of the game server, as far as the relay makes use of it.
        #[serde(default = "Target::kind")]
        kind: ProtocolKind = ProtocolKind::Raw, Choice(ProtocolKind::NAMES), "", Reload;
        /// Source addresses of datagrams: the one of the relay, or one of 127.0.0.0/8 for each client.
        #[serde(default = "Target::source")]
        source: TargetSource = TargetSource::Shared, Choice(TargetSource::NAMES), "", Reload;
        /// Whether the first datagrams of a client begin with a PROXY protocol v2 header that has its address.
        #[serde(default = "Target::proxy_protocol")]
        proxy_protocol: bool = false, Switch, "", Reload;
        /// How long the flow of a client that was lost is kept for its return; 0s keeps none.
        #[serde(default = "Target::resume_within", with = "duration")]
        resume_within: Duration = secs(30), time(Duration::ZERO, millis(3_600_000)), "", Reload;
        /// Age at which a datagram that waits for a client is dropped.
        #[serde(default = "Target::queue_age", with = "duration")]
        queue_age: Duration = secs(1), time(millis(10), millis(60_000)), "", Reload;
        /// The most bytes that wait for a client; above it the oldest datagrams are dropped.
        #[serde(default = "Target::queue_bytes")]
        queue_bytes: NonZeroUsize = at_least_one(256 * 1024),
            number("bytes", 2048, 16 * 1024 * 1024), "", Reload;
    }

    /// Who may connect.
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
        /// Header in which trusted proxies name the client. Others are ignored.
        forwarded_header: ForwardedHeader = ForwardedHeader::XForwardedFor,
            Choice(ForwardedHeader::NAMES), "forwarded-header", Reload;
        /// Whether connections of trusted proxies begin with a PROXY protocol v2 header.
        proxy_protocol: bool = false, Switch, "proxy-protocol", Restart;
        /// File with banned addresses and networks, one per line; read again at a reload.
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
        /// Whether a token admits only once; its id is remembered until it expires.
        single_use: bool = false, Switch, "token-single-use", Reload;
        /// Longest time to its expiry that a token may have.
        #[serde(with = "duration")]
        max_lifetime: Duration = secs(60 * 60),
            time(secs(1), secs(7 * 24 * 60 * 60)), "token-max-lifetime", Reload;
        /// By how much the clocks of the issuer of tokens and of the relay may differ.
        #[serde(with = "duration")]
        leeway: Duration = secs(5), time(Duration::ZERO, secs(300)), "token-leeway", Reload;
    }

    /// Limits on the resources that clients can use.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(default)]
    pub struct Limits["limits."] {
        /// The most connected clients. The limit of TCP connections, 2 x this + 64, changes at a restart.
        max_clients: usize = 1000, number("clients", 1, 1_000_000), "max-clients", Reload;
        /// The longest datagram that a client may send; to targets of RakNet it may be 28 bytes longer, up to 1492.
        max_datagram: usize = 1472, number("bytes", 1, UDP_PAYLOAD_MAX as u64), "max-datagram", Reload;
        /// Length of the queue in each direction of a client; a full queue drops its oldest datagram.
        queue: NonZeroUsize = at_least_one(256), number("datagrams", 1, 65_536), "queue", Reload;
        /// How much a client may send to its game server, in datagrams; 0 means no limit.
        datagrams_per_second: usize = 0,
            number("datagrams per second", 0, 10_000_000), "datagrams-per-second", Reload;
        /// How much a client may send to its game server, in bytes of payload; 0 means no limit.
        bytes_per_second: usize = 0,
            number("bytes per second", 0, 10_000_000_000), "bytes-per-second", Reload;
        /// How much all clients together may send, and how much they may be sent, in bytes of payload, with a fair
        /// share for each; 0 means no limit.
        total_bytes_per_second: usize = 0,
            number("bytes per second", 0, 100_000_000_000), "total-bytes-per-second", Reload;
        /// Close a session after this time without a datagram in either direction.
        #[serde(with = "duration")]
        idle_timeout: Duration = secs(60), time(secs(1), DAY), "idle-timeout", Reload;
        /// Interval of WebSocket pings. A client that sends nothing for three of them is disconnected.
        #[serde(with = "duration")]
        ping_interval: Duration = secs(15), time(secs(1), DAY), "ping-interval", Reload;
        /// How long a TCP connection may take to send the header of a request.
        #[serde(with = "duration")]
        header_timeout: Duration = secs(10), time(millis(100), secs(600)), "header-timeout", Restart;
        /// How long a client may take no byte while data wait for it.
        #[serde(with = "duration")]
        write_stall_timeout: Duration = secs(20), time(millis(100), DAY), "write-stall-timeout", Reload;
    }

    /// The shares of one address, and of one prefix, in the clients. Zero means no limit.
    ///
    /// An address is an IPv4 address or an IPv6 /64, the least that a host has; a prefix is an IPv4 /24 or an IPv6 /56, what
    /// one customer of a provider commonly has. The defaults are enough for a school behind one address, and for a few
    /// reconnects of all of its pupils.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(default)]
    pub struct AddressLimits["clients."] {
        /// The most clients at a time from one address (IPv4 address or IPv6 /64); 0 means no limit.
        per_address: u32 = 64, number("clients", 0, 1_000_000), "clients-per-address", Reload;
        /// The most clients at a time from one prefix (IPv4 /24 or IPv6 /56); 0 means no limit.
        per_prefix: u32 = 256, number("clients", 0, 1_000_000), "clients-per-prefix", Reload;
        /// New clients from one address in the long run; 0 means no limit.
        rate_per_address: u32 = 60,
            number("clients per minute", 0, 1_000_000), "client-rate-per-address", Reload;
        /// New clients from one address at once.
        burst_per_address: u32 = 64, number("clients", 1, 1_000_000), "client-burst-per-address", Reload;
        /// New clients from one prefix in the long run; 0 means no limit.
        rate_per_prefix: u32 = 240,
            number("clients per minute", 0, 1_000_000), "client-rate-per-prefix", Reload;
        /// New clients from one prefix at once.
        burst_per_prefix: u32 = 256, number("clients", 1, 1_000_000), "client-burst-per-prefix", Reload;
    }

    /// TLS: at most one of files, ACME and a self-made certificate.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct TlsConfig["tls."] {
        /// PEM file with the chain of certificates.
        certificate: Option<PathBuf> = None, Text("FILE"), "tls-certificate", Reload;
        /// PEM file with the private key of the certificate.
        key: Option<PathBuf> = None, Text("FILE"), "tls-key", Reload;
        /// Host names for which a certificate is obtained by ACME.
        acme_domains: Vec<String> = Vec::new(), Texts("HOST"), "acme-domain", Restart;
        /// Mail address for the ACME account.
        acme_contact: Option<String> = None, Text("MAIL"), "acme-contact", Restart;
        /// Directory where the ACME account and its certificates are kept.
        acme_cache: Option<PathBuf> = None, Text("DIR"), "acme-cache", Restart;
        /// ACME directory to use in place of Let's Encrypt.
        acme_directory: Option<String> = None, Text("URL"), "acme-directory", Restart;
        /// Make a certificate at the start, for development.
        self_signed: bool = false, Switch, "tls-self-signed", Restart;
    }

    /// WebTransport, which carries datagrams over UDP as QUIC does.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(default)]
    pub struct WebTransportConfig["webtransport."] {
        /// Whether pages can connect by WebTransport, which is UDP: if its port is free, or the relay does not start,
        /// or not at all.
        mode: WebTransportMode = WebTransportMode::Auto,
            Choice(WebTransportMode::NAMES), "webtransport", Restart;
        /// UDP address and port for WebTransport, if not those of --listen; port 0 picks a free one.
        #[serde(deserialize_with = "syntax::listen")]
        listen: Option<SocketAddr> = None, Text("ADDR"), "webtransport-listen", Restart;
        /// UDP port by which pages reach WebTransport and data channels at the host of the relay's URL, if it is
        /// another one outside; pages that come through a trusted proxy are told none without it.
        public_port: Option<NonZeroU16> = None, number("", 1, 65_535), "webtransport-public-port", Restart;
    }

    /// The front for clients with UDP of their own, before one of the targets. Without an address there is no front.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct UdpConfig["udp."] {
        /// Address and port of a front for clients with UDP of their own, which prove their address by a cookie.
        #[serde(deserialize_with = "syntax::listen")]
        listen: Option<SocketAddr> = None, Text("ADDR"), "udp-listen", Restart;
        /// The target behind the front, if there are several. It needs a kind other than raw.
        target: Option<TargetName> = None, Text("NAME"), "udp-target", Restart;
        /// File with the keys of cookies, 32 hexadecimal digits per line, the first of which makes them; without it the
        /// key is random.
        cookie_keys: Option<PathBuf> = None, Text("FILE"), "udp-cookie-keys", Reload;
        /// Let clients of the front in, which cannot show a token, although others need one.
        allow_without_token: bool = false, Switch, "udp-allow-without-token", Reload;
    }

    /// Data channels of WebRTC, on the UDP port with the number of the relay's TCP port.
    ///
    /// Browsers do not reveal which page has opened one. So there are data channels only if every page may connect, if clients
    /// need a token, or with `allow_without_origin`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct WebRtcConfig["webrtc."] {
        /// Offer data channels of WebRTC, on the UDP port with the number of the TCP port; needs --allow-any-origin,
        /// --token-key or --webrtc-allow-without-origin.
        enabled: bool = true, Switch, "webrtc", Restart;
        /// PEM file with the certificate of the data channels and its key, made if it is not there; without it they are
        /// made at each start, and pages cannot keep the fingerprint.
        certificate: Option<PathBuf> = None, Text("FILE"), "webrtc-certificate", Restart;
        /// Let every page connect by data channels, which do not tell where a page is from, although others may not.
        allow_without_origin: bool = false, Switch, "webrtc-allow-without-origin", Reload;
    }

    /// Where game servers announce themselves. `Debug` leaves out the password of the URL.
    #[derive(Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct DiscoveryConfig["discovery."] {
        /// Redis or Valkey where game servers announce themselves, as redis://HOST:PORT/, rediss://HOST:PORT/ (TLS) or
        /// unix:///PATH; a URL with a password belongs in the file or the variable.
        store: Option<String> = None, Text("URL"), "discover", Restart;
        /// PEM file with the authority of the store's certificate, for rediss://; without it what the system trusts.
        ca: Option<PathBuf> = None, Text("FILE"), "discover-ca", Restart;
        /// How often the relay looks for announced servers.
        #[serde(with = "duration")]
        interval: Duration = secs(2), time(millis(100), DAY), "discover-interval", Restart;
        /// Loopback or private networks that announced servers may be in; without them their addresses must be public.
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
        /// Unix socket by which the user of the relay lists, kicks and bans clients; it is made with mode 0600.
        socket: Option<PathBuf> = None, Text("FILE"), "admin-socket", Restart;
    }

    /// The log.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[serde(default)]
    pub struct LogConfig["log."] {
        /// Form of log lines.
        format: LogFormat = LogFormat::Text, Choice(LogFormat::NAMES), "log-format", Restart;
        /// Level of the log, for all or for one part as in info,hyper=debug; RUST_LOG takes precedence.
        level: String = "info".to_owned(), Text("LEVELS"), "log-level", Restart;
        /// Write client addresses as a hash with a key that is made at the start.
        hash_addresses: bool = false, Switch, "log-hash-addresses", Restart;
        /// The most log lines; further ones are counted and left out.
        lines_per_second: u32 = 100,
            number("lines per second", 1, 1_000_000), "log-lines-per-second", Restart;
    }
}

choices! {
    /// The source addresses of datagrams to a game server.
    TargetSource {
        /// The address of the relay, with a port for each client.
        #[default]
        Shared = "shared",
        /// An address of 127.0.0.0/8 for each client, for a game server on the same machine.
        LoopbackPool = "loopback-pool",
    }

    /// The header in which a trusted proxy names the client. The others are ignored: a proxy passes on what it does not set.
    ForwardedHeader {
        /// `X-Forwarded-For`.
        #[default]
        XForwardedFor = "x-forwarded-for",
        /// `Forwarded` (RFC 7239).
        Forwarded = "forwarded",
        /// None: the client is the peer of the TCP connection, or the one of its PROXY protocol header.
        None = "none",
    }

    /// The cases in which WebTransport is served.
    WebTransportMode {
        /// If its UDP port is free.
        #[default]
        Auto = "auto",
        /// Always; the relay does not start without its UDP port.
        On = "on",
        /// Never.
        Off = "off",
    }

    /// The form of log lines.
    LogFormat {
        /// For people.
        #[default]
        Text = "text",
        /// One JSON object per line.
        Json = "json",
    }
}

/// A number, or one if it is zero.
const fn at_least_one(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

/// The networks of this machine itself.
fn loopback() -> Vec<IpNet> {
    vec![
        IpNet::new_assert(Ipv4Addr::new(127, 0, 0, 0).into(), 8),
        IpNet::new_assert(Ipv6Addr::LOCALHOST.into(), 128),
    ]
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

    /// The banned addresses, as the file has them now.
    pub(crate) fn bans(&self) -> Result<Bans, ConfigError> {
        let Some(path) = &self.admission.bans else { return Ok(Bans::default()) };
        let key = "admission.bans";
        let text = read(key, path)?;
        Bans::parse(&text).map_err(|(line, reason)| file_error(key, path, Some(line), reason))
    }

    /// The keys that verify tokens, as their files have them now.
    pub(crate) fn token_keys(&self) -> Result<Vec<VerifyingKey>, ConfigError> {
        let name = "tokens.keys";
        let key = |path| {
            let key = VerifyingKey::from_text(&read(name, path)?);
            key.map_err(|error| file_error(name, path, None, error.to_string()))
        };
        self.tokens.keys.iter().map(|path| key(path)).collect()
    }

    /// The files with secrets that every user of this machine can read, of those that options name.
    #[must_use]
    pub fn exposed_files(&self) -> Vec<ExposedFile> {
        let is_secret = |path: &&PathBuf| {
            // A public key is for everybody.
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

    /// Which pages may connect.
    pub(crate) fn origins(&self) -> Result<OriginPolicy, ConfigError> {
        let AdmissionConfig { allow_origins, allow_any_origin, trusted_proxies, .. } = &self.admission;
        if *allow_any_origin {
            return Ok(OriginPolicy::Any);
        }
        // A proxy has clients on other machines, wherever it is itself.
        if allow_origins.is_empty() && !trusted_proxies.is_empty() {
            return Err(ConfigError::Contradiction {
                key: "admission.trusted_proxies",
                reason: "clients on other machines come by a proxy: choose the pages that may connect with \
                         {admission.allow_origins} ('*' means any), or admit all with {admission.allow_any_origin}",
            });
        }
        let policy_on =
            |address| OriginPolicy::new(address, allow_origins).ok_or(ConfigError::OriginsRequired(address));
        // Both addresses let the same clients in, so that other machines may reach neither or origins are needed.
        self.webtransport_listen().map_or(Ok(()), |address| policy_on(address).map(drop))?;
        // A name is checked with each of its addresses once it is resolved.
        policy_on(self.listen.address().unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()))
    }

    /// The UDP address for WebTransport that is configured, if it is served.
    const fn webtransport_listen(&self) -> Option<SocketAddr> {
        match self.webtransport.mode {
            WebTransportMode::Off => None,
            WebTransportMode::Auto | WebTransportMode::On => self.webtransport.listen,
        }
    }

    /// The configuration as a table. Options that are not set are missing in it.
    pub(super) fn to_table(&self) -> Table {
        // All keys are texts, which is all that could fail.
        Table::try_from(self).unwrap_or_default()
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

impl From<TargetSource> for Source {
    fn from(source: TargetSource) -> Self {
        match source {
            TargetSource::Shared => Self::Shared,
            TargetSource::LoopbackPool => Self::LoopbackPool,
        }
    }
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
