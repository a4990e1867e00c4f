//! Players who live in the server, and play through the same messages as all others.

use rakwire::Instant;
use snowfight::bot;
use snowfight::client::{Client, Input};
use snowfight::message::{Entity, Point};
use snowfight::server::Server;
use snowfight::world::TICKS_PER_SECOND;

use crate::host::Key;

/// How long a bot waits with something in its hands before it throws, so that people can see it coming.
const AIMING: u32 = 3 * TICKS_PER_SECOND;
/// How long a bot that has lost stays away.
const AWAY: u32 = 4 * TICKS_PER_SECOND;
/// How far off the mark a throw may come down, in tiles.
const MISS: f32 = 1.4;

/// One of them.
#[derive(Debug)]
struct Bot {
    key: Key,
    client: Client,
    /// Ticks until it does the next thing.
    rest: u32,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Away,
    Connected,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Bots {
    bots: Vec<Bot>,
    /// For throws that miss; nobody has to guess it.
    random: u32,
}

impl Bots {
    pub(crate) fn new(count: u16) -> Self {
        let bots = (0..count).map(|number| Bot {
            key: Key::Bot(number),
            client: Client::new(),
            rest: u32::from(number) * TICKS_PER_SECOND / 4,
            presence: Presence::Away,
        });
        Self { bots: bots.collect(), random: 0x9E37_79B9 }
    }

    /// All bots say what they want, before a tick.
    pub(crate) fn act(&mut self, now: Instant, server: &mut Server<Key>) {
        if self.bots.is_empty() {
            return;
        }
        let entities = server.world().entities();
        let random = &mut self.random;
        for bot in &mut self.bots {
            match bot.presence {
                Presence::Away => bot.come(server),
                Presence::Connected => bot.play(now, &entities, random),
            }
            bot.speak(server);
        }
    }

    /// The server says something to a bot.
    pub(crate) fn hear(&mut self, now: Instant, key: Key, payload: &[u8]) {
        if let Some(bot) = self.bots.iter_mut().find(|bot| bot.key == key) {
            // Of a server that lives beside it nothing is unreadable.
            let _ = bot.client.handle_message(now, &payload);
        }
    }

    /// The server has ended the connection of a bot.
    pub(crate) fn leave(&mut self, key: Key) {
        if let Some(bot) = self.bots.iter_mut().find(|bot| bot.key == key) {
            *bot = Bot { key, client: Client::new(), rest: AWAY, presence: Presence::Away };
        }
    }
}

impl Bot {
    fn come(&mut self, server: &mut Server<Key>) {
        if self.rest > 0 {
            self.rest -= 1;
        } else if server.handle_connected(self.key).is_ok() {
            self.client.handle_connected();
            self.presence = Presence::Connected;
        }
    }

    fn play(&mut self, now: Instant, entities: &[Entity], random: &mut u32) {
        let Some(player) = self.client.player() else { return };
        let mut input = bot::decide(entities, player);
        match input.throw {
            None => self.rest = AIMING,
            Some(_) if self.rest > 0 => {
                self.rest -= 1;
                input = Input::default();
            }
            Some(target) => input.throw = Some(target + Point::new(astray(random), astray(random), 0.0)),
        }
        self.client.handle_frame(now, input);
    }

    fn speak(&mut self, server: &mut Server<Key>) {
        let mut buffer = [0; 64];
        while let Some((_, message)) = self.client.poll_message(&mut buffer) {
            server.handle_message(self.key, &message);
        }
    }
}

/// Between -[`MISS`] and [`MISS`] (xorshift).
fn astray(random: &mut u32) -> f32 {
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    let share = f32::from((*random >> 16) as u16) / f32::from(u16::MAX);
    (2.0 * share - 1.0) * MISS
}

#[cfg(test)]
mod tests {
    use snowfight::server::{MAX_MESSAGE, Output};

    use super::*;

    /// Bots come, play, lose or win, and come again.
    #[test]
    fn bots_keep_the_world_alive() {
        let mut server = Server::new(3);
        let mut bots = Bots::new(3);
        let mut buffer = vec![0; MAX_MESSAGE];
        let mut ends = 0;
        for tick in 0..60 * 600_u64 {
            let now = Instant::from_micros(tick * 16_667);
            bots.act(now, &mut server);
            server.tick();
            while let Some(output) = server.poll_output(&mut buffer) {
                match output {
                    Output::Send { to, payload, .. } => bots.hear(now, to, payload),
                    Output::Close { connection } => {
                        ends += 1;
                        bots.leave(connection);
                    }
                }
            }
            if ends == 4 && server.world().players().count() == 3 {
                return;
            }
        }
        panic!("{ends} games ended in ten minutes");
    }
}
