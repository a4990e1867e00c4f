//! How a connection opens and closes, on both sides (docs/raknet.md#opening-a-connection).

mod opening;
mod state;
mod version;

use core::net::SocketAddr;
use core::time::Duration;

use opening::{Opening, Reply2, dialled};
pub(super) use state::{End, State};

use super::block_header::BlockHeader;
use super::context::{Context, Ending};
use super::sender::Sender;
use crate::cursor::{Reader, Source, WireError};
use crate::endpoint::{ConnectError, ConnectionState, Side};
use crate::raknet::delivery::{Delivery, Priority};
use crate::raknet::features::SERVER;
use crate::raknet::reason::{ConnectFailure, DisconnectReason};
use crate::raknet::stats::DropReason;
use crate::raknet::types::ConnectOptions;
use crate::raknet::wire::address::AddressList;
use crate::raknet::wire::control::{Control, MAX_PASSWORD};
use crate::raknet::wire::offline::Offline;
use crate::raknet::wire::{Guid, Wire};
use crate::storage::Link;
use crate::time::Instant;

/// How long a connection that is over still answers what the other peer sends again.
const DRAIN: Duration = Duration::from_secs(1);

/// The state of a connection, and who the other peer is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    state: State,
    /// The requests of a client while its state is [`State::Opening`].
    opening: Opening,
    /// When the connection came into its state.
    since: Instant,
    guid: Guid,
    /// What a client says to be let in, until it was sent.
    password: Link,
    /// The connection opened, and the application was not told yet.
    opened: bool,
    /// The connection is open, or was before it ended.
    was_open: bool,
    /// The connection ended, and the application was not told yet.
    ending: Option<Ending>,
    /// Whether the disconnection notification was sent. What was sent before it must be acknowledged first: a peer that
    /// has received the notification takes nothing more.
    closing_notification_sent: bool,
}

impl Handshake {
    /// Begins to wait for the connection request of a peer whose address is proved.
    pub(super) fn await_request(&mut self, now: Instant, guid: Guid) {
        self.enter(now, State::Unverified);
        self.guid = guid;
    }

    /// Begins to open a connection.
    pub(super) fn open(
        &mut self,
        cx: &mut Context<'_, '_>,
        options: &ConnectOptions<'_>,
    ) -> Result<(), ConnectError> {
        if options.password.len() > MAX_PASSWORD {
            return Err(ConnectError::PasswordTooLong);
        }
        if !options.password.is_empty() {
            let stored = cx.pool.store_common(options.password, &BlockHeader::Raw);
            self.password = Some(stored.ok_or(ConnectError::NoMemory)?);
        }
        self.opening = Opening::new(cx, options);
        self.guid = Guid::UNASSIGNED;
        self.enter(cx.now, State::Opening);
        Ok(())
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    /// When the connection came into its state.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    pub(super) const fn guid(&self) -> Guid {
        self.guid
    }

    pub(super) const fn public_state(&self) -> ConnectionState {
        self.state.public()
    }

    /// Whether the other peer, which opened the connection, takes one of the places for incoming connections.
    pub(super) const fn takes_incoming_slot(&self) -> bool {
        matches!(self.state, State::Unverified | State::AwaitingNewIncoming) || self.state.is_open()
    }

    /// Whether the connection is open, or was before it ended. Nothing else has messages for the application.
    pub(super) const fn was_open(&self) -> bool {
        self.was_open
    }

    /// Whether there is something to tell the application.
    pub(super) const fn has_events(&self) -> bool {
        self.opened || self.ending.is_some()
    }

    pub(super) const fn take_opened(&mut self) -> bool {
        core::mem::replace(&mut self.opened, false)
    }

    pub(super) const fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    fn enter(&mut self, now: Instant, state: State) {
        self.state = state;
        self.since = now;
    }

    /// Ends the connection; false if it has ended before. The application is told if it knew of the connection.
    pub(super) fn end(&mut self, now: Instant, side: Side, end: End) -> bool {
        if matches!(self.state, State::Free) || self.state.is_over() {
            return false;
        }
        let is_known = side == Side::Client || self.state.is_open();
        self.enter(now, end.state);
        if is_known {
            self.ending = Some(end.ending);
        }
        true
    }

    /// The end of the connection for `reason` or, if it was not open yet, for `failure`.
    pub(super) fn abort(&mut self, reason: DisconnectReason, failure: ConnectFailure) -> End {
        if !self.state.is_open() {
            return End::failed(failure);
        }
        self.closing_notification_sent = false;
        // A silent peer would not receive a notification either.
        let state = if reason == DisconnectReason::Lost { State::Closed } else { State::Aborting };
        End { state, ending: Ending::Disconnected(reason) }
    }

    /// A datagram arrived that does not belong to the state: the other peer does not know that the connection is over.
    pub(super) const fn on_unexpected_datagram(&mut self) {
        self.closing_notification_sent = false;
    }

    /// Whether a connection that is aborted has to notify the other peer now.
    pub(super) const fn take_closing_notification(&mut self) -> bool {
        !core::mem::replace(&mut self.closing_notification_sent, true)
    }

    pub(super) fn forget_password(&mut self, cx: &mut Context<'_, '_>) {
        if let Some(password) = self.password.take() {
            cx.pool.free_common(password);
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        match self.state {
            State::Free | State::Connected | State::Closed => None,
            State::Opening => Some(self.opening.next_deadline()),
            State::Requested => Some(self.opening.deadline()),
            State::Unverified | State::AwaitingNewIncoming => Some(self.since + cx.config.handshake_timeout),
            State::Closing | State::RejectingPassword => Some(self.since + cx.config.close_timeout),
            State::Draining | State::Aborting => Some(self.since + DRAIN),
        }
    }

    pub(super) fn on_timeout(&mut self, cx: &Context<'_, '_>) -> Result<(), End> {
        if self.deadline(cx).is_none_or(|at| at > cx.now) {
            return Ok(());
        }
        match self.state {
            State::Opening if self.opening.is_over(cx.now) => Err(End::failed(self.opening.failure())),
            State::Requested | State::Unverified | State::AwaitingNewIncoming => {
                Err(self.abort(DisconnectReason::Lost, ConnectFailure::NoAnswer))
            }
            State::Closing | State::RejectingPassword => {
                Err(self.abort(DisconnectReason::Local, ConnectFailure::Cancelled))
            }
            State::Draining | State::Aborting => {
                self.state = State::Closed;
                Ok(())
            }
            State::Free | State::Opening | State::Connected | State::Closed => Ok(()),
        }
    }

    /// Composes an offline message of a client that opens the connection.
    pub(super) fn compose_request(
        &mut self,
        cx: &Context<'_, '_>,
        remote: SocketAddr,
        buffer: &mut [u8],
    ) -> Option<usize> {
        self.opening.compose(cx, remote, buffer)
    }

    /// Handles an offline message that answers a client's request.
    pub(super) fn on_offline(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        message: &Offline<'_>,
    ) -> Result<(), End> {
        if self.state != State::Opening {
            cx.stats.drop(DropReason::Unexpected);
            return Ok(());
        }
        match self.opening.on_reply(cx, message).map_err(End::failed)? {
            Some(reply) => self.request(cx, sender, reply),
            None => Ok(()),
        }
    }

    /// Client: begins the handshake inside the connection.
    fn request(&mut self, cx: &mut Context<'_, '_>, sender: &mut Sender, reply: Reply2) -> Result<(), End> {
        self.guid = reply.guid;
        sender.set_mtu(cx, reply.mtu);
        self.enter(cx.now, State::Requested);
        let mut password = [0; MAX_PASSWORD];
        let password = match self.password {
            Some(stored) => cx.pool.copy(stored, &mut password).unwrap_or(&[]),
            None => &[],
        };
        let (guid, time) = (cx.config.guid, cx.now.as_millis());
        let request = Control::Request { guid, time, proof: None, password };
        sender.pings.on_ping_sent(cx.now);
        let sent = self.send(cx, sender, &request, Delivery::RELIABLE);
        self.forget_password(cx);
        sent
    }

    /// Sends a message without which the connection cannot open.
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

    /// Handles a message of RakNet itself.
    pub(super) fn on_control(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        remote: SocketAddr,
        payload: &[u8],
    ) -> Result<(), End> {
        let mut reader = Reader::new(payload);
        let control = Control::read(&mut reader);
        match (control, self.state) {
            (Ok(Control::Request { guid, time, password, .. }), State::Unverified | State::Requested)
                if SERVER =>
            {
                let accepted = Control::Accepted {
                    client: remote,
                    system_index: cx.slot,
                    addresses: AddressList::unassigned(cx.config.address_count.into()),
                    request_time: time,
                    time: cx.now.as_millis(),
                };
                return self.accept(cx, sender, guid, password, &accepted);
            }
            // Anything else from a client that has not introduced itself ends the connection. Its address is not banned.
            (_, State::Unverified) if SERVER => {
                cx.stats.drop(DropReason::BadControl);
                return Err(self.abort(DisconnectReason::Lost, ConnectFailure::Closed));
            }
            (Ok(Control::Accepted { time, .. }), State::Requested | State::AwaitingNewIncoming) => {
                return self.confirm(cx, sender, remote, time);
            }
            (Ok(Control::NewIncoming { accepted_time, time, .. }), State::AwaitingNewIncoming) if SERVER => {
                on_pong(cx, sender, accepted_time, time);
                self.on_open(cx, sender);
            }
            (Ok(Control::InvalidPassword { .. }), State::Requested) => {
                let ending = Ending::Failed(ConnectFailure::InvalidPassword);
                return Err(End { state: State::Draining, ending });
            }
            (Ok(Control::Ping { time }), _) if reader.remaining() == 0 => sender.pings.on_ping(time),
            (Ok(Control::Pong { ping_time, time }), _) if reader.remaining() == 0 => {
                on_pong(cx, sender, ping_time, time);
            }
            (Ok(Control::DetectLost), _) => {}
            (Ok(Control::Disconnect), _) => return Err(self.on_closing_notification()),
            (Err(WireError::UnknownId), _) => cx.stats.drop(DropReason::ReservedId),
            (Ok(_) | Err(_), _) => cx.stats.drop(DropReason::BadControl),
        }
        Ok(())
    }

    /// Server: the client introduced itself. Both sides may also dial each other at once.
    fn accept(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        guid: Guid,
        password: &[u8],
        accepted: &Control<'_>,
    ) -> Result<(), End> {
        if !is_same_secret(&cx.state.password, password) {
            return self.reject_password(cx, sender);
        }
        if self.guid != guid {
            cx.stats.drop(DropReason::BadControl);
            return Err(self.abort(DisconnectReason::Lost, ConnectFailure::Closed));
        }
        self.enter(cx.now, State::AwaitingNewIncoming);
        sender.pings.on_ping_sent(cx.now);
        self.send(cx, sender, accepted, Delivery::RELIABLE_ORDERED)
    }

    /// Server: says why, and holds the slot until that was acknowledged.
    fn reject_password(&mut self, cx: &mut Context<'_, '_>, sender: &mut Sender) -> Result<(), End> {
        let refusal = Control::InvalidPassword { guid: Some(cx.config.guid) };
        self.enter(cx.now, State::RejectingPassword);
        self.send(cx, sender, &refusal, Delivery::RELIABLE)
    }

    /// Client: the server accepted.
    fn confirm(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
        remote: SocketAddr,
        accepted_time: u64,
    ) -> Result<(), End> {
        let incoming = Control::NewIncoming {
            server: dialled(cx.config, remote),
            addresses: AddressList::unassigned(cx.config.address_count.into()),
            accepted_time,
            time: cx.now.as_millis(),
        };
        self.send(cx, sender, &incoming, Delivery::RELIABLE_ORDERED)?;
        self.on_open(cx, sender);
        Ok(())
    }

    fn on_open(&mut self, cx: &mut Context<'_, '_>, sender: &mut Sender) {
        self.enter(cx.now, State::Connected);
        self.opened = true;
        self.was_open = true;
        sender.ping(cx, Delivery::UNRELIABLE);
    }

    /// The end of the connection by a disconnection notification of the other peer.
    const fn on_closing_notification(&self) -> End {
        let ending = if matches!(self.state, State::Connected) {
            Ending::Disconnected(DisconnectReason::Remote)
        } else if matches!(self.state, State::Closing) {
            Ending::Disconnected(DisconnectReason::Local)
        } else {
            Ending::Failed(ConnectFailure::Closed)
        };
        End { state: State::Draining, ending }
    }

    /// The application disconnects: what was sent before is delivered first.
    pub(super) fn disconnect(&mut self, now: Instant) -> Result<(), End> {
        match self.public_state() {
            ConnectionState::Connecting => return Err(End::failed(ConnectFailure::Cancelled)),
            ConnectionState::Connected => self.enter(now, State::Closing),
            ConnectionState::Disconnecting | ConnectionState::Disconnected => {}
        }
        Ok(())
    }

    /// Everything was acknowledged: notifies the other peer. Once that was acknowledged, too, the connection is over.
    pub(super) fn finish_closing(
        &mut self,
        cx: &mut Context<'_, '_>,
        sender: &mut Sender,
    ) -> Result<(), End> {
        let due = matches!(self.state, State::Closing) && !self.closing_notification_sent;
        self.closing_notification_sent = true;
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

/// Compares in a time that does not depend on where the difference is.
fn is_same_secret(expected: &[u8], given: &[u8]) -> bool {
    let differences = expected.iter().zip(given).fold(0, |all, (left, right)| all | (left ^ right));
    expected.len() == given.len() && differences == 0
}
