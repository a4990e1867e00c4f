//! Meshes: peers without a server that are all connected to each other and agree on a host.
//!
//! [`ConnectionGraph`] stores all known connections, and uses the messages of C++ RakNet's plugin of that
//! name. [`Mesh`] contains a graph. It returns the peers to connect to and determines the host, which is the
//! longest-connected member. All members determine the same host without a vote; see `docs/plugins/mesh.md`.
//!
//! A plugin has no socket. The application therefore takes the peers to connect to from
//! [`Mesh::poll_connect`], and opens the connections through its peer or endpoint.
//!
//! ```
//! use rakwire::endpoint::{Hooked, PluginHost};
//! use rakwire::raknet::{Config, Peer, RakNet, Resources};
//! use rakwire::{Instant, Machine};
//! use rakwire_plugins::mesh::Mesh;
//!
//! let mut config = Config::new([7; 32]);
//! config.max_incoming = 8;
//! let guid = config.guid;
//! let mut mesh = Mesh::<8>::new(guid);
//! mesh.create(); // only the player that opens the game calls this
//! let mut host = PluginHost::<_, 1>::new();
//! let key = host.attach::<RakNet>(mesh)?;
//!
//! let mut resources = Resources::<8, 64, 128>::new();
//! let mut peer = Hooked::new(Peer::new(&mut resources, config), host);
//! let now = Instant::ZERO;
//! peer.handle_timeout(now);
//! let mesh = peer.hook.get_mut(key).ok_or("the plugin is not attached")?;
//! assert_eq!(mesh.poll_host(), Some(guid), "this peer is the only member");
//! while let Some(target) = peer.hook.get_mut(key).and_then(Mesh::poll_connect) {
//!     peer.peer.connect(now, target.address)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod full;
mod graph;
mod membership;
mod targets;
mod wire;

pub use self::full::{JoinStatus, Mesh, MeshStats};
pub use self::graph::{ConnectionGraph, GRAPH_IDS, GraphStats, UNKNOWN_PING};
pub use self::membership::{Epoch, Rank};
pub use self::targets::{MEMORY_TIME, REACH_TIME, Target};
pub use self::wire::{Announcement, MAX_LENGTH, MAX_PEERS, MEMBER_ID};
