//! The relay with real sockets over loopback, and its flows without.

// What allows `unwrap` in tests looks for this attribute; without it helpers would not count as tests.
#[cfg(test)]
mod connections;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod game;
#[cfg(test)]
mod http;
#[cfg(test)]
mod limits;
#[cfg(test)]
#[path = "../model/mod.rs"]
mod model;
#[cfg(test)]
mod program;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;

// The models name it like this, here and in the fuzz targets.
#[cfg(test)]
use rakwire_relay::flow;
