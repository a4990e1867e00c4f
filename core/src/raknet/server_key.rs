//! What a configuration says of the key of a server.

use super::config::Config;
use super::wire::offline::ServerSecurity;
use crate::secure::{PUBLIC_KEY_FIELD, ServerIdentity};

impl Config {
    /// The key of the server that this peer is, if it has one.
    pub(crate) fn server_identity(&self) -> Option<&ServerIdentity> {
        self.security.as_ref()?.server.as_ref()
    }

    /// Whether reply 1 has a key.
    pub(crate) fn has_server_key(&self) -> bool {
        self.server_identity().is_some()
    }

    /// Whether clients without security are refused.
    pub(crate) fn requires_security(&self) -> bool {
        self.server_identity().is_some_and(ServerIdentity::refuses_plain)
    }

    /// What reply 1 asks the client to give back, with the key in `field`.
    pub(crate) fn server_security<'f>(
        &self,
        cookie: u32,
        mtu: u16,
        field: &'f mut [u8; PUBLIC_KEY_FIELD],
    ) -> ServerSecurity<'f> {
        let Some(identity) = self.server_identity() else { return ServerSecurity::Cookie(cookie) };
        *field = identity.field(mtu);
        ServerSecurity::PublicKey { cookie, key: field }
    }
}
