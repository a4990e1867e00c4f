//! The hot paths of the core whose instructions are counted.

use clap::ValueEnum;

use crate::connected_peers::{ConnectedPeers, Path};

/// Blocks of a peer that has one connection.
const BLOCKS: usize = 4_096;
/// Messages that are queued at once.
const BATCH: usize = 128;

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
}

impl HotPath {
    /// The number of messages (or handshakes) in one repetition.
    ///
    /// ```
    /// assert_eq!(rakwire_bench::hot_path::HotPath::Queue10000.units(), 10_000);
    /// ```
    #[must_use]
    pub const fn units(self) -> u64 {
        match self {
            Self::Messages16 | Self::Messages100 | Self::Messages1000 | Self::MessagesLost => BATCH as u64,
            Self::Messages10000 => 16,
            Self::PingPong => 2,
            Self::Connections100 => 100,
            Self::Queue10000 => 10_000,
            Self::Handshake => 1,
        }
    }

    /// The number of repetitions in a count: enough to average out rare work, such as a resize or a timer.
    #[must_use]
    pub const fn repetitions(self) -> u64 {
        match self {
            Self::Messages16
            | Self::Messages100
            | Self::Messages1000
            | Self::Messages10000
            | Self::MessagesLost
            | Self::PingPong => 200,
            Self::Connections100 => 50,
            Self::Queue10000 | Self::Handshake => 10,
        }
    }

    /// Runs it `repetitions` times.
    pub fn run(self, repetitions: u64) {
        let (connections, blocks, path) = match self {
            Self::Connections100 => (100, 64, Path::Clean),
            Self::Handshake => (1, 64, Path::Clean),
            Self::Queue10000 => (1, 32_768, Path::Clean),
            Self::MessagesLost => (1, BLOCKS, Path::LosesOneIn(20)),
            Self::Messages16
            | Self::Messages100
            | Self::Messages1000
            | Self::Messages10000
            | Self::PingPong => (1, BLOCKS, Path::Clean),
        };
        let mut peers = ConnectedPeers::new(connections, blocks, path);
        for _ in 0..repetitions {
            match self {
                Self::Messages16 => peers.exchange(BATCH, 16),
                Self::Messages100 | Self::MessagesLost => peers.exchange(BATCH, 100),
                Self::Messages1000 => peers.exchange(BATCH, 1_000),
                Self::Messages10000 => peers.exchange(16, 10_000),
                Self::PingPong => peers.ping_pong(64),
                Self::Connections100 => peers.exchange(1, 100),
                Self::Queue10000 => peers.exchange(10_000, 100),
                Self::Handshake => drop(ConnectedPeers::new(1, 64, Path::Clean)),
            }
        }
    }
}
