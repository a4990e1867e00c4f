//! Whether a client whose second request is right gets a slot (docs/raknet.md#request-2).

use core::convert::Infallible;
use core::net::SocketAddr;

use super::bans::AddressPattern;
use super::config::CookiePolicy;
use super::connection::{Connection, ConnectionProtection};
use super::requests::{ClientAddress, Request2, Source};
use super::responder::{Answer, Reply1};
use super::stats::DropReason;
use super::types::RakNet;
use super::wire::Guid;
use super::wire::offline::Refusal;
use crate::endpoint::{Connection as _, Peer, Rejection, Request, Slot};

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
