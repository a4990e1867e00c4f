//! A server that adds numbers for clients over both UDP and TCP, and one client of each kind, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rakwire::endpoint::{ConnectionId, PluginHost, Side};
use rakwire_extras::tcp::{self, PluginConnection};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet;
use rakwire_native::raknet::{Delivery, RakNet};
use rakwire_plugins::calls::{Function, Handler, Refusal, RemoteCalls};

/// The time limit of an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error>;
type Calls<C> = RemoteCalls<RakNet, C, 4, 16, 256>;

/// Adds two numbers.
struct Add;

impl Function for Add {
    const NAME: &'static str = "add";
    type Arguments<'a> = (u32, u32);
    type Answer<'a> = u32;
}

/// The number of sums over both transports.
type Sums = Arc<AtomicU32>;

impl Handler<Self, Sums> for Add {
    fn is_allowed(_: &Sums, _: ConnectionId) -> bool {
        true
    }

    fn handle(sums: &mut Sums, _: ConnectionId, (a, b): (u32, u32)) -> Result<u32, Refusal> {
        sums.fetch_add(1, Ordering::Relaxed);
        a.checked_add(b).ok_or(Refusal::Failed(1))
    }
}

fn adding(sums: &Sums) -> Result<Calls<Sums>, Failure> {
    let mut calls = Calls::new(sums.clone());
    calls.register::<Add, Add>()?;
    Ok(calls)
}

fn add(calls: &mut Calls<()>, to: ConnectionId) -> Result<(), rakwire_plugins::calls::CallError> {
    calls.call::<Add>(to, &(40, 2), TIMEOUT, Delivery::RELIABLE_ORDERED).map(|_| ())
}

/// Binds a UDP endpoint with the plugin.
async fn bind<C: Send + 'static>(
    options: raknet::Options,
    calls: &SharedHook<Calls<C>>,
) -> Result<raknet::Endpoint, Failure> {
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(calls.clone())?;
    Ok(raknet::Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?)
}

/// Over UDP, one plugin handles all connections of an endpoint, and the endpoint drives it.
async fn over_udp(sums: &Sums) -> Result<u32, Failure> {
    let server = bind(raknet::Options::server(8)?, &SharedHook::new(adding(sums)?)).await?;
    let calls = SharedHook::new(Calls::new(()));
    let client = bind(raknet::Options::client()?, &calls).await?;
    let connection = client.connect(server.local_addr()).await?;

    calls.with(|calls| add(calls, connection.id()))?;
    client.wake();
    Ok(calls.next(RemoteCalls::poll_finished).await.answer::<Add>()?)
}

/// Over TCP, each connection has its own plugin, which runs while the application receives from it.
async fn over_tcp(sums: &Sums) -> Result<u32, Failure> {
    let server = tcp::Endpoint::bind("127.0.0.1:0", tcp::Options::server(8)).await?;
    let client = tcp::Endpoint::bind("127.0.0.1:0", tcp::Options::client()).await?;
    let (here, there) = tokio::join!(client.connect(server.local_addr()), server.accept());
    let here = PluginConnection::new(here?, Side::Client, Calls::new(()))?;
    let there = there.ok_or("the server is closed")?;
    let there = PluginConnection::new(there, Side::Server, adding(sums)?)?;
    tokio::spawn(async move { while there.recv().await.is_some() {} });
    let receiving = here.clone();
    tokio::spawn(async move { while receiving.recv().await.is_some() {} });

    here.with(|calls| add(calls, here.id()))?;
    let finished = here.next(RemoteCalls::poll_finished).await;
    here.connection().disconnect().await;
    Ok(finished.answer::<Add>()?)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Failure> {
    let sums = Sums::default();
    println!("over UDP: {}", over_udp(&sums).await?);
    println!("over TCP: {}", over_tcp(&sums).await?);
    println!("the server has added {} times", sums.load(Ordering::Relaxed));
    Ok(())
}
