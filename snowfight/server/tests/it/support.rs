//! A server on loopback, and scripted players.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use snowfight::client::Input;
use snowfight::message::{Direction, EntityId, EntityKind, GameOver, Object, Point, Scope};
use snowfight::world::REACH;
use snowfight_server::{Host, Options, Player, PlayerError, Protocol};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// A timeout longer than any step of these tests takes on a slow machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// The point at which a thrower aims, relative to the feet of the target.
pub(crate) const CHEST: Point = Point::new(0.0, 0.0, 0.65);
/// The tests run one at a time, because players and attackers must run at the same moments.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A server that is stopped when it is dropped.
pub(crate) struct Server {
    pub(crate) game: SocketAddr,
    pub(crate) raknet: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(bots: u16) -> Self {
        Self::with(Options { seed: 11, bots, ..Options::on_loopback() }).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let host = Host::bind(&options).await.expect("loopback has free ports");
        let [game, raknet] =
            [Protocol::GameProtocol, Protocol::RakNet].map(|protocol| host.address(protocol));
        Self { game, raknet, task: tokio::spawn(host.run()) }
    }

    pub(crate) async fn join(&self, protocol: Protocol, scope: Scope) -> Player {
        let address = self.address(protocol);
        until_joined(async || Player::join(address, protocol, scope).await).await
    }

    /// Joins through a simulated network with these conditions.
    pub(crate) async fn join_through(&self, network: &str, protocol: Protocol, scope: Scope) -> Player {
        let address = self.address(protocol);
        until_joined(async || {
            let simulation = network.parse().expect("a network");
            Player::join_through(address, protocol, simulation, scope).await
        })
        .await
    }

    pub(crate) const fn address(&self, protocol: Protocol) -> SocketAddr {
        match protocol {
            Protocol::GameProtocol => self.game,
            Protocol::RakNet => self.raknet,
        }
    }
}

/// Repeats a join that timed out, because a busy machine may answer late.
async fn until_joined(join: impl AsyncFn() -> Result<Player, PlayerError>) -> Player {
    let end = Instant::now() + LIMIT;
    loop {
        match join().await {
            Err(PlayerError::Connect(_)) if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(100)).await
            }
            joined => return joined.expect("a free slot"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs one frame of both players.
pub(crate) async fn both(
    a: &mut Player,
    of_a: Input,
    b: &mut Player,
    of_b: Input,
) -> (Option<GameOver>, Option<GameOver>) {
    let (a, b) = tokio::join!(a.frame(of_a), b.frame(of_b));
    (a.expect("the server keeps running"), b.expect("the server keeps running"))
}

/// Drives one player until a condition holds, while the other player stands still.
pub(crate) async fn until(
    player: &mut Player,
    other: &mut Player,
    mut input: impl FnMut(&Player) -> Input,
    done: impl Fn(&Player) -> bool,
) {
    repeat("the condition holds", async || {
        if done(player) || player.result().is_some() {
            return true;
        }
        let wanted = input(player);
        both(player, wanted, other, Input::default()).await;
        false
    })
    .await;
}

/// Repeats frames until `frame` returns true.
pub(crate) async fn repeat(what: &str, mut frame: impl AsyncFnMut() -> bool) {
    let frames = async {
        while !frame().await {
            // A player with late frames would otherwise never let other tasks run.
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, frames).await.unwrap_or_else(|_| panic!("never: {what}"));
}

pub(crate) fn object(player: &Player, id: EntityId) -> Option<Object> {
    match player.view().entity(id) {
        Some(EntityKind::Object(object)) => Some(*object),
        Some(EntityKind::Player(_) | EntityKind::Dead) | None => None,
    }
}

/// Walks to the next object and breaks it loose.
pub(crate) async fn gather(player: &mut Player, other: &mut Player) -> EntityId {
    let input = |player: &Player| {
        let me = player.me().expect("the player is alive");
        let objects = player.view().entities().iter().filter_map(|entity| match entity.kind {
            EntityKind::Object(object) if object.durability.is_some() => Some((entity.id, object.position)),
            EntityKind::Object(_) | EntityKind::Player(_) | EntityKind::Dead => None,
        });
        let distance = |position: Point| (position - me.position).length();
        let (id, place) =
            objects.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1))).expect("at least one object");
        if distance(place) < 0.9 * REACH {
            return Input { breaking: Some(id), ..Input::default() };
        }
        Input { movement: towards(place - me.position), ..Input::default() }
    };
    until(player, other, input, |player| player.me().is_some_and(|me| me.holding.is_some())).await;
    player.me().and_then(|me| me.holding).expect("the player holds an object")
}

/// Walks toward the other player, which stands still, until the distance is less than `distance` tiles.
pub(crate) async fn approach(player: &mut Player, other: &mut Player, distance: f32) {
    let goal = other.id();
    let way = |player: &Player| {
        let (_, body) = player.view().player(goal)?;
        Some(body.position - player.me()?.position)
    };
    let input =
        |player: &Player| Input { movement: towards(way(player).unwrap_or_default()), ..Input::default() };
    until(player, other, input, |player| way(player).is_some_and(|way| way.length() < distance)).await;
}

fn towards(way: Point) -> Direction {
    let along = |distance: f32, forward, back| {
        if distance > 0.1 {
            forward
        } else if distance < -0.1 {
            back
        } else {
            Direction::NONE
        }
    };
    along(way.x, Direction::EAST, Direction::WEST) | along(way.y, Direction::NORTH, Direction::SOUTH)
}
