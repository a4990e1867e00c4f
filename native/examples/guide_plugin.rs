//! Step 7 of the guide: a plugin that keeps players from flooding the chat.
//!
//! ```sh
//! cargo run -p rakwire-native --example guide_plugin -- 127.0.0.1:19132
//! ```

use std::error::Error;
use std::time::Duration;

use rakwire::Piece;
use rakwire::endpoint::BySlot;
use rakwire_native::endpoint::{ConnectionId, Plugin, PluginHost, SharedHook, Verdict};
use rakwire_native::{Chunks, Delivery, DisconnectReason, Endpoint, Instant, Options, RakNet, id};

/// A line of chat.
pub(crate) const CHAT: u8 = id::USER + 1;
/// Number of lines that a player may send in `PERIOD`.
pub(crate) const LINES: u32 = 5;
const PERIOD: Duration = Duration::from_secs(10);
/// Number of connections of the server.
const PLAYERS: usize = 64;

/// Drops lines of players that send too many.
#[derive(Default)]
pub(crate) struct FloodGuard {
    /// The beginning of the current period and the number of lines in it.
    periods: BySlot<(Instant, u32), PLAYERS>,
    /// Number of dropped lines.
    pub(crate) dropped: u32,
}

impl Plugin<RakNet> for FloodGuard {
    /// The chat belongs to the application, so the plugin has no ids and watches all messages.
    fn watches_all(&self) -> bool {
        true
    }

    fn on_message(&mut self, now: Instant, id: ConnectionId, _: Delivery, message: &dyn Chunks) -> Verdict {
        let (bytes, _) = message.piece(Piece::FIRST);
        if bytes.first() != Some(&CHAT) {
            return Verdict::Pass;
        }
        let (begin, lines) = match self.periods.get(id) {
            Some((begin, lines)) if now.saturating_since(*begin) < PERIOD => (*begin, lines + 1),
            _ => (now, 1),
        };
        self.periods.insert(id, (begin, lines));
        if lines <= LINES {
            return Verdict::Pass;
        }
        self.dropped += 1;
        Verdict::Drop
    }

    fn on_disconnected(&mut self, _: Instant, id: ConnectionId, _: DisconnectReason) {
        self.periods.remove(id);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: guide_plugin ADDRESS")?;
    let (endpoint, guard) = bind(&address).await?;
    println!("listening on {}", endpoint.local_addr());
    tokio::spawn(serve(endpoint));
    loop {
        let dropped = guard.with(|guard| guard.dropped);
        let more = guard.next(|guard| (guard.dropped > dropped).then_some(guard.dropped)).await;
        println!("{more} lines dropped");
    }
}

/// Binds a server with the plugin, and returns the server and a handle to the plugin.
pub(crate) async fn bind(address: &str) -> Result<(Endpoint, SharedHook<FloodGuard>), Box<dyn Error>> {
    let guard = SharedHook::new(FloodGuard::default());
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(guard.clone())?;
    let endpoint = Endpoint::bind_with_hook(address, Options::server(64)?, |_| host).await?;
    Ok((endpoint, guard))
}

/// Passes lines on to all players. It contains nothing about the plugin.
pub(crate) async fn serve(endpoint: Endpoint) {
    while let Some(connection) = endpoint.accept().await {
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            while let Some(message) = connection.recv().await {
                endpoint.broadcast(&message.bytes, message.delivery);
            }
        });
    }
}
