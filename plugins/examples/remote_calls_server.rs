//! A server for clients in other languages. It adds numbers for its clients, calls a function of each client that
//! squares a number, and signals the answer back.

use std::time::Duration;

use rakwire::endpoint::{ConnectionId, PluginHost};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Connection, Delivery, Endpoint, Options, RakNet};
use rakwire_plugins::caller::Caller;
use rakwire_plugins::calls::{Function, Handler, Refusal, RemoteCalls};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A function of the server.
struct Add;

impl Function for Add {
    const NAME: &'static str = "add";
    type Arguments<'a> = (u32, u32);
    type Answer<'a> = u32;
}

impl Handler<Self, ()> for Add {
    fn is_allowed((): &(), _: ConnectionId) -> bool {
        true
    }

    fn handle((): &mut (), _: ConnectionId, (a, b): (u32, u32)) -> Result<u32, Refusal> {
        a.checked_add(b).ok_or(Refusal::Failed(1))
    }
}

/// A function of the client.
struct Square;

impl Function for Square {
    const NAME: &'static str = "square";
    type Arguments<'a> = u32;
    type Answer<'a> = u64;
}

/// A signal to the client, with the square that it has answered.
struct Squared;

impl Function for Squared {
    const NAME: &'static str = "squared";
    type Arguments<'a> = u64;
    type Answer<'a> = ();
}

type Calls = SharedHook<RemoteCalls<RakNet, (), 4, 16, 256>>;

/// Asks a client for a square, and signals its answer back.
async fn ask(
    calls: &Calls,
    endpoint: &Endpoint,
    client: &Connection,
) -> Result<(), Box<dyn std::error::Error>> {
    let (id, delivery) = (client.id(), Delivery::RELIABLE_ORDERED);
    let caller = Caller::new(endpoint, calls, TIMEOUT, delivery);
    let square = caller.call::<Square>(id, &1_000_000).await?.answer::<Square>()?;
    calls.with(|calls| calls.signal::<Squared>(id, &square, delivery))?;
    endpoint.wake();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plugin = RemoteCalls::new(());
    plugin.register::<Add, Add>()?;
    let calls = Calls::new(plugin);
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(calls.clone())?;
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let server = Endpoint::bind_with_hook(address.as_str(), Options::server(8)?, |_| host).await?;
    println!("listening on {}", server.local_addr());
    while let Some(client) = server.accept().await {
        match ask(&calls, &server, &client).await {
            Ok(()) => println!("{} has answered", client.remote()),
            Err(failure) => println!("{}: {failure}", client.remote()),
        }
        tokio::spawn(async move { client.closed().await });
    }
    Ok(())
}
