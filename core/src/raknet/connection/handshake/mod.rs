//! How a connection opens and closes, on both sides (docs/raknet.md#opening-a-connection): its states, and what happens before
//! the messages of a connection.

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

/// How long a client waits for the answer to its connection request before it repeats it: some servers send the answer
/// unreliably, and only another request brings another one (docs/raknet.md#connection-attempts).
const REPEAT_REQUEST: Duration = Duration::from_secs(1);

/// How long a connection that is over still answers what the other peer sends again.
const DRAIN: Duration = Duration::from_secs(1);

/// The state of a connection; the module of the connection draws how they follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Opening,
    /// The client waits to be accepted.
    Requested,
    Unverified,
    AwaitingNewIncoming,
    /// This end does not want the connection, which is not open yet, and tells the other peer.
    Rejecting,
    Connected,
    Closing,
    Draining,
    /// This end gave up, and notifies the other peer as long as that seems not to know.
    Aborting,
    Closed,
}

/// The state that a connection ends in, and why it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    state: State,
    ending: Ending,
}

impl End {
    /// The connection could not be opened.
    pub(super) const fn failed(failure: ConnectFailure) -> Self {
        Self { state: State::Closed, ending: Ending::Failed(failure) }
    }

    /// The other peer, which may send again what it sent, does not want the connection.
    const fn told(failure: ConnectFailure) -> Self {
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

    /// Whether the connection was open and has not ended.
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Connected | Self::Closing)
    }

    /// Whether the connection has ended.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Draining | Self::Aborting | Self::Closed)
    }
}

/// The state of a connection, and who the other peer is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    side: Side,
    state: State,
    /// How many addresses this end lists, by the version that the two peers speak.
    list_length: ListLength,
    /// The requests of a client until the server accepted.
    opening: Opening,
    /// When the connection came into its state.
    since: Instant,
    guid: Guid,
    /// What a client says to be let in, until it was sent.
    password: BlockLink,
    /// The connection opened, and the application was not told yet.
    opened: bool,
    /// The connection is open, or was before it ended.
    was_open: bool,
    /// Server: the client was not let in, and the application was not notified yet.
    refused: Option<RefuseReason>,
    /// The connection ended, and the application was not told yet.
    ending: Option<Ending>,
    /// Why the attempt of this end failed, if only that of the other peer goes on.
    failure: Option<ConnectFailure>,
    /// Whether the other peer, which dialled this end while this end dialled it, may want to hear that it is accepted.
    owes_acceptance: bool,
    /// The addresses that the other peer has said are its own, until the application asks for what happened after the
    /// connection opened.
    internal_addresses: StoredAddresses,
    /// Whether the disconnection notification was sent. What was sent before it must be acknowledged first: a peer that
    /// has received the notification takes nothing more.
    disconnection_notification_sent: bool,
    /// Whether the connection is aborted because a message of the other peer is too large.
    ends_for_size: bool,
}

impl Handshake {
    /// Begins to wait for the connection request of a peer whose second request is answered.
    pub(super) fn await_request(&mut self, now: Instant, guid: Guid, list_length: ListLength) {
        (self.side, self.list_length) = (Side::Server, list_length);
        self.enter(now, State::Unverified);
        self.guid = guid;
    }

    /// Begins to open a connection. It may be one of which only the second request of the other peer has arrived.
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

    /// Makes this end a client, too, of a connection that the other peer opens. False if this end does not wait for the
    /// last message of the other peer.
    pub(super) fn adopt(&mut self) -> bool {
        let adopts = SERVER && self.state == State::AwaitingNewIncoming;
        if adopts {
            self.side = Side::Client;
        }
        adopts
    }

    /// The other peer dials this end, which dials it, and its second request is answered: whichever attempt comes
    /// further opens the connection (docs/raknet.md#both-dial). False if this end does not dial, or has answered before.
    pub(super) fn cross(&mut self, guid: Guid) -> bool {
        let crosses = self.state == State::Opening && !self.opening.is_crossed();
        if crosses {
            self.opening.cross();
            self.list_length = ListLength::of_version(self.opening.version());
            self.guid = guid;
            self.owes_acceptance = true;
        }
        crosses
    }

    /// Whether the second request of the other peer was answered, and nothing has come of it.
    pub(super) const fn is_unverified(&self) -> bool {
        SERVER
            && (matches!(self.state, State::Unverified)
                || matches!(self.state, State::Opening) && self.opening.is_crossed())
    }

    /// Whether datagrams of the connection may arrive.
    pub(super) const fn takes_datagrams(&self) -> bool {
        self.is_unverified()
            || !matches!(self.state, State::Free | State::Opening | State::Aborting | State::Closed)
    }

    pub(super) const fn side(&self) -> Side {
        self.side
    }

    /// The addresses that the other peer has said are its own.
    pub(super) const fn internal_addresses(&self) -> StoredAddresses {
        self.internal_addresses
    }

    fn keep_internal_addresses(&mut self, cx: &mut Context<'_, '_>, addresses: AddressList<'_>) {
        // They are kept if there is room.
        self.internal_addresses.keep(cx.pool, addresses.iter().filter(is_assigned));
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

    /// Whether there is something to tell the application, or to free when it asks.
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

    /// Ends the connection; false if it has ended before. The application is told if it knew of the connection.
    pub(super) fn end(&mut self, now: Instant, end: End) -> bool {
        if matches!(self.state, State::Free) || self.state.is_over() {
            return false;
        }
        // An application that knows of a connection is told of its rejection when that begins.
        let is_known = self.state.is_open() || self.side == Side::Client && self.state != State::Rejecting;
        self.enter(now, end.state);
        if is_known {
            self.ending = Some(end.ending);
        }
        true
    }

    /// The end of the connection for `reason` or, if it was not open yet, for `failure`.
    pub(super) fn abort(&mut self, reason: DisconnectReason, failure: ConnectFailure) -> End {
        self.disconnection_notification_sent = false;
        self.ends_for_size = reason == DisconnectReason::MessageTooLarge;
        let is_open = self.state.is_open();
        // To the other peer the connection may be open before it is so here. A silent peer would not receive a
        // notification.
        let is_notified =
            (is_open || self.state == State::AwaitingNewIncoming) && reason != DisconnectReason::Lost;
        let ending = if is_open {
            Ending::Disconnected(reason)
        } else {
            Ending::Failed(self.failure.unwrap_or(failure))
        };
        End { state: if is_notified { State::Aborting } else { State::Closed }, ending }
    }

    /// The attempt of this end failed. That of the other peer goes on, if it has begun.
    fn on_failure(&mut self, now: Instant, failure: ConnectFailure) -> Result<(), End> {
        if !self.is_unverified() {
            return Err(End::failed(failure));
        }
        self.failure = Some(failure);
        self.enter(now, State::Unverified);
        Ok(())
    }

    /// Tells the other peer that this end does not want the connection, and holds the slot until that was acknowledged.
    /// An application that knows of the connection is told at once.
    fn reject(&mut self, now: Instant, failure: ConnectFailure) {
        self.enter(now, State::Rejecting);
        if self.side == Side::Client {
            self.ending = Some(Ending::Failed(failure));
        }
    }

    /// A datagram arrived that does not belong to the state: the other peer does not know that the connection is over.
    pub(super) const fn on_unexpected_datagram(&mut self) {
        self.disconnection_notification_sent = false;
    }

    /// What a connection that is aborted has to notify the other peer of now.
    pub(super) fn take_disconnection_notification(&mut self) -> Option<Control<'static>> {
        if core::mem::replace(&mut self.disconnection_notification_sent, true) {
            return None;
        }
        Some(if self.ends_for_size { Control::DisconnectTooLarge } else { Control::Disconnect })
    }

    /// Frees what stands in the pool.
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

    /// When [`on_timeout`](Self::on_timeout) is due.
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

    /// Whether a connection that is closed, or refused, has waited for its acknowledgements for long enough, or one that has ended
    /// for what is sent again.
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
                // With keys the request cannot be repeated, and the servers that know them answer reliably.
                if sender.is_delivered() && !protection.is_secure() {
                    // Where there is no memory for it, the first one has to do.
                    let _ = self.ask(cx, sender, None);
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

    /// Composes an offline message: of a client that opens the connection, or of a server that has answered a challenge.
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

    /// Handles that the system refused a datagram of this length because it is too large for the path. False if it belongs
    /// to no handshake.
    pub(super) fn on_too_large(&mut self, cx: &Context<'_, '_>, length: usize) -> bool {
        let is_opening = self.state == State::Opening;
        if is_opening {
            self.opening.on_too_large(cx, length);
        }
        is_opening
    }

    /// Handles the report that nothing can be reached at the address of the server, which ends an attempt without any answer.
    pub(super) fn on_unreachable(&self) -> Result<(), End> {
        if self.state == State::Opening && self.opening.is_unanswered() {
            return Err(End::failed(ConnectFailure::Unreachable));
        }
        Ok(())
    }

    /// Handles an offline message that answers a client's request.
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

    /// Whether a pong is waited for that shows the version of the server.
    pub(super) fn awaits_pong(&self) -> bool {
        self.state == State::Opening && self.opening.awaits_pong()
    }

    /// The pong has come.
    pub(super) fn on_pong(&mut self, now: Instant, version: Option<u8>) {
        self.opening.on_pong(now, version);
    }

    /// Handles a datagram that is neither of the connection nor marked as offline: one that tells of keys ends the attempt.
    /// None if it is nothing of the kind.
    pub(super) fn on_unmarked(&mut self, now: Instant, datagram: &[u8]) -> Option<Result<(), End>> {
        let failure = failure_of(datagram)?;
        if self.state == State::Opening {
            return Some(self.on_failure(now, failure));
        }
        (self.state == State::Requested).then(|| Err(End::failed(failure)))
    }
}
