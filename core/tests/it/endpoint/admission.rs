//! Admission limits that apply across several peers of one server, which share their admission state.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use rakwire::Instant;
use rakwire::endpoint::{Admission, Capacity, Client, Decision, Event, Peer, Protocol, SharedAdmission};
use rakwire::game_protocol::{self, GameProtocol};
use rakwire::raknet::{self, ConnectFailure, CookiePolicy, Guid, RakNet, Refusal};

#[derive(Clone, Debug, Default)]
struct Locked(Arc<Mutex<Admission>>);

impl SharedAdmission for Locked {
    fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
        decide(&mut self.0.lock().expect("an unpoisoned lock"));
    }
}

impl Locked {
    fn incoming(&self) -> usize {
        self.0.lock().expect("an unpoisoned lock").incoming()
    }
}

const CAPACITY: Capacity = Capacity { connections: 8, blocks: 256, block_size: 512 };
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 1);

fn servers<P: Protocol>(config: &P::Config) -> ([Peer<'static, P>; 2], Locked) {
    let admission = Locked::default();
    let servers = [0, 1].map(|_| {
        let mut server = Peer::<P>::with_capacity(CAPACITY, config.clone());
        server.share_admission(Box::new(admission.clone()));
        server
    });
    (servers, admission)
}

fn raknet_config() -> raknet::Config {
    let mut config = raknet::Config::new([2; 32]);
    config.max_incoming = 3;
    config
}

fn client_of<P: Protocol>(config: P::Config, now: Instant) -> Peer<'static, P> {
    let mut client = Peer::with_capacity(Capacity { connections: 1, ..CAPACITY }, config);
    client.connect(now, SERVER.into()).expect("a free slot");
    client
}

fn raknet_client(guid: u64, now: Instant) -> Peer<'static, RakNet> {
    let mut config = raknet::Config::new([1; 32]);
    config.guid = Guid(guid);
    client_of(config, now)
}

fn game_client(number: u8, now: Instant) -> Peer<'static, GameProtocol> {
    client_of(game_protocol::Config::new([number; 32]), now)
}

/// The last connection event of a client.
#[derive(Debug, PartialEq, Eq)]
enum LastEvent<P: Protocol> {
    Connected,
    Failed(P::ConnectFailure),
    Ended,
    Nothing,
}

/// Exchanges datagrams between a client at `from` and a server for half a second.
fn talk<P: Protocol>(
    client: &mut Peer<'_, P>,
    server: &mut Peer<'_, P>,
    from: SocketAddr,
    now: &mut Instant,
) -> LastEvent<P> {
    let mut last = LastEvent::Nothing;
    let mut buffer = [0; 2_048];
    for _ in 0..50 {
        *now = *now + Duration::from_millis(10);
        client.handle_timeout(*now);
        server.handle_timeout(*now);
        while let Some(transmit) = client.poll_transmit(*now, &mut buffer) {
            server.handle_datagram(*now, from, transmit.payload);
        }
        while let Some(transmit) = server.poll_transmit(*now, &mut buffer) {
            if transmit.to == from {
                client.handle_datagram(*now, SERVER.into(), transmit.payload);
            }
        }
        while server.poll_event().is_some() {}
        while let Some(event) = client.poll_event() {
            match event {
                Event::Connected { .. } => last = LastEvent::Connected,
                Event::ConnectFailed { reason, .. } => last = LastEvent::Failed(reason),
                Event::Disconnected { .. } => last = LastEvent::Ended,
                Event::Message { .. }
                | Event::Receipt { .. }
                | Event::Progress { .. }
                | Event::MtuChanged { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => {}
            }
        }
    }
    last
}

fn address(host: u8) -> SocketAddr {
    ([10, 0, host, 1], 4_000).into()
}

fn refused(why: Refusal) -> LastEvent<RakNet> {
    LastEvent::Failed(ConnectFailure::Refused(why))
}

#[test]
fn a_guid_is_admitted_once_across_peers_until_it_disconnects() {
    let ([mut one, mut other], admission) = servers::<RakNet>(&raknet_config());
    let mut now = Instant::from_micros(1_000_000);
    let mut first = raknet_client(7, now);
    assert_eq!(talk(&mut first, &mut one, address(1), &mut now), LastEvent::Connected);
    let mut second = raknet_client(7, now);
    let last = talk(&mut second, &mut other, address(2), &mut now);
    assert_eq!(last, refused(Refusal::AlreadyConnected));
    let id = one.connection_of(Guid(7)).expect("the first connection");
    one.disconnect(now, id);
    assert_eq!(talk(&mut first, &mut one, address(1), &mut now), LastEvent::Ended);
    assert_eq!(admission.incoming(), 0);
    let mut third = raknet_client(7, now);
    assert_eq!(talk(&mut third, &mut other, address(2), &mut now), LastEvent::Connected);
    assert_eq!(admission.incoming(), 1);
    drop(other);
    assert_eq!(admission.incoming(), 0, "a dropped peer must release its incoming slots");
}

#[test]
fn max_incoming_applies_across_raknet_peers() {
    let (mut servers, admission) = servers::<RakNet>(&raknet_config());
    let mut now = Instant::from_micros(1_000_000);
    for number in 0..6_u8 {
        let mut client = raknet_client(u64::from(number) + 1, now);
        let server = &mut servers[usize::from(number % 2)];
        let expected =
            if number < 3 { LastEvent::Connected } else { refused(Refusal::NoFreeIncomingConnections) };
        assert_eq!(talk(&mut client, server, address(number), &mut now), expected, "client {number}");
    }
    assert_eq!(admission.incoming(), 3);
}

#[test]
fn max_incoming_applies_across_game_protocol_peers() {
    let mut config = game_protocol::Config::new([2; 32]);
    config.max_incoming = 3;
    let (mut servers, admission) = servers::<GameProtocol>(&config);
    let mut now = Instant::from_micros(1_000_000);
    let mut clients = Vec::new();
    for number in 0..6_u8 {
        let mut client = game_client(number + 1, now);
        let server = &mut servers[usize::from(number % 2)];
        let last = talk(&mut client, server, address(number), &mut now);
        // A client of the Game Protocol reports `Connected` when it answers the challenge. If the server then
        // refuses the client, it sends END.
        let is_admitted = number < 3;
        assert_eq!(last == LastEvent::Connected, is_admitted, "client {number}: {last:?}");
        clients.push(client);
    }
    assert_eq!(admission.incoming(), 3);
    let id = servers[0].connection_at(address(0)).expect("the first connection");
    servers[0].disconnect(now, id);
    talk(&mut clients[0], &mut servers[0], address(0), &mut now);
    assert_eq!(admission.incoming(), 2);
    let mut late = game_client(9, now);
    assert_eq!(talk(&mut late, &mut servers[1], address(9), &mut now), LastEvent::Connected);
}

#[test]
fn the_reconnect_interval_of_an_address_applies_across_peers() {
    let mut config = raknet_config();
    config.connection_interval = Some(Duration::from_secs(5));
    let ([mut one, mut other], _) = servers::<RakNet>(&config);
    let mut now = Instant::from_micros(1_000_000);
    let mut first = raknet_client(1, now);
    assert_eq!(talk(&mut first, &mut one, address(1), &mut now), LastEvent::Connected);
    let again = SocketAddr::new(address(1).ip(), 4_001);
    let mut second = raknet_client(2, now);
    let last = talk(&mut second, &mut other, again, &mut now);
    assert_eq!(last, refused(Refusal::RecentlyConnected));
    now = now + Duration::from_secs(5);
    let mut third = raknet_client(3, now);
    assert_eq!(talk(&mut third, &mut other, again, &mut now), LastEvent::Connected);
}

/// Two peers without cookies together accept two half-open connections from one network.
#[test]
fn the_half_open_limit_of_a_network_applies_across_peers() {
    let mut config = raknet_config();
    (config.max_incoming, config.max_half_open_per_network) = (8, 2);
    config.cookies = CookiePolicy::Off;
    let (mut servers, admission) = servers::<RakNet>(&config);
    let mut now = Instant::from_micros(1_000_000);
    let network = |port| SocketAddr::from(([10, 0, 1, 1], port));
    let mut half_open = Vec::new();
    for number in 0..4_u16 {
        let mut client = raknet_client(u64::from(number) + 1, now);
        open_half(&mut client, &mut servers[usize::from(number % 2)], network(number + 1), now);
        half_open.push(client);
    }
    assert_eq!(admission.incoming(), 2);
    // A client that continues its handshake is no longer half-open.
    let last = talk(&mut half_open[0], &mut servers[0], network(1), &mut now);
    assert_eq!(last, LastEvent::Connected);
    let mut late = raknet_client(9, now);
    assert_eq!(talk(&mut late, &mut servers[1], network(9), &mut now), LastEvent::Connected);
}

#[test]
fn cookies_are_required_after_three_unvalidated_clients_across_peers() {
    let mut config = raknet_config();
    config.max_incoming = 8;
    config.cookies = CookiePolicy::UnderLoad { unvalidated: 3 };
    let (mut servers, admission) = servers::<RakNet>(&config);
    let now = Instant::from_micros(1_000_000);
    let replies: Vec<_> = (0..5_u8)
        .map(|number| {
            let mut client = raknet_client(u64::from(number) + 1, now);
            open_half(&mut client, &mut servers[usize::from(number % 2)], address(number), now)
        })
        .collect();
    // From the fourth client on, reply 1 contains a cookie, which adds four bytes.
    assert_eq!(replies, [[28, 35], [28, 35], [28, 35], [32, 35], [32, 35]]);
    assert_eq!(admission.incoming(), 5);
}

/// Half-open connections at one peer, possibly from forged addresses, do not prevent a client with a cookie from
/// connecting at another peer.
#[test]
fn a_client_with_a_cookie_connects_despite_forged_clients_at_other_peers() {
    for limits in [(2, None, None), (8, Some(2), None), (8, None, Some(Duration::from_secs(60)))] {
        let mut config = raknet_config();
        config.max_incoming = 8;
        config.cookies = CookiePolicy::UnderLoad { unvalidated: 4 };
        (config.max_half_open_per_network, config.max_per_address, config.connection_interval) = limits;
        let ([mut one, mut other], admission) = servers::<RakNet>(&config);
        let mut now = Instant::from_micros(1_000_000);
        let from = |port| SocketAddr::from(([198, 51, 100, 1], port));
        for number in 1..=2 {
            let mut client = raknet_client(number, now);
            open_half(&mut client, &mut one, from(u16::try_from(number).expect("a small number")), now);
        }
        let forged = if limits.2.is_some() { 1 } else { 2 };
        assert_eq!(admission.incoming(), forged);
        let mut player = raknet_client(9, now);
        let last = talk(&mut player, &mut other, from(9), &mut now);
        assert_eq!((last, admission.incoming()), (LastEvent::Connected, forged + 1), "{limits:?}");
    }
}

/// A connection counts towards the limit of all peers until its address is validated, even if it is open.
#[test]
fn unvalidated_connections_make_all_peers_require_cookies() {
    let mut config = raknet_config();
    config.max_incoming = 8;
    config.cookies = CookiePolicy::UnderLoad { unvalidated: 1 };
    let ([mut one, mut other], _) = servers::<RakNet>(&config);
    let mut now = Instant::from_micros(1_000_000);
    let mut first = raknet_client(1, now);
    assert_eq!(open_half(&mut first, &mut one, address(1), now), [28, 35]);
    let mut second = raknet_client(2, now);
    assert_eq!(open_half(&mut second, &mut other, address(2), now), [32, 35]);
    // The first client answers a ping. This validates its address, so it no longer counts towards the limit.
    assert_eq!(talk(&mut first, &mut one, address(1), &mut now), LastEvent::Connected);
    let mut third = raknet_client(3, now);
    assert_eq!(open_half(&mut third, &mut other, address(3), now), [28, 35]);
    // The third client has not validated its address and still counts.
    now = now + Duration::from_millis(9_900);
    let mut fourth = raknet_client(4, now);
    assert_eq!(open_half(&mut fourth, &mut one, address(4), now), [32, 35]);
}

/// Delivers a client's requests 1 and 2 to a server; returns the lengths of the replies.
fn open_half(
    client: &mut Peer<'_, RakNet>,
    server: &mut Peer<'_, RakNet>,
    from: SocketAddr,
    now: Instant,
) -> Vec<usize> {
    let mut buffer = [0; 2_048];
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let request = client.poll_transmit(now, &mut buffer).expect("a request");
        server.handle_datagram(now, from, request.payload);
        if let Some(reply) = server.poll_transmit(now, &mut buffer) {
            client.handle_datagram(now, SERVER.into(), reply.payload);
            lengths.push(reply.payload.len());
        }
    }
    lengths
}

#[test]
fn pongs_are_rate_limited_across_peers() {
    let mut config = raknet_config();
    config.pongs_per_network = 5;
    let (mut servers, _) = servers::<RakNet>(&config);
    let now = Instant::from_micros(1_000_000);
    let mut pongs = 0;
    for number in 0..20_u16 {
        let mut client = Peer::<RakNet>::with_capacity(CAPACITY, raknet::Config::new([1; 32]));
        client.ping(now, SERVER.into()).expect("few pings");
        let mut buffer = [0; 2_048];
        let ping = client.poll_transmit(now, &mut buffer).expect("a ping").payload.to_vec();
        let server = &mut servers[usize::from(number % 2)];
        server.handle_datagram(now, ([10, 0, 1, 1], 4_000 + number).into(), &ping);
        pongs += usize::from(server.poll_transmit(now, &mut buffer).is_some());
    }
    assert_eq!(pongs, 5);
}

#[test]
fn challenges_are_rate_limited_across_peers() {
    let mut config = game_protocol::Config::new([2; 32]);
    (config.max_incoming, config.challenges_per_network) = (3, 5);
    let (mut servers, _) = servers::<GameProtocol>(&config);
    let now = Instant::from_micros(1_000_000);
    let mut challenges = 0;
    for number in 0..20_u16 {
        let server = &mut servers[usize::from(number % 2)];
        server.handle_datagram(now, ([10, 0, 1, 1], 4_000 + number).into(), &[0x40, 1, 2, 3]);
        let mut buffer = [0; 2_048];
        challenges += usize::from(server.poll_transmit(now, &mut buffer).is_some());
    }
    assert_eq!(challenges, 5);
}

/// Shared admission with a decision that the test sets.
#[derive(Clone, Debug, Default)]
struct Deciding {
    admission: Locked,
    decision: Arc<Mutex<Decision>>,
    asked: Arc<Mutex<Vec<Client>>>,
}

impl SharedAdmission for Deciding {
    fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
        self.admission.with(decide);
    }

    fn decide(&self, client: &Client) -> Decision {
        self.asked.lock().expect("an unpoisoned lock").push(*client);
        *self.decision.lock().expect("an unpoisoned lock")
    }
}

/// Checks the event that a client receives for each decision, and that a refused client leaves no state.
fn the_application_decides<P: Protocol>(
    config: P::Config,
    client: impl Fn(u64, Instant) -> Peer<'static, P>,
    guid: Option<u64>,
    refused: &LastEvent<P>,
    ignored: &LastEvent<P>,
) where
    LastEvent<P>: PartialEq + core::fmt::Debug,
{
    let mut now = Instant::ZERO;
    let deciding = Deciding::default();
    let mut server = Peer::<P>::with_capacity(CAPACITY, config);
    server.share_admission(Box::new(deciding.clone()));
    for (decision, last) in
        [(Decision::Refuse, refused), (Decision::Ignore, ignored), (Decision::Accept, &LastEvent::Connected)]
    {
        *deciding.decision.lock().expect("an unpoisoned lock") = decision;
        let mut client = client(9, now);
        assert_eq!(&talk(&mut client, &mut server, address(1), &mut now), last, "{decision:?}");
        let asked = std::mem::take(&mut *deciding.asked.lock().expect("an unpoisoned lock"));
        assert!(asked.iter().all(|asked| *asked == Client::new(address(1), guid)), "{asked:?}");
        assert!(!asked.is_empty());
        let incoming = usize::from(decision == Decision::Accept);
        assert_eq!((deciding.admission.incoming(), server.connections().count()), (incoming, incoming));
    }
}

#[test]
fn the_application_admits_or_refuses_raknet_clients() {
    let full = refused(Refusal::NoFreeIncomingConnections);
    the_application_decides(raknet_config(), raknet_client, Some(9), &full, &LastEvent::Nothing);
}

/// A client of the Game Protocol reports `Connected` when it receives the challenge, before the server decides.
#[test]
fn the_application_admits_or_refuses_game_protocol_clients() {
    let mut config = game_protocol::Config::new([2; 32]);
    config.max_incoming = 3;
    let client = |number: u64, now| game_client(u8::try_from(number).expect("a small number"), now);
    the_application_decides(config, client, None, &LastEvent::Ended, &LastEvent::Connected);
}

#[test]
fn the_connection_limit_of_an_address_applies_across_peers() {
    let mut config = raknet_config();
    config.max_incoming = 8;
    config.max_per_address = Some(2);
    let (mut servers, admission) = servers::<RakNet>(&config);
    let mut now = Instant::from_micros(1_000_000);
    let mut clients = Vec::new();
    for number in 0..4_u8 {
        let from = ([198, 51, 100, 1], 4_000 + u16::from(number)).into();
        let mut client = raknet_client(u64::from(number) + 1, now);
        let last = talk(&mut client, &mut servers[usize::from(number % 2)], from, &mut now);
        let expected =
            if number < 2 { LastEvent::Connected } else { refused(Refusal::NoFreeIncomingConnections) };
        assert_eq!(last, expected, "client {number}");
        clients.push(client);
    }
    assert_eq!(admission.incoming(), 2);
    let id = servers[0].connection_of(Guid(1)).expect("the first connection");
    servers[0].disconnect(now, id);
    let from = ([198, 51, 100, 1], 4_000).into();
    assert_eq!(talk(&mut clients[0], &mut servers[0], from, &mut now), LastEvent::Ended);
    let mut next = raknet_client(9, now);
    let from = ([198, 51, 100, 1], 5_000).into();
    assert_eq!(talk(&mut next, &mut servers[1], from, &mut now), LastEvent::Connected);
}
