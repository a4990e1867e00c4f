//! Snapshots are read in place: from separate datagrams, and from the memory blocks of a receiving peer.

use std::error::Error;

use rakwire::codec::rabbit::{List, Reader, Unpack, to_vec};
use rakwire::raknet::{Config, Delivery, Event as PeerEvent, Peer, Resources};
use rakwire::{Chunks, Instant};
use snowfight::message::{Entity, Event, EventKind, ServerMessage, Snapshot};
use snowfight::world::{Entities, World};

fn entities() -> Entities {
    let mut world = World::new(3);
    world.join().expect("a free slot");
    world.entities()
}

fn message(entities: &[Entity]) -> ServerMessage<'_> {
    let kind = EventKind::Snapshot(Snapshot { entities: List::new(entities) });
    ServerMessage::Event(Event { time: 600, kind })
}

fn assert_reads(bytes: &dyn Chunks, expected: &[Entity]) {
    let read = ServerMessage::unpack(&mut Reader::over(bytes)).expect("a packed message");
    assert_eq!(read, message(expected));
    let ServerMessage::Event(Event { kind: EventKind::Snapshot(snapshot), .. }) = read else {
        panic!("no snapshot")
    };
    assert!(snapshot.entities.iter().eq(expected.iter().copied()));
    assert_eq!(snapshot.entities.len(), 301);
}

#[test]
fn snapshot_in_thirteen_datagrams_is_read_without_a_copy() {
    let entities = entities();
    let bytes = to_vec(&message(&entities)).expect("a packed message");
    for length in [1, 7, 128, 504, 10_000] {
        let pieces: Vec<_> = bytes.chunks(length).collect();
        assert_reads(&pieces.as_slice(), &entities);
    }
    assert_eq!((bytes.len(), bytes.chunks(504).count()), (6_145, 13));
}

/// Two peers in memory. The receiving peer lends the message in blocks of 128 bytes.
#[test]
fn snapshot_in_the_blocks_of_a_peer_is_read_without_a_copy() -> Result<(), Box<dyn Error>> {
    let entities = entities();
    let bytes = to_vec(&message(&entities))?;
    let (mut a, mut b) = (Resources::<1, 256, 128>::new(), Resources::<1, 256, 128>::new());
    let mut config = Config::new([2; 32]);
    config.max_incoming = 1;
    let (mut client, mut server) = (Peer::new(&mut a, Config::new([1; 32])), Peer::new(&mut b, config));
    let (from, to) = ("192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?);
    let mut now = Instant::ZERO;
    client.connect(now, to)?;
    let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
    for _ in 0..1_000 {
        let mut connected = None;
        while let Some(event) = client.poll_event() {
            if let PeerEvent::Connected { id, .. } = event {
                connected = Some(id);
            }
        }
        if let Some(id) = connected {
            // The first byte is the RakNet message id.
            client.send(now, id, &[&[0xFE], bytes.as_slice()].concat(), Delivery::RELIABLE_ORDERED)?;
        }
        while let Some(event) = server.poll_event() {
            let PeerEvent::Message { message: lent, .. } = event else { continue };
            assert!(lent.as_slice().is_none(), "the message is in several blocks");
            let mut reader = Reader::over(&lent);
            assert_eq!(reader.bits(8)?, 0xFE);
            assert_eq!(ServerMessage::unpack(&mut reader)?, message(&entities));
            assert_eq!(reader.position(), 8 + 49_154);
            return Ok(());
        }
        while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
            server.handle_datagram(now, from, transmit.payload);
        }
        while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
            client.handle_datagram(now, to, transmit.payload);
        }
        let deadlines = [client.poll_timeout(), server.poll_timeout()];
        now = now.max(deadlines.into_iter().flatten().min().ok_or("neither peer has a timeout")?);
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
    Err("the message has not arrived".into())
}

/// Over the Game Protocol, every chunk of a message is in a block of its own.
#[test]
fn snapshot_in_game_protocol_chunks_is_read_without_a_copy() -> Result<(), Box<dyn Error>> {
    use rakwire::game_protocol::{Capacity, Config, Event, Peer, Reliability};
    let entities = entities();
    let bytes = to_vec(&message(&entities))?;
    let capacity = Capacity { connections: 1, blocks: 256, block_size: 128 };
    let mut config = Config::new([2; 32]);
    config.max_incoming = 1;
    let mut client = Peer::with_capacity(capacity, Config::new([1; 32]));
    let mut server = Peer::with_capacity(capacity, config);
    let (here, there) = ("192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?);
    let (now, mut buffer) = (Instant::ZERO, [0; 1_024]);
    let id = client.connect(now, there)?;
    let mut sent = false;
    for _ in 0..100 {
        while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
            server.handle_datagram(now, here, transmit.payload);
        }
        while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
            client.handle_datagram(now, there, transmit.payload);
        }
        if !sent && client.send(now, id, &bytes, Reliability::Reliable).is_ok() {
            sent = true;
        }
        while client.poll_event().is_some() {}
        while let Some(event) = server.poll_event() {
            if let Event::Message { message, .. } = event {
                assert!(message.as_slice().is_none(), "the message is in several pieces");
                assert_reads(&message, &entities);
                return Ok(());
            }
        }
    }
    Err("timed out waiting for the datagram".into())
}
