//! The sockets of a front: one for all clients, which it may share, and one for each flow towards the server.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::batch::BatchSocket;
use super::catch_up::CatchUp;
use super::front_gate::{Gate, Taken, WaitingRoom};
use super::receive::Received;
use super::source::bind_source;
use crate::front::{
    Admit, CookieKeys, FlowId, Front, FrontCounters, FrontDropReason, Route, Settings, TICK, To, Transmits,
};
use crate::now::Now;

/// How many calls receive before others get their turn.
const CALLS_MAX: usize = 8;

/// A front that is bound.
#[derive(Debug)]
pub(crate) struct UdpFront<A: Admit> {
    shared: Arc<Shared<A>>,
    flows: HashMap<FlowId, FlowSocket>,
    /// What arrives for it, if somebody else receives at its port.
    taken: Option<mpsc::Receiver<Taken>>,
}

/// What all tasks of a front have.
#[derive(Debug)]
struct Shared<A: Admit> {
    clients: BatchSocket,
    front: Mutex<Front<A>>,
    counters: Arc<FrontCounters>,
}

/// The socket of a flow, and the task that receives from it.
#[derive(Debug)]
struct FlowSocket {
    server: SocketAddr,
    socket: Arc<BatchSocket>,
    task: AbortHandle,
}

impl Drop for FlowSocket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<A: Admit> Shared<A> {
    fn front(&self) -> MutexGuard<'_, Front<A>> {
        // A front is whole between any two datagrams.
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts datagrams behind each other that are dropped.
    fn drop_all(&self, reason: FrontDropReason, bytes: &[u8], stride: usize) {
        for _ in bytes.chunks(stride.max(1)) {
            self.counters.dropped(reason);
        }
    }

    fn send(&self, socket: &BatchSocket, to: SocketAddr, bytes: &[u8], stride: usize) {
        for _ in 0..socket.send(to, bytes, stride) {
            self.counters.dropped(FrontDropReason::SendRefused);
        }
    }

    fn send_to_server(
        &self,
        socket: &BatchSocket,
        (id, server): (FlowId, SocketAddr),
        bytes: &[u8],
        stride: usize,
    ) {
        for _ in 0..socket.send(server, bytes, stride) {
            self.counters.dropped(FrontDropReason::SendRefused);
            self.front().handle_unsent(id);
        }
    }
}

/// The gate of a front whose port somebody else receives at.
#[derive(Debug)]
struct FrontGate<A: Admit> {
    shared: Arc<Shared<A>>,
    waiting: WaitingRoom,
}

impl<A> Gate for FrontGate<A>
where
    A: Admit + fmt::Debug + Send,
    A::Permit: Send,
{
    fn take(&self, from: SocketAddr, bytes: &[u8], stride: usize) -> bool {
        let first = bytes.get(..stride).unwrap_or(bytes);
        let is_for_front = self.shared.front().is_for_it(from, first);
        if is_for_front && self.waiting.add(from, bytes, stride).is_none() {
            self.shared.drop_all(FrontDropReason::QueueFull, bytes, stride);
        }
        is_for_front
    }

    fn keep_fragmentation(&self) -> MutexGuard<'_, ()> {
        self.shared.clients.keep_fragmentation()
    }
}

impl<A> UdpFront<A>
where
    A: Admit + fmt::Debug + Send + 'static,
    A::Permit: Send,
{
    /// Binds to `listen`; port 0 picks a free one.
    pub(crate) fn bind(
        listen: SocketAddr,
        settings: Settings,
        admission: A,
        counters: Arc<FrontCounters>,
    ) -> io::Result<Self> {
        Ok(Self::over(BatchSocket::bind(listen)?.with_large_buffers(), settings, admission, counters))
    }

    /// Over a socket that does not block and at which others receive, too. It needs [`share`](Self::share).
    pub(crate) fn beside(
        socket: UdpSocket,
        settings: Settings,
        admission: A,
        counters: Arc<FrontCounters>,
    ) -> io::Result<Self> {
        Ok(Self::over(BatchSocket::beside_quic(socket)?, settings, admission, counters))
    }

    fn over(clients: BatchSocket, settings: Settings, admission: A, counters: Arc<FrontCounters>) -> Self {
        let front = Front::new(settings, admission, Arc::clone(&counters), Instant::now());
        let shared = Arc::new(Shared { clients, front: Mutex::new(front), counters });
        Self { shared, flows: HashMap::new(), taken: None }
    }

    /// Leaves receiving to somebody else, who offers what arrives to the gate that is returned.
    pub(crate) fn share(&mut self) -> Arc<dyn Gate> {
        let (waiting, taken) = WaitingRoom::new();
        self.taken = Some(taken);
        Arc::new(FrontGate { shared: Arc::clone(&self.shared), waiting })
    }

    /// Receives again, as nobody else does.
    pub(crate) fn receive_itself(&mut self) {
        self.taken = None;
    }

    /// The socket once more, for another receiver.
    pub(crate) fn try_clone_socket(&self) -> io::Result<UdpSocket> {
        self.shared.clients.try_clone()
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.shared.clients.local_addr()
    }

    /// Replaces the keys of cookies while the front runs.
    pub(crate) fn set_cookie_keys(&self) -> impl Fn(CookieKeys) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |keys| shared.front().set_keys(keys)
    }

    /// Runs until `stop`, and ends all flows then.
    ///
    /// # Errors
    /// If the socket of the clients fails.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> io::Result<()> {
        let result = self.pass(stop).await;
        self.shared.front().close_all();
        result
    }

    async fn pass(&mut self, stop: CancellationToken) -> io::Result<()> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shared = Arc::clone(&self.shared);
        let mut catch_up = CatchUp::default();
        loop {
            tokio::select! {
                arrived = arrived(&shared.clients, self.taken.as_mut()) => match arrived? {
                    Some(Taken { from, bytes, stride, .. }) => {
                        self.handle_clients(std::iter::once((from, &*bytes, stride)));
                        self.forget_closed();
                    }
                    None => self.receive(),
                },
                due = tick.tick() => {
                    let now = Instant::now();
                    if catch_up.is_over(due.into(), now) {
                        self.shared.front().handle_timeout(now);
                    }
                    self.forget_closed();
                }
                () = stop.cancelled() => return Ok(()),
            }
        }
    }

    fn receive(&mut self) {
        let shared = Arc::clone(&self.shared);
        for _ in 0..CALLS_MAX {
            if shared.clients.try_receive(|received| self.handle_clients(received.iter())).is_err() {
                break;
            }
        }
        self.forget_closed();
    }

    fn handle_clients<'b>(&mut self, received: impl Iterator<Item = (SocketAddr, &'b [u8], usize)>) {
        let (now, mut out) = (Now::read(), Transmits::default());
        {
            let mut front = self.shared.front();
            for (from, bytes, stride) in received {
                front.handle_client(now, from, bytes, stride, &mut out);
            }
        }
        for (to, bytes, stride) in out.iter() {
            match to {
                To::Client(client) => self.shared.send(&self.shared.clients, client, bytes, stride),
                To::Server(id) => self.send_to_server(id, bytes, stride),
            }
        }
    }

    fn send_to_server(&mut self, id: FlowId, bytes: &[u8], stride: usize) {
        match self.flow_socket(id) {
            Ok(Some((server, socket))) => self.shared.send_to_server(&socket, (id, server), bytes, stride),
            // The flow has ended meanwhile.
            Ok(None) => self.shared.drop_all(FrontDropReason::UnknownSource, bytes, stride),
            Err(error) => {
                warn!(%error, "cannot open a UDP socket");
                self.shared.drop_all(FrontDropReason::SendRefused, bytes, stride);
                self.shared.front().close(id);
            }
        }
    }

    /// The server of a flow and the socket to it; a flow that has no socket gets one.
    fn flow_socket(&mut self, id: FlowId) -> io::Result<Option<(SocketAddr, Arc<BatchSocket>)>> {
        if let Some(flow) = self.flows.get(&id) {
            return Ok(Some((flow.server, Arc::clone(&flow.socket))));
        }
        let Some(Route { client, server, source }) = self.shared.front().route(id) else { return Ok(None) };
        let socket = Arc::new(BatchSocket::new(bind_source(source, client.ip(), server)?)?);
        debug!(local_addr = %socket.local_addr(), "a client of the front");
        let receive = receive_from_server(Arc::clone(&self.shared), Arc::clone(&socket), server, id);
        let task = tokio::spawn(receive).abort_handle();
        self.flows.insert(id, FlowSocket { server, socket: Arc::clone(&socket), task });
        Ok(Some((server, socket)))
    }

    fn forget_closed(&mut self) {
        let mut front = self.shared.front();
        while let Some(id) = front.poll_closed() {
            self.flows.remove(&id);
        }
    }
}

/// Waits for what arrives for a front: datagrams that came through its gate, or none if they are to be received.
async fn arrived(
    clients: &BatchSocket,
    taken: Option<&mut mpsc::Receiver<Taken>>,
) -> io::Result<Option<Taken>> {
    match taken {
        Some(taken) => {
            let taken = taken.recv().await;
            taken
                .map(Some)
                .ok_or_else(|| io::Error::other("nobody receives at the port of the front any more"))
        }
        None => clients.readable().await.map(|()| None),
    }
}

/// Passes on what the server sends for one flow, until the task is aborted.
async fn receive_from_server<A: Admit>(
    shared: Arc<Shared<A>>,
    socket: Arc<BatchSocket>,
    server: SocketAddr,
    id: FlowId,
) {
    loop {
        if let Err(error) = socket.readable().await {
            warn!(%error, "the UDP socket of a flow failed");
            shared.front().close(id);
            return;
        }
        let handle = |received: Received<'_>| handle_server(&shared, &socket, server, id, received);
        // Nothing there, or an error of a datagram that was sent before: the client will notice.
        let _ = socket.try_receive(handle);
    }
}

fn handle_server<A: Admit>(
    shared: &Shared<A>,
    socket: &BatchSocket,
    server: SocketAddr,
    id: FlowId,
    received: Received<'_>,
) {
    let mut out = Transmits::default();
    {
        let mut front = shared.front();
        for (from, bytes, stride) in received.iter() {
            if from == server {
                front.handle_server(id, bytes, stride, &mut out);
            } else {
                shared.drop_all(FrontDropReason::UnknownSource, bytes, stride);
            }
        }
    }
    for (to, bytes, stride) in out.iter() {
        match to {
            To::Client(client) => shared.send(&shared.clients, client, bytes, stride),
            To::Server(_) => shared.send_to_server(socket, (id, server), bytes, stride),
        }
    }
}

#[cfg(test)]
#[path = "front_tests.rs"]
mod tests;
