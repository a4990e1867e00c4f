//! A peer that is built without security.

use super::connection::ConnectionProtection;
use super::requests::{Challenge, Request2};
use super::responder::Answer;
use super::stats::DropReason;
use super::types::RakNet;
use crate::endpoint::Peer;

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
