//! A configuration without security.

use super::config::Config;
use super::wire::offline::ServerSecurity;

/// Bytes of the key in reply 1.
const PUBLIC_KEY_FIELD: usize = 64;

impl Config {
    /// Whether reply 1 has a key.
    pub(crate) const fn has_server_key(&self) -> bool {
        false
    }

    /// Whether clients without security are refused.
    pub(crate) const fn requires_security(&self) -> bool {
        false
    }

    /// What reply 1 asks the client to give back.
    pub(crate) const fn server_security<'f>(
        &self,
        cookie: u32,
        _mtu: u16,
        _field: &'f mut [u8; PUBLIC_KEY_FIELD],
    ) -> ServerSecurity<'f> {
        ServerSecurity::Cookie(cookie)
    }
}
