//! A connection of either protocol.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rakwire::raknet::wire::id;
use rakwire_native::game_protocol::{self, Reliability};
use rakwire_native::raknet::{self, Channel, Delivery as Promise};
use rakwire_native::{BindError, Simulation};
use snowfight::message::Delivery;

/// Bytes that may wait in a RakNet connection before it gets no further snapshots: newer ones are worth more.
const BEHIND: u32 = 32 * 1_024;
/// Chunks that may wait in a connection of the Game Protocol before it gets no further snapshots.
const BEHIND_CHUNKS: u32 = 64;
/// How many times as much may wait until the connection gets nothing at all: only who acknowledges hardly anything, and
/// asks for more, lets so much pile up.
const HOPELESS: u32 = 4;
/// Snapshots are sequenced on a channel of their own.
const SNAPSHOTS: Channel = Channel::new(1).unwrap();

/// What carries the messages of the game.
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
    /// RakNet; each message has the byte 0x86 in front.
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
            _ => Err(format!("{text:?} is no protocol; give game or raknet")),
        }
    }
}

/// Why no connection could be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// By the Game Protocol.
    #[error(transparent)]
    GameProtocol(#[from] game_protocol::DialError),
    /// By RakNet.
    #[error(transparent)]
    RakNet(#[from] raknet::ConnectError),
    /// No socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// No keys.
    #[error("the system gives no random bytes: {0}")]
    Random(#[source] std::io::Error),
}

/// How much waits to be sent on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    Short,
    /// A further snapshot would come too late.
    Long,
    /// It takes the memory of all others.
    Hopeless,
}

impl Backlog {
    const fn of(waiting: u32, behind: u32) -> Self {
        if waiting <= behind {
            Self::Short
        } else if waiting <= behind.saturating_mul(HOPELESS) {
            Self::Long
        } else {
            Self::Hopeless
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) enum Link {
    GameProtocol(game_protocol::Connection),
    RakNet(raknet::Connection),
}

impl Link {
    pub(crate) async fn dial(
        address: SocketAddr,
        protocol: Protocol,
        network: Option<Simulation>,
    ) -> Result<Self, DialError> {
        match protocol {
            Protocol::GameProtocol => {
                let mut options = game_protocol::Options::client().map_err(DialError::Random)?;
                options.simulate = network;
                Ok(Self::GameProtocol(game_protocol::connect(address, options).await?))
            }
            Protocol::RakNet => {
                let here: SocketAddr = match address {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let mut options = raknet::Options::client().map_err(DialError::Random)?;
                options.simulate = network;
                let endpoint = raknet::Endpoint::bind(here, options).await?;
                Ok(Self::RakNet(endpoint.connect(address).await?))
            }
        }
    }

    /// Sends a message if there is room for it; false when it was not taken.
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
                let promise = match delivery {
                    Delivery::Reliable => Promise::RELIABLE_ORDERED,
                    Delivery::Unreliable => Promise::UNRELIABLE_SEQUENCED.on(SNAPSHOTS),
                };
                let mut message = Vec::with_capacity(payload.len() + 1);
                message.push(id::USER);
                message.extend_from_slice(payload);
                connection.try_send(&message, promise).is_ok()
            }
        }
    }

    /// The next message of the game; nothing once the connection has ended.
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

    /// How much waits to be sent, or to be acknowledged.
    pub(crate) fn backlog(&self) -> Backlog {
        match self {
            Self::GameProtocol(connection) => connection
                .stats()
                .map_or(Backlog::Short, |stats| Backlog::of(stats.waiting + stats.in_flight, BEHIND_CHUNKS)),
            Self::RakNet(connection) => connection.stats().map_or(Backlog::Short, |stats| {
                Backlog::of(stats.waiting.iter().map(|waiting| waiting.bytes).sum(), BEHIND)
            }),
        }
    }

    /// Whether everything reliable that was sent has arrived.
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

    /// Ends the connection once what was sent reliably has arrived.
    pub(crate) async fn close(&self) {
        match self {
            Self::GameProtocol(connection) => connection.disconnect().await,
            Self::RakNet(connection) => connection.disconnect().await,
        }
    }
}
