//! Members that send false data, flood, or disconnect unexpectedly.

use core::time::Duration;

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::wire::Wire;
use rakwire::wire::Writer;
use rakwire::wire::notice::{Notice, RemotePeer, RemotePeers};
use rakwire_plugins::mesh::{Announcement, Epoch, JoinStatus, MAX_LENGTH, Mesh, REACH_TIME, Rank};

use crate::support::{Collector, connections};

type Member = Mesh<4>;

fn plugin(mesh: &mut Member) -> &mut dyn Plugin<RakNet> {
    mesh
}

fn receive(mesh: &mut Member, now: Instant, id: ConnectionId, bytes: &[u8]) {
    plugin(mesh).on_message(now, id, Delivery::RELIABLE_ORDERED, &bytes);
}

fn update(mesh: &mut Member, now: Instant) -> usize {
    let mut sender = Collector::<RakNet>::new();
    plugin(mesh).update(now, &mut sender);
    sender.messages.len()
}

/// Creates the founder of a mesh, connected to another member.
fn connected() -> (Member, ConnectionId) {
    let (mut mesh, id) = connected_to_a_client();
    announce(&mut mesh, Instant::ZERO, id, &[]);
    (mesh, id)
}

/// Creates the founder of a mesh, connected to a peer that has sent no announcement.
fn connected_to_a_client() -> (Member, ConnectionId) {
    let id = connections::<RakNet>(1)[0];
    let mut mesh = Member::new(Guid(5));
    mesh.create();
    update(&mut mesh, Instant::ZERO);
    plugin(&mut mesh).on_connected(Instant::ZERO, id, ([10, 0, 0, 1], 1).into(), Guid(6), Side::Server);
    update(&mut mesh, Instant::ZERO);
    (mesh, id)
}

/// Announces that the other member is connected to these peers.
fn announce(mesh: &mut Member, now: Instant, from: ConnectionId, guids: &[u64]) {
    let neighbours = guids.iter().map(|guid| Rank { joined: 2, guid: Guid(*guid) }).collect();
    let epoch = Epoch { founder: Guid(5), now: 0 };
    let said = Announcement::<4> { joined: Some((epoch, 1)), neighbours };
    let mut buffer = [0; MAX_LENGTH];
    receive(mesh, now, from, said.encode(&mut buffer).expect("enough space"));
}

/// Announces that the other member is connected to an invented member.
fn invent(mesh: &mut Member, now: Instant, from: ConnectionId, guid: u64) {
    receive(mesh, now, from, &invented(guid));
    announce(mesh, now, from, &[guid]);
}

fn invented(guid: u64) -> Vec<u8> {
    invented_at(guid, 1)
}

fn invented_at(guid: u64, port: u16) -> Vec<u8> {
    let peer = RemotePeer { address: ([192, 0, 2, 1], port).into(), guid: Guid(guid), ping: 1 };
    let (mut entries, mut buffer) = ([0; RemotePeer::MAX_SIZE], [0; 64]);
    let peers = RemotePeers::encode([peer], &mut entries).expect("enough space");
    let mut writer = Writer::new(&mut buffer);
    Notice::RemoteConnected { peers }.write(&mut writer).expect("enough space");
    writer.finish().to_vec()
}

fn withdrawn(guid: u64) -> Vec<u8> {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    let notice = Notice::RemoteDisconnected { address: ([192, 0, 2, 1], 1).into(), guid: Guid(guid) };
    notice.write(&mut writer).expect("enough space");
    writer.finish().to_vec()
}

/// A member that repeatedly announces and withdraws invented peers causes at most as many attempts as there are
/// slots.
#[test]
fn attempts_to_invented_peers_are_limited() {
    let (mut mesh, id) = connected();
    let mut tried = 0;
    for step in 0..1_200_u64 {
        let now = Instant::from_micros(step * 10_000);
        invent(&mut mesh, now, id, 100 + step);
        update(&mut mesh, now);
        while mesh.poll_connect().is_some() {
            tried += 1;
        }
        receive(&mut mesh, now, id, &withdrawn(100 + step));
    }
    assert!((1..=4 * 3).contains(&tried), "{tried} attempts in 12 seconds");
    assert!(mesh.stats().dropped > 100);
    assert_eq!(mesh.join_status(), JoinStatus::Complete, "no member reports the invented peers");
}

/// An announcement above the limit of scans takes effect in the next period.
#[test]
fn peers_announced_after_many_messages_are_tried() {
    let (mut mesh, id) = connected();
    let now = Instant::ZERO + Duration::from_secs(1);
    for _ in 0..100 {
        receive(&mut mesh, now, id, &withdrawn(99));
    }
    invent(&mut mesh, now, id, 100);
    update(&mut mesh, now);
    assert_eq!(mesh.poll_connect(), None);
    let due = plugin(&mut mesh).poll_timeout().expect("a scan is due");
    assert!(due <= now + Duration::from_millis(100));
    update(&mut mesh, due);
    assert_eq!(mesh.poll_connect().map(|target| target.guid), Some(Guid(100)));
}

/// Returns the number of peers that the mesh returns within a minute.
fn attempts(mesh: &mut Member, from: Instant) -> usize {
    let mut tried = 0;
    for second in 0..60 {
        update(mesh, from + Duration::from_secs(second));
        tried += std::iter::from_fn(|| mesh.poll_connect()).count();
    }
    tried
}

/// A peer that timed out is tried again; a peer that disconnected is not.
#[test]
fn peer_that_left_is_not_tried_again() {
    let from = Instant::ZERO + Duration::from_secs(1);
    for (reason, expected) in [
        (DisconnectReason::Lost, 5..=12),
        (DisconnectReason::Remote, 0..=0),
        (DisconnectReason::Local, 0..=0),
    ] {
        let (mut mesh, id) = connected();
        plugin(&mut mesh).on_disconnected(from, id, reason);
        assert!(expected.contains(&attempts(&mut mesh, from)), "{reason}");
    }
}

/// A peer that disconnects from this member but remains connected to another one is tried until that connection
/// closes too. If the peer has timed out here, the report that it left the other member does not count.
#[test]
fn departed_peer_is_retried_until_it_leaves_all_members() {
    let from = Instant::ZERO + Duration::from_secs(1);
    let ids = connections::<RakNet>(2);
    for (reason, rest) in [(DisconnectReason::Remote, 0..=0), (DisconnectReason::Lost, 5..=12)] {
        let (mut mesh, member) = connected();
        let address = ([192, 0, 2, 1], 1).into();
        plugin(&mut mesh).on_connected(Instant::ZERO, ids[1], address, Guid(100), Side::Server);
        announce(&mut mesh, Instant::ZERO, ids[1], &[]);
        invent(&mut mesh, Instant::ZERO, member, 100);
        plugin(&mut mesh).on_disconnected(from, ids[1], reason);
        update(&mut mesh, from);
        assert_eq!(
            mesh.poll_connect().is_none(),
            reason == DisconnectReason::Remote,
            "the peer may be leaving the mesh"
        );
        let later = from + Duration::from_secs(5);
        update(&mut mesh, later);
        assert_eq!(mesh.poll_connect().map(|target| target.guid), Some(Guid(100)));
        receive(&mut mesh, later, member, &withdrawn(100));
        assert!(rest.contains(&attempts(&mut mesh, later)), "{reason}");
    }
}

#[test]
fn unreachable_peer_is_reported_once() {
    let (mut mesh, id) = connected();
    invent(&mut mesh, Instant::ZERO, id, 100);
    assert_eq!(mesh.join_status(), JoinStatus::Joining);
    for _ in 0..3 {
        update(&mut mesh, Instant::ZERO + REACH_TIME);
    }
    assert_eq!(mesh.join_status(), JoinStatus::Partial);
    assert_eq!((mesh.poll_unreachable(), mesh.poll_unreachable()), (Some(Guid(100)), None));
    plugin(&mut mesh).on_disconnected(Instant::ZERO + REACH_TIME, id, DisconnectReason::Lost);
    assert_eq!(mesh.join_status(), JoinStatus::Alone);
    assert_eq!(mesh.host(), Some(Guid(5)));
}

/// A member that changes its announcement in every message makes this peer send only a few times per second.
#[test]
fn announcement_flood_is_answered_at_a_limited_rate() {
    let (mut mesh, id) = connected();
    let mut sent = 0;
    for step in 0..10_000_i64 {
        let now = Instant::from_micros(step.cast_unsigned() * 100);
        let epoch = Epoch { founder: Guid(1), now: step };
        let said = Announcement::<4> { joined: Some((epoch, -step)), neighbours: Default::default() };
        let mut buffer = [0; MAX_LENGTH];
        receive(&mut mesh, now, id, said.encode(&mut buffer).expect("enough space"));
        sent += update(&mut mesh, now);
    }
    assert!((2..=21).contains(&sent), "{sent} messages in a second");
}

/// Members are trusted, so a member that announces a false age becomes the host. Nothing overflows, and no state
/// remains once it disconnects.
#[test]
fn a_host_with_a_false_join_time_is_replaced_when_it_disconnects() {
    for (now, joined) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, i64::MIN)] {
        let (mut mesh, id) = connected();
        let at = Instant::from_micros(u64::MAX);
        let epoch = Epoch { founder: Guid(0), now };
        let said = Announcement::<4> { joined: Some((epoch, joined)), neighbours: Default::default() };
        let mut buffer = [0; MAX_LENGTH];
        receive(&mut mesh, at, id, said.encode(&mut buffer).expect("enough space"));
        assert_eq!(mesh.host() == Some(Guid(6)), joined == i64::MIN);
        assert!(mesh.connected_time(at).is_some());
        plugin(&mut mesh).on_disconnected(Instant::ZERO, id, DisconnectReason::Lost);
        assert_eq!(mesh.host(), Some(Guid(5)));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_leave_the_mesh_with_a_host(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..50)) {
        let (mut mesh, id) = connected();
        for (number, message) in messages.iter().enumerate() {
            let now = Instant::ZERO + Duration::from_secs(number as u64);
            let ids = [0x1F, 0x20, 0x21, 132];
            receive(&mut mesh, now, id, &[&[ids[number % 4]][..], message].concat());
            update(&mut mesh, now);
            while mesh.poll_connect().is_some() {}
        }
        prop_assert!(mesh.host().is_some());
    }
}

/// A member that repeatedly reports and withdraws a peer causes nine attempts per minute, not one every four seconds.
#[test]
fn a_peer_that_reconnects_often_is_tried_rarely() {
    let (mut mesh, id) = connected();
    let (mut tried, mut reported) = (0, 0);
    for second in 0..600 {
        let now = Instant::ZERO + Duration::from_secs(second);
        if second % 2 == 0 {
            invent(&mut mesh, now, id, 100);
        } else {
            receive(&mut mesh, now, id, &withdrawn(100));
        }
        update(&mut mesh, now);
        tried += u32::from(mesh.poll_connect().is_some());
        reported += u32::from(mesh.poll_unreachable().is_some());
    }
    assert!((40..=100).contains(&tried), "{tried} attempts in 600 seconds");
    assert!(reported <= 20, "{reported}");
}

/// Two members announce a peer with different addresses, and this peer tries both. A peer that is leaving the mesh
/// tries none.
#[test]
fn every_address_of_a_peer_is_tried() {
    let (mut mesh, first) = connected();
    let second = connections::<RakNet>(2)[1];
    plugin(&mut mesh).on_connected(Instant::ZERO, second, ([10, 0, 0, 2], 1).into(), Guid(7), Side::Server);
    receive(&mut mesh, Instant::ZERO, first, &invented_at(100, 1));
    receive(&mut mesh, Instant::ZERO, second, &invented_at(100, 2));
    announce(&mut mesh, Instant::ZERO, second, &[100]);
    let mut ports = Vec::new();
    for second in 0..12 {
        update(&mut mesh, Instant::ZERO + Duration::from_secs(second));
        ports.extend(mesh.poll_connect().map(|target| target.address.port()));
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports, [1, 2]);
    mesh.leave();
    update(&mut mesh, Instant::ZERO + Duration::from_secs(20));
    assert_eq!(mesh.poll_connect(), None);
}

/// The client of a member, or a web page, accepts no connections. It is tried only once a member announces it as a
/// member.
#[test]
fn the_mesh_does_not_connect_to_peers_that_are_not_members() {
    let (mut mesh, id) = connected();
    receive(&mut mesh, Instant::ZERO, id, &invented(100));
    assert_eq!(attempts(&mut mesh, Instant::ZERO), 0);
    assert_eq!((mesh.join_status(), mesh.poll_unreachable()), (JoinStatus::Complete, None));
    assert_eq!(mesh.missing_pairs().count(), 0);
    let later = Instant::ZERO + Duration::from_secs(60);
    announce(&mut mesh, later, id, &[100]);
    update(&mut mesh, later);
    assert_eq!(mesh.poll_connect().map(|target| target.guid), Some(Guid(100)));
    let (mut mesh, id) = connected_to_a_client();
    plugin(&mut mesh).on_disconnected(Instant::ZERO, id, DisconnectReason::Lost);
    assert_eq!(attempts(&mut mesh, Instant::ZERO), 0, "a client that timed out must not be tried");
}
