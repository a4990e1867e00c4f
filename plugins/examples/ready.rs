//! Three players that wait for each other, each connected to one server that waits for all, over real sockets.

use rakwire::endpoint::PluginHost;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Endpoint, Options, RakNet};
use rakwire_plugins::ready::{EventId, ReadyEvents};

const START: EventId = EventId(1);
const PLAYERS: usize = 3;

type Ready = SharedHook<ReadyEvents<4, 8>>;

/// Binds an endpoint with a plugin that waits for all its connections.
async fn bind(options: Options) -> Result<(Endpoint, Ready), Box<dyn std::error::Error>> {
    let ready = Ready::new(ReadyEvents::new());
    ready.with(|ready| ready.wait_for_all(START))?;
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(ready.clone())?;
    Ok((Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?, ready))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (server, at_server) = bind(Options::server(8)?).await?;
    let mut players = Vec::new();
    for _ in 0..PLAYERS {
        let (endpoint, ready) = bind(Options::client()?).await?;
        let connection = endpoint.connect(server.local_addr()).await?;
        let accepted = server.accept().await.ok_or("the server is closed")?;
        players.push((endpoint, ready, connection, accepted));
    }
    at_server.with(|ready| ready.set(START, true))?;
    for (number, (endpoint, ready, ..)) in players.iter().enumerate() {
        println!(
            "player {number} is ready; the round has begun: {}",
            at_server.with(|ready| ready.is_completed(START))
        );
        ready.with(|ready| ready.set(START, true))?;
        endpoint.wake();
    }
    at_server.next(ReadyEvents::poll_completed).await;
    println!("all are ready");
    Ok(())
}
