use std::num::NonZeroUsize;

use super::*;
use crate::close::CloseKind;

const SECOND: Duration = Duration::from_secs(1);

struct Fixture {
    session: Session,
    counters: Arc<Counters>,
    start: Instant,
}

fn fixture() -> Fixture {
    let limits = Limits { queue: NonZeroUsize::new(2).unwrap(), ..Limits::default() };
    let counters = Arc::new(Counters::default());
    let start = Instant::now();
    Fixture { session: Session::new(limits, Arc::clone(&counters), start), counters, start }
}

impl Fixture {
    fn client(&mut self, input: FromClient) {
        self.session.handle_client(self.start, input);
    }

    fn server(&mut self, input: FromServer<'_>) {
        self.session.handle_server(self.start, input);
    }

    fn kind(&self) -> Option<CloseKind> {
        self.session.closing().map(CloseReason::kind)
    }

    fn drops(&self, reason: DropReason) -> u64 {
        self.counters.snapshot().drops(reason)
    }

    fn taken_to_client(&mut self) -> Vec<ToClient> {
        std::iter::from_fn(|| self.session.next_to_client()).collect()
    }
}

fn binary(len: usize) -> FromClient {
    FromClient::Binary(vec![7; len].into())
}

#[test]
fn messages_wait_for_the_server_and_the_oldest_is_lost() {
    let mut fixture = fixture();
    for len in 1..=3 {
        fixture.client(binary(len));
    }
    assert_eq!(fixture.drops(DropReason::ServerQueueFull), 1);
    assert_eq!(fixture.session.next_to_server().map(<[u8]>::len), Some(2));
    fixture.session.handle_sending(Sending::Sent);
    assert_eq!(fixture.session.next_to_server().map(<[u8]>::len), Some(3));
    fixture.session.handle_sending(Sending::Refused);
    assert_eq!(fixture.session.next_to_server(), None);
    assert_eq!(fixture.drops(DropReason::SendRefused), 1);
    assert_eq!(fixture.counters.snapshot().to_server.bytes, 2);
    assert_eq!(fixture.kind(), None);
}

#[test]
fn datagrams_wait_for_the_client_and_the_oldest_is_lost() {
    let mut fixture = fixture();
    for len in 1..=3 {
        fixture.server(FromServer::Datagram(&[0; 3][..len]));
    }
    assert_eq!(fixture.drops(DropReason::ClientQueueFull), 1);
    assert_eq!(fixture.session.room_to_client(), 0);
    let expected = [2, 3].map(|len| ToClient::Binary(vec![0; len].into()));
    assert_eq!(fixture.taken_to_client(), expected);
    assert_eq!(fixture.counters.snapshot().to_client.bytes, 5);
}

#[test]
fn the_size_limit_is_exact() {
    let mut fixture = fixture();
    fixture.client(binary(1472));
    assert_eq!(fixture.kind(), None);
    fixture.client(binary(1473));
    assert_eq!(fixture.session.closing(), Some(&CloseReason::MessageTooBig { len: 1473, max: 1472 }));
    assert_eq!(
        fixture.session.next_to_server().map(<[u8]>::len),
        Some(1472),
        "what came before still goes out"
    );
}

#[test]
fn what_is_harmless_is_counted_and_the_session_goes_on() {
    let mut fixture = fixture();
    fixture.client(binary(0));
    fixture.client(FromClient::Control);
    fixture.server(FromServer::Oversized);
    fixture.server(FromServer::Unreachable);
    assert_eq!(fixture.drops(DropReason::EmptyMessage), 1);
    assert_eq!(fixture.drops(DropReason::DatagramTooBig), 1);
    assert_eq!(fixture.counters.snapshot().unreachable, 1);
    assert_eq!(fixture.kind(), None);
}

#[test]
fn what_ends_a_session() {
    let ends = [
        (FromClient::Text, CloseKind::TextMessage),
        (FromClient::Oversized { len: 1 << 20 }, CloseKind::MessageTooBig),
        (FromClient::Violation, CloseKind::ProtocolViolation),
        (FromClient::Closed, CloseKind::ClientClosed),
        (FromClient::Vanished, CloseKind::ClientVanished),
    ];
    for (input, kind) in ends {
        let mut fixture = fixture();
        fixture.client(input);
        assert_eq!(fixture.kind(), Some(kind));
    }
    let mut failed = fixture();
    failed.server(FromServer::Failed);
    failed.session.handle_shutdown();
    assert_eq!(failed.kind(), Some(CloseKind::UdpFailed), "the first reason counts");
    let mut unsendable = fixture();
    unsendable.client(binary(1));
    unsendable.session.handle_sending(Sending::Failed);
    assert_eq!(unsendable.kind(), Some(CloseKind::UdpFailed));
}

#[test]
fn traffic_of_either_side_keeps_a_session() {
    for from_server in [false, true] {
        let mut fixture = fixture();
        let later = fixture.start + 40 * SECOND;
        if from_server {
            fixture.session.handle_client(later, FromClient::Control);
            fixture.session.handle_server(later, FromServer::Datagram(b"x"));
        } else {
            fixture.session.handle_client(later, binary(1));
        }
        fixture.session.handle_timeout(fixture.start + 60 * SECOND);
        assert_eq!(fixture.kind(), None);
        fixture.session.handle_client(fixture.start + 90 * SECOND, FromClient::Control);
        fixture.session.handle_timeout(later + 60 * SECOND);
        assert_eq!(fixture.kind(), Some(CloseKind::Idle));
    }
}

#[test]
fn pongs_alone_do_not_keep_a_session() {
    let mut fixture = fixture();
    for second in (15..60).step_by(15) {
        fixture.session.handle_client(fixture.start + second * SECOND, FromClient::Control);
    }
    fixture.session.handle_timeout(fixture.start + 59 * SECOND);
    assert_eq!(fixture.kind(), None);
    fixture.session.handle_timeout(fixture.start + 60 * SECOND);
    assert_eq!(fixture.kind(), Some(CloseKind::Idle));
}

#[test]
fn a_silent_client_is_pinged_and_given_up_although_the_server_talks() {
    let mut fixture = fixture();
    let mut pings = 0;
    while fixture.kind().is_none() {
        let now = fixture.session.poll_timeout();
        assert!(now <= fixture.start + 60 * SECOND, "never given up");
        fixture.session.handle_server(now, FromServer::Datagram(b"x"));
        fixture.session.handle_timeout(now);
        pings += fixture.taken_to_client().iter().filter(|frame| **frame == ToClient::Ping).count();
    }
    assert_eq!(fixture.kind(), Some(CloseKind::Unresponsive));
    assert_eq!(pings, 2);
}

#[test]
fn pings_do_not_pile_up_behind_a_stalled_client() {
    let mut fixture = fixture();
    for second in [15, 30, 40] {
        fixture.session.handle_client(fixture.start + second * SECOND, FromClient::Control);
        fixture.session.handle_timeout(fixture.start + second * SECOND);
    }
    assert_eq!(fixture.taken_to_client(), [ToClient::Ping]);
}

#[test]
fn a_session_is_counted_while_it_lives() {
    let fixture = fixture();
    let counters = Arc::clone(&fixture.counters);
    assert_eq!(counters.snapshot().clients, 1);
    drop(fixture);
    assert_eq!(counters.snapshot().clients, 0);
    assert_eq!(counters.snapshot().sessions, 1);
}
