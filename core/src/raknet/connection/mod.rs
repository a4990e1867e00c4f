//! A connection with one remote peer: everything between its datagrams and the application.
//!
//! ```text
//!   connect()                                request 2 with a valid cookie
//!      |                                                  |
//!   Opening --- reply 2 ---> Requested               Unverified
//!                               |                         | connection request
//!                               | accepted                v
//!                               |                   AwaitingNewIncoming
//!                               v                         | new incoming connection
//!                           Connected <-------------------+
//!                            |      |
//!               disconnect() |      | disconnection notification
//!                            v      v
//!                        Closing   Draining (acknowledges retransmissions for a while)
//!                            |      |
//!                            v      v
//!                             Closed -- its last event is taken --> the slot is free
//! ```
//! A timeout or a refusal leads from every state to `Closed`. If the remote peer must be notified of a failure, such as
//! exhausted memory, an open connection passes through `Aborting`.
//!
//! In this list, a part depends only on the parts below it: the handshake sends its messages through the sender, and
//! the sender tracks its datagrams in the recovery. All other interaction between parts is in this module:
//!
//! ```text
//!   handshake            state, opening and closing
//!   sender   receiver    outgoing data and pings; incoming data
//!   recovery             unacknowledged datagrams, loss detection
//!   congestion           the window
//!   block_header, channels, protection, negotiation
//! ```

mod block_header;
mod channels;
mod congestion;
pub(super) mod handshake;
mod negotiation;
mod protection;
mod protocol;
mod receiver;
mod recovery;
mod sender;

use core::time::Duration;

pub(crate) use block_header::BlockHeader;
use block_header::Context;
#[cfg(feature = "delay-based")]
pub use congestion::{PathSample, PathWindow};
use handshake::internal_addresses::{ListLength, StoredAddresses};
use handshake::{End, Handshake, State};
#[cfg(feature = "secure")]
pub(crate) use negotiation::ChallengeRequest;
pub(crate) use protection::ConnectionProtection;
use receiver::{ControlMessage, DatagramStatus, ReceiveError, Receiver};
use sender::Sender;

use super::config::PACKING;
use super::delivery::Channel;
use super::reason::{ConnectFailure, DisconnectReason};
#[cfg(feature = "secure")]
use super::security::SecurePeer;
use super::stats::DropReason;
use super::wire::control::MAX_CONTROL;
use super::wire::datagram::{CapsuleHeader, DatagramHeader, MIN_CAPSULE, Sizes};
use super::wire::offline::Offline;
use super::wire::{Guid, IP_UDP_OVERHEAD, Wire, id};
use crate::cursor::{Reader, Source, WireError};
use crate::endpoint::Progress;
#[cfg(feature = "secure")]
use crate::secure::AcceptedToken;
use crate::serial::U24;
use crate::time::{Instant, divide, long_micros};

/// The maximum size of an accepted datagram of a secure connection in bytes: the UDP payload of an Ethernet frame.
///
/// Plain datagrams have no such limit, because other implementations send up to 1,492 bytes of UDP payload.
const MAX_SEALED: usize = 1500 - IP_UDP_OVERHEAD as usize;

/// The connection with one remote peer.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    handshake: Handshake,
    protection: ConnectionProtection,
    sender: Sender,
    receiver: Receiver,
    /// When the connection was created.
    pub(super) made_at: Instant,
    /// When the last datagram from the remote peer was received.
    last_received: Instant,
    /// The time without datagrams from the remote peer after which the connection is lost, in milliseconds.
    timeout: u32,
    /// Set while data datagrams are dropped at the request of the application.
    refuses_data: bool,
}

impl Connection {
    /// Server: creates a connection after a second request.
    pub(crate) fn accept(
        &mut self,
        cx: &Context<'_, '_>,
        guid: Guid,
        mtu: u16,
        list_length: ListLength,
        protection: ConnectionProtection,
    ) {
        self.begin(cx, mtu, protection);
        self.set_timeout(cx.config.timeout);
        self.handshake.await_request(cx.now, guid, list_length);
    }

    /// Server: applies the anti-amplification limit to a client with an unvalidated address.
    ///
    /// Until the address is validated, at most `budget` bytes plus three times the received bytes are sent.
    pub(crate) fn require_validation(&mut self, budget: usize) {
        self.sender.require_validation(budget);
    }

    /// Handles the second request of a remote peer to which this peer is connecting (simultaneous open).
    ///
    /// Returns false if the two attempts cannot be combined: this peer is past the offline handshake, has handled such
    /// a request before, or is opening a secure connection.
    pub(crate) fn cross(&mut self, cx: &Context<'_, '_>, guid: Guid, mtu: u16) -> bool {
        let may_cross = guid != cx.config.guid && !self.protection.is_secure();
        let crosses = may_cross && self.handshake.cross(guid);
        if crosses {
            self.sender.set_mtu(cx, mtu);
        }
        crosses
    }

    fn begin(&mut self, cx: &Context<'_, '_>, mtu: u16, protection: ConnectionProtection) {
        self.protection = protection;
        self.made_at = cx.now;
        self.last_received = cx.now;
        self.sender.begin(cx, Sizes::new(mtu, self.protection.overhead()));
        self.receiver.start_numbers_at(cx.state.first_number);
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout =
            u32::try_from(divide(long_micros(timeout).saturating_add(999), 1_000)).unwrap_or(u32::MAX);
    }

    const fn timeout_micros(&self) -> u64 {
        self.timeout as u64 * 1_000
    }

    pub(crate) const fn guid(&self) -> Guid {
        self.handshake.guid()
    }

    pub(crate) const fn mtu(&self) -> u16 {
        self.sender.sizes().mtu()
    }

    /// Returns true if the address of the client is not validated.
    pub(crate) fn is_unvalidated(&self) -> bool {
        self.sender.requires_validation()
    }

    /// Returns when a half-open connection became half open.
    pub(crate) const fn half_open_since(&self) -> Instant {
        self.handshake.since()
    }

    /// Returns true if reply 2 was sent and no datagram of the connection was received since.
    pub(crate) const fn is_unverified(&self) -> bool {
        self.handshake.is_unverified()
    }

    /// Returns true if a second request with this GUID is a retransmission of the one that created this connection.
    pub(crate) fn is_unverified_with(&self, guid: Guid) -> bool {
        self.guid() == guid && self.is_unverified()
    }

    /// Returns the local addresses that the remote peer announced.
    pub(super) const fn internal_addresses(&self) -> StoredAddresses {
        self.handshake.internal_addresses()
    }

    /// Closes the connection if it has not closed before, and stops sending.
    ///
    /// Received messages remain available if the application has been notified of the connection.
    fn end(&mut self, cx: &mut Context<'_, '_>, end: End) {
        if !self.handshake.end(cx.now, end) {
            return;
        }
        self.sender.clear(cx);
        if self.handshake.was_open() {
            self.receiver.clear_undelivered(cx);
        } else {
            self.receiver.clear(cx);
        }
    }

    fn end_on_error(&mut self, cx: &mut Context<'_, '_>, result: Result<(), End>) {
        if let Err(end) = result {
            self.end(cx, end);
        }
    }

    /// Closes the connection immediately: with `reason` if it was open, or else with `failure`.
    fn abort(&mut self, cx: &mut Context<'_, '_>, reason: DisconnectReason, failure: ConnectFailure) {
        let end = self.handshake.abort(reason, failure);
        self.end(cx, end);
    }

    /// Returns true if there are events other than messages and receipts.
    const fn has_own_events(&self) -> bool {
        self.handshake.has_events() || self.has_progress() || self.has_new_mtu()
    }

    const fn has_new_mtu(&self) -> bool {
        self.handshake.was_open() && self.sender.has_new_mtu()
    }

    /// Takes the new MTU if it is to be reported to the application.
    const fn take_new_mtu(&mut self) -> Option<u16> {
        if self.has_new_mtu() { self.sender.take_new_mtu() } else { None }
    }

    const fn has_progress(&self) -> bool {
        self.handshake.was_open() && (self.receiver.has_progress() || self.sender.has_progress())
    }

    /// Returns true if the client was refused and has not acknowledged the refusal.
    pub(crate) fn is_rejecting(&self) -> bool {
        self.handshake.state() == State::Rejecting
    }

    /// Closes a refused connection when its client sends a new request, so that it can be replaced.
    pub(crate) fn forget_rejection(&mut self, cx: &mut Context<'_, '_>) {
        self.end(cx, End::failed(ConnectFailure::Closed));
    }

    /// Takes the progress of a split message.
    fn take_progress(&mut self) -> Option<Progress> {
        if !self.has_progress() {
            return None;
        }
        self.receiver.take_progress().or_else(|| self.sender.take_progress())
    }

    /// Called when the operating system refused a datagram of `length` bytes as too large for the path.
    fn on_too_large(&mut self, cx: &Context<'_, '_>, length: usize) {
        if !self.handshake.on_too_large(cx, length) && !self.handshake.state().is_over() {
            self.sender.on_too_large(cx.now, length);
        }
    }

    /// Handles an offline message in response to a client's request.
    pub(crate) fn handle_offline(&mut self, cx: &mut Context<'_, '_>, message: &Offline<'_>) {
        let result = self.handshake.on_offline(cx, &mut self.protection, &mut self.sender, message);
        self.end_on_error(cx, result);
    }

    /// Returns true while the client awaits the pong to its version query.
    pub(crate) fn awaits_pong(&self) -> bool {
        self.handshake.awaits_pong()
    }

    /// Handles the pong to the version query; `version` is the version that it indicates, if any.
    pub(crate) fn on_pong(&mut self, now: Instant, version: Option<u8>) {
        self.handshake.on_pong(now, version);
    }

    /// Handles a datagram that neither belongs to this connection nor has the offline magic.
    ///
    /// Returns false if it was ignored.
    pub(crate) fn handle_unmarked(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) -> bool {
        // A remote peer with keys authenticates every datagram, and this one is not authenticated.
        if self.has_keys() {
            return false;
        }
        let result = self.handshake.on_unmarked(cx.now, datagram);
        let counts = result.is_some();
        self.end_on_error(cx, result.unwrap_or(Ok(())));
        counts
    }

    /// Returns true if the handshake has produced keys.
    const fn has_keys(&self) -> bool {
        self.protection.is_secure() && !matches!(self.handshake.state(), State::Opening)
    }

    /// Returns the authenticated identity of the remote peer of a secure connection.
    #[cfg(feature = "secure")]
    pub(crate) fn secure_peer(&self) -> Option<SecurePeer> {
        self.protection.secure_peer()
    }

    /// Returns the connect token that the client presented.
    #[cfg(feature = "secure")]
    pub(crate) fn accepted_token(&self) -> Option<&AcceptedToken> {
        self.protection.accepted_token()
    }

    /// Handles a retransmitted second request with a challenge, for a half-open connection.
    #[cfg(feature = "secure")]
    pub(crate) fn on_challenge(&mut self, cx: &mut Context<'_, '_>, request: &ChallengeRequest<'_>) {
        if self.protection.on_challenge(cx, request) {
            self.sender.set_mtu(cx, request.mtu());
        }
    }

    /// Returns true if the connection is half open and plain.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.protection.is_secure()
    }

    /// Handles a datagram of this connection.
    pub(crate) fn handle_datagram(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        self.receiver.on_datagram(cx.now, datagram.len());
        self.sender.on_received(datagram.len());
        if self.protection.is_plain() {
            self.handle_opened(cx, datagram);
        } else {
            self.handle_sealed(cx, datagram);
        }
    }

    /// The function is not inlined, because it has a stack buffer that plain datagrams do not need.
    #[inline(never)]
    fn handle_sealed(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        if datagram.len() > MAX_SEALED {
            cx.stats.drop(DropReason::BadDatagram);
            return;
        }
        let mut buffer = [0; MAX_SEALED];
        match self.protection.open(cx.now, datagram, &mut buffer) {
            Some(opened) => self.handle_opened(cx, opened),
            None => cx.stats.drop(DropReason::Unauthentic),
        }
    }

    fn handle_opened(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        let mut reader = Reader::new(datagram);
        let parsed = match DatagramHeader::read(&mut reader) {
            Ok(DatagramHeader::Data { number, .. }) => self.handle_data(cx, number, reader),
            Ok(DatagramHeader::Ack { records, .. }) => self.sender.on_ack(cx, records, reader),
            Ok(DatagramHeader::Nack { records }) => self.sender.on_nack(cx, records, reader),
            Err(error) => Err(error),
        };
        self.collect_receipts(cx);
        if self.is_stuck() {
            self.end_stuck(cx);
        }
        match parsed {
            Ok(()) => self.last_received = cx.now,
            Err(_) => cx.stats.drop(DropReason::BadDatagram),
        }
    }

    /// Returns true if the connection has a message that exceeds the path MTU and cannot be split again.
    fn is_stuck(&self) -> bool {
        self.sender.is_stuck() && !self.handshake.state().is_over()
    }

    /// Closes a connection with a message that exceeds the path MTU and cannot be split again.
    #[cold]
    fn end_stuck(&mut self, cx: &mut Context<'_, '_>) {
        self.abort(cx, DisconnectReason::PathTooNarrow, ConnectFailure::Closed);
    }

    /// Moves receipts from the sender to the queue of events for the application.
    fn collect_receipts(&mut self, cx: &mut Context<'_, '_>) {
        let receipts = self.sender.take_receipts();
        self.receiver.push_receipts(cx, receipts);
    }

    fn handle_data(
        &mut self,
        cx: &mut Context<'_, '_>,
        number: U24,
        reader: Reader<'_>,
    ) -> Result<(), WireError> {
        if !self.handshake.takes_datagrams() {
            self.handshake.on_unexpected_datagram();
            cx.stats.drop(DropReason::Unexpected);
            return Ok(());
        }
        // Handled like a lost datagram: the remote peer retransmits its reliable messages.
        if self.refuses_data {
            cx.stats.on_refused();
            return Ok(());
        }
        let status = self.receiver.classify(cx, number);
        let parsed = match status {
            DatagramStatus::OutsideWindow => {
                cx.stats.drop(DropReason::OutsideWindow);
                return Ok(());
            }
            // Some implementations reuse datagram numbers, so duplicates are recognized by their message numbers.
            DatagramStatus::New | DatagramStatus::Deferred | DatagramStatus::Duplicate => {
                let is_repeated = status == DatagramStatus::Duplicate;
                if is_repeated {
                    cx.stats.drop(DropReason::DuplicateDatagram);
                }
                match self.handle_capsules(cx, reader, status) {
                    Err(error) => {
                        cx.stats.drop(match error {
                            // The datagram number was acknowledged before, so the remote peer does not retransmit the
                            // message.
                            _ if is_repeated => DropReason::LostInDuplicate,
                            ReceiveError::NoMemory | ReceiveError::MessageTooLarge => DropReason::NoMemory,
                            ReceiveError::OutsideWindow => DropReason::OutsideWindow,
                        });
                        if !is_repeated {
                            self.receiver.defer(cx, number);
                        }
                        return Ok(());
                    }
                    Ok(parsed) => {
                        if !is_repeated {
                            self.receiver.on_datagram_taken();
                        }
                        if self.receiver.is_stalled() {
                            self.deliver_stalled(cx);
                        }
                        parsed
                    }
                }
            }
        };
        let may_wait = self.sender.has_rtt() && self.handshake.state().is_open();
        let latest = if may_wait { cx.now + cx.config.ack_delay } else { cx.now };
        self.receiver.acknowledge(cx, number, latest);
        parsed
    }

    /// Handles the capsules of a datagram.
    ///
    /// At a malformed capsule, processing stops; the capsules before it are kept. Processing continues after a capsule
    /// for which no memory is free, because later capsules may free memory.
    fn handle_capsules(
        &mut self,
        cx: &mut Context<'_, '_>,
        mut reader: Reader<'_>,
        status: DatagramStatus,
    ) -> Result<Result<(), WireError>, ReceiveError> {
        let mut taken = Ok(());
        let mut parsed = Ok(());
        while reader.remaining() >= MIN_CAPSULE && self.takes_capsules() {
            let capsule = match CapsuleHeader::read(&mut reader) {
                Ok(capsule) => capsule,
                // Zeros after the last capsule are padding.
                Err(WireError::BadLength) => break,
                Err(error) => {
                    parsed = Err(error);
                    break;
                }
            };
            match reader.take(capsule.length()) {
                // Unreliable messages were delivered with the first copy of the datagram.
                Ok(_) if status != DatagramStatus::New && !capsule.reliability.has_number_on_wire() => {}
                Ok(payload) => taken = self.handle_capsule(cx, &capsule, payload).and(taken),
                Err(error) => {
                    parsed = Err(error);
                    break;
                }
            }
        }
        taken.map(|()| parsed)
    }

    /// Returns true if messages from the remote peer are accepted.
    ///
    /// After its disconnection notification, the remote peer only retransmits the notification.
    const fn takes_capsules(&self) -> bool {
        let state = self.handshake.state();
        !state.is_over() && !matches!(state, State::Rejecting)
    }

    fn handle_capsule(
        &mut self,
        cx: &mut Context<'_, '_>,
        capsule: &CapsuleHeader,
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        // Closing the connection now would discard acknowledged messages that wait for blocks.
        if self.receiver.is_stalled() && payload.first() == Some(&id::DISCONNECTION_NOTIFICATION) {
            return Err(ReceiveError::NoMemory);
        }
        let takes_messages = !self.is_unverified();
        let result = self.receiver.on_capsule(cx, self.sender.sizes(), capsule, payload, takes_messages);
        if let Err(ReceiveError::MessageTooLarge) = result {
            self.abort(cx, DisconnectReason::MessageTooLarge, ConnectFailure::Closed);
        }
        let mut control = result?;
        while let Some(message) = control {
            self.handle_control(cx, &message);
            control = self.receiver.resume(cx, &message, !self.is_unverified())?;
        }
        Ok(())
    }

    /// Delivers messages that were next in order when no block was free.
    fn deliver_stalled(&mut self, cx: &mut Context<'_, '_>) {
        if !PACKING {
            return;
        }
        let stalled = self.receiver.take_stalled();
        for channel in (0..Channel::COUNT as u8).filter(|channel| stalled >> channel & 1 != 0) {
            let mut control = self.receiver.deliver_buffered(cx, channel, !self.is_unverified());
            while let Ok(Some(message)) = control {
                self.handle_control(cx, &message);
                control = self.receiver.resume(cx, &message, !self.is_unverified());
            }
        }
    }

    /// Handles a control message of RakNet.
    fn handle_control(&mut self, cx: &mut Context<'_, '_>, control: &ControlMessage<'_>) {
        let mut buffer = [0; MAX_CONTROL];
        let payload = self.receiver.control_bytes(cx, control, &mut buffer);
        if let (Some(payload), Some(remote)) = (payload, *cx.remote) {
            let Self { handshake, protection, sender, .. } = self;
            let result = handshake.on_control(cx, protection, sender, remote, payload);
            self.end_on_error(cx, result);
        }
    }

    fn compose(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        // A vacant slot has no MTU.
        if !self.handshake.takes_datagrams() && self.handshake.state() != State::Aborting {
            return None;
        }
        let sizes = self.sender.sizes();
        let buffer = buffer.split_at_mut_checked(sizes.datagram()).map(|(front, _)| front)?;
        if matches!(self.handshake.state(), State::Aborting) {
            let notification = self.handshake.take_disconnection_notification()?;
            return self.sender.compose_disconnection_notification(cx, &notification, buffer);
        }
        // Acknowledgements are exempt from the congestion window.
        if let Some(length) = self.receiver.compose(cx, sizes, buffer) {
            return Some(length);
        }
        let length = self.sender.compose(cx, buffer);
        let is_closing = matches!(self.handshake.state(), State::Closing | State::Rejecting);
        if length.is_some() || !is_closing || !self.sender.is_delivered() {
            return length;
        }
        match self.handshake.finish_closing(cx, &mut self.sender) {
            Ok(()) => self.sender.compose(cx, buffer),
            Err(end) => {
                self.end(cx, end);
                None
            }
        }
    }

    /// Returns when the remote peer is considered lost: the timeout after its last datagram.
    ///
    /// The remote peer is considered lost only while an acknowledgement is outstanding. It has at least half of the
    /// timeout to send the acknowledgement. A suspended process, or one that reduces the timeout, therefore probes the
    /// remote peer before it closes the connection.
    fn silence_deadline(&self) -> Option<Instant> {
        let (unacked_since, timeout) = (self.sender.unacked_since()?, self.timeout_micros());
        if !self.handshake.state().is_open() {
            return Some(unacked_since.max(self.last_received).plus_long(timeout));
        }
        Some(self.last_received.plus_long(timeout).max(unacked_since.plus_long(timeout / 2)))
    }

    /// Returns when the connection closes because incomplete or out-of-order messages fill its memory.
    fn memory_deadline(&self) -> Option<Instant> {
        self.receiver.exhausted_since().map(|since| since.plus_long(self.timeout_micros()))
    }
}
