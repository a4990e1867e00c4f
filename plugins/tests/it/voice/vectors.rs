//! Vectors for the encoding of messages and for playback from jitter buffers, shared with other implementations.

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, Guid, RakNet};
use rakwire_plugins::voice::{Header, Playback, Voice, VoiceConfig};
use serde_json::{Value, json};

use crate::support::connections;

const ID: u8 = 0x90;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/voice.json")).expect("valid JSON")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

fn bytes(value: &Value) -> Vec<u8> {
    let hex = value.as_str().expect("a text");
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn message_encoding_matches_the_test_vectors() {
    let vectors = vectors();
    for vector in array(&vectors["messages"]) {
        let message = bytes(&vector["hex"]);
        let header = Header {
            number: vector["number"].as_u64().expect("a number") as u16,
            is_first: vector["first"] == true,
            is_last: vector["last"] == true,
        };
        let frame = bytes(&vector["frame"]);
        assert_eq!(Header::decode(&message), Some((header, &frame[..])));
        assert_eq!([&header.encode(message[0])[..], &frame].concat(), message);
    }
    for none in array(&vectors["malformed"]) {
        assert_eq!(Header::decode(&bytes(none)), None, "{none}");
    }
}

/// A speaker, and the listener's buffer of `FRAMES` frames.
struct Replay<const FRAMES: usize> {
    voice: Voice<1, FRAMES, 8>,
    speaker: ConnectionId,
}

impl<const FRAMES: usize> Replay<FRAMES> {
    fn new() -> Self {
        let mut voice = Voice::new(VoiceConfig::new(ID));
        let speaker = connections::<RakNet>(1)[0];
        let remote = ([192, 0, 2, 1], 1).into();
        Plugin::<RakNet>::on_connected(&mut voice, Instant::ZERO, speaker, remote, Guid(1), Side::Server);
        Self { voice, speaker }
    }

    /// Runs a step and returns the actual one. `TIME+NUMBER.FLAGS` is an arriving frame, and `TIME=RESULT` is the
    /// frame played at that time.
    fn step(&mut self, step: &str) -> String {
        let (time, what) = step.split_once(['+', '=']).expect("a step");
        let now = Instant::from_micros(time.parse().expect("a time"));
        if step.contains('+') {
            let (number, flags) = what.split_once('.').unwrap_or((what, "0"));
            let [high, low] = number.parse::<u16>().expect("a number").to_be_bytes();
            let message = &[ID, flags.parse().expect("flags"), high, low, high, low][..];
            let delivery = Delivery::UNRELIABLE_SEQUENCED;
            Plugin::<RakNet>::on_message(&mut self.voice, now, self.speaker, delivery, &message);
            return step.to_owned();
        }
        match self.voice.play(now, self.speaker) {
            Playback::Frame(&[high, low]) => format!("{time}={}", u16::from_be_bytes([high, low])),
            Playback::Frame(frame) => panic!("no frame like {frame:?} was sent"),
            Playback::Concealed => format!("{time}=c"),
            Playback::Silence => format!("{time}=s"),
        }
    }

    fn run(mut self, steps: &[Value]) -> Value {
        let mut line = |line: &Value| -> String {
            let steps = line.as_str().expect("a text").split(' ').map(|step| self.step(step));
            steps.collect::<Vec<_>>().join(" ")
        };
        let steps: Vec<_> = steps.iter().map(&mut line).collect();
        let stats = self.voice.speaker_stats(self.speaker).expect("the speaker is connected");
        let delay = self.voice.delay(self.speaker).expect("the speaker is connected").as_micros() as u64;
        json!({
            "steps": steps,
            "stats": [stats.received, stats.played, stats.concealed, stats.late, stats.skipped],
            "delay": delay,
        })
    }
}

#[test]
fn jitter_buffers_play_as_in_the_test_vectors() {
    for mut trace in array(&vectors()["traces"]).to_vec() {
        let steps = array(&trace["steps"]).to_vec();
        let played = match trace["frames"].as_u64() {
            Some(4) => Replay::<4>::new().run(&steps),
            _ => Replay::<16>::new().run(&steps),
        };
        let expected = trace.clone();
        for (key, value) in played.as_object().expect("an object") {
            trace[key] = value.clone();
        }
        assert_eq!(trace, expected, "the trace should be:\n{trace:#}");
    }
}
