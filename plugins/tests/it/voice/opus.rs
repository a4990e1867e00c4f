//! Audio through Opus, with missing and malformed frames.

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire_plugins::voice::Playback;
use rakwire_plugins::voice::opus::{
    BIT_RATES, Decoder, Encoder, FRAME_SAMPLES, MAX_FRAME, OpusError, SAMPLE_RATE,
};

const FRAMES: usize = 100;

/// Returns a sample of a vowel-like sound: overtones of 240 Hz, with a loudness that changes three times per second.
fn sound(at: usize) -> f32 {
    let time = at as f64 / f64::from(SAMPLE_RATE);
    let tone = |overtone: f64| f64::sin(std::f64::consts::TAU * 240.0 * overtone * time) / overtone;
    let loudness = 0.6 + 0.4 * f64::sin(std::f64::consts::TAU * 3.0 * time);
    (0.2 * loudness * (1..=8).map(|overtone| tone(overtone.into())).sum::<f64>()) as f32
}

/// Returns the decoded sound if the frames selected by `is_lost` do not arrive, and the total bytes of all frames.
fn heard(bits_per_second: u32, is_lost: impl Fn(usize) -> bool) -> (Vec<f32>, usize) {
    let mut encoder = Encoder::new(bits_per_second).expect("a valid bit rate");
    let (mut decoder, mut buffer) = (Decoder::new().expect("a decoder"), [0; MAX_FRAME]);
    let (mut heard, mut bytes) = (Vec::new(), 0);
    for number in 0..FRAMES {
        let samples = std::array::from_fn(|at| sound(number * FRAME_SAMPLES + at));
        let frame = encoder.encode(&samples, &mut buffer).expect("encodable samples");
        bytes += frame.len();
        let mut played = [0.0; FRAME_SAMPLES];
        let playback = if is_lost(number) { Playback::Concealed } else { Playback::Frame(frame) };
        decoder.play(playback, &mut played);
        heard.extend(played);
    }
    assert_eq!(decoder.malformed(), 0);
    (heard, bytes)
}

fn energy(samples: &[f32]) -> f64 {
    samples.iter().map(|sample| f64::from(sample * sample)).sum::<f64>() / samples.len() as f64
}

/// Returns the correlation of the decoded sound with the original, from -1 to 1, at the codec delay that maximises it.
fn likeness(heard: &[f32]) -> f64 {
    let begin = 10 * FRAME_SAMPLES;
    let compared = |delay: usize| {
        let said: Vec<f32> = (begin..heard.len()).map(|at| sound(at - delay)).collect();
        let products = said.iter().zip(&heard[begin..]).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        products / said.len() as f64 / (energy(&said) * energy(&heard[begin..])).sqrt()
    };
    (0..FRAME_SAMPLES).step_by(4).map(compared).fold(-1.0, f64::max)
}

#[test]
fn decoded_sound_is_similar_to_the_encoded_sound() {
    for bits_per_second in [12_000, 24_000, 64_000] {
        let (heard, bytes) = heard(bits_per_second, |_| false);
        let alike = likeness(&heard);
        assert!(alike > 0.9, "{alike} at {bits_per_second}");
        let expected = bits_per_second as usize / 8 / 50 * FRAMES;
        assert_eq!(bytes, expected, "all frames at one bit rate must have the same length");
    }
}

/// A missing frame is synthesized from the frames before it: no frame is silent, and most of the sound matches.
#[test]
fn missing_frames_are_concealed() {
    let is_lost = |number| number > 5 && number % 10 == 0;
    let (heard, _) = heard(24_000, is_lost);
    let alike = likeness(&heard);
    assert!(alike > 0.8, "{alike}");
    for number in (0..FRAMES).filter(|number| is_lost(*number)) {
        let [before, made_up] =
            [number - 1, number].map(|at| energy(&heard[at * FRAME_SAMPLES..][..FRAME_SAMPLES]));
        assert!(made_up > before / 20.0, "frame {number} is silent: {made_up} after {before}");
    }
}

#[test]
fn invalid_rates_and_samples_are_refused() {
    for rate in [0, BIT_RATES.start() - 1, BIT_RATES.end() + 1, u32::MAX] {
        assert_eq!(Encoder::new(rate).err(), Some(OpusError::BitRate));
    }
    let mut encoder = Encoder::new(24_000).expect("a valid bit rate");
    let mut decoder = Decoder::new().expect("a decoder");
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        // The result is a frame or an error. The frame after it is valid again.
        let _ = encoder.encode(&[wrong; FRAME_SAMPLES], &mut [0; MAX_FRAME]);
        let mut buffer = [0; MAX_FRAME];
        let frame = encoder.encode(&std::array::from_fn(sound), &mut buffer).expect("encodable samples");
        assert_eq!(frame.len(), 60, "after {wrong}");
        decoder.play(Playback::Frame(frame), &mut [0.0; FRAME_SAMPLES]);
        assert_eq!(decoder.malformed(), 0, "after {wrong}");
    }
    let mut played = [1.0; FRAME_SAMPLES];
    decoder.play(Playback::Silence, &mut played);
    assert_eq!(played, [0.0; FRAME_SAMPLES]);
    // A packet with two frames of 20 ms, which the encoder never produces.
    decoder.play(Playback::Frame(&[0xFD, 1, 2, 3, 4]), &mut played);
    assert_eq!(decoder.malformed(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Arbitrary frames are decoded, concealed or silent, and always give valid samples.
    #[test]
    fn arbitrary_frames_give_valid_samples(frames in vec((0..3_u8, vec(any::<u8>(), 0..300), any::<(usize, u8)>()), 1..40)) {
        let mut encoder = Encoder::new(24_000).expect("a valid bit rate");
        let (mut decoder, mut buffer) = (Decoder::new().expect("a decoder"), [0; MAX_FRAME]);
        let mut played = [0.0; FRAME_SAMPLES];
        for (number, (kind, noise, (at, bits))) in frames.into_iter().enumerate() {
            let samples = std::array::from_fn(|at| sound(number * FRAME_SAMPLES + at));
            let mut frame = encoder.encode(&samples, &mut buffer).expect("encodable samples").to_vec();
            match kind {
                0 => frame = noise,
                1 => {
                    let at = at % frame.len();
                    frame[at] ^= bits;
                }
                _ => frame.truncate(at % frame.len()),
            }
            decoder.play(Playback::Frame(&frame), &mut played);
            prop_assert!(played.iter().all(|sample| sample.is_finite()));
        }
    }
}
