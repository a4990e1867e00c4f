//! The plugin that serves files.

use core::net::SocketAddr;
use core::num::NonZeroU32;

use heapless::Deque;
use rakwire::endpoint::{
    BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Protocol, SendError, Side, Verdict,
};
use rakwire::{Chunks, Instant};

use super::outcome::{Failure, Reason, StorageError, Totals};
use super::pacer::Pacer;
use super::wire::{
    BASE_LENGTH, DATA_HEADER, Entries, Entry, MAX_REQUEST, MIN_BYTES, Page, PageWriter, REQUEST_ID, Reply,
    Request, data_header,
};
use crate::bytes;

/// The minimum number of file bytes in a reply, even at a low rate.
const MIN_CHUNK: usize = 256;
/// The minimum number of replies per second at a low rate.
const REPLIES_PER_SECOND: usize = 4;

/// The application's files, which must not change while they are sent.
pub trait Source {
    /// Returns the number and the size of all files.
    fn totals(&self) -> Totals;

    /// Returns a file by its number; `None` after the last one. Files are numbered from 0 in the byte order
    /// of their paths.
    fn entry(&self, file: u32) -> Option<Entry<'_>>;

    /// Reads bytes of a file from an offset until the buffer is full. The range is within the file.
    ///
    /// # Errors
    /// Returns a [`StorageError`], which ends the transfer.
    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError>;

    /// Returns the number of the patch for a file from the older version with a SHA-256 that starts with `base`.
    ///
    /// Patch numbers must be above those of the files. [`read`](Self::read) reads the patch by its number.
    /// The application chooses the patch format. The default returns `None`, for applications without
    /// patches.
    fn patch(&self, _file: u32, _base: &[u8; BASE_LENGTH]) -> Option<u32> {
        None
    }

    /// Returns the size of a patch by its number, in bytes; `None` if there is no such patch.
    fn patch_size(&self, _patch: u32) -> Option<u64> {
        None
    }
}

/// An event of a sender about one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The number of file bytes sent on this connection so far.
    Progress(u64),
    /// The receiver has all files, or the transfer has failed.
    Ended(Result<(), Failure>),
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Replies that were sent.
    pub replies: u64,
    /// Requests from peers that are not served.
    pub refused: u64,
    /// Messages that are malformed or longer than requests.
    pub malformed: u64,
    /// Connections that are ignored because the plugin has fewer slots than the peer has connections.
    pub over_capacity: u64,
}

/// The plugin that serves files.
///
/// It serves up to `PEERS` connections, each with up to `WINDOW` open requests. Messages have up to `BYTES`
/// bytes. No peer is served until [`serve`](Self::serve) or [`serve_all`](Self::serve_all) is called. [The
/// module](super) has an example.
#[derive(Debug)]
pub struct FileSender<P: Protocol, S, const PEERS: usize, const WINDOW: usize, const BYTES: usize> {
    /// The application's files.
    pub source: S,
    peers: BySlot<Receiver<WINDOW>, PEERS>,
    serves_all: bool,
    pacer: Pacer,
    delivery: P::Delivery,
    stats: SenderStats,
}

/// The state of one receiver.
#[derive(Debug, Default)]
struct Receiver<const WINDOW: usize> {
    is_served: bool,
    requests: Deque<Request, WINDOW>,
    failed: Option<Reason>,
    sent: u64,
    is_progress_due: bool,
    ended: Option<Result<(), Failure>>,
    is_blocked: bool,
    /// True if the connection is closed and the result of the transfer is not yet reported.
    is_gone: bool,
    /// True if the receiver has sent a request since the last transfer ended.
    is_begun: bool,
}

impl<const WINDOW: usize> Receiver<WINDOW> {
    /// Aborts the transfer and notifies the remote peer.
    fn fail(&mut self, reason: Reason) {
        self.end(Err(Failure::Local(reason)));
        self.failed = Some(reason);
    }

    fn end(&mut self, result: Result<(), Failure>) {
        self.requests.clear();
        self.is_begun = false;
        self.ended = Some(result);
    }

    fn on_request(&mut self, request: Request) {
        match request {
            Request::List { .. } | Request::Read { .. } | Request::FindPatch { .. } => {
                self.is_begun = true;
                if self.failed.is_none() && self.requests.push_back(request).is_err() {
                    self.fail(Reason::TooManyRequests);
                }
            }
            Request::Done => self.end(Ok(())),
            Request::Failed(reason) => self.end(Err(Failure::Remote(reason))),
        }
    }

    /// Returns the next event for the application.
    fn poll_event(&mut self) -> Option<SenderEvent> {
        if core::mem::take(&mut self.is_progress_due) {
            return Some(SenderEvent::Progress(self.sent));
        }
        // The end is reported only after the final message has been sent. Otherwise an application that closes the
        // connection on this event would prevent that message.
        if self.failed.is_some() { None } else { self.ended.take().map(SenderEvent::Ended) }
    }

    /// Handles the result of sending a reply with this many file bytes, or of sending a failure.
    fn on_sent(&mut self, sent: Result<(), SendError>, bytes: u64) {
        match sent {
            Ok(()) if self.failed.take().is_some() => {}
            Ok(()) => {
                self.requests.pop_front();
                self.sent = self.sent.saturating_add(bytes);
                self.is_progress_due |= bytes > 0;
            }
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => self.is_blocked = true,
            Err(SendError::NotConnected) => {
                self.failed = None;
                self.end(Err(Failure::Disconnected));
            }
            Err(_) if self.failed.is_some() => self.failed = None,
            Err(_) => self.fail(Reason::TooLong),
        }
    }
}

impl<P: Protocol, S: Source, const PEERS: usize, const WINDOW: usize, const BYTES: usize>
    FileSender<P, S, PEERS, WINDOW, BYTES>
{
    /// Creates a sender that serves no peer yet. Its messages use the default delivery, which is reliable.
    #[must_use]
    pub fn new(source: S) -> Self {
        const {
            assert!(
                BYTES >= MIN_BYTES && WINDOW > 1,
                "BYTES must hold a page of the manifest, and the other sizes must be large enough"
            )
        };
        Self {
            source,
            peers: BySlot::new(),
            serves_all: false,
            pacer: Pacer::default(),
            delivery: P::Delivery::default(),
            stats: SenderStats::default(),
        }
    }

    /// Creates a sender that uses another delivery, which must be reliable.
    #[must_use]
    pub fn with_delivery(source: S, delivery: P::Delivery) -> Self {
        Self { delivery, ..Self::new(source) }
    }

    /// Sets the maximum rate in bytes per second for all receivers together; `None` is unlimited.
    pub fn set_rate(&mut self, bytes_per_second: Option<NonZeroU32>) {
        self.pacer.bytes_per_second = bytes_per_second;
    }

    /// Starts to serve a peer; earlier requests from it were refused. Returns false if the connection is in a slot
    /// beyond `PEERS`.
    pub fn serve(&mut self, id: ConnectionId) -> bool {
        if self.peers.get(id).is_none() && !self.peers.insert(id, Receiver::default()) {
            return false;
        }
        self.peers.get_mut(id).map(|peer| peer.is_served = true).is_some()
    }

    /// Serves all connected peers and those that connect later.
    pub fn serve_all(&mut self) {
        self.serves_all = true;
        self.peers.iter_mut().for_each(|(_, peer)| peer.is_served = true);
    }

    /// Stops serving a peer and notifies it. Returns false if the peer was not served.
    pub fn cancel(&mut self, id: ConnectionId) -> bool {
        let Some(peer) = self.peers.get_mut(id).filter(|peer| peer.is_served) else { return false };
        peer.is_served = false;
        peer.fail(Reason::Cancelled);
        true
    }

    /// Returns the next event of a receiver.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, SenderEvent)> {
        let event = self.peers.iter_mut().find_map(|(id, peer)| peer.poll_event().map(|event| (id, event)));
        self.peers.retain(|_, peer| !peer.is_gone || peer.is_progress_due || peer.ended.is_some());
        event
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> SenderStats {
        self.stats
    }

    /// Returns the maximum number of file bytes in a reply.
    fn chunk(&self) -> u32 {
        let longest = BYTES - DATA_HEADER;
        let paced = self
            .pacer
            .bytes_per_second
            .map_or(longest, |rate| usize::try_from(rate.get()).unwrap_or(longest) / REPLIES_PER_SECOND);
        u32::try_from(paced.max(MIN_CHUNK).min(longest)).unwrap_or(u32::MAX)
    }

    /// Encodes the reply to a request at the start of a buffer, and returns its length.
    fn reply(&mut self, request: Request, buffer: &mut [u8]) -> Result<usize, Reason> {
        match request {
            Request::List { number, first, count } => self.page(number, first, count, buffer),
            Request::Read { number, file, offset, length } => {
                let size = self.source.entry(file).map(|entry| entry.size);
                let size = size.or_else(|| self.source.patch_size(file)).ok_or(Reason::Unknown)?;
                let is_within = offset.checked_add(length.into()).is_some_and(|end| end <= size);
                if !is_within || length == 0 || length > self.chunk() {
                    return Err(Reason::Unknown);
                }
                let end = usize::try_from(length).map_err(|_| Reason::Unknown)? + DATA_HEADER;
                let (header, bytes) = buffer
                    .get_mut(..end)
                    .and_then(|reply| reply.split_first_chunk_mut())
                    .ok_or(Reason::Unknown)?;
                *header = data_header(number);
                self.source.read(file, offset, bytes).map_err(|StorageError| Reason::Storage)?;
                Ok(end)
            }
            Request::FindPatch { number, file, base } => {
                let found = self.source.patch(file, &base);
                let found = found.and_then(|patch| Some((patch, self.source.patch_size(patch)?)));
                let (patch, size) = found.unwrap_or((0, 0));
                Reply::Patch { number, patch, size }.encode(buffer).ok_or(Reason::Storage)
            }
            Request::Done | Request::Failed(_) => Err(Reason::BadMessage),
        }
    }

    fn page(&self, number: u32, first: u32, count: u16, buffer: &mut [u8]) -> Result<usize, Reason> {
        let totals = self.source.totals();
        if first > totals.files || count == 0 {
            return Err(Reason::Unknown);
        }
        let window = u16::try_from(WINDOW - 1).unwrap_or(u16::MAX);
        let page = Page { number, totals, chunk: self.chunk(), window, first, entries: Entries::NONE };
        let mut writer = PageWriter::new(buffer, &page).ok_or(Reason::Storage)?;
        let last = first.saturating_add(count.into()).min(totals.files);
        for file in first..last {
            let entry = self.source.entry(file).ok_or(Reason::Storage)?;
            if writer.push(&entry).is_none() {
                break;
            }
        }
        // A path above the maximum length fits into no page.
        if writer.is_empty() && first < totals.files { Err(Reason::Storage) } else { Ok(writer.len()) }
    }

    /// Sends one message to a receiver. Returns true if it was sent.
    fn send_to(
        &mut self,
        now: Instant,
        id: ConnectionId,
        sender: &mut dyn MessageSender<P>,
        buffer: &mut [u8; BYTES],
    ) -> bool {
        let Some(peer) = self.peers.get(id).filter(|peer| !peer.is_blocked) else { return false };
        let (reply, bytes) = if let Some(reason) = peer.failed {
            (Reply::Failed(reason).encode(buffer).ok_or(reason), 0)
        } else if let Some(request) = peer.requests.front().copied().filter(|_| self.pacer.is_ready(now)) {
            (self.reply(request, buffer), request.bytes())
        } else {
            return false;
        };
        let message = reply.map(|length| buffer.get(..length).unwrap_or_default());
        let sent = message.map(|message| sender.send(id, message, self.delivery).map(|_| message.len()));
        let Some(peer) = self.peers.get_mut(id) else { return false };
        match sent {
            Ok(sent) => {
                let length = sent.unwrap_or(0);
                self.pacer.sent(now, length);
                self.stats.replies = self.stats.replies.saturating_add(u64::from(length > 0));
                peer.on_sent(sent.map(|_| ()), bytes);
            }
            Err(reason) => peer.fail(reason),
        }
        true
    }
}

impl<P: Protocol, S: Source, const PEERS: usize, const WINDOW: usize, const BYTES: usize> Plugin<P>
    for FileSender<P, S, PEERS, WINDOW, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[REQUEST_ID])
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, _: SocketAddr, _: P::Identity, _: Side) {
        let receiver = Receiver { is_served: self.serves_all, ..Receiver::default() };
        if self.peers.get(id).is_none() && !self.peers.insert(id, receiver) {
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(1);
        }
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        (peer.is_gone, peer.is_served, peer.failed) = (true, false, None);
        if peer.ended.is_none() && peer.is_begun {
            peer.ended = Some(Err(Failure::Disconnected));
        }
        peer.requests.clear();
        self.peers.retain(|_, peer| !peer.is_gone || peer.ended.is_some());
    }

    fn on_message(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        _: P::Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let mut buffer = [0; MAX_REQUEST];
        let request = bytes::copy(message, &mut buffer).and_then(Request::decode);
        let peer = self.peers.get_mut(id);
        match (request, peer) {
            (None, _) => self.stats.malformed = self.stats.malformed.saturating_add(1),
            (Some(request), Some(peer)) if peer.is_served => peer.on_request(request),
            (Some(_), peer) => {
                self.stats.refused = self.stats.refused.saturating_add(1);
                if let Some(peer) = peer {
                    peer.failed.get_or_insert(Reason::Forbidden);
                }
            }
        }
        Verdict::Drop
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        let mut buffer = [0; BYTES];
        self.peers.iter_mut().for_each(|(_, peer)| peer.is_blocked = false);
        // The receivers take turns, so that none of them starves.
        loop {
            let mut ids: heapless::Vec<ConnectionId, PEERS> = heapless::Vec::new();
            ids.extend(self.peers.iter().map(|(id, _)| id));
            let sent = ids.iter().filter(|id| self.send_to(now, **id, sender, &mut buffer)).count();
            if sent == 0 {
                return;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.peers.iter().any(|(_, peer)| peer.failed.is_some()) {
            return Some(Instant::ZERO);
        }
        let has_requests = self.peers.iter().any(|(_, peer)| !peer.requests.is_empty());
        has_requests.then(|| self.pacer.ready_at())
    }
}
