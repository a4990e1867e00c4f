//! Which connection a datagram is for, and what peers without a connection are answered
//! (docs/raknet.md#unconnected-pings, docs/raknet.md#request-2).

use core::net::SocketAddr;

use super::admission::{Challenge, ClientAddress, Request2, Source};
use super::responder::{self, Answer, Reply1};
use crate::cookie;
use crate::cursor::{Reader, WireError};
use crate::endpoint::{Peer, Unconnected, UnconnectedKind};
use crate::raknet::config::{CookiePolicy, OutOfBand, RakNet, SERVER, UNCONNECTED};
use crate::raknet::connection::handshake::internal_addresses::ListLength;
use crate::raknet::connection::{BlockHeader, Connection};
use crate::raknet::shared_state;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::offline::{ClientSecurity, Offline, PingScope, Refusal};
use crate::raknet::wire::{FirstByte, Guid, PongFraming, Wire, id};

/// Takes an offline message; one that is no answer to a client makes no sense to a pure client.
fn read_offline(datagram: &[u8]) -> Result<Offline<'_>, WireError> {
    let mut reader = Reader::new(datagram);
    if SERVER || UNCONNECTED { Offline::read(&mut reader) } else { Offline::read_answer(&mut reader) }
}

impl Peer<'_, RakNet> {
    /// Decides what a datagram is for.
    pub(super) fn route(&mut self, from: SocketAddr, datagram: &[u8]) {
        match FirstByte::classify(datagram) {
            None if self.handle_unmarked(from, datagram) => {}
            None => self.stats.drop(DropReason::TooShort),
            Some(FirstByte::Connected) => match self.find(&from) {
                Some(slot) => {
                    self.with(slot, |connection, cx| connection.handle_datagram(cx, datagram));
                }
                None => self.stats.drop(DropReason::UnknownSource),
            },
            Some(FirstByte::Offline) => match read_offline(datagram) {
                Ok(message) => self.handle_offline(from, &message, datagram.len()),
                Err(_) if self.handle_unmarked(from, datagram) => {}
                Err(_) => self.stats.drop(DropReason::BadOffline),
            },
        }
    }

    /// A server that wants keys may say so without marking it as offline. False if the datagram is nothing of the kind.
    fn handle_unmarked(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let Some(slot) = self.find(&from) else { return false };
        self.with(slot, |connection, cx| connection.handle_unmarked(cx, datagram)).unwrap_or(false)
    }

    fn handle_offline(&mut self, from: SocketAddr, message: &Offline<'_>, length: usize) {
        match *message {
            Offline::Ping { scope, time, guid } if SERVER => self.handle_ping(from, scope, time, guid),
            Offline::Pong { guid, data, .. } if UNCONNECTED => self.handle_pong(from, guid, data),
            Offline::Request1 { protocol, mtu } if SERVER => {
                self.handle_request_1(from, protocol, mtu, length)
            }
            Offline::Request2 { security, server, mtu, guid } if SERVER => {
                match self.examine_request_2(from, guid, security, length) {
                    Err(reason) => self.stats.drop(reason),
                    Ok(source) => {
                        let challenge = Challenge::in_request(security, server, mtu);
                        // Who has no key cannot answer it.
                        let challenge = challenge.filter(|_| self.config.has_server_key());
                        let mtu = self.config.clamp_mtu(mtu, from);
                        self.handle_request_2(&Request2 { from, guid, mtu, length, source, challenge });
                    }
                }
            }
            Offline::OutOfBand { guid, data } if UNCONNECTED => self.handle_out_of_band(from, guid, data),
            Offline::Ping { .. }
            | Offline::Pong { .. }
            | Offline::Request1 { .. }
            | Offline::Request2 { .. }
            | Offline::OutOfBand { .. } => self.stats.drop(DropReason::Unexpected),
            Offline::Reply1 { .. }
            | Offline::Reply2 { .. }
            | Offline::Refused { .. }
            | Offline::IncompatibleProtocol { .. } => match self.find(&from) {
                Some(slot) => {
                    self.with(slot, |connection, cx| connection.handle_offline(cx, message));
                }
                None => self.stats.drop(DropReason::Unexpected),
            },
        }
    }

    /// The shortest pong is as long as a ping with a GUID; one without is not worth eight bytes more.
    fn handle_ping(&mut self, from: SocketAddr, scope: PingScope, time: u64, guid: Option<Guid>) {
        if guid.is_none() {
            self.stats.drop(DropReason::WouldAmplify);
            return;
        }
        let answers = match scope {
            PingScope::Any => true,
            PingScope::OpenConnections => self.all_incoming() < self.config.max_incoming.into(),
        };
        if answers {
            let rates = responder::pong_rates(&self.config);
            let is_admitted = self.admits_answer(&self.config.secret, rates, from.ip());
            self.state.responder.pong(&self.config, &mut self.stats, self.last_now, from, time, is_admitted);
        }
    }

    fn handle_pong(&mut self, from: SocketAddr, guid: Guid, data: &[u8]) {
        let sent = self.state.responder.take_ping(from, self.last_now);
        let found = self.find(&from);
        let is_awaited = |slot: &u16| self.slot(*slot).is_some_and(|slot| slot.connection.awaits_pong());
        let attempt = found.filter(is_awaited);
        if sent.is_some() || attempt.is_some() {
            let version = self.learn_version(from, data);
            if let Some(slot) = attempt {
                self.with(slot, |connection, cx| connection.on_pong(cx.now, version));
            }
        }
        match sent {
            Some(sent) => {
                let latency = self.last_now.saturating_since(sent);
                // What is shorter than it says is left as it came.
                let data = self.config.received_pong_framing(data).unframe(data).unwrap_or(data);
                self.hear(from, guid, UnconnectedKind::Pong(latency), data);
            }
            None if attempt.is_some() => {}
            None => self.stats.drop(DropReason::Unexpected),
        }
    }

    /// Returns the version of a server that has sent a pong, if it is known, and remembers it. A length before the data shows that
    /// the server speaks a version of Minecraft Bedrock. Only the configuration can know which one; data without a length show
    /// nothing.
    fn learn_version(&mut self, from: SocketAddr, data: &[u8]) -> Option<u8> {
        let known = self.state.known_versions.of(from);
        let is_bedrock = PongFraming::of(data) == PongFraming::Prefixed;
        let expects_bedrock = PongFraming::of_version(self.config.protocol_version) == PongFraming::Prefixed;
        if known.is_some() || !is_bedrock || expects_bedrock {
            return known;
        }
        self.state.known_versions.remember(from, shared_state::BEDROCK);
        Some(shared_state::BEDROCK)
    }

    fn handle_out_of_band(&mut self, from: SocketAddr, guid: Guid, data: &[u8]) {
        match (self.config.out_of_band, data.split_first()) {
            (OutOfBand::Refuse, _) => self.stats.drop(DropReason::Unexpected),
            (OutOfBand::Accept, Some((&id::ADVERTISE_SYSTEM, rest))) => {
                self.hear(from, guid, UnconnectedKind::Advertisement, rest);
            }
            (OutOfBand::Accept, _) => self.hear(from, guid, UnconnectedKind::OutOfBand, data),
        }
    }

    /// Keeps what a peer without a connection said until the application reads it.
    fn hear(&mut self, from: SocketAddr, guid: Guid, kind: UnconnectedKind, data: &[u8]) {
        if self.state.unconnected.is_full() {
            self.stats.drop(DropReason::AnswersFull);
            return;
        }
        match self.tables.pool.store_common(data, &BlockHeader::default()) {
            Some(data) => {
                // There is room, as was just seen.
                let _ = self.state.unconnected.push_back(Unconnected { from, identity: guid, kind, data });
            }
            None => self.stats.drop(DropReason::NoMemory),
        }
    }

    /// Stateless: the answer is shorter than the request and depends on nothing else.
    fn handle_request_1(&mut self, from: SocketAddr, protocol: u8, mtu: u16, length: usize) {
        /// Bytes of the longest answers: reply 1 with a cookie, and with a key too.
        const WITH_COOKIE: usize = 32;
        const WITH_KEY: usize = 96;
        let longest_answer = if self.config.has_server_key() { WITH_KEY } else { WITH_COOKIE };
        if self.config.max_incoming == 0 {
            self.stats.drop(DropReason::Unexpected);
        } else if length < longest_answer {
            self.stats.drop(DropReason::WouldAmplify);
        } else if self.is_banned(from) {
            self.stats.drop(DropReason::Banned);
            self.state.responder.answer(&mut self.stats, from, Answer::Refused(Refusal::Banned));
        } else if self.config.accepted_versions.contains(&protocol) {
            let (mtu, asks_cookie) = (self.config.clamp_mtu(mtu, from), self.asks_cookies());
            let reply = Reply1 { mtu, asks_cookie, list_length: ListLength::of_version(protocol) };
            let Self { state, config, stats, last_now, .. } = self;
            state.responder.answer_request_1(config, stats, *last_now, from, reply, length);
        } else {
            self.state.responder.answer(&mut self.stats, from, Answer::Incompatible);
        }
    }

    /// The table of outcomes in docs/raknet.md#request-2, after the cookie has validated the address or the source
    /// has paid.
    fn handle_request_2(&mut self, request: &Request2<'_>) {
        self.forget_rejections(request);
        let by_address = self.find_or_evict(&request.from);
        let answer = match (by_address, self.knows_guid(request.guid)) {
            (Some(slot), is_known) => self.answer_known_address(slot, request, is_known),
            (None, true) => Some(Answer::Refused(Refusal::AlreadyConnected)),
            (None, false) if self.is_too_plain(request) => Some(Answer::Refused(Refusal::AttemptFailed)),
            (None, false) => self.accept(request),
        };
        if let Some(answer) = answer {
            self.state.responder.answer(&mut self.stats, request.from, answer);
        }
    }

    /// A client that was refused asks again: its address and its GUID are free, whether or not it has acknowledged the refusal.
    fn forget_rejections(&mut self, request: &Request2<'_>) {
        let slots = [self.slot_at(&request.from), self.slot_of(request.guid)];
        for at in slots.into_iter().flatten() {
            let is_rejecting = self.slot(at).is_some_and(|slot| slot.connection.is_rejecting());
            // One whose refusal was not even sent yet ends, and its slot is free the next time.
            if is_rejecting && !self.release_if_it_makes_way(at) {
                self.with(at, Connection::forget_rejection);
            }
        }
    }

    /// The answer to a second request from an address that is known. If this peer dials that address, the other peer
    /// dials this one at the same time: its request is answered, and one connection comes of both attempts.
    fn answer_known_address(&mut self, slot: u16, request: &Request2<'_>, is_known: bool) -> Option<Answer> {
        let Request2 { from, guid, mtu, .. } = *request;
        if self.repeats_request_2(slot, guid) {
            return self.answer_again(slot, request);
        }
        let is_plain = request.challenge.is_none() && !self.is_too_plain(request);
        let may_cross = !is_known && is_plain && !self.is_banned(from);
        let crosses =
            may_cross && self.with(slot, |connection, cx| connection.cross(cx, guid, mtu)) == Some(true);
        Some(if crosses { Answer::Reply2 { mtu } } else { Answer::Refused(Refusal::AlreadyConnected) })
    }

    /// The answer to another second request of the client whose connection is half open. One without keys does not become
    /// one with keys, nor the other way round.
    fn answer_again(&mut self, slot: u16, request: &Request2<'_>) -> Option<Answer> {
        let connection = &self.slot(slot)?.connection;
        match (&request.challenge, connection.is_plain()) {
            (None, true) => return Some(Answer::Reply2 { mtu: connection.mtu() }),
            (Some(challenge), false) => self.answer_challenge_again(slot, request, challenge),
            (None, false) | (Some(_), true) => self.stats.drop(DropReason::Unexpected),
        }
        None
    }

    /// Whether this peer requires keys, and the client has none.
    fn is_too_plain(&self, request: &Request2<'_>) -> bool {
        request.challenge.is_none() && self.config.requires_security()
    }

    /// What a second request shows of its source, or why it gets no answer at all.
    fn examine_request_2(
        &mut self,
        from: SocketAddr,
        guid: Guid,
        security: ClientSecurity<'_>,
        length: usize,
    ) -> Result<Source, DropReason> {
        if self.config.max_incoming == 0 {
            return Err(DropReason::Unexpected);
        }
        let source = self.source(from, guid, security)?;
        let is_paid = source.address == ClientAddress::Validated
            || self.state.responder.affords_reply_2(&self.config, &from, length);
        if is_paid { Ok(source) } else { Err(DropReason::WouldAmplify) }
    }

    /// An error if the cookie is wrong, or missing where one is always asked for.
    fn source(
        &mut self,
        from: SocketAddr,
        guid: Guid,
        security: ClientSecurity<'_>,
    ) -> Result<Source, DropReason> {
        match (self.cookie_policy(), security) {
            (CookiePolicy::Off, _)
            | (CookiePolicy::UnderLoad { .. } | CookiePolicy::Automatic, ClientSecurity::None) => {
                let list_length = self.list_length_without_cookie(from, guid)?;
                Ok(Source { address: ClientAddress::Unvalidated, list_length })
            }
            (CookiePolicy::Required, ClientSecurity::None) => Err(DropReason::MissingCookie),
            (
                CookiePolicy::Required | CookiePolicy::UnderLoad { .. } | CookiePolicy::Automatic,
                ClientSecurity::Cookie(cookie) | ClientSecurity::Challenge { cookie, .. },
            ) => {
                let is_twenty = cookie::verify(&self.config.secret, &from, self.last_now, cookie);
                let list_length = ListLength::from_bit(is_twenty.ok_or(DropReason::BadCookie)?);
                Ok(Source { address: ClientAddress::Validated, list_length })
            }
        }
    }

    /// The lists of addresses that a client without a cookie reads, or why it gets no answer: it was asked for a cookie, or so
    /// many others have asked since its first request that it has to repeat it.
    fn list_length_without_cookie(&mut self, from: SocketAddr, guid: Guid) -> Result<ListLength, DropReason> {
        let kept = self.state.responder.cookieless.list_length(&self.config.secret, &from);
        if let Some(list_length) = kept {
            return Ok(list_length);
        }
        let is_repeated = self.slot_at(&from).is_some_and(|slot| self.repeats_request_2(slot, guid));
        if !is_repeated && self.asks_cookies() {
            return Err(DropReason::MissingCookie);
        }
        let only = ListLength::of_versions(&self.config.accepted_versions);
        match self.config.cookies {
            // It must not be kept out by others, where no cookie can help it.
            CookiePolicy::Off => {
                Ok(only.unwrap_or_else(|| ListLength::of_version(self.config.protocol_version)))
            }
            CookiePolicy::Required | CookiePolicy::UnderLoad { .. } | CookiePolicy::Automatic => {
                only.or_else(|| is_repeated.then_some(ListLength::Ten)).ok_or(DropReason::WouldAmplify)
            }
        }
    }

    /// A server with a key computes for nobody whose address may be forged.
    fn cookie_policy(&self) -> CookiePolicy {
        if self.config.has_server_key() { CookiePolicy::Required } else { self.config.cookies }
    }

    /// Whether reply 1 asks for a cookie now.
    fn asks_cookies(&mut self) -> bool {
        match self.cookie_policy() {
            CookiePolicy::Required => true,
            CookiePolicy::Off => false,
            CookiePolicy::UnderLoad { .. } | CookiePolicy::Automatic => {
                !self.may_come_unvalidated() || !self.state.responder.cookieless.has_room(self.last_now)
            }
        }
    }

    /// Whether any connection that has not ended is with the peer of this GUID.
    fn knows_guid(&mut self, guid: Guid) -> bool {
        self.slot_of(guid).is_some_and(|slot| !self.evict_if_over(slot)) || self.is_known_to_others(guid.0)
    }

    fn repeats_request_2(&self, slot: u16, guid: Guid) -> bool {
        let is_it = |connection: &Connection| connection.guid() == guid && connection.is_unverified();
        self.slot(slot).is_some_and(|slot| is_it(&slot.connection))
    }

    pub(super) fn is_banned(&self, address: SocketAddr) -> bool {
        self.state.bans.list().is_some_and(|bans| bans.is_banned(address.ip(), self.last_now))
    }
}
