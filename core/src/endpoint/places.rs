//! The places of clients, where a peer decides together with others whom it lets in.

use core::net::IpAddr;

use super::client_limits::{ClientLimits, Origin};
use super::protocol::{Connection, Peer, Protocol};
use super::reservation::{Rejection, Request};
use crate::rate_limit::{Rates, Ration};

impl<P: Protocol> Peer<'_, P> {
    /// Lets this peer decide together with others whom it lets in and whom it answers. To be called before there are
    /// connections.
    #[cfg(all(feature = "alloc", feature = "server"))]
    pub fn share_admission(&mut self, shared: alloc::boxed::Box<dyn super::admission::SharedAdmission>) {
        self.member = Some(super::admission::Member::new(shared));
    }

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

    /// What all peers together may still let in without a proof of its address; nothing if this peer decides alone.
    pub(crate) fn with_shared_ration<R>(&self, act: impl FnMut(&mut Ration) -> R) -> Option<R> {
        self.member.as_ref()?.with_ration(act)
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

    /// Whether the limits let another client of this address in, as far as this peer knows of others.
    pub(crate) fn has_place_for(&self, address: IpAddr, limits: ClientLimits) -> bool {
        // As long as there are fewer clients in all, none of them has to be looked at.
        if self.incoming < limits.least() {
            return true;
        }
        let Some(origin) = Origin::of(address) else { return true };
        let (mut of_address, mut of_network) = (0_u16, 0_u16);
        let incoming = self.occupied().filter(|(_, slot)| slot.is_counted);
        let origins = incoming.filter_map(|(_, slot)| Origin::of(slot.remote?.ip()));
        for other in origins {
            of_address += u16::from(other.address == origin.address);
            of_network += u16::from(other.network == origin.network);
        }
        of_address < limits.address && of_network < limits.network
    }
}
