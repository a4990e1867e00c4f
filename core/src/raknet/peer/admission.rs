//! Admission of clients by their second request.
//!
//! It includes the answer to a client's challenge (docs/secure.md#request-2-the-challenge-64-bytes).

use core::convert::Infallible;
use core::net::SocketAddr;

use super::bans::AddressPattern;
use super::responder::{Answer, Reply1};
use super::state::State;
#[cfg(feature = "secure")]
use crate::endpoint::ConnectionId;
use crate::endpoint::{Connection as _, ConnectionTable, Peer, Rejection, Request, Slot};
use crate::raknet::config::{Config, CookiePolicy, RakNet};
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
use crate::time::Instant;

/// A second request. If it contains a cookie, the cookie has been verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request2<'r> {
    pub(super) from: SocketAddr,
    pub(super) guid: Guid,
    /// The negotiated MTU.
    pub(super) mtu: u16,
    /// The size of the request datagram in bytes.
    pub(super) length: usize,
    pub(super) source: Source,
    /// The challenge of a client that requests a secure connection.
    pub(super) challenge: Option<Challenge<'r>>,
}

/// The result of address validation by a client's second request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAddress {
    /// The client returned a valid cookie.
    Validated,
    /// No cookie was requested, so the address may be forged.
    Unvalidated,
}

/// The sender of a second request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) address: ClientAddress,
    /// Derived from the protocol version in the first request.
    pub(super) list_length: ListLength,
}

/// A challenge, and the fields of the request that the handshake authenticates.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "secure"), expect(dead_code, reason = "only secure connections read all fields"))]
pub(super) struct Challenge<'r> {
    cookie: u32,
    bytes: &'r [u8],
    server_address: SocketAddr,
    /// The MTU field of the request.
    mtu: u16,
}

impl<'r> Challenge<'r> {
    /// Returns the challenge in the security fields, if present.
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

impl Request2<'_> {
    /// Returns true if this peer requires secure connections and the client requests a plain one.
    pub(super) fn is_too_plain(&self, config: &Config) -> bool {
        self.challenge.is_none() && config.requires_security()
    }

    /// Returns the request for a slot in shared admission.
    fn reservation(&self, config: &Config) -> Request {
        let is_validated = self.source.address == ClientAddress::Validated;
        Request {
            identity: Some(self.guid.0),
            address: self.from,
            max_incoming: config.max_incoming,
            interval: config.connection_interval,
            is_validated,
            half_open: (!is_validated).then_some(config.max_half_open_per_network),
            limits: config.client_limits(),
        }
    }

    /// Requests a cookie after request 2, because other clients have used up the limit for unvalidated clients since
    /// request 1.
    ///
    /// The cookie is requested once per first request, because a client without cookie support repeats its second
    /// request after each reply. The response is never longer than the request.
    fn request_cookie(&self, config: &Config, state: &mut State<'_>) -> Option<Answer> {
        let Self { from, mtu, source, .. } = *self;
        let may_request =
            config.cookies != CookiePolicy::Off && state.responder.cookieless.remove(&config.secret, &from);
        may_request.then_some(Answer::Reply1(Reply1 {
            mtu,
            requires_cookie: true,
            list_length: source.list_length,
        }))
    }
}

impl Peer<'_, RakNet> {
    /// Assigns a slot to a client, or returns the refusal.
    ///
    /// Returns `None` if no response is sent; the client then retransmits its request.
    pub(super) fn accept(&mut self, request: &Request2<'_>) -> Option<Answer> {
        let Request2 { from, guid, mtu, length, source: Source { address: source, list_length }, .. } =
            *request;
        if let Err(rejection) = self.rejection(request) {
            return self.refuse(rejection, request);
        }
        let Some(slot) = self.vacant_slot() else {
            return self.evict_half_open(source);
        };
        let protection = match &request.challenge {
            None => ConnectionProtection::new(self.config.protection),
            Some(challenge) => match request.answer(challenge, self) {
                Ok(protection) => protection,
                Err(answer) => {
                    self.tables.connections.return_vacant(slot);
                    return answer;
                }
            },
        };
        let reservation = request.reservation(&self.config);
        if let Err(rejection) = self.admission.reserve(self.last_now, slot, &reservation) {
            self.tables.connections.return_vacant(slot);
            return self.refuse(rejection, request);
        }
        let budget = (source == ClientAddress::Unvalidated).then(|| {
            self.admission.take_unvalidated(self.config.unvalidated(), self.last_now);
            self.state.responder.connection_budget(&self.config, &from, mtu, length)
        });
        let accepted = self.insert(slot, from, |connection, cx| {
            connection.accept(cx, guid, mtu, list_length, protection);
            if let Some(budget) = budget {
                connection.require_validation(budget);
            }
            Ok::<_, Infallible>(())
        });
        // A secure connection sends its own reply 2.
        accepted.ok().filter(|()| request.challenge.is_none()).map(|()| Answer::Reply2 { mtu })
    }

    /// Returns an error if this peer's own limits refuse the client.
    fn rejection(&mut self, request: &Request2<'_>) -> Result<(), Rejection> {
        let Self { config, state, admission, tables, last_now, .. } = self;
        let (connections, now) = (&tables.connections, *last_now);
        let (from, is_validated) = (request.from, request.source.address == ClientAddress::Validated);
        if state.is_banned(from, now) {
            return Err(Rejection::Banned);
        }
        if connected_recently(connections, config, now, from, is_validated) {
            let may_prove = !is_validated && !connected_recently(connections, config, now, from, true);
            return Err(if may_prove { Rejection::Unvalidated } else { Rejection::Recent });
        }
        // Checked before another client's connection is evicted.
        if !is_validated && !admission.has_unvalidated_left(config.unvalidated(), now) {
            return Err(Rejection::Unvalidated);
        }
        let is_full = admission.incoming() >= config.max_incoming;
        if is_full && admission.half_open() == 0 {
            // Only half-open connections can be evicted, and there are none.
            return Err(Rejection::Full);
        }
        let limit = config.max_half_open_per_network;
        if !is_validated
            && !is_full
            && admission.half_open() >= limit
            && half_open_of(connections, from) >= limit.into()
        {
            return Err(Rejection::HalfOpen);
        }
        let limits = config.client_limits();
        if !admission.has_place_for(connections, from.ip(), limits, is_validated) {
            let may_prove = !is_validated && admission.has_place_for(connections, from.ip(), limits, true);
            return Err(if may_prove { Rejection::Unvalidated } else { Rejection::Crowded });
        }
        if is_full { Err(Rejection::Full) } else { Ok(()) }
    }

    /// Returns the response to a refused client, if any.
    fn refuse(&mut self, rejection: Rejection, request: &Request2<'_>) -> Option<Answer> {
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
                request.request_cookie(&self.config, &mut self.state)
            }
            Rejection::HalfOpen => {
                self.stats.drop(DropReason::HalfOpenLimit);
                request.request_cookie(&self.config, &mut self.state)
            }
            Rejection::Refused => Some(Answer::Refused(Refusal::NoFreeIncomingConnections)),
            Rejection::Ignored => None,
        }
    }

    /// Evicts the oldest half-open connection, if there is one.
    ///
    /// The new client retransmits its request half a second later. A client without a validated address evicts only
    /// unvalidated connections, and no more often than the limit for unvalidated clients allows.
    fn evict_half_open(&mut self, source: ClientAddress) -> Option<Answer> {
        if self.admission.half_open() == 0 {
            return Some(Answer::Refused(Refusal::NoFreeIncomingConnections));
        }
        let may_evict = |other: &Slot<Connection>| {
            other.incoming.is_half_open()
                && (source == ClientAddress::Validated || other.incoming.is_unvalidated())
        };
        let half_open = self
            .tables
            .connections
            .occupied()
            .filter(|(_, slot)| may_evict(slot))
            .map(|(at, slot)| (slot.connection.half_open_since(), at));
        let Some((_, slot)) = half_open.min() else {
            return Some(Answer::Refused(Refusal::NoFreeIncomingConnections));
        };
        if source == ClientAddress::Unvalidated {
            self.admission.take_unvalidated(self.config.unvalidated(), self.last_now);
        }
        self.stats.drop(DropReason::HalfOpenLimit);
        self.with(slot, |connection, cx| connection.disconnect(cx));
        None
    }
}

/// Returns true if the address opened a connection less than `connection_interval` ago.
///
/// An unvalidated connection does not delay a validated client, because it may be forged.
fn connected_recently(
    connections: &ConnectionTable<'_, Connection>,
    config: &Config,
    now: Instant,
    from: SocketAddr,
    is_validated: bool,
) -> bool {
    let Some(interval) = config.connection_interval else { return false };
    let is_recent = |slot: &Slot<Connection>| {
        slot.remote.is_some_and(|remote| remote.ip() == from.ip())
            && !(is_validated && slot.connection.is_unvalidated())
            && slot.connection.made_at + interval > now
    };
    !from.ip().is_loopback() && connections.occupied().any(|(_, slot)| is_recent(slot))
}

/// Returns the number of half-open connections from the network of `from`.
///
/// Without cookies an address may be forged. The limit prevents one network from filling all slots.
fn half_open_of(connections: &ConnectionTable<'_, Connection>, from: SocketAddr) -> usize {
    let network = AddressPattern::network_of(from.ip());
    let half_open = connections.occupied().filter(|(_, slot)| {
        slot.incoming.is_half_open() && slot.remote.is_some_and(|remote| network.matches(remote.ip()))
    });
    half_open.count()
}

/// Builds the input of the secure handshake from request 2 and its challenge.
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
impl Request2<'_> {
    /// Computes the handshake and returns the initial packet protection of the connection.
    ///
    /// On an error, returns the refusal to send, if any.
    fn answer(
        &self,
        challenge: &Challenge<'_>,
        peer: &mut Peer<'_, RakNet>,
    ) -> Result<ConnectionProtection, Option<Answer>> {
        let Peer { config, state, stats, last_now, .. } = peer;
        let answered =
            of_client(config, self, challenge).respond(config, &mut state.secure, stats, *last_now);
        match answered {
            Ok((handshake, datagrams)) => Ok(ConnectionProtection::half_open(handshake, datagrams)),
            Err(HandshakeError::OtherSuite) => Err(Some(Answer::Refused(Refusal::AttemptFailed))),
            Err(_) => Err(None),
        }
    }
}

#[cfg(feature = "secure")]
impl Peer<'_, RakNet> {
    /// Handles a retransmitted challenge for a half-open connection.
    pub(super) fn answer_challenge_again(
        &mut self,
        slot: u16,
        request: &Request2<'_>,
        challenge: &Challenge<'_>,
    ) {
        let request = of_client(&self.config, request, challenge);
        self.with(slot, |connection, cx| connection.on_challenge(cx, &request));
    }

    /// Returns the authenticated identity of the remote peer in a secure connection.
    ///
    /// Returns `None` for a plain connection, and until its keys are agreed on. A client that trusts any key should
    /// store the returned [`KnownServer`](crate::secure::KnownServer) and trust only that from then on. A server
    /// should disconnect clients with an unacceptable identity.
    #[must_use]
    pub fn secure_peer(&self, id: ConnectionId) -> Option<SecurePeer> {
        self.tables.connections.get(id)?.connection.secure_peer()
    }

    /// Returns the contents of the client's connect token, while the connection exists.
    ///
    /// Returns `None` unless this peer is a server that [requires tokens](crate::secure::ServerIdentity::tokens).
    #[must_use]
    pub fn accepted_token(&self, id: ConnectionId) -> Option<&AcceptedToken> {
        self.tables.connections.get(id)?.connection.accepted_token()
    }

    /// Sets the Unix time in seconds at `now`, by which connect tokens expire.
    ///
    /// The peer advances it with its own clock; set it again when the system clock is corrected. Until it is set,
    /// every token counts as expired.
    pub fn set_unix_time(&mut self, now: Instant, seconds: u64) {
        self.state.secure.set_unix_time(now, seconds);
    }
}

// Without the feature `secure` a peer has no keys.
#[cfg(not(feature = "secure"))]
impl Request2<'_> {
    /// Refuses every challenge, because a peer has no key without the feature `secure`.
    fn answer(
        &self,
        _: &Challenge<'_>,
        peer: &mut Peer<'_, RakNet>,
    ) -> Result<ConnectionProtection, Option<Answer>> {
        peer.stats.drop(DropReason::Unexpected);
        Err(None)
    }
}

#[cfg(not(feature = "secure"))]
impl Peer<'_, RakNet> {
    /// Ignores the challenge, because a peer has no key without the feature `secure`.
    pub(super) fn answer_challenge_again(&mut self, _: u16, _: &Request2<'_>, _: &Challenge<'_>) {
        self.stats.drop(DropReason::Unexpected);
    }
}
