//! The benchmark roles, with `rust-raknet`.

use rust_raknet::{RaknetListener, RaknetSocket, Reliability};

use crate::bench::{self, BenchConnection, Command, Role};

struct Socket(RaknetSocket);

impl BenchConnection for Socket {
    type Message = Vec<u8>;

    async fn send(&self, message: &[u8]) -> Result<(), String> {
        self.0.send(message, Reliability::ReliableOrdered).await.map_err(|error| error.to_string())
    }

    async fn send_vec(&self, message: Vec<u8>) -> Result<(), String> {
        let sent = self.0.send_bytes(message.into(), Reliability::ReliableOrdered).await;
        sent.map_err(|error| error.to_string())
    }

    async fn recv(&mut self) -> Result<Vec<u8>, String> {
        self.0.recv().await.map_err(|error| error.to_string())
    }
}

pub async fn play(command: Command) -> Result<(), String> {
    match command.role {
        Role::Echo | Role::Sink(_) => serve(command).await,
        Role::Blast(_) | Role::PingPong(_) => {
            let socket = RaknetSocket::connect_with_version(&command.address, 11).await;
            bench::client(Socket(socket.map_err(|error| error.to_string())?), command.role).await
        }
    }
}

async fn serve(command: Command) -> Result<(), String> {
    let listener = RaknetListener::bind(&command.address).await;
    let mut listener = listener.map_err(|error| error.to_string())?;
    listener.listen().await;
    bench::print_ready(listener.local_addr().map_err(|error| error.to_string())?.port())?;
    bench::until_stdin_line(async {
        if let Role::Sink(traffic) = command.role {
            let socket = listener.accept().await.map_err(|error| error.to_string())?;
            return bench::sink(Socket(socket), traffic).await;
        }
        while let Ok(socket) = listener.accept().await {
            tokio::spawn(bench::echo(Socket(socket)));
        }
        Ok(())
    })
    .await
}
