//! The relay with real sockets over loopback, and its flows without sockets.

// Clippy permits `unwrap` in tests because of this attribute; without it, helper functions would not count as tests.
#[cfg(test)]
#[cfg(all(unix, feature = "acme"))]
mod acme;
#[cfg(test)]
mod admission;
#[cfg(test)]
mod check;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod deferred;
#[cfg(test)]
#[cfg(unix)]
mod failover;
#[cfg(test)]
#[cfg(unix)]
mod failures;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod front;
#[cfg(test)]
mod game;
#[cfg(test)]
mod http;
#[cfg(test)]
mod limits;
#[cfg(test)]
#[cfg(unix)]
mod many_relays;
#[cfg(test)]
mod marks;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod memory;
#[cfg(test)]
#[path = "../model/mod.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it from their own crate")]
mod model;
#[cfg(test)]
#[cfg(unix)]
mod operations;
#[cfg(test)]
#[cfg(unix)]
mod operator;
#[cfg(test)]
mod program;
#[cfg(test)]
mod protocols;
#[cfg(test)]
#[cfg(unix)]
mod proxies;
#[cfg(test)]
#[cfg(unix)]
mod proxy_headers;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod resume;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod resume_elsewhere;
#[cfg(test)]
#[cfg(unix)]
mod secrets;
#[cfg(test)]
mod sessions;
#[cfg(test)]
#[cfg(unix)]
mod stopped;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod verifier;
#[cfg(test)]
mod webtransport;
mod webtransport_drafts;

// The models use this path, both here and in the fuzz targets.
#[cfg(test)]
use rakwire_relay::flow;
