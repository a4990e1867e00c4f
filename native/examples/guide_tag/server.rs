//! The server: one task owns the world, and a task for each connection forwards the input of its client.

use std::time::Duration;

use rakwire_native::{Connection, Endpoint};
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};

use super::game::Game;
use super::messages::Request;

pub(crate) const TICK: Duration = Duration::from_millis(50);
const LONGEST_NAME: usize = 16;

/// The timeouts of a player.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// For the name after the connection has opened.
    pub(crate) hello: Duration,
    /// Between two directions. It expires if the page is hidden or the program hangs.
    pub(crate) idle: Duration,
    /// Without any datagram. It expires if the client has crashed or lost its network.
    pub(crate) silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { hello: seconds(5), idle: seconds(30), silence: seconds(8) }
    }
}

/// An event of a connection for the task of the world.
pub(crate) enum Input {
    Joined(Connection, String),
    Sent(Connection, Request),
    Left(Connection),
}

/// Runs the game until the endpoint is closed.
pub(crate) async fn run(endpoint: Endpoint, limits: Limits) {
    let (sender, mut inputs) = mpsc::channel(256);
    let mut game = Game::default();
    let mut ticks = interval(TICK);
    loop {
        tokio::select! {
            connection = endpoint.accept() => {
                let Some(connection) = connection else { return };
                tokio::spawn(receive(connection, limits, sender.clone()));
            }
            Some(input) = inputs.recv() => game.handle(input),
            _ = ticks.tick() => game.tick(),
        }
    }
}

/// Receives from one client until it leaves, or is silent for too long.
async fn receive(connection: Connection, limits: Limits, world: mpsc::Sender<Input>) {
    // This fails if the connection has already closed; `recv` then returns `None`.
    let _ = connection.set_timeout(limits.silence);
    let hello = timeout(limits.hello, connection.recv()).await.ok().flatten();
    let name = match hello.and_then(|message| Request::decode(&message.bytes)) {
        Some(Request::Hello(name)) if !name.is_empty() && name.len() <= LONGEST_NAME => name,
        _ => return connection.disconnect().await,
    };
    if world.send(Input::Joined(connection.clone(), name)).await.is_err() {
        return;
    }
    while let Ok(Some(message)) = timeout(limits.idle, connection.recv()).await {
        if let Some(request) = Request::decode(&message.bytes) {
            let _ = world.send(Input::Sent(connection.clone(), request)).await;
        }
    }
    let _ = world.send(Input::Left(connection.clone())).await;
    connection.disconnect().await;
}
