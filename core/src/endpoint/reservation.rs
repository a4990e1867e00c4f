//! The place of a client, where a peer decides together with others whom it lets in.

use core::net::IpAddr;
use core::time::Duration;

use super::protocol::{Connection, Peer, Protocol};
use crate::rate_limit::Rates;

/// A client that wants a connection.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "a peer that decides alone asks nobody")
)]
pub(crate) struct Request {
    /// The GUID, where there is one.
    pub(crate) identity: Option<u64>,
    pub(crate) address: IpAddr,
    pub(crate) max_incoming: u16,
    /// How long an address must wait between two connections.
    pub(crate) interval: Option<Duration>,
    /// How many connections of a network may be half open, if that is limited.
    pub(crate) half_open: Option<u16>,
}

/// Why a client gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "a peer that decides alone has its own words")
)]
pub(crate) enum Rejection {
    /// There is a connection with this identity.
    Known,
    /// The address has opened a connection a moment ago.
    Recent,
    /// There are as many connections as there may be.
    Full,
    /// As many connections of the network as may be are half open.
    HalfOpen,
}

impl<P: Protocol> Peer<'_, P> {
    /// Reserves a place among those of all peers for a client that is to get this slot.
    pub(crate) fn reserve(&self, slot: u16, request: &Request) -> Result<(), Rejection> {
        self.member.as_ref().map_or(Ok(()), |member| member.reserve(self.last_now, slot, request))
    }

    /// Whether a client with this identity is connected with any of the peers, as far as they decide together.
    pub(crate) fn is_known_to_others(&self, identity: u64) -> bool {
        self.member.as_ref().is_some_and(|member| member.knows(identity))
    }

    /// How many connections others have opened, at all peers.
    pub(crate) fn all_incoming(&self) -> usize {
        match &self.member {
            Some(member) => member.incoming(),
            None => self.incoming.into(),
        }
    }

    /// Whether all peers together have an answer left for a peer without a connection; nothing if this peer decides alone.
    pub(crate) fn admits_answer(&self, secret: &[u8; 16], rates: Rates, to: IpAddr) -> Option<bool> {
        self.member.as_ref().map(|member| member.admits_answer(secret, rates, self.last_now, to))
    }

    /// Whether a connection counts as half open with all peers.
    #[inline]
    pub(crate) fn is_half_open(&self, slot: u16) -> bool {
        self.member.is_some() && self.slot(slot).is_some_and(|slot| slot.connection.is_half_open())
    }

    /// A connection is not half open any more.
    #[cold]
    pub(crate) fn note_opened(&self, slot: u16) {
        self.member.iter().for_each(|member| member.open(slot));
    }

    /// A connection that another peer opened has ended: its place is free.
    pub(crate) fn give_place_back(&self, slot: u16) {
        self.member.iter().for_each(|member| member.release(slot));
    }
}
