//! The places of clients, where a peer decides together with others whom it lets in.

use core::net::IpAddr;

use super::client_limits::{ClientLimits, Origin};
use super::incoming::{Incoming, IncomingCounts};
use super::protocol::{Connection, Peer, Protocol};
use super::reservation::{Rejection, Request};
use crate::rate_limit::{Allowance, Rates};

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
            None => self.incoming.all.into(),
        }
    }

    /// Whether all peers together have an answer left for a peer without a connection; nothing if this peer decides alone.
    pub(crate) fn admits_answer(&self, secret: &[u8; 16], rates: Rates, to: IpAddr) -> Option<bool> {
        self.member.as_ref().map(|member| member.admits_answer(secret, rates, self.last_now, to))
    }

    /// Whether one more client may come in without a proof of its address: by the ration of this peer, or by that of all
    /// peers if they decide together, and as long as fewer than the events of `allowance` are there now.
    pub(crate) fn has_unvalidated_left(&self, allowance: Allowance) -> bool {
        match &self.member {
            Some(member) => member.has_unvalidated_left(allowance, self.last_now),
            None => {
                let IncomingCounts { unvalidated, ration, .. } = &self.incoming;
                *unvalidated < allowance.events && ration.is_left(allowance, self.last_now)
            }
        }
    }

    /// Takes one client that comes in without a proof of its address from the ration of this peer, or from that of all peers.
    /// The ration gets back what is not filled up again when the address is validated.
    pub(crate) fn take_unvalidated(&mut self, allowance: Allowance) {
        match &self.member {
            Some(member) => member.take_unvalidated(allowance, self.last_now),
            None => {
                self.incoming.ration.take(allowance, self.last_now);
            }
        }
    }

    /// Tells the peers that decide together with this one how a connection counts now, if it counted like `before`; a peer
    /// that decides alone gives its ration back.
    pub(crate) fn share_change(&mut self, at: u16, before: Option<Incoming>) {
        if let Some(before) = before {
            self.share_change_of(at, before);
        }
    }

    #[cold]
    fn share_change_of(&mut self, at: u16, before: Incoming) {
        let Some(slot) = self.slot(at) else { return };
        let (after, since, now) = (slot.incoming, slot.connection.unvalidated_since(), self.last_now);
        match &self.member {
            Some(member) => member.change(at, (before, after), since, now),
            None if cfg!(feature = "server") && before.is_validated_by(after) => {
                self.incoming.ration.give_back(since, now);
            }
            None => {}
        }
    }

    /// Whether the limits let another client of this address in, as far as this peer knows of others. Connections whose
    /// address is not validated may be forged by anyone, so they keep out only clients whose address is not validated either.
    pub(crate) fn has_place_for(
        &mut self,
        address: IpAddr,
        limits: ClientLimits,
        is_validated: bool,
    ) -> bool {
        // As long as there are fewer clients in all, none of them has to be looked at.
        if self.incoming.all < limits.least() {
            return true;
        }
        let Some(origin) = Origin::of(address) else { return true };
        if self.incoming.is_crowded((origin, limits), is_validated) {
            return false;
        }
        let (mut of_address, mut of_network) = (0_u16, 0_u16);
        let keeps_out = |other: Incoming| other.is_counted() && !(is_validated && other.is_unvalidated());
        let incoming = self.occupied().filter(|(_, slot)| keeps_out(slot.incoming));
        let origins = incoming.filter_map(|(_, slot)| Origin::of(slot.remote?.ip()));
        for other in origins {
            of_address += u16::from(other.address == origin.address);
            of_network += u16::from(other.network == origin.network);
        }
        let has_place = of_address < limits.address && of_network < limits.network;
        if !has_place {
            self.incoming.note_crowded((origin, limits), is_validated);
        }
        has_place
    }
}
