//! The Opus codec for voice frames (feature `opus`).

use opus_rs::{Application, OpusDecoder, OpusEncoder};

use super::buffer::Playback;

/// The sample rate of the single channel, in Hz.
pub const SAMPLE_RATE: u32 = 48_000;
/// Samples in a frame of 20 ms.
pub const FRAME_SAMPLES: usize = 960;
/// The maximum length of a frame in bytes, at the highest of [`BIT_RATES`].
pub const MAX_FRAME: usize = 320;
/// The supported bit rates for speech, in bits per second. Speech is intelligible at 8,000 and good at 24,000.
pub const BIT_RATES: core::ops::RangeInclusive<u32> = 6_000..=64_000;

/// The reason why a codec or a frame could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpusError {
    /// The rate is not one of [`BIT_RATES`].
    BitRate,
    /// The codec reported an error.
    Codec(&'static str),
}

impl core::fmt::Display for OpusError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::BitRate => {
                write!(f, "choose a rate from {} to {} bits per second", BIT_RATES.start(), BIT_RATES.end())
            }
            Self::Codec(reason) => write!(f, "Opus fails: {reason}"),
        }
    }
}

impl core::error::Error for OpusError {}

/// The encoder of the local speaker.
///
/// ```
/// use rakwire_plugins::voice::opus::{FRAME_SAMPLES, MAX_FRAME, Encoder, Decoder};
/// use rakwire_plugins::voice::Playback;
///
/// let mut encoder = Encoder::new(24_000)?;
/// let mut decoder = Decoder::new()?;
/// let (mut buffer, mut heard) = ([0; MAX_FRAME], [0.0; FRAME_SAMPLES]);
/// let tone: [f32; FRAME_SAMPLES] = core::array::from_fn(|at| 0.5 * (at as f32 / 17.0).sin());
///
/// let frame = encoder.encode(&tone, &mut buffer)?;
/// assert!(frame.len() < 200);
/// decoder.play(Playback::Frame(frame), &mut heard);
/// decoder.play(Playback::Concealed, &mut heard);
/// assert!(heard.iter().any(|sample| sample.abs() > 0.01), "concealed from the frame before");
/// # Ok::<(), rakwire_plugins::voice::opus::OpusError>(())
/// ```
pub struct Encoder(OpusEncoder);

impl Encoder {
    /// Creates a speech encoder with a bit rate within [`BIT_RATES`]. All its frames have the same length: 1/400 of
    /// the bit rate, in bytes.
    ///
    /// # Errors
    /// Returns [`OpusError::BitRate`] for another bit rate.
    pub fn new(bits_per_second: u32) -> Result<Self, OpusError> {
        if !BIT_RATES.contains(&bits_per_second) {
            return Err(OpusError::BitRate);
        }
        let mut encoder =
            OpusEncoder::new(SAMPLE_RATE as i32, 1, Application::Voip).map_err(OpusError::Codec)?;
        encoder.bitrate_bps = bits_per_second as i32;
        // At a constant frame length, the length of encrypted frames reveals nothing about the speech.
        encoder.use_cbr = true;
        Ok(Self(encoder))
    }

    /// Encodes 20 ms of samples between -1 and 1 for [`Voice::talk`](super::Voice::talk).
    ///
    /// # Errors
    /// Returns [`OpusError::Codec`] if the codec reports an error. The result for a sample that is not finite is
    /// unspecified.
    pub fn encode<'b>(
        &mut self,
        samples: &[f32; FRAME_SAMPLES],
        buffer: &'b mut [u8; MAX_FRAME],
    ) -> Result<&'b [u8], OpusError> {
        let length = self.0.encode(samples, FRAME_SAMPLES, buffer).map_err(OpusError::Codec)?;
        buffer.get(..length).ok_or(OpusError::Codec("the encoded frame exceeds the buffer"))
    }
}

impl core::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

/// The decoder of one speaker. Each speaker needs its own, because it conceals frames from the earlier frames
/// of that speaker.
pub struct Decoder {
    decoder: OpusDecoder,
    malformed: u64,
}

impl Decoder {
    /// Creates a decoder without history.
    ///
    /// # Errors
    /// Returns [`OpusError::Codec`] if the codec cannot be created.
    pub fn new() -> Result<Self, OpusError> {
        let decoder = OpusDecoder::new(SAMPLE_RATE as i32, 1).map_err(OpusError::Codec)?;
        Ok(Self { decoder, malformed: 0 })
    }

    /// Produces the next 20 ms of samples from the result of [`Voice::play`](super::Voice::play).
    ///
    /// A frame that is not Opus, or of another duration, is counted and concealed.
    pub fn play(&mut self, playback: Playback<'_>, samples: &mut [f32; FRAME_SAMPLES]) {
        samples.fill(0.0);
        match playback {
            Playback::Silence => {}
            Playback::Concealed => self.conceal(samples),
            Playback::Frame(frame) => {
                if self.decoder.decode(frame, FRAME_SAMPLES, samples) != Ok(FRAME_SAMPLES) {
                    self.malformed = self.malformed.saturating_add(1);
                    self.conceal(samples);
                }
            }
        }
    }

    /// If concealment fails too, the samples stay silent.
    fn conceal(&mut self, samples: &mut [f32; FRAME_SAMPLES]) {
        if self.decoder.decode(&[], FRAME_SAMPLES, samples).is_err() {
            samples.fill(0.0);
        }
    }

    /// Returns the number of frames that could not be decoded.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl core::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Decoder").field("malformed", &self.malformed).finish_non_exhaustive()
    }
}
