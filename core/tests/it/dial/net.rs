//! Two peers that connect to each other. The test chooses when each datagram is delivered.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{Capacity, ConnectError, ConnectionId, ConnectionState, Event, Peer, Protocol};
use rakwire::game_protocol::{self, GameProtocol, Redial};
use rakwire::raknet::{self, RakNet};

/// Long enough for both peers to retransmit all lost datagrams.
const REPETITION: Duration = Duration::from_secs(5);
/// Longer than any handshake timeout when added to [`REPETITION`].
const REST_OF_HANDSHAKE: Duration = Duration::from_secs(13);

/// One of the two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    A,
    B,
}
pub(super) use Side::{A, B};

pub(super) const BOTH: [Side; 2] = [A, B];

impl Side {
    pub(super) const fn other(self) -> Self {
        match self {
            A => B,
            B => A,
        }
    }

    fn address(self) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, self as u8 + 1], 4_000))
    }
}

/// A protocol under test, with its configurations and a message.
pub(super) trait Dialled: Protocol {
    /// A valid application message.
    const MESSAGE: &[u8];

    /// Returns the configuration of a peer that accepts connections and retransmits its requests.
    fn listening(entropy: [u8; 32]) -> Self::Config;

    /// Returns [`listening`](Self::listening) with a handshake timeout long enough for a path that loses datagrams.
    fn patient(entropy: [u8; 32]) -> Self::Config {
        Self::listening(entropy)
    }
}

impl Dialled for RakNet {
    const MESSAGE: &[u8] = b"\xFEhello";

    fn listening(entropy: [u8; 32]) -> raknet::Config {
        let mut config = raknet::Config::new(entropy);
        config.max_incoming = 2;
        config
    }

    fn patient(entropy: [u8; 32]) -> raknet::Config {
        let mut config = Self::listening(entropy);
        config.handshake_timeout = Duration::from_secs(60);
        config
    }
}

impl Dialled for GameProtocol {
    const MESSAGE: &[u8] = b"hello";

    fn listening(entropy: [u8; 32]) -> game_protocol::Config {
        let mut config = game_protocol::Config::new(entropy);
        config.max_incoming = 2;
        config.redial = Redial::SamePort(Duration::from_millis(300));
        config
    }
}

/// A datagram in flight.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) to: Side,
    bytes: Vec<u8>,
}

/// An event for the application, with its data copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnedEvent {
    Connected(ConnectionId),
    Failed(ConnectionId),
    Disconnected(ConnectionId),
    Message,
}

pub(super) struct Net<P: Dialled> {
    pub(super) now: Instant,
    peers: [Peer<'static, P>; 2],
    pub(super) under_way: Vec<Datagram>,
    pub(super) events: [Vec<OwnedEvent>; 2],
}

impl<P: Dialled> Net<P> {
    pub(super) fn new() -> Self {
        Self::with([P::listening([1; 32]), P::listening([2; 32])])
    }

    pub(super) fn with(configs: [P::Config; 2]) -> Self {
        let capacity = Capacity { connections: 2, blocks: 64, block_size: 128 };
        Self {
            now: Instant::from_micros(1_000_000),
            peers: configs.map(|config| Peer::with_capacity(capacity, config)),
            under_way: Vec::new(),
            events: [Vec::new(), Vec::new()],
        }
    }

    pub(super) fn peer(&mut self, side: Side) -> &mut Peer<'static, P> {
        &mut self.peers[side as usize]
    }

    pub(super) fn events_of(&self, side: Side) -> &[OwnedEvent] {
        &self.events[side as usize]
    }

    /// Makes one peer connect to the other.
    ///
    /// `connect` may fail only with `AlreadyConnected`, after the peer has reported the connection as open.
    pub(super) fn dial(&mut self, side: Side) {
        let now = self.now;
        match self.peer(side).connect(now, side.other().address()) {
            Ok(_) => {}
            Err(ConnectError::AlreadyConnected) => {
                assert!(
                    matches!(self.events_of(side), [OwnedEvent::Connected(_)]),
                    "{side:?} {:?}",
                    self.events_of(side)
                );
            }
            Err(error) => panic!("{side:?}: {error}"),
        }
        self.settle();
    }

    /// Polls the datagrams and events of both peers.
    fn settle(&mut self) {
        for side in BOTH {
            let (now, peer) = (self.now, &mut self.peers[side as usize]);
            let mut buffer = [0; 2_048];
            while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
                assert_eq!(transmit.to, side.other().address());
                self.under_way.push(Datagram { to: side.other(), bytes: transmit.payload.to_vec() });
            }
            while let Some(event) = peer.poll_event() {
                // The refused client's own attempt fails as well, which is checked at that client.
                if matches!(event, Event::Refused { .. }) {
                    continue;
                }
                self.events[side as usize].push(match event {
                    Event::Connected { id, .. } => OwnedEvent::Connected(id),
                    Event::ConnectFailed { id, .. } => OwnedEvent::Failed(id),
                    Event::Disconnected { id, .. } => OwnedEvent::Disconnected(id),
                    Event::Message { .. } => OwnedEvent::Message,
                    other @ (Event::Receipt { .. } | _) => panic!("{other:?}"),
                });
            }
        }
    }

    /// Delivers the datagram in flight with the index `at`.
    pub(super) fn deliver(&mut self, at: usize) {
        let datagram = self.under_way.remove(at);
        self.deliver_copy(&datagram);
    }

    pub(super) fn deliver_copy(&mut self, datagram: &Datagram) {
        let (now, from) = (self.now, datagram.to.other().address());
        self.peer(datagram.to).handle_datagram(now, from, &datagram.bytes);
        self.settle();
    }

    /// Returns the earliest deadline of the two peers.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.peers.iter().filter_map(Peer::poll_timeout).min()
    }

    /// Advances the clock to `at`.
    pub(super) fn advance(&mut self, at: Instant) {
        self.now = self.now.max(at);
        for side in BOTH {
            let now = self.now;
            if self.peer(side).poll_timeout().is_some_and(|due| due <= now) {
                self.peer(side).handle_timeout(now);
            }
        }
        self.settle();
    }

    /// Delivers all datagrams in order until `time` has passed.
    pub(super) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            while !self.under_way.is_empty() {
                self.deliver(0);
            }
            match self.next_timeout() {
                Some(at) if at <= end => self.advance(at),
                _ => break,
            }
        }
        self.advance(end);
    }

    /// Returns true if each peer has reported exactly one event, `Connected`.
    pub(super) fn are_connected(&self) -> bool {
        self.events.iter().all(|events| matches!(events[..], [OwnedEvent::Connected(_)]))
    }

    /// Checks that exactly one connection was opened, stays open and carries messages in both directions.
    pub(super) fn check(&mut self, context: &dyn core::fmt::Debug) {
        self.run_for(REPETITION);
        assert!(self.are_connected(), "{context:?}: {:?}", self.events);
        for side in BOTH {
            let [OwnedEvent::Connected(id)] = *self.events_of(side) else { panic!("{context:?}") };
            let now = self.now;
            let peer = self.peer(side);
            assert_eq!(peer.connections().collect::<Vec<_>>(), [id], "{context:?}");
            assert_eq!(peer.connection(id).map(|info| info.state), Some(ConnectionState::Connected));
            peer.send(now, id, P::MESSAGE, P::Delivery::default()).expect("an open connection");
        }
        self.settle();
        self.run_for(REST_OF_HANDSHAKE);
        assert!(
            self.events.iter().all(|events| matches!(events[..], [_, OwnedEvent::Message])),
            "{context:?}: {:?}",
            self.events
        );
    }
}
