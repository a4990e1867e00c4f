//! A peer that is built without security.

use super::config::Config;
use super::connection::ConnectionProtection;
use super::requests::{Challenge, Request2};
use super::responder::Answer;
use super::stats::DropReason;
use super::types::RakNet;
use super::wire::offline::ServerSecurity;
use crate::endpoint::Peer;

/// Bytes of the key in reply 1.
const PUBLIC_KEY_FIELD: usize = 64;

impl Config {
    /// Whether reply 1 has a key.
    #[expect(clippy::unused_self, reason = "with security it depends on the configuration")]
    pub(crate) const fn has_server_key(&self) -> bool {
        false
    }

    /// Whether clients without security are refused.
    #[expect(clippy::unused_self, reason = "with security it depends on the configuration")]
    pub(crate) const fn requires_security(&self) -> bool {
        false
    }

    /// What reply 1 asks the client to give back.
    #[expect(clippy::unused_self, reason = "with security it depends on the configuration")]
    pub(crate) const fn server_security<'f>(
        &self,
        cookie: u32,
        _mtu: u16,
        _field: &'f mut [u8; PUBLIC_KEY_FIELD],
    ) -> ServerSecurity<'f> {
        ServerSecurity::Cookie(cookie)
    }
}

impl Peer<'_, RakNet> {
    /// Who has no key answers no challenge.
    pub(super) fn answer_challenge(
        &mut self,
        _: &Request2<'_>,
        _: &Challenge<'_>,
    ) -> Result<ConnectionProtection, Option<Answer>> {
        self.stats.drop(DropReason::Unexpected);
        Err(None)
    }

    /// Who has no key has no connection that a challenge is for.
    pub(super) fn answer_challenge_again(&mut self, _: u16, _: &Request2<'_>, _: &Challenge<'_>) {
        self.stats.drop(DropReason::Unexpected);
    }
}
