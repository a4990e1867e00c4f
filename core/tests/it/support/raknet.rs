//! Two simulated peers that record their events.

use core::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::RefuseReason;
use rakwire::raknet::{
    Capacity, Config, ConnectFailure, ConnectionId, CookiePolicy, Delivery, DisconnectReason, Event, Outcome,
    Peer, Progress, Receipt,
};
use rakwire::sim::{Conditions, Pair};

/// An event for the application, with its data copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedEvent {
    Connected(ConnectionId),
    Failed(ConnectionId, ConnectFailure),
    Disconnected(ConnectionId, DisconnectReason),
    Message(ConnectionId, Delivery, Vec<u8>),
    Pong(Duration, Vec<u8>),
    Receipt(Receipt, Outcome),
    Progress(Progress),
}

pub(crate) fn client_config() -> Config {
    Config::new([1; 32])
}

pub(crate) fn server_config() -> Config {
    let mut config = Config::new([2; 32]);
    config.max_incoming = 8;
    config.cookies = CookiePolicy::Required;
    config
}

pub(crate) fn peer(config: Config) -> Peer<'static> {
    let capacity = Capacity { connections: 8, blocks: 16_384, block_size: 512 };
    Peer::with_capacity(capacity, config)
}

pub(crate) struct Net {
    pub(crate) pair: Pair<Peer<'static>, Peer<'static>>,
    /// The events of the client, `a`.
    pub(crate) client: Vec<OwnedEvent>,
    /// The events of the server, `b`.
    pub(crate) server: Vec<OwnedEvent>,
    /// The reasons for which the server refused clients.
    pub(crate) refused: Vec<RefuseReason>,
}

impl Net {
    pub(crate) fn new(conditions: Conditions, seed: u64) -> Self {
        Self::with(peer(client_config()), peer(server_config()), conditions, seed)
    }

    pub(crate) fn with(a: Peer<'static>, b: Peer<'static>, conditions: Conditions, seed: u64) -> Self {
        Self {
            pair: Pair::new(a, b, conditions, seed),
            client: Vec::new(),
            server: Vec::new(),
            refused: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.pair.now
    }

    pub(crate) fn poll(&mut self) {
        tell(&mut self.pair.a, &mut self.client, &mut Vec::new());
        tell(&mut self.pair.b, &mut self.server, &mut self.refused);
    }

    /// Runs for at most `time` until `done` returns true; returns false if it never did.
    pub(crate) fn run_until(&mut self, time: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now() + time;
        loop {
            self.poll();
            if done(self) {
                return true;
            }
            if self.now() > end {
                return false;
            }
            if !self.pair.step() {
                self.pair.now = end;
                return false;
            }
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Opens a connection; returns its ids at both peers.
    pub(crate) fn connect(&mut self) -> (ConnectionId, ConnectionId) {
        let to = self.pair.b_address;
        let id = self.pair.a.connect(self.now(), to).expect("a free slot");
        let connected = self.run_until(Duration::from_secs(60), |net| {
            net.client.contains(&OwnedEvent::Connected(id)) && connected(&net.server).is_some()
        });
        assert!(connected, "client: {:?}, server: {:?}", self.client, self.server);
        let server = connected_id(&self.server);
        self.client.clear();
        self.server.clear();
        (id, server)
    }
}

fn connected(events: &[OwnedEvent]) -> Option<ConnectionId> {
    events.iter().find_map(|event| if let OwnedEvent::Connected(id) = event { Some(*id) } else { None })
}

fn connected_id(events: &[OwnedEvent]) -> ConnectionId {
    connected(events).expect("an open connection")
}

fn tell(peer: &mut Peer<'_>, events: &mut Vec<OwnedEvent>, refused: &mut Vec<RefuseReason>) {
    while let Some(event) = peer.poll_event() {
        events.push(match event {
            Event::Connected { id, .. } => OwnedEvent::Connected(id),
            Event::ConnectFailed { id, reason, .. } => OwnedEvent::Failed(id, reason),
            Event::Refused { reason, .. } => {
                refused.push(reason);
                continue;
            }
            Event::Disconnected { id, reason, .. } => OwnedEvent::Disconnected(id, reason),
            Event::Message { id, delivery, message } => OwnedEvent::Message(id, delivery, message.to_vec()),
            Event::Pong { latency, data, .. } => OwnedEvent::Pong(latency, data.to_vec()),
            Event::Receipt { receipt, outcome, .. } => OwnedEvent::Receipt(receipt, outcome),
            Event::Progress { progress, .. } => OwnedEvent::Progress(progress),
            Event::OutOfBand { .. } | Event::Advertisement { .. } | _ => panic!("{event:?}"),
        });
    }
}

/// Returns the messages in a list of events.
pub(crate) fn messages(events: &[OwnedEvent]) -> Vec<&[u8]> {
    events
        .iter()
        .filter_map(
            |event| if let OwnedEvent::Message(_, _, bytes) = event { Some(&bytes[..]) } else { None },
        )
        .collect()
}
