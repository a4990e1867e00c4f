use std::time::Duration;

use rakwire_native::endpoint::{Endpoint, Options, Protocol};
use rakwire_native::game_protocol::{self, GameProtocol};
use rakwire_native::raknet::{self, CookiePolicy, RakNet};
use tokio::time::timeout;

use super::*;
use crate::counters::Counters;
use crate::flow::Source;
use crate::front::{Admitted, CookieKey, FrontProtocol, NotAdmitted, Offer, Permit};
use crate::io::narrow_path::{NarrowPath, connect, echo_large};
use crate::io::prober::Prober;
use crate::protocol::PongCache;
use crate::target::TargetName;

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

/// A server that sends every message back.
fn echo<P: Protocol>(server: Endpoint<P>) {
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(async move {
                while let Some(message) = connection.recv().await {
                    // It fails once the client has left.
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

/// The path of the client and that of the front to the server, one after the other.
#[tokio::test]
async fn large_messages_of_clients_arrive_over_paths_that_become_narrower() {
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
    let server = Endpoint::bind("127.0.0.1:0", Options::<GameProtocol>::server(8).unwrap()).await.unwrap();
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
