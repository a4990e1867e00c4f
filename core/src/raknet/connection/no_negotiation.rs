//! A connection that is built without security has no keys to agree on.

use core::net::SocketAddr;

use super::context::Context;
use super::offer::{Acceptance, Offer, Reply2Fields, accept_in_plain};
use super::protection::ConnectionProtection;
use crate::endpoint::{ConnectError, RefuseReason};
use crate::raknet::reason::ConnectFailure;
use crate::raknet::types::ConnectOptions;
use crate::raknet::wire::control::Proof;
use crate::raknet::wire::offline::ClientSecurity;

/// What a client writes into its connection request: nothing can be made of it.
#[derive(Clone, Copy)]
pub(super) enum ClientProof {}

impl ClientProof {
    pub(super) const fn as_field(&self) -> Proof<'_> {
        match *self {}
    }
}

impl ConnectionProtection {
    /// What a connection begins with that this end opens.
    pub(super) fn dial(cx: &Context<'_, '_>, _: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        Ok(Self::new(cx.config.protection))
    }

    /// Client: how a reply 1 is answered.
    pub(super) fn on_offer(
        &self,
        _: &Context<'_, '_>,
        offer: &Offer<'_>,
    ) -> Result<Option<Acceptance>, ConnectFailure> {
        accept_in_plain(offer.security).map(Some)
    }

    /// Client: the fields of request 2.
    pub(super) const fn client_security(&self, acceptance: Acceptance) -> ClientSecurity<'_> {
        match acceptance {
            Acceptance::Plain => ClientSecurity::None,
            Acceptance::Cookie(cookie) => ClientSecurity::Cookie(cookie),
        }
    }

    /// Client: whether a reply 2 opens the connection.
    pub(super) const fn on_reply_2(
        &self,
        _: &Context<'_, '_>,
        reply: &Reply2Fields<'_>,
    ) -> Result<bool, ConnectFailure> {
        // Without a challenge of this client there is nothing to answer, but for a server that would encrypt.
        if reply.answer.is_some() { Err(ConnectFailure::SecurityRequired) } else { Ok(true) }
    }

    /// Client: what the connection request shows.
    pub(super) const fn take_proof(&self) -> Option<ClientProof> {
        None
    }

    /// Server: takes the password of a connection request.
    pub(super) fn admit(
        &self,
        cx: &Context<'_, '_>,
        _: Option<Proof<'_>>,
        password: &[u8],
    ) -> Result<(), RefuseReason> {
        if cx.state.accepts_password(password) { Ok(()) } else { Err(RefuseReason::WrongPassword) }
    }

    /// Server: writes reply 2, if it is to be sent by the connection.
    pub(super) const fn compose_reply_2(
        &self,
        _: &Context<'_, '_>,
        _: SocketAddr,
        _: u16,
        _: &mut [u8],
    ) -> Option<usize> {
        None
    }
}
