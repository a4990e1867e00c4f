//! Second requests of clients that want keys (docs/secure.md#request-2-the-challenge-64-bytes).

use super::config::Config;
use super::connection::{ChallengeRequest, ConnectionProtection};
use super::requests::{Challenge, Request2};
use super::responder::Answer;
use super::security::SecurePeer;
use super::types::RakNet;
use super::wire::offline::Refusal;
use crate::endpoint::{ConnectionId, Peer};
use crate::secure::{AcceptedToken, HandshakeError, Negotiated, ReplyFields};
use crate::time::Instant;

/// The parts of a request that the handshake depends on.
const fn of_client<'r>(
    config: &Config,
    request: &Request2<'_>,
    challenge: &Challenge<'r>,
) -> ChallengeRequest<'r> {
    let negotiated = Negotiated {
        server: config.guid,
        client: request.guid,
        cookie: challenge.cookie,
        server_address: challenge.server_address,
        mtu: challenge.mtu,
    };
    let reply = ReplyFields { client: request.from, mtu: request.mtu };
    ChallengeRequest { negotiated, challenge: challenge.bytes, reply }
}

impl Peer<'_, RakNet> {
    /// What the connection of a client with a challenge begins with; or how the client is told that there is none, if it is.
    pub(super) fn answer_challenge(
        &mut self,
        request: &Request2<'_>,
        challenge: &Challenge<'_>,
    ) -> Result<ConnectionProtection, Option<Answer>> {
        let Self { config, state, stats, last_now, .. } = self;
        let answered =
            of_client(config, request, challenge).respond(config, &mut state.secure, stats, *last_now);
        match answered {
            Ok((handshake, datagrams)) => Ok(ConnectionProtection::half_open(handshake, datagrams)),
            Err(HandshakeError::OtherSuite) => Err(Some(Answer::Refused(Refusal::AttemptFailed))),
            Err(_) => Err(None),
        }
    }

    /// Handles another challenge of a client whose connection is half open.
    pub(super) fn answer_challenge_again(
        &mut self,
        slot: u16,
        request: &Request2<'_>,
        challenge: &Challenge<'_>,
    ) {
        let request = of_client(&self.config, request, challenge);
        self.with(slot, |connection, cx| connection.on_challenge(cx, &request));
    }

    /// Whom the other peer of a secure connection has shown to be, while the connection exists. None for a plain one, and
    /// before its keys are agreed on.
    ///
    /// A client that trusts any key stores the [`KnownServer`](crate::secure::KnownServer) that this returns, and trusts that
    /// the next time. A server ends the connections of clients whose identity it does not want.
    #[must_use]
    pub fn secure_peer(&self, id: ConnectionId) -> Option<SecurePeer> {
        self.get(id)?.connection.secure_peer()
    }

    /// What the connect token of the client said, while the connection exists. None if this end is not a server that
    /// [asks for tokens](crate::secure::ServerIdentity::tokens).
    #[must_use]
    pub fn accepted_token(&self, id: ConnectionId) -> Option<&AcceptedToken> {
        self.get(id)?.connection.accepted_token()
    }

    /// Tells how many seconds since 1970 it is `now`, by which connect tokens expire. The peer counts on from there, and may be
    /// told again whenever its driver knows better. Until it is told, every token has expired.
    pub fn set_unix_time(&mut self, now: Instant, seconds: u64) {
        self.state.secure.set_unix_time(now, seconds);
    }
}
