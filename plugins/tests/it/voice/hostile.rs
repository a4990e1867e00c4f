//! Malformed and hostile frames.

use core::time::Duration;

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::endpoint::{Capacity, ConnectionId, Peer, Plugin, Protocol, Side};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire_plugins::voice::{Header, Playback, TalkError, Voice, VoiceConfig};

use crate::support::{Collector, connections};

const ID: u8 = 0x90;
const FRAME: Duration = Duration::from_millis(20);

type Small = Voice<2, 4, 8>;

fn listener(count: usize) -> (Small, Vec<ConnectionId>) {
    let ids = connections::<RakNet>(count);
    let mut voice = Small::new(VoiceConfig::new(ID));
    for id in &ids {
        let remote = ([192, 0, 2, 1], 1).into();
        Plugin::<RakNet>::on_connected(&mut voice, Instant::ZERO, *id, remote, Guid(1), Side::Server);
    }
    (voice, ids)
}

fn receive(voice: &mut Small, now: Instant, id: ConnectionId, message: &[u8]) {
    Plugin::<RakNet>::on_message(voice, now, id, Delivery::UNRELIABLE_SEQUENCED, &message);
}

fn frame(number: u16, bytes: &[u8]) -> Vec<u8> {
    let header = Header { number, is_first: false, is_last: false };
    [&header.encode(ID), bytes].concat()
}

proptest! {
    /// With arbitrary frames at arbitrary times, no played frame exceeds the maximum length, and no delay exceeds the
    /// length of the buffer.
    #[test]
    fn arbitrary_frames_respect_the_limits_of_length_and_delay(
        frames in prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u8>(), 0..12), 0..2_000_000u64, 0..4u8), 0..200),
    ) {
        let (mut voice, ids) = listener(1);
        let mut now = Instant::ZERO;
        for (number, bytes, wait, flags) in frames {
            let mut message = frame(number, &bytes);
            message[1] = flags;
            receive(&mut voice, now, ids[0], &message);
            now = now + Duration::from_micros(wait);
            if let Playback::Frame(bytes) = voice.play(now, ids[0]) {
                prop_assert!((1..=8).contains(&bytes.len()));
            }
            prop_assert!(voice.delay(ids[0]).expect("the speaker is connected") <= Duration::from_millis(60), "the buffer has four frames");
        }
    }

    #[test]
    fn headers_round_trip(number in any::<u16>(), is_first in any::<bool>(), is_last in any::<bool>(), sound in any::<u8>()) {
        let header = Header { number, is_first, is_last };
        let message = [&header.encode(ID)[..], &[sound]].concat();
        prop_assert_eq!(Header::decode(&message), Some((header, &[sound][..])));
        prop_assert!((0..5).all(|end| Header::decode(&message[..end]).is_none()));
    }
}

#[test]
fn malformed_frames_are_counted() {
    let (mut voice, ids) = listener(1);
    for message in [&[ID][..], &[ID, 0, 0, 0], &[ID, 4, 0, 0, 1], &frame(0, &[0; 9]), &[ID; 600]] {
        receive(&mut voice, Instant::ZERO, ids[0], message);
    }
    assert_eq!((voice.stats().malformed, voice.speakers().count()), (5, 0));
}

/// A distant frame number restarts playback without waiting for the frames in between.
#[test]
fn a_jump_in_frame_numbers_restarts_playback() {
    let (mut voice, ids) = listener(1);
    receive(&mut voice, Instant::ZERO, ids[0], &frame(0, &[1]));
    let mut now = Instant::ZERO + FRAME;
    assert_eq!(voice.play(now, ids[0]), Playback::Frame(&[1]));
    receive(&mut voice, now, ids[0], &frame(20_000, &[2]));
    now = now + FRAME;
    assert_eq!(voice.play(now, ids[0]), Playback::Frame(&[2]));
    // A very old frame counts as late, and changes nothing.
    receive(&mut voice, now, ids[0], &frame(0, &[1]));
    assert_eq!(voice.play(now + FRAME, ids[0]), Playback::Concealed);
    assert_eq!(voice.speaker_stats(ids[0]).expect("the speaker is connected").late, 1);
}

/// Frames sent all at once play for at most one buffer length, and do not block other speakers.
#[test]
fn a_frame_flood_is_played_for_at_most_one_buffer_length() {
    let (mut voice, ids) = listener(2);
    let mut now = Instant::ZERO;
    (0..10_000).for_each(|number| receive(&mut voice, now, ids[0], &frame(number, &[1])));
    receive(&mut voice, now, ids[1], &frame(0, &[2]));
    let mut played = [0, 0];
    while voice.speakers().next().is_some() {
        now = now + FRAME;
        assert!(now < Instant::ZERO + Duration::from_secs(1), "the speakers must become silent");
        for (id, count) in ids.iter().zip(&mut played) {
            *count += usize::from(matches!(voice.play(now, *id), Playback::Frame(_)));
        }
    }
    assert_eq!(played, [4, 1]);
    assert_eq!(voice.speaker_stats(ids[0]).expect("the speaker is connected").received, 10_000);
}

/// Returns two successive connections in one slot.
fn successive() -> [ConnectionId; 2] {
    let capacity = Capacity { connections: 1, blocks: 64, block_size: 64 };
    [0, 1].map(|number| {
        let mut peer = Peer::<RakNet>::with_capacity(capacity, RakNet::config([7; 32]));
        peer.partition_ids(number, 2).expect("there are no connections yet");
        peer.connect(Instant::ZERO, ([192, 0, 2, 1], 1).into()).expect("a free slot")
    })
}

#[test]
fn speaker_that_disconnects_becomes_silent_and_frees_its_slot() {
    let [first, second] = successive();
    assert!(first.slot() == second.slot() && first != second);
    let mut voice = Small::new(VoiceConfig::new(ID));
    let connect = |voice: &mut Small, id| {
        let remote = ([192, 0, 2, 1], 1).into();
        Plugin::<RakNet>::on_connected(voice, Instant::ZERO, id, remote, Guid(1), Side::Server);
    };
    connect(&mut voice, first);
    assert!(voice.set_listener(first, false));
    (0..3).for_each(|number| receive(&mut voice, Instant::ZERO, first, &frame(number, &[1])));
    let now = Instant::ZERO + FRAME;
    assert_eq!(voice.play(now, first), Playback::Frame(&[1]));
    Plugin::<RakNet>::on_disconnected(&mut voice, now, first, DisconnectReason::Lost);
    assert_eq!(voice.play(now, first), Playback::Silence);
    assert!(voice.speakers().next().is_none());
    // Frames still in flight are dropped.
    receive(&mut voice, now, first, &frame(3, &[1]));
    connect(&mut voice, second);
    receive(&mut voice, now, second, &frame(0, &[2]));
    assert!(voice.speakers().eq([second]));
    assert_eq!(voice.play(now + FRAME, second), Playback::Frame(&[2]));
    voice.talk_last(&[7]).expect("enough space");
    let mut collector = Collector::<RakNet>::new();
    Plugin::<RakNet>::update(&mut voice, now, &mut collector);
    assert!(
        collector.messages.iter().map(|(to, ..)| *to).eq([second]),
        "the second connection must receive the frame"
    );
    assert_eq!(voice.stats().over_capacity, 0);
}

#[test]
fn invalid_frames_are_refused() {
    let (mut voice, ids) = listener(1);
    assert_eq!(voice.talk(&[]), Err(TalkError::Empty));
    assert_eq!(voice.talk(&[0; 9]), Err(TalkError::TooLong));
    for _ in 0..4 {
        voice.talk(&[1]).expect("enough space");
    }
    assert_eq!(voice.talk(&[1]), Err(TalkError::Full));
    let mut collector = Collector::<RakNet>::new();
    collector.gone = Some(ids[0]);
    Plugin::<RakNet>::update(&mut voice, Instant::ZERO, &mut collector);
    assert_eq!((voice.stats().sent, voice.stats().dropped), (0, 4));
}

#[test]
fn frames_are_sent_only_to_selected_listeners() {
    let (mut voice, ids) = listener(3);
    assert_eq!(voice.stats().over_capacity, 1);
    assert!(voice.set_listener(ids[0], false) && !voice.set_listener(ids[2], false));
    voice.talk_last(&[7]).expect("enough space");
    let mut collector = Collector::<RakNet>::new();
    Plugin::<RakNet>::update(&mut voice, Instant::ZERO, &mut collector);
    let expected = (ids[1], vec![ID, 3, 0, 0, 7], VoiceConfig::new(ID).channel);
    let (to, bytes, delivery) = collector.messages.pop_front().expect("a message");
    assert_eq!((to, bytes, delivery.channel), expected);
    assert!(collector.messages.is_empty());
}
