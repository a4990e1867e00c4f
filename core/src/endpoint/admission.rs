//! Admission shared by the peers of one server (features `alloc` and `server`).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt::Debug;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::incoming::{ClientLimits, Incoming, Origin, Rejection, Request};
use crate::rate_limit::{ADDRESS_GROUPS, Allowance, RateLimit, Rates, Ration, network};
use crate::time::Instant;

/// The number of entries in `recent` at which expired ones are removed.
const RECENT: usize = 1_024;

/// Admission state shared by the peers of one server.
///
/// Use it when a server spreads its clients over several peers, each with its own socket and lock. It enforces these
/// limits across all of them:
///
/// - `max_incoming`, and in RakNet one connection per GUID;
/// - connections of an address and of its network, and half-open connections of a network;
/// - the rate of new connections from an address;
/// - responses to pings and first requests, and clients without a cookie.
///
/// A slot is reserved before a connection is created, and freed once the connection has closed. All peers must have
/// the same configuration, and clocks with the same epoch.
#[derive(Debug, Default)]
pub struct Admission {
    members: u32,
    places: BTreeMap<Place, Guest>,
    identities: BTreeSet<u64>,
    /// The number of half-open connections of each network; networks without any have no entry.
    half_open: BTreeMap<u128, u16>,
    addresses: Counts,
    networks: Counts,
    /// The time of the last connection from each address, separately for validated and unvalidated addresses.
    recent: BTreeMap<(IpAddr, bool), Instant>,
    answers: RateLimit<32, ADDRESS_GROUPS>,
    /// The rate limit of clients without a validated address.
    unvalidated: Ration,
    /// The number of connections of clients without a validated address.
    unvalidated_now: u16,
}

/// Connection counts by address or network; those without connections have no entry.
type Counts = BTreeMap<u128, Count>;

/// The number of connections with and without a validated address.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    validated: u16,
    unvalidated: u16,
}

impl Count {
    const fn of(&mut self, is_validated: bool) -> &mut u16 {
        if is_validated { &mut self.validated } else { &mut self.unvalidated }
    }

    /// Returns the number of connections that count against the limit for another client.
    ///
    /// An unvalidated connection may be forged, so it does not count against a validated client.
    const fn against(self, is_validated: bool) -> u16 {
        if is_validated { self.validated } else { self.validated.saturating_add(self.unvalidated) }
    }
}

/// The number of a peer, and a slot of that peer.
type Place = (u32, u16);

/// The connection in a reserved slot.
#[derive(Clone, Copy, Debug)]
struct Guest {
    identity: Option<u64>,
    address: IpAddr,
    /// True while the connection counts as half-open for its network.
    is_half_open: bool,
    is_validated: bool,
}

/// Access to one [`Admission`] from several peers, usually through a lock.
///
/// Peers call it for each connection that opens or closes, and for each response to an unconnected peer. A mutex is
/// fast enough.
///
/// ```
/// use std::sync::{Arc, Mutex, PoisonError};
///
/// use rakwire::endpoint::{Admission, SharedAdmission};
/// use rakwire::raknet::{Capacity, Config, Peer};
///
/// #[derive(Clone, Debug, Default)]
/// struct Locked(Arc<Mutex<Admission>>);
///
/// impl SharedAdmission for Locked {
///     fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
///         decide(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
///     }
/// }
///
/// let mut config = Config::new([7; 32]);
/// config.max_incoming = 100; // in all
/// let admission = Locked::default();
/// let peers = [0; 2].map(|_| {
///     let mut peer = Peer::with_capacity(Capacity::default(), config.clone());
///     peer.share_admission(Box::new(admission.clone()));
///     peer
/// });
/// # drop(peers);
/// ```
pub trait SharedAdmission: Debug + Send + Sync {
    /// Calls `decide` exactly once, with exclusive access to the admission state.
    fn with(&self, decide: &mut dyn FnMut(&mut Admission));

    /// Decides whether to admit a client for which a slot is free. The default admits every client.
    ///
    /// It is called before any state is kept for the client, and again for each retransmitted request. It must not
    /// block.
    ///
    /// - RakNet: called at the client's second request. A cookie has validated the address; if none is required
    ///   ([`CookiePolicy`](crate::raknet::CookiePolicy)), the address may be forged. A refused client receives "no
    ///   free incoming connections" (0x14).
    /// - The Game Protocol: called when the client answers its challenge, which validates the address. A refused
    ///   client receives END, as from a full server.
    ///
    /// In RakNet it is not called for a client to which this peer is connecting, because the application has requested
    /// that connection itself.
    fn decide(&self, client: &Client) -> Decision {
        let _ = client;
        Decision::Accept
    }
}

/// A client that requests a connection.
///
/// ```
/// use rakwire::endpoint::{Admission, Client, Decision, SharedAdmission};
///
/// /// Admits only clients of the local network.
/// #[derive(Debug, Default)]
/// struct LocalOnly(std::sync::Mutex<Admission>);
///
/// impl SharedAdmission for LocalOnly {
///     fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
///         decide(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
///     }
///
///     fn decide(&self, client: &Client) -> Decision {
///         match client.remote.ip() {
///             std::net::IpAddr::V4(ip) if ip.is_private() => Decision::Accept,
///             _ => Decision::Refuse,
///         }
///     }
/// }
///
/// let admission = LocalOnly::default();
/// let client = |remote| Client::new(remote, None);
/// assert_eq!(admission.decide(&client("192.168.0.9:4000".parse()?)), Decision::Accept);
/// assert_eq!(admission.decide(&client("192.0.2.9:4000".parse()?)), Decision::Refuse);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Client {
    /// The address of the client.
    pub remote: SocketAddr,
    /// The GUID that a RakNet client chose for itself; `None` in the Game Protocol.
    pub guid: Option<u64>,
}

impl Client {
    /// Creates the description of a client, for tests of [`SharedAdmission::decide`].
    #[must_use]
    pub const fn new(remote: SocketAddr, guid: Option<u64>) -> Self {
        Self { remote, guid }
    }
}

/// The decision about a client that requests a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// Admits the client.
    #[default]
    Accept,
    /// Refuses the client and notifies it.
    Refuse,
    /// Sends no response; the client may retry.
    Ignore,
}

impl Admission {
    /// Returns the number of incoming connections at all peers.
    #[must_use]
    pub fn incoming(&self) -> usize {
        self.places.len()
    }

    fn join(&mut self) -> u32 {
        self.members += 1;
        self.members
    }

    fn reserve(&mut self, now: Instant, place: Place, request: &Request) -> Result<(), Rejection> {
        if request.identity.is_some_and(|identity| self.identities.contains(&identity)) {
            return Err(Rejection::Known);
        }
        if let Some(interval) = request.interval {
            self.note_recent(now, (request.address.ip(), request.is_validated), interval)?;
        }
        if self.places.len() >= request.max_incoming.into() {
            return Err(Rejection::Full);
        }
        let origin = Origin::of(request.address.ip());
        if let Some(origin) = origin {
            if !self.has_place(origin, request.limits, true) {
                return Err(Rejection::Crowded);
            }
            if !request.is_validated && !self.has_place(origin, request.limits, false) {
                return Err(Rejection::Unvalidated);
            }
        }
        let half_open = request.half_open.map(|limit| (network(request.address.ip()), limit));
        if let Some((network, limit)) = half_open {
            let count = self.half_open.entry(network).or_default();
            if *count >= limit {
                return Err(Rejection::HalfOpen);
            }
            *count += 1;
        }
        self.identities.extend(request.identity);
        let Request { identity, is_validated, .. } = *request;
        let address = request.address.ip();
        let guest = Guest { identity, address, is_half_open: half_open.is_some(), is_validated };
        self.count_in(&guest);
        self.places.insert(place, guest);
        Ok(())
    }

    fn has_place(
        &self,
        Origin { address, network }: Origin,
        limits: ClientLimits,
        is_validated: bool,
    ) -> bool {
        let is_below = |counts: &Counts, key, limit| {
            counts.get(&key).is_none_or(|count| count.against(is_validated) < limit)
        };
        is_below(&self.addresses, address, limits.address)
            && is_below(&self.networks, network, limits.network)
    }

    /// Adds a connection to the counts of its address and network.
    fn count_in(&mut self, guest: &Guest) {
        if let Some(Origin { address, network }) = Origin::of(guest.address) {
            for (counts, key) in [(&mut self.addresses, address), (&mut self.networks, network)] {
                *counts.entry(key).or_default().of(guest.is_validated) += 1;
            }
        }
        self.unvalidated_now += u16::from(!guest.is_validated);
    }

    fn count_out(&mut self, guest: &Guest) {
        if let Some(Origin { address, network }) = Origin::of(guest.address) {
            for (counts, key) in [(&mut self.addresses, address), (&mut self.networks, network)] {
                let Some(count) = counts.get_mut(&key) else { continue };
                let of_kind = count.of(guest.is_validated);
                *of_kind = of_kind.saturating_sub(1);
                if count.against(false) == 0 {
                    counts.remove(&key);
                }
            }
        }
        self.unvalidated_now = self.unvalidated_now.saturating_sub(u16::from(!guest.is_validated));
    }

    /// Returns true if one more client without a validated address may be admitted.
    fn has_unvalidated_left(&self, allowance: Allowance, now: Instant) -> bool {
        self.unvalidated_now < allowance.events && self.unvalidated.is_left(allowance, now)
    }

    /// Records that an address opens a connection; fails if it opened another within `interval`.
    fn note_recent(
        &mut self,
        now: Instant,
        (address, is_validated): (IpAddr, bool),
        interval: Duration,
    ) -> Result<(), Rejection> {
        if address.is_loopback() {
            return Ok(());
        }
        let is_recent =
            |is_validated| self.recent.get(&(address, is_validated)).is_some_and(|at| *at + interval > now);
        if is_recent(true) {
            return Err(Rejection::Recent);
        }
        // An unvalidated connection may be forged, so it does not delay a validated client.
        if !is_validated && is_recent(false) {
            return Err(Rejection::Unvalidated);
        }
        if self.recent.len() >= RECENT {
            self.recent.retain(|_, at| *at + interval > now);
        }
        self.recent.insert((address, is_validated), now);
        Ok(())
    }

    /// Called when a connection has left the half-open state.
    fn open(&mut self, place: Place) {
        let Some(guest) = self.places.get_mut(&place) else { return };
        if !core::mem::take(&mut guest.is_half_open) {
            return;
        }
        let network = network(guest.address);
        let Some(count) = self.half_open.get_mut(&network) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.half_open.remove(&network);
        }
    }

    /// Called when the client of a connection has validated its address.
    fn validate(&mut self, place: Place) {
        let Some(mut guest) = self.places.get(&place).copied() else { return };
        self.count_out(&guest);
        guest.is_validated = true;
        self.count_in(&guest);
        if let Some(at) = self.recent.remove(&(guest.address, false)) {
            self.recent.insert((guest.address, true), at);
        }
        self.places.insert(place, guest);
    }

    /// Called when the admission status of a connection changed from `before` to `after`.
    ///
    /// `since` is the time at which the connection began to count as unvalidated.
    fn change(&mut self, place: Place, (before, after): (Incoming, Incoming), since: Instant, now: Instant) {
        if before.is_counted() && !after.is_counted() {
            return self.release(place);
        }
        if before.is_half_open() && !after.is_half_open() {
            self.open(place);
        }
        if before.is_validated_by(after) {
            self.validate(place);
            self.unvalidated.refund(since, now);
        }
    }

    /// Frees the slot of a connection that has closed.
    fn release(&mut self, place: Place) {
        self.open(place);
        let Some(guest) = self.places.remove(&place) else { return };
        if let Some(identity) = guest.identity {
            self.identities.remove(&identity);
        }
        self.count_out(&guest);
    }
}

/// The membership of one peer in an [`Admission`]. Dropping it frees the slots of that peer.
#[derive(Debug)]
pub(crate) struct Member {
    shared: Box<dyn SharedAdmission>,
    number: u32,
}

impl Member {
    pub(crate) fn new(shared: Box<dyn SharedAdmission>) -> Self {
        let mut member = Self { shared, number: 0 };
        member.number = member.with(Admission::join).unwrap_or(0);
        member
    }

    /// Calls [`SharedAdmission::with`]; returns `None` if the implementation did not call its argument.
    fn with<R>(&self, mut decide: impl FnMut(&mut Admission) -> R) -> Option<R> {
        let mut result = None;
        self.shared.with(&mut |admission| result = Some(decide(admission)));
        result
    }

    pub(crate) fn reserve(&self, now: Instant, slot: u16, request: &Request) -> Result<(), Rejection> {
        match self.shared.decide(&Client::new(request.address, request.identity)) {
            Decision::Accept => {}
            Decision::Refuse => return Err(Rejection::Refused),
            Decision::Ignore => return Err(Rejection::Ignored),
        }
        let reserved = self.with(|all| all.reserve(now, (self.number, slot), request));
        reserved.unwrap_or(Err(Rejection::Full))
    }

    pub(crate) fn contains(&self, identity: u64) -> bool {
        self.with(|all| all.identities.contains(&identity)) == Some(true)
    }

    pub(crate) fn incoming(&self) -> usize {
        self.with(|all| all.incoming()).unwrap_or(usize::MAX)
    }

    pub(crate) fn admits_answer(&self, secret: &[u8; 16], rates: Rates, now: Instant, to: IpAddr) -> bool {
        self.with(|all| all.answers.admits(secret, rates, now, to)) == Some(true)
    }

    pub(crate) fn has_unvalidated_left(&self, allowance: Allowance, now: Instant) -> bool {
        self.with(|all| all.has_unvalidated_left(allowance, now)) == Some(true)
    }

    pub(crate) fn take_unvalidated(&self, allowance: Allowance, now: Instant) {
        self.with(|all| all.unvalidated.take(allowance, now));
    }

    pub(crate) fn change(&self, slot: u16, change: (Incoming, Incoming), since: Instant, now: Instant) {
        self.with(|all| all.change((self.number, slot), change, since, now));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.with(|all| {
            let mine = (self.number, 0)..=(self.number, u16::MAX);
            while let Some((&place, _)) = all.places.range(mine.clone()).next() {
                all.release(place);
            }
        });
    }
}
