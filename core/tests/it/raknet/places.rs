//! The time at which a server frees the slot of a client, and the number of slots for one address.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    Capacity, Config, ConnectFailure, ConnectOptions, DisconnectReason, DropReason, Event, Guid, Peer,
    Refusal,
};
use rakwire::wire::MAX_DATAGRAM;

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 1);
const START: Instant = Instant::from_micros(1_000_000);

/// A server and its clients on paths without latency.
struct Lan {
    server: Peer<'static>,
    clients: Vec<Client>,
    now: Instant,
    /// The reasons for the disconnections that the server has reported.
    ended: Vec<DisconnectReason>,
}

struct Client {
    address: SocketAddr,
    peer: Peer<'static>,
    receives: bool,
    sends: bool,
    is_connected: bool,
    failure: Option<ConnectFailure>,
}

impl Lan {
    fn new(places: u16, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new([2; 32]);
        config.max_incoming = places;
        change(&mut config);
        let capacity = Capacity { connections: places.into(), blocks: 512, block_size: 512 };
        let server = Peer::with_capacity(capacity, config);
        Self { server, clients: Vec::new(), now: START, ended: Vec::new() }
    }

    /// Starts the connection attempt of a new client; returns the client's index.
    fn dial(&mut self, address: impl Into<SocketAddr>, guid: u64, password: &[u8]) -> usize {
        let mut config = Config::new([1; 32]);
        config.guid = Guid(guid);
        let capacity = Capacity { connections: 1, blocks: 64, block_size: 512 };
        let mut peer = Peer::with_capacity(capacity, config);
        let options = ConnectOptions { password, ..ConnectOptions::default() };
        peer.connect_with(self.now, SERVER.into(), &options).expect("a free slot");
        self.clients.push(Client {
            address: address.into(),
            peer,
            receives: true,
            sends: true,
            is_connected: false,
            failure: None,
        });
        self.clients.len() - 1
    }

    /// Delivers all pending datagrams.
    fn deliver(&mut self) {
        let mut buffer = [0; MAX_DATAGRAM];
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for client in &mut self.clients {
                client.peer.handle_timeout(self.now);
                while let Some(transmit) = client.peer.poll_transmit(self.now, &mut buffer) {
                    is_moving = true;
                    if client.sends {
                        self.server.handle_datagram(self.now, client.address, transmit.payload);
                    }
                }
                while let Some(event) = client.peer.poll_event() {
                    if let Event::ConnectFailed { reason, .. } = event {
                        client.failure = Some(reason);
                    } else if matches!(event, Event::Connected { .. } | Event::Disconnected { .. }) {
                        client.is_connected = matches!(event, Event::Connected { .. });
                    }
                }
            }
            self.server.handle_timeout(self.now);
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut buffer) {
                is_moving = true;
                let (to, clients) = (transmit.to, &mut self.clients);
                for client in clients.iter_mut().filter(|client| client.address == to && client.receives) {
                    client.peer.handle_datagram(self.now, SERVER.into(), transmit.payload);
                }
            }
            while let Some(event) = self.server.poll_event() {
                if let Event::Disconnected { reason, .. } = event {
                    self.ended.push(reason);
                }
            }
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.deliver();
            self.now = self.now + Duration::from_millis(5);
        }
        self.deliver();
    }

    /// Connects a new client; returns its index, or its failure.
    fn enter(&mut self, address: impl Into<SocketAddr>, guid: u64) -> Result<usize, Option<ConnectFailure>> {
        let number = self.dial(address, guid, b"");
        self.run_for(Duration::from_millis(200));
        let client = &self.clients[number];
        if client.is_connected { Ok(number) } else { Err(client.failure) }
    }

    fn vanish(&mut self, number: usize) {
        (self.clients[number].receives, self.clients[number].sends) = (false, false);
    }
}

const NO_PLACE: Result<usize, Option<ConnectFailure>> =
    Err(Some(ConnectFailure::Refused(Refusal::NoFreeIncomingConnections)));

#[test]
fn a_slot_is_free_once_its_player_disconnects() {
    let mut lan = Lan::new(1, |_| {});
    let first = lan.enter(([10, 0, 0, 2], 1), 1).expect("a free slot");
    assert_eq!(lan.enter(([10, 0, 0, 3], 1), 2), NO_PLACE);
    let id = lan.clients[first].peer.connections().next().expect("a connection");
    lan.clients[first].peer.disconnect(lan.now, id);
    lan.deliver();
    assert_eq!(lan.ended, [DisconnectReason::Remote]);
    assert_eq!(lan.enter(([10, 0, 0, 4], 1), 3), Ok(2));
}

#[test]
fn a_slot_is_free_once_the_server_disconnects_its_player() {
    let mut lan = Lan::new(1, |_| {});
    let first = lan.enter(([10, 0, 0, 2], 1), 1).expect("a free slot");
    let id = lan.server.connections().next().expect("a connection");
    lan.server.disconnect(lan.now, id);
    lan.deliver();
    assert!(!lan.clients[first].is_connected);
    assert_eq!(lan.enter(([10, 0, 0, 4], 1), 3), Ok(1));
}

#[test]
fn a_vanished_client_keeps_its_address_and_guid_until_the_idle_timeout() {
    for ping_interval in [None, Some(Duration::from_secs(5)), Some(Duration::from_secs(3))] {
        let mut lan = Lan::new(4, |config| config.ping_interval = ping_interval);
        let first = lan.enter(([10, 0, 0, 2], 1), 1).expect("a free slot");
        lan.run_for(Duration::from_millis(61_234));
        assert!(lan.clients[first].is_connected && lan.ended.is_empty(), "an idle connection must stay open");
        // The last datagram from this client.
        let id = lan.clients[first].peer.connections().next().expect("a connection");
        let sent = lan.clients[first].peer.send(lan.now, id, &[0x90], rakwire::raknet::Delivery::RELIABLE);
        assert!(sent.is_ok());
        lan.deliver();
        lan.vanish(first);
        let vanished = lan.now;
        lan.run_for(Duration::from_millis(9_990));
        assert_eq!(lan.ended, [], "{ping_interval:?}");
        while lan.ended.is_empty() {
            lan.run_for(Duration::from_millis(5));
        }
        assert_eq!(lan.ended, [DisconnectReason::Lost]);
        assert!(lan.now.saturating_since(vanished) <= Duration::from_millis(10_010), "{ping_interval:?}");
        assert_eq!(lan.enter(([10, 0, 0, 2], 1), 1), Ok(1), "{ping_interval:?}");
    }
}

#[test]
fn a_one_second_outage_does_not_close_an_idle_connection() {
    let mut lan = Lan::new(4, |_| {});
    let first = lan.enter(([10, 0, 0, 2], 1), 1).expect("a free slot");
    for round in 0..200 {
        // An outage of one second in either direction, at every offset between two pings.
        lan.run_for(Duration::from_millis(9_000 + round * 50));
        (lan.clients[first].receives, lan.clients[first].sends) = (round % 2 == 0, round % 2 == 1);
        lan.run_for(Duration::from_secs(1));
        (lan.clients[first].receives, lan.clients[first].sends) = (true, true);
    }
    assert!(lan.clients[first].is_connected && lan.ended.is_empty());
}

#[test]
fn an_unacknowledged_refusal_frees_its_slot_immediately() {
    // The slot is free for another client, and for the refused client if it retries with the right password.
    for (address, guid) in [([10, 0, 0, 3], 2), ([10, 0, 0, 2], 1)] {
        let mut lan = Lan::new(1, |_| {});
        lan.server.set_password(b"right").expect("a short password");
        let first = lan.dial(([10, 0, 0, 2], 1), 1, b"wrong");
        // The client sends its connection request but receives no data datagrams, so the refusal is lost.
        let mut buffer = [0; MAX_DATAGRAM];
        for _ in 0..4 {
            let client = &mut lan.clients[first];
            let Some(transmit) = client.peer.poll_transmit(lan.now, &mut buffer) else { break };
            lan.server.handle_datagram(lan.now, client.address, transmit.payload);
            let mut answers = Vec::new();
            let mut answer = [0; MAX_DATAGRAM];
            while let Some(transmit) = lan.server.poll_transmit(lan.now, &mut answer) {
                answers.push(transmit.payload.to_vec());
            }
            for answer in answers.iter().filter(|answer| answer[0] & 0x80 == 0) {
                client.peer.handle_datagram(lan.now, SERVER.into(), answer);
            }
        }
        lan.vanish(first);
        let next = lan.dial((address, 1), guid, b"right");
        lan.run_for(Duration::from_millis(200));
        assert_eq!((lan.clients[next].is_connected, lan.clients[next].failure), (true, None), "{address:?}");
    }
}

#[test]
fn one_address_gets_at_most_three_quarters_of_the_slots() {
    let mut lan = Lan::new(16, |_| {});
    for number in 0..12 {
        assert!(lan.enter(([198, 51, 100, 1], 1_000 + number), number.into()).is_ok(), "{number}");
    }
    assert_eq!(lan.enter(([198, 51, 100, 1], 2_000), 20), NO_PLACE);
    assert_eq!(lan.server.stats().dropped(DropReason::AddressLimit), 1);
    // Other addresses of that network get two more slots. The last two slots are reserved for other networks.
    assert!(lan.enter(([198, 51, 100, 2], 1_000), 21).is_ok());
    assert!(lan.enter(([198, 51, 100, 2], 1_001), 25).is_ok());
    assert_eq!(lan.enter(([198, 51, 100, 3], 1_000), 22), NO_PLACE);
    assert!(lan.enter(([203, 0, 113, 1], 1_000), 23).is_ok());
    // A closed connection does not count.
    let id = lan.clients[0].peer.connections().next().expect("a connection");
    lan.clients[0].peer.disconnect(lan.now, id);
    lan.deliver();
    assert!(lan.enter(([198, 51, 100, 1], 3_000), 24).is_ok());
}

/// Players in one household may share an address.
#[test]
fn one_address_may_fill_a_small_server() {
    let mut lan = Lan::new(8, |_| {});
    for number in 0..8 {
        assert!(lan.enter(([198, 51, 100, 1], 1_000 + number), number.into()).is_ok(), "{number}");
    }
}

#[test]
fn an_ipv6_site_is_limited_regardless_of_its_addresses() {
    let mut lan = Lan::new(8, |config| {
        (config.max_per_address, config.max_per_network) = (Some(2), Some(3));
    });
    let at = |text: &str| SocketAddr::new(text.parse().expect("a literal address"), 1_000);
    assert!(lan.enter(at("2001:db8:0:1::1"), 1).is_ok());
    assert!(lan.enter(at("2001:db8:0:1::2"), 2).is_ok());
    assert_eq!(lan.enter(at("2001:db8:0:1::3"), 3), NO_PLACE);
    assert!(lan.enter(at("2001:db8:0:2::1"), 4).is_ok());
    assert_eq!(lan.enter(at("2001:db8:0:3::1"), 5), NO_PLACE);
    assert!(lan.enter(at("2001:db8:1::1"), 6).is_ok());
}

/// A relay in the operator's private network sends the datagrams of all its clients from one address.
#[test]
fn a_private_address_may_use_every_slot() {
    let mut lan = Lan::new(8, |_| {});
    for number in 0..8 {
        assert!(lan.enter(([10, 0, 0, 7], 1_000 + number), number.into()).is_ok(), "{number}");
    }
}
