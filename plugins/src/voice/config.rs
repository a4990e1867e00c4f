//! How voice is sent and played.

use core::time::Duration;

use rakwire::raknet::Channel;

/// The settings of a [`Voice`](super::Voice). All peers have the same id and the same time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoiceConfig {
    /// The message id, one of the application's: 134 or above.
    pub id: u8,
    /// The ordering channel, on which nothing else should be sequenced. 31 by default.
    pub channel: Channel,
    /// The length of a frame in time. 20 ms by default, as Opus has it.
    pub frame_time: Duration,
    /// The longest time that a buffer keeps frames back. 200 ms by default: with more, people talk over each other.
    pub max_delay: Duration,
}

impl VoiceConfig {
    /// The defaults with this message id.
    #[must_use]
    pub fn new(id: u8) -> Self {
        Self {
            id,
            channel: Channel::new(31).unwrap_or_default(),
            frame_time: Duration::from_millis(20),
            max_delay: Duration::from_millis(200),
        }
    }
}

/// Why a frame is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TalkError {
    /// It has no bytes.
    Empty,
    /// It has more bytes than the plugin was made for.
    TooLong,
    /// Frames wait that the driver has not sent yet; this one is left out.
    Full,
}

impl core::fmt::Display for TalkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Empty => "a frame must have at least one byte",
            Self::TooLong => "the frame is longer than the plugin was made for",
            Self::Full => "earlier frames wait to be sent; have the driver run",
        })
    }
}

impl core::error::Error for TalkError {}
