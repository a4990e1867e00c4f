//! The flow of one client: a state machine with time and events as input, and frames and datagrams as output.
//!
//! ```text
//!               connection lost              resume_within, idle
//!   Attached ────────────────────▶ Detached ─────────────────────▶ ended
//!      │     ◀────────────────────    │
//!      │        client came back      └── shutdown, UDP failed ──▶ ended
//!      └── text, too long, broken, idle, shutdown, closed, UDP failed ▶ ended
//! ```
//!
//! When a flow ends, the relay notifies the game server if it knows the server's protocol. The exception is a failed
//! socket.
//!
//! A flow without a [`Secret`] cannot be resumed: it ends with the client's connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::control::{Reports, Secret};
use super::counters::{Direction, DropReason, FlowEnd, TargetCounters, Unreachable};
use super::proxy_header::{self, Announcement};
use super::queue::{AgeQueue, Bounds};
use super::rate::{FlowLimits, SharedRate, Shares, TotalRate};
use super::{Batch, Forwarded, FromClient, FromServer, Inspect, Sending, Setup, ToClient, TransportLimits};
use crate::protocol::{Change, Refusal, Verdict};

/// Number of ping intervals that a client may be silent. A ping is sent at the end of each interval but the last.
const PINGS_UNANSWERED_MAX: u32 = 3;

/// The maximum bytes of a [`Batch`] with several datagrams. The system first assembles a batch as a single UDP
/// datagram, which must not exceed the maximum length.
const BATCH_BYTES_MAX: usize = 60_000;

#[derive(Debug)]
enum Client {
    Attached,
    Detached {
        until: Instant,
        /// The reason why the connection was lost.
        lost: FlowEnd,
    },
}

#[derive(Debug, PartialEq)]
enum Ping {
    Waiting,
    Due,
}

/// The flow of one client; see the module.
#[derive(Debug)]
pub struct Flow {
    limits: FlowLimits,
    counters: Arc<TargetCounters>,
    to_server: AgeQueue,
    to_client: AgeQueue,
    client: Client,
    end: Option<FlowEnd>,
    ping: Ping,
    next_ping: Instant,
    /// Number of pings since the last input from the client.
    pings_unanswered: u32,
    /// The time of the last datagram in either direction.
    last_traffic: Instant,
    /// The time of the last input from the client.
    last_received: Instant,
    rate: Option<SharedRate>,
    total: TotalRate,
    shares: Shares,
    reports: Option<Box<Reports>>,
    /// Adds PROXY headers with the client's address, for game servers that read them.
    announcement: Option<Announcement>,
    inspect: Option<Box<dyn Inspect>>,
    /// True if an absent game server ends the flow. Cleared once the server has sent a datagram.
    closes_on_unreachable: bool,
    transport_limits: TransportLimits,
    forwarded: Forwarded,
}

impl Flow {
    /// Creates the flow of a client that has just connected.
    #[must_use]
    pub fn new(limits: FlowLimits, counters: Arc<TargetCounters>, setup: Setup, now: Instant) -> Self {
        counters.flows.increment();
        counters.clients.increment();
        Self {
            limits,
            counters,
            to_server: AgeQueue::default(),
            to_client: AgeQueue::default(),
            client: Client::Attached,
            end: None,
            ping: Ping::Waiting,
            next_ping: now + limits.ping_interval,
            pings_unanswered: 0,
            last_traffic: now,
            last_received: now,
            rate: limits.rate.map(|rate| SharedRate::new(rate, now)),
            total: setup.total,
            shares: setup.shares,
            reports: setup.secret.map(|secret| Box::new(Reports::new(secret, now))),
            announcement: setup.proxy_header.map(Announcement::new),
            inspect: setup.inspect,
            closes_on_unreachable: setup.closes_on_unreachable,
            transport_limits: TransportLimits::default(),
            forwarded: Forwarded::default(),
        }
    }

    /// Replaces the flow's rate by one that it shares with other flows.
    pub fn share_rate(&mut self, rate: SharedRate) {
        self.rate = Some(rate);
    }

    /// Handles input from the client's connection. Input while the client is detached is ignored.
    pub fn handle_client(&mut self, now: Instant, input: FromClient) {
        if self.end.is_some() || !self.is_attached() {
            return;
        }
        self.last_received = now;
        self.pings_unanswered = 0;
        match input {
            FromClient::Datagram(datagram) => self.handle_client_datagram(now, &datagram),
            FromClient::Oversized { len } => self.reject_size(now, len),
            FromClient::Control => {}
            FromClient::ForeignSession => self.count_drops(DropReason::ForeignSession, 1),
            FromClient::Dropped { count } => self.count_drops(DropReason::ServerQueueFull, count),
            FromClient::FlowRequest => {
                if let Some(reports) = &mut self.reports {
                    reports.handle_flow_request(now);
                }
            }
            FromClient::Text => self.part(now, FlowEnd::TextMessage),
            FromClient::Unacknowledged { time } => self.lose_client(now, FlowEnd::Unresponsive(time)),
            FromClient::Violation => self.part(now, FlowEnd::ProtocolViolation),
            FromClient::Closed => self.part(now, FlowEnd::ClientClosed),
            FromClient::Vanished => self.lose_client(now, FlowEnd::ClientVanished),
        }
    }

    /// Handles a new connection of the client, which replaces an existing one.
    pub fn handle_attached(&mut self, now: Instant) {
        if self.end.is_some() {
            return;
        }
        self.counters.resumed.increment();
        if !self.is_attached() {
            self.counters.detached.decrement();
            self.counters.clients.increment();
        }
        self.client = Client::Attached;
        self.set_transport_limits(TransportLimits::default());
        self.ping = Ping::Waiting;
        self.next_ping = now + self.limits.ping_interval;
        self.pings_unanswered = 0;
        self.last_received = now;
        if let Some(reports) = &mut self.reports {
            reports.handle_attached(now);
        }
    }

    /// Handles input from the game server.
    pub fn handle_server(&mut self, now: Instant, input: FromServer<'_>) {
        match input {
            FromServer::Datagram(datagram) => self.handle_server_datagram(now, datagram),
            FromServer::Oversized => self.count_drops(DropReason::DatagramTooBig, 1),
            FromServer::Foreign => self.count_drops(DropReason::ForeignSource, 1),
            FromServer::Unreachable(reason) => self.handle_unreachable(reason),
            FromServer::Failed => self.finish(FlowEnd::UdpFailed),
        }
    }

    /// Sets the current limits of the client's transport. Call this before taking output for the client: longer
    /// datagrams are dropped.
    pub fn set_transport_limits(&mut self, transport_limits: TransportLimits) {
        if self.transport_limits.max_unfragmented != transport_limits.max_unfragmented
            && let Some(inspect) = &mut self.inspect
        {
            inspect.set_max_datagram(transport_limits.max_unfragmented);
        }
        self.transport_limits = transport_limits;
    }

    /// Handles expired timers. Call this at [`Flow::poll_timeout`]; at any other time it has no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.idle_at() {
            return self.part(now, FlowEnd::Idle(self.limits.idle_timeout));
        }
        match self.client {
            Client::Detached { until, lost } if now >= until => return self.part(now, lost),
            Client::Detached { .. } => return,
            Client::Attached => {}
        }
        if now >= self.next_ping && self.is_unresponsive(now) {
            return self.lose_client(now, FlowEnd::Unresponsive(self.unresponsive_after()));
        }
        if now >= self.next_ping {
            self.ping = Ping::Due;
            self.pings_unanswered += 1;
            self.next_ping = now + self.limits.ping_interval;
            self.to_server.shrink();
            self.to_client.shrink();
        }
        if let Some(reports) = &mut self.reports {
            reports.handle_timeout(now);
        }
    }

    /// Ends the flow because the relay is stopped.
    pub fn handle_shutdown(&mut self, now: Instant) {
        self.part(now, FlowEnd::ShuttingDown);
    }

    /// Schedules the notification that the relay shuts down and the flow ends at `until`. Only clients that accept
    /// control messages are notified.
    pub fn handle_draining(&mut self, now: Instant, until: Instant) {
        if let Some(reports) = &mut self.reports {
            reports.handle_draining(now, until);
        }
    }

    /// Ends the flow on the operator's behalf.
    pub fn handle_ended(&mut self, now: Instant, end: FlowEnd) {
        self.part(now, end);
    }

    /// Ends a flow without a client, because another client needs its slot.
    pub fn handle_evicted(&mut self, now: Instant) {
        if let Client::Detached { lost, .. } = self.client {
            self.part(now, lost);
        }
    }

    /// Returns the time at which [`Flow::handle_timeout`] is due. Any input can change it. Traffic only postpones it,
    /// unless datagrams are dropped.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let next = match self.client {
            Client::Detached { until, .. } => until,
            Client::Attached => {
                let report = self.reports.as_ref().and_then(|reports| reports.poll_timeout());
                report.map_or(self.next_ping, |report| report.min(self.next_ping))
            }
        };
        next.min(self.idle_at())
    }

    /// Returns the next datagrams to the game server, at most `max_count`. [`Flow::handle_sent`] removes them from the
    /// queue. If there are several, they are copied into `buffer`, which is overwritten.
    pub fn poll_to_server<'a>(
        &'a mut self,
        now: Instant,
        max_count: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Option<Batch<'a>> {
        let expired = self.to_server.expire(now, &bounds(&self.limits));
        self.count_drops(DropReason::ServerTooOld, expired);
        self.drop_behind_header();
        let front = self.to_server.front()?;
        let max_datagram = self.limits.max_datagram;
        let announcement = self.announcement.as_ref();
        if let Some(header) = announcement.and_then(|it| it.before(front.len(), max_datagram)) {
            buffer.clear();
            header.write(buffer);
            buffer.extend_from_slice(front);
            return Some(Batch { contents: buffer, segment: buffer.len(), count: 1 });
        }
        let segment = front.len();
        let count = self.batch_count(segment, max_count);
        if count == 1 {
            return Some(Batch { contents: front, segment, count });
        }
        buffer.clear();
        self.to_server.iter().take(count).for_each(|datagram| buffer.extend_from_slice(datagram));
        Some(Batch { contents: buffer, segment, count })
    }

    /// Records the result of sending the first `count` datagrams of [`Flow::poll_to_server`].
    pub fn handle_sent(&mut self, count: usize, sending: Sending) {
        let sent = (0..count).map_while(|_| self.to_server.pop());
        let (count, bytes) =
            sent.fold((0, 0), |(count, bytes), datagram| (count + 1, bytes + datagram.len()));
        match sending {
            Sending::Sent => {
                self.forwarded.to_server += bytes as u64;
                self.counters.sent_to_server(count, bytes);
                if let Some(announcement) = &mut self.announcement {
                    announcement.handle_sent();
                }
            }
            Sending::Refused => self.count_drops(DropReason::SendRefused, count as u64),
            Sending::Failed => self.finish(FlowEnd::UdpFailed),
        }
    }

    /// Returns the next frame to the client. Report each datagram by [`Flow::handle_sent_to_client`] or
    /// [`Flow::handle_too_long_for_client`].
    pub fn poll_to_client(&mut self, now: Instant) -> Option<ToClient> {
        if !self.is_attached() {
            return None;
        }
        let expired = self.to_client.expire(now, &bounds(&self.limits));
        self.count_drops(DropReason::ClientTooOld, expired);
        let (within, max) = (self.limits.resume_within, self.announced_max_datagram());
        if let Some(text) = self.reports.as_mut().and_then(|reports| reports.poll(now, within, max)) {
            return Some(ToClient::Control(text));
        }
        if self.ping == Ping::Due {
            self.ping = Ping::Waiting;
            return Some(ToClient::Ping);
        }
        loop {
            let datagram = self.to_client.pop()?;
            match self.transport_limits.refuses(&datagram) {
                Some(reason) => self.count_drops(reason, 1),
                None => return Some(ToClient::Datagram(datagram)),
            }
        }
    }

    /// Returns the maximum datagram length announced to the client. For a target with a known protocol, the MTU is
    /// clamped instead.
    fn announced_max_datagram(&self) -> usize {
        let max = self.limits.max_datagram;
        let is_known = self.inspect.is_some();
        let announcement = self.announcement.as_ref().filter(|it| it.is_first() && !is_known);
        announcement.map_or(max, |announcement| announcement.room(max).min(max))
    }

    /// Returns the bytes forwarded in each direction.
    #[must_use]
    pub const fn forwarded(&self) -> Forwarded {
        self.forwarded
    }

    /// Records that the client's transport accepted a datagram of this length from [`Flow::poll_to_client`].
    pub fn handle_sent_to_client(&mut self, bytes: usize) {
        self.forwarded.to_client += bytes as u64;
        self.counters.sent_to_client(bytes);
    }

    /// Records that the last datagram of [`Flow::poll_to_client`] was too long for the client's transport.
    pub fn handle_too_long_for_client(&mut self) {
        self.count_drops(DropReason::DatagramTooBig, 1);
    }

    /// Returns the number of datagrams that can be queued for the client before the oldest is dropped.
    #[must_use]
    pub fn client_queue_capacity(&self) -> usize {
        self.to_client.room(&bounds(&self.limits))
    }

    /// Returns the bytes of datagrams that are queued in both directions.
    #[must_use]
    pub fn bytes_queued(&self) -> usize {
        self.to_server.bytes() + self.to_client.bytes()
    }

    /// Returns true if datagrams are queued for the game server.
    #[must_use]
    pub fn has_queued_to_server(&self) -> bool {
        !self.to_server.is_empty()
    }

    /// Returns true if the client is connected. A detached flow can be resumed until it ends.
    #[must_use]
    pub const fn is_attached(&self) -> bool {
        matches!(self.client, Client::Attached)
    }

    /// Returns the reason why the client's connection was lost, or `None` while the client is attached.
    #[must_use]
    pub const fn lost(&self) -> Option<FlowEnd> {
        match self.client {
            Client::Detached { lost, .. } => Some(lost),
            Client::Attached => None,
        }
    }

    /// Returns the secret that resumes the flow.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        self.reports.as_ref().map(|reports| reports.secret())
    }

    /// Returns true if a report that the game server is absent ([`FromServer::Unreachable`]) would end the flow.
    #[must_use]
    pub const fn closes_on_unreachable(&self) -> bool {
        self.closes_on_unreachable
    }

    /// Returns true if no flow to this game server has received [`FromServer::Unreachable`] for `reason`.
    #[must_use]
    pub fn is_first_report(&self, reason: Unreachable) -> bool {
        !self.counters.has_been_unreachable(reason)
    }

    /// Returns the reason why the flow has ended, or `None` while it runs.
    #[must_use]
    pub const fn end(&self) -> Option<FlowEnd> {
        self.end
    }

    fn handle_client_datagram(&mut self, now: Instant, datagram: &Bytes) {
        if datagram.len() > self.limits.max_datagram {
            return self.reject_size(now, datagram.len());
        }
        if datagram.is_empty() {
            return self.count_drops(DropReason::EmptyMessage, 1);
        }
        if self.rate.as_ref().is_some_and(|rate| !rate.admits(now, datagram.len())) {
            return self.count_drops(DropReason::RateLimited, 1);
        }
        // The bytes are charged only once the datagram passes all checks.
        if !self.total.has_room(now, Direction::ToServer, datagram.len(), &self.shares) {
            return self.count_drops(DropReason::TotalToServer, 1);
        }
        if let Some(announcement) = &mut self.announcement {
            if proxy_header::is_forged(datagram) {
                return self.count_drops(DropReason::ForgedHeader, 1);
            }
            announcement.handle_datagram(now);
            if self.inspect.as_ref().is_some_and(|inspect| inspect.begins_connection(datagram)) {
                announcement.begin_again();
            }
        }
        let passes = Verdict::Pass(Change::None);
        match self.inspect.as_mut().map_or(passes, |inspect| inspect.to_server(now, datagram)) {
            // The datagram is copied, because the message is a slice that would keep its whole read buffer in memory.
            Verdict::Pass(change) => self.pass_to_server(now, change.copy(datagram).into()),
            Verdict::Answer(answer) => self.queue_to_client(now, answer.into()),
            Verdict::Drop(refusal) => self.refuse(refusal),
        }
    }

    /// Counts a datagram that the target's protocol does not allow. A datagram of another protocol ends the flow.
    fn refuse(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::NoHandshake => self.count_drops(DropReason::NotHandshake, 1),
            Refusal::HandshakeBudget => self.count_drops(DropReason::HandshakeBudget, 1),
            Refusal::OtherProtocol(kind) => self.finish(FlowEnd::WrongProtocol(kind)),
        }
    }

    /// Ends the flow of a client that waits for an absent server, if the client has requested that. A server that has
    /// answered before may be restarting, and a path may recover.
    fn handle_unreachable(&mut self, reason: Unreachable) {
        self.counters.unreachable(reason);
        self.announcement.iter_mut().for_each(Announcement::begin_again);
        if self.closes_on_unreachable && reason.is_server_absent() {
            self.finish(FlowEnd::ServerUnreachable);
        }
    }

    fn handle_server_datagram(&mut self, now: Instant, datagram: &[u8]) {
        self.announcement.iter_mut().for_each(Announcement::handle_answer);
        self.closes_on_unreachable = false;
        if !self.total.has_room(now, Direction::ToClient, datagram.len(), &self.shares) {
            return self.count_drops(DropReason::TotalToClient, 1);
        }
        let passes = Verdict::Pass(Change::None);
        match self.inspect.as_mut().map_or(passes, |inspect| inspect.to_client(now, datagram)) {
            Verdict::Pass(change) => self.pass_to_client(now, change.copy(datagram).into()),
            Verdict::Answer(answer) => self.queue_to_server(now, answer.into()),
            Verdict::Drop(refusal) => self.refuse(refusal),
        }
    }

    /// Queues a datagram from the client, and charges it to the total rate.
    fn pass_to_server(&mut self, now: Instant, datagram: Bytes) {
        self.total.take(now, Direction::ToServer, datagram.len(), &self.shares);
        self.queue_to_server(now, datagram);
    }

    /// Queues a datagram from the game server, and charges it to the total rate.
    fn pass_to_client(&mut self, now: Instant, datagram: Bytes) {
        self.total.take(now, Direction::ToClient, datagram.len(), &self.shares);
        self.queue_to_client(now, datagram);
    }

    fn queue_to_server(&mut self, now: Instant, datagram: Bytes) {
        self.last_traffic = now;
        let bounds = bounds(&self.limits);
        let expired = self.to_server.expire(now, &bounds);
        self.count_drops(DropReason::ServerTooOld, expired);
        let dropped = self.to_server.push(now, datagram, &bounds);
        self.count_drops(DropReason::ServerQueueFull, dropped);
    }

    /// Drops queued datagrams that are too long for the space after the PROXY header. Without a header, the server
    /// could not attribute them to the client.
    fn drop_behind_header(&mut self) {
        let first = self.announcement.as_ref().filter(|it| it.is_first() && it.next().is_some());
        let Some(announcement) = first else { return };
        let room = announcement.room(self.limits.max_datagram);
        let mut dropped = 0;
        while self.to_server.front().is_some_and(|datagram| datagram.len() > room) {
            self.to_server.pop();
            dropped += 1;
        }
        self.count_drops(DropReason::TooBigBehindHeader, dropped);
    }

    fn queue_to_client(&mut self, now: Instant, datagram: Bytes) {
        self.last_traffic = now;
        let bounds = bounds(&self.limits);
        let expired = self.to_client.expire(now, &bounds);
        self.count_drops(DropReason::ClientTooOld, expired);
        let dropped = self.to_client.push(now, datagram, &bounds);
        self.count_drops(DropReason::ClientQueueFull, dropped);
    }

    /// Returns the number of queued datagrams that fit into one batch.
    fn batch_count(&self, segment: usize, max_count: usize) -> usize {
        // Until the game server has answered, each datagram may need a separate header.
        if self.announcement.as_ref().is_some_and(Announcement::is_waiting) || segment == 0 {
            return 1;
        }
        let max_count = max_count.min(BATCH_BYTES_MAX / segment).max(1);
        let mut count = 0;
        for datagram in self.to_server.iter().take(max_count) {
            if datagram.len() > segment || datagram.is_empty() {
                break;
            }
            count += 1;
            if datagram.len() < segment {
                break;
            }
        }
        count
    }

    fn count_drops(&mut self, reason: DropReason, count: u64) {
        if count == 0 {
            return;
        }
        self.counters.dropped(reason, count);
        if let Some(reports) = &mut self.reports {
            reports.count(reason, count);
        }
    }

    fn reject_size(&mut self, now: Instant, len: usize) {
        self.part(now, FlowEnd::MessageTooBig { len, max: self.limits.max_datagram });
    }

    fn lose_client(&mut self, now: Instant, lost: FlowEnd) {
        if self.reports.is_none() || self.limits.resume_within.is_zero() {
            return self.part(now, lost);
        }
        self.client = Client::Detached { until: now + self.limits.resume_within, lost };
        self.counters.clients.decrement();
        self.counters.detached.increment();
    }

    /// Ends the flow and notifies the game server, which would otherwise keep the player until its timeout.
    fn part(&mut self, now: Instant, end: FlowEnd) {
        if self.end.is_none()
            && let Some(datagram) = self.inspect.as_ref().and_then(|inspect| inspect.disconnect_datagram())
        {
            self.queue_to_server(now, datagram);
        }
        self.finish(end);
    }

    /// Ends the flow with this reason. Later reasons are consequences of the first and are ignored.
    fn finish(&mut self, end: FlowEnd) {
        self.end.get_or_insert(end);
    }

    fn idle_at(&self) -> Instant {
        self.last_traffic + self.limits.idle_timeout
    }

    /// Returns true if the client has left its pings unanswered. Elapsed time alone is not sufficient: a suspended
    /// relay sends no pings.
    fn is_unresponsive(&self, now: Instant) -> bool {
        let is_silent = now >= self.last_received + self.unresponsive_after();
        is_silent && self.pings_unanswered + 1 >= PINGS_UNANSWERED_MAX
    }

    fn unresponsive_after(&self) -> Duration {
        self.limits.ping_interval * PINGS_UNANSWERED_MAX
    }
}

const fn bounds(limits: &FlowLimits) -> Bounds {
    Bounds { count: limits.queue.get(), bytes: limits.queue_bytes.get(), max_age: limits.queue_age }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.counters.dropped(DropReason::ServerFlowEnded, self.to_server.len() as u64);
        self.counters.dropped(DropReason::ClientFlowEnded, self.to_client.len() as u64);
        if self.is_attached() {
            self.counters.clients.decrement();
        } else {
            self.counters.detached.decrement();
        }
    }
}
