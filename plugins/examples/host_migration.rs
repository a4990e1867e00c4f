//! A game without a server: four players, all connected to each other. One is the host and counts the rounds. When it
//! leaves, the player that joined next continues the game from its state. Uses real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::endpoint::PluginHost;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Connection, Delivery, Endpoint, Options, RakNet};
use rakwire_plugins::mesh::{JoinStatus, Mesh};
use tokio::sync::mpsc;

const PLAYERS: usize = 4;
/// The number of rounds after which a host leaves, so that each player is the host once.
const ROUNDS: u32 = 10;
const STATE: u8 = 0x86;
/// The time limit of each step.
const LIMIT: Duration = Duration::from_secs(60);
/// The interval at which a player reads messages and the host announces the next round.
const TICK: Duration = Duration::from_millis(5);

type Failure = Box<dyn std::error::Error>;

struct Player {
    number: usize,
    endpoint: Endpoint,
    mesh: SharedHook<Mesh<8>>,
    connections: Vec<Connection>,
    /// The connections that this player has opened.
    opened: (mpsc::UnboundedSender<Connection>, mpsc::UnboundedReceiver<Connection>),
    /// The state of the game.
    round: u32,
}

impl Player {
    async fn join(number: usize, friend: Option<SocketAddr>) -> Result<Self, Failure> {
        let options = Options::server(8)?;
        let mesh = SharedHook::new(Mesh::new(options.config.guid));
        let mut host = PluginHost::<_, 1>::new();
        host.attach::<RakNet>(mesh.clone())?;
        let endpoint = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?;
        let mut connections = Vec::new();
        match friend {
            Some(friend) => connections.push(endpoint.connect(friend).await?),
            None => mesh.with(Mesh::create),
        }
        Ok(Self { number, endpoint, mesh, connections, opened: mpsc::unbounded_channel(), round: 0 })
    }

    /// Connects to the peers that the mesh returns, and accepts others, until there are `others` connections.
    async fn meet_others(mut self, others: usize) -> Self {
        while !self.has_joined() || self.connections.len() < others {
            let is_waiting = !self.has_joined();
            let has_joined = |mesh: &mut Mesh<8>| (mesh.join_status() == JoinStatus::Complete).then_some(());
            tokio::select! {
                target = self.mesh.next(Mesh::poll_connect) => {
                    let (endpoint, opened) = (self.endpoint.clone(), self.opened.0.clone());
                    tokio::spawn(async move {
                        // If it fails, the mesh returns the peer again.
                        if let Ok(connection) = endpoint.connect(target.address).await {
                            let _ = opened.send(connection);
                        }
                    });
                }
                Some(connection) = self.opened.1.recv() => self.connections.push(connection),
                Some(connection) = self.endpoint.accept() => self.connections.push(connection),
                () = self.mesh.next(has_joined), if is_waiting => {}
            }
        }
        self
    }

    fn has_joined(&self) -> bool {
        self.mesh.with(|mesh| mesh.join_status()) == JoinStatus::Complete
    }

    /// Applies the host's messages, or plays as the host. Returns true when this player has finished its rounds as the
    /// host.
    fn play(&mut self) -> bool {
        // A new host first reads all that its predecessor sent, which is still in its queues.
        let is_host = self.mesh.with(|mesh| mesh.is_host());
        for connection in &self.connections {
            while let Ok(message) = connection.try_recv() {
                if let [STATE, round @ ..] = &message.bytes[..]
                    && let Ok(round) = round.try_into()
                {
                    self.round = self.round.max(u32::from_be_bytes(round));
                }
            }
        }
        self.connections.retain(|connection| connection.closed_reason().is_none());
        if !is_host {
            return false;
        }
        self.round += 1;
        let state = [&[STATE][..], &self.round.to_be_bytes()].concat();
        for connection in &self.connections {
            // A player that is leaving does not need the state.
            let _ = connection.try_send(&state, Delivery::RELIABLE_ORDERED);
        }
        println!("player {} is the host; round {}", self.number, self.round);
        self.round.is_multiple_of(ROUNDS)
    }
}

/// Adds the players in order, each through the previous one.
async fn gather() -> Result<Vec<Player>, Failure> {
    let mut players: Vec<Player> = Vec::new();
    for number in 0..PLAYERS {
        let friend = players.last().map(|player| player.endpoint.local_addr());
        let player = tokio::time::timeout(LIMIT, Player::join(number, friend)).await??;
        players.push(player);
        if number > 0 {
            let meeting: Vec<_> =
                players.drain(..).map(|player| tokio::spawn(player.meet_others(number))).collect();
            for player in meeting {
                players.push(tokio::time::timeout(LIMIT, player).await??);
            }
        }
        println!("player {number} has met all others");
        // A player that joins through a member is younger than that member. Wait until all members agree that the
        // first player is the host.
        let host = players[0].endpoint.guid();
        for player in &players {
            let agrees = |mesh: &mut Mesh<8>| (mesh.host() == Some(host)).then_some(());
            tokio::time::timeout(LIMIT, player.mesh.next(agrees)).await?;
        }
    }
    Ok(players)
}

/// Returns the hosts in order, each with the round in which it left.
async fn play(mut players: Vec<Player>) -> Vec<(usize, u32)> {
    let (mut hosts, mut ticks) = (Vec::new(), tokio::time::interval(TICK));
    while !players.is_empty() {
        ticks.tick().await;
        let left = players.iter_mut().position(Player::play);
        if let Some(at) = left {
            let player = players.remove(at);
            hosts.push((player.number, player.round));
            player.endpoint.close().await;
        }
    }
    hosts
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Failure> {
    let players = gather().await?;
    let hosts = tokio::time::timeout(LIMIT, play(players)).await?;
    let expected = [(0, 10), (1, 20), (2, 30), (3, 40)];
    if hosts != expected {
        return Err(format!("the hosts were {hosts:?}").into());
    }
    println!("each player was the host once, and no round was lost");
    Ok(())
}
