//! What the peers of one server decide together, when it is spread over several of them (features `alloc` and
//! `server`).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt::Debug;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::client_limits::Origin;
use super::reservation::{Rejection, Request};
use crate::rate_limit::{RateLimit, Rates, Ration, network};
use crate::time::Instant;

/// Recent clients that are kept before those of long ago are looked for.
const RECENT: usize = 1_024;

/// Whom the peers of one server have let in, and what they have answered: for servers whose clients are spread over
/// several peers, each with its own socket and lock. It counts all connections that others opened against
/// `max_incoming`, knows their GUIDs in RakNet, so that nobody comes in twice, and rations what clients cause: how
/// many connections an address opens one after the other, how many it and its network have, how many of a network are half open,
/// and the answers to pings and first messages, and clients that come in without a cookie.
///
/// A place is reserved before a connection is made, and free again when the connection has ended. The peers must have
/// the same configuration and clocks with the same epoch.
#[derive(Debug, Default)]
pub struct Admission {
    members: u32,
    places: BTreeMap<Place, Guest>,
    identities: BTreeSet<u64>,
    half_open: Counts,
    addresses: Counts,
    networks: Counts,
    recent: BTreeMap<IpAddr, Instant>,
    answers: RateLimit<32, 32>,
    /// Clients that may be let in without a validated address.
    unvalidated: Ration,
}

/// How many connections each address or network has, of those that have any.
type Counts = BTreeMap<u128, u16>;

/// A slot of one of the peers.
type Place = (u32, u16);

/// Who has a place.
#[derive(Clone, Copy, Debug)]
struct Guest {
    identity: Option<u64>,
    /// The network of a connection that is half open, where those are counted.
    half_open: Option<u128>,
    /// Where it comes from, if such clients are limited.
    origin: Option<Origin>,
}

/// Gives several peers one [`Admission`]. It is asked for each connection that begins or ends and for each answer to a
/// peer without one, so a lock that is held for that long does no harm.
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
    /// Calls `decide` once, while nobody else decides.
    fn with(&self, decide: &mut dyn FnMut(&mut Admission));

    /// Whether to let in a client for which there is room. Called before anything of it is kept, and again whenever the
    /// client asks again. It must not block. By default every client is let in.
    ///
    /// In RakNet this is at the client's second request. Its cookie has validated the address; where none is asked of it
    /// ([`CookiePolicy`](crate::raknet::CookiePolicy)), the address may be forged. A refused client is told that there are
    /// no free incoming connections (0x14). In the Game Protocol it is when the client answers its challenge, which
    /// validates the address; a refused client is told END, as by a full server.
    ///
    /// A RakNet peer that this one dials at the same time is not asked about: this side wants that connection.
    fn decide(&self, client: &Client) -> Decision {
        let _ = client;
        Decision::Accept
    }
}

/// A client that asks for a connection.
///
/// ```
/// use rakwire::endpoint::{Admission, Client, Decision, SharedAdmission};
///
/// /// Lets in clients of the local network alone.
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
    /// Where it is.
    pub remote: SocketAddr,
    /// In RakNet its GUID, which it chose itself; nothing in the Game Protocol.
    pub guid: Option<u64>,
}

impl Client {
    /// A client at this address, with this GUID if it has one.
    #[must_use]
    pub const fn new(remote: SocketAddr, guid: Option<u64>) -> Self {
        Self { remote, guid }
    }
}

/// What becomes of a client that asks for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// It gets a connection.
    #[default]
    Accept,
    /// It is told that it gets none.
    Refuse,
    /// It gets no answer, and may ask again.
    Ignore,
}

impl Admission {
    /// How many connections others have opened at all peers.
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
            self.note_recent(now, request.address.ip(), interval)?;
        }
        if self.places.len() >= request.max_incoming.into() {
            return Err(Rejection::Full);
        }
        let origin = Origin::of(request.address.ip());
        if let Some(Origin { address, network }) = origin {
            let has_place = |counts: &Counts, key, limit| counts.get(&key).is_none_or(|count| *count < limit);
            let limits = request.limits;
            if !has_place(&self.addresses, address, limits.address)
                || !has_place(&self.networks, network, limits.network)
            {
                return Err(Rejection::Crowded);
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
        if let Some(Origin { address, network }) = origin {
            *self.addresses.entry(address).or_default() += 1;
            *self.networks.entry(network).or_default() += 1;
        }
        self.identities.extend(request.identity);
        let half_open = half_open.map(|(network, _)| network);
        self.places.insert(place, Guest { identity: request.identity, half_open, origin });
        Ok(())
    }

    /// Notes when an address opens a connection, unless it has just done so.
    fn note_recent(&mut self, now: Instant, address: IpAddr, interval: Duration) -> Result<(), Rejection> {
        if address.is_loopback() {
            return Ok(());
        }
        if self.recent.get(&address).is_some_and(|at| *at + interval > now) {
            return Err(Rejection::Recent);
        }
        if self.recent.len() >= RECENT {
            self.recent.retain(|_, at| *at + interval > now);
        }
        self.recent.insert(address, now);
        Ok(())
    }

    /// A connection is not half open any more.
    fn open(&mut self, place: Place) {
        let network = self.places.get_mut(&place).and_then(|guest| guest.half_open.take());
        if let Some(network) = network {
            count_out(&mut self.half_open, network);
        }
    }

    /// A connection has ended.
    fn release(&mut self, place: Place) {
        self.open(place);
        let Some(guest) = self.places.remove(&place) else { return };
        if let Some(identity) = guest.identity {
            self.identities.remove(&identity);
        }
        if let Some(Origin { address, network }) = guest.origin {
            count_out(&mut self.addresses, address);
            count_out(&mut self.networks, network);
        }
    }
}

fn count_out(counts: &mut Counts, key: u128) {
    let Some(count) = counts.get_mut(&key) else { return };
    *count = count.saturating_sub(1);
    if *count == 0 {
        counts.remove(&key);
    }
}

/// A peer's part in an [`Admission`]. When it is dropped, its places are free.
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

    /// What `decide` says; nothing if the application does not let it decide.
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

    pub(crate) fn knows(&self, identity: u64) -> bool {
        self.with(|all| all.identities.contains(&identity)) == Some(true)
    }

    pub(crate) fn incoming(&self) -> usize {
        self.with(|all| all.incoming()).unwrap_or(usize::MAX)
    }

    pub(crate) fn admits_answer(&self, secret: &[u8; 16], rates: Rates, now: Instant, to: IpAddr) -> bool {
        self.with(|all| all.answers.admits(secret, rates, now, to)) == Some(true)
    }

    pub(crate) fn with_ration<R>(&self, mut act: impl FnMut(&mut Ration) -> R) -> Option<R> {
        self.with(|all| act(&mut all.unvalidated))
    }

    pub(crate) fn open(&self, slot: u16) {
        self.with(|all| all.open((self.number, slot)));
    }

    pub(crate) fn release(&self, slot: u16) {
        self.with(|all| all.release((self.number, slot)));
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
