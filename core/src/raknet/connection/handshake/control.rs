//! The handshake messages inside a connection (docs/raknet.md#opening-a-connection).
//!
//! They are the connection request, its responses and the disconnection notification.

use core::net::SocketAddr;

use super::internal_addresses::{ListLength, MAX_ADDRESS_LIST};
use super::opening::{Reply2, dialled, failure_in_connection};
use super::{End, Handshake, REPEAT_REQUEST, State};
use crate::cursor::{Reader, Source, WireError};
use crate::endpoint::{ConnectionState, RefuseReason};
use crate::raknet::config::SERVER;
use crate::raknet::connection::block_header::{Context, Ending};
use crate::raknet::connection::protection::ConnectionProtection;
use crate::raknet::connection::sender::Sender;
use crate::raknet::delivery::{Delivery, Priority};
use crate::raknet::reason::{ConnectFailure, DisconnectReason};
use crate::raknet::stats::DropReason;
use crate::raknet::wire::control::{Control, KeyProblem, MAX_PASSWORD, Proof};
use crate::raknet::wire::{Guid, Wire};

impl Handshake {
    /// Client: starts the part of the handshake that follows reply 2.
    #[cfg_attr(
        not(feature = "secure"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only keys change")
    )]
    pub(super) fn request(
        &mut self,
        cx: &mut Context<'_, '_>,
        protection: &mut ConnectionProtection,
        sender: &mut Sender,
        reply: Reply2,
    ) -> Result<(), End> {
        // After a simultaneous open the smaller of the two negotiated MTUs applies.
        let mtu = if self.is_unverified() { sender.sizes().mtu().min(reply.mtu) } else { reply.mtu };
        self.guid = reply.guid;
        self.list_length = ListLength::of_version(self.opening.version());
        sender.set_mtu(cx, mtu);
        self.enter(cx.now, State::Requested);
        self.opening.postpone(cx.now, REPEAT_REQUEST);
        let shown = protection.take_proof();
        self.request_connection(cx, sender, shown.as_ref().map(|shown| shown.as_field()))
    }

    /// Client: sends the connection request.
    pub(super) fn request_connection(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        proof: Option<Proof<'_>>,
    ) -> Result<(), End> {
        let mut password = [0; MAX_PASSWORD];
        let password = match self.password {
            Some(stored) => cx.pool.copy(stored, &mut password).unwrap_or(&[]),
            None => &[],
        };
        let (guid, time) = (cx.config.guid, cx.now.as_millis());
        let request = Control::Request { guid, time, proof, password };
        sender.pings.on_ping_sent(cx.now);
        self.send(cx, sender, &request, Delivery::RELIABLE)
    }

    /// Queues a handshake message; without memory for it, the attempt fails.
    fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        control: &Control<'_>,
        delivery: Delivery,
    ) -> Result<(), End> {
        if sender.send_control(cx, control, delivery.with_priority(Priority::Immediate)) {
            Ok(())
        } else {
            Err(self.abort(DisconnectReason::ReceiveMemory, ConnectFailure::Closed))
        }
    }

    /// Handles a control message.
    pub(in super::super) fn on_control(
        &mut self,
        cx: &mut Context<'_, '_>,
        protection: &mut ConnectionProtection,
        sender: &mut Sender,
        remote: SocketAddr,
        payload: &[u8],
    ) -> Result<(), End> {
        if let (Some(failure), State::Requested | State::AwaitingNewIncoming) =
            (failure_in_connection(payload), self.state)
        {
            return Err(End::rejected(failure));
        }
        let mut reader = Reader::new(payload);
        let control = if SERVER { Control::read(&mut reader) } else { Control::read_of_server(&mut reader) };
        match (control, self.state) {
            (Ok(Control::Request { guid, time, proof, password }), _) if self.expects_request(guid) => {
                let client = Introduction { guid, time, proof, password };
                return self.on_request(cx, protection, sender, remote, client);
            }
            // Messages of an earlier connection must not fail this attempt.
            (_, State::Opening) => cx.stats.drop(DropReason::BadControl),
            // Any other message before the connection request closes the connection. The address is not banned.
            (_, State::Unverified) if SERVER => {
                cx.stats.drop(DropReason::BadControl);
                return Err(self.abort(DisconnectReason::Lost, ConnectFailure::Closed));
            }
            (
                Ok(Control::Accepted { time, addresses, .. }),
                State::Requested | State::AwaitingNewIncoming,
            ) => {
                self.keep_internal_addresses(cx, addresses);
                return self.confirm(cx, sender, remote, time);
            }
            (Ok(Control::NewIncoming { accepted_time, time, addresses, .. }), State::AwaitingNewIncoming)
                if SERVER =>
            {
                self.keep_internal_addresses(cx, addresses);
                on_pong(cx, sender, accepted_time, time);
                self.on_open(cx, sender);
            }
            (Ok(Control::InvalidPassword { .. }), State::Requested | State::AwaitingNewIncoming) => {
                return Err(End::rejected(ConnectFailure::InvalidPassword));
            }
            (Ok(Control::Ping { time }), _) if reader.remaining() == 0 => sender.pings.on_ping(time),
            (Ok(Control::Pong { ping_time, time }), _) if reader.remaining() == 0 => {
                let ping_time = sender.on_echo(cx, ping_time);
                on_pong(cx, sender, ping_time, time);
            }
            (Ok(Control::DetectLost), _) => {}
            // After a simultaneous open, messages of one of the attempts are redundant.
            (
                Ok(Control::Accepted { .. } | Control::NewIncoming { .. }),
                State::Connected | State::Closing,
            ) => {
                cx.stats.drop(DropReason::Unexpected);
            }
            (Ok(Control::Disconnect), _) => {
                return Err(self.on_disconnection_notification(DisconnectReason::Remote));
            }
            (Ok(Control::DisconnectTooLarge), _) => {
                return Err(self.on_disconnection_notification(DisconnectReason::SentTooLarge));
            }
            (Err(WireError::UnknownId), _) => cx.stats.drop(DropReason::ReservedId),
            (Ok(_) | Err(_), _) => cx.stats.drop(DropReason::BadControl),
        }
        Ok(())
    }

    /// Returns true if a connection request with this GUID is to be answered.
    ///
    /// It is either the first request or a retransmission, sent because the acceptance was lost.
    fn expects_request(&self, guid: Guid) -> bool {
        let is_first = matches!(self.state, State::Opening | State::Unverified | State::Requested);
        let is_repeated = self.state == State::Connected && self.acceptance_due && self.guid == guid;
        SERVER && (is_first || is_repeated)
    }

    /// Server: handles a connection request. It may be part of a simultaneous open.
    #[cfg_attr(
        not(feature = "secure"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only keys change")
    )]
    fn on_request(
        &mut self,
        cx: &mut Context<'_, '_>,
        protection: &mut ConnectionProtection,
        sender: &mut Sender,
        remote: SocketAddr,
        client: Introduction<'_>,
    ) -> Result<(), End> {
        if self.state == State::Connected {
            self.acceptance_due = false;
            return self.send_accepted(cx, sender, remote, client.time);
        }
        if let Err(reason) = protection.admit(cx, client.proof, client.password) {
            return self.refuse(cx, sender, reason);
        }
        if self.guid != client.guid {
            cx.stats.drop(DropReason::BadControl);
            return self.on_other_guid();
        }
        self.forget_password(cx);
        self.acceptance_due = false;
        self.enter(cx.now, State::AwaitingNewIncoming);
        sender.pings.on_ping_sent(cx.now);
        self.send_accepted(cx, sender, remote, client.time)
    }

    /// Handles a connection request with a GUID that differs from the GUID in request 2.
    fn on_other_guid(&mut self) -> Result<(), End> {
        if self.state == State::Opening {
            return Ok(());
        }
        Err(self.abort(DisconnectReason::Lost, ConnectFailure::Closed))
    }

    fn send_accepted(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        remote: SocketAddr,
        request_time: u64,
    ) -> Result<(), End> {
        let mut buffer = [0; MAX_ADDRESS_LIST];
        let accepted = Control::Accepted {
            client: remote,
            system_index: cx.slot,
            addresses: cx.state.internal_addresses.listed(cx.pool, cx.config, self.list_length, &mut buffer),
            request_time,
            time: cx.now.as_millis(),
        };
        self.send(cx, sender, &accepted, Delivery::RELIABLE_ORDERED)
    }

    /// Server: refuses the client.
    ///
    /// The application receives the exact reason; the client receives less detail.
    fn refuse(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        reason: RefuseReason,
    ) -> Result<(), End> {
        self.refused = Some(reason);
        let (count, problem) = match reason {
            RefuseReason::WrongPassword => (DropReason::WrongPassword, None),
            RefuseReason::NoIdentity => (DropReason::InvalidIdentity, Some(KeyProblem::IdentityMissing)),
            RefuseReason::InvalidIdentity => (DropReason::InvalidIdentity, Some(KeyProblem::IdentityInvalid)),
            RefuseReason::TokenOfOtherClient => (DropReason::RefusedToken, Some(KeyProblem::IdentityInvalid)),
            RefuseReason::NoToken
            | RefuseReason::TokenExpired
            | RefuseReason::TokenForOtherServer
            | RefuseReason::TokenUsed
            | RefuseReason::TokenStoreFull => (DropReason::RefusedToken, None),
        };
        cx.stats.drop(count);
        match problem {
            Some(problem) => self.reject_key(cx, sender, problem),
            None => self.reject_password(cx, sender),
        }
    }

    /// Server: reports a wrong password, and keeps the slot until the report is acknowledged.
    fn reject_password(&mut self, cx: &mut Context<'_, '_>, sender: &mut Sender) -> Result<(), End> {
        let refusal = Control::InvalidPassword { guid: Some(cx.config.guid) };
        self.reject(cx.now, ConnectFailure::InvalidPassword);
        // The refusal replaces the disconnection notification.
        self.disconnection_notification_sent = true;
        self.send(cx, sender, &refusal, Delivery::RELIABLE)
    }

    /// Server: reports a key problem, and keeps the slot until the report is acknowledged.
    fn reject_key(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        problem: KeyProblem,
    ) -> Result<(), End> {
        self.reject(cx.now, ConnectFailure::InvalidIdentity);
        // The refusal replaces the disconnection notification.
        self.disconnection_notification_sent = true;
        let refusal = Control::RequiresPublicKey { problem: Some(problem) };
        self.send(cx, sender, &refusal, Delivery::RELIABLE)
    }

    /// Client: handles "connection request accepted".
    fn confirm(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        remote: SocketAddr,
        accepted_time: u64,
    ) -> Result<(), End> {
        let mut buffer = [0; MAX_ADDRESS_LIST];
        let incoming = Control::NewIncoming {
            server: dialled(cx.config, remote),
            addresses: cx.state.internal_addresses.listed(cx.pool, cx.config, self.list_length, &mut buffer),
            accepted_time,
            time: cx.now.as_millis(),
        };
        self.send(cx, sender, &incoming, Delivery::RELIABLE_ORDERED)?;
        self.forget_password(cx);
        // Some servers read only the first message of a datagram, and some accept no other message before "new incoming
        // connection".
        sender.pings.follow_messages();
        self.on_open(cx, sender);
        Ok(())
    }

    fn on_open(&mut self, cx: &mut Context<'_, '_>, sender: &mut Sender) {
        self.enter(cx.now, State::Connected);
        self.opened = true;
        self.was_open = true;
        sender.ping(cx, Delivery::UNRELIABLE);
    }

    /// Returns the final state of the connection after the remote peer's disconnection notification.
    const fn on_disconnection_notification(&self, reason: DisconnectReason) -> End {
        let ending = if matches!(self.state, State::Connected) {
            Ending::Disconnected(reason)
        } else if matches!(self.state, State::Closing) {
            Ending::Disconnected(DisconnectReason::Local)
        } else {
            Ending::Failed(ConnectFailure::Closed)
        };
        End { state: State::Draining, ending }
    }

    /// Handles `disconnect` by the application: queued messages are delivered first.
    pub(in super::super) fn disconnect(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
    ) -> Result<(), End> {
        match self.public_state() {
            // The acceptance was sent, so the remote peer may already consider the connection open.
            ConnectionState::Connecting if self.state == State::AwaitingNewIncoming => {
                self.reject(cx.now, ConnectFailure::Cancelled);
                let delivery = Delivery::RELIABLE_ORDERED;
                self.disconnection_notification_sent =
                    sender.send_control(cx, &Control::Disconnect, delivery);
            }
            ConnectionState::Connecting => return Err(End::failed(ConnectFailure::Cancelled)),
            ConnectionState::Connected => self.enter(cx.now, State::Closing),
            ConnectionState::Disconnecting | ConnectionState::Disconnected => {}
        }
        Ok(())
    }

    /// Sends the disconnection notification once all messages are acknowledged.
    ///
    /// The connection closes once the notification has been acknowledged.
    pub(in super::super) fn finish_closing(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
    ) -> Result<(), End> {
        let due = !self.disconnection_notification_sent;
        self.disconnection_notification_sent = true;
        if due && sender.send_control(cx, &Control::Disconnect, Delivery::RELIABLE_ORDERED) {
            return Ok(());
        }
        Err(End { state: State::Closed, ending: Ending::Disconnected(DisconnectReason::Local) })
    }
}

fn on_pong(cx: &mut Context<'_, '_>, sender: &mut Sender, ping_time: u64, time: u64) {
    if !sender.pings.on_pong(cx.now, ping_time, time) {
        cx.stats.drop(DropReason::Unexpected);
    }
}

/// The fields of a connection request.
#[derive(Clone, Copy, Debug)]
struct Introduction<'m> {
    guid: Guid,
    time: u64,
    proof: Option<Proof<'m>>,
    password: &'m [u8],
}
