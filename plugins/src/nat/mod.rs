//! NAT traversal: connects two peers behind routers, with the help of a third peer that both can reach.
//!
//! The third peer has a [`Facilitator`]. The other two have a [`Traversal`] each and are connected to the
//! facilitator.
//!
//! 1. Either of them requests a connection to the other by its GUID.
//! 2. The facilitator makes their routers allocate addresses, and sends each peer the possible addresses of
//!    the other.
//! 3. Both send punches to all of these addresses until one arrives.
//! 4. One of them connects as usual.
//!
//! If no punch arrives, the facilitator forwards their datagrams, provided that it has forwarding ports; see
//! `docs/plugins/nat.md`.
//!
//! A plugin has no socket. The application therefore sends the datagrams of [`Traversal::poll_action`] from
//! the socket of its peer as out-of-band messages, and passes received ones to
//! [`Traversal::handle_out_of_band`].
//!
//! ```
//! use rakwire::endpoint::{Event, Hooked, PluginHost};
//! use rakwire::raknet::{Config, Guid, OutOfBand, Peer, RakNet, Resources};
//! use rakwire::{Instant, Machine};
//! use rakwire_plugins::nat::{Action, Traversal};
//!
//! let mut config = Config::new([7; 32]);
//! config.max_incoming = 4; // either peer may be the one that connects
//! config.out_of_band = OutOfBand::Accept;
//! let mut host = PluginHost::<_, 1>::new();
//! let key = host.attach::<RakNet>(Traversal::<4>::new())?;
//! let mut resources = Resources::<8, 64, 128>::new();
//! let mut peer = Hooked::new(Peer::new(&mut resources, config), host);
//! let now = Instant::ZERO;
//!
//! let facilitator = peer.peer.connect(now, "198.51.100.1:61111".parse()?)?;
//! // The request is sent once the facilitator is connected.
//! peer.hook.get_mut(key).ok_or("the plugin is not attached")?.open(Guid(0x1234))?;
//!
//! // Whenever the peer is polled:
//! while let Some(action) = peer.hook.get_mut(key).and_then(Traversal::poll_action) {
//!     match action {
//!         Action::Send { to, payload } => peer.peer.send_out_of_band(now, to, &payload)?,
//!         Action::Connect { address, .. } => drop(peer.peer.connect(now, address)?),
//!     }
//! }
//! while let Some(event) = peer.poll_event() {
//!     match event {
//!         Event::Connected { id, remote, .. } if id == facilitator => {
//!             peer.hook.get_mut(key).map(|traversal| traversal.set_facilitator(id, remote));
//!         }
//!         Event::OutOfBand { from, data, .. } => {
//!             let data: Vec<u8> = data.chunks().flatten().copied().collect();
//!             peer.hook.get_mut(key).map(|traversal| traversal.handle_out_of_band(now, from, &data));
//!         }
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod facilitator;
mod forwarder;
mod pairing;
mod session;
mod traversal;
mod wire;

pub use self::facilitator::{Facilitator, FacilitatorStats, FilterProbe};
pub use self::forwarder::{FORWARDING_RATE, FORWARDING_TIME};
pub use self::session::{CONNECT_TIME, PUNCH_INTERVAL, PUNCH_TIME};
pub use self::traversal::{Action, NatType, Outcome, TooMany, Traversal, TraversalStats};
pub use self::wire::{
    FromClient, FromFacilitator, MAX_CANDIDATES, MAX_INTERNAL, MAX_MESSAGE, NAT_ID, PUNCH_LEN, Punch,
    PunchKind, Refusal,
};
