//! The settings of voice.

use core::time::Duration;

use rakwire::raknet::Channel;

/// The settings of a [`Voice`](super::Voice). All peers must use the same id and frame time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoiceConfig {
    /// The message id, in the range for applications: 134 or above.
    pub id: u8,
    /// The ordering channel of the frames. Other sequenced messages should not use it. Default: 31.
    pub channel: Channel,
    /// The duration of a frame. Default: 20 ms, as usual for Opus.
    pub frame_time: Duration,
    /// The maximum time by which a buffer delays frames. Default: 200 ms; a longer delay makes people talk over each
    /// other.
    pub max_delay: Duration,
}

impl VoiceConfig {
    /// Creates the default settings with this message id.
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

/// The reason why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TalkError {
    /// The frame has no bytes.
    Empty,
    /// The frame exceeds the maximum length of the plugin.
    TooLong,
    /// The queue is full because the driver has not run, and the frame is dropped.
    Full,
}

impl core::fmt::Display for TalkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Empty => "a frame must have at least one byte",
            Self::TooLong => "the frame is longer than the plugin supports",
            Self::Full => "earlier frames are still queued; run the driver",
        })
    }
}

impl core::error::Error for TalkError {}
