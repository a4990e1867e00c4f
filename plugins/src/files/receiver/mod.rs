//! The plugin that fetches files.

mod file;
mod store;
mod transfer;

use core::num::NonZeroU32;

use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, Protocol, SendError, Verdict};
use rakwire::{Chunks, Instant};

use self::transfer::Transfer;
use super::outcome::{Failure, Progress, Reason};
use super::pacer::Pacer;
use super::wire::{DATA_HEADER, MIN_BYTES, REPLY_ID, Reply, Request};
use crate::bytes;

pub use self::store::{PatchStep, Store};
pub use self::transfer::Limits;

/// The maximum number of bytes read back or patched per update, so that an update does not block for long.
const BYTES_AT_ONCE: u64 = 256 * 1_024;

/// An event of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// The transfer has progressed.
    Progress(Progress),
    /// The transfer has completed or failed.
    Ended(Result<Progress, Failure>),
}

/// The error for a second transfer while one is in progress: cancel it, or wait until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferInProgress;

impl core::fmt::Display for TransferInProgress {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a transfer is in progress; cancel it, or wait until it has ended")
    }
}

impl core::error::Error for TransferInProgress {}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Requests that were sent.
    pub requests: u64,
    /// Replies that were not requested, or that came from another peer.
    pub unexpected: u64,
    /// Messages that are malformed or too long.
    pub malformed: u64,
}

/// The plugin that fetches files.
///
/// It runs one transfer at a time, with up to `WINDOW` open requests for up to `AHEAD` files. Messages have
/// up to `BYTES` bytes. [The module](super) has an example.
#[derive(Debug)]
pub struct FileReceiver<P: Protocol, S, const WINDOW: usize, const AHEAD: usize, const BYTES: usize> {
    /// The application's storage for received files.
    pub store: S,
    limits: Limits,
    transfer: Option<Transfer<WINDOW, AHEAD>>,
    /// The final message to the sender, if it is not sent yet.
    last: Option<(ConnectionId, Request)>,
    is_progress_due: bool,
    ended: Option<Result<Progress, Failure>>,
    next_number: u32,
    pacer: Pacer,
    delivery: P::Delivery,
    stats: ReceiverStats,
}

impl<P: Protocol, S: Store, const WINDOW: usize, const AHEAD: usize, const BYTES: usize>
    FileReceiver<P, S, WINDOW, AHEAD, BYTES>
{
    /// Creates a receiver without a transfer. Its messages use the default delivery, which is reliable.
    #[must_use]
    pub fn new(store: S, limits: Limits) -> Self {
        const {
            assert!(
                BYTES >= MIN_BYTES && WINDOW > 0 && AHEAD > 0,
                "BYTES must hold a page of the manifest, and the other sizes must be large enough"
            )
        };
        Self {
            store,
            limits,
            transfer: None,
            last: None,
            is_progress_due: false,
            ended: None,
            next_number: 0,
            pacer: Pacer::default(),
            delivery: P::Delivery::default(),
            stats: ReceiverStats::default(),
        }
    }

    /// Creates a receiver that uses another delivery, which must be reliable.
    #[must_use]
    pub fn with_delivery(store: S, limits: Limits, delivery: P::Delivery) -> Self {
        Self { delivery, ..Self::new(store, limits) }
    }

    /// Sets the maximum rate in bytes requested per second; `None` is unlimited.
    pub fn set_rate(&mut self, bytes_per_second: Option<NonZeroU32>) {
        self.pacer.bytes_per_second = bytes_per_second;
    }

    /// Fetches all files of a peer that are not present yet, resuming earlier transfers.
    ///
    /// # Errors
    /// Returns [`TransferInProgress`] if a transfer is in progress.
    pub fn fetch(&mut self, id: ConnectionId) -> Result<(), TransferInProgress> {
        if self.transfer.is_some() {
            return Err(TransferInProgress);
        }
        let chunk = u32::try_from(BYTES - DATA_HEADER).unwrap_or(u32::MAX);
        self.transfer = Some(Transfer::new(id, self.limits, chunk, self.next_number));
        (self.ended, self.last, self.is_progress_due) = (None, None, false);
        Ok(())
    }

    /// Cancels the transfer and notifies the sender. Returns false if there is no transfer.
    pub fn cancel(&mut self) -> bool {
        let is_under_way = self.transfer.is_some();
        self.fail(Reason::Cancelled);
        is_under_way
    }

    /// Returns the latest progress, or the end of the transfer.
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        if let Some(transfer) = self.transfer.as_ref().filter(|_| self.is_progress_due) {
            self.is_progress_due = false;
            return Some(ReceiverEvent::Progress(transfer.progress));
        }
        // The end is reported only after the final message has been sent. Otherwise an application that closes the
        // connection on this event would prevent that message.
        if self.last.is_some() { None } else { self.ended.take().map(ReceiverEvent::Ended) }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> ReceiverStats {
        self.stats
    }

    fn fail(&mut self, reason: Reason) {
        if let Some(id) = self.end(|_| Err(Failure::Local(reason))) {
            self.last = Some((id, Request::Failed(reason)));
        }
    }

    /// Ends the transfer if there is one, and returns its connection.
    fn end(&mut self, result: impl FnOnce(Progress) -> Result<Progress, Failure>) -> Option<ConnectionId> {
        let transfer = self.transfer.take()?;
        self.next_number = transfer.next_number();
        self.ended = Some(result(transfer.progress));
        Some(transfer.id)
    }

    /// Applies a reply of the sender to the transfer. Returns false if the reply was not requested.
    fn on_reply(&mut self, now: Instant, reply: &Reply<'_>) -> Result<bool, Reason> {
        let Some(transfer) = &mut self.transfer else { return Ok(false) };
        match reply {
            Reply::Page(page) => transfer.on_page(now, &mut self.store, page),
            Reply::Data { number, bytes } => transfer.on_data(now, &mut self.store, *number, bytes),
            Reply::Patch { number, patch, size } => transfer.on_patch(now, *number, *patch, *size),
            Reply::Failed(reason) => {
                self.end(|_| Err(Failure::Remote(*reason)));
                Ok(true)
            }
        }
    }

    /// Reads back arrived files, applies patches and reads older versions. Ends the transfer once all files
    /// are complete.
    fn check(&mut self, buffer: &mut [u8]) {
        let Some(transfer) = &mut self.transfer else { return };
        let store = &mut self.store;
        let checked = transfer.check(store, buffer, BYTES_AT_ONCE);
        let patched = checked.and_then(|(is_finished, budget)| {
            self.is_progress_due |= is_finished;
            transfer.apply_patches(store, budget)
        });
        match patched {
            Ok(budget) => transfer.hash_bases(store, buffer, budget),
            Err(reason) => return self.fail(reason),
        }
        if transfer.is_complete()
            && let Some(id) = self.end(Ok)
        {
            self.last = Some((id, Request::Done));
        }
    }

    /// Sends the requests that the limits allow.
    fn request(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        while let Some(transfer) = self.transfer.as_mut().filter(|_| self.pacer.is_ready(now)) {
            let Some(request) = transfer.next_request() else { return };
            match send(sender, transfer.id, request, self.delivery) {
                Ok(()) => {
                    transfer.on_requested(now, request);
                    self.pacer.sent(now, usize::try_from(request.bytes()).unwrap_or(usize::MAX));
                    self.stats.requests = self.stats.requests.saturating_add(1);
                }
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => return,
                Err(_) => {
                    self.end(|_| Err(Failure::Disconnected));
                }
            }
        }
    }
}

fn send<P: Protocol>(
    sender: &mut dyn MessageSender<P>,
    id: ConnectionId,
    request: Request,
    delivery: P::Delivery,
) -> Result<(), SendError> {
    let mut buffer = [0; super::wire::MAX_REQUEST];
    let length = request.encode(&mut buffer).unwrap_or(0);
    sender.send(id, buffer.get(..length).unwrap_or_default(), delivery).map(|_| ())
}

impl<P: Protocol, S: Store, const WINDOW: usize, const AHEAD: usize, const BYTES: usize> Plugin<P>
    for FileReceiver<P, S, WINDOW, AHEAD, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[REPLY_ID])
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        self.last = self.last.filter(|(to, _)| *to != id);
        if self.transfer.as_ref().is_some_and(|transfer| transfer.id == id) {
            self.end(|_| Err(Failure::Disconnected));
        }
    }

    fn on_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        _delivery: P::Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let is_from_sender = self.transfer.as_ref().is_some_and(|transfer| transfer.id == id);
        let mut buffer = [0; BYTES];
        let reply = bytes::copy(message, &mut buffer).and_then(Reply::decode);
        match reply {
            None => {
                self.stats.malformed = self.stats.malformed.saturating_add(1);
                if is_from_sender {
                    self.fail(Reason::BadMessage);
                }
            }
            Some(reply) => match if is_from_sender { self.on_reply(now, &reply) } else { Ok(false) } {
                Ok(true) => self.is_progress_due = true,
                Ok(false) => self.stats.unexpected = self.stats.unexpected.saturating_add(1),
                Err(reason) => self.fail(reason),
            },
        }
        Verdict::Drop
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        let mut buffer = [0; BYTES];
        self.check(&mut buffer);
        self.request(now, sender);
        let deadline = self.transfer.as_ref().and_then(Transfer::deadline);
        if deadline.is_some_and(|deadline| deadline <= now) {
            self.fail(Reason::TimedOut);
        }
        if let Some((id, last)) = self.last {
            let sent = send(sender, id, last, self.delivery);
            if !matches!(sent, Err(SendError::QuotaExceeded | SendError::PoolExhausted)) {
                self.last = None;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.last.is_some() {
            return Some(Instant::ZERO);
        }
        let transfer = self.transfer.as_ref()?;
        if transfer.can_be_checked() || transfer.is_complete() {
            return Some(Instant::ZERO);
        }
        let request = transfer.next_request().map(|_| self.pacer.ready_at());
        [request, transfer.deadline()].into_iter().flatten().min()
    }
}
