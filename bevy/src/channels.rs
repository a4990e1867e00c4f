//! Encodes the number of a replicon channel as a prefix of a RakNet message.

use bevy_replicon::bytes::Bytes;
use bevy_replicon::prelude::Channel;
use rakwire::raknet::{self, Delivery};
use rakwire::wire::id;

/// The id of messages with a three-byte prefix: the channel number minus [`SHORT`] follows in two bytes.
const LONG: u8 = 0xFF;
/// The number of channels with a one-byte prefix.
const SHORT: usize = (LONG - id::USER) as usize;

/// The number of a replicon channel, encoded as a prefix of each message.
///
/// A RakNet message begins with an id, and applications may use 0x86 to 0xFF. Channels 0 to 120 have the ids 0x86 to
/// 0xFE. From channel 121 on the id is 0xFF, and the channel number minus 121 follows in two bytes, big-endian.
///
/// ```
/// use rakwire_bevy::ChannelId;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert_eq!(ChannelId::new(2)?.prefix(), [0x88]);
/// assert_eq!(ChannelId::new(122)?.prefix(), [0xFF, 0, 1]);
/// assert_eq!(ChannelId::read(&[0x88, 7, 8]), Some((ChannelId::new(2)?, 1)));
/// assert_eq!(ChannelId::read(&[0x13]), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelId {
    number: usize,
    bytes: [u8; 3],
}

/// The error for a channel number above 65,656.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("channel {0} is above 65,656, the maximum")]
pub struct TooManyChannels(pub usize);

impl ChannelId {
    /// Creates the id of this channel, 0 to 65,656.
    ///
    /// # Errors
    /// Returns [`TooManyChannels`] for a higher number.
    pub fn new(number: usize) -> Result<Self, TooManyChannels> {
        if number < SHORT {
            return Ok(Self { number, bytes: [id::USER + number as u8, 0, 0] });
        }
        let rest = u16::try_from(number - SHORT).map_err(|_| TooManyChannels(number))?;
        let [high, low] = rest.to_be_bytes();
        Ok(Self { number, bytes: [LONG, high, low] })
    }

    /// Returns the channel of a message, and the length of its prefix: 1 or 3 bytes. Returns `None` if the first byte
    /// is below 0x86 or the prefix is truncated.
    #[must_use]
    pub fn read(message: &[u8]) -> Option<(Self, usize)> {
        match *message {
            [LONG, high, low, ..] => {
                let number = SHORT + usize::from(u16::from_be_bytes([high, low]));
                Some((Self { number, bytes: [LONG, high, low] }, 3))
            }
            [first, ..] if (id::USER..LONG).contains(&first) => {
                Some((Self { number: usize::from(first - id::USER), bytes: [first, 0, 0] }, 1))
            }
            _ => None,
        }
    }

    /// Returns the number of the channel.
    #[must_use]
    pub const fn number(self) -> usize {
        self.number
    }

    /// Returns the prefix that goes before the payload.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        if self.number < SHORT { &self.bytes[..1] } else { &self.bytes }
    }
}

/// Returns the RakNet delivery of a channel.
pub(crate) fn delivery_of(channel: Channel, number: usize) -> Delivery {
    match channel {
        Channel::Unreliable => Delivery::UNRELIABLE,
        Channel::Unordered => Delivery::RELIABLE,
        Channel::Ordered => {
            let count = raknet::Channel::COUNT;
            let ordering = raknet::Channel::new((number % count) as u8).unwrap_or_default();
            Delivery::RELIABLE_ORDERED.on(ordering)
        }
    }
}

/// Splits a received message into channel number and payload. Returns `None` unless the channel is below `count`.
pub(crate) fn open(message: Vec<u8>, count: usize) -> Option<(usize, Bytes)> {
    let (id, payload) = ChannelId::read(&message)?;
    (id.number() < count).then(|| (id.number(), Bytes::from(message).slice(payload..)))
}

#[cfg(test)]
mod tests {
    use rakwire::raknet::Reliability;

    use super::*;

    /// The number of channels that the prefix can encode.
    const MOST: usize = SHORT + 0x1_0000;

    #[test]
    fn every_channel_id_is_read_back_from_its_prefix() {
        for number in [0, 1, SHORT - 1, SHORT, SHORT + 1, SHORT + 300, MOST - 1] {
            let id = ChannelId::new(number).expect("a channel");
            let message = [id.prefix(), b"payload"].concat();
            assert_eq!(ChannelId::read(&message), Some((id, id.prefix().len())), "{number}");
            assert!(message[0] >= id::USER, "{number} uses an id that RakNet reserves");
        }
        assert_eq!(ChannelId::new(MOST), Err(TooManyChannels(MOST)));
    }

    #[test]
    fn messages_without_a_complete_prefix_have_no_channel() {
        for message in [&[][..], &[0], &[0x1B, 1], &[0x85, 1], &[0xFF], &[0xFF, 0]] {
            assert_eq!(ChannelId::read(message), None, "{message:?}");
        }
    }

    #[test]
    fn open_returns_none_for_channels_that_are_not_registered() {
        assert_eq!(open(b"\x87two".to_vec(), 2), Some((1, Bytes::from_static(b"two"))));
        assert_eq!(open(b"\x86".to_vec(), 2), Some((0, Bytes::new())));
        assert_eq!(open(b"\x88two".to_vec(), 2), None);
        assert_eq!(open(b"\xFF\xFF\xFFtwo".to_vec(), 2), None);
    }

    #[test]
    fn each_replicon_channel_kind_maps_to_its_reliability() {
        let reliability = |channel| delivery_of(channel, 0).reliability;
        assert_eq!(reliability(Channel::Unreliable), Reliability::Unreliable);
        assert_eq!(reliability(Channel::Unordered), Reliability::Reliable);
        assert_eq!(reliability(Channel::Ordered), Reliability::ReliableOrdered);
    }

    #[test]
    fn ordered_channels_use_separate_ordering_channels() {
        let ordering = |number| delivery_of(Channel::Ordered, number).channel.number();
        assert_eq!([0, 1, 31, 32, 33].map(ordering), [0, 1, 31, 0, 1]);
    }
}
