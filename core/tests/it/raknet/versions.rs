//! The protocol version that a client offers, the duration of its attempts, and the framing of pongs.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{Config, ConnectFailure, ConnectOptions, Event, Guid, Peer, PongFraming};
use rakwire::wire::offline::{Offline, PingScope, ServerSecurity};
use rakwire::wire::{MAX_DATAGRAM, Reader, Wire, Writer};

use crate::support::raknet::{Net, OwnedEvent, client_config, peer, server_config};

const SERVER: SocketAddr =
    SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1)), 19132);
const GUID: Guid = Guid(7);

/// A client. The test inspects and answers its datagrams.
struct Client {
    peer: Peer<'static>,
    now: Instant,
    /// The version, the MTU and the time in milliseconds of each request 1.
    requests: Vec<(u8, u16, u64)>,
    /// The number of requests 2.
    second_requests: usize,
    failure: Option<(ConnectFailure, u64)>,
}

impl Client {
    fn new(config: Config) -> Self {
        let (now, requests) = (Instant::ZERO, Vec::new());
        Self { peer: peer(config), now, requests, second_requests: 0, failure: None }
    }

    fn connect(&mut self, options: &ConnectOptions<'_>) {
        self.requests.clear();
        self.failure = None;
        self.peer.connect_with(self.now, SERVER, options).expect("a free slot");
        self.look();
    }

    fn receive(&mut self, message: &Offline<'_>) {
        let mut buffer = [0; 2048];
        let mut writer = Writer::new(&mut buffer);
        message.write(&mut writer).expect("the buffer is large enough");
        self.peer.handle_datagram(self.now, SERVER, writer.finish());
        self.look();
    }

    fn receive_incompatible(&mut self, protocol: u8) {
        self.receive(&Offline::IncompatibleProtocol { protocol, guid: GUID });
    }

    fn receive_pong(&mut self, data: &[u8]) {
        self.peer.ping(self.now, SERVER).expect("few pings");
        self.look();
        self.receive(&Offline::Pong { time: 0, guid: GUID, data });
    }

    /// Polls the datagrams and events of the client.
    fn look(&mut self) {
        let mut buffer = [0; MAX_DATAGRAM];
        while let Some(transmit) = self.peer.poll_transmit(self.now, &mut buffer) {
            match Offline::read(&mut Reader::new(transmit.payload)) {
                Ok(Offline::Request1 { protocol, mtu }) => {
                    self.requests.push((protocol, mtu, self.now.as_millis()));
                }
                Ok(Offline::Request2 { .. }) => self.second_requests += 1,
                _ => {}
            }
        }
        while let Some(event) = self.peer.poll_event() {
            if let Event::ConnectFailed { reason, .. } = event {
                self.failure = Some((reason, self.now.as_millis()));
            }
        }
    }

    /// Advances the time until the attempt fails, but at most to `end` milliseconds.
    fn wait(&mut self, end: u64) {
        let end = Instant::from_micros(end * 1_000);
        while let Some(next) = self.peer.poll_timeout().filter(|next| *next <= end && self.failure.is_none())
        {
            self.now = next.max(self.now);
            self.peer.handle_timeout(self.now);
            self.look();
        }
        self.now = if self.failure.is_none() { end } else { self.now };
    }
}

fn within(timeout: Duration) -> ConnectOptions<'static> {
    ConnectOptions { connect_timeout: Some(timeout), ..ConnectOptions::default() }
}

#[test]
fn a_client_continues_with_the_version_that_the_server_names() {
    let mut config = client_config();
    config.protocol_version = 9;
    let mut net = Net::with(peer(config), peer(server_config()), Default::default(), 1);
    let (client, _) = net.connect();
    net.pair.a.disconnect(net.pair.now, client);
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.client.len(), 1);
    assert!(matches!(net.client[0], OwnedEvent::Disconnected(..)));
}

/// Some servers ignore an address for 10 to 20 seconds after it requested another version, so an attempt with the named
/// version lasts longer.
#[test]
fn an_attempt_outlasts_a_server_that_blocks_the_client() {
    let mut client = Client::new(client_config());
    client.connect(&ConnectOptions::default());
    client.wait(600);
    assert_eq!(client.requests, [(6, 1492, 0), (6, 1492, 500)]);
    client.receive_incompatible(11);
    client.receive_incompatible(11);
    assert_eq!(
        client.requests[2..],
        [(11, 1492, 600)],
        "a request with version 11 is sent once, immediately"
    );
    client.wait(20_600);
    assert_eq!(client.failure, None);
    let all = &client.requests[2..];
    assert_eq!(all.len(), 41, "requests must be repeated every 500 ms");
    assert!(all.iter().all(|(version, mtu, _)| (*version, *mtu) == (11, 1492)), "{all:?}");
    client.receive(&Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1492 });
    assert_eq!(client.second_requests, 1);
    client.wait(60_000);
    assert_eq!(client.failure, Some((ConnectFailure::HandshakeTimeout, 21_600)));

    client.connect(&ConnectOptions::default());
    assert_eq!(client.requests, [(11, 1492, 21_600)], "the next attempt must begin with version 11");
    client.receive_incompatible(10);
    client.wait(60_000);
    let silent = ConnectFailure::NoAnswerAfterIncompatible { server: 10 };
    assert_eq!(client.failure, Some((silent, 42_600)));
    assert!(silent.to_string().contains("protocol version 10"), "{silent}");
}

#[test]
fn a_version_fixed_by_the_application_is_not_changed() {
    let mut client = Client::new(client_config());
    let fixed = ConnectOptions { protocol_version: Some(10), ..ConnectOptions::default() };
    client.connect(&fixed);
    client.receive_incompatible(11);
    let failure = ConnectFailure::IncompatibleProtocol { server: 11 };
    assert_eq!((client.requests.len(), client.failure), (1, Some((failure, 0))));
    client.connect(&ConnectOptions::default());
    assert_eq!(client.requests, [(11, 1492, 0)], "the named version must be remembered");
}

/// The server rejects the version that it named, or names another version each time.
#[test]
fn an_attempt_fails_if_the_server_accepts_no_version() {
    for versions in [&[6][..], &[11, 11, 11], &[9, 10, 11, 12]] {
        let mut client = Client::new(client_config());
        client.connect(&ConnectOptions::default());
        for version in versions {
            assert_eq!(client.failure, None);
            client.receive_incompatible(*version);
        }
        let last = versions[versions.len() - 1];
        let failure = ConnectFailure::IncompatibleProtocol { server: last };
        assert_eq!(client.failure, Some((failure, 0)), "{versions:?}");
    }
}

#[test]
fn a_length_prefixed_bedrock_pong_selects_version_11() {
    let mut config = client_config();
    for (version, pong, announced) in [
        (6, &b"\0\x05MCPE;"[..], 11),
        (6, b"MCPE;", 6),
        (6, b"", 6),
        (10, b"\0\x05MCPE;", 10),
        (10, b"a game", 10),
    ] {
        config.protocol_version = version;
        let mut client = Client::new(config.clone());
        client.receive_pong(pong);
        client.connect(&ConnectOptions::default());
        assert_eq!(client.requests, [(announced, 1492, 0)], "{pong:?}");
    }
}

/// Unsolicited pongs are not parsed, so forged ones take no memory.
#[test]
fn versions_in_unsolicited_pongs_are_not_remembered() {
    let mut client = Client::new(client_config());
    client.receive(&Offline::Pong { time: 0, guid: GUID, data: b"\0\x05MCPE;" });
    client.receive_incompatible(11);
    client.connect(&ConnectOptions::default());
    assert_eq!(client.requests, [(6, 1492, 0)]);
}

#[test]
fn a_connection_attempt_fails_after_its_timeout() {
    let mut client = Client::new(client_config());
    client.connect(&within(Duration::from_millis(2_750)));
    client.wait(60_000);
    assert_eq!(client.failure, Some((ConnectFailure::NoAnswer, 2_750)));
    assert_eq!(client.requests.len(), 6);

    client.connect(&within(Duration::from_secs(15)));
    client.wait(60_000);
    assert_eq!(client.failure, Some((ConnectFailure::NoAnswer, 17_750)));
    let mtus: Vec<u16> = client.requests.iter().map(|request| request.1).collect();
    let round = [1492, 1492, 1492, 1492, 1200, 1200, 1200, 1200, 576, 576, 576, 576, 576];
    assert_eq!(
        mtus,
        [&round[..], &round, &round[..4]].concat(),
        "each round must try the MTUs from the largest to the smallest"
    );

    client.connect(&within(Duration::from_secs(2)));
    client.receive_incompatible(11);
    client.wait(60_000);
    let silent = ConnectFailure::NoAnswerAfterIncompatible { server: 11 };
    assert_eq!(client.failure, Some((silent, 19_750)));
}

/// The timeout includes the connection request and its response, which follow the offline handshake.
#[test]
fn the_timeout_of_an_attempt_covers_the_whole_handshake() {
    for (options, end) in [(within(Duration::from_secs(3)), 3_000), (ConnectOptions::default(), 11_000)] {
        let mut client = Client::new(client_config());
        client.connect(&options);
        client.wait(1_000);
        client.receive(&Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1492 });
        client.receive(&Offline::Reply2 { guid: GUID, client: SERVER, mtu: 1492, answer: None });
        client.wait(60_000);
        assert_eq!(client.failure, Some((ConnectFailure::HandshakeTimeout, end)));
    }
}

/// Returns the data of a server's pong, first as on the wire and then as in the client's event.
fn pong_of(server: Config, client: Config, said: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut server, mut client) = (peer(server), peer(client));
    assert_eq!(server.set_advertisement(said), Ok(()));
    client.ping(Instant::ZERO, SERVER).expect("few pings");
    let mut buffer = [0; MAX_DATAGRAM];
    let ping = client.poll_transmit(Instant::ZERO, &mut buffer).expect("a ping").payload.to_vec();
    server.handle_datagram(Instant::ZERO, SERVER, &ping);
    let pong = server.poll_transmit(Instant::ZERO, &mut buffer).expect("a pong").payload;
    client.handle_datagram(Instant::ZERO, SERVER, pong);
    let Some(Event::Pong { data, .. }) = client.poll_event() else { panic!("expected a pong") };
    (pong[33..].to_vec(), data.to_vec())
}

fn accepting(versions: &[u8]) -> Config {
    let mut config = server_config();
    config.accepted_versions = versions.iter().copied().collect();
    config
}

#[test]
fn the_framing_of_pongs_follows_the_versions_of_the_server() {
    let (raw, prefixed) = (b"a game".to_vec(), b"\0\x06a game".to_vec());
    for (versions, expected) in
        [(&[6][..], &raw), (&[6, 10, 11], &raw), (&[11], &prefixed), (&[9, 10, 11], &prefixed), (&[], &raw)]
    {
        let (wire, events) = pong_of(accepting(versions), client_config(), b"a game");
        assert_eq!((&wire, &events), (expected, &raw), "{versions:?}");
    }
    assert_eq!(pong_of(accepting(&[11]), client_config(), b"").0, [0, 0]);
    assert_eq!(
        pong_of(accepting(&[11]), client_config(), &prefixed),
        (prefixed, raw),
        "the length must not be added twice"
    );
}

/// Minecraft Bedrock clients expect the length before the data of a pong. A server recognises their format by its
/// advertisement.
#[test]
fn a_bedrock_advertisement_is_preceded_by_its_length() {
    for said in [&b"MCPE;a game;594;1.20.13;2;20;"[..], b"MCEE;a class;594;1.20.13;2;20;"] {
        let mut prefixed = vec![0, u8::try_from(said.len()).expect("at most 255 bytes")];
        prefixed.extend(said);
        assert_eq!(pong_of(server_config(), client_config(), said), (prefixed.clone(), said.to_vec()));
        assert_eq!(
            pong_of(accepting(&[6]), client_config(), said).0,
            said,
            "a server without version 11 must not add a length"
        );
        let mut raw = server_config();
        raw.pong_framing = Some(PongFraming::Raw);
        assert_eq!(pong_of(raw, client_config(), said).0, said);
    }
    assert_eq!(pong_of(server_config(), client_config(), b"MCPE").0, b"MCPE");
}

#[test]
fn the_framing_of_pongs_can_be_forced_on_both_sides() {
    let forced = |mut config: Config, framing| {
        config.pong_framing = Some(framing);
        config
    };
    let (raw, prefixed) = (b"a game".to_vec(), b"\0\x06a game".to_vec());
    let server = forced(accepting(&[11]), PongFraming::Raw);
    assert_eq!(pong_of(server, client_config(), b"a game").0, raw);
    let server = forced(accepting(&[6]), PongFraming::Prefixed);
    let client = forced(client_config(), PongFraming::Raw);
    assert_eq!(pong_of(server.clone(), client, b"a game"), (prefixed.clone(), prefixed));
    let client = forced(client_config(), PongFraming::Prefixed);
    assert_eq!(pong_of(server, client.clone(), b"a game").1, raw);
    assert_eq!(pong_of(accepting(&[6]), client, b"a game").1, raw, "data without a length must be unchanged");
}

#[test]
fn an_advertisement_and_its_length_must_fit_into_a_pong() {
    let mut server = peer(accepting(&[11]));
    assert_eq!(server.set_advertisement(&[b'x'; 397]), Ok(()));
    assert!(server.set_advertisement(&[b'x'; 398]).is_err());
    let mut server = peer(accepting(&[11]));
    server.handle_datagram(Instant::ZERO, SERVER, &{
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        let ping = Offline::Ping { scope: PingScope::Any, time: 0, guid: Some(GUID) };
        ping.write(&mut writer).expect("the buffer is large enough");
        writer.finish().to_vec()
    });
    let mut buffer = [0; MAX_DATAGRAM];
    let pong = server.poll_transmit(Instant::ZERO, &mut buffer).expect("a pong").payload;
    assert_eq!(pong[33..], [0, 0], "an empty advertisement has the length zero");
}
