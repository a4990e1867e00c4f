//! The world with the connections of its players.

use std::collections::BTreeMap;

use rakwire_native::Connection;

use super::messages::{News, Request};
use super::server::Input;
use super::world::{HEIGHT, WIDTH, World};

#[derive(Default)]
pub(crate) struct Game {
    world: World,
    players: BTreeMap<u8, (Connection, String)>,
}

impl Game {
    pub(crate) fn handle(&mut self, input: Input) {
        match input {
            Input::Joined(connection, name) => self.join(connection, name),
            Input::Sent(connection, Request::Steer(direction)) => {
                if let Some(number) = self.number(&connection) {
                    self.world.steer(number, direction);
                }
            }
            // A second name changes nothing.
            Input::Sent(_, Request::Hello(_)) => {}
            Input::Left(connection) => {
                if let Some(number) = self.number(&connection) {
                    self.players.remove(&number);
                    self.world.leave(number);
                    self.send_to_all(&News::Left(number));
                }
            }
        }
    }

    fn join(&mut self, connection: Connection, name: String) {
        // Players begin in the middle of the field, next to each other.
        let cell = [WIDTH / 2 + (self.players.len() % 4) as u8, HEIGHT / 2];
        let Some(number) = self.world.join(cell) else {
            tokio::spawn(async move { connection.disconnect().await });
            return;
        };
        send(&connection, &News::Welcome(number));
        for (other, (_, name)) in &self.players {
            send(&connection, &News::Joined(*other, name.clone()));
        }
        self.players.insert(number, (connection, name.clone()));
        self.send_to_all(&News::Joined(number, name));
    }

    pub(crate) fn tick(&mut self) {
        if let Some(tagged) = self.world.tick() {
            self.send_to_all(&News::Tagged(tagged));
        }
        if let Some(it) = self.world.it() {
            self.send_to_all(&News::State(it, self.world.players().collect()));
        }
    }

    fn number(&self, connection: &Connection) -> Option<u8> {
        let mut players = self.players.iter();
        players.find(|(_, (player, _))| player.id() == connection.id()).map(|(number, _)| *number)
    }

    fn send_to_all(&self, news: &News) {
        self.players.values().for_each(|(connection, _)| send(connection, news));
    }
}

/// Sends without waiting: a client that reads too slowly must not stop the world.
fn send(connection: &Connection, news: &News) {
    // If the send queue is full, the client would miss the event, so it has to join again.
    if connection.try_send(&news.encode(), news.delivery()).is_err() && !matches!(news, News::State(..)) {
        let connection = connection.clone();
        tokio::spawn(async move { connection.disconnect().await });
    }
}
