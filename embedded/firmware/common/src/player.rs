//! A player of the snowball fight over the Game Protocol. It reads the server's messages in place, from the pieces in
//! which they arrived.

use core::net::SocketAddrV4;

use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_time::{Duration, Instant, Ticker, Timer, with_timeout};
use rakwire::game_protocol::{
    Config, ConnectionStats, DisconnectReason, Redial, Reliability, ResendInterval, SendError,
};
use rakwire_embassy::game_protocol::{Connection, Handle, Received};
use snowfight::client::{Client, Update, View};
use snowfight::message::{Delivery, GameOver, PlayerId, Point, Scope};
use snowfight::wanderer::{FRAMES_PER_SECOND, Wanderer};

use crate::discovery::Discovery;
use crate::heartbeat::Heartbeat;
use crate::network;
use crate::panel::{Health, Panel};

/// The pause between two games.
const PAUSE: Duration = Duration::from_secs(1);
/// Time limit for the server's answer to a join request.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the acknowledgement of the last messages.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The player's view of the world: 300 objects, and some players.
pub type World = View<384>;

/// Returns the configuration of the Game Protocol for a board.
#[must_use]
pub fn config(entropy: [u8; 32]) -> Config {
    let mut config = Config::new(entropy);
    config.timeout = core::time::Duration::from_secs(5);
    config.handshake_timeout = core::time::Duration::from_secs(5);
    // On a local network the challenge arrives within this time, so the client rarely repeats its request, which an
    // original server would ignore.
    config.redial = Redial::SamePort(core::time::Duration::from_millis(500));
    config.resend_interval = ResendInterval::MEASURED;
    config
}

/// The report of a game.
#[derive(Clone, Copy, Debug, Default, defmt::Format)]
pub struct Report {
    /// Frames played.
    pub frames: u32,
    /// Snapshots received.
    pub snapshots: u32,
    /// The maximum number of entities in the view.
    pub entities: u32,
    /// The largest distance from the start, in tiles.
    pub walked: f32,
    /// Throws.
    pub throws: u32,
    /// Pings that the server answered.
    pub pongs: u32,
    /// Malformed messages.
    pub malformed: u32,
    /// Messages sent.
    pub sent: u32,
    /// Resent chunks.
    pub resent: u32,
    /// Chunks that were sent and not acknowledged.
    pub unacknowledged: u32,
    /// The smoothed round-trip time in microseconds; 0 before the first measurement.
    pub round_trip_us: u32,
}

impl Report {
    /// Copies the counters of the connection.
    fn update(&mut self, stats: &ConnectionStats) {
        let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
        self.sent = small(stats.messages_sent);
        self.resent = small(stats.chunks_resent);
        self.unacknowledged = stats.in_flight + stats.waiting;
        self.round_trip_us = u32::try_from(stats.round_trip.as_micros()).unwrap_or(u32::MAX);
    }
}

/// The reason why a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, defmt::Format)]
pub enum End {
    /// All requested frames were played.
    Enough,
    /// The player won.
    Won,
    /// The player lost.
    Lost,
    /// The connection was closed.
    Disconnected(#[defmt(Display2Format)] DisconnectReason),
    /// The server did not answer the join request.
    JoinTimeout,
}

impl From<GameOver> for End {
    fn from(result: GameOver) -> Self {
        match result {
            GameOver::Winner => Self::Won,
            GameOver::Loser => Self::Lost,
        }
    }
}

/// A board that plays.
pub struct Board<'a, P> {
    /// The Game Protocol.
    pub handle: Handle<'a>,
    /// The network.
    pub stack: Stack<'a>,
    /// The method of finding the server.
    pub discovery: Discovery,
    /// The heartbeat for the watchdog.
    pub heartbeat: &'a Heartbeat,
    /// The button and the lights.
    pub panel: P,
    /// The player's view of the world.
    pub world: &'a mut World,
}

impl<P: Panel> Board<'_, P> {
    /// Plays game after game, and recovers from failures of the network, the server and the connection.
    pub async fn run(mut self) -> ! {
        loop {
            self.session(u32::MAX).await;
        }
    }

    /// Finds the server and plays one game of at most `frames` frames. Returns `None` if no game was started.
    pub async fn session(&mut self, frames: u32) -> Option<(Report, End)> {
        let heartbeat = self.heartbeat;
        heartbeat.while_waiting(network::wait_for_address(self.stack)).await;
        let played = match heartbeat.while_waiting(self.discovery.find(self.stack)).await {
            Some(server) => self.visit(server, frames).await,
            None => None,
        };
        self.panel.show(Health::default());
        heartbeat.while_waiting(Timer::after(PAUSE)).await;
        played
    }

    async fn visit(&mut self, server: SocketAddrV4, frames: u32) -> Option<(Report, End)> {
        let shown = defmt::Display2Format(&server);
        let connection = match self.heartbeat.while_waiting(self.handle.connect(server.into())).await {
            Ok(connection) => connection,
            Err(error) => {
                defmt::error!("cannot join {}: {}", shown, error);
                return None;
            }
        };
        defmt::info!("connected with {}", shown);
        let mut game = Game::new(&connection, self.world);
        let end = game.play(&mut self.panel, self.heartbeat, frames).await;
        let report = game.report;
        defmt::info!("{}; {}", end, report);
        if !matches!(end, End::Disconnected(_)) {
            self.heartbeat.while_waiting(connection.disconnect()).await;
        }
        Some((report, end))
    }
}

struct Game<'a, 'd> {
    connection: &'a Connection<'d>,
    client: Client,
    world: &'a mut World,
    wanderer: Wanderer,
    health: Health,
    start: Option<Point>,
    report: Report,
}

impl<'a, 'd> Game<'a, 'd> {
    fn new(connection: &'a Connection<'d>, world: &'a mut World) -> Self {
        let mut client = Client::with_scope(Scope::Changes);
        client.handle_connected();
        let (wanderer, health, report) = (Wanderer::default(), Health::default(), Report::default());
        Self { connection, client, world, wanderer, health, start: None, report }
    }

    async fn play(&mut self, panel: &mut impl Panel, heartbeat: &Heartbeat, frames: u32) -> End {
        let mut ticker = Ticker::every(Duration::from_hz(FRAMES_PER_SECOND.into()));
        let began = Instant::now();
        while self.report.frames < frames {
            let ended = match select(ticker.next(), self.connection.recv()).await {
                Either::First(()) => {
                    heartbeat.beat();
                    self.frame(panel);
                    None
                }
                Either::Second(Some(message)) => {
                    self.handle_message(&message);
                    self.client.result().map(End::from)
                }
                Either::Second(None) => Some(self.disconnected()),
            };
            if let Some(end) = ended {
                return end;
            }
            if self.client.player().is_none() && began.elapsed() > JOIN_TIMEOUT {
                return End::JoinTimeout;
            }
        }
        // Wait until the last messages are acknowledged.
        let _ = with_timeout(FLUSH_TIMEOUT, heartbeat.while_waiting(self.flush())).await;
        End::Enough
    }

    /// Runs a frame: chooses an action, and sends the input.
    fn frame(&mut self, panel: &mut impl Panel) {
        if let Some(player) = self.client.player() {
            let input = self.wanderer.decide(self.world.entities(), player, panel.button());
            self.report.throws += u32::from(input.throw.is_some());
            self.report.frames += 1;
            self.client.handle_frame(now(), input);
            self.report_own_state(player);
        }
        panel.show(self.health);
        if let Some(stats) = self.connection.stats() {
            self.report.update(&stats);
        }
        let mut buffer = [0; 32];
        while let Some((delivery, message)) = self.client.poll_message(&mut buffer) {
            let reliability = match delivery {
                Delivery::Reliable => Reliability::Reliable,
                Delivery::Unreliable => Reliability::Unreliable,
            };
            // The client repeats actions, so a message that cannot be queued is dropped. `recv` reports when the
            // connection is closed.
            if self.connection.try_send(message, reliability) == Err(SendError::NotConnected) {
                break;
            }
        }
    }

    fn report_own_state(&mut self, player: PlayerId) {
        let me = self.world.player(player).map(|(_, me)| me);
        let health = me.map_or_else(Health::default, |me| Health { now: me.health, max: me.max_health });
        if health != self.health {
            defmt::info!("health: {} of {}", health.now, health.max);
            self.health = health;
        }
        if let Some(me) = me {
            let start = *self.start.get_or_insert(me.position);
            self.report.walked = self.report.walked.max((me.position - start).length());
        }
    }

    /// Handles a message in place.
    fn handle_message(&mut self, message: &Received<'_>) {
        let Self { client, world, report, .. } = self;
        message.read(|bytes| match client.handle_message(now(), &bytes) {
            Ok(Update::Joined { player, entities }) => {
                world.update(&entities);
                defmt::info!("joined as player {} of a world of {} entities", player.0, entities.len());
            }
            Ok(Update::Snapshot { time, entities, scope }) => {
                world.take(time, &entities, scope);
                report.snapshots += 1;
            }
            Ok(Update::Pong { .. }) => report.pongs += 1,
            Ok(Update::Rejected(why)) => {
                defmt::error!("the server rejected the player: {}", defmt::Display2Format(&why))
            }
            Ok(Update::Over(_) | Update::Ignored) => {}
            Err(_) => report.malformed += 1,
        });
        report.entities = report.entities.max(u32::try_from(world.entities().len()).unwrap_or(u32::MAX));
    }

    /// Waits until all reliable messages are acknowledged.
    async fn flush(&mut self) {
        while let Some(stats) = self.connection.stats() {
            self.report.update(&stats);
            if self.report.unacknowledged == 0 {
                return;
            }
            let _ = with_timeout(Duration::from_millis(10), self.connection.recv()).await;
        }
    }

    fn disconnected(&self) -> End {
        End::Disconnected(self.connection.closed_reason().unwrap_or(DisconnectReason::Local))
    }
}

fn now() -> rakwire::Instant {
    rakwire::Instant::from_micros(Instant::now().as_micros())
}
