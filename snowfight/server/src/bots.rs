//! Players who live in the server, and play through the same messages as all others.

use rakwire::Instant;
use snowfight::bot;
use snowfight::client::{Client, Input, News};
use snowfight::message::{Entity, Point};
use snowfight::server::Server;
use snowfight::world::TICKS_PER_SECOND;

use crate::key::Key;

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
    /// The server has no room; it goes before the next tick, and tries again later.
    Refused,
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
        let bots =
            (0..count).map(|number| Bot::away(Key::Bot(number), u32::from(number) * TICKS_PER_SECOND / 4));
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
                Presence::Refused => bot.go(server),
            }
            bot.speak(server);
        }
    }

    /// The server says something to a bot.
    pub(crate) fn hear(&mut self, now: Instant, key: Key, payload: &[u8]) {
        if let Some(bot) = self.bots.iter_mut().find(|bot| bot.key == key) {
            // Of a server that lives beside it nothing is unreadable.
            if let Ok(News::Refused(_)) = bot.client.handle_message(now, &payload) {
                bot.presence = Presence::Refused;
            }
        }
    }

    /// The server has ended the connection of a bot.
    pub(crate) fn leave(&mut self, key: Key) {
        if let Some(bot) = self.bots.iter_mut().find(|bot| bot.key == key) {
            *bot = Bot::away(key, AWAY);
        }
    }
}

impl Bot {
    const fn away(key: Key, rest: u32) -> Self {
        Self { key, client: Client::new(), rest, presence: Presence::Away }
    }

    fn go(&mut self, server: &mut Server<Key>) {
        server.handle_disconnected(self.key);
        *self = Self::away(self.key, AWAY);
    }

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
    use rakwire::codec::rabbit::to_vec;
    use snowfight::message::{Channel, ClientMessage, Request, RequestKind};
    use snowfight::server::{MAX_MESSAGE, Output};
    use snowfight::world::MAX_PLAYERS;

    use super::*;

    /// A tick of a server and its bots; how many connections of bots have ended.
    fn pass(server: &mut Server<Key>, bots: &mut Bots, buffer: &mut [u8], tick: u64) -> u32 {
        let now = Instant::from_micros(tick * 16_667);
        bots.act(now, server);
        server.tick();
        let mut ends = 0;
        while let Some(output) = server.poll_output(buffer) {
            match output {
                Output::Send { to, payload, .. } => bots.hear(now, to, payload),
                Output::Close { connection } => {
                    ends += 1;
                    bots.leave(connection);
                }
            }
        }
        ends
    }

    /// A bot that found no room once comes when there is some.
    #[test]
    fn a_bot_that_is_refused_comes_again() {
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
        let comes = (10..20 + u64::from(AWAY)).any(|tick| {
            pass(&mut server, &mut bots, &mut buffer, tick);
            server.world().players().count() == 1
        });
        assert!(comes);
    }

    /// Bots come, play, lose or win, and come again.
    #[test]
    fn bots_keep_the_world_alive() {
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
