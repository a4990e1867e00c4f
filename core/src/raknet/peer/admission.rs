//! Second requests of clients, of which each asks for a slot: whether it gets one, and what a client that wants keys is
//! answered (docs/secure.md#request-2-the-challenge-64-bytes).

use core::convert::Infallible;
use core::net::SocketAddr;

use super::bans::AddressPattern;
use super::responder::{Answer, Reply1};
#[cfg(feature = "secure")]
use crate::endpoint::ConnectionId;
use crate::endpoint::{Connection as _, Peer, Rejection, Request, Slot};
#[cfg(feature = "secure")]
use crate::raknet::config::Config;
use crate::raknet::config::{CookiePolicy, RakNet};
#[cfg(feature = "secure")]
use crate::raknet::connection::ChallengeRequest;
use crate::raknet::connection::handshake::internal_addresses::ListLength;
use crate::raknet::connection::{Connection, ConnectionProtection};
#[cfg(feature = "secure")]
use crate::raknet::security::SecurePeer;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::Guid;
use crate::raknet::wire::offline::{ClientSecurity, Refusal};
#[cfg(feature = "secure")]
use crate::secure::{AcceptedToken, HandshakeError, Negotiated, ReplyFields};
#[cfg(feature = "secure")]
use crate::time::Instant;

/// A second request whose cookie was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request2<'r> {
    pub(super) from: SocketAddr,
    pub(super) guid: Guid,
    /// The MTU of the connection.
    pub(super) mtu: u16,
    /// Bytes of the request.
    pub(super) length: usize,
    pub(super) source: Source,
    /// What the client wants keys with; none for a plain connection.
    pub(super) challenge: Option<Challenge<'r>>,
}

/// What a client's second request shows of the address that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAddress {
    /// It has given a cookie back, so the address is its own.
    Validated,
    /// No cookie is asked of it. It may be forged.
    Unvalidated,
}

/// What a second request shows of its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) address: ClientAddress,
    /// By the version of the first request.
    pub(super) list_length: ListLength,
}

/// A challenge, and what belongs to it in the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenge<'r> {
    cookie: u32,
    bytes: &'r [u8],
    server_address: SocketAddr,
    /// The MTU as the request has it.
    mtu: u16,
}

impl<'r> Challenge<'r> {
    /// The challenge in the fields of a request, if there is one.
    pub(super) const fn in_request(
        security: ClientSecurity<'r>,
        server_address: SocketAddr,
        mtu: u16,
    ) -> Option<Self> {
        match security {
            ClientSecurity::None | ClientSecurity::Cookie(_) => None,
            ClientSecurity::Challenge { cookie, challenge } => {
                Some(Self { cookie, bytes: challenge, server_address, mtu })
            }
        }
    }
}

impl Peer<'_, RakNet> {
    /// Whether one more client may be let in without a cookie, by all peers together or by this one if it decides alone.
    pub(super) fn may_come_unvalidated(&self) -> bool {
        self.config.unvalidated().is_none_or(|allowance| self.has_unvalidated_left(allowance))
    }

    /// A client is let in without a cookie: there was a place left, and at worst another peer of the server has just taken it too.
    fn let_in_unvalidated(&mut self) {
        if let Some(allowance) = self.config.unvalidated() {
            self.take_unvalidated(allowance);
        }
    }

    /// Gives a client a slot, or says why not. No answer lets it try again.
    pub(super) fn accept(&mut self, request: &Request2<'_>) -> Option<Answer> {
        let Request2 { from, guid, mtu, length, source: Source { address: source, list_length }, .. } =
            *request;
        if let Err(rejection) = self.rejection(from, source) {
            return self.turn_away(rejection, request);
        }
        let Some(slot) = self.vacant_slot() else {
            return self.evict_half_open(source);
        };
        let protection = match &request.challenge {
            None => ConnectionProtection::new(self.config.protection),
            Some(challenge) => match self.answer_challenge(request, challenge) {
                Ok(protection) => protection,
                Err(answer) => {
                    self.tables.vacant.push(slot);
                    return answer;
                }
            },
        };
        if let Err(rejection) = self.reserve(slot, &self.reservation(from, guid, source)) {
            self.tables.vacant.push(slot);
            return self.turn_away(rejection, request);
        }
        let budget = (source == ClientAddress::Unvalidated).then(|| {
            self.let_in_unvalidated();
            self.state.responder.connection_budget(&self.config, &from, mtu, length)
        });
        let accepted = self.insert(slot, from, |connection, cx| {
            connection.accept(cx, guid, mtu, list_length, protection);
            if let Some(budget) = budget {
                connection.require_validation(budget);
            }
            Ok::<_, Infallible>(())
        });
        // A connection with keys writes its own answer.
        accepted.ok().filter(|()| request.challenge.is_none()).map(|()| Answer::Reply2 { mtu })
    }

    /// Asks a client for a cookie after all: others have taken the places without one since it got its reply 1. It is asked once
    /// for each first request, since a client that knows no cookies repeats its second one for each reply. The answer is shorter
    /// than the request.
    fn ask_for_cookie(&mut self, request: &Request2<'_>) -> Option<Answer> {
        let Request2 { from, mtu, source, .. } = *request;
        let Self { state, config, .. } = self;
        let may_ask =
            config.cookies != CookiePolicy::Off && state.responder.cookieless.remove(&config.secret, &from);
        may_ask.then_some(Answer::Reply1(Reply1 { mtu, asks_cookie: true, list_length: source.list_length }))
    }

    /// Whether this peer alone would let a client in, or why not.
    fn rejection(&mut self, from: SocketAddr, source: ClientAddress) -> Result<(), Rejection> {
        let is_validated = source == ClientAddress::Validated;
        if self.is_banned(from) {
            return Err(Rejection::Banned);
        }
        if self.connected_recently(from, is_validated) {
            let may_prove = !is_validated && !self.connected_recently(from, true);
            return Err(if may_prove { Rejection::Unvalidated } else { Rejection::Recent });
        }
        // Before a connection of others has to make room.
        if !is_validated && !self.may_come_unvalidated() {
            return Err(Rejection::Unvalidated);
        }
        let is_full = self.incoming.all >= self.config.max_incoming;
        if is_full && self.incoming.half_open == 0 {
            // Nothing makes room, so no connection has to be looked at.
            return Err(Rejection::Full);
        }
        if !is_validated && !is_full && !self.admits_half_open(from) {
            return Err(Rejection::HalfOpen);
        }
        let limits = self.config.client_limits();
        if !self.has_place_for(from.ip(), limits, is_validated) {
            let may_prove = !is_validated && self.has_place_for(from.ip(), limits, true);
            return Err(if may_prove { Rejection::Unvalidated } else { Rejection::Crowded });
        }
        if is_full { Err(Rejection::Full) } else { Ok(()) }
    }

    /// What is asked of the peers that decide together with this one.
    fn reservation(&self, from: SocketAddr, guid: Guid, source: ClientAddress) -> Request {
        let is_validated = source == ClientAddress::Validated;
        Request {
            identity: Some(guid.0),
            address: from,
            max_incoming: self.config.max_incoming,
            interval: self.config.connection_interval,
            is_validated,
            half_open: (!is_validated).then_some(self.config.max_half_open_per_network),
            limits: self.config.client_limits(),
        }
    }

    /// The answer to a client that gets no connection.
    fn turn_away(&mut self, rejection: Rejection, request: &Request2<'_>) -> Option<Answer> {
        match rejection {
            Rejection::Banned => Some(Answer::Refused(Refusal::Banned)),
            Rejection::Known => Some(Answer::Refused(Refusal::AlreadyConnected)),
            Rejection::Recent => Some(Answer::Refused(Refusal::RecentlyConnected)),
            Rejection::Full => self.evict_half_open(request.source.address),
            Rejection::Crowded => {
                self.stats.drop(DropReason::AddressLimit);
                Some(Answer::Refused(Refusal::NoFreeIncomingConnections))
            }
            Rejection::Unvalidated => {
                self.stats.drop(DropReason::CookieRequested);
                self.ask_for_cookie(request)
            }
            Rejection::HalfOpen => {
                self.stats.drop(DropReason::HalfOpenLimit);
                self.ask_for_cookie(request)
            }
            Rejection::Refused => Some(Answer::Refused(Refusal::NoFreeIncomingConnections)),
            Rejection::Ignored => None,
        }
    }

    /// Makes room by ending the connection that has been half open the longest, if there is one: its client has had
    /// its chance, and the newcomer asks again in half a second. A newcomer whose address is not validated ends only what
    /// is not validated either, and no more often than clients may be let in without a cookie.
    fn evict_half_open(&mut self, source: ClientAddress) -> Option<Answer> {
        if self.incoming.half_open == 0 {
            return Some(Answer::Refused(Refusal::NoFreeIncomingConnections));
        }
        let may_evict = |other: &Slot<Connection>| {
            other.incoming.is_half_open()
                && (source == ClientAddress::Validated || other.incoming.is_unvalidated())
        };
        let half_open = self
            .occupied()
            .filter(|(_, slot)| may_evict(slot))
            .map(|(at, slot)| (slot.connection.half_open_since(), at));
        let Some((_, slot)) = half_open.min() else {
            return Some(Answer::Refused(Refusal::NoFreeIncomingConnections));
        };
        if source == ClientAddress::Unvalidated {
            self.let_in_unvalidated();
        }
        self.stats.drop(DropReason::HalfOpenLimit);
        self.with(slot, |connection, cx| connection.disconnect(cx));
        None
    }

    /// Whether the address opened a connection a moment ago. One that may be forged makes no client wait that has proved its
    /// address.
    fn connected_recently(&self, from: SocketAddr, is_validated: bool) -> bool {
        let Some(interval) = self.config.connection_interval else { return false };
        let is_recent = |slot: &Slot<Connection>| {
            slot.remote.is_some_and(|remote| remote.ip() == from.ip())
                && !(is_validated && slot.connection.is_unvalidated())
                && slot.connection.made_at + interval > self.last_now
        };
        !from.ip().is_loopback() && self.occupied().any(|(_, slot)| is_recent(slot))
    }

    /// Without a cookie an address may be forged: one network cannot take all slots with connections that never open.
    fn admits_half_open(&self, from: SocketAddr) -> bool {
        if self.incoming.half_open < self.config.max_half_open_per_network {
            return true;
        }
        let network = AddressPattern::network_of(from.ip());
        let half_open = self.occupied().filter(|(_, slot)| {
            slot.incoming.is_half_open() && slot.remote.is_some_and(|remote| network.matches(remote.ip()))
        });
        half_open.count() < usize::from(self.config.max_half_open_per_network)
    }
}

/// The parts of a request that the handshake depends on.
#[cfg(feature = "secure")]
const fn of_client<'r>(
    config: &Config,
    request: &Request2<'_>,
    challenge: &Challenge<'r>,
) -> ChallengeRequest<'r> {
    let negotiated = Negotiated {
        server: config.guid,
        client: request.guid,
        cookie: challenge.cookie,
        server_address: challenge.server_address,
        mtu: challenge.mtu,
    };
    let reply = ReplyFields { client: request.from, mtu: request.mtu };
    ChallengeRequest { negotiated, challenge: challenge.bytes, reply }
}

#[cfg(feature = "secure")]
impl Peer<'_, RakNet> {
    /// What the connection of a client with a challenge begins with; or how the client is told that there is none, if it is.
    fn answer_challenge(
        &mut self,
        request: &Request2<'_>,
        challenge: &Challenge<'_>,
    ) -> Result<ConnectionProtection, Option<Answer>> {
        let Self { config, state, stats, last_now, .. } = self;
        let answered =
            of_client(config, request, challenge).respond(config, &mut state.secure, stats, *last_now);
        match answered {
            Ok((handshake, datagrams)) => Ok(ConnectionProtection::half_open(handshake, datagrams)),
            Err(HandshakeError::OtherSuite) => Err(Some(Answer::Refused(Refusal::AttemptFailed))),
            Err(_) => Err(None),
        }
    }

    /// Handles another challenge of a client whose connection is half open.
    pub(super) fn answer_challenge_again(
        &mut self,
        slot: u16,
        request: &Request2<'_>,
        challenge: &Challenge<'_>,
    ) {
        let request = of_client(&self.config, request, challenge);
        self.with(slot, |connection, cx| connection.on_challenge(cx, &request));
    }

    /// Whom the other peer of a secure connection has shown to be, while the connection exists. None for a plain one, and
    /// before its keys are agreed on.
    ///
    /// A client that trusts any key stores the [`KnownServer`](crate::secure::KnownServer) that this returns, and trusts that
    /// the next time. A server ends the connections of clients whose identity it does not want.
    #[must_use]
    pub fn secure_peer(&self, id: ConnectionId) -> Option<SecurePeer> {
        self.get(id)?.connection.secure_peer()
    }

    /// What the connect token of the client said, while the connection exists. None if this end is not a server that
    /// [asks for tokens](crate::secure::ServerIdentity::tokens).
    #[must_use]
    pub fn accepted_token(&self, id: ConnectionId) -> Option<&AcceptedToken> {
        self.get(id)?.connection.accepted_token()
    }

    /// Tells how many seconds since 1970 it is `now`, by which connect tokens expire. The peer counts on from there, and may be
    /// told again whenever its driver knows better. Until it is told, every token has expired.
    pub fn set_unix_time(&mut self, now: Instant, seconds: u64) {
        self.state.secure.set_unix_time(now, seconds);
    }
}

// A peer that is built without security.
#[cfg(not(feature = "secure"))]
impl Peer<'_, RakNet> {
    /// Who has no key answers no challenge.
    fn answer_challenge(
        &mut self,
        _: &Request2<'_>,
        _: &Challenge<'_>,
    ) -> Result<ConnectionProtection, Option<Answer>> {
        self.stats.drop(DropReason::Unexpected);
        Err(None)
    }

    /// Who has no key has no connection that a challenge is for.
    pub(super) fn answer_challenge_again(&mut self, _: u16, _: &Request2<'_>, _: &Challenge<'_>) {
        self.stats.drop(DropReason::Unexpected);
    }
}
