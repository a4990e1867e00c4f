//! The hot paths of the core in which instructions are counted.

use clap::ValueEnum;

use crate::connected_peers::{ConnectedPeers, Path, Protection};

/// The number of blocks of a peer with one connection.
const BLOCKS: usize = 4_096;
/// The number of messages queued at once.
const BATCH: usize = 128;
/// The number of secure connections of the workloads with a game server.
const PLAYERS: u16 = 200;
/// The number of forged datagrams per repetition: four per message of a player.
const FORGED: usize = 800;

/// A workload of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum HotPath {
    /// 128 messages of 16 bytes: send, compose, parse, deliver and acknowledge.
    #[value(name = "messages_16b")]
    Messages16,
    /// 128 messages of 100 bytes.
    #[value(name = "messages_100b")]
    Messages100,
    /// 128 messages of 1,000 bytes.
    #[value(name = "messages_1kb")]
    Messages1000,
    /// 16 messages of 10,000 bytes, each in parts.
    #[value(name = "messages_10kb")]
    Messages10000,
    /// 128 messages of 100 bytes, with one in twenty datagrams lost.
    #[value(name = "messages_100b_loss_5")]
    MessagesLost,
    /// A message of 64 bytes and its echo.
    #[value(name = "pingpong_64b")]
    PingPong,
    /// One message of 100 bytes on each of 100 connections of one server.
    #[value(name = "connections_100")]
    Connections100,
    /// 10,000 messages of 100 bytes that are queued at once.
    #[value(name = "queue_10000")]
    Queue10000,
    /// A handshake, with the allocation of both endpoints.
    #[value(name = "handshake")]
    Handshake,
    /// 128 messages of 100 bytes in a secure connection.
    #[value(name = "secure_messages_100b")]
    SecureMessages100,
    /// 128 messages of 1,000 bytes in a secure connection.
    #[value(name = "secure_messages_1kb")]
    SecureMessages1000,
    /// 16 messages of 10,000 bytes in a secure connection, each in parts.
    #[value(name = "secure_messages_10kb")]
    SecureMessages10000,
    /// A message of 64 bytes and its echo in a secure connection.
    #[value(name = "secure_pingpong_64b")]
    SecurePingPong,
    /// A secure handshake, with the allocation of both endpoints and the computations of both.
    #[value(name = "secure_handshake")]
    SecureHandshake,
    /// One message of 100 bytes on each of 200 secure connections of one server.
    #[value(name = "secure_connections_200")]
    SecureConnections200,
    /// Like `SecureConnections200`, alongside 800 forged datagrams of 100 bytes with the clients' addresses.
    #[value(name = "secure_connections_200_forged")]
    SecureConnections200Forged,
}

impl HotPath {
    /// Returns the number of messages (or handshakes) in one repetition.
    ///
    /// ```
    /// assert_eq!(rakwire_bench::hot_path::HotPath::Queue10000.units(), 10_000);
    /// ```
    #[must_use]
    pub const fn units(self) -> u64 {
        match self {
            Self::Messages16
            | Self::Messages100
            | Self::Messages1000
            | Self::MessagesLost
            | Self::SecureMessages100
            | Self::SecureMessages1000 => BATCH as u64,
            Self::Messages10000 | Self::SecureMessages10000 => 16,
            Self::PingPong | Self::SecurePingPong => 2,
            Self::SecureConnections200 | Self::SecureConnections200Forged => PLAYERS as u64,
            Self::Connections100 => 100,
            Self::Queue10000 => 10_000,
            Self::Handshake | Self::SecureHandshake => 1,
        }
    }

    /// Returns the number of repetitions in a count: enough to average out rare work, such as a resize or a timer.
    #[must_use]
    pub const fn repetitions(self) -> u64 {
        match self {
            Self::Messages16
            | Self::Messages100
            | Self::Messages1000
            | Self::Messages10000
            | Self::MessagesLost
            | Self::PingPong
            | Self::SecureMessages100
            | Self::SecureMessages1000
            | Self::SecureMessages10000
            | Self::SecurePingPong => 200,
            Self::Connections100 => 50,
            Self::Queue10000
            | Self::Handshake
            | Self::SecureHandshake
            | Self::SecureConnections200
            | Self::SecureConnections200Forged => 10,
        }
    }

    const fn protection(self) -> Protection {
        match self {
            Self::SecureMessages100
            | Self::SecureMessages1000
            | Self::SecureMessages10000
            | Self::SecurePingPong
            | Self::SecureHandshake
            | Self::SecureConnections200
            | Self::SecureConnections200Forged => Protection::Secure,
            Self::Messages16
            | Self::Messages100
            | Self::Messages1000
            | Self::Messages10000
            | Self::MessagesLost
            | Self::PingPong
            | Self::Connections100
            | Self::Queue10000
            | Self::Handshake => Protection::Plain,
        }
    }

    fn peers(self) -> ConnectedPeers {
        let (connections, blocks) = match self {
            Self::Connections100 => (100, 64),
            Self::SecureConnections200 | Self::SecureConnections200Forged => (PLAYERS, 64),
            Self::Handshake | Self::SecureHandshake => (1, 64),
            Self::Queue10000 => (1, 32_768),
            Self::Messages16
            | Self::Messages100
            | Self::Messages1000
            | Self::Messages10000
            | Self::MessagesLost
            | Self::PingPong
            | Self::SecureMessages100
            | Self::SecureMessages1000
            | Self::SecureMessages10000
            | Self::SecurePingPong => (1, BLOCKS),
        };
        let path = if self == Self::MessagesLost { Path::LosesOneIn(20) } else { Path::Clean };
        ConnectedPeers::protected(connections, blocks, path, self.protection())
    }

    /// Runs the workload `repetitions` times.
    pub fn run(self, repetitions: u64) {
        let mut peers = self.peers();
        for _ in 0..repetitions {
            match self {
                Self::Messages16 => peers.exchange(BATCH, 16),
                Self::Messages100 | Self::MessagesLost | Self::SecureMessages100 => {
                    peers.exchange(BATCH, 100)
                }
                Self::Messages1000 | Self::SecureMessages1000 => peers.exchange(BATCH, 1_000),
                Self::Messages10000 | Self::SecureMessages10000 => peers.exchange(16, 10_000),
                Self::PingPong | Self::SecurePingPong => peers.ping_pong(64),
                Self::Connections100 | Self::SecureConnections200 => peers.exchange(1, 100),
                Self::SecureConnections200Forged => {
                    peers.forge(FORGED, 100);
                    peers.exchange(1, 100);
                }
                Self::Queue10000 => peers.exchange(10_000, 100),
                Self::Handshake | Self::SecureHandshake => drop(self.peers()),
            }
        }
    }
}
