//! The jitter buffer of one speaker.

use core::time::Duration;

use heapless::{HistoryBuf, Vec};
use rakwire::Instant;

use super::wire::Header;

/// The number of recent arrivals from which jitter is measured: 1.3 s at 20 ms per frame.
const HISTORY: usize = 64;
/// The number of those arrivals that may exceed the delay of the buffer.
const TOLERATED: usize = 2;
/// The maximum number of consecutive frames that are concealed. After them, the next frame that has arrived is
/// played; if there is none, the speaker counts as silent.
const MAX_GAP: u8 = 5;
/// The number of frames for which the buffer must be fuller than necessary before a frame is skipped.
const SURPLUS_FRAMES: u8 = 50;

/// The frame to play next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playback<'b> {
    /// A frame.
    Frame(&'b [u8]),
    /// A frame is missing: the decoder conceals it, based on the frames before it.
    Concealed,
    /// The speaker is silent, or its first frames are still delayed.
    Silence,
}

/// Counters of the frames of a speaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeakerStats {
    /// Frames that arrived.
    pub received: u64,
    /// Frames that were played.
    pub played: u64,
    /// Frames that were missing when they were due.
    pub concealed: u64,
    /// Frames that arrived after they were due.
    pub late: u64,
    /// Frames that were skipped because the buffer was too full.
    pub skipped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Silent,
    /// The first frame has arrived and is delayed until this time.
    Filling(Instant),
    Playing,
}

#[derive(Clone, Debug)]
struct Frame<const BYTES: usize> {
    header: Header,
    bytes: Vec<u8, BYTES>,
}

#[derive(Clone, Debug)]
pub(super) struct Buffer<const FRAMES: usize, const BYTES: usize> {
    /// Frames, each at its number modulo `FRAMES`.
    frames: [Option<Frame<BYTES>>; FRAMES],
    /// The last frame that was returned.
    played: Vec<u8, BYTES>,
    phase: Phase,
    /// The number of the next frame due.
    next: u16,
    /// The highest frame number that has arrived.
    highest: u16,
    /// The time at which frame `first` would have arrived at the speed of the fastest frame of this talk spurt.
    quickest: Instant,
    first: u16,
    /// The delays of recent arrivals relative to the fastest one, in microseconds.
    lateness: HistoryBuf<u32, HISTORY>,
    /// The number of consecutive missing frames.
    gap: u8,
    /// The number of consecutive frames at which the buffer was fuller than needed.
    surplus: u8,
    stats: SpeakerStats,
}

impl<const FRAMES: usize, const BYTES: usize> Buffer<FRAMES, BYTES> {
    pub(super) const fn new() -> Self {
        const { assert!(FRAMES >= 2 && FRAMES <= 1 << 12, "FRAMES must be 2 to 4,096") };
        Self {
            frames: [const { None }; FRAMES],
            played: Vec::new(),
            phase: Phase::Silent,
            next: 0,
            highest: 0,
            quickest: Instant::ZERO,
            first: 0,
            lateness: HistoryBuf::new(),
            gap: 0,
            surplus: 0,
            stats: SpeakerStats { received: 0, played: 0, concealed: 0, late: 0, skipped: 0 },
        }
    }

    pub(super) const fn stats(&self) -> SpeakerStats {
        self.stats
    }

    pub(super) fn is_silent(&self) -> bool {
        self.phase == Phase::Silent
    }

    /// Inserts a frame that has arrived.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        header: Header,
        bytes: &[u8],
        frame_time: Duration,
        max_delay: Duration,
    ) {
        let Ok(bytes) = Vec::from_slice(bytes) else { return };
        self.stats.received = self.stats.received.saturating_add(1);
        let ahead = header.number.wrapping_sub(self.next);
        let is_far = usize::from(ahead) >= FRAMES && ahead < 1 << 15;
        if self.phase == Phase::Silent || is_far {
            self.begin(now, header.number, frame_time, max_delay);
        } else if ahead >= 1 << 15 {
            self.stats.late = self.stats.late.saturating_add(1);
            self.observe(now, header.number, frame_time);
            return;
        }
        if header.is_first {
            // The first frame after a pause is not delayed by the network alone.
            (self.first, self.quickest) = (header.number, now);
        }
        self.observe(now, header.number, frame_time);
        if header.number.wrapping_sub(self.highest) < 1 << 15 {
            self.highest = header.number;
        }
        if let Some(place) = self.frames.get_mut(usize::from(header.number) % FRAMES) {
            *place = Some(Frame { header, bytes });
        }
    }

    /// Starts a talk spurt: the speaker was silent, or the buffered frames are too old.
    fn begin(&mut self, now: Instant, number: u16, frame_time: Duration, max_delay: Duration) {
        self.frames.fill(None);
        (self.next, self.highest, self.first, self.quickest) = (number, number, number, now);
        (self.gap, self.surplus) = (0, 0);
        self.phase = Phase::Filling(now + self.delay(frame_time, max_delay));
    }

    /// Measures the delay of a frame relative to the fastest frame of this talk spurt.
    fn observe(&mut self, now: Instant, number: u16, frame_time: Duration) {
        let since = number.wrapping_sub(self.first);
        // A frame from before the first frame is no reference for later frames.
        if since >= 1 << 15 {
            return;
        }
        let expected = self.quickest + frame_time * u32::from(since);
        let late = now.saturating_since(expected);
        if now < expected {
            let early = expected.saturating_since(now);
            self.quickest =
                Instant::from_micros(self.quickest.as_micros().saturating_sub(micros(early).into()));
        }
        self.lateness.write(micros(late));
        // The first number advances, so that the difference to later frame numbers does not overflow.
        if since >= 1 << 10 {
            self.quickest = self.quickest + frame_time * u32::from(since);
            self.first = number;
        }
    }

    /// Returns the delay of the first frame.
    ///
    /// The delay is half a frame, plus the spread between the earliest arrival and all but the latest ones. A delay
    /// common to all arrivals comes from the speaker's clock or another path, and does not count.
    pub(super) fn delay(&self, frame_time: Duration, max_delay: Duration) -> Duration {
        let mut latest = [0_u32; TOLERATED + 1];
        let earliest = self.lateness.as_slice().iter().min().copied().unwrap_or(0);
        for lateness in self.lateness.as_slice() {
            let mut value = lateness - earliest;
            for place in &mut latest {
                if value > *place {
                    core::mem::swap(place, &mut value);
                }
            }
        }
        let [.., latest] = latest;
        let all = max_delay.min(frame_time * u32::try_from(FRAMES - 1).unwrap_or(u32::MAX));
        (Duration::from_micros(latest.into()) + frame_time / 2).min(all)
    }

    /// Returns the frame that is due now.
    pub(super) fn play(&mut self, now: Instant, frame_time: Duration, max_delay: Duration) -> Playback<'_> {
        match self.phase {
            Phase::Silent => return Playback::Silence,
            Phase::Filling(until) if now < until => return Playback::Silence,
            Phase::Filling(_) => self.phase = Phase::Playing,
            Phase::Playing => self.skip_surplus(frame_time, max_delay),
        }
        if self.gap >= MAX_GAP {
            self.next = self.next_present().unwrap_or(self.next);
        }
        let Some(frame) = self.take() else { return self.conceal() };
        self.next = self.next.wrapping_add(1);
        self.gap = 0;
        self.stats.played = self.stats.played.saturating_add(1);
        if frame.header.is_last {
            self.end_sentence(now, frame_time, max_delay);
        }
        self.played = frame.bytes;
        Playback::Frame(&self.played)
    }

    /// Ends a talk spurt, unless the next one has begun to arrive.
    fn end_sentence(&mut self, now: Instant, frame_time: Duration, max_delay: Duration) {
        self.phase = match self.next_present() {
            Some(next) => {
                self.next = next;
                Phase::Filling(now + self.delay(frame_time, max_delay))
            }
            None => Phase::Silent,
        };
    }

    /// Returns the number of the next frame that has arrived, at or after the frame that is due.
    fn next_present(&self) -> Option<u16> {
        let numbers = (0..self.waiting()).map(|ahead| self.next.wrapping_add(ahead));
        let mut present = numbers.filter(|number| {
            let place = self.frames.get(usize::from(*number) % FRAMES);
            place.and_then(Option::as_ref).is_some_and(|frame| frame.header.number == *number)
        });
        present.next()
    }

    fn take(&mut self) -> Option<Frame<BYTES>> {
        let place = self.frames.get_mut(usize::from(self.next) % FRAMES)?;
        place.take_if(|frame| frame.header.number == self.next)
    }

    /// Handles a missing frame. If later frames have arrived, the frame is lost; otherwise the buffer waits for it.
    fn conceal(&mut self) -> Playback<'_> {
        if self.waiting() > 0 {
            self.next = self.next.wrapping_add(1);
        }
        self.gap += 1;
        if self.gap > MAX_GAP {
            self.phase = Phase::Silent;
            return Playback::Silence;
        }
        self.stats.concealed = self.stats.concealed.saturating_add(1);
        Playback::Concealed
    }

    /// Returns the number of frames from the frame that is due to the last one that has arrived, inclusive.
    fn waiting(&self) -> u16 {
        let ahead = self.highest.wrapping_sub(self.next);
        if ahead < 1 << 15 { ahead + 1 } else { 0 }
    }

    /// Skips a frame when the buffer has been fuller than needed for a long time.
    fn skip_surplus(&mut self, frame_time: Duration, max_delay: Duration) {
        let needed =
            self.delay(frame_time, max_delay).as_micros().div_ceil(frame_time.as_micros().max(1)) + 1;
        if u128::from(self.waiting()) <= needed {
            self.surplus = 0;
            return;
        }
        self.surplus += 1;
        if self.surplus >= SURPLUS_FRAMES {
            self.surplus = 0;
            if self.take().is_some() {
                self.stats.skipped = self.stats.skipped.saturating_add(1);
            }
            self.next = self.next.wrapping_add(1);
        }
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
