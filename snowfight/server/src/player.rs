//! A network player without a display.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::codec::rabbit::Text;
use rakwire_native::Simulation;
use snowfight::client::{Client, Input, Update, View};
use snowfight::message::{EntityId, GameOver, Player as Body, PlayerId, Scope};
use snowfight::world::{MAX_ENTITIES, TICKS_PER_SECOND};
use tokio::time::Instant;

use crate::connection::{AnyConnection, ConnectError, Protocol};
use crate::replication::Replicas;

/// The maximum time to wait for the response to the join request.
const JOIN_TIMEOUT: Duration = Duration::from_secs(20);

/// The reason why a player cannot play.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayerError {
    /// Connecting failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection was closed before the game was over.
    #[error("the server has closed the connection")]
    Ended,
    /// The server rejected the player.
    #[error("the server rejected the player: {0}")]
    Rejected(String),
    /// The game ended before the player could join.
    #[error("the game ended before the player could join")]
    Over(GameOver),
    /// The server did not answer the join request.
    #[error("the server did not answer the join request")]
    JoinTimeout,
}

/// A player with its own connection, driven frame by frame.
#[derive(Debug)]
pub struct Player {
    connection: AnyConnection,
    client: Client,
    view: Box<View<MAX_ENTITIES>>,
    /// The replicas of a client with replication, and the tick of the state that the view shows.
    replicas: Option<(Replicas, u32)>,
    player: PlayerId,
    snapshots: u64,
    start: Instant,
    frames: u32,
}

/// The effect of a received message.
enum Handled {
    Nothing,
    Joined(PlayerId),
    Over(GameOver),
    Rejected(String),
}

impl Player {
    /// Connects and joins the game.
    ///
    /// # Errors
    /// Returns a [`PlayerError`] if connecting fails, or if the server rejects the player or does not answer in 20 s.
    pub async fn join(server: SocketAddr, protocol: Protocol, scope: Scope) -> Result<Self, PlayerError> {
        Self::join_by(server, protocol, None, scope).await
    }

    /// Joins like [`join`](Self::join), through a simulated network with conditions such as `loss=5%,latency=50ms`.
    ///
    /// # Errors
    /// Returns the errors of [`join`](Self::join).
    pub async fn join_through(
        server: SocketAddr,
        protocol: Protocol,
        network: Simulation,
        scope: Scope,
    ) -> Result<Self, PlayerError> {
        Self::join_by(server, protocol, Some(network), scope).await
    }

    async fn join_by(
        server: SocketAddr,
        protocol: Protocol,
        network: Option<Simulation>,
        scope: Scope,
    ) -> Result<Self, PlayerError> {
        let (connection, replicas) = match (protocol, scope) {
            (Protocol::RakNet, Scope::Replicated) => {
                let (connection, replicas) = AnyConnection::connect_replicated(server, network).await?;
                (connection, Some((replicas, 0)))
            }
            _ => (AnyConnection::connect(server, protocol, network).await?, None),
        };
        let (client, view) = (Client::with_scope(scope), Box::new(View::new()));
        let (player, start) = (PlayerId(0), Instant::now());
        let this = Self { connection, client, view, replicas, player, snapshots: 0, start, frames: 0 };
        this.request_to_join().await
    }

    async fn request_to_join(self) -> Result<Self, PlayerError> {
        let mut this = self;
        this.client.handle_connected();
        this.send();
        let joined = async {
            loop {
                let message = this.connection.recv().await.ok_or(PlayerError::Ended)?;
                match this.handle_message(&message) {
                    Handled::Joined(player) => return Ok(player),
                    Handled::Over(result) => return Err(PlayerError::Over(result)),
                    Handled::Rejected(why) => return Err(PlayerError::Rejected(why)),
                    Handled::Nothing => {}
                }
            }
        };
        this.player =
            tokio::time::timeout(JOIN_TIMEOUT, joined).await.map_err(|_| PlayerError::JoinTimeout)??;
        Ok(this)
    }

    /// Returns the id of the player.
    #[must_use]
    pub const fn id(&self) -> PlayerId {
        self.player
    }

    /// Returns the player's view of the world.
    #[must_use]
    pub const fn view(&self) -> &View<MAX_ENTITIES> {
        &self.view
    }

    /// Returns the body of the player in the newest snapshot; `None` if it has fallen.
    #[must_use]
    pub fn me(&self) -> Option<&Body> {
        Some(self.view.player(self.player)?.1)
    }

    /// Returns the id of the player's entity.
    #[must_use]
    pub fn body(&self) -> Option<EntityId> {
        Some(self.view.player(self.player)?.0)
    }

    /// Returns the result of the game once it is over.
    #[must_use]
    pub const fn result(&self) -> Option<GameOver> {
        self.client.result()
    }

    /// Returns the number of received snapshots or replication updates.
    #[must_use]
    pub const fn snapshots(&self) -> u64 {
        self.snapshots
    }

    /// Sends input and handles messages for one frame (1/60 s). Returns the result of the game once it is over.
    ///
    /// # Errors
    /// Returns [`PlayerError::Ended`] if the connection is closed before the result arrives.
    pub async fn frame(&mut self, input: Input) -> Result<Option<GameOver>, PlayerError> {
        let now = self.now();
        self.client.handle_frame(now, input);
        self.send();
        self.frames += 1;
        let next = self.start + Duration::from_secs(1) * self.frames / TICKS_PER_SECOND;
        while self.client.result().is_none() {
            tokio::select! {
                // Messages are polled first, so that a player with late frames still handles them.
                biased;
                message = self.connection.recv() => {
                    let message = message.ok_or(PlayerError::Ended)?;
                    let _ = self.handle_message(&message);
                }
                () = tokio::time::sleep_until(next) => break,
            }
        }
        self.show_replicas();
        Ok(self.client.result())
    }

    /// Waits until the server has closed the connection.
    pub async fn closed(&self) {
        while self.connection.recv().await.is_some() {}
    }

    /// Closes the connection.
    pub async fn leave(self) {
        self.connection.close().await;
    }

    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn handle_message(&mut self, message: &[u8]) -> Handled {
        let now = self.now();
        match self.client.handle_message(now, &message) {
            Ok(Update::Joined { player, entities }) => {
                self.view.update(&entities);
                Handled::Joined(player)
            }
            Ok(Update::Snapshot { time, entities, scope }) => {
                self.snapshots += 1;
                self.view.take(time, &entities, scope);
                Handled::Nothing
            }
            Ok(Update::Rejected(why)) => Handled::Rejected(text(why)),
            Ok(Update::Over(result)) => Handled::Over(result),
            Ok(Update::Pong { .. } | Update::Ignored) | Err(_) => Handled::Nothing,
        }
    }

    fn show_replicas(&mut self) {
        let Self { replicas, client, view, snapshots, .. } = self;
        let Some((replicas, shown)) = replicas.as_mut().filter(|_| client.is_replicated()) else { return };
        replicas.with(|replicas| {
            let time = snowfight_replication::time(replicas);
            if time != *shown {
                view.replace(snowfight_replication::entities(replicas));
                (*shown, *snapshots) = (time, *snapshots + 1);
            }
        });
    }

    fn send(&mut self) {
        let mut buffer = [0; 64];
        while let Some((delivery, message)) = self.client.poll_message(&mut buffer) {
            // A failed send is harmless, because the client repeats actions.
            let _ = self.connection.send(message, delivery);
        }
    }
}

fn text(text: Text<'_>) -> String {
    text.chars().collect()
}
