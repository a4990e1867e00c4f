//! The configuration: one model, which a file, the environment and the command line fill.

mod admitting;
mod changes;
mod check;
mod duration;
mod error;
mod explain;
mod files;
mod layers;
mod levels;
mod mistakes;
mod model;
mod options;
mod pages;

#[cfg(test)]
mod tests;

pub use crate::syntax::socket_address as parse_socket_address;
pub use admitting::ExposedFile;
pub use changes::Changes;
pub(crate) use check::is_at;
pub use duration::parse as parse_duration;
pub use error::ConfigError;
pub use explain::reference;
pub use layers::{LoadError, Loaded, Override, Source};
pub(crate) use levels::parse_levels;
pub(crate) use model::SPARE_ADDRESSES_MAX;
pub use model::{
    AddressLimits, AdminConfig, AdmissionConfig, Config, DiscoveryConfig, ForwardedHeader, Limits, LogConfig,
    LogFormat, Target, TargetSource, TlsConfig, TokensConfig, UDP_PAYLOAD_MAX, UdpConfig, WebRtcConfig,
    WebTransportConfig, WebTransportMode,
};
pub use options::{Change, OPTIONS, OptionInfo, OptionKind};
pub(crate) use pages::absolute;
