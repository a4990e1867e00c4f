//! A RakNet flow, and the cache of a server's pong, which answers pings on the server's behalf for a short time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rakwire::U24;
use rakwire::game_protocol::wire::HEADER;
use rakwire::raknet::{Guid, Reliability};
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader};
use rakwire::wire::offline::{MAX_PONG_DATA, Offline, PingScope};
use rakwire::wire::{Reader, Wire, WireError, Writer, id};

use super::verdict::{Budget, Change, Handshake, ProtocolKind, Refusal, Verdict, clamp};

/// Set in the first byte of every connection datagram.
const VALID: u8 = 0x80;

/// An upper limit for the length of a datagram with a disconnection notification, in bytes.
const PARTING_MAX: usize = 32;

/// A flow of RakNet.
#[derive(Debug)]
pub(super) struct RakNetFlow {
    payload_max: u16,
    /// The maximum length of a datagram that the client's transport carries unfragmented; `None` is unlimited.
    max_datagram: Option<u16>,
    budget: Budget,
    pongs: Arc<PongCache>,
    /// True if the server has accepted a connection with reply 2.
    is_open: bool,
    /// The last forwarded ping: its time and its scope.
    pinged: Option<(u64, PingScope)>,
    /// The number of the client's newest data datagram, and its flags.
    last_data: Option<(U24, u8)>,
}

impl RakNetFlow {
    pub(super) fn new(handshake: &Handshake, pongs: Arc<PongCache>, now: Instant) -> Self {
        Self {
            payload_max: handshake.payload_max,
            max_datagram: None,
            budget: Budget::new(handshake, now),
            pongs,
            is_open: false,
            pinged: None,
            last_data: None,
        }
    }

    pub(super) const fn set_max_datagram(&mut self, longest: Option<u16>) {
        self.max_datagram = longest;
    }

    fn clamp(&self, message: &Offline<'_>, datagram: &[u8]) -> Change {
        clamp(
            message,
            datagram,
            self.max_datagram.map_or(self.payload_max, |longest| longest.min(self.payload_max)),
        )
    }

    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn handle_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        match offline(datagram) {
            Some(Offline::Ping { scope, time, .. }) => self.handle_ping(now, scope, time, datagram.len()),
            Some(message @ (Offline::Request1 { .. } | Offline::Request2 { .. })) => {
                self.pass(now, datagram.len(), self.clamp(&message, datagram))
            }
            Some(_) | None if self.is_open => {
                self.follow(datagram);
                Verdict::Pass(Change::None)
            }
            // A datagram of four bytes is a salt, with which clients of the Game Protocol begin. No handshake message
            // of RakNet is as short.
            None if datagram.len() == HEADER => Verdict::Drop(Refusal::OtherProtocol(ProtocolKind::RakNet)),
            Some(_) | None => Verdict::Drop(Refusal::NoHandshake),
        }
    }

    /// Tracks the datagram numbers of the client's connection.
    fn follow(&mut self, datagram: &[u8]) {
        let Ok(DatagramHeader::Data { number, hints }) = DatagramHeader::read(&mut Reader::new(datagram))
        else {
            return;
        };
        // Datagrams may be reordered, and a server drops a number that it has already received.
        if self.last_data.is_none_or(|(newest, _)| newest.is_older_than(number)) {
            self.last_data = Some((number, hints));
        }
    }

    /// Returns the datagram that notifies the server of the client's departure: an unreliable disconnection
    /// notification with the client's next datagram number. A secure connection rejects it, because it is not sealed.
    pub(super) fn disconnect_datagram(&self) -> Option<Vec<u8>> {
        let (number, hints) = self.last_data.filter(|_| self.is_open)?;
        let mut buffer = [0; PARTING_MAX];
        let mut writer = Writer::new(&mut buffer);
        write_disconnection(&mut writer, DatagramHeader::Data { hints, number: number.next() }).ok()?;
        Some(writer.finish().to_vec())
    }

    fn handle_ping(&mut self, now: Instant, scope: PingScope, time: u64, length: usize) -> Verdict {
        if let Some(pong) = self.pongs.answer(now, scope, time) {
            return Verdict::Answer(pong);
        }
        let verdict = self.pass(now, length, Change::None);
        if matches!(verdict, Verdict::Pass(_)) {
            self.pinged = Some((time, scope));
        }
        verdict
    }

    /// Returns the verdict for a handshake message. The budget no longer applies once the connection is open.
    fn pass(&mut self, now: Instant, length: usize, change: Change) -> Verdict {
        let length = if let Change::Cut(length) = change { length } else { length };
        if self.is_open || self.budget.take(now, length) {
            Verdict::Pass(change)
        } else {
            Verdict::Drop(Refusal::HandshakeBudget)
        }
    }

    pub(super) fn handle_server(&mut self, now: Instant, datagram: &[u8]) -> Change {
        let Some(message) = offline(datagram) else { return Change::None };
        if let Offline::Pong { time, guid, data } = message {
            self.learn(now, time, guid.0, data);
        }
        if matches!(message, Offline::Reply2 { .. }) {
            self.is_open = true;
            // A new connection counts datagrams from zero.
            self.last_data = None;
        }
        self.clamp(&message, datagram)
    }

    /// Caches a pong. If its time differs from that of the last ping, the pong answers an earlier ping, or the server
    /// writes its own time into pongs.
    fn learn(&mut self, now: Instant, time: u64, guid: u64, data: &[u8]) {
        let asked = self.pinged.take_if(|(sent, _)| *sent == time);
        let scope = asked.map_or(PingScope::Any, |(_, scope)| scope);
        self.pongs.learn(scope, Pong { guid, data: data.to_vec(), at: now, latency: None });
    }
}

fn write_disconnection(writer: &mut Writer<'_>, header: DatagramHeader) -> Result<(), WireError> {
    header.write(writer)?;
    let none = U24::new(0);
    let capsule = CapsuleHeader {
        reliability: Reliability::Unreliable,
        bits: u8::BITS as u16,
        reliable: none,
        sequence: none,
        order: none,
        channel: 0,
        split: None,
    };
    capsule.write(writer)?;
    writer.u8(id::DISCONNECTION_NOTIFICATION)
}

/// Returns true if a datagram is request 1.
pub(super) fn is_request_1(datagram: &[u8]) -> bool {
    matches!(offline(datagram), Some(Offline::Request1 { .. }))
}

/// Parses a datagram as an offline message. The first byte already excludes most datagrams.
fn offline(datagram: &[u8]) -> Option<Offline<'_>> {
    let is_connected = datagram.first().is_none_or(|first| first & VALID != 0);
    if is_connected { None } else { Offline::read(&mut Reader::new(datagram)).ok() }
}

/// The time for which a pong answers pings: 3 s.
pub const PONG_LIFETIME: Duration = Duration::from_secs(3);

/// Bytes of a pong without its data.
const PONG_HEAD: usize = 33;

/// The contents of a server's pong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pong {
    /// The GUID of the server.
    pub guid: u64,
    /// The server's description of itself, at most 399 bytes.
    pub data: Vec<u8>,
    /// The arrival time of the pong.
    pub at: Instant,
    /// The round-trip time, if the pong answers a ping of the relay itself.
    pub latency: Option<Duration>,
}

impl Pong {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < PONG_LIFETIME
    }
}

/// The last pongs of a target, which all of its flows share.
#[derive(Debug, Default)]
pub struct PongCache(Mutex<Pongs>);

#[derive(Default)]
struct Pongs {
    /// The last pong to any ping.
    any: Option<Pong>,
    /// The arrival time of the last pong to a ping that requires a free slot.
    open_at: Option<Instant>,
}

impl fmt::Debug for Pongs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pongs").field("any", &self.any).field("open_at", &self.open_at).finish()
    }
}

impl PongCache {
    /// Caches a pong. `scope` is that of the ping that it answers: a full server answers only [`PingScope::Any`].
    pub fn learn(&self, scope: PingScope, pong: Pong) {
        if pong.data.len() > MAX_PONG_DATA {
            return;
        }
        let mut pongs = self.lock();
        if scope == PingScope::OpenConnections {
            pongs.open_at = Some(pong.at);
        }
        let latency = pong.latency.or_else(|| pongs.any.as_ref().and_then(|last| last.latency));
        pongs.any = Some(Pong { latency, ..pong });
    }

    /// Returns the last pong while it is fresh.
    #[must_use]
    pub fn last(&self, now: Instant) -> Option<Pong> {
        self.lock().any.as_ref().filter(|pong| pong.is_fresh(now)).cloned()
    }

    /// Returns the GUID of the server, or `None` before the first pong.
    #[must_use]
    pub fn guid(&self) -> Option<u64> {
        self.lock().any.as_ref().map(|pong| pong.guid)
    }

    /// Returns the response to a ping, if a recent pong is cached. `time` is the time in the ping.
    #[must_use]
    pub fn answer(&self, now: Instant, scope: PingScope, time: u64) -> Option<Vec<u8>> {
        let pongs = self.lock();
        let pong = pongs.any.as_ref().filter(|pong| pong.is_fresh(now))?;
        let has_room = pongs.open_at.is_some_and(|at| now.saturating_duration_since(at) < PONG_LIFETIME);
        if scope == PingScope::OpenConnections && !has_room {
            return None;
        }
        let mut buffer = [0; PONG_HEAD + MAX_PONG_DATA];
        let mut writer = Writer::new(&mut buffer);
        let message = Offline::Pong { time, guid: Guid(pong.guid), data: &pong.data };
        message.write(&mut writer).ok()?;
        Some(writer.finish().to_vec())
    }

    fn lock(&self) -> MutexGuard<'_, Pongs> {
        // The lock cannot be poisoned in the middle of a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    mod raknet {
        use std::net::SocketAddr;
        use std::time::Duration;

        use rakwire::raknet::Guid;
        use rakwire::wire::offline::{ClientSecurity, Refusal as ServerRefusal, ServerSecurity};
        use rakwire::wire::{IP_UDP_OVERHEAD, Writer};

        use super::super::*;

        const GUID: Guid = Guid(7);
        const CONNECTED: [u8; 8] = [0x84, 0, 0, 0, 0, 0, 8, 0xFE];

        fn address() -> SocketAddr {
            "192.0.2.1:19132".parse().unwrap()
        }

        fn bytes(message: &Offline<'_>) -> Vec<u8> {
            let mut buffer = [0; 2_048];
            let mut writer = Writer::new(&mut buffer);
            message.write(&mut writer).unwrap();
            writer.finish().to_vec()
        }

        fn ping(scope: PingScope, time: u64) -> Vec<u8> {
            bytes(&Offline::Ping { scope, time, guid: Some(GUID) })
        }

        fn pong(time: u64) -> Vec<u8> {
            bytes(&Offline::Pong { time, guid: GUID, data: b"MCPE;a" })
        }

        fn request_1(mtu: u16) -> Vec<u8> {
            bytes(&Offline::Request1 { protocol: 11, mtu })
        }

        fn reply_2() -> Vec<u8> {
            bytes(&Offline::Reply2 { guid: GUID, client: address(), mtu: 1_400, answer: None })
        }

        fn flow(handshake: Handshake) -> (RakNetFlow, Instant) {
            let now = Instant::now();
            (RakNetFlow::new(&handshake, Arc::default(), now), now)
        }

        #[test]
        fn only_pings_and_requests_pass_until_reply_2() {
            let (mut flow, now) = flow(Handshake::default());
            let request_2 = Offline::Request2 {
                security: ClientSecurity::None,
                server: address(),
                mtu: 1_400,
                guid: GUID,
            };
            for datagram in [ping(PingScope::Any, 1), request_1(1_492), bytes(&request_2)] {
                assert_eq!(flow.handle_client(now, &datagram), Verdict::Pass(Change::None));
            }
            let refused = [
                CONNECTED.to_vec(),
                Vec::new(),
                vec![0x05; 20],
                bytes(&Offline::OutOfBand { guid: GUID, data: b"x" }),
                pong(1),
                reply_2(),
                bytes(&Offline::Refused { refusal: ServerRefusal::Banned, guid: GUID }),
                bytes(&Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1_400 }),
            ];
            for datagram in &refused {
                assert_eq!(
                    flow.handle_client(now, datagram),
                    Verdict::Drop(Refusal::NoHandshake),
                    "{datagram:02x?}"
                );
            }
            // Only reply 2 opens the flow.
            let before = [
                bytes(&Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1_400 }),
                pong(1),
                CONNECTED.to_vec(),
                bytes(&Offline::Refused { refusal: ServerRefusal::Banned, guid: GUID }),
            ];
            for datagram in &before {
                assert_eq!(flow.handle_server(now, datagram), Change::None);
                assert!(!flow.is_open(), "{datagram:02x?}");
            }
            assert_eq!(flow.handle_server(now, &reply_2()), Change::None);
            for datagram in &refused {
                assert_eq!(flow.handle_client(now, datagram), Verdict::Pass(Change::None), "{datagram:02x?}");
            }
        }

        #[test]
        fn the_handshake_is_limited_by_its_budget() {
            let handshake = Handshake { datagrams: 5, bytes: 4_000, ..Handshake::default() };
            let (mut flow, now) = flow(handshake);
            let sent: Vec<_> = (0..4).map(|_| flow.handle_client(now, &request_1(1_492))).collect();
            let (pass, drop) = (Verdict::Pass(Change::None), Verdict::Drop(Refusal::HandshakeBudget));
            assert_eq!(sent, [pass.clone(), pass.clone(), drop.clone(), drop.clone()]);
            let pings = (0..9).filter(|_| flow.handle_client(now, &ping(PingScope::Any, 1)) == pass).count();
            assert_eq!(pings, 3);
            // After 8 s the budget is refilled. An open flow has no budget.
            assert_eq!(flow.handle_client(now + Duration::from_secs(8), &request_1(1_492)), pass);
            let _ = flow.handle_server(now, &reply_2());
            assert!((0..99).all(|_| flow.handle_client(now, &request_1(1_492)) == pass));
        }

        #[test]
        fn a_cut_request_is_charged_by_its_length_after_the_cut() {
            let handshake = Handshake { payload_max: 1_000, bytes: 4_000, ..Handshake::default() };
            let (mut flow, now) = flow(handshake);
            for _ in 0..4 {
                assert_eq!(flow.handle_client(now, &request_1(1_492)), Verdict::Pass(Change::Cut(1_000)));
            }
            assert_eq!(flow.handle_client(now, &request_1(1_492)), Verdict::Drop(Refusal::HandshakeBudget));
        }

        #[test]
        fn the_mtu_is_clamped_in_both_directions() {
            let (mut flow, now) = flow(Handshake { payload_max: 1_200, ..Handshake::default() });
            let mtu = 1_200 + IP_UDP_OVERHEAD;
            let reply =
                bytes(&Offline::Reply1 { guid: GUID, security: ServerSecurity::Cookie(1), mtu: 1_431 });
            assert_eq!(flow.handle_server(now, &reply), Change::Mtu { at: 30, mtu });
            let request = Offline::Request2 {
                security: ClientSecurity::Cookie(1),
                server: address(),
                mtu: 1_431,
                guid: GUID,
            };
            assert_eq!(flow.handle_client(now, &bytes(&request)), Verdict::Pass(Change::Mtu { at: 29, mtu }));
            assert_eq!(flow.handle_server(now, &reply_2()), Change::Mtu { at: 32, mtu });
        }

        #[test]
        fn pings_are_answered_from_the_pong_of_any_flow() {
            let pongs = Arc::new(PongCache::default());
            let now = Instant::now();
            let new = || RakNetFlow::new(&Handshake::default(), Arc::clone(&pongs), now);
            let (mut first, mut second) = (new(), new());
            assert_eq!(first.handle_client(now, &ping(PingScope::Any, 5)), Verdict::Pass(Change::None));
            assert_eq!(first.handle_server(now, &pong(5)), Change::None);
            assert_eq!(second.handle_client(now, &ping(PingScope::Any, 6)), Verdict::Answer(pong(6)));
            assert_eq!(
                second.handle_client(now, &ping(PingScope::OpenConnections, 6)),
                Verdict::Pass(Change::None)
            );
            let later = now + PONG_LIFETIME;
            assert_eq!(second.handle_client(later, &ping(PingScope::Any, 7)), Verdict::Pass(Change::None));
        }

        #[test]
        fn a_pong_reports_a_free_slot_only_if_the_ping_required_a_free_slot() {
            for (sent, answered, has_room) in [(5, 5, true), (5, 6, false)] {
                let (mut flow, now) = flow(Handshake::default());
                let open = |time| ping(PingScope::OpenConnections, time);
                assert_eq!(flow.handle_client(now, &open(sent)), Verdict::Pass(Change::None));
                let _ = flow.handle_server(now, &pong(answered));
                let expected = if has_room { Verdict::Answer(pong(9)) } else { Verdict::Pass(Change::None) };
                assert_eq!(flow.handle_client(now, &open(9)), expected);
            }
        }

        #[test]
        fn the_disconnect_for_a_departed_client_uses_its_next_number() {
            let (mut flow, now) = flow(Handshake::default());
            flow.handle_server(now, &reply_2());
            assert_eq!(flow.disconnect_datagram(), None, "the client has sent no datagram with a number");
            flow.handle_client(now, &[0x84, 0xFF, 0xFF, 0x00, 0, 0, 8, 0xFE]);
            // Acknowledgements have no datagram number.
            flow.handle_client(now, &[0xC0, 0, 1, 1, 7, 0, 0]);
            assert_eq!(flow.disconnect_datagram().unwrap(), [0x84, 0, 0, 1, 0, 0, 8, 0x15]);
        }

        #[test]
        fn no_disconnect_is_sent_before_a_connection_was_accepted() {
            let (mut flow, now) = flow(Handshake::default());
            flow.handle_client(now, &request_1(1_492));
            flow.handle_client(now, &CONNECTED);
            assert_eq!(flow.disconnect_datagram(), None);
        }

        /// Data channels and WebTransport reorder datagrams, and a server drops a number that it has already received.
        #[test]
        fn the_disconnect_has_a_fresh_number_after_reordering() {
            let (mut flow, now) = flow(Handshake::default());
            flow.handle_server(now, &reply_2());
            let data = |number: u8| [0x84, number, 0, 0, 0, 0, 8, 0xFE];
            for number in [0, 1, 5, 3, 4, 1] {
                flow.handle_client(now, &data(number));
            }
            assert_eq!(flow.disconnect_datagram().unwrap()[..4], [0x84, 6, 0, 0]);
            // Numbers wrap around.
            flow.handle_server(now, &reply_2());
            for number in [[0xFF, 0xFF, 0xFF], [0xFE, 0xFF, 0xFF], [0, 0, 0], [0xFF, 0xFF, 0xFF]] {
                flow.handle_client(now, &[&[0x84][..], &number, &[0, 0, 8, 0xFE]].concat());
            }
            assert_eq!(flow.disconnect_datagram().unwrap()[..4], [0x84, 1, 0, 0]);
        }

        /// A client that connects again on its flow begins with another number.
        #[test]
        fn the_disconnect_uses_the_datagram_numbers_of_the_latest_connection() {
            let (mut flow, now) = flow(Handshake::default());
            flow.handle_server(now, &reply_2());
            flow.handle_client(now, &[0x84, 9, 0, 0, 0, 0, 8, 0xFE]);
            flow.handle_server(now, &reply_2());
            flow.handle_client(now, &[0x84, 0, 0, 0, 0, 0, 8, 0xFE]);
            assert_eq!(flow.disconnect_datagram().unwrap()[..4], [0x84, 1, 0, 0]);
        }
    }

    mod pongs {
        use rakwire::wire::Reader;

        use super::super::*;

        fn pong(at: Instant) -> Pong {
            Pong { guid: 9, data: b"MCPE;a".to_vec(), at, latency: None }
        }

        #[test]
        fn a_fresh_pong_answers_with_the_time_of_the_ping() {
            let (cache, now) = (PongCache::default(), Instant::now());
            assert_eq!(cache.answer(now, PingScope::Any, 5), None);
            cache.learn(PingScope::Any, pong(now));
            let answer = cache.answer(now, PingScope::Any, 5).unwrap();
            let expected = Offline::Pong { time: 5, guid: Guid(9), data: b"MCPE;a" };
            assert_eq!(Offline::read(&mut Reader::new(&answer)), Ok(expected));
        }

        #[test]
        fn an_expired_pong_still_provides_the_guid() {
            let (cache, now) = (PongCache::default(), Instant::now());
            cache.learn(PingScope::OpenConnections, pong(now));
            let later = now + PONG_LIFETIME;
            assert_eq!(cache.answer(later, PingScope::Any, 5), None);
            assert_eq!(cache.last(later), None);
            assert_eq!(cache.guid(), Some(9));
        }

        #[test]
        fn a_full_server_is_not_reported_as_having_a_free_slot() {
            let (cache, now) = (PongCache::default(), Instant::now());
            cache.learn(PingScope::Any, pong(now));
            assert_eq!(cache.answer(now, PingScope::OpenConnections, 5), None);
            cache.learn(PingScope::OpenConnections, pong(now));
            assert!(cache.answer(now, PingScope::OpenConnections, 5).is_some());
            // The server has become full. Only pings with the scope `Any` refresh the cache.
            let later = now + PONG_LIFETIME;
            cache.learn(PingScope::Any, pong(later));
            assert_eq!(cache.answer(later, PingScope::OpenConnections, 5), None);
            assert!(cache.answer(later, PingScope::Any, 5).is_some());
        }

        #[test]
        fn oversized_pongs_are_not_cached() {
            let (cache, now) = (PongCache::default(), Instant::now());
            cache.learn(PingScope::Any, Pong { data: vec![1; MAX_PONG_DATA + 1], ..pong(now) });
            assert_eq!(cache.last(now), None);
            cache.learn(PingScope::Any, Pong { data: vec![1; MAX_PONG_DATA], ..pong(now) });
            assert_eq!(
                cache.answer(now, PingScope::Any, 0).map(|bytes| bytes.len()),
                Some(PONG_HEAD + MAX_PONG_DATA)
            );
        }

        #[test]
        fn the_latency_comes_from_the_last_timed_ping() {
            let (cache, now) = (PongCache::default(), Instant::now());
            cache.learn(PingScope::Any, Pong { latency: Some(Duration::from_millis(4)), ..pong(now) });
            cache.learn(PingScope::Any, pong(now));
            assert_eq!(cache.last(now).unwrap().latency, Some(Duration::from_millis(4)));
        }
    }
}
