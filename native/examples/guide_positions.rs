//! Step 3 of the guide: positions, sent twenty times a second in addition to the chat.
//!
//! ```sh
//! cargo run -p rakwire-native --example guide_positions -- server 127.0.0.1:19132
//! cargo run -p rakwire-native --example guide_positions -- client 127.0.0.1:19132
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rakwire_native::{Channel, Connection, Delivery, Endpoint, Options, id};
use tokio::time::interval;

/// A line of chat, passed on to all players.
pub(crate) const CHAT: u8 = id::USER + 1;
/// The position of a player, from its client: x and y.
const MOVE: u8 = id::USER + 3;
/// The positions of all players, from the server: a number, x and y for each.
pub(crate) const POSITIONS: u8 = id::USER + 4;

const TICK: Duration = Duration::from_millis(50);

/// A position replaces all earlier positions: a lost position is not resent, and a late position is dropped. Positions
/// have a separate channel, because a sequenced message waits for the ordered messages before it on its channel.
const NEWEST: Delivery = match Channel::new(2) {
    Some(channel) => Delivery::UNRELIABLE_SEQUENCED.on(channel),
    None => panic!("channels are 0 to 31"),
};

/// The positions by the number of the player.
type Positions = Arc<Mutex<BTreeMap<u8, [u8; 2]>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, address] if role == "server" => {
            let endpoint = Endpoint::bind(address, Options::server(64)?).await?;
            println!("listening on {}", endpoint.local_addr());
            serve(endpoint).await;
        }
        [role, address] if role == "client" => {
            let connection = join(address).await?;
            tokio::spawn(walk(connection.clone()));
            while let Some(message) = connection.recv().await {
                println!("{:?}", message.bytes);
            }
        }
        _ => return Err("usage: guide_positions server ADDRESS | client ADDRESS".into()),
    }
    Ok(())
}

/// Accepts players, and sends all positions to all of them in each tick, until the endpoint is closed.
pub(crate) async fn serve(endpoint: Endpoint) {
    let positions = Positions::default();
    let mut ticks = interval(TICK);
    loop {
        tokio::select! {
            connection = endpoint.accept() => {
                let Some(connection) = connection else { return };
                tokio::spawn(player(endpoint.clone(), connection, Arc::clone(&positions)));
            }
            _ = ticks.tick() => {
                let bytes = with(&positions, |positions| {
                    positions.iter().flat_map(|(number, [x, y])| [*number, *x, *y]).collect::<Vec<_>>()
                });
                endpoint.broadcast(&[&[POSITIONS], &bytes[..]].concat(), NEWEST);
            }
        }
    }
}

/// Handles the messages of one player.
async fn player(endpoint: Endpoint, connection: Connection, positions: Positions) {
    // The endpoint accepts fewer connections than there are numbers.
    let number = with(&positions, |positions| {
        let number = (0..u8::MAX).find(|number| !positions.contains_key(number)).unwrap_or(u8::MAX);
        positions.insert(number, [0, 0]);
        number
    });
    while let Some(message) = connection.recv().await {
        match message.bytes[..] {
            [MOVE, x, y] => {
                with(&positions, |positions| positions.insert(number, [x, y]));
            }
            [CHAT, ..] => {
                endpoint.broadcast(&message.bytes, message.delivery);
            }
            _ => {}
        }
    }
    with(&positions, |positions| positions.remove(&number));
}

/// Calls `change` with the positions. The lock is never held across an await.
fn with<R>(positions: &Positions, change: impl FnOnce(&mut BTreeMap<u8, [u8; 2]>) -> R) -> R {
    change(&mut positions.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) async fn join(server: &str) -> Result<Connection, Box<dyn Error>> {
    let endpoint = Endpoint::bind("0.0.0.0:0", Options::client()?).await?;
    Ok(endpoint.connect(server.parse()?).await?)
}

/// Walks to the right and sends its position in each tick, until the connection has closed.
pub(crate) async fn walk(connection: Connection) {
    let mut ticks = interval(TICK);
    for x in (0..=u8::MAX).cycle() {
        ticks.tick().await;
        // Does not wait if the queue is full: the next position is newer.
        let _ = connection.try_send(&[MOVE, x, 0], NEWEST);
        if connection.closed_reason().is_some() {
            return;
        }
    }
}
