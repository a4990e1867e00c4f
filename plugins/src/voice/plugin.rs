//! The plugin: sends frames to listeners, and plays those of each speaker.

use core::net::SocketAddr;

use heapless::{Deque, Vec};
use rakwire::endpoint::{BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::{Chunks, Instant};

use super::buffer::{Buffer, Playback, SpeakerStats};
use super::config::{TalkError, VoiceConfig};
use super::wire::{HEADER_LEN, Header};
use crate::bytes;

/// The maximum number of frames queued until the driver runs.
const UNSENT: usize = 4;
/// The maximum length of a message, in bytes. A message fits into one datagram at the smallest MTU, or into two on a
/// secure connection.
const MAX_MESSAGE: usize = 512;

/// Counters of the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceStats {
    /// Frames that were sent, counted for each listener.
    pub sent: u64,
    /// Frames that were dropped because the send memory of a connection was full.
    pub dropped: u64,
    /// Messages that are malformed or longer than the plugin supports.
    pub malformed: u64,
    /// Connections that are ignored because the plugin has fewer slots than the peer has connections.
    pub over_capacity: u64,
}

/// A remote peer.
#[derive(Debug)]
struct Other<const FRAMES: usize, const BYTES: usize> {
    buffer: Buffer<FRAMES, BYTES>,
    /// True if the frames of this peer are sent to the remote peer.
    hears: bool,
    /// True if the frames of the peer are dropped.
    is_muted: bool,
}

#[derive(Debug)]
struct Unsent<const BYTES: usize> {
    header: Header,
    frame: Vec<u8, BYTES>,
}

/// The voice plugin, for up to `PEERS` connections.
///
/// Each connection buffers `FRAMES` frames of up to `BYTES` bytes each. `BYTES` must be at most 508. The module
/// documentation has an example.
#[derive(Debug)]
pub struct Voice<const PEERS: usize, const FRAMES: usize, const BYTES: usize> {
    config: VoiceConfig,
    others: BySlot<Other<FRAMES, BYTES>, PEERS>,
    unsent: Deque<Unsent<BYTES>, UNSENT>,
    number: u16,
    is_talking: bool,
    is_muted: bool,
    stats: VoiceStats,
}

impl<const PEERS: usize, const FRAMES: usize, const BYTES: usize> Voice<PEERS, FRAMES, BYTES> {
    /// Creates a plugin that plays all peers and sends to all peers.
    #[must_use]
    pub const fn new(config: VoiceConfig) -> Self {
        const { assert!(BYTES + HEADER_LEN <= MAX_MESSAGE, "BYTES must be at most 508") };
        Self {
            config,
            others: BySlot::new(),
            unsent: Deque::new(),
            number: 0,
            is_talking: false,
            is_muted: false,
            stats: VoiceStats { sent: 0, dropped: 0, malformed: 0, over_capacity: 0 },
        }
    }

    /// Sends a frame. Call it once per frame time during speech, and run the driver afterwards. While this peer is
    /// muted, nothing is sent.
    ///
    /// # Errors
    /// Returns a [`TalkError`] if the frame is empty or too long, or the queue is full.
    pub fn talk(&mut self, frame: &[u8]) -> Result<(), TalkError> {
        self.push(frame, false)
    }

    /// Sends the last frame of a talk spurt, for example when the key is released or the voice detector turns off.
    ///
    /// The receivers then play the talk spurt to its end and wait for no further frames. Without this call, they
    /// detect the end after five missing frames.
    ///
    /// # Errors
    /// Returns the errors of [`talk`](Self::talk).
    pub fn talk_last(&mut self, frame: &[u8]) -> Result<(), TalkError> {
        self.push(frame, true)
    }

    fn push(&mut self, frame: &[u8], is_last: bool) -> Result<(), TalkError> {
        if frame.is_empty() {
            return Err(TalkError::Empty);
        }
        let frame = Vec::from_slice(frame).map_err(|_| TalkError::TooLong)?;
        if self.is_muted {
            return Ok(());
        }
        let header = Header { number: self.number, is_first: !self.is_talking, is_last };
        // The number of a dropped frame is skipped, so that the receivers conceal the frame.
        self.number = self.number.wrapping_add(1);
        self.is_talking = !is_last;
        self.unsent.push_back(Unsent { header, frame }).map_err(|_| TalkError::Full)
    }

    /// Mutes this peer, so that it sends no frames, or unmutes it.
    pub const fn set_muted(&mut self, is_muted: bool) {
        self.is_muted = is_muted;
        if is_muted {
            self.is_talking = false;
        }
    }

    /// Drops the frames of a remote peer, or stops dropping them; returns false if there is no such connection.
    pub fn mute(&mut self, id: ConnectionId, is_muted: bool) -> bool {
        let other = self.others.get_mut(id);
        other.map(|other| (other.is_muted, other.buffer) = (is_muted, Buffer::new())).is_some()
    }

    /// Sets whether a remote peer receives the frames of this peer, for teams or proximity chat. Returns false if
    /// there is no such connection.
    pub fn set_listener(&mut self, id: ConnectionId, hears: bool) -> bool {
        self.others.get_mut(id).map(|other| other.hears = hears).is_some()
    }

    /// Returns the peers with frames to play, now or recently.
    pub fn speakers(&self) -> impl Iterator<Item = ConnectionId> {
        self.others.iter().filter(|(_, other)| !other.buffer.is_silent()).map(|(id, _)| id)
    }

    /// Returns a speaker's frame that is due; call it once per frame time.
    pub fn play(&mut self, now: Instant, id: ConnectionId) -> Playback<'_> {
        let VoiceConfig { frame_time, max_delay, .. } = self.config;
        match self.others.get_mut(id) {
            Some(other) => other.buffer.play(now, frame_time, max_delay),
            None => Playback::Silence,
        }
    }

    /// Returns the current delay of a speaker's frames.
    #[must_use]
    pub fn delay(&self, id: ConnectionId) -> Option<core::time::Duration> {
        let other = self.others.get(id)?;
        Some(other.buffer.delay(self.config.frame_time, self.config.max_delay))
    }

    /// Returns the counters of a speaker's frames.
    #[must_use]
    pub fn speaker_stats(&self, id: ConnectionId) -> Option<SpeakerStats> {
        self.others.get(id).map(|other| other.buffer.stats())
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> VoiceStats {
        self.stats
    }

    fn delivery(&self) -> Delivery {
        Delivery::UNRELIABLE_SEQUENCED.on(self.config.channel)
    }
}

impl<const PEERS: usize, const FRAMES: usize, const BYTES: usize> Plugin<RakNet>
    for Voice<PEERS, FRAMES, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[self.config.id])
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, _: SocketAddr, _: Guid, _: Side) {
        let other = Other { buffer: Buffer::new(), hears: true, is_muted: false };
        if self.others.get(id).is_none() && !self.others.insert(id, other) {
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(1);
        }
    }

    fn on_disconnected(&mut self, _: Instant, id: ConnectionId, _: DisconnectReason) {
        self.others.remove(id);
    }

    fn on_message(&mut self, now: Instant, id: ConnectionId, _: Delivery, message: &dyn Chunks) -> Verdict {
        let VoiceConfig { frame_time, max_delay, .. } = self.config;
        let mut buffer = [0; MAX_MESSAGE];
        let decoded = bytes::copy(message, &mut buffer).and_then(Header::decode);
        match (decoded.filter(|(_, frame)| frame.len() <= BYTES), self.others.get_mut(id)) {
            (Some((header, frame)), Some(other)) if !other.is_muted => {
                other.buffer.insert(now, header, frame, frame_time, max_delay);
            }
            (Some(_), _) => {}
            (None, _) => self.stats.malformed = self.stats.malformed.saturating_add(1),
        }
        Verdict::Drop
    }

    fn update(&mut self, _: Instant, sender: &mut dyn MessageSender<RakNet>) {
        let delivery = self.delivery();
        while let Some(Unsent { header, frame }) = self.unsent.pop_front() {
            let mut message = Vec::<u8, MAX_MESSAGE>::new();
            // This cannot fail: the assertion in `new` ensures that header and frame fit.
            let _ = message.extend_from_slice(&header.encode(self.config.id));
            let _ = message.extend_from_slice(&frame);
            for (id, _) in self.others.iter().filter(|(_, other)| other.hears) {
                let is_sent = sender.send(id, &message, delivery).is_ok();
                let count = if is_sent { &mut self.stats.sent } else { &mut self.stats.dropped };
                *count = count.saturating_add(1);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.unsent.is_empty()).then_some(Instant::ZERO)
    }
}
