//! The options of `rakwire send`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::capture::Capture;
use crate::host;
use crate::keys::TrustArgument;
use crate::password::PasswordArguments;
use crate::protocol::ProtocolArgument;

/// The maximum of `--size`, which fits into the memory of one connection at every MTU.
const MAX_SIZE: u64 = 5_000_000;

/// Connects to an echo server, sends messages and compares every echo with its message.
///
/// A message is the byte 0xFE followed by the text.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server, such as 127.0.0.1:19132, [::1]:19132 or example.org:19132
    #[arg(value_name = "HOST:PORT")]
    pub(super) target: String,
    /// The text to send; optional with --size
    #[arg(value_name = "TEXT", required_unless_present = "size", default_value = "")]
    pub(super) text: String,
    /// Time to wait for the connection, and for each echo
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = host::seconds)]
    pub(super) timeout: Duration,
    /// The RakNet protocol version (default: the version named in the server's pong or reply); or "game" for the Game
    /// Protocol, where a message is just the text
    #[arg(long, value_name = "N|game")]
    pub(super) protocol: Option<ProtocolArgument>,
    /// The reliability of the messages; default reliable-ordered, or reliable with the Game Protocol
    #[arg(long, value_enum)]
    pub(super) reliability: Option<ReliabilityArgument>,
    /// The ordering channel, for ordered and sequenced messages
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(super) channel: u8,
    /// The number of messages to send, each after the echo of the previous one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) count: u32,
    /// Pad each message to this length with bytes that differ between messages
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=MAX_SIZE))]
    pub(super) size: Option<u64>,
    /// Send the text without the byte 0xFE, or as raw bytes if it is 0x followed by hex digits
    #[arg(long)]
    pub(super) raw: bool,
    #[command(flatten)]
    pub(super) password: PasswordArguments,
    /// Require a secure connection to a server with this public key or key hash; or "any", which protects against
    /// passive eavesdroppers only
    #[arg(long, value_name = "KEY", group = "trust")]
    pub(super) server_key: Option<TrustArgument>,
    /// Present this connect token (see token); it must name HOST:PORT as one of its servers, and --identity must be the
    /// key that it was issued for
    #[arg(long, value_name = "TOKEN", group = "trust", requires = "identity", conflicts_with_all = ["password", "password_file"])]
    pub(super) token: Option<String>,
    /// Present the identity in this file to the server (see keygen)
    #[arg(long, value_name = "FILE", visible_alias = "key", requires = "trust")]
    pub(super) identity: Option<PathBuf>,
    /// Send this text with the identity, at most 95 bytes
    #[arg(long, value_name = "TEXT", requires = "identity", default_value = "", hide_default_value = true)]
    pub(super) identity_data: String,
    /// Append the keys of the secure connection to this file; anyone with the file can decrypt it (see decode)
    #[arg(long, value_name = "FILE", requires = "trust")]
    pub(super) key_log: Option<PathBuf>,
    /// Use TCP instead of UDP, each message prefixed with its length as in RakNet's PacketizedTCP
    #[arg(long, conflicts_with_all = OPTIONS_OF_UDP)]
    pub(super) tcp: bool,
    /// Use TLS over TCP; the server needs a certificate for HOST from an authority that the system trusts
    #[arg(long, requires = "tcp")]
    pub(super) tls: bool,
    /// Trust the certificate authorities in this PEM file instead
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(super) tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(super) capture: Capture,
}

/// The options that apply only to UDP.
const OPTIONS_OF_UDP: [&str; 9] =
    ["protocol", "reliability", "channel", "password", "password_file", "trust", "pcap", "sqlite", "log"];

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ReliabilityArgument {
    Unreliable,
    UnreliableSequenced,
    Reliable,
    ReliableOrdered,
    ReliableSequenced,
}
