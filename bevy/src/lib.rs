//! A messaging backend of [`bevy_replicon`] over RakNet. It uses UDP sockets without additional tasks or
//! threads; clients in browsers connect through the relay.
//!
//! Add [`RakwireRepliconPlugins`] to replicon's own plugins, and insert a [`RakwireServer`] or a [`RakwireClient`]
//! as a resource. Replicon's states, messages and statistics follow this resource. Removing the resource closes its
//! connections.
//!
//! ```
//! use bevy::prelude::*;
//! use bevy::state::app::StatesPlugin;
//! use bevy_replicon::prelude::*;
//! use rakwire_bevy::{ClientSettings, RakwireClient, RakwireRepliconPlugins, RakwireServer, ServerSettings};
//!
//! fn app() -> App {
//!     let mut app = App::new();
//!     let replicon = RepliconPlugins.set(ServerPlugin::new(PostUpdate));
//!     app.add_plugins((MinimalPlugins, StatesPlugin, replicon, RakwireRepliconPlugins)).finish();
//!     app
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut server, mut client) = (app(), app());
//! let listening = RakwireServer::bind("127.0.0.1:0", ServerSettings::new(8)?)?;
//! let address = listening.local_addr();
//! server.insert_resource(listening);
//! client.insert_resource(RakwireClient::connect(address, ClientSettings::new()?)?);
//!
//! server.world_mut().spawn(Replicated);
//! let mut remote = client.world_mut().query::<&Remote>();
//! while remote.iter(client.world()).count() == 0 {
//!     server.update();
//!     client.update();
//!     std::thread::sleep(std::time::Duration::from_millis(1)); // the rest of the frame
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Channels
//!
//! Each channel of replicon maps to one reliability of RakNet, so there is only one layer of retransmission:
//!
//! | replicon | RakNet |
//! |---|---|
//! | [`Channel::Unreliable`](bevy_replicon::prelude::Channel::Unreliable) | unreliable |
//! | [`Channel::Unordered`](bevy_replicon::prelude::Channel::Unordered) | reliable |
//! | [`Channel::Ordered`](bevy_replicon::prelude::Channel::Ordered) | reliable ordered, on the ordering channel of its number modulo 32 |
//!
//! [`ChannelId`] describes the first byte of each message. Messages of any length up to
//! [`max_message_len`](RakwireClient::max_message_len) are split into parts. Replicon limits its mutation messages to
//! one datagram; it reads the maximum payload from [`ConnectedClient`](bevy_replicon::prelude::ConnectedClient).
//!
//! # Browsers
//!
//! For `wasm32-unknown-unknown` this crate has only clients, with the same plugins, channels and messages. A page has
//! no UDP socket, so it connects with `RakwireClient::connect_by_relay`. This constructor takes the URL of the relay,
//! the name of the server in the relay's configuration, and the browser's own `ClientSettings`. It reaches the relay by
//! WebTransport or, if that fails, by a WebSocket. The other methods of [`RakwireClient`] work as on other platforms,
//! except those for its socket and endpoint. [`RakwireClient::status`] also returns failures that the relay reports.
//!
//! ```ignore
//! let client = RakwireClient::connect_by_relay("wss://play.example.org/ws", "game", ClientSettings::new()?);
//! app.insert_resource(client);
//! ```
//!
//! # Limits
//!
//! Data from the network cannot cause a panic: messages with an unknown channel are dropped and counted in
//! [`Dropped`]. A reliable message is queued while the send memory is full, and sent in a later frame. If
//! more than [`backlog`](ServerSettings::backlog) bytes are queued, the connection is closed.

mod channels;
#[cfg(feature = "client")]
mod client;
#[cfg(not(target_arch = "wasm32"))]
mod closing;
mod counters;
#[cfg(not(target_arch = "wasm32"))]
mod endpoint;
mod outbox;
#[cfg(all(feature = "server", not(target_arch = "wasm32")))]
mod server;

pub use rakwire;
#[cfg(not(target_arch = "wasm32"))]
pub use rakwire_native;
#[cfg(target_arch = "wasm32")]
pub use rakwire_wasm;

pub use self::channels::{ChannelId, TooManyChannels};
#[cfg(all(feature = "client", not(target_arch = "wasm32")))]
pub use self::client::ConnectError;
#[cfg(feature = "client")]
pub use self::client::{ClientSettings, DisconnectCause, RakwireClient, RakwireRepliconClientPlugin, Status};
pub use self::counters::Dropped;
pub use self::outbox::DEFAULT_BACKLOG;
#[cfg(all(feature = "server", not(target_arch = "wasm32")))]
pub use self::server::{
    ClientConnection, RakwireRepliconServerPlugin, RakwireServer, ServerError, ServerSettings,
};

use bevy::app::{PluginGroup, PluginGroupBuilder};

/// The plugins of this crate: `RakwireRepliconServerPlugin` (feature `server`, not in browsers) and
/// `RakwireRepliconClientPlugin` (feature `client`).
///
/// An app that can be server or client needs both plugins. It must not have both resources at the same time.
#[derive(Clone, Copy, Debug, Default)]
pub struct RakwireRepliconPlugins;

impl PluginGroup for RakwireRepliconPlugins {
    fn build(self) -> PluginGroupBuilder {
        let group = PluginGroupBuilder::start::<Self>();
        #[cfg(all(feature = "server", not(target_arch = "wasm32")))]
        let group = group.add(RakwireRepliconServerPlugin);
        #[cfg(feature = "client")]
        let group = group.add(RakwireRepliconClientPlugin);
        group
    }
}

/// The code blocks of the README, compiled as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
