//! Opening and closing of a connection on both sides (docs/raknet.md#opening-a-connection).

mod control;
pub(in crate::raknet) mod internal_addresses;
mod opening;

use core::time::Duration;

use internal_addresses::{ListLength, StoredAddresses, is_assigned};
use opening::{Opening, failure_of};

use super::block_header::{BlockHeader, Context, Ending};
use super::protection::ConnectionProtection;
use super::sender::Sender;
use crate::endpoint::{ConnectError, ConnectionState, RefuseReason, Side};
use crate::raknet::config::{ConnectOptions, SERVER};
use crate::raknet::reason::{ConnectFailure, DisconnectReason};
use crate::raknet::stats::DropReason;
use crate::raknet::wire::Guid;
use crate::raknet::wire::address::AddressList;
use crate::raknet::wire::control::{Control, MAX_PASSWORD};
use crate::raknet::wire::offline::Offline;
use crate::storage::BlockLink;
use crate::time::Instant;

/// The delay after which a client repeats an unanswered connection request.
///
/// Some servers send the response unreliably, and repeat it only after another request
/// (docs/raknet.md#connection-attempts).
const REPEAT_REQUEST: Duration = Duration::from_secs(1);

/// The time for which a closed connection still acknowledges retransmissions.
const DRAIN: Duration = Duration::from_secs(1);

/// The state of a connection; the module `connection` has a state diagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Opening,
    /// Client: waiting for "connection request accepted".
    Requested,
    Unverified,
    AwaitingNewIncoming,
    /// Refusing a connection that is not open yet; the remote peer is being notified.
    Rejecting,
    Connected,
    Closing,
    Draining,
    /// Closed by this peer after an error. The notification is repeated while datagrams show that the remote peer has
    /// not received it.
    Aborting,
    Closed,
}

/// The final state of a connection, and the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    state: State,
    ending: Ending,
}

impl End {
    /// Creates the end of a failed attempt.
    pub(super) const fn failed(failure: ConnectFailure) -> Self {
        Self { state: State::Closed, ending: Ending::Failed(failure) }
    }

    /// Creates the end of an attempt that the remote peer refused. The refusal may be retransmitted, and must then be
    /// acknowledged again.
    const fn rejected(failure: ConnectFailure) -> Self {
        Self { state: State::Draining, ending: Ending::Failed(failure) }
    }
}

impl State {
    const fn public(self) -> ConnectionState {
        match self {
            Self::Opening | Self::Requested | Self::Unverified | Self::AwaitingNewIncoming => {
                ConnectionState::Connecting
            }
            Self::Connected => ConnectionState::Connected,
            Self::Closing | Self::Rejecting => ConnectionState::Disconnecting,
            Self::Free | Self::Draining | Self::Aborting | Self::Closed => ConnectionState::Disconnected,
        }
    }

    /// Returns true if the connection has opened and not closed.
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Connected | Self::Closing)
    }

    /// Returns true if the connection has closed.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Draining | Self::Aborting | Self::Closed)
    }
}

/// The state of a connection and the identity of the remote peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    side: Side,
    state: State,
    /// The number of addresses that this peer announces, which depends on the protocol version.
    list_length: ListLength,
    /// Client: the offline part of the handshake.
    opening: Opening,
    /// The time at which the current state began.
    since: Instant,
    guid: Guid,
    /// Client: the password or connect token, until it has been sent.
    password: BlockLink,
    /// Set until [`Event::Connected`](crate::endpoint::Event::Connected) has been reported.
    opened: bool,
    /// Set once the connection has opened; it remains set after the connection has closed.
    was_open: bool,
    /// Server: the refusal to be reported to the application.
    refused: Option<RefuseReason>,
    /// The last event of the connection, to be reported to the application.
    ending: Option<Ending>,
    /// The failure of this peer's attempt in a simultaneous open, while the attempt of the remote peer continues.
    failure: Option<ConnectFailure>,
    /// Set in a simultaneous open while the remote peer may still expect "connection request accepted".
    acceptance_due: bool,
    /// The local addresses that the remote peer announced.
    ///
    /// They are stored until the application polls the event after `Connected`.
    internal_addresses: StoredAddresses,
    /// Set once the disconnection notification has been sent.
    ///
    /// A peer accepts no message after the notification, so it is sent once all earlier messages are acknowledged.
    disconnection_notification_sent: bool,
    /// The number of datagrams received since the connection was aborted.
    unexpected: u8,
    /// Set if the connection is aborted because a message from the remote peer is too large.
    ends_for_size: bool,
}

impl Handshake {
    /// Server: starts waiting for the connection request, after reply 2.
    pub(super) fn await_request(&mut self, now: Instant, guid: Guid, list_length: ListLength) {
        (self.side, self.list_length) = (Side::Server, list_length);
        self.enter(now, State::Unverified);
        self.guid = guid;
    }

    /// Client: starts connecting.
    ///
    /// Precondition: the connection is new, except that the remote peer's second request may have been handled.
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
        let crosses = self.is_unverified().then_some(self.guid);
        self.side = Side::Client;
        self.opening = Opening::new(cx, options);
        self.guid = Guid::UNASSIGNED;
        self.enter(cx.now, State::Opening);
        if let Some(guid) = crosses {
            self.cross(guid);
        }
        Ok(())
    }

    /// Makes this peer a client of a connection that the remote peer is opening; both peers are then clients.
    ///
    /// Returns false unless only "new incoming connection" has not been received yet.
    pub(super) fn open_simultaneously(&mut self) -> bool {
        let adopts = SERVER && self.state == State::AwaitingNewIncoming;
        if adopts {
            self.side = Side::Client;
        }
        adopts
    }

    /// Handles the second request of a remote peer to which this peer is connecting (docs/raknet.md#both-dial).
    ///
    /// The attempt that completes first opens the connection.
    ///
    /// Returns false if this peer is not connecting, or has handled such a request before.
    pub(super) fn cross(&mut self, guid: Guid) -> bool {
        let crosses = self.state == State::Opening && !self.opening.is_crossed();
        if crosses {
            self.opening.cross();
            self.list_length = ListLength::of_version(self.opening.version());
            self.guid = guid;
            self.acceptance_due = true;
        }
        crosses
    }

    /// Returns true if reply 2 was sent and no datagram of the connection was received since.
    pub(super) const fn is_unverified(&self) -> bool {
        SERVER
            && (matches!(self.state, State::Unverified)
                || matches!(self.state, State::Opening) && self.opening.is_crossed())
    }

    /// Returns true if datagrams of the connection are accepted.
    pub(super) const fn takes_datagrams(&self) -> bool {
        self.is_unverified()
            || !matches!(self.state, State::Free | State::Opening | State::Aborting | State::Closed)
    }

    pub(super) const fn side(&self) -> Side {
        self.side
    }

    /// Returns the local addresses that the remote peer announced.
    pub(super) const fn internal_addresses(&self) -> StoredAddresses {
        self.internal_addresses
    }

    fn keep_internal_addresses(&mut self, cx: &mut Context<'_, '_>, addresses: AddressList<'_>) {
        // Without free memory they are not stored.
        self.internal_addresses.keep(cx.pool, addresses.iter().filter(is_assigned));
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    /// Returns the time at which the current state began.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    pub(super) const fn guid(&self) -> Guid {
        self.guid
    }

    pub(super) const fn public_state(&self) -> ConnectionState {
        self.state.public()
    }

    /// Returns true if the connection counts against the limit of incoming connections.
    pub(super) const fn takes_incoming_slot(&self) -> bool {
        matches!(self.state, State::Unverified | State::AwaitingNewIncoming) || self.state.is_open()
    }

    /// Returns true if the connection is open, or was open before it closed.
    ///
    /// Only then can it have messages for the application.
    pub(super) const fn was_open(&self) -> bool {
        self.was_open
    }

    /// Returns true if there are events, or memory to free on the next poll.
    pub(super) const fn has_events(&self) -> bool {
        self.opened || self.refused.is_some() || self.ending.is_some() || self.internal_addresses.is_some()
    }

    pub(super) const fn take_opened(&mut self) -> bool {
        core::mem::replace(&mut self.opened, false)
    }

    pub(super) const fn take_refused(&mut self) -> Option<RefuseReason> {
        self.refused.take()
    }

    pub(super) const fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    fn enter(&mut self, now: Instant, state: State) {
        self.state = state;
        self.since = now;
    }

    /// Closes the connection; returns false if it has already closed.
    ///
    /// The application is notified of the end if it has been notified of the connection, or has requested it.
    pub(super) fn end(&mut self, now: Instant, end: End) -> bool {
        if matches!(self.state, State::Free) || self.state.is_over() {
            return false;
        }
        // While rejecting, the application has already been notified.
        let is_known = self.state.is_open() || self.side == Side::Client && self.state != State::Rejecting;
        self.enter(now, end.state);
        if is_known {
            self.ending = Some(end.ending);
        }
        true
    }

    /// Returns the final state of the connection: closed for `reason` if it was open, or else failed with `failure`.
    pub(super) fn abort(&mut self, reason: DisconnectReason, failure: ConnectFailure) -> End {
        (self.disconnection_notification_sent, self.unexpected) = (false, 0);
        self.ends_for_size = reason == DisconnectReason::MessageTooLarge;
        let is_open = self.state.is_open();
        // In `AwaitingNewIncoming` the remote peer may already consider the connection open. Notifying an unresponsive
        // peer is pointless.
        let is_notified =
            (is_open || self.state == State::AwaitingNewIncoming) && reason != DisconnectReason::Lost;
        let ending = if is_open {
            Ending::Disconnected(reason)
        } else {
            Ending::Failed(self.failure.unwrap_or(failure))
        };
        End { state: if is_notified { State::Aborting } else { State::Closed }, ending }
    }

    /// Handles the failure of this peer's attempt. In a simultaneous open the attempt of the remote peer continues.
    fn on_failure(&mut self, now: Instant, failure: ConnectFailure) -> Result<(), End> {
        if !self.is_unverified() {
            return Err(End::failed(failure));
        }
        self.failure = Some(failure);
        self.enter(now, State::Unverified);
        Ok(())
    }

    /// Starts to refuse the connection. The slot is kept until the remote peer has acknowledged the refusal.
    ///
    /// If this peer opened the connection, the application is notified immediately.
    fn reject(&mut self, now: Instant, failure: ConnectFailure) {
        self.enter(now, State::Rejecting);
        if self.side == Side::Client {
            self.ending = Some(Ending::Failed(failure));
        }
    }

    /// Handles a datagram that the remote peer sent before it noticed that the connection has closed.
    ///
    /// The notification is repeated after 1, 2, 4, ... datagrams. Otherwise two peers that abort at the same time would
    /// answer each other's notifications forever (RFC 9000 section 10.2.1).
    pub(super) const fn on_unexpected_datagram(&mut self) {
        self.unexpected = self.unexpected.saturating_add(1);
        if self.unexpected.is_power_of_two() {
            self.disconnection_notification_sent = false;
        }
    }

    /// Takes the disconnection notification that an aborted connection has to send.
    pub(super) fn take_disconnection_notification(&mut self) -> Option<Control<'static>> {
        if core::mem::replace(&mut self.disconnection_notification_sent, true) {
            return None;
        }
        Some(if self.ends_for_size { Control::DisconnectTooLarge } else { Control::Disconnect })
    }

    /// Frees the memory held in the pool.
    pub(super) fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.forget_password(cx);
        self.forget_internal_addresses(cx);
    }

    pub(super) fn forget_internal_addresses(&mut self, cx: &mut Context<'_, '_>) {
        self.internal_addresses.forget(cx.pool);
    }

    fn forget_password(&mut self, cx: &mut Context<'_, '_>) {
        if let Some(password) = self.password.take() {
            cx.pool.free_common(password);
        }
    }

    /// Returns when [`on_timeout`](Self::on_timeout) is due.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        match self.state {
            State::Free | State::Connected | State::Closed => None,
            State::Opening => Some(self.opening.next_deadline()),
            State::Requested => Some(self.opening.next_deadline()),
            State::Unverified | State::AwaitingNewIncoming => {
                Some(self.opening.deadline_or(self.since + cx.config.handshake_timeout))
            }
            State::Closing | State::Rejecting => Some(self.since + cx.config.close_timeout),
            State::Draining | State::Aborting => Some(self.since + DRAIN),
        }
    }

    /// Returns true if the time limit for closing the connection has passed.
    ///
    /// A closing or refused connection waits for acknowledgements, and a closed connection for retransmissions.
    pub(super) fn is_close_overdue(&self, cx: &Context<'_, '_>) -> bool {
        let is_closing = matches!(self.state, State::Closing | State::Rejecting) || self.state.is_over();
        is_closing && self.deadline(cx).is_some_and(|at| at <= cx.now)
    }

    pub(super) fn on_timeout(
        &mut self,
        cx: &mut Context<'_, '_>,
        protection: &ConnectionProtection,
        sender: &mut Sender,
    ) -> Result<(), End> {
        if self.deadline(cx).is_none_or(|at| at > cx.now) {
            return Ok(());
        }
        match self.state {
            State::Opening if self.opening.is_over(cx.now) => self.on_failure(cx.now, self.opening.failure()),
            State::Requested if !self.opening.is_over(cx.now) => {
                self.opening.postpone(cx.now, REPEAT_REQUEST);
                // A secure connection request cannot be repeated, and servers with security respond reliably.
                if sender.is_delivered() && !protection.is_secure() {
                    // If there is no memory for the repetition, only the first request was sent.
                    let _ = self.request_connection(cx, sender, None);
                }
                Ok(())
            }
            State::Requested | State::Unverified | State::AwaitingNewIncoming => {
                Err(self.abort(DisconnectReason::Lost, ConnectFailure::HandshakeTimeout))
            }
            State::Closing | State::Rejecting => {
                Err(self.abort(DisconnectReason::Local, ConnectFailure::Cancelled))
            }
            State::Draining | State::Aborting => {
                self.state = State::Closed;
                Ok(())
            }
            State::Free | State::Opening | State::Connected | State::Closed => Ok(()),
        }
    }

    /// Writes an offline message from a client, or reply 2 of a server with a challenge to answer.
    #[cfg_attr(
        not(feature = "secure"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only keys change")
    )]
    pub(super) fn compose_offline(
        &mut self,
        cx: &Context<'_, '_>,
        protection: &mut ConnectionProtection,
        mtu: u16,
        buffer: &mut [u8],
    ) -> Option<usize> {
        match self.state {
            State::Opening => self.opening.compose(cx, protection, (*cx.remote)?, buffer),
            State::Unverified if SERVER => protection.compose_reply_2(cx, (*cx.remote)?, mtu, buffer),
            State::Free
            | State::Requested
            | State::Unverified
            | State::AwaitingNewIncoming
            | State::Rejecting
            | State::Connected
            | State::Closing
            | State::Draining
            | State::Aborting
            | State::Closed => None,
        }
    }

    /// Called when the operating system refused a datagram of `length` bytes as too large for the path.
    ///
    /// Returns true if the client is still opening the connection, so that the datagram may be an MTU probe.
    pub(super) fn on_too_large(&mut self, cx: &Context<'_, '_>, length: usize) -> bool {
        let is_opening = self.state == State::Opening;
        if is_opening {
            self.opening.on_too_large(cx, length);
        }
        is_opening
    }

    /// Handles a report that the server's address is unreachable, which fails an attempt without any response.
    pub(super) fn on_unreachable(&self) -> Result<(), End> {
        if self.state == State::Opening && self.opening.is_unanswered() {
            return Err(End::failed(ConnectFailure::Unreachable));
        }
        Ok(())
    }

    /// Handles an offline message in response to a client's request.
    pub(super) fn on_offline(
        &mut self,
        cx: &mut Context<'_, '_>,
        protection: &mut ConnectionProtection,
        sender: &mut Sender,
        message: &Offline<'_>,
    ) -> Result<(), End> {
        if self.state != State::Opening {
            cx.stats.drop(DropReason::Unexpected);
            return Ok(());
        }
        match self.opening.on_reply(cx, protection, message) {
            Ok(Some(reply)) => self.request(cx, protection, sender, reply),
            Ok(None) => Ok(()),
            Err(failure) => self.on_failure(cx.now, failure),
        }
    }

    /// Returns true while the client awaits the pong to its version query.
    pub(super) fn awaits_pong(&self) -> bool {
        self.state == State::Opening && self.opening.awaits_pong()
    }

    /// Handles the pong to the version query.
    pub(super) fn on_pong(&mut self, now: Instant, version: Option<u8>) {
        self.opening.on_pong(now, version);
    }

    /// Handles a datagram that neither belongs to the connection nor has the offline magic.
    ///
    /// A message about keys fails the attempt. Returns `None` for any other datagram.
    pub(super) fn on_unmarked(&mut self, now: Instant, datagram: &[u8]) -> Option<Result<(), End>> {
        let failure = failure_of(datagram)?;
        if self.state == State::Opening {
            return Some(self.on_failure(now, failure));
        }
        (self.state == State::Requested).then(|| Err(End::failed(failure)))
    }
}
