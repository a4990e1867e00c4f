//! The parts of a benchmark.

use rust_raknet::{RaknetListener, RaknetSocket, Reliability};

use crate::bench::{self, Command, Link, Part};

struct Socket(RaknetSocket);

impl Link for Socket {
    type Message = Vec<u8>;

    async fn send(&self, message: &[u8]) -> Result<(), String> {
        self.0.send(message, Reliability::ReliableOrdered).await.map_err(|error| error.to_string())
    }

    async fn recv(&mut self) -> Result<Vec<u8>, String> {
        self.0.recv().await.map_err(|error| error.to_string())
    }
}

pub async fn play(command: Command) -> Result<(), String> {
    match command.part {
        Part::Echo | Part::Sink(_) => serve(command).await,
        Part::Blast(_) | Part::PingPong(_) => {
            let socket = RaknetSocket::connect_with_version(&command.address, 11).await;
            bench::client(Socket(socket.map_err(|error| error.to_string())?), command.part).await
        }
    }
}

async fn serve(command: Command) -> Result<(), String> {
    let listener = RaknetListener::bind(&command.address).await;
    let mut listener = listener.map_err(|error| error.to_string())?;
    listener.listen().await;
    bench::say_ready(listener.local_addr().map_err(|error| error.to_string())?.port())?;
    bench::until_heard(async {
        if let Part::Sink(plan) = command.part {
            let socket = listener.accept().await.map_err(|error| error.to_string())?;
            return bench::sink(Socket(socket), plan).await;
        }
        while let Ok(socket) = listener.accept().await {
            tokio::spawn(bench::echo(Socket(socket)));
        }
        Ok(())
    })
    .await
}
