//! What an endpoint, its connections and its tasks share.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Protocol, Receipt, SendError};
use tokio::sync::Notify;

use super::blocked_senders::{BlockedSenders, WaitId};
use super::boxed_hook::BoxedHook;
use super::inbox::Inbox;
use super::io::{Counters, Io};
use super::options::Options;
use super::pending_wake::PendingWake;
use super::postponed::Postponed;
use super::spans::EndpointSpan;
use super::state::{Next, State};
use super::stats::EndpointStats;
use crate::arrival_queue::RecvBatch;
use crate::clock::Clock;
use crate::hook_scope::{self, HookId};
use crate::outgoing::Outgoing;
use crate::socket::Socket;

/// Datagrams, and calls, that are read before time passes until others may have the lock and answers leave.
const READ_AT_ONCE: usize = 256;

/// The protocol and its lock, and the notifications that tasks wait for.
#[derive(Debug)]
pub(crate) struct Shared<P: Protocol> {
    state: Mutex<State<P>>,
    /// The hook inside of `state`.
    hook: Option<HookId>,
    /// Acts of handles that were dropped inside of a hook.
    postponed: Postponed<P>,
    pub(crate) io: Io,
    /// Whether attempts and pings end when nothing can be reached at their address.
    pub(crate) hears_unreachable: bool,
    /// Notified when more messages to peers without a connection may fit.
    pub(crate) unconnected_room: Notify,
    /// Notified when there are connections to accept.
    pub(crate) unaccepted: Notify,
    /// Notified when there are clients to decide about.
    pub(crate) incoming: Notify,
    /// Notified when there are messages from peers without a connection.
    pub(crate) unconnected: Notify,
    /// Notified when clients were refused.
    pub(crate) refused: Notify,
}

impl<P: Protocol> Shared<P> {
    pub(crate) fn new(options: Options<P>, hook: BoxedHook<P>, clock: Clock) -> Self {
        let span = EndpointSpan::new(P::NAME);
        Self {
            hook: hook.id(),
            postponed: Postponed::default(),
            io: Io::new(options.arrival_queue, options.simulate, clock, span.clone()),
            hears_unreachable: options.hears_unreachable,
            state: Mutex::new(State::new(options, hook, span)),
            unconnected_room: Notify::new(),
            unaccepted: Notify::new(),
            incoming: Notify::new(),
            unconnected: Notify::new(),
            refused: Notify::new(),
        }
    }

    /// Waits for the protocol.
    ///
    /// # Panics
    /// Inside of a hook that the holder of the protocol waits for.
    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<P>> {
        hook_scope::check(self.hook);
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a call of the application to the protocol, after all datagrams that have arrived.
    #[track_caller]
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut State<P>, Instant) -> R) -> R {
        let mut state = self.lock();
        let now = state.catch_up(&self.io.arrival_queue, &self.io.clock);
        // The driver may have ended.
        self.do_postponed(&mut state, now);
        let result = act(&mut state, now);
        let woken = state.dispatcher.blocked_senders.take();
        drop(state);
        self.io.wake.notify();
        woken.into_iter().for_each(Waker::wake);
        result
    }

    fn do_postponed(&self, state: &mut State<P>, now: Instant) {
        for act in self.postponed.take() {
            act(state, now);
        }
    }

    /// Applies what a dropped handle does: a handle may be dropped inside of a hook, where the driver has to do it later.
    pub(crate) fn act_on_drop(&self, act: impl FnOnce(&mut State<P>, Instant) + Send + 'static) {
        if hook_scope::forbids(self.hook) {
            self.postponed.push(Box::new(act));
            self.io.wake.notify();
        } else {
            self.act(act);
        }
    }

    /// Handles datagrams that have just arrived, unless others have to be handled before, or somebody else has the protocol.
    /// False if they have to be queued, as over a simulated network. If it was one datagram, the next message may leave
    /// through `socket` at once; not if there is a hook, which sees what leaves in the tasks of the endpoint.
    pub(crate) fn try_handle<'b>(
        &self,
        batches: impl Iterator<Item = RecvBatch<&'b [u8]>>,
        socket: &Arc<Socket>,
    ) -> bool {
        if self.io.arrival_queue.may_have_batches() {
            return false;
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let mut count = 0;
        for batch in batches {
            count += batch.datagrams().len();
            state.handle_arrived(&batch);
        }
        if count == 1 && state.hooked.hook.is_none() && self.io.is_driver_done() {
            state.direct.allow(socket);
        }
        true
    }

    /// Handles that the system refused datagrams of these lengths because they are too large for the path.
    pub(crate) fn on_too_large(&self, datagrams: &[(SocketAddr, usize)]) {
        if datagrams.is_empty() {
            return;
        }
        let mut state = self.lock();
        let now = state.catch_up(&self.io.arrival_queue, &self.io.clock);
        for (to, length) in datagrams {
            let to = state.proxies.client_behind(*to);
            state.hooked.peer.handle_too_large(now, to, *length);
        }
        drop(state);
        self.io.wake.notify();
    }

    /// Handles that nothing can be reached at these addresses, unless the application does not want that.
    pub(crate) fn on_unreachable(&self, addresses: &[SocketAddr]) {
        if addresses.is_empty() || !self.hears_unreachable {
            return;
        }
        let mut state = self.lock();
        let now = state.catch_up(&self.io.arrival_queue, &self.io.clock);
        for address in addresses {
            state.hooked.peer.handle_unreachable(now, *address);
            state.dispatcher.pings.on_unreachable(*address);
        }
        drop(state);
        self.io.wake.notify();
    }

    /// Has everything that is sent from now on leave through another socket.
    pub(crate) fn replace_socket(&self, socket: Socket) {
        self.io.replace_socket(socket);
        self.lock().direct.forbid();
    }

    /// Handles what waits in the socket before time passes: after a pause of the process or of its threads, a peer that kept
    /// sending is not silent. Returns the time that may pass, which is before the socket was read for the last time; `None` if
    /// more waits, for which time has to wait too.
    fn read_first(&self, state: &mut State<P>, now: Instant) -> Option<Instant> {
        let (queue, clock) = (&self.io.arrival_queue, &self.io.clock);
        let mut reader = self.io.reader();
        if !reader.may_have_waiting(now) {
            // Another thread may have read since.
            queue.take(now).iter().for_each(|batch| state.handle_arrived(batch));
            return Some(now);
        }
        let now = state.catch_up(queue, clock);
        let (mut calls, mut count) = (0, 0);
        while calls.max(count) < READ_AT_ONCE {
            calls += 1;
            let received = match reader.read_now(clock) {
                Ok(Some((received, _))) => received,
                Ok(None) => return Some(now),
                Err(error) => {
                    self.io.receive_failed(&error);
                    continue;
                }
            };
            Counters::add(&self.io.counters.too_long, received.too_long());
            count += received.batches().map(|batch| batch.datagrams().len()).sum::<usize>();
            if queue.is_simulated() {
                queue.push(received.batches().map(RecvBatch::into_owned));
            } else {
                received.batches().for_each(|batch| state.handle_arrived(&batch));
            }
            if received.are_all() {
                return Some(now);
            }
        }
        reader.time_may_pass(calls.max(count)).then_some(now)
    }

    /// Handles what has arrived before somebody gives up waiting for it.
    pub(crate) fn receive_waiting(&self) {
        loop {
            let mut state = self.lock();
            let now = state.catch_up(&self.io.arrival_queue, &self.io.clock);
            let is_all = self.read_first(&mut state, now).is_some();
            state.dispatch(now);
            drop(state);
            self.io.wake.notify();
            if is_all {
                return;
            }
        }
    }

    /// Handles timeouts, writes datagrams to `outgoing`, and wakes the tasks that wait for the results.
    pub(crate) fn drive(&self, outgoing: &mut Outgoing) -> Next {
        let mut state = self.lock();
        let now = state.catch_up(&self.io.arrival_queue, &self.io.clock);
        self.do_postponed(&mut state, now);
        let until = if state.is_due(now) { self.read_first(&mut state, now) } else { Some(now) };
        let next = match until {
            Some(now) => state.drive(now, outgoing),
            None => state.answer(now, outgoing),
        };
        let next = self.meter(&mut state, now, next);
        let next = match next {
            // Who waits for a flush is told when all has been sent.
            Next::Sleep(_) if !outgoing.is_empty() && self.io.has_flushes() => Next::Again,
            next @ (Next::Again | Next::Sleep(_) | Next::End) => next,
        };
        let has_ended = next == Next::End;
        let has_unaccepted = !state.dispatcher.accept_queue.is_empty() || has_ended;
        let has_incoming = has_ended || state.deferred.as_ref().is_some_and(|deferred| deferred.has_untold());
        let has_unconnected = !state.dispatcher.unconnected.is_empty() || has_ended;
        let has_refused = !state.dispatcher.refused_clients.is_empty() || has_ended;
        if matches!(next, Next::Sleep(_)) && outgoing.is_empty() {
            // Under the lock, so that nothing can have been sent since.
            self.io.idle.notify_waiters();
        }
        let woken = state.dispatcher.blocked_senders.take();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.unconnected_room.notify_waiters();
        if has_unaccepted {
            self.unaccepted.notify_waiters();
        }
        if has_incoming {
            self.incoming.notify_waiters();
        }
        if has_unconnected {
            self.unconnected.notify_waiters();
        }
        if has_refused {
            self.refused.notify_waiters();
        }
        next
    }
}

impl<P: Protocol> Shared<P> {
    /// Tells those who count what has happened, and has the driver come back for that if it is too early. Once they are told,
    /// the driver sleeps until something else happens.
    #[cfg_attr(
        not(feature = "metrics"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only meters that count are changed")
    )]
    fn meter(&self, state: &mut State<P>, now: Instant, next: Next) -> Next {
        let due = state.dispatcher.meters.due(now);
        if due.is_some_and(|due| due <= now || next == Next::End) {
            let stats = self.stats(state);
            state.dispatcher.meters.tell(now, &stats);
            if next == Next::End {
                state.dispatcher.meters.end();
            }
            return next;
        }
        match next {
            Next::Sleep(until) => Next::Sleep([until, due].into_iter().flatten().min()),
            Next::Again | Next::End => next,
        }
    }

    pub(crate) fn stats(&self, state: &State<P>) -> EndpointStats<P> {
        let counters = &self.io.counters;
        EndpointStats {
            peer: *state.hooked.peer.stats(),
            connections: state.hooked.peer.connections().count(),
            blocks: state.hooked.peer.blocks(),
            blocks_available: state.hooked.peer.blocks_available(),
            arrival_queue_full: self.io.arrival_queue.dropped() + state.requests.dropped(),
            too_long: counters.too_long.load(Ordering::Relaxed),
            proxy_headers_refused: state.proxies.refused(),
            receive_queue_full: state.hooked.peer.stats().datagrams_refused,
            backlog_full: state.dispatcher.accept_queue.overflows()
                + state.deferred.as_ref().map_or(0, |deferred| deferred.overflows()),
            unconnected_queue_full: state.dispatcher.unconnected.dropped(),
            refused_clients: state.dispatcher.refused_clients.count(),
            sender_wakes: state.dispatcher.blocked_senders.wakes(),
            send_failures: counters.send_failures.load(Ordering::Relaxed),
            receive_failures: counters.receive_failures.load(Ordering::Relaxed),
            hook_panics: state.hooked.hook.panics(),
        }
    }
}

/// Repeats `attempt` at each notification of `changed` until it succeeds.
pub(crate) async fn retry<T>(changed: &Notify, mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        let mut change = std::pin::pin!(changed.notified());
        // Notifications after this line are not missed.
        change.as_mut().enable();
        if let Some(result) = attempt() {
            return result;
        }
        change.await;
    }
}

/// A reference of the application to a connection. Dropping the last one closes the connection.
#[derive(Debug)]
pub(crate) struct ConnectionRef<P: Protocol> {
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) id: ConnectionId,
    pub(crate) inbox: Arc<Inbox<P>>,
}

impl<P: Protocol> ConnectionRef<P> {
    pub(crate) fn new(shared: Arc<Shared<P>>, id: ConnectionId, inbox: Arc<Inbox<P>>) -> Self {
        inbox.add_handle();
        Self { shared, id, inbox }
    }

    /// Who the other peer is; `None` once the connection has ended.
    pub(crate) fn identity(&self) -> Option<P::Identity> {
        self.shared.lock().hooked.peer.connection(self.id).map(|connection| connection.identity)
    }

    /// Sends a message if there is room for it.
    pub(crate) fn try_send(
        &self,
        mut message: Bytes<'_>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.try_send_or(&mut message, delivery, |_| {})
    }

    /// Sends a message if there is room for it; if there is none now, does `otherwise` before anything can change. The
    /// driver is woken only if the message was taken: a refused sender waits for the driver, and the two would wake each
    /// other for ever.
    fn try_send_or(
        &self,
        message: &mut Bytes<'_>,
        delivery: P::Delivery,
        otherwise: impl FnOnce(&mut BlockedSenders),
    ) -> Result<Option<Receipt>, SendError> {
        let io = &self.shared.io;
        let mut state = self.shared.lock();
        if let Some(woken_at) = state.pending_wake.as_mut().and_then(PendingWake::share) {
            let sent = message.send(&mut state, woken_at, self.id, delivery);
            if !has_no_room(&sent) {
                return sent;
            }
        }
        let now = state.catch_up(&io.arrival_queue, &io.clock);
        let sent = message.send(&mut state, now, self.id, delivery);
        if has_no_room(&sent) {
            otherwise(&mut state.dispatcher.blocked_senders);
        }
        if sent.is_ok() {
            state.send_directly(now);
            state.pending_wake = Some(PendingWake::new(now));
        }
        drop(state);
        if sent.is_ok() {
            io.wake.notify();
        }
        sent
    }

    /// Sends a message if there is room for it; has the task woken when there is, if there is none. `wait` is the name under
    /// which it waits; who polls no more must [stop waiting](Self::stop_waiting).
    pub(crate) fn poll_send(
        &self,
        cx: &Context<'_>,
        wait: &mut Option<WaitId>,
        message: &mut Bytes<'_>,
        delivery: P::Delivery,
    ) -> Poll<Result<Option<Receipt>, SendError>> {
        self.stop_waiting(wait);
        let sent = self.try_send_or(message, delivery, |senders| {
            *wait = Some(senders.register(self.id, cx.waker()));
        });
        if has_no_room(&sent) { Poll::Pending } else { Poll::Ready(sent) }
    }

    /// Takes a task out of those that wait.
    pub(crate) fn stop_waiting(&self, wait: &mut Option<WaitId>) {
        let Some(wait) = wait.take() else { return };
        let id = self.id;
        if hook_scope::forbids(self.shared.hook) {
            self.shared.act_on_drop(move |state, _| state.dispatcher.blocked_senders.wake_one(id, wait));
            return;
        }
        let removed = self.shared.lock().dispatcher.blocked_senders.remove(id, wait);
        // A waker may own its task, which needs the lock when it is dropped.
        drop(removed);
    }

    /// Sends a message as soon as there is room for it.
    pub(crate) fn send_when_room<'m>(
        &self,
        message: Bytes<'m>,
        delivery: P::Delivery,
    ) -> SendWhenRoom<'_, 'm, P> {
        SendWhenRoom { reference: self, message, delivery, wait: None }
    }
}

/// The bytes of a message to send.
#[derive(Debug)]
pub(crate) enum Bytes<'m> {
    /// They stay with the application, and are copied.
    Lent(&'m [u8]),
    /// They are taken out of the vector if the message is accepted.
    HandedOver(&'m mut Vec<u8>),
}

impl Bytes<'_> {
    fn send<P: Protocol>(
        &mut self,
        state: &mut State<P>,
        now: Instant,
        id: ConnectionId,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        match self {
            Self::Lent(bytes) => state.hooked.send(now, id, bytes, delivery),
            Self::HandedOver(bytes) => state.hooked.send_vec(now, id, bytes, delivery),
        }
    }
}

const fn has_no_room(sent: &Result<Option<Receipt>, SendError>) -> bool {
    matches!(sent, Err(SendError::QuotaExceeded | SendError::PoolExhausted))
}

/// Sends a message as soon as there is room for it. The task is woken when its connection has room, and not before.
#[derive(Debug)]
pub(crate) struct SendWhenRoom<'c, 'm, P: Protocol> {
    reference: &'c ConnectionRef<P>,
    message: Bytes<'m>,
    delivery: P::Delivery,
    /// The name under which the task waits, unless it is certain that it does not.
    wait: Option<WaitId>,
}

impl<P: Protocol> Unpin for SendWhenRoom<'_, '_, P> {}

impl<P: Protocol> Future for SendWhenRoom<'_, '_, P> {
    type Output = Result<Option<Receipt>, SendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { reference, message, delivery, wait } = &mut *self;
        reference.poll_send(cx, wait, message, *delivery)
    }
}

impl<P: Protocol> Drop for SendWhenRoom<'_, '_, P> {
    fn drop(&mut self) {
        self.reference.stop_waiting(&mut self.wait);
    }
}

impl<P: Protocol> Clone for ConnectionRef<P> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), self.id, Arc::clone(&self.inbox))
    }
}

impl<P: Protocol> Drop for ConnectionRef<P> {
    fn drop(&mut self) {
        if self.inbox.drop_handle() {
            let id = self.id;
            self.shared.act_on_drop(move |state, now| state.abandon(now, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::RakNet;

    use super::*;

    /// Otherwise the driver and a sender would wake each other endlessly while the peer acknowledges nothing.
    async fn a_failed_send_does_not_wake_the_driver<P: Protocol>() {
        let shared =
            Arc::new(Shared::<P>::new(Options::new(P::config([7; 32])), BoxedHook::NONE, Clock::start()));
        let remote = ([127, 0, 0, 1], 9).into();
        let opened = shared.act(|state, now| state.connect(now, remote, &P::ConnectOptions::default()));
        let (id, inbox) = opened.expect("room for a connection");
        let connection = ConnectionRef::new(Arc::clone(&shared), id, inbox);
        let wakes = || tokio::time::timeout(Duration::ZERO, shared.io.wake.notified());
        assert!(wakes().await.is_ok(), "an attempt to connect wakes the driver");
        let sent = connection.try_send(Bytes::Lent(&[0x86]), P::Delivery::default());
        assert_eq!(sent, Err(SendError::NotConnected));
        assert!(wakes().await.is_err());
    }

    /// A machine that receives more than it can handle still sends, and its application still has the lock.
    #[tokio::test]
    async fn others_have_the_lock_while_much_waits_before_time_passes() {
        let options = Options::new(RakNet::config([7; 32]));
        let shared = Shared::<RakNet>::new(options, BoxedHook::NONE, Clock::start());
        let socket = Arc::new(Socket::open("127.0.0.1:0").await.expect("a free port"));
        shared.io.reader().use_socket(Some(Arc::clone(&socket)));
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        // They fit the smallest buffer that systems give.
        let waiting = 2 * READ_AT_ONCE as u64;
        for _ in 0..waiting {
            sender.send_to(&[0x84; 8], socket.local_addr()).expect("room");
        }
        let read = || {
            let mut state = shared.lock();
            let now = shared.io.clock.now();
            let may_pass = shared.read_first(&mut state, now).is_some();
            (may_pass, state.hooked.peer.stats().datagrams_received)
        };
        let (may_pass, count) = read();
        assert!(!may_pass && count < waiting, "{count} at once");
        while !read().0 {}
        assert_eq!(read().1, waiting);
    }

    #[test]
    fn time_passes_beside_a_sender_that_is_faster() {
        let mut reader = crate::endpoint::reader::Reader::default();
        let slices = (1..).find(|_| reader.time_may_pass(READ_AT_ONCE)).expect("an end");
        assert_eq!(slices, 64);
        assert!(!reader.time_may_pass(READ_AT_ONCE), "the next one has to wait as long");
    }

    /// An endpoint at which a datagram arrives.
    struct Subject {
        shared: Shared<RakNet>,
        socket: Arc<Socket>,
    }

    impl Subject {
        async fn new(hook: BoxedHook<RakNet>) -> Self {
            let options = Options::new(RakNet::config([7; 32]));
            let shared = Shared::new(options, hook, Clock::start());
            Self { shared, socket: Arc::new(Self::socket().await) }
        }

        async fn socket() -> Socket {
            Socket::open("127.0.0.1:0").await.expect("a free port")
        }

        /// Whether the next message may leave at once, after batches of datagrams of a byte each.
        fn arrive<const N: usize>(&self, batches: [&[u8]; N]) -> bool {
            let (at, from) = (self.shared.io.clock.now(), ([127, 0, 0, 1], 9).into());
            let batches = batches.map(|bytes| RecvBatch { at, from, stride: 1, bytes });
            assert!(self.shared.try_handle(batches.into_iter(), &self.socket));
            self.is_allowed()
        }

        fn is_allowed(&self) -> bool {
            Arc::weak_count(&self.socket) > 0
        }

        fn drive(&self) {
            self.shared.drive(&mut Outgoing::new(RakNet::MAX_DATAGRAM));
        }
    }

    #[tokio::test]
    async fn after_one_datagram_a_message_may_leave_at_once_until_the_driver_runs() {
        let subject = Subject::new(BoxedHook::NONE).await;
        assert!(!subject.arrive([&[0x84, 0x84]]), "two datagrams");
        assert!(!subject.arrive([&[0x84], &[0x84]]), "two batches");
        assert_eq!(subject.shared.lock().hooked.peer.stats().datagrams_received, 4);
        assert!(subject.arrive([&[0x84]]));
        subject.drive();
        assert!(!subject.is_allowed());
    }

    #[tokio::test]
    async fn no_message_leaves_before_what_the_driver_has_composed() {
        let subject = Subject::new(BoxedHook::NONE).await;
        subject.shared.io.is_sending.store(true, Ordering::Release);
        assert!(!subject.arrive([&[0x84]]));
        subject.shared.io.is_sending.store(false, Ordering::Release);
        assert!(subject.arrive([&[0x84]]));
    }

    #[tokio::test]
    async fn no_message_leaves_through_a_socket_that_was_replaced() {
        let subject = Subject::new(BoxedHook::NONE).await;
        assert!(subject.arrive([&[0x84]]));
        subject.shared.replace_socket(Subject::socket().await);
        assert!(!subject.is_allowed());
        assert!(!subject.arrive([&[0x84]]), "the driver has yet to take the other one");
    }

    #[tokio::test]
    async fn a_hook_sees_what_leaves_in_the_tasks_of_the_endpoint() {
        struct Passes;
        impl rakwire::endpoint::Hook<RakNet> for Passes {}
        assert!(!Subject::new(BoxedHook::new(Passes)).await.arrive([&[0x84]]));
    }

    #[cfg(feature = "metrics")]
    fn an_idle_endpoint_is_not_woken_to_be_counted<P: Protocol>() {
        let shared = Shared::<P>::new(Options::new(P::config([7; 32])), BoxedHook::NONE, Clock::start());
        let mut state = shared.lock();
        let mut sleep = |millis: u64| {
            let now = Instant::from_micros(millis * 1_000);
            match shared.meter(&mut state, now, Next::Sleep(None)) {
                Next::Sleep(until) => until.map(|until| until.as_millis()),
                next @ (Next::Again | Next::End) => panic!("{next:?}"),
            }
        };
        assert_eq!(sleep(1_000), None);
        assert_eq!(sleep(1_040), Some(1_100), "what has changed since is told later");
        assert_eq!(sleep(1_100), None, "the driver sleeps until something happens");
        assert_eq!(sleep(5_000), None);
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn an_idle_endpoint_of_raknet_is_not_woken_to_be_counted() {
        an_idle_endpoint_is_not_woken_to_be_counted::<RakNet>();
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn an_idle_endpoint_of_the_game_protocol_is_not_woken_to_be_counted() {
        an_idle_endpoint_is_not_woken_to_be_counted::<GameProtocol>();
    }

    #[tokio::test]
    async fn a_failed_send_of_raknet_does_not_wake_the_driver() {
        a_failed_send_does_not_wake_the_driver::<RakNet>().await;
    }

    #[tokio::test]
    async fn a_failed_send_of_the_game_protocol_does_not_wake_the_driver() {
        a_failed_send_does_not_wake_the_driver::<GameProtocol>().await;
    }
}
