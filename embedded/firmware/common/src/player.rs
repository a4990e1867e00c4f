//! A player of the snowball fight: the Game Protocol carries its messages, and what the server tells is read where it
//! lies, in the pieces in which it arrived.

use core::net::SocketAddrV4;

use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_time::{Duration, Instant, Ticker, Timer, with_timeout};
use rakwire::game_protocol::{
    Config, ConnectionStats, DisconnectReason, Redial, Reliability, Resend, SendError,
};
use rakwire_embassy::game::{Connection, Handle, Received};
use snowfight::client::{Client, Update, View};
use snowfight::message::{Delivery, GameOver, PlayerId, Point, Scope};
use snowfight::wanderer::{FRAMES_PER_SECOND, Wanderer};

use crate::network;
use crate::panel::{Health, Panel};
use crate::pulse::Pulse;
use crate::search::Search;

/// Between two games.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a server may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what was said last may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The world as the player knows it: 300 objects, and some players.
pub type World = View<384>;

/// How the Game Protocol behaves on a board.
#[must_use]
pub fn config(entropy: [u8; 32]) -> Config {
    let mut config = Config::new(entropy);
    config.timeout = core::time::Duration::from_secs(5);
    config.handshake_timeout = core::time::Duration::from_secs(5);
    // On a local network a challenge comes in less, so that servers of the original hear nothing twice.
    config.redial = Redial::SamePort(core::time::Duration::from_millis(500));
    config.resend = Resend::ROUND_TRIP;
    config
}

/// What happened in a game.
#[derive(Clone, Copy, Debug, Default, defmt::Format)]
pub struct Report {
    /// Frames played.
    pub frames: u32,
    /// Snapshots received.
    pub snapshots: u32,
    /// Entities of which the player knew at the most.
    pub entities: u32,
    /// How far it got from where it began, in tiles.
    pub walked: f32,
    /// What it threw.
    pub throws: u32,
    /// Pings that the server answered.
    pub pongs: u32,
    /// Messages that could not be read.
    pub unreadable: u32,
    /// Messages sent.
    pub said: u32,
    /// Chunks of them that were sent again.
    pub resent: u32,
    /// Chunks that have not arrived yet, as far as is known.
    pub under_way: u32,
    /// The round-trip time in microseconds, smoothed; 0 before it is known.
    pub round_trip_us: u32,
}

impl Report {
    /// Takes the counters of the connection, while it is open.
    fn take(&mut self, stats: &ConnectionStats) {
        let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
        self.said = small(stats.messages_sent);
        self.resent = small(stats.chunks_resent);
        self.under_way = stats.in_flight + stats.waiting;
        self.round_trip_us = u32::try_from(stats.round_trip.as_micros()).unwrap_or(u32::MAX);
    }
}

/// Why a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, defmt::Format)]
pub enum End {
    /// The player has played as many frames as it should.
    Enough,
    /// It won.
    Won,
    /// It lost.
    Lost,
    /// The connection ended.
    Disconnected(#[defmt(Display2Format)] DisconnectReason),
    /// The server does not let the player in.
    NotLetIn,
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
    /// Where the server is.
    pub search: Search,
    /// Tells the watchdog that the program lives.
    pub pulse: &'a Pulse,
    /// Button and lights.
    pub panel: P,
    /// What the player knows.
    pub world: &'a mut World,
}

impl<P: Panel> Board<'_, P> {
    /// Plays for ever: the network, the server and the connection may go and come back.
    pub async fn run(mut self) -> ! {
        loop {
            self.session(u32::MAX).await;
        }
    }

    /// Finds the server and plays once, at most so many frames; nothing if it did not come to a game.
    pub async fn session(&mut self, frames: u32) -> Option<(Report, End)> {
        let pulse = self.pulse;
        pulse.while_waiting(network::wait_for_address(self.stack)).await;
        let played = match pulse.while_waiting(self.search.find(self.stack)).await {
            Some(server) => self.visit(server, frames).await,
            None => None,
        };
        self.panel.show(Health::default());
        pulse.while_waiting(Timer::after(PAUSE)).await;
        played
    }

    async fn visit(&mut self, server: SocketAddrV4, frames: u32) -> Option<(Report, End)> {
        let shown = defmt::Display2Format(&server);
        let connection = match self.pulse.while_waiting(self.handle.connect(server.into())).await {
            Ok(connection) => connection,
            Err(error) => {
                defmt::error!("cannot join {}: {}", shown, error);
                return None;
            }
        };
        defmt::info!("connected with {}", shown);
        let mut game = Game::new(&connection, self.world);
        let end = game.play(&mut self.panel, self.pulse, frames).await;
        let report = game.report;
        defmt::info!("{}; {}", end, report);
        if !matches!(end, End::Disconnected(_)) {
            self.pulse.while_waiting(connection.disconnect()).await;
        }
        Some((report, end))
    }
}

/// One game.
struct Game<'a, 'd> {
    connection: &'a Connection<'d>,
    client: Client,
    world: &'a mut World,
    mind: Wanderer,
    health: Health,
    start: Option<Point>,
    report: Report,
}

impl<'a, 'd> Game<'a, 'd> {
    fn new(connection: &'a Connection<'d>, world: &'a mut World) -> Self {
        let mut client = Client::with_scope(Scope::Changes);
        client.handle_connected();
        let (mind, health, report) = (Wanderer::default(), Health::default(), Report::default());
        Self { connection, client, world, mind, health, start: None, report }
    }

    async fn play(&mut self, panel: &mut impl Panel, pulse: &Pulse, frames: u32) -> End {
        let mut ticker = Ticker::every(Duration::from_hz(FRAMES_PER_SECOND.into()));
        let began = Instant::now();
        while self.report.frames < frames {
            let ended = match select(ticker.next(), self.connection.recv()).await {
                Either::First(()) => {
                    pulse.beat();
                    self.frame(panel);
                    None
                }
                Either::Second(Some(message)) => {
                    self.hear(&message);
                    self.client.result().map(End::from)
                }
                Either::Second(None) => Some(self.disconnected()),
            };
            if let Some(end) = ended {
                return end;
            }
            if self.client.player().is_none() && began.elapsed() > PATIENCE {
                return End::NotLetIn;
            }
        }
        // What was said last shall arrive, too.
        let _ = with_timeout(LAST_WORDS, pulse.while_waiting(self.settle())).await;
        End::Enough
    }

    /// Says what the player wants.
    fn frame(&mut self, panel: &mut impl Panel) {
        if let Some(player) = self.client.player() {
            let input = self.mind.decide(self.world.entities(), player, panel.button());
            self.report.throws += u32::from(input.throw.is_some());
            self.report.frames += 1;
            self.client.handle_frame(now(), input);
            self.look_at_myself(player);
        }
        panel.show(self.health);
        if let Some(stats) = self.connection.stats() {
            self.report.take(&stats);
        }
        let mut buffer = [0; 32];
        while let Some((delivery, message)) = self.client.poll_message(&mut buffer) {
            let reliability = match delivery {
                Delivery::Reliable => Reliability::Reliable,
                Delivery::Unreliable => Reliability::Unreliable,
            };
            // Actions are said again and again; the reader of the connection learns that it has ended.
            if self.connection.try_send(message, reliability) == Err(SendError::NotConnected) {
                break;
            }
        }
    }

    fn look_at_myself(&mut self, player: PlayerId) {
        let me = self.world.player(player).map(|(_, me)| me);
        let health = me.map_or_else(Health::default, |me| Health { now: me.health, whole: me.max_health });
        if health != self.health {
            defmt::info!("health: {} of {}", health.now, health.whole);
            self.health = health;
        }
        if let Some(me) = me {
            let start = *self.start.get_or_insert(me.position);
            self.report.walked = self.report.walked.max((me.position - start).length());
        }
    }

    /// Reads a message where it lies.
    fn hear(&mut self, message: &Received<'_>) {
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
            Ok(Update::Refused(why)) => defmt::error!("the server refuses: {}", defmt::Display2Format(&why)),
            Ok(Update::Over(_) | Update::Ignored) => {}
            Err(_) => report.unreadable += 1,
        });
        report.entities = report.entities.max(u32::try_from(world.entities().len()).unwrap_or(u32::MAX));
    }

    /// Waits until everything reliable has arrived.
    async fn settle(&mut self) {
        while let Some(stats) = self.connection.stats() {
            self.report.take(&stats);
            if self.report.under_way == 0 {
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
