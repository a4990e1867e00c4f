//! Routing of datagrams: to connections, or to the handlers for unconnected peers.
//!
//! See docs/raknet.md#unconnected-pings and docs/raknet.md#request-2.

use core::net::SocketAddr;

use super::admission::{Challenge, ClientAddress, Request2, Source};
use super::responder::{self, Answer, Reply1};
use super::state::{State, StateTables, Storage};
use crate::cookie;
use crate::cursor::{Reader, WireError};
use crate::endpoint::{Internals, Outcome, Peer, Receipt, UnconnectedKind};
use crate::raknet::config::{Config, CookiePolicy, OutOfBand, RakNet, SERVER, UNCONNECTED};
use crate::raknet::connection::handshake::internal_addresses::ListLength;
use crate::raknet::connection::{BlockHeader, Connection};
use crate::raknet::delivery::Delivery;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::offline::{ClientSecurity, Offline, PingScope, Refusal};
use crate::raknet::wire::{FirstByte, Guid, Wire, id};

impl Internals for RakNet {
    const BURST: u8 = 1;

    type Connection = Connection;
    type BlockHeader = BlockHeader;
    type State<'a> = State<'a>;
    type StateTables<'a> = StateTables<'a>;
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize> = Storage<CONNECTIONS>;

    #[inline(always)] // avoids a copy of the value
    fn state<'a>(tables: Self::StateTables<'a>, config: &mut Config) -> Self::State<'a> {
        State::new(tables, config)
    }

    fn secret(config: &Config) -> [u8; 16] {
        config.secret
    }

    fn connection_blocks(config: &Config) -> Option<u32> {
        config.connection_blocks
    }

    fn route(peer: &mut Peer<'_, Self>, from: SocketAddr, datagram: &[u8]) {
        peer.route(from, datagram);
    }

    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        peer.state.responder.poll_transmit(&peer.config, &mut peer.tables.pool, peer.last_now, buffer)
    }

    #[inline]
    fn delivery(header: &BlockHeader) -> Result<Delivery, (Receipt, Outcome)> {
        header.receipt().map_or_else(|| Ok(header.delivery()), Err)
    }
}

/// Parses an offline message; a pure client only parses responses to its own requests.
fn read_offline(datagram: &[u8]) -> Result<Offline<'_>, WireError> {
    let mut reader = Reader::new(datagram);
    if SERVER || UNCONNECTED { Offline::read(&mut reader) } else { Offline::read_answer(&mut reader) }
}

impl Peer<'_, RakNet> {
    /// Routes a datagram to its connection or handler.
    fn route(&mut self, from: SocketAddr, datagram: &[u8]) {
        match FirstByte::classify(datagram) {
            None if self.handle_unmarked(from, datagram) => {}
            None => self.stats.drop(DropReason::TooShort),
            Some(FirstByte::Connected) => match self.tables.connections.find(&from) {
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

    /// Handles a datagram without the offline magic, by which a server may report that it requires keys.
    ///
    /// Returns false for any other datagram.
    fn handle_unmarked(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let Some(slot) = self.tables.connections.find(&from) else { return false };
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
                        // A server without a key ignores the challenge.
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
            | Offline::IncompatibleProtocol { .. } => match self.tables.connections.find(&from) {
                Some(slot) => {
                    self.with(slot, |connection, cx| connection.handle_offline(cx, message));
                }
                None => self.stats.drop(DropReason::Unexpected),
            },
        }
    }

    /// Handles an unconnected ping.
    ///
    /// A ping without a GUID is dropped: the shortest pong is eight bytes longer, so a response would amplify.
    fn handle_ping(&mut self, from: SocketAddr, scope: PingScope, time: u64, guid: Option<Guid>) {
        if guid.is_none() {
            self.stats.drop(DropReason::WouldAmplify);
            return;
        }
        let answers = match scope {
            PingScope::Any => true,
            PingScope::OpenConnections => self.admission.incoming_at_all() < self.config.max_incoming.into(),
        };
        if answers {
            let rates = responder::pong_rates(&self.config);
            let secret = &self.config.secret;
            let is_admitted = self.admission.admits_answer(secret, rates, self.last_now, from.ip());
            self.state.responder.pong(&self.config, &mut self.stats, self.last_now, from, time, is_admitted);
        }
    }

    fn handle_pong(&mut self, from: SocketAddr, guid: Guid, data: &[u8]) {
        let sent = self.state.responder.take_ping(from, self.last_now);
        let connections = &mut self.tables.connections;
        let found = connections.find(&from);
        let attempt =
            found.filter(|at| connections.slot(*at).is_some_and(|slot| slot.connection.awaits_pong()));
        if sent.is_some() || attempt.is_some() {
            let version = self.state.learn_version(&self.config, from, data);
            if let Some(slot) = attempt {
                self.with(slot, |connection, cx| connection.on_pong(cx.now, version));
            }
        }
        match sent {
            Some(sent) => {
                let latency = self.last_now.saturating_since(sent);
                // Data with an invalid length prefix is passed on unchanged.
                let data = self.config.received_pong_framing(data).unframe(data).unwrap_or(data);
                self.keep_unconnected(from, guid, UnconnectedKind::Pong(latency), data);
            }
            None if attempt.is_some() => {}
            None => self.stats.drop(DropReason::Unexpected),
        }
    }

    fn handle_out_of_band(&mut self, from: SocketAddr, guid: Guid, data: &[u8]) {
        match (self.config.out_of_band, data.split_first()) {
            (OutOfBand::Refuse, _) => self.stats.drop(DropReason::Unexpected),
            (OutOfBand::Accept, Some((&id::ADVERTISE_SYSTEM, rest))) => {
                self.keep_unconnected(from, guid, UnconnectedKind::Advertisement, rest);
            }
            (OutOfBand::Accept, _) => self.keep_unconnected(from, guid, UnconnectedKind::OutOfBand, data),
        }
    }

    /// Stores a message from an unconnected peer until the application reads it.
    fn keep_unconnected(&mut self, from: SocketAddr, guid: Guid, kind: UnconnectedKind, data: &[u8]) {
        let Self { state, tables, stats, .. } = self;
        state.keep_unconnected(&mut tables.pool, stats, (from, guid), kind, data);
    }

    /// Handles request 1 without creating a connection.
    ///
    /// If no cookie is required, only fixed-size hashed tables record the source. The response is never longer than the
    /// request.
    fn handle_request_1(&mut self, from: SocketAddr, protocol: u8, mtu: u16, length: usize) {
        /// The sizes of reply 1 in bytes: with a cookie, and with a cookie and a key.
        const WITH_COOKIE: usize = 32;
        const WITH_KEY: usize = 96;
        let longest_answer = if self.config.has_server_key() { WITH_KEY } else { WITH_COOKIE };
        if self.config.max_incoming == 0 {
            self.stats.drop(DropReason::Unexpected);
        } else if length < longest_answer {
            self.stats.drop(DropReason::WouldAmplify);
        } else if self.state.is_banned(from, self.last_now) {
            self.stats.drop(DropReason::Banned);
            self.state.responder.answer(&mut self.stats, from, Answer::Refused(Refusal::Banned));
        } else if self.config.accepted_versions.contains(&protocol) {
            let (mtu, requires_cookie) = (self.config.clamp_mtu(mtu, from), self.requires_cookies());
            let reply = Reply1 { mtu, requires_cookie, list_length: ListLength::of_version(protocol) };
            let Self { state, config, stats, last_now, .. } = self;
            state.responder.answer_request_1(config, stats, *last_now, from, reply, length);
        } else {
            self.state.responder.answer(&mut self.stats, from, Answer::Incompatible);
        }
    }

    /// Handles request 2 by the table in docs/raknet.md#request-2.
    ///
    /// Precondition: the source address is validated, or the amplification budget was charged.
    fn handle_request_2(&mut self, request: &Request2<'_>) {
        self.forget_rejections(request);
        let by_address = self.find_or_evict(&request.from);
        let answer = match (by_address, self.has_guid(request.guid)) {
            (Some(slot), is_known) => self.answer_known_address(slot, request, is_known),
            (None, true) => Some(Answer::Refused(Refusal::AlreadyConnected)),
            (None, false) if request.is_too_plain(&self.config) => {
                Some(Answer::Refused(Refusal::AttemptFailed))
            }
            (None, false) => self.accept(request),
        };
        if let Some(answer) = answer {
            self.state.responder.answer(&mut self.stats, request.from, answer);
        }
    }

    /// Frees the address and the GUID of a refused client that sends a new request.
    ///
    /// The connection may still exist, because the client has not acknowledged the refusal.
    fn forget_rejections(&mut self, request: &Request2<'_>) {
        let connections = &self.tables.connections;
        let slots = [connections.at(&request.from), self.state.slot_of(request.guid, connections)];
        for at in slots.into_iter().flatten() {
            let is_rejecting =
                self.tables.connections.slot(at).is_some_and(|slot| slot.connection.is_rejecting());
            // If the refusal has not been sent yet, close the connection; its slot is free for the next request.
            if is_rejecting && !self.release_if_evictable(at) {
                self.with(at, Connection::forget_rejection);
            }
        }
    }

    /// Returns the response to a second request from the address of an existing connection.
    ///
    /// If this peer is connecting to that address too (simultaneous open), both attempts result in one connection.
    fn answer_known_address(&mut self, slot: u16, request: &Request2<'_>, is_known: bool) -> Option<Answer> {
        let Request2 { from, guid, mtu, .. } = *request;
        let known = self.tables.connections.slot(slot);
        if known.is_some_and(|slot| slot.connection.is_unverified_with(guid)) {
            return self.answer_again(slot, request);
        }
        let is_plain = request.challenge.is_none() && !request.is_too_plain(&self.config);
        let may_cross = !is_known && is_plain && !self.state.is_banned(from, self.last_now);
        let crosses =
            may_cross && self.with(slot, |connection, cx| connection.cross(cx, guid, mtu)) == Some(true);
        Some(if crosses { Answer::Reply2 { mtu } } else { Answer::Refused(Refusal::AlreadyConnected) })
    }

    /// Returns the response to a retransmitted second request of a half-open connection.
    ///
    /// The request must be of the same kind: it turns neither a plain connection into a secure one nor a secure one
    /// into a plain one.
    fn answer_again(&mut self, slot: u16, request: &Request2<'_>) -> Option<Answer> {
        let connection = &self.tables.connections.slot(slot)?.connection;
        match (&request.challenge, connection.is_plain()) {
            (None, true) => return Some(Answer::Reply2 { mtu: connection.mtu() }),
            (Some(challenge), false) => self.answer_challenge_again(slot, request, challenge),
            (None, false) | (Some(_), true) => self.stats.drop(DropReason::Unexpected),
        }
        None
    }

    /// Returns the source of a second request, or the reason to drop it.
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
            || self.state.responder.charge_reply_2(&self.config, &from, length);
        if is_paid { Ok(source) } else { Err(DropReason::WouldAmplify) }
    }

    /// Verifies the cookie; returns an error if it is wrong, or missing although it is required.
    fn source(
        &mut self,
        from: SocketAddr,
        guid: Guid,
        security: ClientSecurity<'_>,
    ) -> Result<Source, DropReason> {
        match (self.config.cookie_policy(), security) {
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

    /// Returns the address list length of a client without a cookie, or the reason to drop its request.
    ///
    /// An error means that a cookie was requested from the client, or that another source has replaced its table entry.
    /// In the second case the client repeats request 1.
    fn list_length_without_cookie(&mut self, from: SocketAddr, guid: Guid) -> Result<ListLength, DropReason> {
        let kept = self.state.responder.cookieless.list_length(&self.config.secret, &from);
        if let Some(list_length) = kept {
            return Ok(list_length);
        }
        let connections = &self.tables.connections;
        let known = connections.at(&from).and_then(|slot| connections.slot(slot));
        let is_repeated = known.is_some_and(|slot| slot.connection.is_unverified_with(guid));
        if !is_repeated && self.requires_cookies() {
            return Err(DropReason::MissingCookie);
        }
        let only = ListLength::of_versions(&self.config.accepted_versions);
        match self.config.cookies {
            // New sources must not displace this client, because it has no cookie to fall back on.
            CookiePolicy::Off => {
                Ok(only.unwrap_or_else(|| ListLength::of_version(self.config.protocol_version)))
            }
            CookiePolicy::Required | CookiePolicy::UnderLoad { .. } | CookiePolicy::Automatic => {
                only.or_else(|| is_repeated.then_some(ListLength::Ten)).ok_or(DropReason::WouldAmplify)
            }
        }
    }

    /// Returns true if reply 1 requests a cookie under the current load.
    fn requires_cookies(&mut self) -> bool {
        match self.config.cookie_policy() {
            CookiePolicy::Required => true,
            CookiePolicy::Off => false,
            CookiePolicy::UnderLoad { .. } | CookiePolicy::Automatic => {
                !self.admission.has_unvalidated_left(self.config.unvalidated(), self.last_now)
                    || !self.state.responder.cookieless.has_room(self.last_now)
            }
        }
    }

    /// Returns true if an open or half-open connection has this GUID.
    fn has_guid(&mut self, guid: Guid) -> bool {
        let known = self.state.slot_of(guid, &self.tables.connections);
        known.is_some_and(|slot| !self.evict_if_over(slot)) || self.admission.is_known_to_others(guid.0)
    }
}
