//! A challenge of a client, and what a server computes for it.

use crate::endpoint::PeerStats;
use crate::raknet::config::Config;
use crate::raknet::secure_state::SecureState;
use crate::raknet::stats::DropReason;
use crate::secure::{
    DatagramProtection, HandshakeError, Negotiated, ReplyFields, SecureRequest, ServerHandshake,
};
use crate::time::Instant;

/// A second request with a challenge, from a client whose cookie is verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChallengeRequest<'r> {
    pub(crate) negotiated: Negotiated,
    pub(crate) challenge: &'r [u8],
    /// What reply 2 says in clear.
    pub(crate) reply: ReplyFields,
}

impl ChallengeRequest<'_> {
    const fn fields(&self) -> SecureRequest<'_> {
        SecureRequest { negotiated: &self.negotiated, challenge: self.challenge }
    }

    /// Whether it is the request that this handshake has answered.
    pub(crate) fn repeats(&self, config: &Config, handshake: &ServerHandshake) -> bool {
        config.server_identity().is_some_and(|identity| handshake.is_repeated(identity, self.fields()))
    }

    /// The MTU that reply 2 has.
    pub(crate) const fn mtu(&self) -> u16 {
        self.reply.mtu
    }

    /// Computes the answer, if the client's network has not had enough of them. What gets none was counted, unless the
    /// client has another kind of security.
    pub(crate) fn respond(
        &self,
        config: &Config,
        state: &mut SecureState,
        stats: &mut PeerStats<DropReason>,
        now: Instant,
    ) -> Result<(ServerHandshake, DatagramProtection), HandshakeError> {
        let identity = config.server_identity().ok_or(HandshakeError::Malformed)?;
        let count = |stats: &mut PeerStats<DropReason>, error: &HandshakeError| {
            if *error != HandshakeError::OtherSuite {
                stats.drop(DropReason::Unauthentic);
            }
        };
        // A request that fails these checks costs no curve operation, so it takes no token.
        self.fields().check().inspect_err(|error| count(stats, error))?;
        if !state.admits(config, now, self.reply.client.ip()) {
            stats.drop(DropReason::HandshakeLimit);
            return Err(HandshakeError::Malformed);
        }
        let (versions, random) = (&config.accepted_versions, state.random());
        let answered = ServerHandshake::respond(identity, self.fields(), self.reply, versions, now, random);
        let answered = answered.inspect_err(|error| count(stats, error));
        answered.map(|(handshake, protection)| (handshake, protection.with_cipher(config.cipher())))
    }
}
