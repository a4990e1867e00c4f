//! The admission settings of the relay's configuration.

#[path = "../../relay/src/config/error.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod error;

#[path = "../../relay/src/config/model.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod model;

#[path = "../../relay/src/config/options.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod options;

pub(crate) use error::ConfigError;
pub(crate) use model::{
    AddressLimits, Config, ForwardedHeader, Limits, SPARE_ADDRESSES_MAX, Target, TargetSource, TokensConfig,
};
