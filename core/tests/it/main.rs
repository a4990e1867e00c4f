//! Tests of the core through its public interface: the guarantees of both protocols, in virtual time over simulated
//! networks.

mod dial;
mod endpoint;
mod game_protocol;
#[path = "../model/mod.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it from their own crate")]
mod model;
mod rabbit;
mod raknet;
mod secure;
mod support;
mod vectors;
