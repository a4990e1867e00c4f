//! A player without a head.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::codec::rabbit::Text;
use rakwire_native::Simulation;
use snowfight::client::{Client, Input, News, View};
use snowfight::message::{EntityId, GameOver, Player as Body, PlayerId, Scope};
use snowfight::world::{MAX_ENTITIES, TICKS_PER_SECOND};
use tokio::time::Instant;

use crate::link::{DialError, Link, Protocol};

/// How long a server may take to let somebody in.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why somebody does not play.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayerError {
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection has ended before the game.
    #[error("the server has ended the connection")]
    Ended,
    /// The server says no.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The game was over before it began.
    #[error("the game was over at once")]
    Over(GameOver),
    /// The server says nothing.
    #[error("the server does not let anybody in")]
    Silent,
}

/// Somebody who plays over a connection of its own, one frame after another.
#[derive(Debug)]
pub struct Player {
    link: Link,
    client: Client,
    view: Box<View<MAX_ENTITIES>>,
    player: PlayerId,
    snapshots: u64,
    start: Instant,
    frames: u32,
}

/// What a message was for a player.
enum Heard {
    Nothing,
    Joined(PlayerId),
    Over(GameOver),
    Refused(String),
}

impl Player {
    /// Connects and joins the game.
    ///
    /// # Errors
    /// A [`PlayerError`].
    pub async fn join(server: SocketAddr, protocol: Protocol, scope: Scope) -> Result<Self, PlayerError> {
        Self::join_over(Link::dial(server, protocol, None).await?, scope).await
    }

    /// As [`join`](Self::join), behind a bad network: `loss=5%,latency=50ms`.
    ///
    /// # Errors
    /// A [`PlayerError`].
    pub async fn join_through(
        server: SocketAddr,
        protocol: Protocol,
        network: Simulation,
        scope: Scope,
    ) -> Result<Self, PlayerError> {
        Self::join_over(Link::dial(server, protocol, Some(network)).await?, scope).await
    }

    async fn join_over(link: Link, scope: Scope) -> Result<Self, PlayerError> {
        let (client, view) = (Client::asking_for(scope), Box::new(View::new()));
        let start = Instant::now();
        let mut this = Self { link, client, view, player: PlayerId(0), snapshots: 0, start, frames: 0 };
        this.client.handle_connected();
        this.send();
        let let_in = async {
            loop {
                let message = this.link.recv().await.ok_or(PlayerError::Ended)?;
                match this.hear(&message) {
                    Heard::Joined(player) => return Ok(player),
                    Heard::Over(result) => return Err(PlayerError::Over(result)),
                    Heard::Refused(why) => return Err(PlayerError::Refused(why)),
                    Heard::Nothing => {}
                }
            }
        };
        this.player = tokio::time::timeout(DEADLINE, let_in).await.map_err(|_| PlayerError::Silent)??;
        Ok(this)
    }

    /// Who it is.
    #[must_use]
    pub const fn id(&self) -> PlayerId {
        self.player
    }

    /// The world as it knows it.
    #[must_use]
    pub const fn view(&self) -> &View<MAX_ENTITIES> {
        &self.view
    }

    /// Its own body, as the server told last; nothing when it has none any more.
    #[must_use]
    pub fn me(&self) -> Option<&Body> {
        Some(self.view.player(self.player)?.1)
    }

    /// What its body is called.
    #[must_use]
    pub fn body(&self) -> Option<EntityId> {
        Some(self.view.player(self.player)?.0)
    }

    /// How the game ended, once it has.
    #[must_use]
    pub const fn result(&self) -> Option<GameOver> {
        self.client.result()
    }

    /// How many snapshots came.
    #[must_use]
    pub const fn snapshots(&self) -> u64 {
        self.snapshots
    }

    /// Says what it wants, and looks around until the next frame, a sixtieth of a second later. Returns how the game
    /// ended, once it has.
    ///
    /// # Errors
    /// [`PlayerError::Ended`] when the connection ends without a result.
    pub async fn frame(&mut self, input: Input) -> Result<Option<GameOver>, PlayerError> {
        let now = self.now();
        self.client.handle_frame(now, input);
        self.send();
        self.frames += 1;
        let next = self.start + Duration::from_secs(1) * self.frames / TICKS_PER_SECOND;
        while self.client.result().is_none() {
            tokio::select! {
                // Who is behind the clock still looks around.
                biased;
                message = self.link.recv() => {
                    let message = message.ok_or(PlayerError::Ended)?;
                    let _ = self.hear(&message);
                }
                () = tokio::time::sleep_until(next) => break,
            }
        }
        Ok(self.client.result())
    }

    /// Waits until the server has ended the connection.
    pub async fn gone(&self) {
        while self.link.recv().await.is_some() {}
    }

    /// Leaves the game.
    pub async fn leave(self) {
        self.link.close().await;
    }

    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn hear(&mut self, message: &[u8]) -> Heard {
        let now = self.now();
        match self.client.handle_message(now, &message) {
            Ok(News::Joined { player, entities }) => {
                self.view.update(&entities);
                Heard::Joined(player)
            }
            Ok(News::Snapshot { time, entities, scope }) => {
                self.snapshots += 1;
                self.view.take(time, &entities, scope);
                Heard::Nothing
            }
            Ok(News::Refused(why)) => Heard::Refused(text(why)),
            Ok(News::Over(result)) => Heard::Over(result),
            Ok(News::Pong { .. } | News::Nothing) | Err(_) => Heard::Nothing,
        }
    }

    fn send(&mut self) {
        let mut buffer = [0; 64];
        while let Some((delivery, message)) = self.client.poll_message(&mut buffer) {
            // Actions are said again and again.
            let _ = self.link.send(message, delivery);
        }
    }
}

fn text(text: Text<'_>) -> String {
    text.chars().collect()
}
