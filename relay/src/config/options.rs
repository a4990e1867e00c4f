//! The table of options: what the file, the environment and the command line have in common.

use std::time::Duration;

use super::model::UDP_PAYLOAD_MAX;
use crate::syntax::duration;

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// Its key in the file, such as `limits.queue`. A `*` stands for the name of a target.
    pub key: &'static str,
    /// Its name on the command line, without the dashes; empty for a setting of a target, which is given after the
    /// address in `--target`.
    pub flag: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// When a change takes effect.
    pub change: Change,
    /// Its documentation, in one line.
    pub help: &'static str,
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// `true` or `false`.
    Switch,
    /// A text, with the name of the value.
    Text(&'static str),
    /// Texts, with the name of one value.
    Texts(&'static str),
    /// One of these.
    Choice(&'static [&'static str]),
    /// A whole number.
    Number {
        /// The unit; empty if it has none.
        unit: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A duration: a number of seconds, or a text with units.
    Time {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// The targets.
    Targets,
}

/// When a change of an option takes effect after a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// For clients that connect after the reload.
    Reload,
    /// After a restart.
    Restart,
}

impl OptionInfo {
    /// The variable of the environment; `None` for a setting of a target.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let name = self.flag.to_ascii_uppercase().replace('-', "_");
        (!name.is_empty()).then(|| format!("RAKWIRE_RELAY_{name}"))
    }

    /// The name of its value in the help of the command line.
    #[must_use]
    pub const fn value_name(&self) -> &'static str {
        match self.kind {
            OptionKind::Switch => "BOOL",
            OptionKind::Text(name) | OptionKind::Texts(name) => name,
            OptionKind::Choice(_) => "VALUE",
            OptionKind::Number { unit, .. } => match unit.as_bytes() {
                b"bytes" => "BYTES",
                _ => "N",
            },
            OptionKind::Time { .. } => "SECONDS",
            OptionKind::Targets => "NAME=HOST:PORT",
        }
    }

    /// The values that it takes, with their unit.
    #[must_use]
    pub fn values(&self) -> String {
        match self.kind {
            OptionKind::Switch => "true or false".to_owned(),
            OptionKind::Text(name) => name.to_owned(),
            OptionKind::Texts(name) => format!("list of {name}"),
            OptionKind::Choice(values) => values.join(", "),
            OptionKind::Number { unit, min, max } => {
                if unit.is_empty() {
                    format!("{min} to {max}")
                } else {
                    format!("{min} to {max} {unit}")
                }
            }
            OptionKind::Time { min, max } => {
                format!("time, {} to {}", duration::text(min), duration::text(max))
            }
            OptionKind::Targets => "tables".to_owned(),
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const fn number(unit: &'static str, min: u64, max: u64) -> OptionKind {
    OptionKind::Number { unit, min, max }
}

const fn time(min: Duration, max: Duration) -> OptionKind {
    OptionKind::Time { min, max }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn option(
    key: &'static str,
    flag: &'static str,
    kind: OptionKind,
    change: Change,
    help: &'static str,
) -> OptionInfo {
    OptionInfo { key, flag, kind, change, help }
}

/// All options, in the order of the documentation.
pub const OPTIONS: &[OptionInfo] = &[
    option(
        "listen",
        "listen",
        OptionKind::Text("ADDR"),
        Change::Restart,
        "Address and port to listen on, or a name such as localhost with all of its addresses; port 0 picks a free one. One \
         that other machines can reach needs --allow-origin or --allow-any-origin",
    ),
    option(
        "serve",
        "serve",
        OptionKind::Text("DIR"),
        Change::Restart,
        "Directory of static files to serve at /. It must have an index.html",
    ),
    option(
        "pid_file",
        "pid-file",
        OptionKind::Text("FILE"),
        Change::Restart,
        "File that the relay writes its process id to, and removes at its end",
    ),
    option(
        "resolve_interval",
        "resolve-interval",
        time(Duration::from_secs(1), DAY),
        Change::Reload,
        "How often the host names of targets are resolved again; a running flow keeps its address",
    ),
    option(
        "drain_timeout",
        "drain-timeout",
        time(Duration::ZERO, DAY),
        Change::Reload,
        "How long a shutdown waits for clients",
    ),
    option(
        "targets",
        "target",
        OptionKind::Targets,
        Change::Reload,
        "A game server and its name for browsers, as NAME=HOST:PORT[,SETTING=VALUE]...; can be repeated",
    ),
    option(
        "targets.*.address",
        "",
        OptionKind::Text("HOST:PORT"),
        Change::Reload,
        "Address of the game server. Link-local, multicast, metadata and broadcast addresses are refused",
    ),
    option(
        "targets.*.spare_addresses",
        "",
        OptionKind::Texts("HOST:PORT"),
        Change::Reload,
        "Further addresses of the game server: new flows go to the next of them, and of those that a name has, that is up while \
         the one in use is down",
    ),
    option(
        "targets.*.allow_private",
        "",
        OptionKind::Switch,
        Change::Reload,
        "Whether the host name may resolve to a loopback or private address; a numeric address and localhost always may",
    ),
    option(
        "targets.*.kind",
        "",
        OptionKind::Choice(&["raw", "raknet", "game-protocol"]),
        Change::Reload,
        "The protocol of the game server, as far as the relay makes use of it",
    ),
    option(
        "targets.*.source",
        "",
        OptionKind::Choice(&["shared", "loopback-pool"]),
        Change::Reload,
        "Source addresses of datagrams: the one of the relay, or one of 127.0.0.0/8 for each client",
    ),
    option(
        "targets.*.proxy_protocol",
        "",
        OptionKind::Switch,
        Change::Reload,
        "Whether the first datagrams of a client begin with a PROXY protocol v2 header that has its address",
    ),
    option(
        "targets.*.resume_within",
        "",
        time(Duration::ZERO, millis(3_600_000)),
        Change::Reload,
        "How long the flow of a client that was lost is kept for its return; 0s keeps none",
    ),
    option(
        "targets.*.queue_age",
        "",
        time(millis(10), millis(60_000)),
        Change::Reload,
        "Age at which a datagram that waits for a client is dropped",
    ),
    option(
        "targets.*.queue_bytes",
        "",
        number("bytes", 2048, 16 * 1024 * 1024),
        Change::Reload,
        "The most bytes that wait for a client; above it the oldest datagrams are dropped",
    ),
    option(
        "admission.allow_origins",
        "allow-origin",
        OptionKind::Texts("ORIGIN"),
        Change::Reload,
        "Origins of pages that may connect, such as https://play.example.org; https://*.example.org means all hosts below \
         example.org, '*' any origin. Without it a relay on a loopback address accepts pages of this machine, and clients that are not browsers",
    ),
    option(
        "admission.allow_any_origin",
        "allow-any-origin",
        OptionKind::Switch,
        Change::Reload,
        "Accept every page, and clients that are not browsers",
    ),
    option(
        "admission.trusted_proxies",
        "trusted-proxy",
        OptionKind::Texts("NETWORK"),
        Change::Reload,
        "Addresses or networks of reverse proxies that are trusted to name the address of a client",
    ),
    option(
        "admission.forwarded_header",
        "forwarded-header",
        OptionKind::Choice(&["x-forwarded-for", "forwarded", "none"]),
        Change::Reload,
        "Header in which trusted proxies name the client. Others are ignored",
    ),
    option(
        "admission.proxy_protocol",
        "proxy-protocol",
        OptionKind::Switch,
        Change::Restart,
        "Whether connections of trusted proxies begin with a PROXY protocol v2 header",
    ),
    option(
        "admission.bans",
        "bans",
        OptionKind::Text("FILE"),
        Change::Reload,
        "File with banned addresses and networks, one per line; read again at a reload",
    ),
    option(
        "admission.exempt",
        "exempt",
        OptionKind::Texts("NETWORK"),
        Change::Reload,
        "Addresses or networks without limits per address and prefix; trusted proxies are never exempt",
    ),
    option(
        "tokens.keys",
        "token-key",
        OptionKind::Texts("FILE"),
        Change::Reload,
        "Files with keys that verify tokens; with at least one every client needs a token",
    ),
    option(
        "tokens.single_use",
        "token-single-use",
        OptionKind::Switch,
        Change::Reload,
        "Whether a token admits only once; its id is remembered until it expires",
    ),
    option(
        "tokens.max_lifetime",
        "token-max-lifetime",
        time(Duration::from_secs(1), Duration::from_secs(7 * 24 * 60 * 60)),
        Change::Reload,
        "Longest time to its expiry that a token may have",
    ),
    option(
        "tokens.leeway",
        "token-leeway",
        time(Duration::ZERO, Duration::from_secs(300)),
        Change::Reload,
        "By how much the clocks of the issuer of tokens and of the relay may differ",
    ),
    option(
        "limits.max_clients",
        "max-clients",
        number("clients", 1, 1_000_000),
        Change::Reload,
        "The most connected clients. The limit of TCP connections, 2 x this + 64, changes at a restart",
    ),
    option(
        "limits.max_datagram",
        "max-datagram",
        number("bytes", 1, UDP_PAYLOAD_MAX as u64),
        Change::Reload,
        "The longest datagram that a client may send; to targets of RakNet it may be 28 bytes longer, up to 1492",
    ),
    option(
        "limits.queue",
        "queue",
        number("datagrams", 1, 65_536),
        Change::Reload,
        "Length of the queue in each direction of a client; a full queue drops its oldest datagram",
    ),
    option(
        "limits.datagrams_per_second",
        "datagrams-per-second",
        number("datagrams per second", 0, 10_000_000),
        Change::Reload,
        "How much a client may send to its game server, in datagrams; 0 means no limit",
    ),
    option(
        "limits.bytes_per_second",
        "bytes-per-second",
        number("bytes per second", 0, 10_000_000_000),
        Change::Reload,
        "How much a client may send to its game server, in bytes of payload; 0 means no limit",
    ),
    option(
        "limits.total_bytes_per_second",
        "total-bytes-per-second",
        number("bytes per second", 0, 100_000_000_000),
        Change::Reload,
        "How much all clients together may send, and how much they may be sent, in bytes of payload, with a fair share for each; 0 \
         means no limit",
    ),
    option(
        "limits.idle_timeout",
        "idle-timeout",
        time(Duration::from_secs(1), DAY),
        Change::Reload,
        "Close a session after this time without a datagram in either direction",
    ),
    option(
        "limits.ping_interval",
        "ping-interval",
        time(Duration::from_secs(1), DAY),
        Change::Reload,
        "Interval of WebSocket pings. A client that sends nothing for three of them is disconnected",
    ),
    option(
        "limits.header_timeout",
        "header-timeout",
        time(millis(100), Duration::from_secs(600)),
        Change::Restart,
        "How long a TCP connection may take to send the header of a request",
    ),
    option(
        "limits.write_stall_timeout",
        "write-stall-timeout",
        time(millis(100), DAY),
        Change::Reload,
        "How long a client may take no byte while data wait for it",
    ),
    option(
        "clients.per_address",
        "clients-per-address",
        number("clients", 0, 1_000_000),
        Change::Reload,
        "The most clients at a time from one address (IPv4 address or IPv6 /64); 0 means no limit",
    ),
    option(
        "clients.per_prefix",
        "clients-per-prefix",
        number("clients", 0, 1_000_000),
        Change::Reload,
        "The most clients at a time from one prefix (IPv4 /24 or IPv6 /56); 0 means no limit",
    ),
    option(
        "clients.rate_per_address",
        "client-rate-per-address",
        number("clients per minute", 0, 1_000_000),
        Change::Reload,
        "New clients from one address in the long run; 0 means no limit",
    ),
    option(
        "clients.burst_per_address",
        "client-burst-per-address",
        number("clients", 1, 1_000_000),
        Change::Reload,
        "New clients from one address at once",
    ),
    option(
        "clients.rate_per_prefix",
        "client-rate-per-prefix",
        number("clients per minute", 0, 1_000_000),
        Change::Reload,
        "New clients from one prefix in the long run; 0 means no limit",
    ),
    option(
        "clients.burst_per_prefix",
        "client-burst-per-prefix",
        number("clients", 1, 1_000_000),
        Change::Reload,
        "New clients from one prefix at once",
    ),
    option(
        "tls.certificate",
        "tls-certificate",
        OptionKind::Text("FILE"),
        Change::Reload,
        "PEM file with the chain of certificates",
    ),
    option(
        "tls.key",
        "tls-key",
        OptionKind::Text("FILE"),
        Change::Reload,
        "PEM file with the private key of the certificate",
    ),
    option(
        "tls.acme_domains",
        "acme-domain",
        OptionKind::Texts("HOST"),
        Change::Restart,
        "Host names for which a certificate is obtained by ACME",
    ),
    option(
        "tls.acme_contact",
        "acme-contact",
        OptionKind::Text("MAIL"),
        Change::Restart,
        "Mail address for the ACME account",
    ),
    option(
        "tls.acme_cache",
        "acme-cache",
        OptionKind::Text("DIR"),
        Change::Restart,
        "Directory where the ACME account and its certificates are kept",
    ),
    option(
        "tls.acme_directory",
        "acme-directory",
        OptionKind::Text("URL"),
        Change::Restart,
        "ACME directory to use in place of Let's Encrypt",
    ),
    option(
        "tls.self_signed",
        "tls-self-signed",
        OptionKind::Switch,
        Change::Restart,
        "Make a certificate at the start, for development",
    ),
    option(
        "webtransport.mode",
        "webtransport",
        OptionKind::Choice(&["auto", "on", "off"]),
        Change::Restart,
        "Whether pages can connect by WebTransport, which is UDP: if its port is free, or the relay does not start, or not \
         at all",
    ),
    option(
        "webtransport.listen",
        "webtransport-listen",
        OptionKind::Text("ADDR"),
        Change::Restart,
        "UDP address and port for WebTransport, if not those of --listen; port 0 picks a free one",
    ),
    option(
        "webtransport.public_port",
        "webtransport-public-port",
        number("", 1, 65_535),
        Change::Restart,
        "UDP port by which pages reach WebTransport and data channels at the host of the relay's URL, if it is another one outside; \
         pages that come through a trusted proxy are told none without it",
    ),
    option(
        "udp.listen",
        "udp-listen",
        OptionKind::Text("ADDR"),
        Change::Restart,
        "Address and port of a front for clients with UDP of their own, which prove their address by a cookie",
    ),
    option(
        "udp.target",
        "udp-target",
        OptionKind::Text("NAME"),
        Change::Restart,
        "The target behind the front, if there are several. It needs a kind other than raw",
    ),
    option(
        "udp.cookie_keys",
        "udp-cookie-keys",
        OptionKind::Text("FILE"),
        Change::Reload,
        "File with the keys of cookies, 32 hexadecimal digits per line, the first of which makes them; without it the key \
         is random",
    ),
    option(
        "udp.allow_without_token",
        "udp-allow-without-token",
        OptionKind::Switch,
        Change::Reload,
        "Let clients of the front in, which cannot show a token, although others need one",
    ),
    option(
        "webrtc.enabled",
        "webrtc",
        OptionKind::Switch,
        Change::Restart,
        "Offer data channels of WebRTC, on the UDP port with the number of the TCP port; needs --allow-any-origin, \
         --token-key or --webrtc-allow-without-origin",
    ),
    option(
        "webrtc.certificate",
        "webrtc-certificate",
        OptionKind::Text("FILE"),
        Change::Restart,
        "PEM file with the certificate of the data channels and its key, made if it is not there; without it they are \
         made at each start, and pages cannot keep the fingerprint",
    ),
    option(
        "webrtc.allow_without_origin",
        "webrtc-allow-without-origin",
        OptionKind::Switch,
        Change::Reload,
        "Let every page connect by data channels, which do not tell where a page is from, although others may not",
    ),
    option(
        "discovery.store",
        "discover",
        OptionKind::Text("URL"),
        Change::Restart,
        "Redis or Valkey where game servers announce themselves, as redis://HOST:PORT/, rediss://HOST:PORT/ (TLS) or \
         unix:///PATH; a URL with a password belongs in the file or the variable",
    ),
    option(
        "discovery.ca",
        "discover-ca",
        OptionKind::Text("FILE"),
        Change::Restart,
        "PEM file with the authority of the store's certificate, for rediss://; without it what the system trusts",
    ),
    option(
        "discovery.interval",
        "discover-interval",
        time(millis(100), DAY),
        Change::Restart,
        "How often the relay looks for announced servers",
    ),
    option(
        "discovery.networks",
        "discover-network",
        OptionKind::Texts("NETWORK"),
        Change::Restart,
        "Loopback or private networks that announced servers may be in; without them their addresses must be public",
    ),
    option(
        "admin.listen",
        "admin-listen",
        OptionKind::Text("ADDR"),
        Change::Restart,
        "Address and port for metrics and health, which should be a loopback address",
    ),
    option(
        "admin.socket",
        "admin-socket",
        OptionKind::Text("FILE"),
        Change::Restart,
        "Unix socket by which the user of the relay lists, kicks and bans clients; it is made with mode 0600",
    ),
    option(
        "log.format",
        "log-format",
        OptionKind::Choice(&["text", "json"]),
        Change::Restart,
        "Form of log lines",
    ),
    option(
        "log.level",
        "log-level",
        OptionKind::Text("LEVELS"),
        Change::Restart,
        "Level of the log, for all or for one part as in info,hyper=debug; RUST_LOG takes precedence",
    ),
    option(
        "log.hash_addresses",
        "log-hash-addresses",
        OptionKind::Switch,
        Change::Restart,
        "Write client addresses as a hash with a key that is made at the start",
    ),
    option(
        "log.lines_per_second",
        "log-lines-per-second",
        number("lines per second", 1, 1_000_000),
        Change::Restart,
        "The most log lines; further ones are counted and left out",
    ),
];
