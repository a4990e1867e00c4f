//! The data channel transport of one client: its session, and the link between the session and the port.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::time::{Sleep, sleep_until, timeout};

use super::super::batch::CatchUp;
use super::websocket::Broken;
use crate::close::CloseReason;
use crate::flow::{FLOW_REQUEST, Flow, FromClient, ToClient, TransportLimits};
use crate::webrtc::{ACKNOWLEDGEMENT_TIMEOUT, Session, SessionEvent, close_message};

/// The maximum number of datagrams that wait for the task of a session. More arrive only while other tasks occupy the
/// processor.
const INBOX: usize = 256;

/// The maximum length of a message that is sent as one datagram (docs/webrtc.md#connecting).
const UNFRAGMENTED: usize = 1_024;

/// Time limit for a client to acknowledge a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The timer interval of an idle session.
const IDLE: Duration = Duration::from_secs(60);

/// The minimum interval between two deadlines of a session.
const TICK: Duration = Duration::from_millis(1);

/// Input that the port has queued for a session.
#[derive(Debug, Default)]
struct Waiting {
    /// The datagrams, each with its source.
    datagrams: VecDeque<(SocketAddr, Bytes)>,
    /// True if the client has sent a connectivity check, which shows that it is alive.
    is_checked: bool,
    is_evicted: bool,
}

/// The queue from the port to the task of a session. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inbox(Arc<(Mutex<Waiting>, AtomicWaker)>);

impl PartialEq for Inbox {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Inbox {
    /// Queues a datagram. Returns false if the queue is full.
    pub(crate) fn push(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let has_room = {
            let mut waiting = self.lock();
            let has_room = waiting.datagrams.len() < INBOX;
            if has_room {
                waiting.datagrams.push_back((from, Bytes::copy_from_slice(datagram)));
            }
            has_room
        };
        self.0.1.wake();
        has_room
    }

    /// Records a connectivity check of the client.
    pub(crate) fn check(&self) {
        self.lock().is_checked = true;
        self.0.1.wake();
    }

    /// Requests the session to end, because another one replaces it.
    pub(crate) fn evict(&self) {
        self.lock().is_evicted = true;
        self.0.1.wake();
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Arrival> {
        self.0.1.register(context.waker());
        let mut waiting = self.lock();
        if waiting.is_evicted {
            return Poll::Ready(Arrival::Eviction);
        }
        match waiting.datagrams.pop_front() {
            Some((from, datagram)) => Poll::Ready(Arrival::Datagram(from, datagram)),
            None if mem::take(&mut waiting.is_checked) => Poll::Ready(Arrival::Check),
            None => Poll::Pending,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Arrival {
    Datagram(SocketAddr, Bytes),
    Check,
    Eviction,
}

/// The services that a port provides to its sessions.
pub(crate) trait Port: Send + Sync {
    /// Sends a datagram to a client.
    fn send(&self, to: SocketAddr, datagram: &[u8]);

    /// Reports that the handshake of a client is complete.
    fn prove(&self, client: SocketAddr, inbox: &Inbox);

    /// Moves the session to another port, from which the client has sent encrypted data. Returns false if the session
    /// is not moved.
    fn follow(&self, client: SocketAddr, to: SocketAddr, inbox: &Inbox) -> bool;

    /// Reports that the session of a client has ended.
    fn close(&self, client: SocketAddr, inbox: &Inbox);
}

/// The data channel transport of one client; see the module.
pub(crate) struct WebRtcTransport {
    session: Session,
    client: SocketAddr,
    inbox: Inbox,
    port: Arc<dyn Port>,
    timer: Pin<Box<Sleep>>,
    catch_up: CatchUp,
}

impl fmt::Debug for WebRtcTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebRtcTransport").field("session", &self.session).finish_non_exhaustive()
    }
}

impl WebRtcTransport {
    /// SCTP splits longer messages, and does not retransmit lost fragments.
    pub(super) const LIMITS: TransportLimits = TransportLimits {
        max_datagram: None,
        max_unfragmented: Some(UNFRAGMENTED),
        has_control_datagrams: false,
    };

    pub(crate) fn new(session: Session, client: SocketAddr, inbox: Inbox, port: Arc<dyn Port>) -> Self {
        let timer = Box::pin(sleep_until(Instant::now().into()));
        Self { session, client, inbox, port, timer, catch_up: CatchUp::default() }
    }

    /// Returns the next event of the session, or `None` once the session has ended.
    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        loop {
            if let Some(event) = self.session.poll_event() {
                if event == SessionEvent::Secured {
                    self.port.prove(self.client, &self.inbox);
                }
                return Poll::Ready(Some(event));
            }
            if self.session.is_ended() {
                self.transmit();
                return Poll::Ready(None);
            }
            match self.inbox.poll(context) {
                Poll::Ready(Arrival::Datagram(from, datagram)) => {
                    self.session.handle_datagram(Instant::now(), &datagram);
                    if self.session.take_received()
                        && from != self.client
                        && self.port.follow(self.client, from, &self.inbox)
                    {
                        self.client = from;
                    }
                }
                Poll::Ready(Arrival::Check) => return Poll::Ready(Some(SessionEvent::Checked)),
                Poll::Ready(Arrival::Eviction) => self.session.abandon(Instant::now()),
                Poll::Pending => {
                    self.transmit();
                    if self.poll_timer(context).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Returns the next input of the client for its flow.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<FromClient> {
        self.poll_event(context).map(|event| match event {
            Some(SessionEvent::Datagram(datagram)) => FromClient::Datagram(datagram),
            Some(SessionEvent::Control(text)) if text == FLOW_REQUEST.as_bytes() => FromClient::FlowRequest,
            Some(SessionEvent::Control(_) | SessionEvent::Text) => FromClient::Text,
            Some(SessionEvent::Secured | SessionEvent::Connected | SessionEvent::Checked) => {
                FromClient::Control
            }
            Some(SessionEvent::Unacknowledged) => {
                FromClient::Unacknowledged { time: ACKNOWLEDGEMENT_TIMEOUT }
            }
            Some(SessionEvent::Violation) => FromClient::Violation,
            Some(SessionEvent::Closed) => FromClient::Closed,
            Some(SessionEvent::Failed) | None => FromClient::Vanished,
        })
    }

    /// Sends the output of `flow` until SCTP's send buffer is full.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        flow: &mut Flow,
        now: Instant,
    ) -> Poll<Result<(), Broken>> {
        let filled = self.poll_fill(flow, now);
        self.transmit();
        // Sending may have set an earlier deadline.
        while self.poll_timer(context).is_ready() {
            self.transmit();
        }
        filled
    }

    /// Queues the output of `flow` until SCTP's send buffer is full, and encodes it as datagrams. Acknowledgements,
    /// which are read here, free space.
    pub(super) fn poll_fill(&mut self, flow: &mut Flow, now: Instant) -> Poll<Result<(), Broken>> {
        loop {
            let filled = self.fill(flow, now);
            self.session.flush(now);
            // Sent datagrams have freed space.
            if filled.is_ready() || !self.session.has_room() {
                return filled;
            }
        }
    }

    fn fill(&mut self, flow: &mut Flow, now: Instant) -> Poll<Result<(), Broken>> {
        loop {
            if self.session.is_ended() {
                return Poll::Ready(Err(Broken));
            }
            if !self.session.has_room() {
                return Poll::Pending;
            }
            match flow.poll_to_client(now) {
                Some(ToClient::Datagram(datagram)) => {
                    if self.session.send_datagram(&datagram) {
                        flow.handle_sent_to_client(datagram.len());
                    } else {
                        flow.handle_too_long_for_client();
                    }
                }
                Some(ToClient::Control(text)) => self.session.send_control(&text),
                // Pings are not needed: the client's connectivity checks show that it is alive.
                Some(ToClient::Ping) => {}
                None => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Closes the session with a reason, unless the client has already left, and waits briefly for the acknowledgement.
    pub(super) async fn close(self, reason: &CloseReason) {
        match reason.kind().code() {
            Some(code) => self.close_with(code, &reason.text()).await,
            None => drop(self),
        }
    }

    /// Closes the session with a given code and text.
    pub(crate) async fn close_with(mut self, code: u16, text: &str) {
        self.session.send_control(&close_message(code, text));
        self.session.shut_down(Instant::now());
        let told = poll_fn(|context| {
            loop {
                match self.poll_event(context) {
                    Poll::Ready(Some(_)) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        // The session ends here even if the client has not acknowledged the close.
        let _ = timeout(CLOSE_TIMEOUT, told).await;
    }

    fn transmit(&mut self) {
        while let Some(datagram) = self.session.poll_transmit() {
            self.port.send(self.client, &datagram);
        }
    }

    /// Returns the time at which the session must be polled again. A deadline that does not advance must not keep the
    /// thread busy.
    fn due(&self, now: Instant) -> tokio::time::Instant {
        let due = self.session.poll_timeout().unwrap_or(now + IDLE).max(now + TICK);
        self.catch_up.postponed(due).into()
    }

    /// Returns `Poll::Ready` once a deadline has passed.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let at = self.due(Instant::now());
        // The timer is not moved with each datagram, which would be expensive. If it fires early, it is set again.
        if at < self.timer.deadline() {
            self.timer.as_mut().reset(at);
        }
        if self.timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let now = Instant::now();
        if self.catch_up.is_over(self.timer.deadline().into(), now) {
            self.session.handle_timeout(now);
        }
        let at = self.due(now);
        self.timer.as_mut().reset(at);
        Poll::Ready(())
    }
}

impl Drop for WebRtcTransport {
    fn drop(&mut self) {
        self.session.abandon(Instant::now());
        self.transmit();
        self.port.close(self.client, &self.inbox);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_session_inbox_is_bounded_and_reports_checks_last() {
        let inbox = Inbox::default();
        let context = Context::from_waker(Waker::noop());
        let from = SocketAddr::from(([192, 0, 2, 1], 1));
        inbox.check();
        for number in 0..INBOX + 9 {
            assert_eq!(inbox.push(from, &[0]), number < INBOX);
        }
        let mut count = 0;
        while let Poll::Ready(Arrival::Datagram(..)) = inbox.poll(&context) {
            count += 1;
        }
        // The loop has taken the check.
        assert_eq!(count, INBOX);
        assert!(inbox.poll(&context).is_pending());
        inbox.push(from, &[0]);
        inbox.evict();
        assert!(matches!(inbox.poll(&context), Poll::Ready(Arrival::Eviction)));
    }
}
