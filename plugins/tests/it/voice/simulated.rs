//! One peer speaks and the other listens, over all kinds of paths in the simulator.

use core::time::Duration;

use rakwire::endpoint::{Capacity, ConnectionId, Event, Hooked, Peer, PluginHost, PluginKey};
use rakwire::raknet::{Config, RakNet};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, Machine};
use rakwire_plugins::voice::{Playback, SpeakerStats, Voice, VoiceConfig};

const ID: u8 = 0x90;
const FRAME: Duration = Duration::from_millis(20);
/// The offset between the ticks of loudspeaker and microphone, because the clocks of two machines are unrelated.
const PHASE: Duration = Duration::from_millis(7);

type Plugin = Voice<2, 16, 80>;
type Talker = Hooked<'static, RakNet, PluginHost<Plugin, 1>>;

fn talker(number: u8) -> (Talker, PluginKey) {
    let mut config = Config::new([number; 32]);
    config.max_incoming = 2;
    let mut host = PluginHost::new();
    let key = host.attach::<RakNet>(Plugin::new(VoiceConfig::new(ID))).expect("a free slot");
    let capacity = Capacity { connections: 2, blocks: 512, block_size: 256 };
    (Hooked::new(Peer::with_capacity(capacity, config), host), key)
}

const fn path(latency: u64, jitter: u64, loss: f64) -> Conditions {
    Conditions {
        loss,
        duplication: 0.0,
        reordering: 0.0,
        latency: Duration::from_millis(latency),
        jitter: Duration::from_millis(jitter),
        bottleneck: None,
        bursts: None,
    }
}

/// The paths of docs/plugins/voice.md.
const NETWORKS: [(&str, Conditions); 6] = [
    ("1 ms", path(1, 0, 0.0)),
    ("40 ms", path(40, 0, 0.0)),
    ("40 ms, 5 % lost", path(40, 0, 0.05)),
    ("40 ms ± 15 ms", path(40, 15, 0.0)),
    ("40 ms ± 15 ms, 5 % lost", path(40, 15, 0.05)),
    ("80 ms ± 40 ms, 2 % lost", path(80, 40, 0.02)),
];

struct Call {
    pair: Pair<Talker, Talker>,
    keys: [PluginKey; 2],
    /// The speaker's connection at the listener.
    speaker: ConnectionId,
    heard: Vec<Duration>,
    /// The numbers of the played frames, in playback order.
    numbers: Vec<u32>,
    spoken: u32,
}

impl Call {
    fn new(conditions: Conditions, seed: u64) -> Self {
        let ((a, first), (b, second)) = (talker(1), talker(2));
        let mut pair = Pair::new(a, b, path(1, 0, 0.0), seed);
        pair.a.peer.connect(pair.now, pair.b_address).expect("a free slot");
        let speaker = loop {
            if let Some(Event::Connected { id, .. }) = pair.b.poll_event() {
                break id;
            }
            assert!(pair.step());
        };
        while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
            assert!(pair.step());
        }
        pair.set_conditions(conditions);
        Self { pair, keys: [first, second], speaker, heard: Vec::new(), numbers: Vec::new(), spoken: 0 }
    }

    fn listener(&mut self) -> &mut Plugin {
        self.pair.b.hook.get_mut(self.keys[1]).expect("the plugin is attached")
    }

    /// Sends a frame that contains the time of its first sample, and its number.
    fn speak(&mut self, is_last: bool) {
        let made = self.pair.now.as_micros() - FRAME.as_micros() as u64;
        let frame = [&made.to_be_bytes()[..], &self.spoken.to_be_bytes(), &[0; 48]].concat();
        self.spoken += 1;
        let voice = self.pair.a.hook.get_mut(self.keys[0]).expect("the plugin is attached");
        let said = if is_last { voice.talk_last(&frame) } else { voice.talk(&frame) };
        said.expect("the driver runs");
        self.pair.a.handle_timeout(self.pair.now);
    }

    fn listen(&mut self) {
        let (now, speaker) = (self.pair.now, self.speaker);
        if let Playback::Frame(bytes) = self.listener().play(now, speaker) {
            let made = u64::from_be_bytes(bytes[..8].try_into().expect("a time"));
            let number = u32::from_be_bytes(bytes[8..12].try_into().expect("a number"));
            self.heard.push(Duration::from_micros(now.as_micros() - made));
            self.numbers.push(number);
        }
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            self.pair.transmit();
            let links = [self.pair.forth().next_arrival(), self.pair.back().next_arrival()];
            let timeouts = [self.pair.a.poll_timeout(), self.pair.b.poll_timeout()];
            if links.into_iter().chain(timeouts).flatten().min().is_none_or(|next| next > end) {
                break;
            }
            assert!(self.pair.step());
            while let Some(event) = self.pair.a.poll_event() {
                assert!(!matches!(event, Event::Message { .. }), "the application must not receive a frame");
            }
            while let Some(event) = self.pair.b.poll_event() {
                assert!(!matches!(event, Event::Message { .. }), "the application must not receive a frame");
            }
        }
        self.pair.now = end;
    }

    /// Advances by `frames` frame times, during which the listener plays.
    fn pass(&mut self, frames: u32, is_speaking: bool, ends: bool) {
        for frame in 0..frames {
            if is_speaking {
                self.speak(ends && frame + 1 == frames);
            }
            let begin = self.pair.now;
            self.run_until(begin + PHASE);
            self.listen();
            self.run_until(begin + FRAME);
        }
    }

    fn stats(&mut self) -> SpeakerStats {
        let speaker = self.speaker;
        self.listener().speaker_stats(speaker).expect("the speaker is connected")
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> u128 {
    sorted[(sorted.len() - 1) * percent / 100].as_millis()
}

/// Returns a row of the table: a minute of speech in sentences of 4 s with pauses of 1 s, five times.
fn row(name: &str, conditions: Conditions) -> String {
    let (mut heard, mut concealed, mut spoken, mut skipped) = (Vec::new(), 0, 0, 0);
    for seed in 0..5 {
        let mut call = Call::new(conditions, seed);
        for _ in 0..12 {
            call.pass(200, true, true);
            call.pass(50, false, false);
        }
        assert!(call.numbers.is_sorted(), "every frame must be played at most once, and in order");
        let stats = call.stats();
        (concealed, skipped) = (concealed + stats.concealed, skipped + stats.skipped);
        spoken += u64::from(call.spoken);
        heard.extend(call.heard);
    }
    heard.sort_unstable();
    let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / spoken as f64);
    let (median, latest) = (percentile(&heard, 50), percentile(&heard, 99));
    format!("| {name} | {median} ms | {latest} ms | {} | {} |", share(concealed), share(skipped))
}

#[test]
fn playback_delays_match_the_documented_table() {
    let rows: Vec<String> = NETWORKS.into_iter().map(|(name, conditions)| row(name, conditions)).collect();
    let table = rows.join("\n");
    let page = include_str!("../../documents/voice.md");
    assert!(page.contains(&table), "the table of docs/plugins/voice.md should be:\n{table}");
}

#[test]
fn without_losses_every_frame_is_played_once() {
    let mut call = Call::new(path(40, 0, 0.0), 1);
    call.pass(100, true, true);
    call.pass(20, false, false);
    assert_eq!(call.numbers, (0..100).collect::<Vec<u32>>());
    let stats = call.stats();
    assert_eq!(
        (stats.received, stats.played, stats.concealed, stats.late, stats.skipped),
        (100, 100, 0, 0, 0)
    );
    assert_eq!(call.listener().speakers().count(), 0, "the last frame marks the end of speech");
}

/// If a speaker stops without marking its last frame, the listener detects the end after five frames.
#[test]
fn the_end_of_speech_is_detected_without_a_last_frame() {
    let mut call = Call::new(path(40, 0, 0.0), 1);
    call.pass(50, true, false);
    assert_eq!(call.listener().speakers().count(), 1);
    call.pass(20, false, false);
    assert_eq!((call.listener().speakers().count(), call.stats().concealed), (0, 5));
}

/// The delay decreases when the jitter decreases.
#[test]
fn the_jitter_buffer_delay_follows_the_network_jitter() {
    let mut call = Call::new(path(40, 60, 0.0), 1);
    call.pass(200, true, true);
    let speaker = call.speaker;
    let uneven = call.listener().delay(speaker).expect("the speaker is connected");
    assert!(uneven > Duration::from_millis(40), "{uneven:?}");
    call.pass(10, false, false);
    call.pair.set_conditions(path(40, 0, 0.0));
    call.pass(200, true, true);
    let even = call.listener().delay(speaker).expect("the speaker is connected");
    assert!(even < Duration::from_millis(15), "{even:?}");
    call.pass(20, false, false);
    call.heard.clear();
    call.pass(100, true, true);
    assert!(call.heard.iter().all(|delay| *delay < Duration::from_millis(95)), "{:?}", call.heard);
}

#[test]
fn muted_peer_is_not_played() {
    let mut call = Call::new(path(1, 0, 0.0), 1);
    call.pass(20, true, true);
    call.pass(5, false, false);
    let speaker = call.speaker;
    assert!(call.listener().mute(speaker, true));
    call.pass(20, true, true);
    call.pass(5, false, false);
    assert!(call.listener().mute(speaker, false));
    call.pass(20, true, true);
    call.pass(5, false, false);
    let muted = call.pair.a.hook.get_mut(call.keys[0]).expect("the plugin is attached");
    muted.set_muted(true);
    call.pass(20, true, true);
    call.pass(5, false, false);
    assert_eq!(call.numbers, (0..20).chain(40..60).collect::<Vec<u32>>());
}

/// If a speaker resumes while the end of the last talk spurt is still buffered, nothing is lost.
#[test]
fn short_pause_loses_no_frames() {
    let mut call = Call::new(path(40, 60, 0.0), 1);
    call.pass(200, true, true);
    call.pass(20, false, false);
    let speaker = call.speaker;
    assert!(call.listener().delay(speaker) > Some(2 * FRAME));
    call.pair.set_conditions(path(40, 0, 0.0));
    call.numbers.clear();
    let begin = call.spoken;
    for _ in 0..5 {
        call.pass(3, true, true);
        call.pass(1, false, false);
    }
    call.pass(40, false, false);
    assert_eq!(call.numbers, (begin..begin + 15).collect::<Vec<u32>>());
}

/// More consecutive frames are missing than are concealed. The frames after the gap are played.
#[test]
fn frames_after_a_long_gap_are_played() {
    let mut call = Call::new(path(40, 60, 0.0), 1);
    call.pass(200, true, true);
    call.pass(20, false, false);
    call.numbers.clear();
    call.pair.set_conditions(path(40, 0, 0.0));
    let begin = call.spoken;
    call.pass(10, true, false);
    call.pair.set_conditions(path(40, 0, 1.0));
    call.pass(8, true, false);
    call.pair.set_conditions(path(40, 0, 0.0));
    call.pass(10, true, true);
    call.pass(40, false, false);
    assert_eq!(call.numbers, (begin..begin + 10).chain(begin + 18..begin + 28).collect::<Vec<u32>>());
}
