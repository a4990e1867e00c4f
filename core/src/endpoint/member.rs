//! Admission of clients at one peer, either alone or shared with other peers.

use core::net::IpAddr;

#[cfg(all(feature = "alloc", feature = "server"))]
use super::admission::Member;
use super::incoming::{ClientLimits, Incoming, IncomingCounts, Origin, Rejection, Request};
use super::tables::{ConnectionTable, Occupant, Slot};
use crate::rate_limit::{Allowance, Rates};
use crate::time::Instant;

/// Decides which clients are admitted, by this peer's own counts or by the shared ones.
#[derive(Debug, Default)]
pub(crate) struct AdmissionMember {
    /// The counts of incoming connections at this peer.
    incoming: IncomingCounts,
    /// The membership in shared admission, if any.
    member: Option<Member>,
}

impl AdmissionMember {
    /// Joins shared admission.
    #[cfg(all(feature = "alloc", feature = "server"))]
    pub(crate) fn share(&mut self, shared: alloc::boxed::Box<dyn super::admission::SharedAdmission>) {
        self.member = Some(Member::new(shared));
    }

    /// Returns the number of incoming connections at this peer.
    pub(crate) const fn incoming(&self) -> u16 {
        self.incoming.all
    }

    /// Returns the number of half-open connections at this peer.
    pub(crate) const fn half_open(&self) -> u16 {
        self.incoming.half_open
    }

    /// Returns the number of incoming connections at all peers that share admission.
    pub(crate) fn incoming_at_all(&self) -> usize {
        match &self.member {
            Some(member) => member.incoming(),
            None => self.incoming.all.into(),
        }
    }

    /// Reserves a slot in shared admission for the client that will use `slot` of this peer.
    pub(crate) fn reserve(&self, now: Instant, slot: u16, request: &Request) -> Result<(), Rejection> {
        self.member.as_ref().map_or(Ok(()), |member| member.reserve(now, slot, request))
    }

    /// Returns true if a client with this GUID is connected to any peer that shares admission.
    pub(crate) fn is_known_to_others(&self, identity: u64) -> bool {
        self.member.as_ref().is_some_and(|member| member.contains(identity))
    }

    /// Returns true if the shared rate limit allows a response to an unconnected peer.
    ///
    /// Returns `None` if this peer does not share admission.
    pub(crate) fn admits_answer(
        &self,
        secret: &[u8; 16],
        rates: Rates,
        now: Instant,
        to: IpAddr,
    ) -> Option<bool> {
        self.member.as_ref().map(|member| member.admits_answer(secret, rates, now, to))
    }

    /// Returns true if one more client without a validated address may be admitted.
    ///
    /// The limit counts the clients of this peer, or of all peers that share admission. Without an allowance there is
    /// no limit.
    pub(crate) fn has_unvalidated_left(&self, allowance: Option<Allowance>, now: Instant) -> bool {
        let Some(allowance) = allowance else { return true };
        match &self.member {
            Some(member) => member.has_unvalidated_left(allowance, now),
            None => {
                let IncomingCounts { unvalidated, ration, .. } = &self.incoming;
                *unvalidated < allowance.events && ration.is_left(allowance, now)
            }
        }
    }

    /// Counts one client without a validated address against the limit of this peer, or the shared limit.
    ///
    /// Once the client's address is validated, the limit is credited again. With a shared limit, another peer may take
    /// the last admission between the check and this call; the limit is then exceeded by one.
    pub(crate) fn take_unvalidated(&mut self, allowance: Option<Allowance>, now: Instant) {
        let Some(allowance) = allowance else { return };
        match &self.member {
            Some(member) => member.take_unvalidated(allowance, now),
            None => {
                self.incoming.ration.take(allowance, now);
            }
        }
    }

    /// Updates the status of a connection in the counts after its state has changed.
    pub(crate) fn recount<C: Occupant>(&mut self, slot: &mut Slot<C>, at: u16, now: Instant) {
        let after = slot.connection.incoming();
        let before = core::mem::replace(&mut slot.incoming, after);
        if before != after {
            self.change(at, (before, after), slot.connection.unvalidated_since(), now);
        }
    }

    /// Reports a changed status to shared admission, or updates the ration of this peer.
    #[cold]
    fn change(&mut self, at: u16, (before, after): (Incoming, Incoming), since: Instant, now: Instant) {
        self.incoming.change(before, after);
        match &self.member {
            Some(member) => member.change(at, (before, after), since, now),
            None if cfg!(feature = "server") && before.is_validated_by(after) => {
                self.incoming.ration.refund(since, now);
            }
            None => {}
        }
    }

    /// Returns true if the limits of this peer admit another client from this address.
    ///
    /// An unvalidated connection may be forged, so it only counts against unvalidated clients.
    pub(crate) fn has_place_for<C: Default>(
        &mut self,
        connections: &ConnectionTable<'_, C>,
        address: IpAddr,
        limits: ClientLimits,
        is_validated: bool,
    ) -> bool {
        // With fewer clients in total than the lower limit, there is nothing to count.
        if self.incoming.all < limits.least() {
            return true;
        }
        let Some(origin) = Origin::of(address) else { return true };
        if self.incoming.is_crowded((origin, limits), is_validated) {
            return false;
        }
        let (mut of_address, mut of_network) = (0_u16, 0_u16);
        let keeps_out = |other: Incoming| other.is_counted() && !(is_validated && other.is_unvalidated());
        let incoming = connections.occupied().filter(|(_, slot)| keeps_out(slot.incoming));
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

/// Uninhabited replacement for the membership in shared admission.
///
/// Without the features `alloc` and `server` each peer decides alone.
#[cfg(not(all(feature = "alloc", feature = "server")))]
#[derive(Debug)]
pub(crate) enum Member {}

#[cfg(not(all(feature = "alloc", feature = "server")))]
impl Member {
    pub(crate) const fn reserve(&self, _: Instant, _: u16, _: &Request) -> Result<(), Rejection> {
        match *self {}
    }

    pub(crate) const fn contains(&self, _: u64) -> bool {
        match *self {}
    }

    pub(crate) const fn incoming(&self) -> usize {
        match *self {}
    }

    pub(crate) const fn admits_answer(&self, _: &[u8; 16], _: Rates, _: Instant, _: IpAddr) -> bool {
        match *self {}
    }

    pub(crate) const fn has_unvalidated_left(&self, _: Allowance, _: Instant) -> bool {
        match *self {}
    }

    pub(crate) const fn take_unvalidated(&self, _: Allowance, _: Instant) {
        match *self {}
    }

    pub(crate) const fn change(&self, _: u16, _: (Incoming, Incoming), _: Instant, _: Instant) {
        match *self {}
    }
}
