//! A lobby with two teams, over real sockets. Players ask a server for a slot, and one of them joins when others are
//! already ready. The round begins when both teams are ready.

use std::collections::HashMap;
use std::time::Duration;

use rakwire::endpoint::{ConnectionId, Plugin, PluginHost};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Connection, Delivery, Endpoint, Options, RakNet};
use rakwire_plugins::calls::{Function, Handler, Refusal, RemoteCalls};
use rakwire_plugins::ready::{EventId, ReadyEvents};

/// The events of the teams. The server waits for the players of each team, and each player waits for the server.
const TEAMS: [EventId; 2] = [EventId(1), EventId(2)];
/// The time limit of an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error>;
type Ready = SharedHook<ReadyEvents<4, 8>>;
type Calls<C> = SharedHook<RemoteCalls<RakNet, C, 4, 16, 256>>;

/// Gives the caller a slot in the smaller team, and answers with the number of that team.
struct Join;

impl Function for Join {
    const NAME: &'static str = "join";
    type Arguments<'a> = ();
    type Answer<'a> = u8;
}

/// The team of each player.
struct Lobby {
    teams: HashMap<ConnectionId, u8>,
    ready: Ready,
}

impl Lobby {
    /// Removes the players that have left. The events of their teams no longer wait for them.
    fn forget_gone(&mut self) {
        let Self { teams, ready } = self;
        let is_here = |id: ConnectionId, team: u8| {
            ready.with(|ready| ready.status_of(TEAMS[usize::from(team)], id)).is_some()
        };
        teams.retain(|id, team| is_here(*id, *team));
    }

    fn size(&self, team: u8) -> usize {
        self.teams.values().filter(|other| **other == team).count()
    }
}

impl Handler<Self, Lobby> for Join {
    fn is_allowed(_: &Lobby, _: ConnectionId) -> bool {
        true
    }

    fn handle(lobby: &mut Lobby, caller: ConnectionId, (): ()) -> Result<u8, Refusal> {
        lobby.forget_gone();
        let smaller = u8::from(lobby.size(1) < lobby.size(0));
        let team = lobby.teams.get(&caller).copied().unwrap_or(smaller);
        match lobby.ready.with(|ready| ready.wait_for(TEAMS[usize::from(team)], caller)) {
            Ok(true) => {
                lobby.teams.insert(caller, team);
                Ok(team)
            }
            _ => Err(Refusal::Failed(1)),
        }
    }
}

/// Binds an endpoint with both plugins.
async fn bind<C: Send + 'static>(
    options: Options,
    ready: &Ready,
    calls: &Calls<C>,
) -> Result<Endpoint, Failure> {
    let mut host = PluginHost::<Box<dyn Plugin<RakNet> + Send>, 2>::new();
    host.attach::<RakNet>(Box::new(ready.clone()))?;
    host.attach::<RakNet>(Box::new(calls.clone()))?;
    Ok(Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?)
}

struct Player {
    endpoint: Endpoint,
    ready: Ready,
    team: EventId,
    /// Both ends of the player's connection, which stays open while the player exists.
    _connections: [Connection; 2],
}

impl Player {
    async fn join(server: &Endpoint) -> Result<Self, Failure> {
        let (ready, calls) = (Ready::new(ReadyEvents::new()), Calls::new(RemoteCalls::new(())));
        let endpoint = bind(Options::client()?, &ready, &calls).await?;
        let here = endpoint.connect(server.local_addr()).await?;
        let there = server.accept().await.ok_or("the server is closed")?;
        let delivery = Delivery::RELIABLE_ORDERED;
        calls.with(|calls| calls.call::<Join>(here.id(), &(), TIMEOUT, delivery))?;
        endpoint.wake();
        let number = calls.next(RemoteCalls::poll_finished).await.answer::<Join>()?;
        let team = *TEAMS.get(usize::from(number)).ok_or("there are two teams")?;
        ready.with(|ready| ready.wait_for(team, here.id()))?;
        Ok(Self { endpoint, ready, team, _connections: [here, there] })
    }

    fn is_ready(&self) -> Result<(), Failure> {
        self.ready.with(|ready| ready.set(self.team, true))?;
        self.endpoint.wake();
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Failure> {
    let ready = Ready::new(ReadyEvents::new());
    let mut calls = RemoteCalls::new(Lobby { teams: HashMap::new(), ready: ready.clone() });
    calls.register::<Join, Join>()?;
    let calls = Calls::new(calls);
    let server = bind(Options::server(8)?, &ready, &calls).await?;
    let completed = |team| ready.with(|ready| ready.is_completed(team));

    let mut players = Vec::new();
    for _ in 0..4 {
        players.push(Player::join(&server).await?);
    }
    // The server itself is ready from the start.
    for team in TEAMS {
        ready.with(|ready| ready.set(team, true))?;
    }
    server.wake();
    let [first, second] = TEAMS;
    for player in players.iter().filter(|player| player.team == first) {
        player.is_ready()?;
    }
    ready.next(|ready| ready.is_completed(first).then_some(())).await;
    println!("the first team is ready, and the second one is: {}", completed(second));

    let late = Player::join(&server).await?;
    println!("a player has joined late; the first team is ready: {}", completed(late.team));
    if late.team != first || completed(first) {
        return Err("a late player must be waited for".into());
    }
    late.is_ready()?;
    for player in players.iter().filter(|player| player.team == second) {
        player.is_ready()?;
    }
    ready.next(|ready| TEAMS.iter().all(|team| ready.is_completed(*team)).then_some(())).await;
    let sizes = calls.with(|calls| [0, 1].map(|team| calls.context.size(team)));
    println!("the round begins: {} against {} players", sizes[0], sizes[1]);
    Ok(())
}
