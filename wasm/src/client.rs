//! A connection to the single game server behind a relay.

#[cfg(any(feature = "npm-game-protocol", feature = "web"))]
mod game_protocol;
#[cfg(any(feature = "npm-raknet", feature = "web"))]
mod raknet;

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use rakwire::Instant;
#[cfg(feature = "web")]
use rakwire::Machine;
use rakwire::endpoint::{
    Capacity, ConnectError, ConnectionId, Event, Hook, Hooked, Peer, PeerStats, Protocol, Receipt, SendError,
};

#[cfg(any(feature = "npm-raknet", feature = "web"))]
pub(crate) use self::raknet::RakNetSettings;

/// A placeholder for the address of the game server, which only the relay knows. Taken from the documentation range
/// 192.0.2.0/24 (RFC 5737).
const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 19_132));
/// The bytes of a peer's tables per block, in addition to the block itself.
const BLOCK_OVERHEAD: usize = 128;
/// The memory of a connection: half of it for sent and half for received messages.
///
/// A message occupies as many blocks as its bytes fill, from `send` to its acknowledgement, or from its arrival until
/// it is read. The tables of the protocol take 32 to 128 bytes per block in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The number of blocks, 4 to 65,535.
    pub blocks: usize,
    /// The size of a block in bytes, 32 to 65,535.
    pub block_size: usize,
}

impl Memory {
    /// The default of RakNet, about 19 MB: messages of up to 4 MB in both directions.
    pub const RAKNET: Self = Self { blocks: 32_768, block_size: 512 };
    /// The default of the Game Protocol, about 2.5 MB: eight messages of the maximum length in each direction.
    pub const GAME_PROTOCOL: Self = Self { blocks: 4_096, block_size: 512 };

    /// Returns true if the browser can allocate this memory. Without this check, a failed allocation would abort the
    /// whole module.
    pub(crate) fn is_available(self) -> bool {
        let Self { blocks, block_size } = self;
        let bytes = block_size.checked_add(BLOCK_OVERHEAD).and_then(|block| block.checked_mul(blocks));
        bytes.is_some_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
    }
}

/// The error if the browser cannot allocate the requested memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

/// The values needed to connect.
#[derive(Default)]
struct Dialling {
    /// The password for a RakNet server; empty in the Game Protocol.
    password: Vec<u8>,
    /// The expected server.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    trust: Option<rakwire::secure::ServerTrust>,
    /// The data sent with the identity.
    #[cfg(any(feature = "secure", feature = "npm-secure"))]
    identity_data: Vec<u8>,
    /// The identity of the client, if it differs from the one in its configuration.
    #[cfg(feature = "npm-secure")]
    identity: Option<rakwire::secure::StaticKey>,
}

/// Omits secrets.
impl fmt::Debug for Dialling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialling").finish_non_exhaustive()
    }
}

type Dial<P> = fn(&mut Peer<'static, P>, Instant, &Dialling) -> Result<ConnectionId, ConnectError>;

/// A client of one server, and its hook.
#[derive(Debug)]
pub(crate) struct Client<P: Protocol, H = ()> {
    hooked: Hooked<'static, P, H>,
    id: Option<ConnectionId>,
    /// The addresses that the server reports as its own. They are copied, because the peer discards them at its next
    /// event.
    internal_addresses: Vec<SocketAddr>,
    buffer: Vec<u8>,
    dialling: Dialling,
    dial: Dial<P>,
}

/// Wraps the peer with the hook of a client. Without the feature `web`, clients have no hooks, and the WebAssembly
/// contains no code for them.
#[cfg(feature = "web")]
macro_rules! passing {
    ($client:expr) => {
        $client.hooked
    };
}
#[cfg(not(feature = "web"))]
macro_rules! passing {
    ($client:expr) => {
        $client.hooked.peer
    };
}

impl<P: Protocol, H: Hook<P>> Client<P, H> {
    fn new(
        memory: Memory,
        config: P::Config,
        dialling: Dialling,
        dial: Dial<P>,
        hook: H,
    ) -> Result<Self, OutOfMemory> {
        if !memory.is_available() {
            return Err(OutOfMemory);
        }
        let Memory { blocks, block_size } = memory;
        let peer = Peer::with_capacity(Capacity { connections: 1, blocks, block_size }, config);
        Ok(Self {
            hooked: Hooked::new(peer, hook),
            id: None,
            internal_addresses: Vec::new(),
            buffer: vec![0; P::MAX_DATAGRAM],
            dialling,
            dial,
        })
    }

    /// Sets the password that is sent when a connection begins.
    #[cfg(any(feature = "npm-raknet", feature = "npm-game-protocol"))]
    pub(crate) fn set_password(&mut self, password: &[u8]) {
        self.dialling.password = password.to_vec();
    }

    pub(crate) fn connect(&mut self, now: Instant) -> Result<(), ConnectError> {
        self.id = Some((self.dial)(&mut self.hooked.peer, now, &self.dialling)?);
        Ok(())
    }

    /// Returns `Ok` if a message of this length would be accepted now.
    pub(crate) fn can_send(&mut self, length: usize, delivery: P::Delivery) -> Result<(), SendError> {
        self.hooked.peer.can_send(self.id.ok_or(SendError::NotConnected)?, length, delivery)
    }

    /// Returns the length of the longest message that would be accepted.
    pub(crate) fn max_message_len(&mut self) -> Option<usize> {
        self.hooked.peer.max_message_len(self.id?)
    }

    pub(crate) fn disconnect(&mut self, now: Instant) {
        if let Some(id) = self.id {
            self.hooked.peer.disconnect(now, id);
        }
    }

    /// Queues a message, and returns the id of its receipt if it has one.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let id = self.id.ok_or(SendError::NotConnected)?;
        passing!(self).send(now, id, message, delivery)
    }

    pub(crate) fn handle(&mut self, now: Instant, datagram: &[u8]) {
        passing!(self).handle_datagram(now, SERVER, datagram);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        passing!(self).handle_timeout(now);
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        let transmit = passing!(self).poll_transmit(now, &mut self.buffer)?;
        Some(transmit.payload)
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event<'_, P>> {
        // The peer discards the addresses at the next event.
        if let (Some(id), true) = (self.id, self.internal_addresses.is_empty()) {
            self.internal_addresses = P::internal_addresses(&self.hooked.peer, id).collect();
        }
        let event = passing!(self).poll_event();
        #[cfg(feature = "npm-server")]
        if let Some(Event::Connected { id, .. }) = &event {
            self.id = Some(*id);
        }
        event
    }

    #[cfg(any(feature = "npm-raknet", feature = "web"))]
    fn addresses_of(&self, id: ConnectionId) -> Vec<SocketAddr> {
        match &self.internal_addresses[..] {
            [] => P::internal_addresses(&self.hooked.peer, id).collect(),
            kept => kept.to_vec(),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        passing!(self).poll_timeout()
    }

    /// Returns true if the connection is closed. Events may still be queued.
    #[cfg(any(feature = "npm-raknet", feature = "npm-game-protocol"))]
    pub(crate) fn is_over(&self) -> bool {
        self.id.is_some_and(|id| {
            let connection = self.hooked.peer.connection(id);
            connection
                .is_none_or(|connection| connection.state == rakwire::endpoint::ConnectionState::Disconnected)
        })
    }

    /// Returns the counters of the connection and of the whole peer. Without a connection, its counters are zero.
    pub(crate) fn stats(&self) -> (P::ConnectionStats, &PeerStats<P::DropReason>) {
        let connection = self.id.and_then(|id| self.hooked.peer.connection_stats(id));
        (connection.unwrap_or_default(), self.hooked.peer.stats())
    }
}

/// Converts milliseconds of a JavaScript clock to an instant, rounded to the nearest microsecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and no clock is negative"
)]
pub(crate) fn instant(now_ms: f64) -> Instant {
    Instant::from_micros((now_ms * 1_000.0 + 0.5) as u64)
}

/// Converts an instant to milliseconds of a JavaScript clock.
#[allow(clippy::cast_precision_loss, reason = "exact for the first 285 years of a page")]
pub(crate) fn millis(at: Instant) -> f64 {
    at.as_micros() as f64 / 1_000.0
}

#[cfg(test)]
#[cfg(feature = "npm")]
mod tests {
    use core::time::Duration;

    use super::game_protocol::ATTEMPT;
    use super::*;
    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::RakNet;

    fn settings(protocol_version: u8, password: &[u8]) -> RakNetSettings<'_> {
        RakNetSettings {
            protocol_version: Some(protocol_version),
            progress_interval: 0,
            password,
            memory: Memory::RAKNET,
            timeout: None,
            outgoing_limit: None,
            #[cfg(any(feature = "secure", feature = "npm-secure"))]
            security: None,
            #[cfg(any(feature = "secure", feature = "npm-secure"))]
            identity_data: &[],
        }
    }

    fn raknet(protocol_version: u8) -> Client<RakNet> {
        Client::raknet([1; 32], settings(protocol_version, b""), ()).unwrap()
    }

    fn game_protocol() -> Client<GameProtocol> {
        Client::game_protocol([1; 32], Memory::GAME_PROTOCOL, None, ()).unwrap()
    }

    #[test]
    fn unavailable_memory_is_refused_and_minimal_memory_suffices_to_connect() {
        let endless = Memory { blocks: usize::MAX / 2, block_size: 65_535 };
        assert_eq!(Client::game_protocol([1; 32], endless, None, ()).map(|_| ()), Err(OutOfMemory));
        let mut little =
            Client::game_protocol([1; 32], Memory { blocks: 4, block_size: 32 }, None, ()).unwrap();
        assert_eq!(little.connect(Instant::ZERO), Ok(()));
        assert_eq!(
            little.can_send(1, rakwire::game_protocol::Reliability::Reliable),
            Err(SendError::NotConnected)
        );
    }

    #[test]
    fn too_long_password_is_refused() {
        let connect = |password: &[u8]| {
            Client::raknet([1; 32], settings(6, password), ()).unwrap().connect(Instant::ZERO)
        };
        assert_eq!(connect(&[7; 255]), Ok(()));
        assert_eq!(connect(&[7; 256]), Err(ConnectError::PasswordTooLong));
    }

    /// Connects a client to a server with this configuration, and returns the time at which it was connected.
    fn connect<P: Protocol>(client: &mut Client<P>, config: P::Config) -> Instant {
        let capacity = Capacity { connections: 1, blocks: 64, block_size: 128 };
        let mut server = Peer::<P>::with_capacity(capacity, config);
        let (page, mut buffer, mut now) =
            (SocketAddr::from(([192, 0, 2, 2], 1)), vec![0; 2_048], Instant::ZERO);
        client.connect(now).unwrap();
        while !matches!(client.poll_event(), Some(Event::Connected { .. })) {
            while let Some(datagram) = client.poll_transmit(now).map(<[u8]>::to_vec) {
                server.handle_datagram(now, page, &datagram);
            }
            while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
                client.handle(now, transmit.payload);
            }
            while server.poll_event().is_some() {}
            now =
                [client.poll_timeout(), server.poll_timeout()].into_iter().flatten().min().unwrap().max(now);
            client.handle_timeout(now);
            server.handle_timeout(now);
        }
        now
    }

    /// Returns the time until a client closes the connection to a server that has stopped sending.
    fn time_until_lost<P: Protocol>(mut client: Client<P>, config: P::Config) -> Duration {
        let begin = connect(&mut client, config);
        client.send(begin, b"\xFEhi", P::Delivery::default()).unwrap();
        let mut now = begin;
        while !client.is_over() {
            while client.poll_transmit(now).is_some() {}
            now = client.poll_timeout().unwrap();
            client.handle_timeout(now);
        }
        now.saturating_since(begin)
    }

    #[test]
    fn connection_to_a_silent_server_times_out() {
        let raknet = |timeout| {
            let mut config = RakNet::config([2; 32]);
            config.max_incoming = 1;
            time_until_lost(
                Client::raknet([1; 32], RakNetSettings { timeout, ..settings(6, b"") }, ()).unwrap(),
                config,
            )
        };
        let game = |timeout| {
            let mut config = GameProtocol::config([2; 32]);
            config.max_incoming = 1;
            time_until_lost(
                Client::game_protocol([1; 32], Memory::GAME_PROTOCOL, timeout, ()).unwrap(),
                config,
            )
        };
        let about = |seconds| Duration::from_secs(seconds)..Duration::from_secs(seconds + 1);
        assert!(about(10).contains(&raknet(None)), "{:?}", raknet(None));
        assert!(about(3).contains(&raknet(Some(Duration::from_secs(3)))));
        assert!(about(15).contains(&game(None)), "{:?}", game(None));
        assert!(about(3).contains(&game(Some(Duration::from_secs(3)))));
    }

    #[test]
    fn server_guid_is_known_while_connected() {
        let mut config = RakNet::config([2; 32]);
        config.max_incoming = 1;
        let guid = config.guid;
        let mut client = raknet(6);
        assert_eq!(client.server_guid(), None);
        let now = connect(&mut client, config);
        assert_eq!(client.server_guid(), Some(guid));
        client.disconnect(now);
        assert_eq!(client.server_guid(), None);
    }

    #[test]
    fn instants_survive_conversion_to_milliseconds() {
        for micros in [0, 1, 999, 1_234_567, 86_400_000_001, 1_700_000_000_000_003] {
            let at = Instant::from_micros(micros);
            assert_eq!(instant(millis(at)), at);
        }
        assert_eq!(instant(f64::NAN), Instant::ZERO);
        assert_eq!(instant(-5.0), Instant::ZERO);
    }

    #[test]
    fn nothing_can_be_sent_before_connecting() {
        fn check<P: Protocol>(mut client: Client<P>) {
            let sent = client.send(Instant::ZERO, b"\xFEhi", P::Delivery::default());
            assert_eq!(sent, Err(SendError::NotConnected), "{}", P::NAME);
            assert!(!client.is_over());
            assert!(client.poll_transmit(Instant::ZERO).is_none());
        }
        check(raknet(6));
        check(game_protocol());
    }

    /// Returns the number of requests that a client sends to a server that does not answer, and the time of the
    /// failure.
    fn give_up<P: Protocol>(mut client: Client<P>) -> (u32, Instant) {
        let mut now = Instant::ZERO;
        client.connect(now).unwrap();
        let mut requests = 0;
        let failed = loop {
            while client.poll_transmit(now).is_some() {
                requests += 1;
            }
            if let Some(event) = client.poll_event() {
                break matches!(event, Event::ConnectFailed { .. });
            }
            now = client.poll_timeout().unwrap();
            client.handle_timeout(now);
        };
        assert!(failed, "{}", P::NAME);
        assert!(client.is_over());
        assert!(client.poll_event().is_none());
        assert!(client.is_over());
        (requests, now)
    }

    #[test]
    fn attempt_to_connect_to_an_unresponsive_server_fails() {
        let (requests, _) = give_up(raknet(11));
        assert!(requests >= 12, "{requests} requests");
        assert_eq!(give_up(game_protocol()), (1, Instant::ZERO + ATTEMPT));
    }
}
