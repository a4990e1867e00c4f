//! Operations on two peers and on the path between them, decoded from arbitrary bytes.

use arbitrary::{Arbitrary, Result, Unstructured};
use rakwire::raknet::{Channel, Delivery};

use super::ledger::{PRIORITIES, RELIABILITIES};
use super::random::Random;
use super::route::Fault;

/// One of the two peers: the client connects, and the server accepts the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum End {
    Client,
    Server,
}

impl End {
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The memory of both peers, their first datagram and message number, and their MTU.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub first_number: u32,
    pub blocks: usize,
    pub block_size: usize,
    pub mtu: u16,
}

impl<'a> Arbitrary<'a> for Setup {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self {
            first_number: *u.choose(&[0, 0xFF_FFFC, 0xFF_FFF0, 0x7F_FFF8, 0xFF_FF00])?,
            blocks: *u.choose(&[64, 128, 512])?,
            block_size: *u.choose(&[64, 256])?,
            mtu: *u.choose(&[576, 1_492])?,
        })
    }
}

/// A datagram that neither peer has sent.
#[derive(Clone, Debug)]
pub enum Forgery {
    /// Arbitrary bytes.
    Raw(Vec<u8>),
    /// A data datagram with one capsule and with numbers near those in use.
    Data {
        number: u8,
        flags: u8,
        reliable: u8,
        order: u8,
        channel: u8,
        count: u8,
        index: u8,
        length: u8,
    },
    /// An acknowledgement or a negative acknowledgement of everything in a range.
    Records {
        first: u32,
        last: u32,
        copies: u8,
        missing: bool,
    },
    /// A request 2 with a guessed cookie or none.
    Request2 {
        cookie: Option<u32>,
        guid: u8,
    },
    Request1 {
        protocol: u8,
        padding: u8,
    },
    Ping,
    /// A disconnection notification with numbers near those in use.
    Disconnect {
        number: u8,
        reliable: u8,
    },
}

impl<'a> Arbitrary<'a> for Forgery {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.arbitrary::<u8>()? % 8 {
            0 => {
                let length = usize::from(u.arbitrary::<u8>()? % 48);
                Self::Raw(u.bytes(length.min(u.len()))?.to_vec())
            }
            1..=2 => Self::Data {
                number: u.arbitrary()?,
                flags: u.arbitrary()?,
                reliable: u.arbitrary()?,
                order: u.arbitrary()?,
                channel: u.arbitrary()?,
                count: u.arbitrary()?,
                index: u.arbitrary()?,
                length: u.arbitrary()?,
            },
            3 => Self::Disconnect { number: u.arbitrary()?, reliable: u.arbitrary()? },
            4 => Self::Records {
                first: u.arbitrary()?,
                last: u.arbitrary()?,
                copies: u.arbitrary()?,
                missing: u.arbitrary()?,
            },
            5 => Self::Request2 { cookie: u.arbitrary()?, guid: u.arbitrary()? },
            6 => Self::Request1 { protocol: u.arbitrary()?, padding: u.arbitrary()? },
            _ => Self::Ping,
        })
    }
}

/// A message to send one or more times.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub from: End,
    pub delivery: Delivery,
    pub length: u16,
    pub copies: u8,
}

impl<'a> Arbitrary<'a> for Send {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let channel = Channel::new(*u.choose(&[0, 0, 1, 31])?).unwrap_or_default();
        let delivery =
            Delivery { channel, reliability: *u.choose(&RELIABILITIES)?, priority: *u.choose(&PRIORITIES)? };
        let length = match u.arbitrary::<u8>()? {
            short @ 0..128 => u16::from(short) / 4,
            middle @ 128..192 => u16::from(middle) * 4,
            _ => u.arbitrary::<u16>()? % 8_192,
        };
        Ok(Self { from: u.arbitrary()?, delivery, length, copies: u.arbitrary::<u8>()? % 4 + 1 })
    }
}

#[derive(Clone, Debug)]
pub enum Operation {
    Send(Send),
    /// Advances the time and handles all events.
    Advance {
        millis: u16,
    },
    Fault {
        to: End,
        fault: Fault,
        mask: u8,
    },
    /// Delivers an old datagram again.
    Replay {
        to: End,
        age: u8,
    },
    /// Sets the clock back.
    StepBack {
        millis: u16,
    },
    /// Advances the clock without handling events.
    Jump {
        millis: u16,
    },
    /// Delivers a datagram from an address without a connection.
    Forged {
        to: End,
        forgery: Forgery,
    },
    /// Delivers a forged datagram with the source address of the other peer.
    Forge {
        to: End,
        forgery: Forgery,
    },
    Disconnect(End),
    Connect,
    /// Closes the connection and opens another. During the handshake, `to` receives forged datagrams with the source
    /// address of the other peer.
    Interfere {
        to: End,
        after: u8,
        forgeries: [Forgery; 3],
    },
    Pause(End),
    Resume(End),
    /// The application stops polling events.
    Neglect(End),
    /// The application polls events again.
    Attend(End),
}

impl<'a> Arbitrary<'a> for Operation {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.arbitrary::<u8>()? {
            0..96 => Self::Send(u.arbitrary()?),
            96..144 => Self::Advance { millis: u.arbitrary::<u8>()?.into() },
            144..148 => Self::Advance { millis: u.arbitrary::<u16>()? % 16_384 },
            148..192 => Self::Fault { to: u.arbitrary()?, fault: u.arbitrary()?, mask: u.arbitrary()? },
            192..208 => Self::Replay { to: u.arbitrary()?, age: u.arbitrary()? },
            208..212 => Self::StepBack { millis: u.arbitrary::<u16>()? % 4_096 },
            212..214 => Self::Jump { millis: u.arbitrary::<u16>()? % 32_768 },
            214..228 => Self::Forged { to: u.arbitrary()?, forgery: u.arbitrary()? },
            228..230 => Self::Forge { to: u.arbitrary()?, forgery: u.arbitrary()? },
            230..232 => Self::Disconnect(u.arbitrary()?),
            232..236 => Self::Connect,
            236..240 => Self::Pause(u.arbitrary()?),
            240..246 => Self::Resume(u.arbitrary()?),
            246..249 => Self::Neglect(u.arbitrary()?),
            249..252 => {
                Self::Interfere { to: u.arbitrary()?, after: u.arbitrary()?, forgeries: u.arbitrary()? }
            }
            _ => Self::Attend(u.arbitrary()?),
        })
    }
}

/// The setup and the operations of a run.
#[derive(Clone, Debug)]
pub struct Sequence {
    pub setup: Setup,
    pub operations: Vec<Operation>,
}

const MOST: usize = 300;

impl Sequence {
    /// Returns pseudorandom bytes that decode to a short sequence.
    pub fn random(seed: u64) -> Vec<u8> {
        let mut random = Random::new(seed);
        let length = 20 + random.below(600) as usize;
        random.bytes(length)
    }

    /// Decodes a sequence of at most 300 operations; returns `None` if the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut u = Unstructured::new(bytes);
        let setup = u.arbitrary().ok()?;
        let mut operations = Vec::new();
        while !u.is_empty() && operations.len() < MOST {
            operations.push(u.arbitrary().ok()?);
        }
        Some(Self { setup, operations })
    }
}
