//! What of the relay's configuration says whom it lets in.

#![allow(dead_code, unused_imports, reason = "the relay uses the rest")]

#[path = "../../relay/src/config/admitting.rs"]
mod admitting;

#[path = "../../relay/src/config/duration.rs"]
mod duration;

#[path = "../../relay/src/config/error.rs"]
mod error;

#[path = "../../relay/src/config/files.rs"]
mod files;

#[path = "../../relay/src/config/model.rs"]
mod model;

pub(crate) use error::ConfigError;
pub(crate) use model::{AddressLimits, Config, ForwardedHeader, Limits, Target, TokensConfig};
