use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::*;
use crate::protocol::{Change, FlowInspector, Handshake, ProtocolKind, Refusal};

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) struct Fixture {
    pub(super) flow: Flow,
    pub(super) counters: Arc<TargetCounters>,
    pub(super) start: Instant,
}

pub(super) fn limits() -> FlowLimits {
    FlowLimits { queue: NonZeroUsize::new(2).unwrap(), ..FlowLimits::default() }
}

pub(super) fn fixture() -> Fixture {
    fixture_of(limits(), Setup::default())
}

/// Creates a flow that can be resumed.
fn resumable() -> Fixture {
    fixture_of(limits(), Setup { secret: Some(Secret::new([0; 16])), ..Setup::default() })
}

pub(super) fn fixture_of(limits: FlowLimits, setup: Setup) -> Fixture {
    let counters = Arc::new(TargetCounters::default());
    let start = Instant::now();
    Fixture { flow: Flow::new(limits, Arc::clone(&counters), setup, start), counters, start }
}

impl Fixture {
    pub(super) fn client(&mut self, input: FromClient) {
        self.flow.handle_client(self.start, input);
    }

    pub(super) fn server(&mut self, input: FromServer<'_>) {
        self.flow.handle_server(self.start, input);
    }

    pub(super) fn end(&self) -> Option<FlowEnd> {
        self.flow.end()
    }

    pub(super) fn drops(&self, reason: DropReason) -> u64 {
        self.counters.snapshot().drops(reason)
    }

    pub(super) fn taken_to_client(&mut self) -> Vec<ToClient> {
        self.taken_at(self.start)
    }

    fn taken_at(&mut self, now: Instant) -> Vec<ToClient> {
        let taken: Vec<_> = std::iter::from_fn(|| self.flow.poll_to_client(now)).collect();
        for frame in &taken {
            if let ToClient::Datagram(datagram) = frame {
                self.flow.handle_sent_to_client(datagram.len());
            }
        }
        taken
    }

    /// Returns the lengths of the datagrams of the next batch, at most ten.
    fn batch_at(&mut self, now: Instant) -> Vec<usize> {
        let mut buffer = Vec::new();
        let batch = self.flow.poll_to_server(now, 10, &mut buffer);
        let lengths: Vec<usize> =
            batch.map_or(Vec::new(), |batch| batch.contents.chunks(batch.segment).map(<[u8]>::len).collect());
        assert_eq!(lengths.len(), batch.map_or(0, |batch| batch.count));
        lengths
    }

    pub(super) fn batch(&mut self) -> Vec<usize> {
        self.batch_at(self.start)
    }
}

pub(super) fn datagram(len: usize) -> FromClient {
    FromClient::Datagram(vec![7; len].into())
}

#[test]
fn datagrams_queued_when_a_flow_ends_are_counted_as_dropped() {
    let mut fixture = fixture();
    fixture.client(datagram(1));
    fixture.server(FromServer::Datagram(&[0; 2]));
    fixture.server(FromServer::Datagram(&[0; 2]));
    let Fixture { flow, counters, .. } = fixture;
    drop(flow);
    let drops = counters.snapshot();
    assert_eq!((drops.drops(DropReason::ServerFlowEnded), drops.drops(DropReason::ClientFlowEnded)), (1, 2));
}

#[test]
fn a_datagram_of_exactly_the_maximum_length_passes() {
    let mut fixture = fixture();
    fixture.client(datagram(1472));
    assert_eq!(fixture.end(), None);
    fixture.client(datagram(1473));
    assert_eq!(fixture.end(), Some(FlowEnd::MessageTooBig { len: 1473, max: 1472 }));
    assert_eq!(fixture.batch(), [1472], "earlier datagrams are still sent");
}

#[test]
fn harmless_protocol_violations_are_counted_and_the_flow_continues() {
    let mut fixture = fixture();
    fixture.client(datagram(0));
    fixture.client(FromClient::Control);
    fixture.server(FromServer::Oversized);
    fixture.server(FromServer::Unreachable(Unreachable::ClosedPort));
    assert_eq!(fixture.drops(DropReason::EmptyMessage), 1);
    assert_eq!(fixture.drops(DropReason::DatagramTooBig), 1);
    assert_eq!(fixture.counters.snapshot().unreachable(Unreachable::ClosedPort), 1);
    assert_eq!(fixture.end(), None);
}

#[test]
fn each_closing_event_ends_a_flow_with_its_reason() {
    let ends = [
        (FromClient::Text, FlowEnd::TextMessage),
        (FromClient::Oversized { len: 1 << 20 }, FlowEnd::MessageTooBig { len: 1 << 20, max: 1472 }),
        (FromClient::Violation, FlowEnd::ProtocolViolation),
        (FromClient::Closed, FlowEnd::ClientClosed),
        (FromClient::Vanished, FlowEnd::ClientVanished),
    ];
    for (input, end) in ends {
        let mut fixture = fixture();
        fixture.client(input);
        assert_eq!(fixture.end(), Some(end));
    }
    let mut failed = fixture();
    failed.server(FromServer::Failed);
    failed.flow.handle_shutdown(failed.start);
    assert_eq!(failed.end(), Some(FlowEnd::UdpFailed), "later reasons are ignored");
    let mut unsendable = fixture();
    unsendable.client(datagram(1));
    unsendable.flow.handle_sent(1, Sending::Failed);
    assert_eq!(unsendable.end(), Some(FlowEnd::UdpFailed));
}

#[test]
fn traffic_in_either_direction_keeps_a_flow_open() {
    for from_server in [false, true] {
        let mut fixture = fixture();
        let later = fixture.start + 40 * SECOND;
        if from_server {
            fixture.flow.handle_client(later, FromClient::Control);
            fixture.flow.handle_server(later, FromServer::Datagram(b"x"));
        } else {
            fixture.flow.handle_client(later, datagram(1));
        }
        fixture.flow.handle_timeout(fixture.start + 60 * SECOND);
        assert_eq!(fixture.end(), None);
        fixture.flow.handle_client(fixture.start + 90 * SECOND, FromClient::Control);
        fixture.flow.handle_timeout(later + 60 * SECOND);
        assert_eq!(fixture.end(), Some(FlowEnd::Idle(60 * SECOND)));
    }
}

#[test]
fn pongs_alone_do_not_keep_a_flow_open() {
    let mut fixture = fixture();
    for second in (15..60).step_by(15) {
        fixture.flow.handle_client(fixture.start + second * SECOND, FromClient::Control);
    }
    fixture.flow.handle_timeout(fixture.start + 59 * SECOND);
    assert_eq!(fixture.end(), None);
    fixture.flow.handle_timeout(fixture.start + 60 * SECOND);
    assert_eq!(fixture.end(), Some(FlowEnd::Idle(60 * SECOND)));
}

#[test]
fn a_silent_client_is_lost_despite_server_traffic() {
    let mut fixture = fixture();
    let mut pings = 0;
    while fixture.end().is_none() {
        let now = fixture.flow.poll_timeout();
        assert!(now <= fixture.start + 60 * SECOND, "the client is never considered lost");
        fixture.flow.handle_server(now, FromServer::Datagram(b"x"));
        fixture.flow.handle_timeout(now);
        pings += fixture.taken_at(now).iter().filter(|frame| **frame == ToClient::Ping).count();
    }
    assert_eq!(fixture.end(), Some(FlowEnd::Unresponsive(45 * SECOND)));
    assert_eq!(pings, 2);
}

/// A suspended relay sends no pings, so its clients may have answered every ping.
#[test]
fn a_client_is_pinged_before_it_counts_as_lost() {
    let mut fixture = fixture();
    let at = |second: u32| fixture.start + second * SECOND;
    let (stalled, end) = (at(50), at(65));
    for now in [at(15), stalled] {
        fixture.flow.handle_server(now, FromServer::Datagram(b"x"));
        fixture.flow.handle_timeout(now);
        assert_eq!(fixture.end(), None);
        assert!(fixture.taken_at(now).contains(&ToClient::Ping));
    }
    fixture.flow.handle_timeout(end);
    assert_eq!(fixture.end(), Some(FlowEnd::Unresponsive(45 * SECOND)));
}

#[test]
fn pings_do_not_accumulate_for_a_stalled_client() {
    let mut fixture = fixture();
    for second in [15, 30, 40] {
        fixture.flow.handle_client(fixture.start + second * SECOND, FromClient::Control);
        fixture.flow.handle_timeout(fixture.start + second * SECOND);
    }
    assert_eq!(fixture.taken_to_client(), [ToClient::Ping]);
}

#[test]
fn a_flow_is_counted_while_it_exists() {
    let fixture = fixture();
    let counters = Arc::clone(&fixture.counters);
    assert_eq!(counters.snapshot().clients, 1);
    drop(fixture);
    assert_eq!(counters.snapshot().clients, 0);
    assert_eq!(counters.snapshot().flows, 1);
}

#[test]
fn datagrams_of_equal_length_form_a_batch_that_a_shorter_datagram_ends() {
    let wide = FlowLimits { queue: NonZeroUsize::new(100).unwrap(), ..FlowLimits::default() };
    let mut fixture = fixture_of(wide, Setup::default());
    for len in [5, 5, 5, 3, 5, 7, 7] {
        fixture.client(datagram(len));
    }
    let mut batches = Vec::new();
    while fixture.flow.has_queued_to_server() {
        batches.push(fixture.batch());
        fixture.flow.handle_sent(batches.last().unwrap().len(), Sending::Sent);
    }
    assert_eq!(batches, [vec![5, 5, 5, 3], vec![5], vec![7, 7]]);
    (0..20).for_each(|_| fixture.client(datagram(1)));
    assert_eq!(fixture.batch().len(), 10, "a batch has at most the requested number");
    assert_eq!(fixture.counters.snapshot().to_server, Traffic { datagrams: 7, bytes: 37 });
}

#[test]
fn the_bytes_of_a_batch_are_bounded() {
    let wide =
        FlowLimits { queue: NonZeroUsize::new(100).unwrap(), max_datagram: 30_000, ..FlowLimits::default() };
    let mut fixture = fixture_of(wide, Setup::default());
    (0..3).for_each(|_| fixture.client(datagram(30_000)));
    assert_eq!(fixture.batch(), [30_000, 30_000]);
}

#[test]
fn expired_datagrams_are_dropped_before_sending() {
    let mut fixture = resumable();
    let later = fixture.start + SECOND + Duration::from_millis(1);
    fixture.server(FromServer::Datagram(b"old"));
    fixture.client(datagram(3));
    fixture.flow.handle_server(later, FromServer::Datagram(b"newer"));
    let taken = fixture.taken_at(later);
    let datagrams: Vec<_> = taken.iter().filter(|frame| matches!(frame, ToClient::Datagram(_))).collect();
    assert_eq!(datagrams, [&ToClient::Datagram(Bytes::from_static(b"newer"))]);
    assert!(fixture.batch_at(later).is_empty());
    assert_eq!((fixture.drops(DropReason::ClientTooOld), fixture.drops(DropReason::ServerTooOld)), (1, 1));
}

#[test]
fn bytes_are_bounded_in_each_direction() {
    let narrow = FlowLimits { queue_bytes: NonZeroUsize::new(3_000).unwrap(), ..FlowLimits::default() };
    let mut fixture = fixture_of(narrow, Setup::default());
    for _ in 0..1_000 {
        fixture.server(FromServer::Datagram(&[0; 1_200]));
        fixture.client(datagram(1_000));
        assert!(fixture.flow.bytes_queued() <= 2 * 3_000);
    }
    assert_eq!(fixture.drops(DropReason::ClientQueueFull), 998);
    assert_eq!(fixture.drops(DropReason::ServerQueueFull), 997);
}

#[test]
fn a_client_is_limited_to_its_rate() {
    let number = |number| NonZeroUsize::new(number).unwrap();
    let rate = Some(Rate { datagrams: number(10), bytes: number(1_000_000) });
    let mut fixture = fixture_of(FlowLimits { rate, ..FlowLimits::default() }, Setup::default());
    (0..30).for_each(|_| fixture.client(datagram(1)));
    assert_eq!(fixture.drops(DropReason::RateLimited), 20);
    assert_eq!(fixture.end(), None);
}

fn control(frame: &ToClient) -> &str {
    match frame {
        ToClient::Control(text) => text,
        ToClient::Datagram(_) | ToClient::Ping => "",
    }
}

#[test]
fn repeated_flow_requests_are_answered_at_a_limited_rate() {
    let mut fixture = resumable();
    let start = fixture.start;
    let mut told = 0;
    for millis in 0..1_000 {
        let now = start + Duration::from_millis(millis);
        for _ in 0..10 {
            fixture.flow.handle_client(now, FromClient::FlowRequest);
            told += fixture.taken_at(now).len();
        }
    }
    // The first message has no request. The second answers the first request immediately, and the others follow every
    // 100 ms.
    assert_eq!(told, 2 + 9);
    // The last request is answered too.
    let due = fixture.flow.poll_timeout();
    assert_eq!(due, start + SECOND);
    fixture.flow.handle_timeout(due);
    assert_eq!(fixture.taken_at(due).len(), 1);
    assert!(fixture.flow.poll_timeout() > due + SECOND);
}

#[test]
fn a_missed_flow_message_is_sent_again_on_request() {
    let mut fixture = resumable();
    for _connection in 0..2 {
        assert_eq!(fixture.taken_to_client().len(), 1);
        fixture.client(FromClient::FlowRequest);
        assert_eq!(fixture.taken_to_client().len(), 1);
        fixture.client(FromClient::FlowRequest);
        assert!(fixture.taken_to_client().is_empty(), "the message was sent less than 100 ms ago");
        fixture.client(FromClient::Vanished);
        fixture.flow.handle_attached(fixture.start);
    }
}

#[test]
fn a_returning_client_continues_its_flow() {
    let mut fixture = resumable();
    let frames = fixture.taken_to_client();
    assert!(control(&frames[0]).contains(r#""resumed":false"#), "{frames:?}");
    fixture.client(datagram(1));
    fixture.client(FromClient::Vanished);
    assert_eq!((fixture.end(), fixture.flow.is_attached()), (None, false));
    assert_eq!(fixture.flow.lost(), Some(FlowEnd::ClientVanished));
    let snapshot = fixture.counters.snapshot();
    assert_eq!((snapshot.clients, snapshot.detached), (0, 1));
    assert_eq!(fixture.batch(), [1], "queued datagrams are still sent");
    fixture.client(datagram(2));
    assert_eq!(fixture.batch(), [1], "input is ignored while the client is detached");

    fixture.server(FromServer::Datagram(b"while away"));
    assert!(fixture.taken_to_client().is_empty());
    fixture.flow.handle_attached(fixture.start);
    let frames = fixture.taken_to_client();
    assert!(control(&frames[0]).contains(r#""resumed":true"#), "{frames:?}");
    assert_eq!(frames[1..], [ToClient::Datagram(Bytes::from_static(b"while away"))]);
    let snapshot = fixture.counters.snapshot();
    assert_eq!((snapshot.clients, snapshot.detached, snapshot.resumed), (1, 0, 1));
}

#[test]
fn a_flow_waits_for_its_client_as_long_as_configured() {
    let mut fixture = resumable();
    fixture.client(FromClient::Vanished);
    let until = fixture.flow.poll_timeout();
    assert_eq!(until, fixture.start + 30 * SECOND);
    fixture.flow.handle_timeout(until - Duration::from_nanos(1));
    assert_eq!(fixture.end(), None);
    fixture.flow.handle_timeout(until);
    assert_eq!(fixture.end(), Some(FlowEnd::ClientVanished));
    fixture.flow.handle_attached(until);
    assert!(!fixture.flow.is_attached(), "an ended flow cannot be resumed");

    let never = FlowLimits { resume_within: Duration::ZERO, ..FlowLimits::default() };
    let secret = Some(Secret::new([0; 16]));
    let mut fixture = fixture_of(never, Setup { secret, ..Setup::default() });
    fixture.client(FromClient::Vanished);
    assert_eq!(fixture.end(), Some(FlowEnd::ClientVanished));
}

#[test]
fn an_unresponsive_client_can_resume() {
    let mut fixture = resumable();
    let lost = fixture.start + 45 * SECOND;
    fixture.flow.handle_server(fixture.start + 40 * SECOND, FromServer::Datagram(b"x"));
    for second in [15, 30, 45] {
        fixture.flow.handle_timeout(fixture.start + second * SECOND);
    }
    assert_eq!(fixture.flow.lost(), Some(FlowEnd::Unresponsive(45 * SECOND)));
    fixture.flow.handle_attached(lost + 10 * SECOND);
    fixture.flow.handle_timeout(lost + 11 * SECOND);
    assert!(fixture.flow.is_attached() && fixture.end().is_none());
}

#[test]
fn a_new_connection_replaces_an_apparently_open_connection() {
    let mut fixture = resumable();
    fixture.taken_to_client();
    fixture.flow.handle_attached(fixture.start);
    assert!(control(&fixture.taken_to_client()[0]).contains(r#""resumed":true"#));
    assert_eq!(fixture.counters.snapshot().clients, 1);
}

#[test]
fn only_a_flow_without_a_client_is_evicted() {
    let mut fixture = resumable();
    fixture.flow.handle_evicted(fixture.start);
    assert_eq!(fixture.end(), None);
    fixture.client(FromClient::Vanished);
    fixture.flow.handle_evicted(fixture.start);
    assert_eq!(fixture.end(), Some(FlowEnd::ClientVanished));
}

#[test]
fn drops_are_reported_at_most_once_a_second() {
    let mut fixture = resumable();
    fixture.taken_to_client();
    let mut reports = Vec::new();
    let mut now = fixture.start;
    for _ in 0..300 {
        fixture.client(datagram(0));
        fixture.flow.handle_client(now, FromClient::Control);
        fixture.flow.handle_timeout(now);
        reports.extend(fixture.taken_at(now));
        now += Duration::from_millis(10);
    }
    assert_eq!(reports.len(), 3, "{reports:?}");
    // The last report becomes due without further events. It requires no other call while the client's connection is
    // blocked.
    let due = fixture.flow.poll_timeout();
    assert_eq!(due, fixture.start + 3 * SECOND);
    fixture.flow.handle_timeout(due);
    assert!(fixture.flow.poll_timeout() > due);
    let last = fixture.taken_at(due);
    assert_eq!(control(&last[0]), r#"{"type":"drops","to_client":{},"to_server":{"empty_message":300}}"#);
    assert!(fixture.taken_at(due + 10 * SECOND).is_empty());
}

#[test]
fn clients_without_control_messages_receive_none() {
    let mut fixture = fixture();
    fixture.client(datagram(0));
    fixture.flow.handle_timeout(fixture.start + 5 * SECOND);
    assert!(fixture.taken_at(fixture.start + 5 * SECOND).is_empty());
    assert_eq!(fixture.flow.secret(), None);
}

#[test]
fn the_client_address_is_announced_until_the_server_answers() {
    let header =
        ProxyHeader { client: "192.0.2.7:5".parse().unwrap(), server: "192.0.2.1:6".parse().unwrap() };
    let wide = FlowLimits { queue: NonZeroUsize::new(100).unwrap(), ..FlowLimits::default() };
    let mut fixture = fixture_of(wide, Setup { proxy_header: Some(header), ..Setup::default() });
    (0..10).for_each(|_| fixture.client(datagram(1)));
    let mut lengths = Vec::new();
    for _ in 0..6 {
        lengths.extend(fixture.batch());
        fixture.flow.handle_sent(1, Sending::Sent);
    }
    assert_eq!(lengths, [29, 1, 1, 1, 29, 1]);
    assert_eq!(fixture.counters.snapshot().to_server.bytes, 6, "headers do not count as payload");
    fixture.server(FromServer::Datagram(b"answer"));
    assert_eq!(fixture.batch(), [1; 4]);
}

#[test]
fn a_client_that_acknowledges_nothing_is_lost_and_can_resume() {
    let time = 20 * SECOND;
    let mut fixture = resumable();
    fixture.client(FromClient::Unacknowledged { time });
    assert_eq!((fixture.end(), fixture.flow.lost()), (None, Some(FlowEnd::Unresponsive(time))));
    let mut plain = fixture_of(limits(), Setup::default());
    plain.client(FromClient::Unacknowledged { time });
    assert_eq!(plain.end(), Some(FlowEnd::Unresponsive(time)));
}

#[derive(Debug)]
struct Strict;

impl Inspect for Strict {
    fn to_server(&mut self, _: Instant, datagram: &[u8]) -> Verdict {
        match datagram.first() {
            Some(1) => Verdict::Answer(b"pong".to_vec()),
            Some(2) => Verdict::Pass(Change::Cut(2)),
            Some(3) => Verdict::Drop(Refusal::NoHandshake),
            _ => Verdict::Pass(Change::None),
        }
    }

    fn to_client(&mut self, _: Instant, datagram: &[u8]) -> Verdict {
        self.to_server(Instant::now(), datagram)
    }

    fn begins_connection(&self, _: &[u8]) -> bool {
        false
    }

    fn disconnect_datagram(&self) -> Option<Bytes> {
        Some(Bytes::from_static(b"gone"))
    }

    fn set_max_datagram(&mut self, _: Option<usize>) {}
}

/// Without the notification, the game server would keep the player until its timeout.
#[test]
fn the_server_is_notified_unless_the_socket_fails() {
    let strict = || Setup { inspect: Some(Box::new(Strict)), ..Setup::default() };
    let inputs = [
        FromClient::Closed,
        FromClient::Vanished,
        FromClient::Text,
        FromClient::Violation,
        FromClient::Oversized { len: 1 << 20 },
        datagram(1473),
    ];
    for input in inputs {
        let mut fixture = fixture_of(limits(), strict());
        fixture.client(input);
        assert!(fixture.end().is_some());
        assert_eq!(fixture.batch(), [4]);
    }
    let mut stopped = fixture_of(limits(), strict());
    stopped.flow.handle_shutdown(stopped.start);
    assert_eq!(stopped.batch(), [4]);
    let mut idle = fixture_of(limits(), strict());
    let late = idle.start + limits().idle_timeout;
    idle.flow.handle_timeout(late);
    assert_eq!((idle.end(), idle.batch_at(late)), (Some(FlowEnd::Idle(limits().idle_timeout)), vec![4]));
    let mut failed = fixture_of(limits(), strict());
    failed.server(FromServer::Failed);
    failed.flow.handle_shutdown(failed.start);
    assert!(failed.batch().is_empty());
}

#[test]
fn the_server_is_notified_when_a_detached_flow_is_evicted() {
    let secret = Some(Secret::new([7; 16]));
    let setup = Setup { secret, inspect: Some(Box::new(Strict)), ..Setup::default() };
    let mut fixture = fixture_of(limits(), setup);
    fixture.client(FromClient::Vanished);
    assert!(fixture.batch().is_empty(), "the client may still return");
    fixture.flow.handle_evicted(fixture.start);
    assert_eq!(fixture.batch(), [4]);
}

/// Returns the length of request 1 at the server when a client on this transport requests the largest MTU.
fn request_through(fixture: &mut Fixture, transport_limits: TransportLimits) -> usize {
    fixture.flow.set_transport_limits(transport_limits);
    let head = b"\x05\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78\x0b";
    let mut request = vec![0; 1_464];
    request[..head.len()].copy_from_slice(head);
    fixture.client(FromClient::Datagram(request.into()));
    let lengths = fixture.batch();
    fixture.flow.handle_sent(1, Sending::Sent);
    lengths[0]
}

/// The transport's limit may change, and the server and the client never agree on an MTU above the current limit.
#[test]
fn the_mtu_is_clamped_to_the_transport() {
    let now = Instant::now();
    let inspect = FlowInspector::new(ProtocolKind::RakNet, Handshake::default(), Arc::default(), now);
    let setup = Setup { inspect: Some(Box::new(inspect)), ..Setup::default() };
    let mut fixture = fixture_of(FlowLimits::default(), setup);
    let carries = |max| TransportLimits { max_unfragmented: max, ..TransportLimits::default() };
    assert_eq!(request_through(&mut fixture, carries(Some(1_211))), 1_211);
    assert_eq!(request_through(&mut fixture, carries(Some(1_024))), 1_024);
    assert_eq!(request_through(&mut fixture, carries(Some(100_000))), 1_464);
    assert_eq!(request_through(&mut fixture, carries(Some(0))), 548, "the payload of the minimum MTU, 576");
    assert_eq!(request_through(&mut fixture, TransportLimits::default()), 1_464);
}

#[test]
fn datagrams_of_other_sources_or_sessions_are_counted_and_dropped() {
    let mut fixture = resumable();
    fixture.server(FromServer::Foreign);
    fixture.client(FromClient::ForeignSession);
    assert_eq!(fixture.drops(DropReason::ForeignSource), 1);
    assert_eq!(fixture.drops(DropReason::ForeignSession), 1);
    assert_eq!((fixture.batch(), fixture.end()), (vec![], None));
}

#[test]
fn refusals_are_counted_and_a_foreign_protocol_ends_the_flow() {
    let handshake = Handshake { payload_max: 1_000, datagrams: 2, ..Handshake::default() };
    let inspector = FlowInspector::new(ProtocolKind::RakNet, handshake, Arc::default(), Instant::now());
    let mut fixture = fixture_of(limits(), Setup { inspect: Some(Box::new(inspector)), ..Setup::default() });
    let mut request = vec![0; 1_400];
    request[..18]
        .copy_from_slice(b"\x05\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78\x0b");
    let packet = b"\x84\0\0\0\0\0\x08\xfe";
    for datagram in [&request[..], &request[..900], &request, packet] {
        fixture.client(FromClient::Datagram(Bytes::copy_from_slice(datagram)));
    }
    assert_eq!(fixture.batch(), [1_000, 900]);
    assert_eq!(
        [DropReason::HandshakeBudget, DropReason::NotHandshake].map(|reason| fixture.drops(reason)),
        [1, 1]
    );
    fixture.client(FromClient::Datagram(Bytes::from_static(&[1; 4])));
    assert_eq!(fixture.end(), Some(FlowEnd::WrongProtocol(ProtocolKind::RakNet)));
}

#[test]
fn the_inspector_forwards_cuts_answers_or_drops_datagrams() {
    let wide = FlowLimits { queue: NonZeroUsize::new(100).unwrap(), ..FlowLimits::default() };
    let mut fixture = fixture_of(wide, Setup { inspect: Some(Box::new(Strict)), ..Setup::default() });
    for first in 0..4 {
        fixture.client(FromClient::Datagram(vec![first; 3].into()));
    }
    assert_eq!(fixture.taken_to_client(), [ToClient::Datagram(Bytes::from_static(b"pong"))]);
    assert_eq!(fixture.batch(), [3, 2]);
    fixture.flow.handle_sent(2, Sending::Sent);
    assert_eq!(fixture.drops(DropReason::NotHandshake), 1);
    for first in 0..4 {
        fixture.server(FromServer::Datagram(&[first; 3]));
    }
    assert_eq!(fixture.taken_to_client().len(), 2);
    assert_eq!(fixture.batch(), [4]);
}

#[test]
fn a_clock_set_back_has_no_effect_and_a_jump_ahead_ends_the_flow_as_idle() {
    let mut fixture = resumable();
    let before = fixture.start.checked_sub(SECOND).unwrap();
    fixture.flow.handle_server(before, FromServer::Datagram(b"x"));
    fixture.flow.handle_client(before, datagram(1));
    fixture.flow.handle_timeout(before);
    assert_eq!(fixture.batch_at(before), [1]);
    assert_eq!(fixture.end(), None);
    let years = fixture.start + 100_000_000 * SECOND;
    assert!(fixture.batch_at(years).is_empty());
    fixture.flow.handle_timeout(years);
    assert_eq!(fixture.end(), Some(FlowEnd::Idle(60 * SECOND)));
}

#[test]
fn an_absent_server_ends_the_flow_if_requested() {
    let setup = || Setup { closes_on_unreachable: true, ..Setup::default() };
    let mut waiting = fixture_of(limits(), setup());
    waiting.server(FromServer::Foreign);
    waiting.server(FromServer::Unreachable(Unreachable::ClosedPort));
    assert_eq!(waiting.end(), Some(FlowEnd::ServerUnreachable));
    let mut answered = fixture_of(limits(), setup());
    answered.server(FromServer::Datagram(b"hello"));
    answered.server(FromServer::Unreachable(Unreachable::ClosedPort));
    assert_eq!(answered.end(), None);
    assert_eq!(answered.counters.snapshot().unreachable(Unreachable::ClosedPort), 1);
}

#[test]
fn path_errors_are_counted_and_do_not_end_the_flow() {
    let mut waiting = fixture_of(limits(), Setup { closes_on_unreachable: true, ..Setup::default() });
    for reason in [Unreachable::Host, Unreachable::Network, Unreachable::Forbidden, Unreachable::Other] {
        assert!(waiting.flow.is_first_report(reason), "{reason:?}");
        waiting.server(FromServer::Unreachable(reason));
        assert_eq!(waiting.end(), None, "{reason:?}");
        assert!(!waiting.flow.is_first_report(reason), "{reason:?}");
        assert_eq!(waiting.counters.snapshot().unreachable(reason), 1);
    }
    waiting.server(FromServer::Unreachable(Unreachable::ClosedPort));
    assert_eq!(waiting.end(), Some(FlowEnd::ServerUnreachable));
}

#[test]
fn dropped_datagrams_are_not_charged_to_the_total_rate() {
    let total = TotalRate::default();
    total.set(10);
    let setup = Setup { inspect: Some(Box::new(Strict)), total, ..Setup::default() };
    let mut fixture = fixture_of(limits(), setup);
    for _ in 0..100 {
        fixture.client(FromClient::Datagram(vec![3; 10].into()));
        fixture.server(FromServer::Datagram(&[3; 10]));
    }
    assert_eq!(fixture.drops(DropReason::NotHandshake), 200);
    // The bucket is full, so a burst of ten bytes passes in each direction.
    for _ in 0..2 {
        fixture.client(FromClient::Datagram(vec![4; 10].into()));
        fixture.server(FromServer::Datagram(&[4; 10]));
    }
    assert_eq!((fixture.batch(), fixture.taken_to_client().len()), (vec![10], 1));
    assert_eq!(
        [DropReason::TotalToServer, DropReason::TotalToClient].map(|reason| fixture.drops(reason)),
        [1, 1]
    );
}
