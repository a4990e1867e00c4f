//! Companion to [`rakwire-native`](https://docs.rs/rakwire-native): parts of servers and desktop programs that work
//! without the UDP driver.
//!
//! Each part is a feature, and none is enabled by default.
//!
//! - `tcp`, `tls`: `tcp`, messages over TCP with the same methods as connections over UDP, and over TLS with rustls.
//! - `port-mapping`: `port_mapping`, opens ports on routers with PCP, NAT-PMP and UPnP.
//! - `sqlite`: `sqlite_log`, a log of datagrams and statistics in an SQLite file.
//! - `crash-report`, `crash-email`: `crash_report`, a file for each panic of a program, optionally sent by email.
//! - `tracing`: endpoints and connections over TCP have spans, and events for their outcome.
//!
//! ```
//! use rakwire_extras::tcp::{Endpoint, Options};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("127.0.0.1:0", Options::server(64)).await?;
//! println!("listening on {}", server.local_addr());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "crash-report")]
pub mod crash_report;
#[cfg(feature = "port-mapping")]
pub mod port_mapping;
#[cfg(feature = "sqlite")]
pub mod sqlite_log;
#[cfg(feature = "tcp")]
pub mod tcp;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
