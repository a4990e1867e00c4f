//! Hands the keys of a handshake to the application, if it has asked for them (docs/secure.md#key-log).

use crate::raknet::config::Config;
use crate::secure::DatagramProtection;

/// Hands out the keys that the handshake with this answer has made.
#[cfg(feature = "key-log")]
pub(super) fn log_keys(config: &Config, is_client: bool, answer: &[u8], datagrams: &DatagramProtection) {
    if let Some(log) = config.security.as_ref().and_then(|security| security.key_log.as_ref()) {
        datagrams.log_keys(is_client, answer, &**log);
    }
}

/// Without the feature `key-log` nobody gets them.
#[cfg(not(feature = "key-log"))]
pub(super) const fn log_keys(_: &Config, _is_client: bool, _answer: &[u8], _: &DatagramProtection) {}
