//! Connections over either protocol.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rakwire::raknet::wire::id;
use rakwire_native::game_protocol::{self, Reliability};
use rakwire_native::raknet::{self, Channel, Delivery as RakNetDelivery};
use rakwire_native::{BindError, Simulation};
use snowfight::message::Delivery;

use crate::replication::{self, Replicas};

/// The backlog of a RakNet connection, in bytes, above which the server skips snapshots; newer snapshots replace
/// them.
const SNAPSHOT_BACKLOG_BYTES: u32 = 32 * 1_024;
/// The backlog of a Game Protocol connection, in chunks, above which the server skips snapshots.
const SNAPSHOT_BACKLOG_CHUNKS: u32 = 64;
/// The multiple of these limits above which the server sends nothing at all. Only a client that keeps sending
/// requests and hardly acknowledges anything reaches it.
const EXCESS_FACTOR: u32 = 4;
/// The channel of the snapshots, which are sequenced.
const SNAPSHOTS: Channel = Channel::new(1).unwrap();

/// The transport that carries the messages of the game.
///
/// ```
/// use snowfight_server::Protocol;
///
/// assert_eq!("raknet".parse(), Ok(Protocol::RakNet));
/// assert_eq!(Protocol::GameProtocol.to_string(), "game");
/// assert!("tcp".parse::<Protocol>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The Game Protocol (docs/game-protocol.md).
    GameProtocol,
    /// RakNet; each message begins with the byte 0x86.
    RakNet,
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GameProtocol => "game",
            Self::RakNet => "raknet",
        })
    }
}

impl std::str::FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "game" => Ok(Self::GameProtocol),
            "raknet" => Ok(Self::RakNet),
            _ => Err(format!("{text:?} is not a protocol; use game or raknet")),
        }
    }
}

/// The reason why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Connecting with the Game Protocol failed.
    #[error(transparent)]
    GameProtocol(#[from] game_protocol::DialError),
    /// Connecting with RakNet failed.
    #[error(transparent)]
    RakNet(#[from] raknet::ConnectError),
    /// Binding a socket failed.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system has no random bytes for keys.
    #[error("the system provides no random bytes: {0}")]
    Random(#[source] std::io::Error),
}

/// The level of data that is queued or in flight on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    Low,
    /// Above the limit for snapshots, which would arrive too late.
    High,
    /// Above [`EXCESS_FACTOR`] times that limit. The queue takes memory from other connections.
    Excessive,
}

impl Backlog {
    const fn of(waiting: u32, behind: u32) -> Self {
        if waiting <= behind {
            Self::Low
        } else if waiting <= behind.saturating_mul(EXCESS_FACTOR) {
            Self::High
        } else {
            Self::Excessive
        }
    }
}

/// A connection over either protocol.
#[derive(Debug)]
pub(crate) enum AnyConnection {
    GameProtocol(game_protocol::Connection),
    RakNet(raknet::Connection),
}

impl AnyConnection {
    pub(crate) async fn connect(
        address: SocketAddr,
        protocol: Protocol,
        network: Option<Simulation>,
    ) -> Result<Self, ConnectError> {
        match protocol {
            Protocol::GameProtocol => {
                let mut options = game_protocol::Options::client().map_err(ConnectError::Random)?;
                options.simulate = network;
                Ok(Self::GameProtocol(game_protocol::connect(address, options).await?))
            }
            Protocol::RakNet => {
                let endpoint = raknet::Endpoint::bind(any_port(address), raknet_options(network)?).await?;
                Ok(Self::RakNet(endpoint.connect(address).await?))
            }
        }
    }

    /// Connects over RakNet, and uses replication if the server offers it.
    pub(crate) async fn connect_replicated(
        address: SocketAddr,
        network: Option<Simulation>,
    ) -> Result<(Self, Replicas), ConnectError> {
        let (endpoint, replicas) =
            replication::bind_client(any_port(address), raknet_options(network)?).await?;
        Ok((Self::RakNet(endpoint.connect(address).await?), replicas))
    }

    /// Sends a message; returns false if the send buffer is full.
    pub(crate) fn send(&self, payload: &[u8], delivery: Delivery) -> bool {
        match self {
            Self::GameProtocol(connection) => {
                let reliability = match delivery {
                    Delivery::Reliable => Reliability::Reliable,
                    Delivery::Unreliable => Reliability::Unreliable,
                };
                connection.try_send(payload, reliability).is_ok()
            }
            Self::RakNet(connection) => {
                let delivery = match delivery {
                    Delivery::Reliable => RakNetDelivery::RELIABLE_ORDERED,
                    Delivery::Unreliable => RakNetDelivery::UNRELIABLE_SEQUENCED.on(SNAPSHOTS),
                };
                let mut message = Vec::with_capacity(payload.len() + 1);
                message.push(id::USER);
                message.extend_from_slice(payload);
                connection.try_send(&message, delivery).is_ok()
            }
        }
    }

    /// Returns the next game message; `None` once the connection is closed.
    pub(crate) async fn recv(&self) -> Option<Vec<u8>> {
        match self {
            Self::GameProtocol(connection) => Some(connection.recv().await?.bytes),
            Self::RakNet(connection) => loop {
                let mut message = connection.recv().await?.bytes;
                if message.first() == Some(&id::USER) {
                    message.remove(0);
                    return Some(message);
                }
            },
        }
    }

    /// Returns the level of data that is queued or in flight.
    pub(crate) fn backlog(&self) -> Backlog {
        match self {
            Self::GameProtocol(connection) => connection.stats().map_or(Backlog::Low, |stats| {
                Backlog::of(stats.waiting + stats.in_flight, SNAPSHOT_BACKLOG_CHUNKS)
            }),
            Self::RakNet(connection) => connection.stats().map_or(Backlog::Low, |stats| {
                Backlog::of(stats.waiting.iter().map(|waiting| waiting.bytes).sum(), SNAPSHOT_BACKLOG_BYTES)
            }),
        }
    }

    /// Returns true if all reliable messages have been acknowledged.
    pub(crate) fn is_drained(&self) -> bool {
        match self {
            Self::GameProtocol(connection) => {
                connection.stats().is_none_or(|stats| stats.waiting + stats.in_flight == 0)
            }
            Self::RakNet(connection) => connection.stats().is_none_or(|stats| {
                stats.in_flight == 0 && stats.waiting.iter().all(|waiting| waiting.messages == 0)
            }),
        }
    }

    /// Closes the connection once all reliable messages have been acknowledged.
    pub(crate) async fn close(&self) {
        match self {
            Self::GameProtocol(connection) => connection.disconnect().await,
            Self::RakNet(connection) => connection.disconnect().await,
        }
    }
}

/// Returns a local address with any free port, of the address family of the server.
fn any_port(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn raknet_options(network: Option<Simulation>) -> Result<raknet::Options, ConnectError> {
    let mut options = raknet::Options::client().map_err(ConnectError::Random)?;
    options.simulate = network;
    Ok(options)
}
