//! Sessions with clients that use the same libraries, over an in-memory network.

use super::super::counters::{WebRtcCounters, WebRtcDropReason};
use super::super::endpoint::{DatagramEvent as Arrival, Endpoint as Sources};
use super::super::stun::Password;
use super::super::stun::tests::{check, fingerprint, page_answer, username};
use super::*;

/// A path that may lose and damage datagrams.
struct Network {
    server: Session,
    client: Session,
    now: Instant,
    /// Drops every n-th datagram, counted over both directions.
    loss: Option<usize>,
    sent: usize,
    to_client: usize,
    to_server: usize,
    from_server: Vec<SessionEvent>,
    from_client: Vec<SessionEvent>,
}

#[derive(Clone, Copy)]
pub(crate) enum Version {
    Dtls12,
    Dtls13,
    Either,
}

/// Creates a client that has not sent anything yet.
pub(crate) fn client(version: Version, now: Instant) -> Session {
    let settings = SessionSettings::new(&Certificate::make().unwrap()).unwrap();
    let SessionSettings { dtls, certificate, endpoint, .. } = settings;
    let mut dtls = match version {
        Version::Dtls12 => Dtls::new_12(dtls, certificate, now),
        Version::Dtls13 => Dtls::new_13(dtls, certificate, now),
        Version::Either => Dtls::new_auto(dtls, certificate, now),
    };
    dtls.set_active(true);
    let mut session = Session::with(dtls, Endpoint::new(endpoint, None), now);
    // The limits of browsers are higher.
    let transport = TransportConfig::default().with_rto_initial_ms(RTO_INITIAL).with_rto_min_ms(RTO_MIN);
    let mut config = sctp_proto::ClientConfig::default();
    config.transport = Arc::new(transport);
    session.association = Some(session.endpoint.connect(config, PEER).unwrap());
    session
}

impl Network {
    fn new(version: Version, loss: Option<usize>) -> Self {
        let now = Instant::now();
        let settings = SessionSettings::new(&Certificate::make().unwrap()).unwrap();
        Self {
            server: Session::new(&settings, now),
            client: client(version, now),
            now,
            loss,
            sent: 0,
            to_client: 0,
            to_server: 0,
            from_server: Vec::new(),
            from_client: Vec::new(),
        }
    }

    fn is_lost(&mut self) -> bool {
        self.sent += 1;
        self.loss.is_some_and(|loss| self.sent.is_multiple_of(loss))
    }

    /// Delivers pending datagrams in both directions; returns true if there were any.
    fn pass(&mut self) -> bool {
        let before = self.sent;
        while let Some(datagram) = self.client.poll_transmit() {
            assert!(datagram.len() <= 1_200, "{} bytes", datagram.len());
            if !self.is_lost() {
                self.to_server += datagram.len();
                self.server.handle_datagram(self.now, &datagram);
            }
        }
        while let Some(datagram) = self.server.poll_transmit() {
            assert!(datagram.len() <= 1_200, "{} bytes", datagram.len());
            if !self.is_lost() {
                self.to_client += datagram.len();
                self.client.handle_datagram(self.now, &datagram);
            }
        }
        self.from_server.extend(std::iter::from_fn(|| self.client.poll_event()));
        self.from_client.extend(std::iter::from_fn(|| self.server.poll_event()));
        self.sent > before
    }

    fn advance(&mut self) {
        let due = [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min();
        let due = due.unwrap_or(self.now).clamp(self.now, self.now + Duration::from_millis(50));
        self.now = due.max(self.now + Duration::from_millis(1));
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    /// Runs until `done` returns true or `limit` has passed. Returns true if done.
    fn run(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        self.client.handle_timeout(self.now);
        while self.now < end {
            while self.pass() {}
            if done(self) {
                return true;
            }
            self.advance();
        }
        false
    }

    fn connect(version: Version, loss: Option<usize>) -> Self {
        let mut network = Self::new(version, loss);
        let connected = |network: &Self| {
            [&network.from_client, &network.from_server]
                .iter()
                .all(|events| events.contains(&SessionEvent::Connected))
        };
        assert!(network.run(HANDSHAKE_TIMEOUT, connected), "{:?} {:?}", network.server, network.client);
        network.from_client.clear();
        network.from_server.clear();
        network
    }

    fn settle(&mut self) {
        self.run(Duration::from_secs(2), |_| false);
    }
}

#[test]
fn messages_arrive_in_both_directions_with_each_dtls_version() {
    for version in [Version::Dtls12, Version::Dtls13, Version::Either] {
        let mut network = Network::connect(version, None);
        network.client.send_control("open");
        assert!(network.client.send_datagram(b"hello"));
        network.server.send_control("flow");
        assert!(network.server.send_datagram(&[7; 1_472]));
        let now = network.now;
        network.client.flush(now);
        network.server.flush(now);
        network.settle();
        let (control, datagram) = (
            |text: &'static str| SessionEvent::Control(text.into()),
            |bytes: Vec<u8>| SessionEvent::Datagram(bytes.into()),
        );
        // The order of messages on different channels is unspecified.
        for (heard, events) in [
            (&network.from_client, [control("open"), datagram(b"hello".to_vec())]),
            (&network.from_server, [control("flow"), datagram(vec![7; 1_472])]),
        ] {
            assert!(heard.len() == 2 && events.iter().all(|event| heard.contains(event)), "{heard:?}");
        }
    }
}

/// A session begins only for a validated source. Its hello therefore costs a signature immediately, and no second round
/// trip.
#[test]
fn a_client_silent_after_its_hello_times_out() {
    for version in [Version::Dtls12, Version::Dtls13, Version::Either] {
        let mut network = Network::new(version, None);
        network.client.handle_timeout(network.now);
        while let Some(datagram) = network.client.poll_transmit() {
            network.server.handle_datagram(network.now, &datagram);
        }
        assert!(network.server.poll_transmit().is_some());
        assert_eq!(network.server.poll_event(), None);
        while let Some(at) = network.server.poll_timeout() {
            network.server.handle_timeout(at);
            assert!(at <= network.now + 2 * HANDSHAKE_TIMEOUT);
        }
        assert_eq!(network.server.poll_event(), Some(SessionEvent::Failed));
    }
}

#[test]
fn a_lossy_path_loses_no_control_messages() {
    let mut network = Network::connect(Version::Either, Some(5));
    for number in 0..200 {
        network.server.send_control(&number.to_string());
        assert!(network.server.send_datagram(format!("{number}").as_bytes()));
        network.server.flush(network.now);
        network.run(Duration::from_millis(5), |_| false);
    }
    network.run(Duration::from_secs(60), |network| {
        network.from_server.iter().filter(|event| matches!(event, SessionEvent::Control(_))).count() == 200
    });
    let control: Vec<_> = network
        .from_server
        .iter()
        .filter_map(|event| {
            let SessionEvent::Control(text) = event else { return None };
            Some(String::from_utf8(text.to_vec()).unwrap())
        })
        .collect();
    assert_eq!(control, (0..200).map(|number| number.to_string()).collect::<Vec<_>>());
    let datagrams =
        network.from_server.iter().filter(|event| matches!(event, SessionEvent::Datagram(_))).count();
    assert!((100..200).contains(&datagrams), "{datagrams} datagrams");
}

#[test]
fn oversized_messages_are_never_delivered() {
    for (len, channel) in
        [(MESSAGE_MAX + 1, DATAGRAMS), (2 * MESSAGE_MAX, DATAGRAMS), (2 * MESSAGE_MAX, CONTROL)]
    {
        let mut network = Network::connect(Version::Either, None);
        let say = |network: &mut Network, len: u32| {
            let (_, association) = network.client.association.as_mut().unwrap();
            let mut stream = association.stream(channel).unwrap();
            let kind = if channel == CONTROL { Contents::String } else { Contents::Binary };
            assert_eq!(stream.write_with_ppi(&vec![1; len as usize], kind), Ok(len as usize));
            network.client.flush(network.now);
            network.settle();
        };
        say(&mut network, MESSAGE_MAX);
        assert_eq!(network.from_client.len(), 1);
        say(&mut network, len);
        // The session may end because of the message.
        assert!(
            network.from_client[1..].iter().all(|event| *event == SessionEvent::Closed),
            "{len} on {channel}"
        );
    }
}

#[test]
fn texts_are_events_and_unknown_channels_end_the_session() {
    let mut network = Network::connect(Version::Either, None);
    network.client.send(DATAGRAMS, b"text", Contents::String);
    network.client.send(DATAGRAMS, &[0], Contents::BinaryEmpty);
    network.client.flush(network.now);
    network.settle();
    assert!(matches!(&network.from_client[..], [SessionEvent::Text, SessionEvent::Datagram(_)]));
    for (channel, contents) in [(2, Contents::Binary), (7, Contents::Dcep), (CONTROL, Contents::Binary)] {
        let mut network = Network::connect(Version::Either, None);
        let (_, association) = network.client.association.as_mut().unwrap();
        let _ = association.open_stream(channel, Contents::Binary);
        network.client.send(channel, b"message", contents);
        network.client.flush(network.now);
        network.settle();
        assert_eq!(network.from_client, [SessionEvent::Violation], "{channel}");
        assert!(network.client.is_ended());
    }
}

#[test]
fn a_flood_of_messages_is_bounded_by_the_bytes_received() {
    let mut network = Network::connect(Version::Either, None);
    let mut received = 0;
    for _ in 0..200 {
        for _ in 0..100 {
            assert!(network.client.send_datagram(&[1]));
        }
        network.client.flush(network.now);
        while let Some(datagram) = network.client.poll_transmit() {
            network.server.handle_datagram(network.now, &datagram);
            // An SCTP data chunk has a header of 16 bytes.
            assert!(network.server.events.len() <= datagram.len() / 16, "{}", network.server.events.len());
            received += std::iter::from_fn(|| network.server.poll_event()).count();
        }
        network.pass();
        network.advance();
    }
    network.settle();
    received += network.from_client.len();
    assert_eq!(received, 20_000);
}

#[test]
fn data_is_queued_while_the_client_acknowledges_nothing() {
    let mut network = Network::connect(Version::Either, None);
    let mut count = 0;
    while network.server.has_room() {
        assert!(network.server.send_datagram(&[0; 1_000]));
        network.server.flush(network.now);
        while network.server.poll_transmit().is_some() {}
        count += 1;
        assert!(count < 100);
    }
    assert!(count >= SEND_BUFFER / 1_000);
}

#[test]
fn few_control_messages_are_kept_without_acknowledgements() {
    let mut network = Network::connect(Version::Either, None);
    let text = "x".repeat(100);
    let mut count = 0;
    while network.server.has_room() {
        network.server.send_control(&text);
        network.server.flush(network.now);
        while network.server.poll_transmit().is_some() {}
        count += 1;
        assert!(count < 100, "{:?} bytes", network.server.buffered(CONTROL));
    }
    assert_eq!(count, CONTROL_MAX.div_ceil(text.len()));
}

#[test]
fn congestion_control_bounds_the_data_in_flight() {
    let mut network = Network::connect(Version::Either, None);
    let mut most = 0;
    for _ in 0..40 {
        let mut on_its_way = Vec::new();
        while network.server.has_room() {
            assert!(network.server.send_datagram(&[0; 1_000]));
            network.server.flush(network.now);
            on_its_way.extend(std::iter::from_fn(|| network.server.poll_transmit()));
        }
        most = most.max(on_its_way.iter().map(Bytes::len).sum());
        // No data is acknowledged before all of it has arrived.
        for datagram in on_its_way {
            network.client.handle_datagram(network.now, &datagram);
        }
        while network.pass() {}
        network.run(Duration::from_millis(50), |_| false);
    }
    assert!(most > 4 * SEND_BUFFER, "{most} bytes");
    // The headers of DTLS and SCTP add less than a tenth.
    assert!(most < UNACKNOWLEDGED_MAX + UNACKNOWLEDGED_MAX / 10, "{most} bytes");
}

#[test]
fn empty_datagrams_arrive_and_oversized_datagrams_are_rejected() {
    let mut network = Network::connect(Version::Either, None);
    assert!(network.server.send_datagram(&[]));
    assert!(!network.server.send_datagram(&vec![0; 1 << 20]));
    network.server.flush(network.now);
    network.settle();
    assert_eq!(network.from_server, [SessionEvent::Datagram(Bytes::new())]);
}

#[test]
fn the_last_control_message_arrives_before_the_session_ends() {
    let mut network = Network::connect(Version::Either, None);
    // Loss begins only now, because a handshake might lose the same datagram every time.
    network.loss = Some(3);
    network.server.send_control("close");
    network.server.shut_down(network.now);
    assert!(network.run(Duration::from_secs(10), |network| network.server.is_ended()));
    assert_eq!(network.from_server.first(), Some(&SessionEvent::Control("close".into())));
    assert_eq!(network.server.poll_timeout(), None);
}

#[test]
fn a_client_that_closes_ends_the_session() {
    let mut network = Network::connect(Version::Either, None);
    network.client.abandon(network.now);
    network.settle();
    assert_eq!(network.from_client, [SessionEvent::Closed]);
    assert!(network.server.is_ended());
}

#[test]
fn damaged_and_repeated_datagrams_change_nothing() {
    let mut network = Network::new(Version::Either, None);
    network.client.handle_timeout(network.now);
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for _ in 0..400 {
        while let Some(datagram) = network.client.poll_transmit() {
            network.server.handle_datagram(network.now, &datagram);
            if network.server.is_secured {
                for _ in 0..4 {
                    let mut damaged = datagram.to_vec();
                    let at = random() % damaged.len();
                    damaged[at] ^= 1 << (random() % 8);
                    network.server.handle_datagram(network.now, &damaged);
                    network.server.handle_datagram(network.now, &datagram);
                    network.server.handle_datagram(network.now, &damaged[..at]);
                }
            }
        }
        network.pass();
        network.advance();
        // Datagrams are not accepted before the channels are open.
        let _ = network.client.send_datagram(b"datagram");
        network.client.flush(network.now);
    }
    assert!(!network.server.is_ended() && !network.client.is_ended());
    let datagrams =
        network.from_client.iter().filter(|event| matches!(event, SessionEvent::Datagram(_))).count();
    assert!(datagrams > 300, "{datagrams} datagrams");
}

#[test]
fn a_client_hello_with_a_changed_bit_establishes_no_session() {
    let settings = SessionSettings::new(&Certificate::make().unwrap()).unwrap();
    let now = Instant::now();
    let mut hello = client(Version::Either, now);
    hello.handle_timeout(now);
    let hello = hello.poll_transmit().unwrap();
    for at in 0..hello.len() {
        for bit in [0, 7] {
            let mut session = Session::new(&settings, now);
            let mut damaged = hello.to_vec();
            damaged[at] ^= 1 << bit;
            session.handle_datagram(now, &damaged);
            session.handle_datagram(now, &hello);
            assert!(!session.is_secured);
        }
    }
}

/// Runs only the server, until an event or the limit. Its datagrams are lost.
fn without_client(network: &mut Network, limit: Duration) -> Option<SessionEvent> {
    let end = network.now + limit;
    while network.now < end {
        network.now = network.server.poll_timeout().map_or(end, |due| due.clamp(network.now, end));
        network.server.handle_timeout(network.now);
        while network.server.poll_transmit().is_some() {}
        if let Some(event) = network.server.poll_event() {
            return Some(event);
        }
    }
    None
}

#[test]
fn missing_acknowledgements_are_reported_at_the_timeout() {
    for is_control in [true, false] {
        let mut network = Network::connect(Version::Either, None);
        let start = network.now;
        if is_control {
            network.server.send_control("flow");
        } else {
            // This exceeds SCTP's congestion window, so that some messages wait for the acknowledgement of others.
            while network.server.has_room() {
                assert!(network.server.send_datagram(&[0; 1_000]));
                network.server.flush(start);
            }
        }
        network.server.flush(start);
        assert_eq!(
            without_client(&mut network, 2 * ACKNOWLEDGEMENT_TIMEOUT),
            Some(SessionEvent::Unacknowledged)
        );
        assert_eq!(network.now, start + ACKNOWLEDGEMENT_TIMEOUT, "control: {is_control}");
        assert!(!network.server.is_ended(), "the session can still send the reason");
    }
}

#[test]
fn late_acknowledgements_are_not_reported() {
    let mut network = Network::connect(Version::Either, None);
    for _ in 0..5 {
        network.server.send_control("flow");
        network.server.flush(network.now);
        // This is short enough for the next retransmission, after 5 s at most.
        assert_eq!(without_client(&mut network, ACKNOWLEDGEMENT_TIMEOUT - Duration::from_secs(8)), None);
        network.settle();
        network.run(Duration::from_secs(10), |_| false);
    }
    assert!(network.from_client.is_empty(), "{:?}", network.from_client);
}

#[test]
fn a_page_connects_among_ten_thousand_forged_sources_per_second() {
    let (mut network, from) = (Network::new(Version::Either, None), SocketAddr::from(([10, 0, 1, 1], 1)));
    let (counters, identity) = (Arc::<WebRtcCounters>::default(), fingerprint(7));
    let mut sources = Sources::<u32>::new(&identity, &[3; 20], Arc::clone(&counters), network.now).unwrap();
    let check = |name| check(&Password::new(&identity).unwrap(), &username(name), 16);
    let hello = [&[22, 0xfe, 0xfd][..], &[0; 8], &[0, 40], &[1], &[0; 39]].concat();
    let (forged_check, forged_answer) = (check("forged"), page_answer(&check("forged")));
    let event = sources.handle(network.now, from, &check("a1b2"));
    let Arrival::Challenge { check: challenge, .. } = event else { panic!("{event:?}") };
    assert_eq!(sources.handle(network.now, from, &page_answer(&challenge)), Arrival::Validated);

    let (end, mut numbers) = (network.now + HANDSHAKE_TIMEOUT, 0_u16..);
    let is_open = |events: &[SessionEvent]| events.contains(&SessionEvent::Connected);
    while !is_open(&network.from_client) || !is_open(&network.from_server) {
        let now = network.now;
        assert!(now < end, "{:?} {:?}", network.server, network.client);
        for number in numbers.by_ref().take(10) {
            let [high, low] = (number % 1_000).to_be_bytes();
            let forged = SocketAddr::from(([10, high, low, 1], 2 + number / 1_000));
            for datagram in [&hello, &forged_check, &forged_answer] {
                let event = sources.handle(now, forged, datagram);
                assert!(matches!(event, Arrival::Dropped | Arrival::Challenge { .. }), "{event:?}");
            }
        }
        network.client.handle_timeout(now);
        while let Some(datagram) = network.client.poll_transmit() {
            if sources.handle(now, from, &datagram) == Arrival::Begin {
                assert_eq!(sources.open(from, 1), None);
            }
            network.server.handle_datagram(now, &datagram);
        }
        network.server.handle_timeout(now);
        while let Some(datagram) = network.server.poll_transmit() {
            network.client.handle_datagram(now, &datagram);
        }
        for event in std::iter::from_fn(|| network.server.poll_event()) {
            if event == SessionEvent::Secured {
                assert_eq!(sources.prove(from, &1), None);
            }
            network.from_client.push(event);
        }
        network.from_server.extend(std::iter::from_fn(|| network.client.poll_event()));
        network.now += Duration::from_millis(1);
    }
    assert_eq!(sources.session(from), Some(&1));
    let snapshot = counters.snapshot();
    let unvalidated = snapshot.drops(WebRtcDropReason::UnvalidatedSource);
    assert!(unvalidated >= 10 && snapshot.drops(WebRtcDropReason::UnknownAnswer) == unvalidated);
}
