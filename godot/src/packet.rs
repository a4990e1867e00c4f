//! Encodes Godot's transfer modes and channels as RakNet messages.

use rakwire_native::polled::SendQueue;
use rakwire_native::{Channel, Delivery, RakNet, Reliability, id};

/// The number of transfer channels. Reliable packets use RakNet's ordering channels 0 to 15, and ordered unreliable
/// packets 16 to 31. Packets of different modes therefore never delay each other.
pub const CHANNELS: i32 = 16;

/// The first byte of the welcome message, which assigns an id to a client: 0x96, the byte after those of the transfer
/// channels.
const WELCOME: u8 = id::USER + CHANNELS as u8;
/// The version of the message format.
const VERSION: u8 = 1;

/// A transfer mode of Godot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Packets may be lost or reordered.
    Unreliable,
    /// Packets may be lost, and packets older than one already received are dropped.
    UnreliableOrdered,
    /// Packets arrive once and in order. Godot's default.
    #[default]
    Reliable,
}

/// A transfer mode and a transfer channel.
///
/// The first byte of a message encodes the channel, and its RakNet reliability encodes the mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    mode: Mode,
    channel: u8,
}

impl Transfer {
    /// Combines a mode and a channel. Returns `None` if the channel is outside 0 to 15.
    #[must_use]
    pub fn new(mode: Mode, channel: i32) -> Option<Self> {
        let channel = (0..CHANNELS).contains(&channel).then_some(channel as u8)?;
        Some(Self { mode, channel })
    }

    /// Returns the transfer mode.
    #[must_use]
    pub const fn mode(self) -> Mode {
        self.mode
    }

    /// Returns the transfer channel, 0 to 15.
    #[must_use]
    pub const fn channel(self) -> i32 {
        self.channel as i32
    }

    /// Returns the RakNet reliability and ordering channel for this transfer.
    pub(crate) fn delivery(self) -> Delivery {
        let on = |delivery: Delivery, channel| delivery.on(Channel::new(channel).unwrap_or_default());
        match self.mode {
            Mode::Unreliable => Delivery::UNRELIABLE,
            Mode::UnreliableOrdered => {
                let sequenced = Delivery::new(Reliability::UnreliableSequenced);
                on(sequenced, self.channel + CHANNELS as u8)
            }
            Mode::Reliable => on(Delivery::RELIABLE_ORDERED, self.channel),
        }
    }

    /// Builds the message that carries a payload.
    pub(crate) fn message(self, payload: &[u8]) -> Vec<u8> {
        let mut message = Vec::with_capacity(1 + payload.len());
        message.push(id::USER + self.channel);
        message.extend_from_slice(payload);
        message
    }

    /// Reads the transfer of a received message. Returns `None` if the first byte is not a channel, or the message has
    /// no payload.
    fn read(message: &[u8], delivery: Delivery) -> Option<Self> {
        let [first, _, ..] = *message else { return None };
        let channel = first.checked_sub(id::USER).filter(|channel| i32::from(*channel) < CHANNELS)?;
        let mode = match delivery.reliability {
            Reliability::UnreliableSequenced => Mode::UnreliableOrdered,
            reliability if reliability.is_reliable() => Mode::Reliable,
            _ => Mode::Unreliable,
        };
        Some(Self { mode, channel })
    }
}

/// A received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    from: i32,
    transfer: Transfer,
    message: Vec<u8>,
}

impl Packet {
    /// Converts a message from a peer to a packet. Returns `None` if the message is not in the packet format.
    pub(crate) fn open(from: i32, message: Vec<u8>, delivery: Delivery) -> Option<Self> {
        let transfer = Transfer::read(&message, delivery)?;
        Some(Self { from, transfer, message })
    }

    /// Returns the unique id of the sender.
    #[must_use]
    pub const fn from(&self) -> i32 {
        self.from
    }

    /// Returns the transfer mode and channel with which it was sent.
    #[must_use]
    pub const fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// Returns the number of bytes that the packet adds to the size of a queue: its message and a fixed overhead.
    pub(crate) fn cost(&self) -> usize {
        self.message.len().saturating_add(SendQueue::<RakNet>::OVERHEAD)
    }

    /// Returns the payload, as passed to [`put`](crate::Session::put) by the sender.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.message.get(1..).unwrap_or_default()
    }
}

/// Builds the welcome message, in which a server assigns an id to a client.
pub(crate) fn welcome(id: i32) -> [u8; 6] {
    let [a, b, c, d] = id.to_be_bytes();
    [WELCOME, VERSION, a, b, c, d]
}

/// The content of a welcome message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// The id assigned to this client.
    Id(i32),
    /// The server uses this version of the message format, which differs from that of the client.
    OtherVersion(u8),
}

/// Reads a welcome message. Returns `None` for any other message, and if the assigned id is below 2.
pub(crate) fn read_welcome(message: &[u8]) -> Option<Welcome> {
    match *message {
        [WELCOME, VERSION, a, b, c, d] => {
            let id = i32::from_be_bytes([a, b, c, d]);
            (id > 1).then_some(Welcome::Id(id))
        }
        [WELCOME, version, ..] if version != VERSION => Some(Welcome::OtherVersion(version)),
        _ => None,
    }
}

/// Returns a random unused id from 2 to 2,147,483,647.
///
/// # Errors
/// Returns an error if the operating system provides no random bytes.
pub(crate) fn random_id(is_taken: impl Fn(i32) -> bool) -> Result<i32, getrandom::Error> {
    loop {
        let id = (getrandom::u32()? >> 1) as i32;
        if id > 1 && !is_taken(id) {
            return Ok(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const MODES: [Mode; 3] = [Mode::Unreliable, Mode::UnreliableOrdered, Mode::Reliable];

    #[test]
    fn every_transfer_round_trips_through_its_message() {
        for mode in MODES {
            for channel in 0..CHANNELS {
                let transfer = Transfer::new(mode, channel).expect("a channel");
                let packet =
                    Packet::open(7, transfer.message(b"payload"), transfer.delivery()).expect("a packet");
                assert_eq!(
                    (packet.from(), packet.transfer(), packet.payload()),
                    (7, transfer, &b"payload"[..])
                );
                assert_eq!((packet.transfer().mode(), packet.transfer().channel()), (mode, channel));
            }
        }
    }

    #[test]
    fn every_mode_and_channel_has_its_own_ordering_channel() {
        let ordering = |mode, channel| {
            let delivery = Transfer::new(mode, channel).expect("a channel").delivery();
            (delivery.reliability, delivery.channel.number())
        };
        assert_eq!(ordering(Mode::Reliable, 0), (Reliability::ReliableOrdered, 0));
        assert_eq!(ordering(Mode::Reliable, 15), (Reliability::ReliableOrdered, 15));
        assert_eq!(ordering(Mode::UnreliableOrdered, 0), (Reliability::UnreliableSequenced, 16));
        assert_eq!(ordering(Mode::UnreliableOrdered, 15), (Reliability::UnreliableSequenced, 31));
        assert_eq!(ordering(Mode::Unreliable, 15).0, Reliability::Unreliable);
    }

    #[test]
    fn channels_outside_0_to_15_are_refused() {
        for channel in [-1, 16, 256, i32::MIN, i32::MAX] {
            assert_eq!(Transfer::new(Mode::Reliable, channel), None, "{channel}");
        }
    }

    #[test]
    fn messages_without_a_channel_or_payload_are_not_packets() {
        for message in [&[][..], &[0x86], &[0x1B, 1], &[0x85, 1], &[0x96, 1, 0], &[0xFF, 1]] {
            assert_eq!(Packet::open(1, message.to_vec(), Delivery::RELIABLE), None, "{message:?}");
        }
    }

    #[test]
    fn only_a_welcome_with_a_valid_id_assigns_an_id() {
        assert_eq!(read_welcome(&welcome(2)), Some(Welcome::Id(2)));
        assert_eq!(read_welcome(&welcome(i32::MAX)), Some(Welcome::Id(i32::MAX)));
        for id in [1, 0, -1, i32::MIN] {
            assert_eq!(read_welcome(&welcome(id)), None, "{id}");
        }
        assert_eq!(read_welcome(&[WELCOME, VERSION, 0, 0, 9]), None);
        assert_eq!(read_welcome(&[WELCOME]), None);
        assert_eq!(read_welcome(&[0x86, VERSION, 0, 0, 0, 9]), None);
        assert_eq!(read_welcome(&[WELCOME, 2, 0]), Some(Welcome::OtherVersion(2)));
    }

    #[test]
    fn random_ids_skip_ids_in_use() {
        let (seen, refusals) = (Cell::new(0), Cell::new(0));
        let id = random_id(|id| {
            assert!(id > 1);
            seen.set(id);
            refusals.set(refusals.get() + 1);
            refusals.get() < 3
        })
        .expect("random bytes");
        assert_eq!((id, refusals.get()), (seen.get(), 3));
    }
}
