//! The protocol of an endpoint, and the dispatch of its events.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use rakwire::endpoint::{
    ConnectError, ConnectionId, ConnectionState, Decision, DropReasons, Event, Hooked, PartitionError, Peer,
    Protocol, RefusedClient, Side,
};
use rakwire::{Instant, Machine};

use super::admission::{
    AcceptQueue, Deferred, DeferredAdmission, LockedAdmission, RefusedClients, Unaccepted,
};
use super::hooks::BoxedHook;
use super::inbox::{Inbox, Inboxes, Message, Phase};
use super::options::{Options, config_of_one};
use super::telemetry::{EndpointSpan, Meters};
use super::unconnected::{Pings, Pong, Requests, Unconnected, UnconnectedKind, UnconnectedQueue};
use super::wakes::{BlockedSenders, PendingWake};
use crate::arrivals::{ArrivalQueue, Proxies};
use crate::host::{Clock, unix_time};
use crate::huge_pages;
use crate::outgoing::Outgoing;
use crate::socket::{RecvBatch, SendPath};

/// The protocol, and the dispatch of its events.
#[derive(Debug)]
pub(crate) struct State<P: Protocol> {
    pub(crate) hooked: Hooked<'static, P, BoxedHook<P>>,
    pub(crate) dispatcher: Dispatcher<P>,
    pub(crate) requests: Requests,
    /// Clients that wait for the application to accept or refuse them; `None` if the application does not decide on
    /// admission.
    pub(crate) deferred: Option<Arc<Deferred>>,
    pub(crate) pending_wake: Option<PendingWake>,
    pub(crate) send_path: SendPath,
    pub(crate) proxies: Proxies,
    /// True once the advice to the operator has been logged.
    is_advised: bool,
}

/// Passes each event to the tasks that wait for it.
#[derive(Debug)]
pub(crate) struct Dispatcher<P: Protocol> {
    inboxes: Inboxes<P>,
    /// The inbox of the last message, because the next message is often for the same connection.
    last: Option<(ConnectionId, Arc<Inbox<P>>)>,
    /// Connections with a full receive queue. The protocol refuses their data.
    paused: HashMap<SocketAddr, (ConnectionId, Arc<Inbox<P>>)>,
    /// Connections with a receive queue that has just become full.
    newly_paused: Vec<ConnectionId>,
    /// The limit of each receive queue in bytes.
    receive_queue: usize,
    pub(crate) accept_queue: AcceptQueue<P>,
    /// Connections that did not fit into the accept queue and must be closed.
    rejected: Vec<ConnectionId>,
    pub(crate) pings: Pings<P::Identity>,
    pub(crate) unconnected: UnconnectedQueue<P::Identity>,
    pub(crate) refused_clients: RefusedClients<RefusedClient<P::Identity>>,
    /// Tasks that wait until their messages can be queued.
    pub(crate) blocked_senders: BlockedSenders,
    span: EndpointSpan,
    pub(crate) meters: Meters,
}

/// Maximum number of connections for which one run of the driver wakes the blocked senders.
const WOKEN_A_TURN: usize = 16;

/// The next step of the driver after [`State::drive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Send the written datagrams, and call again, because there may be more.
    Again,
    /// Send the written datagrams, and sleep until this time.
    Sleep(Option<Instant>),
    /// The endpoint has shut down.
    End,
}

impl<P: Protocol> State<P> {
    pub(crate) fn new(options: Options<P>, hook: BoxedHook<P>, span: EndpointSpan) -> Self {
        let dispatcher = Dispatcher {
            inboxes: Inboxes::new(),
            last: None,
            paused: HashMap::new(),
            newly_paused: Vec::new(),
            receive_queue: options.receive_queue,
            accept_queue: AcceptQueue::new(options.backlog),
            rejected: Vec::new(),
            pings: Pings::default(),
            unconnected: UnconnectedQueue::default(),
            refused_clients: RefusedClients::default(),
            blocked_senders: BlockedSenders::default(),
            span,
            meters: Meters::new(P::NAME, P::DropReason::REASONS),
        };
        let deferred = options.defer_incoming.then(|| Deferred::new(options.backlog));
        let proxies = Proxies::new(options.trusted_proxies);
        let peer = Peer::with_capacity(options.capacity, config_of_one::<P>(options.config));
        huge_pages::advise_for_blocks(peer.block_memory());
        let hooked = Hooked::new(peer, hook);
        let mut state = Self {
            hooked,
            dispatcher,
            requests: Requests::default(),
            deferred,
            pending_wake: None,
            send_path: SendPath::new(P::MAX_DATAGRAM),
            proxies,
            is_advised: false,
        };
        if state.deferred.is_some() {
            state.share_admission(LockedAdmission::default());
        }
        state
    }

    /// Shares admission with other endpoints. Must be called before there are connections.
    pub(crate) fn share_admission(&mut self, all: LockedAdmission) {
        self.hooked.peer.share_admission(match &self.deferred {
            Some(deferred) => Box::new(DeferredAdmission { all, deferred: Arc::clone(deferred) }),
            None => Box::new(all),
        });
    }

    /// Makes this endpoint one of the shards of a server, with its own connection ids. Must be called before there
    /// are connections.
    pub(crate) fn partition_ids(&mut self, number: usize, of: usize) -> Result<(), PartitionError> {
        let [number, of] = [number, of].map(|count| u16::try_from(count).unwrap_or(u16::MAX));
        self.hooked.peer.partition_ids(number, of)
    }

    /// Applies the application's decision on a client.
    pub(crate) fn decide(&mut self, now: Instant, remote: SocketAddr, decision: Decision) {
        let Some(deferred) = self.deferred.clone() else { return };
        let Some(request) = deferred.take(remote, decision) else { return };
        self.dispatcher.span.decided(remote, decision);
        // A closed endpoint does not answer. The hook has already seen the request.
        if self.is_open() && decision != Decision::Ignore {
            self.hooked.peer.handle_datagram(now, remote, &request);
        }
        deferred.end_decision();
        self.dispatch(now);
    }

    /// Returns true if the endpoint accepts new connections, and messages from peers without a connection.
    pub(crate) const fn is_open(&self) -> bool {
        self.dispatcher.accept_queue.is_open()
    }

    /// Handles all queued datagrams, each at its arrival time, and returns the current time.
    ///
    /// Call this before any other call to the protocol, or reuse the time of the last call. The protocol must never
    /// receive a time later than the arrival of a datagram that is still queued.
    pub(crate) fn catch_up(&mut self, arrived: &ArrivalQueue, clock: &Clock) -> Instant {
        self.pending_wake = None;
        let now = clock.now();
        let batches = arrived.take(now);
        if batches.is_empty() {
            return now;
        }
        for batch in batches {
            self.handle_arrived(&batch);
        }
        clock.now()
    }

    /// Handles datagrams. Precondition: no datagram still queued is older than this batch.
    pub(crate) fn handle_arrived<B: Deref<Target = [u8]>>(&mut self, batch: &RecvBatch<B>) {
        // Datagrams sent after these must not carry an earlier time, so a pending wake is not reused.
        self.pending_wake = None;
        self.handle_batch(batch);
        self.dispatch(batch.at);
    }

    fn handle_batch<B: Deref<Target = [u8]>>(&mut self, batch: &RecvBatch<B>) {
        for datagram in batch.datagrams() {
            let Some((from, datagram)) = self.proxies.receive(batch.at, batch.from, datagram) else {
                continue;
            };
            if P::is_request(datagram) {
                // A closed endpoint does not answer.
                if self.is_open() {
                    self.requests.push(from, datagram);
                }
            } else if self.follows_a_request(from) {
                self.requests.push(from, datagram);
            } else {
                self.resume_if_room(from);
                self.hooked.handle_datagram(batch.at, from, datagram);
            }
        }
    }

    /// Resumes a paused connection once its application has read enough.
    fn resume_if_room(&mut self, from: SocketAddr) {
        if let Some(id) = self.dispatcher.take_resumed(from) {
            self.hooked.peer.refuse_data(id, false);
        }
    }

    /// Returns true if a datagram may belong to a handshake with a request that is still queued.
    fn follows_a_request(&self, from: SocketAddr) -> bool {
        if !P::EARLY_DATA || self.requests.is_empty() {
            return false;
        }
        let info = self.hooked.peer.connection_at(from).and_then(|id| self.hooked.peer.connection(id));
        info.is_none_or(|info| info.state == ConnectionState::Disconnected)
    }

    /// Dispatches all events.
    pub(crate) fn dispatch(&mut self, now: Instant) {
        while let Some(event) = self.hooked.poll_event() {
            if let Event::Connected { id, remote, identity, side } = event {
                // The peer provides these addresses only until the next event.
                let addresses = P::internal_addresses(&self.hooked.peer, id).collect();
                self.dispatcher.on_connected(id, remote, identity, side, addresses);
            } else if let Event::Message { id, delivery, .. } = event {
                let peer = &mut self.hooked.peer;
                self.dispatcher.on_message(id, || Message { bytes: peer.take_event_data(), delivery });
            } else {
                self.dispatcher.dispatch(event);
            }
        }
        for id in self.dispatcher.newly_paused.drain(..) {
            self.hooked.peer.refuse_data(id, true);
        }
        for id in std::mem::take(&mut self.dispatcher.rejected) {
            self.hooked.peer.disconnect(now, id);
        }
    }

    /// Returns true if a timer is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.hooked.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Writes replies such as acknowledgements to `outgoing` while more datagrams wait in the socket, so that time must
    /// not advance.
    pub(crate) fn answer(&mut self, now: Instant, outgoing: &mut Outgoing) -> Next {
        self.send_path.return_to_driver(outgoing);
        self.dispatch(now);
        self.write(now, outgoing);
        self.dispatch(now);
        self.wake_senders();
        Next::Again
    }

    /// Handles timeouts and queued requests, and writes datagrams to `outgoing`.
    pub(crate) fn drive(&mut self, now: Instant, outgoing: &mut Outgoing) -> Next {
        self.send_path.return_to_driver(outgoing);
        self.hooked.handle_timeout(now);
        if !self.requests.is_empty() {
            P::set_unix_time(&mut self.hooked.peer, now, unix_time());
        }
        for (from, request) in self.requests.take() {
            self.hooked.handle_datagram(now, from, &request);
            if let Some(client) = self.deferred.as_ref().and_then(|deferred| deferred.keep(&request)) {
                self.dispatcher.span.asked(&client);
            }
        }
        if !self.is_advised
            && let Some(advice) = P::advice(&self.hooked.peer)
        {
            self.is_advised = true;
            self.dispatcher.span.advise(advice);
        }
        self.dispatch(now);
        let all_is_written = self.write(now, outgoing);
        self.dispatch(now);
        let all_are_woken = self.wake_senders();
        if !all_is_written || !all_are_woken || !self.requests.is_empty() {
            Next::Again
        } else if self.is_open() || self.has_connections() {
            Next::Sleep(self.hooked.poll_timeout())
        } else if outgoing.is_empty() {
            self.dispatcher.pings.clear();
            Next::End
        } else {
            Next::Again
        }
    }

    /// Sends pending datagrams after a message, if inline sending is allowed.
    pub(crate) fn send_inline(&mut self, now: Instant) {
        let Self { hooked, send_path, proxies, .. } = self;
        send_path.send_inline(|buffer| {
            let transmit = hooked.poll_transmit(now, buffer)?;
            Some((proxies.path_to(transmit.to), transmit.payload.len()))
        });
    }

    /// Wakes the blocked senders of a few connections. Returns false if there may be more.
    fn wake_senders(&mut self) -> bool {
        for _ in 0..WOKEN_A_TURN {
            let Some(id) = self.hooked.peer.poll_writable() else { return true };
            self.dispatcher.blocked_senders.wake(id);
        }
        false
    }

    /// Writes datagrams while `outgoing` has space. Returns false if there may be more of them.
    fn write(&mut self, now: Instant, outgoing: &mut Outgoing) -> bool {
        while let Some(room) = outgoing.room() {
            let Some(transmit) = self.hooked.poll_transmit(now, room) else {
                return true;
            };
            let (to, length) = (transmit.to, transmit.payload.len());
            outgoing.push(self.proxies.path_to(to), length);
        }
        false
    }

    /// Returns true if a connection may have something left to send.
    ///
    /// A closed connection does not count, because it only answers resends of the peer. An incoming connection that is
    /// not open yet does not count either, because a closed endpoint would not accept it.
    fn has_connections(&self) -> bool {
        let mut infos = self.hooked.peer.connections().filter_map(|id| self.hooked.peer.connection(id));
        infos.any(|info| match info.state {
            ConnectionState::Connecting => info.side == Side::Client,
            ConnectionState::Connected | ConnectionState::Disconnecting => true,
            ConnectionState::Disconnected => false,
        })
    }

    /// Starts a connection attempt.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        to: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<(ConnectionId, Arc<Inbox<P>>), ConnectError> {
        let id = self.hooked.peer.connect_with(now, to, options)?;
        let span = self.dispatcher.span.connection(to, Side::Client);
        span.connecting();
        let inbox = Arc::new(Inbox::new(to, Phase::Connecting, span));
        self.dispatcher.inboxes.insert(id, Arc::clone(&inbox));
        Ok((id, inbox))
    }

    /// Stops accepting connections, and starts to close all of them.
    pub(crate) fn close(&mut self, now: Instant) {
        self.stop_accepting(now);
        let all: Vec<ConnectionId> = self.hooked.peer.connections().collect();
        for id in all {
            self.disconnect(now, id);
        }
    }

    /// Closes a connection, and wakes the tasks that wait to send on it.
    pub(crate) fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        if let Some(inbox) = self.dispatcher.inboxes.get(id) {
            inbox.span.closing();
        }
        self.hooked.peer.disconnect(now, id);
        self.dispatcher.blocked_senders.wake(id);
    }

    /// Stops accepting connections, and closes those that have not been accepted.
    pub(crate) fn stop_accepting(&mut self, now: Instant) {
        for unaccepted in self.dispatcher.accept_queue.close() {
            self.abandon(now, unaccepted.id);
        }
    }

    /// Closes a connection after its last handle was dropped.
    pub(crate) fn abandon(&mut self, now: Instant, id: ConnectionId) {
        if let Some(inbox) = self.dispatcher.remove(id) {
            inbox.span.abandoned();
        }
        self.hooked.peer.disconnect(now, id);
    }
}

impl<P: Protocol> Dispatcher<P> {
    /// Removes the connection with the peer at `from` from `paused` if its receive queue has space again.
    ///
    /// A connection is paused by `Peer::refuse_data`. `Peer::pause` would hold less: unread messages would be limited
    /// to the connection's guaranteed memory, which is smaller than the receive queue.
    fn take_resumed(&mut self, from: SocketAddr) -> Option<ConnectionId> {
        if self.paused.is_empty() {
            return None;
        }
        let (id, inbox) = self.paused.get(&from)?;
        let id = inbox.has_room(self.receive_queue).then_some(*id)?;
        self.paused.remove(&from);
        Some(id)
    }

    fn dispatch(&mut self, event: Event<'_, P>) {
        match event {
            Event::ConnectFailed { id, reason, .. } => {
                self.meters.failed(&reason);
                self.finish(id, Phase::Failed(reason));
            }
            Event::Disconnected { id, reason, .. } => {
                self.meters.ended(&reason);
                self.finish(id, Phase::Disconnected(reason));
            }
            Event::Refused { .. } => {
                if let Some(client) = event.refused_client() {
                    self.span.refused_client(client.remote, &client.reason);
                    self.refused_clients.push(client);
                }
            }
            Event::Receipt { id, receipt, outcome } => {
                if let Some(inbox) = self.inboxes.get(id) {
                    inbox.push_receipt(receipt, outcome);
                }
            }
            Event::Progress { id, progress } => {
                if let Some(inbox) = self.inboxes.get(id) {
                    inbox.push_progress(progress);
                }
            }
            Event::MtuChanged { id, mtu } => {
                if let Some(inbox) = self.inboxes.get(id) {
                    inbox.set_new_mtu(mtu);
                }
            }
            Event::Pong { from, identity, latency, data } => {
                self.pings.on_pong(&Pong { from, identity, latency, data: data.to_vec() });
            }
            Event::OutOfBand { from, identity, data } => {
                let kind = UnconnectedKind::OutOfBand;
                self.unconnected.push(Unconnected { from, identity, kind, data: data.to_vec() });
            }
            Event::Advertisement { from, identity, data } => {
                let kind = UnconnectedKind::Advertisement;
                self.unconnected.push(Unconnected { from, identity, kind, data: data.to_vec() });
            }
            // The others are passed to `on_connected` and `on_message`, and `Event` is non-exhaustive.
            Event::Connected { .. } | Event::Message { .. } | _ => {}
        }
    }

    fn on_message(&mut self, id: ConnectionId, take: impl FnOnce() -> Message<P::Delivery>) {
        let limit = self.receive_queue;
        let Some(inbox) = self.inbox(id) else { return };
        if inbox.push(take(), limit) {
            self.pause(id);
        }
    }

    fn inbox(&mut self, id: ConnectionId) -> Option<&Arc<Inbox<P>>> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != id) {
            self.last = Some((id, Arc::clone(self.inboxes.get(id)?)));
        }
        self.last.as_ref().map(|(_, inbox)| inbox)
    }

    fn pause(&mut self, id: ConnectionId) {
        if let Some(inbox) = self.inboxes.get(id) {
            self.paused.insert(inbox.remote, (id, Arc::clone(inbox)));
            self.newly_paused.push(id);
        }
    }

    /// Notifies the waiting task that a connection is open, or queues it if the peer opened it. `addresses` are those
    /// that the peer announced as its own.
    fn on_connected(
        &mut self,
        id: ConnectionId,
        remote: SocketAddr,
        identity: P::Identity,
        side: Side,
        addresses: Box<[SocketAddr]>,
    ) {
        self.meters.opened(side);
        let inbox = match side {
            Side::Client => self.inboxes.get(id).cloned(),
            Side::Server if !self.accept_queue.admits() => {
                self.span.backlog_full(remote);
                self.rejected.push(id);
                None
            }
            Side::Server => {
                let span = self.span.connection(remote, side);
                Some(Arc::new(Inbox::new(remote, Phase::Connecting, span)))
            }
        };
        let Some(inbox) = inbox else { return };
        inbox.span.connected(P::guid(identity));
        inbox.set_connected(addresses);
        if side == Side::Server {
            self.inboxes.insert(id, Arc::clone(&inbox));
            self.accept_queue.push(Unaccepted { id, identity, inbox });
        }
    }

    fn finish(&mut self, id: ConnectionId, phase: Phase<P>) {
        let Some(inbox) = self.remove(id) else { return };
        match phase {
            Phase::Failed(reason) => inbox.span.failed(&reason),
            Phase::Disconnected(reason) => inbox.span.ended(&reason),
            Phase::Connecting | Phase::Connected => {}
        }
        inbox.set_phase(phase);
    }

    fn remove(&mut self, id: ConnectionId) -> Option<Arc<Inbox<P>>> {
        self.blocked_senders.wake(id);
        self.last.take_if(|(last, _)| *last == id);
        let inbox = self.inboxes.remove(id)?;
        self.paused.remove(&inbox.remote);
        Some(inbox)
    }
}

#[cfg(test)]
mod tests {
    use rakwire::game_protocol::{Capacity, Config, GameProtocol, Reliability};
    use rakwire::raknet::{self, DropReason, RakNet};

    use super::*;

    /// A RakNet client waits for the reply to its last request. Datagrams of other kinds from an unknown address must
    /// not displace waiting requests.
    #[test]
    fn junk_does_not_displace_raknet_requests() {
        let mut options = Options::<RakNet>::new(raknet::Config::new([1; 32]));
        options.config.max_incoming = 1;
        let mut server = State::new(options, BoxedHook::NONE, EndpointSpan::new(""));
        let clock = Clock::start();
        let arrived = ArrivalQueue::new(1 << 20, None);
        let (at, from) = (clock.now(), SocketAddr::from(([127, 0, 0, 1], 1)));
        let request = RecvBatch { at, from, stride: 1, bytes: [0x05].into() };
        let junk = RecvBatch { at, from, stride: 4, bytes: [0x84, 0, 0, 0].into() };
        arrived.push([request, junk].into_iter());
        server.catch_up(&arrived, &clock);
        assert_eq!(server.requests.take().count(), 1);
        assert_eq!(server.hooked.peer.stats().dropped(DropReason::UnknownSource), 1);
    }

    /// Delivers the datagrams of `client` to `server` in one batch, and the replies to `client`.
    fn exchange(
        client: &mut Peer<'_, GameProtocol>,
        server: &mut State<GameProtocol>,
        clock: &Clock,
    ) -> usize {
        let [from, to] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let arrived = ArrivalQueue::new(1 << 20, None);
        let mut buffer = [0; GameProtocol::MAX_DATAGRAM];
        let at = clock.now();
        let mut sent = 0;
        while let Some(transmit) = client.poll_transmit(at, &mut buffer) {
            let bytes: Box<[u8]> = transmit.payload.into();
            arrived.push([RecvBatch { at, from, stride: bytes.len(), bytes }].into_iter());
            sent += 1;
        }
        let mut outgoing = Outgoing::new(GameProtocol::MAX_DATAGRAM);
        let now = server.catch_up(&arrived, clock);
        server.drive(now, &mut outgoing);
        for transmit in outgoing.transmits(1) {
            client.handle_datagram(clock.now(), to, transmit.bytes);
        }
        sent
    }

    /// A Game Protocol client sends messages right after its reply to the challenge. An unreliable message is not
    /// resent, so it must not be handled before that reply.
    #[tokio::test]
    async fn a_message_right_after_the_handshake_is_queued_behind_it() {
        let mut options = Options::<GameProtocol>::new(Config::new([1; 32]));
        options.config.max_incoming = 1;
        let mut server = State::new(options, BoxedHook::NONE, EndpointSpan::new(""));
        let mut client = Peer::with_capacity(Capacity::default(), Config::new([2; 32]));
        let clock = Clock::start();
        let to = ([127, 0, 0, 1], 2).into();
        let id = client.connect(clock.now(), to).expect("space for a connection");
        assert_eq!(exchange(&mut client, &mut server, &clock), 1, "the salt");
        let sent = client.send(clock.now(), id, b"hello", Reliability::Unreliable);
        assert_eq!(sent, Ok(None), "the client has been challenged");
        assert_eq!(exchange(&mut client, &mut server, &clock), 2, "its answer and the message");
        let accepted = server.dispatcher.accept_queue.pop().expect("an open connection");
        let message = tokio::time::timeout(std::time::Duration::ZERO, accepted.inbox.recv()).await;
        assert_eq!(message.expect("a message").expect("an open connection").bytes, b"hello");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn blocks_for_large_messages_use_huge_pages() {
        use crate::huge_pages::tests::{is_advised, is_offered};

        let capacity = Capacity { connections: 1, blocks: 16_384, block_size: 1_024 };
        let options = Options::<GameProtocol> { capacity, ..Options::new(Config::new([1; 32])) };
        let state = State::new(options, BoxedHook::NONE, EndpointSpan::new(""));
        let memory = state.hooked.peer.block_memory();
        assert_eq!(is_advised(&raw const memory[memory.len() / 2]), is_offered());
    }
}
