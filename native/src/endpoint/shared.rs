//! State shared by an endpoint, its connections and its tasks: the protocol with its lock, and the parts outside of the
//! lock.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;

use rakwire::Instant;
use rakwire::endpoint::Protocol;
use tokio::sync::{Notify, watch};

use super::hooks::{self, BoxedHook, HookId};
use super::options::Options;
use super::state::{Next, State};
use super::telemetry::{EndpointSpan, EndpointStats};
use super::wakes::Signal;
use crate::arrivals::{ArrivalQueue, Reader};
use crate::host::Clock;
use crate::outgoing::Outgoing;
use crate::simulation::Simulation;
use crate::socket::{RecvBatch, Socket};

/// Maximum number of datagrams, and of receive calls, read while protocol time is held back. After that many, the
/// lock is released and replies are sent.
const READ_AT_ONCE: usize = 256;

/// The protocol and its lock, and the notifications that tasks wait for.
#[derive(Debug)]
pub(crate) struct Shared<P: Protocol> {
    state: Mutex<State<P>>,
    /// The hook inside `state`.
    pub(super) hook: Option<HookId>,
    /// Deferred effects of handles that were dropped inside a hook.
    postponed: Postponed<P>,
    pub(crate) io: Io,
    /// True if attempts and pings fail when their address is reported unreachable.
    pub(crate) fail_on_unreachable: bool,
    /// Notified when the queue of messages to peers without a connection may have space.
    pub(crate) unconnected_room: Notify,
    /// Notified when there are connections to accept.
    pub(crate) unaccepted: Notify,
    /// Notified when there are clients waiting for an admission decision.
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
            io: Io::new(options.arrival_queue, options.simulation(), clock, span.clone()),
            fail_on_unreachable: options.fail_on_unreachable,
            state: Mutex::new(State::new(options, hook, span)),
            unconnected_room: Notify::new(),
            unaccepted: Notify::new(),
            incoming: Notify::new(),
            unconnected: Notify::new(),
            refused: Notify::new(),
        }
    }

    /// Locks the protocol.
    ///
    /// # Panics
    /// If called inside a hook, where waiting for the lock would deadlock.
    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<P>> {
        hooks::check(self.hook);
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call of the application on the protocol, after all datagrams that have arrived.
    #[track_caller]
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut State<P>, Instant) -> R) -> R {
        let mut state = self.lock();
        let now = state.catch_up(&self.io.arrival_queue, &self.io.clock);
        // The driver usually does this, but it may have exited.
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

    /// Applies the effect of a dropped handle. A handle may be dropped inside a hook; the driver then applies it later.
    pub(crate) fn act_on_drop(&self, act: impl FnOnce(&mut State<P>, Instant) + Send + 'static) {
        if hooks::forbids(self.hook) {
            self.postponed.push(Box::new(act));
            self.io.wake.notify();
        } else {
            self.act(act);
        }
    }

    /// Handles datagrams that have just arrived. Returns false if the caller must queue them: earlier datagrams are
    /// still queued, the protocol is locked, or a simulated network is configured.
    ///
    /// After a single datagram the next message may be sent inline through `socket`, unless there is a hook, which
    /// observes outgoing datagrams in the tasks of the endpoint.
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
            state.send_path.allow_inline(socket);
        }
        true
    }

    /// Reports to the protocol that the system refused datagrams of these lengths because they exceed the path MTU.
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

    /// Reports unreachable addresses to the protocol, unless the application has disabled that.
    pub(crate) fn on_unreachable(&self, addresses: &[SocketAddr]) {
        if addresses.is_empty() || !self.fail_on_unreachable {
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

    /// Replaces the socket of the endpoint.
    pub(crate) fn replace_socket(&self, socket: Socket) {
        self.io.replace_socket(socket);
        self.lock().send_path.forbid_inline();
    }

    /// Handles the datagrams that wait in the socket before protocol time advances. Otherwise a peer that kept sending
    /// would time out after a pause of this process. Returns the time to advance to, which precedes the last read of
    /// the socket. Returns `None` if more datagrams wait, so that time must not advance yet.
    fn read_first(&self, state: &mut State<P>, now: Instant) -> Option<Instant> {
        let (queue, clock) = (&self.io.arrival_queue, &self.io.clock);
        let mut reader = self.io.reader();
        if !reader.may_have_waiting(now) {
            // Another thread may have read the socket before this call.
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

    /// Handles the datagrams that have arrived, before a caller concludes that its reply is missing.
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
            // Tasks that wait for a flush are woken once everything has been sent.
            Next::Sleep(_) if !outgoing.is_empty() && self.io.has_flushes() => Next::Again,
            next @ (Next::Again | Next::Sleep(_) | Next::End) => next,
        };
        let has_ended = next == Next::End;
        let has_unaccepted = !state.dispatcher.accept_queue.is_empty() || has_ended;
        let has_incoming =
            has_ended || state.deferred.as_ref().is_some_and(|deferred| deferred.has_undelivered());
        let has_unconnected = !state.dispatcher.unconnected.is_empty() || has_ended;
        let has_refused = !state.dispatcher.refused_clients.is_empty() || has_ended;
        if matches!(next, Next::Sleep(_)) && outgoing.is_empty() {
            // No message can have been queued since the timeouts were handled, because the lock is held.
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
    /// Updates the meters, or schedules the update if it is too early. When the meters are up to date, the driver
    /// sleeps until something else happens.
    #[cfg_attr(
        not(feature = "metrics"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only meters that count are changed")
    )]
    fn meter(&self, state: &mut State<P>, now: Instant, next: Next) -> Next {
        let due = state.dispatcher.meters.due(now);
        if due.is_some_and(|due| due <= now || next == Next::End) {
            let stats = self.stats(state);
            state.dispatcher.meters.report(now, &stats);
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

/// State shared by an endpoint and its tasks outside of the protocol's lock.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) arrival_queue: ArrivalQueue,
    pub(crate) clock: Clock,
    /// Wakes the driver after a call of the application, and for received datagrams.
    pub(crate) wake: Signal,
    /// True if the driver has composed datagrams that the socket has not accepted yet.
    pub(crate) is_sending: AtomicBool,
    /// Notified when the driver has nothing to send at the moment.
    pub(crate) idle: Notify,
    /// Number of tasks that wait for `idle`.
    flushes: AtomicUsize,
    pub(crate) ended: watch::Sender<bool>,
    pub(crate) counters: Counters,
    pub(crate) span: EndpointSpan,
    /// Reads the socket, for the receive task and before time advances.
    reader: Mutex<Reader>,
    /// The socket that the driver switches to in its next run.
    next_socket: Mutex<Option<Socket>>,
}

impl Io {
    pub(crate) fn new(
        arrival_queue: usize,
        simulation: Option<Simulation>,
        clock: Clock,
        span: EndpointSpan,
    ) -> Self {
        Self {
            arrival_queue: ArrivalQueue::new(arrival_queue, simulation),
            clock,
            wake: Signal::default(),
            is_sending: AtomicBool::new(false),
            idle: Notify::new(),
            flushes: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
            counters: Counters::default(),
            span,
            reader: Mutex::default(),
            next_socket: Mutex::default(),
        }
    }

    /// Locks the reader of the socket. Its holder handles or queues the datagrams that it has read before it releases
    /// the lock.
    pub(crate) fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace_socket(&self, socket: Socket) {
        let before = self.next_socket().replace(socket);
        drop(before);
        self.wake.notify();
    }

    /// Returns the socket to switch to, if there is one.
    pub(crate) fn take_socket(&self) -> Option<Socket> {
        self.next_socket().take()
    }

    /// Returns true if the driver has sent all composed datagrams, and has no socket to switch to.
    pub(crate) fn is_driver_done(&self) -> bool {
        !self.is_sending.load(Ordering::Acquire) && self.next_socket().is_none()
    }

    fn next_socket(&self) -> MutexGuard<'_, Option<Socket>> {
        self.next_socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a task waits until the driver has nothing to send.
    fn has_flushes(&self) -> bool {
        self.flushes.load(Ordering::SeqCst) > 0
    }

    /// Waits until the driver has sent everything that can be sent now, or has exited.
    pub(crate) async fn flush(&self) {
        let mut idle = std::pin::pin!(self.idle.notified());
        // Notifications after this line are not missed.
        idle.as_mut().enable();
        let _flush = Flush::new(&self.flushes);
        if !*self.ended.borrow() {
            self.wake.notify();
            idle.await;
        }
    }
}

impl Io {
    /// Counts and logs a failed receive call.
    pub(crate) fn receive_failed(&self, error: &std::io::Error) {
        self.span.receive_failed(self.clock.now(), error);
        Counters::add(&self.counters.receive_failures, 1);
    }
}

/// A task that waits until the driver has nothing to send.
struct Flush<'f>(&'f AtomicUsize);

impl<'f> Flush<'f> {
    fn new(count: &'f AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The counters of the tasks.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) too_long: AtomicU64,
    pub(crate) send_failures: AtomicU64,
    pub(crate) receive_failures: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// The effect of one dropped handle.
type Act<P> = Box<dyn FnOnce(&mut State<P>, Instant) + Send>;

/// Effects in the order in which the handles were dropped.
struct Postponed<P: Protocol>(Mutex<Vec<Act<P>>>);

impl<P: Protocol> Default for Postponed<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Protocol> fmt::Debug for Postponed<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Postponed")
    }
}

impl<P: Protocol> Postponed<P> {
    fn push(&self, act: Act<P>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(act);
    }

    fn take(&self) -> Vec<Act<P>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::RakNet;

    use super::*;

    /// An endpoint that receives more than it can handle still sends, and its application still gets the lock.
    #[tokio::test]
    async fn the_lock_is_released_while_many_datagrams_wait() {
        let options = Options::new(RakNet::config([7; 32]));
        let shared = Shared::<RakNet>::new(options, BoxedHook::NONE, Clock::start());
        let socket = Arc::new(Socket::open("127.0.0.1:0").await.expect("a free port"));
        shared.io.reader().use_socket(Some(Arc::clone(&socket)));
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        // This many datagrams fit into the smallest default receive buffer.
        let waiting = 2 * READ_AT_ONCE as u64;
        for _ in 0..waiting {
            sender.send_to(&[0x84; 8], socket.local_addr()).expect("enough space");
        }
        let read = || {
            let mut state = shared.lock();
            let now = shared.io.clock.now();
            let may_pass = shared.read_first(&mut state, now).is_some();
            (may_pass, state.hooked.peer.stats().datagrams_received)
        };
        let (may_pass, count) = read();
        assert!(!may_pass && count < waiting, "{count} datagrams read at once");
        while !read().0 {}
        assert_eq!(read().1, waiting);
    }

    #[test]
    fn time_advances_despite_a_faster_sender() {
        let mut reader = Reader::default();
        let slices = (1..).find(|_| reader.time_may_pass(READ_AT_ONCE)).expect("the connection is closed");
        assert_eq!(slices, 64);
        assert!(!reader.time_may_pass(READ_AT_ONCE), "protocol time is held back again");
    }

    /// An endpoint at which datagrams arrive.
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

        /// Returns true if the next message may be sent inline after batches of one-byte datagrams.
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
    async fn one_datagram_permits_an_inline_send_until_the_driver_runs() {
        let subject = Subject::new(BoxedHook::NONE).await;
        assert!(!subject.arrive([&[0x84, 0x84]]), "two datagrams");
        assert!(!subject.arrive([&[0x84], &[0x84]]), "two batches");
        assert_eq!(subject.shared.lock().hooked.peer.stats().datagrams_received, 4);
        assert!(subject.arrive([&[0x84]]));
        subject.drive();
        assert!(!subject.is_allowed());
    }

    #[tokio::test]
    async fn no_message_overtakes_composed_datagrams() {
        let subject = Subject::new(BoxedHook::NONE).await;
        subject.shared.io.is_sending.store(true, Ordering::Release);
        assert!(!subject.arrive([&[0x84]]));
        subject.shared.io.is_sending.store(false, Ordering::Release);
        assert!(subject.arrive([&[0x84]]));
    }

    #[tokio::test]
    async fn no_message_is_sent_through_a_replaced_socket() {
        let subject = Subject::new(BoxedHook::NONE).await;
        assert!(subject.arrive([&[0x84]]));
        subject.shared.replace_socket(Subject::socket().await);
        assert!(!subject.is_allowed());
        assert!(!subject.arrive([&[0x84]]), "the driver has not switched to the new socket");
    }

    #[tokio::test]
    async fn a_hook_prevents_inline_sends() {
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
        assert_eq!(sleep(1_040), Some(1_100), "the remaining changes are reported later");
        assert_eq!(sleep(1_100), None, "the driver sleeps until something happens");
        assert_eq!(sleep(5_000), None);
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn an_idle_raknet_endpoint_is_not_woken_for_metrics() {
        an_idle_endpoint_is_not_woken_to_be_counted::<RakNet>();
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn an_idle_game_protocol_endpoint_is_not_woken_for_metrics() {
        an_idle_endpoint_is_not_woken_to_be_counted::<GameProtocol>();
    }
}
