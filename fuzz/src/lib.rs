//! The code of the fuzz targets. It includes the models of other crates' tests and sources of the relay.
//!
//! A new target needs a function in [`targets`], an entry in [`targets::ALL`], a program in `fuzz_targets`, an entry in
//! `Cargo.toml`, and committed inputs in `corpus`.

#[path = "../../core/tests/model/mod.rs"]
pub mod model;

#[path = "../../snowfight/tests/model/mod.rs"]
pub mod snowfight;

#[macro_use]
#[path = "../../relay/src/flow/mod.rs"]
pub mod flow;

#[path = "../../relay/src/protocol/mod.rs"]
pub mod protocol;

#[path = "../../relay/src/front/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the relay uses the rest")]
mod front;

#[path = "../../relay/src/admission/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the relay uses the rest")]
mod admission;

#[path = "../../relay/src/close.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod close;

mod config;

mod discovery;

#[path = "../../relay/src/syntax.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod syntax;

#[path = "../../relay/src/addresses.rs"]
#[allow(dead_code, unused_imports, reason = "the relay uses the rest")]
mod addresses;

#[path = "../../relay/src/time.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod time;

#[path = "../../relay/src/token.rs"]
#[allow(dead_code, unused_imports, reason = "the relay uses the rest")]
mod token;

mod webrtc;

#[path = "../../relay/tests/model/mod.rs"]
pub mod relay;

pub mod admitted;

pub mod awareness;

pub mod data_channels;

pub mod proxied;

pub mod steps;

pub mod udp_front;

pub mod targets;

#[cfg(test)]
mod replay;
