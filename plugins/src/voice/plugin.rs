//! The plugin: who speaks, and who hears it.

use core::net::SocketAddr;

use heapless::{Deque, Vec};
use rakwire::endpoint::{BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::{Chunks, Instant};

use super::buffer::{Buffer, Playback, SpeakerStats};
use super::config::{TalkError, VoiceConfig};
use super::wire::{HEADER_LEN, Header};
use crate::bytes;

/// Frames that wait for the driver.
const UNSENT: usize = 4;
/// The longest message: the smallest MTU carries it in one datagram, or in two if the connection is secure.
const MAX_MESSAGE: usize = 512;

/// Counters of the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceStats {
    /// Frames that were sent, to each who hears this peer.
    pub sent: u64,
    /// Frames that found no room in a connection, and were left out.
    pub dropped: u64,
    /// Messages that were none, or longer than the plugin was made for.
    pub malformed: u64,
    /// Connections that were left out, since the plugin was made for fewer than the peer can have.
    pub without_room: u64,
}

/// Another peer.
#[derive(Debug)]
struct Other<const FRAMES: usize, const BYTES: usize> {
    buffer: Buffer<FRAMES, BYTES>,
    /// It is sent what this peer says.
    hears: bool,
    /// What it says is thrown away.
    is_muted: bool,
}

#[derive(Debug)]
struct Unsent<const BYTES: usize> {
    header: Header,
    frame: Vec<u8, BYTES>,
}

/// The plugin, for up to `PEERS` connections, with buffers of `FRAMES` frames of at most `BYTES` bytes, 508 at the most. The
/// module has an example.
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
    /// A plugin with these settings, which hears all and is heard by all.
    #[must_use]
    pub const fn new(config: VoiceConfig) -> Self {
        const { assert!(BYTES + HEADER_LEN <= MAX_MESSAGE, "a frame has 508 bytes at most") };
        Self {
            config,
            others: BySlot::new(),
            unsent: Deque::new(),
            number: 0,
            is_talking: false,
            is_muted: false,
            stats: VoiceStats { sent: 0, dropped: 0, malformed: 0, without_room: 0 },
        }
    }

    /// Sends a frame; call it once in each time of a frame while somebody speaks. Have the driver run afterwards. While this peer
    /// is muted, it does nothing.
    ///
    /// # Errors
    /// A [`TalkError`].
    pub fn talk(&mut self, frame: &[u8]) -> Result<(), TalkError> {
        self.push(frame, false)
    }

    /// Sends the last frame of what somebody says: the key is released, or the voice detector hears nothing any more. Others then
    /// play it to its end and wait for nothing. Without it they notice after five frames.
    ///
    /// # Errors
    /// A [`TalkError`].
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
        // A frame that is left out is missing at the other side, which conceals it.
        self.number = self.number.wrapping_add(1);
        self.is_talking = !is_last;
        self.unsent.push_back(Unsent { header, frame }).map_err(|_| TalkError::Full)
    }

    /// Whether nothing of this peer is sent.
    pub const fn set_muted(&mut self, is_muted: bool) {
        self.is_muted = is_muted;
        if is_muted {
            self.is_talking = false;
        }
    }

    /// Whether what another peer says is thrown away; false if there is no such connection.
    pub fn mute(&mut self, id: ConnectionId, is_muted: bool) -> bool {
        let other = self.others.get_mut(id);
        other.map(|other| (other.is_muted, other.buffer) = (is_muted, Buffer::new())).is_some()
    }

    /// Whether another peer is sent what this one says: for teams, or for who is near. False if there is no such connection.
    pub fn set_heard_by(&mut self, id: ConnectionId, hears: bool) -> bool {
        self.others.get_mut(id).map(|other| other.hears = hears).is_some()
    }

    /// Those of whom there is something to play, or was a moment ago.
    pub fn speakers(&self) -> impl Iterator<Item = ConnectionId> {
        self.others.iter().filter(|(_, other)| !other.buffer.is_silent()).map(|(id, _)| id)
    }

    /// What to play of a speaker; call it once in each time of a frame.
    pub fn play(&mut self, now: Instant, id: ConnectionId) -> Playback<'_> {
        let VoiceConfig { frame_time, max_delay, .. } = self.config;
        match self.others.get_mut(id) {
            Some(other) => other.buffer.play(now, frame_time, max_delay),
            None => Playback::Silence,
        }
    }

    /// How long the frames of a speaker are kept back now.
    #[must_use]
    pub fn delay(&self, id: ConnectionId) -> Option<core::time::Duration> {
        let other = self.others.get(id)?;
        Some(other.buffer.delay(self.config.frame_time, self.config.max_delay))
    }

    /// What has become of the frames of a speaker.
    #[must_use]
    pub fn speaker_stats(&self, id: ConnectionId) -> Option<SpeakerStats> {
        self.others.get(id).map(|other| other.buffer.stats())
    }

    /// The counters.
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
            self.stats.without_room = self.stats.without_room.saturating_add(1);
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
            // Both fit, as was asserted.
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
