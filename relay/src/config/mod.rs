//! The configuration: one model, filled from a file, the environment and the command line.

mod check;
mod error;
mod layers;
mod mistakes;
mod model;
mod options;

#[cfg(test)]
mod tests;

pub(crate) use check::{absolute, is_at, parse_levels};
pub use error::{ConfigError, ExposedFile};
pub use layers::{Changes, LoadError, Loaded, Override, Source, reference};
pub(crate) use model::SPARE_ADDRESSES_MAX;
pub use model::{
    AddressLimits, AdminConfig, AdmissionConfig, Config, DiscoveryConfig, ForwardedHeader, Limits, LogConfig,
    LogFormat, OPTIONS, Target, TargetSource, TlsConfig, TokensConfig, UDP_PAYLOAD_MAX, UdpConfig,
    WebRtcConfig, WebTransportConfig, WebTransportMode,
};
pub use options::{Change, OptionInfo, OptionKind};

pub use crate::syntax::duration::parse as parse_duration;
pub use crate::syntax::socket_address as parse_socket_address;
