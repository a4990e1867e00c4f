//! A relay between browsers and game servers.
//!
//! A browser cannot send UDP. It opens a WebSocket to the relay instead: every binary message becomes exactly one
//! datagram to the game server, and every datagram of the server becomes one binary message. The relay does not inspect
//! them.
//!
//! A client chooses its server by a configured [`TargetName`]. The relay never takes an address from a client, and each
//! client has its own UDP socket, connected to its server, so that nobody else can answer.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use rakwire_relay::{Config, Relay};
//!
//! let config = Config::new("127.0.0.1:8080".parse()?).with_target("game=127.0.0.1:19132".parse()?);
//! let relay = Relay::bind(config).await?;
//! println!("listening on http://{}", relay.local_addr());
//! relay.run(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The logic of a session is in `session`, without IO; `io` has the sockets.

#![forbid(unsafe_code)]

#[macro_use]
mod counted;

mod close;
mod config;
mod counters;
mod io;
mod origin;
mod queue;
mod relay;
mod session;
mod target;

pub use close::CloseKind;
pub use config::{Config, ConfigError, Limits, UDP_PAYLOAD_MAX};
pub use counters::{Counters, DropReason, Snapshot, Traffic};
pub use origin::{AllowedOrigin, Origin, OriginSyntaxError};
pub use relay::Relay;
pub use target::{HostPort, TargetName, TargetSpec, TargetSyntaxError};
