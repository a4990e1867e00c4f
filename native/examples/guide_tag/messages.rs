//! The messages of the game. The first byte is the id; a client and a server may send anything, so nothing is trusted.

use rakwire_native::{Channel, Delivery, id};

use super::world::{Cell, Direction};

// From clients.
const HELLO: u8 = id::USER;
const STEER: u8 = id::USER + 1;
// From the server.
const WELCOME: u8 = id::USER + 2;
const JOINED: u8 = id::USER + 3;
const LEFT: u8 = id::USER + 4;
const TAGGED: u8 = id::USER + 5;
const STATE: u8 = id::USER + 6;

/// For what must arrive, in order: names, joins, leaves, tags.
pub(crate) const EVENTS: Delivery = Delivery::RELIABLE_ORDERED;
/// For what the next tick replaces: directions and states.
pub(crate) const NEWEST: Delivery = match Channel::new(1) {
    Some(channel) => Delivery::UNRELIABLE_SEQUENCED.on(channel),
    None => panic!("channels are 0 to 31"),
};

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Hello(String),
    Steer(Direction),
}

/// A message of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The number of the player that receives this message.
    Welcome(u8),
    Joined(u8, String),
    Left(u8),
    Tagged(u8),
    /// The player that is "it", and the cells of all players.
    State(u8, Vec<(u8, Cell)>),
}

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(name) => [&[HELLO], name.as_bytes()].concat(),
            Self::Steer([dx, dy]) => vec![STEER, dx.cast_unsigned(), dy.cast_unsigned()],
        }
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        match message {
            [HELLO, name @ ..] => Some(Self::Hello(text(name)?)),
            [STEER, dx, dy] => Some(Self::Steer([dx.cast_signed(), dy.cast_signed()])),
            _ => None,
        }
    }
}

impl News {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Welcome(number) => vec![WELCOME, *number],
            Self::Joined(number, name) => [&[JOINED, *number], name.as_bytes()].concat(),
            Self::Left(number) => vec![LEFT, *number],
            Self::Tagged(number) => vec![TAGGED, *number],
            Self::State(it, players) => {
                let players = players.iter().flat_map(|(number, [x, y])| [*number, *x, *y]);
                [STATE, *it].into_iter().chain(players).collect()
            }
        }
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        Some(match message {
            [WELCOME, number] => Self::Welcome(*number),
            [JOINED, number, name @ ..] => Self::Joined(*number, text(name)?),
            [LEFT, number] => Self::Left(*number),
            [TAGGED, number] => Self::Tagged(*number),
            [STATE, it, players @ ..] if players.len().is_multiple_of(3) => {
                let players = players.chunks_exact(3).map(|player| (player[0], [player[1], player[2]]));
                Self::State(*it, players.collect())
            }
            _ => return None,
        })
    }

    /// Returns the delivery of the message.
    pub(crate) const fn delivery(&self) -> Delivery {
        match self {
            Self::State(..) => NEWEST,
            Self::Welcome(_) | Self::Joined(..) | Self::Left(_) | Self::Tagged(_) => EVENTS,
        }
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}
