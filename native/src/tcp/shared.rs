//! What the handles of a connection share with its task.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rakwire::endpoint::SendError;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::error::DisconnectReason;
use super::options::Options;
use super::stats::ConnectionCounters;
use crate::endpoint::spans::ConnectionSpan;

/// What a message is charged beyond its bytes, so that empty ones do not fill the memory either.
const CHARGE: usize = 64;
/// The bytes that one call takes from the system, which are one message where nothing says how long messages are.
pub(super) const READ_BUFFER: usize = 16 << 10;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// This side has closed it, and what was sent before leaves.
    Closing,
    Ended(DisconnectReason),
}

/// Bytes in a queue, and the room that they take there until they are dropped.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) bytes: Vec<u8>,
    pub(super) room: OwnedSemaphorePermit,
}

/// The room of a queue.
#[derive(Debug)]
pub(super) struct Room {
    free: Arc<Semaphore>,
    size: usize,
}

impl Room {
    fn new(size: usize, max_message: u32) -> Self {
        let largest = charge(READ_BUFFER.max(max_message as usize));
        let size = size.max(largest).min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(size)), size }
    }

    /// Whether a message of so many bytes ever fits.
    pub(super) const fn fits(&self, len: usize) -> bool {
        charge(len) <= self.size
    }

    /// Room for a message that [fits](Self::fits), once there is some.
    pub(super) async fn take(&self, len: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(charge(len)).ok()?;
        self.free.clone().acquire_many_owned(permits).await.ok()
    }

    pub(super) fn try_take(&self, len: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(charge(len)).ok()?;
        self.free.clone().try_acquire_many_owned(permits).ok()
    }
}

const fn charge(len: usize) -> usize {
    len.saturating_add(CHARGE)
}

/// What is known of a connection when it opens.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) remote: SocketAddr,
    pub(super) span: ConnectionSpan,
    /// How long the other side may take for its first message.
    pub(super) first_message_timeout: Duration,
}

/// A connection, for its handles and for its task.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) remote: SocketAddr,
    span: ConnectionSpan,
    pub(super) counters: ConnectionCounters,
    /// What has arrived, for whoever receives.
    pub(super) receive_queue: AsyncMutex<mpsc::UnboundedReceiver<Queued>>,
    pub(super) receive_room: Room,
    pub(super) send_room: Room,
    /// Where messages go that are sent, while the connection is open.
    send_queue: Mutex<Option<mpsc::UnboundedSender<Queued>>>,
    phase: watch::Sender<Phase>,
}

impl Shared {
    pub(super) fn new(
        options: &Options,
        remote: SocketAddr,
        span: ConnectionSpan,
        receive_queue: mpsc::UnboundedReceiver<Queued>,
        send_queue: mpsc::UnboundedSender<Queued>,
    ) -> Self {
        Self {
            remote,
            span,
            counters: ConnectionCounters::default(),
            receive_queue: AsyncMutex::new(receive_queue),
            receive_room: Room::new(options.receive_queue, options.max_message),
            send_room: Room::new(options.send_queue, options.max_message),
            send_queue: Mutex::new(Some(send_queue)),
            phase: watch::Sender::new(Phase::Open),
            options: options.clone(),
        }
    }

    /// Sends a message if there is room for it now.
    pub(super) fn try_send(&self, message: &[u8]) -> Result<(), SendError> {
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        let is_short = u32::try_from(message.len()).is_ok_and(|len| len <= self.options.max_message);
        if !is_short || !self.send_room.fits(message.len()) {
            return Err(SendError::NeverFits);
        }
        if !self.is_open() {
            return Err(SendError::NotConnected);
        }
        let room = self.send_room.try_take(message.len()).ok_or(SendError::QuotaExceeded)?;
        self.frame(message, room)
    }

    /// Queues the frame of a message.
    pub(super) fn frame(&self, message: &[u8], room: OwnedSemaphorePermit) -> Result<(), SendError> {
        let bytes = self.options.framing.frame(message).ok_or(SendError::NeverFits)?;
        let send_queue = self.send_queue.lock().unwrap_or_else(PoisonError::into_inner);
        let is_queued =
            send_queue.as_ref().is_some_and(|send_queue| send_queue.send(Queued { bytes, room }).is_ok());
        is_queued.then_some(()).ok_or(SendError::NotConnected)
    }

    /// Whether messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        self.phase() == Phase::Open
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Lets what was sent leave, and nothing more be sent.
    pub(super) fn close(&self) {
        self.stop_sending();
        self.phase.send_if_modified(|phase| {
            let is_open = *phase == Phase::Open;
            if is_open {
                self.span.closing();
                *phase = Phase::Closing;
            }
            is_open
        });
    }

    fn stop_sending(&self) {
        self.send_queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The connection is over. Whoever has closed it here knows no other reason.
    pub(super) fn end(&self, reason: DisconnectReason) {
        self.stop_sending();
        self.send_room.free.close();
        self.span.ended(&reason);
        self.phase.send_modify(|phase| *phase = Phase::Ended(reason));
    }

    /// Waits until this side closes the connection.
    pub(super) async fn closing(&self) {
        // It cannot fail: the sender lives as long as this.
        let _ = self.phase.subscribe().wait_for(|phase| *phase != Phase::Open).await;
    }

    pub(super) async fn ended(&self) -> DisconnectReason {
        let mut phase = self.phase.subscribe();
        loop {
            if let Phase::Ended(reason) = *phase.borrow_and_update() {
                return reason;
            }
            if phase.changed().await.is_err() {
                return DisconnectReason::Local;
            }
        }
    }
}
