//! A shop server that offers RPC4 functions and signals, and a client, in one program over real sockets. Clients that
//! use C++ RakNet's RPC4 plugin can call the server too.

use std::time::Duration;

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::endpoint::{ConnectionId, PluginHost};
use rakwire::wire::WireError;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Delivery, Endpoint, Options, RakNet};
use rakwire_plugins::calls::rpc4::Rpc4;

/// The time limit of an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error>;
type Calls<C> = SharedHook<Rpc4<C, 4, 16, 256>>;

/// The context of the server's handlers.
#[derive(Default)]
struct Shop {
    coins: u32,
    heard: Vec<String>,
}

fn buy(
    shop: &mut Shop,
    _: ConnectionId,
    arguments: &mut BitStreamReader<'_>,
    answer: &mut BitStreamWriter<'_>,
) -> Result<(), WireError> {
    shop.coins = shop.coins.saturating_add(arguments.read()?);
    answer.write(shop.coins)
}

/// Plays the chime. Its slot has a higher order than the greeting, so it runs first.
fn chime(shop: &mut Shop, _: ConnectionId, _: &mut BitStreamReader<'_>) -> Result<(), WireError> {
    shop.heard.push("the chime".to_owned());
    Ok(())
}

fn greet(shop: &mut Shop, _: ConnectionId, arguments: &mut BitStreamReader<'_>) -> Result<(), WireError> {
    let name = String::from_utf8_lossy(arguments.string()?);
    shop.heard.push(format!("hello, {name}"));
    Ok(())
}

fn shop() -> Result<Rpc4<Shop, 4, 16, 256>, Failure> {
    let mut shop = Rpc4::new(Shop::default());
    let may_call = |_: &Shop, _: ConnectionId| true;
    shop.register_answered("Buy", may_call, buy)?;
    shop.connect("Entered", 1, may_call, greet)?;
    shop.connect("Entered", 2, may_call, chime)?;
    Ok(shop)
}

/// Binds an endpoint with the plugin.
async fn bind<C: Send + 'static>(options: Options, calls: &Calls<C>) -> Result<Endpoint, Failure> {
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(calls.clone())?;
    Ok(Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Failure> {
    let (at_server, at_client) = (Calls::new(shop()?), Calls::new(Rpc4::new(())));
    let server = bind(Options::server(8)?, &at_server).await?;
    let client = bind(Options::client()?, &at_client).await?;
    let connection = client.connect(server.local_addr()).await?;
    let (id, delivery) = (connection.id(), Delivery::RELIABLE_ORDERED);

    at_client.with(|calls| calls.signal(id, "Entered", |bits| bits.string(b"Ada"), delivery))?;
    at_client.with(|calls| calls.call_answered(id, "Buy", |bits| bits.write(30_u32), TIMEOUT))?;
    client.wake();
    let answer = at_client.next(Rpc4::poll_answer).await.outcome?;
    println!("the shop has {} coins", BitStreamReader::new(&answer).read::<u32>()?);
    at_server.with(|calls| println!("it heard {}", calls.context.heard.join(" and ")));

    at_client.with(|calls| calls.call(id, "Steal", |_| Ok(()), delivery))?;
    client.wake();
    let (_, name) = at_client.next(Rpc4::poll_unknown).await;
    println!("no client may call {}", String::from_utf8_lossy(&name));
    Ok(())
}
