//! The sockets of a front: one socket for all clients, which other parts may share, and one per flow to the server.
//!
//! If QUIC or data channels share the port, another task receives the datagrams and offers each one to the gate of the
//! front.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::batch::{BatchSocket, CatchUp, Received};
use super::udp::bind_source;
use crate::front::{
    Admit, CookieKeys, FlowId, Front, FrontCounters, FrontDropReason, Route, Settings, TICK, To, Transmits,
};
use crate::time::Now;

/// Maximum number of receive calls before other tasks run.
const CALLS_MAX: usize = 8;

/// A bound front.
#[derive(Debug)]
pub(crate) struct UdpFront<A: Admit> {
    shared: Arc<Shared<A>>,
    flows: HashMap<FlowId, FlowSocket>,
    /// Datagrams for this front, if another task receives on its port.
    taken: Option<mpsc::Receiver<Taken>>,
}

/// State shared by all tasks of a front.
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
        // The front is consistent after each datagram, so a poisoned lock can be ignored.
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts contiguous datagrams that are dropped.
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

/// The gate of a front on a shared port.
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

    /// Wraps a non-blocking socket that other parts also receive on. [`share`](Self::share) must be called next.
    pub(crate) fn beside(
        socket: UdpSocket,
        settings: Settings,
        admission: A,
        counters: Arc<FrontCounters>,
    ) -> io::Result<Self> {
        Ok(Self::over(BatchSocket::beside_quic(socket)?, settings, admission, counters))
    }

    fn over(clients: BatchSocket, settings: Settings, admission: A, counters: Arc<FrontCounters>) -> Self {
        let front = Front::new(settings, admission, Arc::clone(&counters));
        let shared = Arc::new(Shared { clients, front: Mutex::new(front), counters });
        Self { shared, flows: HashMap::new(), taken: None }
    }

    /// Leaves receiving to another task, which offers incoming datagrams to the returned gate.
    pub(crate) fn share(&mut self) -> Arc<dyn Gate> {
        let (waiting, taken) = WaitingRoom::new();
        self.taken = Some(taken);
        Arc::new(FrontGate { shared: Arc::clone(&self.shared), waiting })
    }

    /// Makes the front itself the receiver again, after the other receiver has ended.
    pub(crate) fn receive_itself(&mut self) {
        self.taken = None;
    }

    /// Duplicates the socket, for another receiver.
    pub(crate) fn try_clone_socket(&self) -> io::Result<UdpSocket> {
        self.shared.clients.try_clone()
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.shared.clients.local_addr()
    }

    /// Returns a function that replaces the cookie keys while the front runs.
    pub(crate) fn set_cookie_keys(&self) -> impl Fn(CookieKeys) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |keys| shared.front().set_keys(keys)
    }

    /// Runs until `stop`, then ends all flows.
    ///
    /// # Errors
    /// The error of the client socket, if it fails.
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
            // The flow was closed after the front queued this datagram.
            Ok(None) => self.shared.drop_all(FrontDropReason::UnknownSource, bytes, stride),
            Err(error) => {
                let server = self.shared.front().route(id).map(|route| route.server.to_string());
                warn!(server, %error, "cannot open a UDP socket to the game server: the flow is closed");
                self.shared.drop_all(FrontDropReason::SendRefused, bytes, stride);
                self.shared.front().close(id);
            }
        }
    }

    /// Returns the server of a flow and the flow's socket, which is created on first use.
    fn flow_socket(&mut self, id: FlowId) -> io::Result<Option<(SocketAddr, Arc<BatchSocket>)>> {
        if let Some(flow) = self.flows.get(&id) {
            return Ok(Some((flow.server, Arc::clone(&flow.socket))));
        }
        let Some(Route { client, server, source }) = self.shared.front().route(id) else { return Ok(None) };
        let socket = Arc::new(BatchSocket::new(bind_source(source, client.ip(), server)?)?);
        debug!(local_addr = %socket.local_addr(), "opened a UDP socket to the game server for a client of the front");
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

/// Waits for datagrams. Returns those that came through the gate, or `None` if the socket can be read.
async fn arrived(
    clients: &BatchSocket,
    taken: Option<&mut mpsc::Receiver<Taken>>,
) -> io::Result<Option<Taken>> {
    match taken {
        Some(taken) => {
            let taken = taken.recv().await;
            taken.map(Some).ok_or_else(|| io::Error::other("the task that receives for the front has ended"))
        }
        None => clients.readable().await.map(|()| None),
    }
}

/// Forwards the server's datagrams of one flow until the task is aborted.
async fn receive_from_server<A: Admit>(
    shared: Arc<Shared<A>>,
    socket: Arc<BatchSocket>,
    server: SocketAddr,
    id: FlowId,
) {
    loop {
        if let Err(error) = socket.readable().await {
            warn!(%error, "the UDP socket of a flow failed: the flow is closed");
            shared.front().close(id);
            return;
        }
        let handle = |received: Received<'_>| handle_server(&shared, &socket, server, id, received);
        // There is no data, or an error about an earlier datagram. The client's protocol handles the loss.
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

/// Maximum bytes in the queue of the gate, as many as in the receive buffer of a separate socket.
const WAITING_BYTES: usize = 4 << 20;
/// Maximum number of batches in the queue, each from one sender.
const WAITING_BATCHES: usize = 4_096;

/// Takes the datagrams of a front at a UDP port that QUIC or data channels share. Another task receives the datagrams
/// and offers each to this gate.
pub(crate) trait Gate: fmt::Debug + Send + Sync {
    /// Takes contiguous datagrams of one sender if they are for the front. Returns true if it took them.
    fn take(&self, from: SocketAddr, bytes: &[u8], stride: usize) -> bool;

    /// Prevents the front from allowing fragmentation while another sender uses the socket.
    fn keep_fragmentation(&self) -> MutexGuard<'_, ()>;
}

/// Datagrams that the front has taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) from: SocketAddr,
    pub(super) bytes: Box<[u8]>,
    pub(super) stride: usize,
    /// The permit for the queue space that the datagrams occupy.
    _room: OwnedSemaphorePermit,
}

/// A bounded queue of datagrams for the front.
#[derive(Debug)]
struct WaitingRoom {
    taken: mpsc::Sender<Taken>,
    room: Arc<Semaphore>,
}

impl WaitingRoom {
    /// Creates an empty queue and its receiver.
    fn new() -> (Self, mpsc::Receiver<Taken>) {
        let (taken, receiver) = mpsc::channel(WAITING_BATCHES);
        (Self { taken, room: Arc::new(Semaphore::new(WAITING_BYTES)) }, receiver)
    }

    /// Queues datagrams. Returns `None` if the queue is full or its receiver is gone.
    fn add(&self, from: SocketAddr, bytes: &[u8], stride: usize) -> Option<()> {
        let room = Arc::clone(&self.room).try_acquire_many_owned(u32::try_from(bytes.len()).ok()?).ok()?;
        self.taken.try_send(Taken { from, bytes: bytes.into(), stride, _room: room }).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rakwire_native::endpoint::{Endpoint, Options, Protocol};
    use rakwire_native::game_protocol::{self, GameProtocol};
    use rakwire_native::raknet::{self, CookiePolicy, RakNet};
    use tokio::time::timeout;

    use super::*;
    use crate::addresses::TargetName;
    use crate::counters::Counters;
    use crate::flow::Source;
    use crate::front::{Admitted, CookieKey, FrontProtocol, NotAdmitted, Offer, Permit};
    use crate::io::batch::narrow_path::{NarrowPath, connect, echo_large};
    use crate::io::health::Prober;
    use crate::protocol::PongCache;

    /// Long enough for the slowest machine; only a failing test takes that long.
    const TIMEOUT: Duration = Duration::from_secs(60);

    #[derive(Debug)]
    struct Everyone {
        server: SocketAddr,
        pongs: Arc<PongCache>,
    }

    impl Permit for () {}

    impl Admit for Everyone {
        type Permit = ();

        fn admit(
            &mut self,
            _now: Now,
            _client: SocketAddr,
            _make_room: &mut dyn FnMut() -> bool,
        ) -> Result<Admitted<()>, NotAdmitted> {
            Ok(Admitted {
                server: self.server,
                source: Source::Shared,
                proxy_protocol: false,
                idle_timeout: Duration::from_secs(60),
                max_datagram: 1_492,
                rate: None,
                permit: (),
            })
        }

        fn offer(&self) -> Option<Offer> {
            Some(Offer { pongs: Arc::clone(&self.pongs), payload_max: 1_464, announced_to: None })
        }
    }

    struct Running {
        address: SocketAddr,
        pongs: Arc<PongCache>,
        counters: Arc<FrontCounters>,
        stop: CancellationToken,
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.stop.cancel();
        }
    }

    fn start(server: SocketAddr, protocol: FrontProtocol) -> Running {
        let settings = Settings { protocol, guid: 1, keys: CookieKeys::single(CookieKey::new([9; 16])) };
        let (pongs, counters) = (Arc::<PongCache>::default(), Arc::<FrontCounters>::default());
        let any = "127.0.0.1:0".parse().unwrap();
        let everyone = Everyone { server, pongs: Arc::clone(&pongs) };
        let front = UdpFront::bind(any, settings, everyone, Arc::clone(&counters)).unwrap();
        let (address, stop) = (front.local_addr(), CancellationToken::new());
        tokio::spawn(front.run(stop.clone()));
        Running { address, pongs, counters, stop }
    }

    /// Runs a server that echoes every message.
    fn echo<P: Protocol>(server: Endpoint<P>) {
        tokio::spawn(async move {
            while let Some(connection) = server.accept().await {
                tokio::spawn(async move {
                    while let Some(message) = connection.recv().await {
                        // Sending fails once the client has left.
                        let _ = connection.send(&message.bytes, message.delivery).await;
                    }
                });
            }
        });
    }

    async fn exchange<P: Protocol>(client: &Endpoint<P>, front: SocketAddr, delivery: P::Delivery)
    where
        P::Delivery: Copy,
    {
        let connection = timeout(TIMEOUT, client.connect(front)).await.unwrap().unwrap();
        for size in [10, 1_000, 50_000] {
            let message = vec![0xFE; size];
            connection.send(&message, delivery).await.unwrap();
            let echo = timeout(TIMEOUT, connection.recv()).await.unwrap();
            let echo =
                echo.unwrap_or_else(|| panic!("no echo of {size} bytes: {:?}", connection.closed_reason()));
            assert!(echo.bytes == message, "{size} bytes");
        }
        connection.disconnect().await;
    }

    /// The MTU shrinks first on the client's path, then on the path from the front to the server.
    #[tokio::test]
    async fn large_client_messages_survive_a_shrinking_path_mtu() {
        for client_is_narrow in [true, false] {
            let server = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::server(8).unwrap()).await.unwrap();
            let behind = NarrowPath::to(server.local_addr()).await;
            echo(server);
            let front = start(behind.address, FrontProtocol::RakNet);
            let before = NarrowPath::to(front.address).await;
            let exchange = async {
                let connection = connect(before.address).await;
                assert_eq!(echo_large(&connection).await, 1_492);
                let [first, then] = if client_is_narrow { [&before, &behind] } else { [&behind, &before] };
                first.narrow(1_400);
                assert_eq!(echo_large(&connection).await, 1_200);
                then.narrow(1_000);
                assert_eq!(echo_large(&connection).await, 576);
            };
            timeout(TIMEOUT, exchange).await.unwrap();
        }
    }

    #[tokio::test]
    async fn peers_of_raknet_connect_through_a_front() {
        for cookies in [CookiePolicy::Off, CookiePolicy::Required] {
            let mut options = Options::<RakNet>::server(8).unwrap();
            options.config.cookies = cookies;
            let server = Endpoint::bind("127.0.0.1:0", options).await.unwrap();
            let front = start(server.local_addr(), FrontProtocol::RakNet);
            echo(server);
            let clients: Vec<_> = (0..5)
                .map(|_| {
                    let address = front.address;
                    tokio::spawn(async move {
                        let options = Options::<RakNet>::client().unwrap();
                        let client = Endpoint::bind("127.0.0.1:0", options).await.unwrap();
                        exchange(&client, address, raknet::Delivery::RELIABLE_ORDERED).await;
                    })
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
            let counts = front.counters.snapshot();
            assert_eq!((counts.opened, counts.drops(FrontDropReason::BadCookie)), (5, 0));
            assert!(counts.to_server.0 > 0 && counts.to_client.0 > 0);
        }
    }

    #[tokio::test]
    async fn peers_of_the_game_protocol_connect_through_a_front() {
        let server =
            Endpoint::bind("127.0.0.1:0", Options::<GameProtocol>::server(8).unwrap()).await.unwrap();
        let front = start(server.local_addr(), FrontProtocol::GameProtocol);
        echo(server);
        let client = Endpoint::bind("127.0.0.1:0", Options::<GameProtocol>::client().unwrap()).await.unwrap();
        exchange(&client, front.address, game_protocol::Reliability::Reliable).await;
        assert_eq!(front.counters.snapshot().opened, 1);
    }

    #[tokio::test]
    async fn pings_never_reach_the_server() {
        let server = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::server(8).unwrap()).await.unwrap();
        server.set_advertisement(b"a server").unwrap();
        let address = server.local_addr();
        let front = start(address, FrontProtocol::RakNet);
        let pongs = Arc::clone(&front.pongs);
        let name: TargetName = "game".parse().unwrap();
        let counters = Counters::default().target(&name);
        let mut prober = Prober::new(name, address, 1, pongs, counters, Arc::default());
        let probing = tokio::spawn(async move { prober.ask().await });
        let client = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::client().unwrap()).await.unwrap();
        let wait = async {
            while front.pongs.last(Instant::now()).is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TIMEOUT, wait).await.unwrap();
        let pong = timeout(TIMEOUT, client.ping(front.address, TIMEOUT)).await.unwrap().unwrap();
        assert_eq!(pong.data, b"a server");
        assert_eq!(front.counters.snapshot().answers, 1);
        probing.abort();
    }

    #[test]
    fn the_queue_of_the_front_is_bounded_in_bytes() {
        let (waiting, mut taken) = WaitingRoom::new();
        let from = SocketAddr::from(([192, 0, 2, 1], 7));
        let batch = vec![0; WAITING_BYTES / 4];
        for _ in 0..4 {
            assert!(waiting.add(from, &batch, 1_000).is_some());
        }
        assert!(waiting.add(from, b"x", 1).is_none());
        assert_eq!(taken.try_recv().unwrap().bytes.len(), batch.len());
        assert!(waiting.add(from, b"x", 1).is_some());
        drop(taken);
        assert!(waiting.add(from, b"x", 1).is_none());
    }
}
