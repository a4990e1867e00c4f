//! The options of `rakwire echo`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;
use rakwire_native::{AddressPattern, Simulation};

use crate::capture::Capture;
use crate::password::PasswordArguments;
use crate::protocol::{PongFramingArgument, ProtocolArgument};

/// The default data of pongs.
pub(super) const ADVERTISEMENT: &str = "rakwire echo";

/// Echoes every user message (first byte 0x86 and above) with its reliability and channel; over TCP every message.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The address to listen on, such as 127.0.0.1:19132; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: String,
    /// Accept this RakNet protocol version, up to eight times (default: 6, 10 and 11), or "game" for the Game Protocol
    #[arg(long = "protocol", value_name = "N|game", num_args = 1.., value_delimiter = ',')]
    pub(super) protocols: Vec<ProtocolArgument>,
    /// The maximum number of clients
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=65_000))]
    pub(super) max_connections: u16,
    /// Disable cookies, for clients without cookie support, such as C++ RakNet with its security enabled
    #[arg(long)]
    pub(super) no_cookies: bool,
    /// Require cookies only under load: accept N clients without one, and N more every 10 s
    #[arg(long, value_name = "N", conflicts_with = "no_cookies")]
    pub(super) cookies_under_load: Option<u16>,
    /// The data of pongs, at most 399 bytes, or 397 with a length prefix
    #[arg(long, value_name = "TEXT", default_value = ADVERTISEMENT)]
    pub(super) advertise: String,
    /// The framing of pong data: raw, or prefixed with its length (default: prefixed if every --protocol is above 6, or
    /// if some are and the data begin with MCPE; or MCEE;)
    #[arg(long, value_enum, value_name = "FRAMING")]
    pub(super) pong_framing: Option<PongFramingArgument>,
    /// The largest MTU to offer, in bytes including IP and UDP headers
    #[arg(long, value_name = "N", default_value_t = 1_492, value_parser = clap::value_parser!(u16).range(576..=1_492))]
    pub(super) mtu: u16,
    #[command(flatten)]
    pub(super) password: PasswordArguments,
    /// Require secure connections, with the key in this file (see keygen)
    #[arg(long, value_name = "FILE")]
    pub(super) secure: Option<PathBuf>,
    /// Append the keys of secure connections to this file; anyone with the file can decrypt them (see decode)
    #[arg(long, value_name = "FILE", requires = "secure")]
    pub(super) key_log: Option<PathBuf>,
    /// Accept clients without security as well
    #[arg(long, requires = "secure")]
    pub(super) allow_plain: bool,
    /// Require that clients present an identity
    #[arg(long, requires = "secure", conflicts_with = "allow_plain")]
    pub(super) require_identity: bool,
    /// Require connect tokens issued with the key in this file (see token) instead of a password; up to four files
    #[arg(long = "token-key", value_name = "FILE", requires = "secure", conflicts_with_all = ["allow_plain", "password", "password_file"])]
    pub(super) token_keys: Vec<PathBuf>,
    /// Addresses that may not connect: 192.0.2.1, 192.0.2.* or 2001:db8::/32; can be repeated
    #[arg(long = "ban", value_name = "PATTERN")]
    pub(super) bans: Vec<AddressPattern>,
    /// Trust the PROXY protocol headers that a proxy or relay with this address, or in this network, puts before
    /// datagrams; can be repeated
    #[arg(long = "trusted-proxy", value_name = "ADDR", value_parser = network)]
    pub(super) trusted_proxies: Vec<IpNet>,
    /// Simulate a bad network in both directions: loss=5%,latency=50ms,jitter=10ms,duplicate=1%,reorder=2%,seed=7, each
    /// optional
    #[arg(long, value_name = "NETWORK")]
    pub(super) simulate: Option<Simulation>,
    /// Use TCP instead of UDP, each message prefixed with its length as in RakNet's PacketizedTCP
    #[arg(long, conflicts_with_all = OPTIONS_OF_UDP)]
    pub(super) tcp: bool,
    /// The maximum number of clients per IPv4 address or IPv6 /64 network [default: three quarters of all]; addresses
    /// of this machine and of local networks are not limited
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_per_address: Option<u16>,
    /// The maximum number of clients per IPv4 /24 or IPv6 /48 network [default: seven eighths of all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_per_network: Option<u16>,
    /// Use TLS over TCP with the certificate in this PEM file, optionally followed by its chain
    #[arg(long, value_name = "FILE", requires = "tcp", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// The key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub(super) capture: Capture,
}

fn network(text: &str) -> Result<IpNet, &'static str> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network.map_err(|_| "neither an address, such as 10.0.0.7, nor a network, such as 10.0.0.0/8")
}

/// The options that apply only to UDP.
const OPTIONS_OF_UDP: [&str; 15] = [
    "protocols",
    "no_cookies",
    "cookies_under_load",
    "advertise",
    "pong_framing",
    "mtu",
    "password",
    "password_file",
    "secure",
    "bans",
    "trusted_proxies",
    "simulate",
    "pcap",
    "sqlite",
    "log",
];
