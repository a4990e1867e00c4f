//! A relay between browsers and game servers.
//!
//! A browser cannot send UDP. It opens a WebSocket to the relay instead. Every binary message becomes exactly one
//! datagram to the game server, and every datagram from the server becomes one binary message. The relay inspects only
//! handshakes and pings, and only for targets with a configured protocol.
//!
//! A client selects its server by a configured [`TargetName`]. The relay never accepts an address from a client. Each
//! client has a separate UDP socket, which receives datagrams only from its server.
//!
//! ```
//! use rakwire_relay::{Config, Relay};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use futures_util::{SinkExt, StreamExt};
//! # use tokio_tungstenite::tungstenite::Message;
//! let server = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
//! let target = format!("game={}", server.local_addr()?);
//! let config = Config::new("127.0.0.1:0".parse()?).with_target(target.parse()?);
//! let relay = Relay::bind(config).await?;
//! let url = format!("ws://{}/ws?target=game", relay.local_addr());
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let running = tokio::spawn(relay.run(async { stopped.await.unwrap_or_default() }));
//!
//! // A page would do this.
//! let (mut page, _) = tokio_tungstenite::connect_async(url).await?;
//! page.send(Message::binary(&b"hello"[..])).await?;
//!
//! let mut buffer = [0; 1_500];
//! let (length, from) = server.recv_from(&mut buffer).await?;
//! assert_eq!(buffer[..length], *b"hello");
//! server.send_to(b"welcome", from).await?;
//! assert_eq!(page.next().await.ok_or("closed")??, Message::binary(&b"welcome"[..]));
//!
//! drop(stop);
//! assert!(matches!(page.next().await, Some(Ok(Message::Close(_)))));
//! drop(page);
//! running.await??;
//! # Ok(())
//! # }
//! ```
//!
//! The logic of a client's flow is in [`flow`], without IO. `io` contains the sockets.

#![forbid(unsafe_code)]
// These macros panic if stdout or stderr is not writable.
#![deny(clippy::print_stdout, clippy::print_stderr)]

// Declared first, because the other modules use its macro for counters.
#[macro_use]
pub mod flow;

mod addresses;
mod admission;
pub mod clients;
mod close;
pub mod config;
mod congestion;
mod counters;
pub mod directory;
pub mod discovery;
pub mod front;
mod io;
mod ops;
pub mod protocol;
mod relay;
mod reload;
mod syntax;
mod time;
mod tls;
pub mod token;
mod trust;
pub mod webrtc;

pub use addresses::{
    AddressError, HostPort, ListenAddress, ListenName, ListenSyntaxError, TargetName, TargetSpec,
    TargetSyntaxError,
};
pub use admission::{AllowedOrigin, Origin, OriginSyntaxError};
pub use close::CloseKind;
pub use config::{Config, ConfigError, Limits, UDP_PAYLOAD_MAX};
pub use counters::{Counters, Snapshot, TransportKind, TransportSnapshot};
pub use directory::fetch::{FetchError, fetch_server_list};
pub use flow::{DropReason, TargetSnapshot, Traffic, Unreachable};
pub use ops::{LogError, start_logging, systemd};
pub use relay::{Relay, Stopper};
pub use reload::Reloader;
