//! A radio server for talkers. It relays one speaker at a time to all others, ends each transmission with a tone, and
//! reports how loud the speaker was.

use std::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, PluginHost};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Endpoint, Options, RakNet};
use rakwire_plugins::voice::opus::{Decoder, Encoder, FRAME_SAMPLES, MAX_FRAME, SAMPLE_RATE};
use rakwire_plugins::voice::{Playback, TalkError, Voice, VoiceConfig};
use tokio::time::MissedTickBehavior;

type Failure = Box<dyn std::error::Error>;
type Plugin = Voice<8, 16, MAX_FRAME>;

const FRAME: Duration = Duration::from_millis(20);
const MESSAGE_ID: u8 = 0x90;
const BITS_PER_SECOND: u32 = 24_000;
const TONE_FRAMES: usize = 25;

/// The current speaker and its measurements.
struct Speaker {
    id: ConnectionId,
    decoder: Decoder,
    energy: f64,
    frames: u32,
}

impl Speaker {
    /// Returns the loudness in decibels, relative to the maximum.
    fn level(&self) -> f64 {
        let samples = f64::from(self.frames.max(1)) * FRAME_SAMPLES as f64;
        10.0 * (self.energy / samples).max(1e-10).log10()
    }
}

/// The state of the radio.
enum State {
    Free,
    Speech(Box<Speaker>),
    /// The next frame of the server's tone.
    Tone(usize),
}

struct Radio {
    encoder: Encoder,
    state: State,
}

impl Radio {
    /// Advances by one frame; returns the report on a speaker that has finished.
    fn advance(&mut self, now: Instant, voice: &mut Plugin) -> Result<Option<String>, Failure> {
        let talkers: Vec<_> = voice.speakers().collect();
        if let (State::Free, Some(id)) = (&self.state, talkers.first()) {
            let speaker = Speaker { id: *id, decoder: Decoder::new()?, energy: 0.0, frames: 0 };
            self.state = State::Speech(Box::new(speaker));
        }
        let current = match &self.state {
            State::Speech(speaker) => Some(speaker.id),
            State::Free | State::Tone(_) => None,
        };
        // The frames of all other speakers are discarded.
        for id in talkers.iter().filter(|id| Some(**id) != current) {
            voice.play(now, *id);
        }
        let mut report = None;
        match &mut self.state {
            State::Free => {}
            State::Speech(speaker) if talkers.contains(&speaker.id) => pass_on(now, voice, speaker)?,
            State::Speech(speaker) => {
                voice.set_listener(speaker.id, true);
                report = Some(format!("{} frames at {:.0} dB", speaker.frames, speaker.level()));
                self.state = State::Tone(0);
            }
            State::Tone(frame) => {
                send_tone(*frame, &mut self.encoder, voice)?;
                *frame += 1;
                if *frame == TONE_FRAMES {
                    self.state = State::Free;
                }
            }
        }
        Ok(report)
    }
}

/// Relays the next frame to all but the speaker.
fn pass_on(now: Instant, voice: &mut Plugin, speaker: &mut Speaker) -> Result<(), Failure> {
    let Playback::Frame(bytes) = voice.play(now, speaker.id) else { return Ok(()) };
    let frame = bytes.to_vec();
    let mut samples = [0.0; FRAME_SAMPLES];
    speaker.decoder.play(Playback::Frame(&frame), &mut samples);
    speaker.energy += samples.iter().map(|sample| f64::from(sample * sample)).sum::<f64>();
    speaker.frames += 1;
    voice.set_listener(speaker.id, false);
    unless_full(voice.talk(&frame))
}

/// Ignores a full queue. If the driver is busy the frame is dropped, and the listeners conceal it.
fn unless_full(sent: Result<(), TalkError>) -> Result<(), Failure> {
    match sent {
        Ok(()) | Err(TalkError::Full) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends a frame of a 440 Hz tone to all listeners.
fn send_tone(frame: usize, encoder: &mut Encoder, voice: &mut Plugin) -> Result<(), Failure> {
    let periods = |at: usize| 440.0 * (frame * FRAME_SAMPLES + at) as f64 / f64::from(SAMPLE_RATE);
    let samples = std::array::from_fn(|at| 0.25 * f64::sin(std::f64::consts::TAU * periods(at)) as f32);
    let mut buffer = [0; MAX_FRAME];
    let encoded = encoder.encode(&samples, &mut buffer)?;
    let is_last = frame + 1 == TONE_FRAMES;
    unless_full(if is_last { voice.talk_last(encoded) } else { voice.talk(encoded) })
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let voice = SharedHook::new(Plugin::new(VoiceConfig::new(MESSAGE_ID)));
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(voice.clone())?;
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let server = Endpoint::bind_with_hook(address.as_str(), Options::server(8)?, |_| host).await?;
    println!("listening on {}", server.local_addr());
    let mut radio = Radio { encoder: Encoder::new(BITS_PER_SECOND)?, state: State::Free };
    let mut ticks = tokio::time::interval(FRAME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            accepted = server.accept() => match accepted {
                Some(client) => drop(tokio::spawn(async move { client.closed().await })),
                None => return Ok(()),
            },
            _ = ticks.tick() => {
                let now = server.now();
                if let Some(report) = voice.with(|voice| radio.advance(now, voice))? {
                    println!("{report}");
                }
                server.wake();
            }
        }
    }
}
