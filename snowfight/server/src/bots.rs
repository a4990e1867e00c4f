//! Bots that run inside the server and use the same messages as remote players.

use rakwire::Instant;
use snowfight::bot;
use snowfight::client::{Client, Input, Update};
use snowfight::message::{Entity, Point};
use snowfight::server::Server;
use snowfight::world::TICKS_PER_SECOND;

use crate::key::Key;

/// The time for which a bot aims before a throw, in ticks, so that human players can react.
const AIMING_TICKS: u32 = 3 * TICKS_PER_SECOND;
/// The time between the end of a bot's game and its next attempt to join, in ticks.
const AWAY_TICKS: u32 = 4 * TICKS_PER_SECOND;
/// The maximum error of a throw along each axis, in tiles.
const MAX_ERROR: f32 = 1.4;

#[derive(Debug)]
struct Bot {
    key: Key,
    client: Client,
    /// Ticks until the bot's next action.
    wait: u32,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Away,
    Connected,
    /// The server was full. The bot disconnects before the next tick and tries again later.
    Rejected,
}

/// All bots of a server.
#[derive(Debug)]
pub(crate) struct Bots {
    bots: Vec<Bot>,
    /// The state of the random number generator for throw errors. It need not be unpredictable.
    random: u32,
}

impl Bots {
    pub(crate) fn new(count: u16) -> Self {
        let bots =
            (0..count).map(|number| Bot::away(Key::Bot(number), u32::from(number) * TICKS_PER_SECOND / 4));
        Self { bots: bots.collect(), random: 0x9E37_79B9 }
    }

    /// Runs all bots before a tick.
    pub(crate) fn act(&mut self, now: Instant, server: &mut Server<Key>) {
        if self.bots.is_empty() {
            return;
        }
        let entities = server.world().entities();
        let random = &mut self.random;
        for bot in &mut self.bots {
            match bot.presence {
                Presence::Away => bot.connect(server),
                Presence::Connected => bot.play(now, &entities, random),
                Presence::Rejected => bot.disconnect(server),
            }
            bot.send(server);
        }
    }

    /// Handles a message from the server to a bot.
    pub(crate) fn handle_message(&mut self, now: Instant, key: Key, payload: &[u8]) {
        if let Some(bot) = self.bots.iter_mut().find(|bot| bot.key == key) {
            // The server runs in this process, so its messages are never malformed.
            if let Ok(Update::Rejected(_)) = bot.client.handle_message(now, &payload) {
                bot.presence = Presence::Rejected;
            }
        }
    }

    /// Handles the closing of a bot's connection by the server.
    pub(crate) fn handle_disconnected(&mut self, key: Key) {
        if let Some(bot) = self.bots.iter_mut().find(|bot| bot.key == key) {
            *bot = Bot::away(key, AWAY_TICKS);
        }
    }
}

impl Bot {
    const fn away(key: Key, wait: u32) -> Self {
        Self { key, client: Client::new(), wait, presence: Presence::Away }
    }

    fn disconnect(&mut self, server: &mut Server<Key>) {
        server.handle_disconnected(self.key);
        *self = Self::away(self.key, AWAY_TICKS);
    }

    fn connect(&mut self, server: &mut Server<Key>) {
        if self.wait > 0 {
            self.wait -= 1;
        } else if server.handle_connected(self.key).is_ok() {
            self.client.handle_connected();
            self.presence = Presence::Connected;
        }
    }

    fn play(&mut self, now: Instant, entities: &[Entity], random: &mut u32) {
        let Some(player) = self.client.player() else { return };
        let mut input = bot::decide(entities, player);
        match input.throw {
            None => self.wait = AIMING_TICKS,
            Some(_) if self.wait > 0 => {
                self.wait -= 1;
                input = Input::default();
            }
            Some(target) => {
                input.throw = Some(target + Point::new(random_error(random), random_error(random), 0.0))
            }
        }
        self.client.handle_frame(now, input);
    }

    fn send(&mut self, server: &mut Server<Key>) {
        let mut buffer = [0; 64];
        while let Some((_, message)) = self.client.poll_message(&mut buffer) {
            server.handle_message(self.key, &message);
        }
    }
}

/// Returns a random number between -[`MAX_ERROR`] and [`MAX_ERROR`] (xorshift).
fn random_error(random: &mut u32) -> f32 {
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    let share = f32::from((*random >> 16) as u16) / f32::from(u16::MAX);
    (2.0 * share - 1.0) * MAX_ERROR
}

#[cfg(test)]
mod tests {
    use rakwire::codec::rabbit::to_vec;
    use snowfight::message::{Channel, ClientMessage, Request, RequestKind};
    use snowfight::server::{MAX_MESSAGE, Output};
    use snowfight::world::MAX_PLAYERS;

    use super::*;

    /// Runs a tick of a server and its bots; returns the number of bots that were disconnected.
    fn pass(server: &mut Server<Key>, bots: &mut Bots, buffer: &mut [u8], tick: u64) -> u32 {
        let now = Instant::from_micros(tick * 16_667);
        bots.act(now, server);
        server.tick();
        let mut ends = 0;
        while let Some(output) = server.poll_output(buffer) {
            match output {
                Output::Send { to, payload, .. } => bots.handle_message(now, to, payload),
                Output::Close { connection } => {
                    ends += 1;
                    bots.handle_disconnected(connection);
                }
            }
        }
        ends
    }

    /// A bot that was rejected by a full server joins once a slot is free.
    #[test]
    fn rejected_bot_tries_again() {
        let mut server = Server::new(3);
        let init = ClientMessage::Request(Request { channel: Channel(0), kind: RequestKind::Init });
        let init = to_vec(&init).unwrap();
        let guests = (0..MAX_PLAYERS as u64).map(Key::Peer);
        for guest in guests.clone() {
            server.handle_connected(guest).unwrap();
            server.handle_message(guest, &init.as_slice());
        }
        let mut bots = Bots::new(1);
        let mut buffer = vec![0; MAX_MESSAGE];
        (0..10).for_each(|tick| {
            pass(&mut server, &mut bots, &mut buffer, tick);
        });
        assert_eq!(bots.bots[0].presence, Presence::Away);
        guests.for_each(|guest| server.handle_disconnected(guest));
        let joins = (10..20 + u64::from(AWAY_TICKS)).any(|tick| {
            pass(&mut server, &mut bots, &mut buffer, tick);
            server.world().players().count() == 1
        });
        assert!(joins);
    }

    /// Bots join, play until they lose or win, and join again.
    #[test]
    fn bots_join_again_after_a_game() {
        let mut server = Server::new(3);
        let mut bots = Bots::new(3);
        let mut buffer = vec![0; MAX_MESSAGE];
        let mut ends = 0;
        for tick in 0..60 * 600_u64 {
            ends += pass(&mut server, &mut bots, &mut buffer, tick);
            if ends == 4 && server.world().players().count() == 3 {
                return;
            }
        }
        panic!("{ends} games ended in ten minutes");
    }
}
