//! The benchmark roles, with `tokio-raknet`. ../../README.md describes the command line and the output.

#[path = "../../shared/bench.rs"]
mod bench;

use bench::{BenchConnection, Command, Role};
use bytes::Bytes;
use std::process::exit;
use tokio_raknet::transport::{Message, RaknetListener, RaknetListenerConfig, RaknetStream};

struct Stream(RaknetStream);

impl Stream {
    async fn send_bytes(&self, message: Bytes) -> Result<(), String> {
        // A `Message` is sent reliable-ordered on channel 0.
        self.0.send(Message::new(message)).await.map_err(|error| format!("{error:?}"))
    }
}

impl BenchConnection for Stream {
    type Message = Bytes;

    async fn send(&self, message: &[u8]) -> Result<(), String> {
        self.send_bytes(Bytes::copy_from_slice(message)).await
    }

    async fn send_vec(&self, message: Vec<u8>) -> Result<(), String> {
        self.send_bytes(message.into()).await
    }

    async fn recv(&mut self) -> Result<Bytes, String> {
        let message = self.0.recv().await.ok_or("the connection has ended")?;
        message.map_err(|error| format!("{error:?}"))
    }
}

async fn serve(command: Command) -> Result<(), String> {
    let connections = command.connections.into();
    let config = RaknetListenerConfig {
        max_connections: connections,
        max_pending_connections: connections,
        ..RaknetListenerConfig::default()
    };
    let listener = RaknetListener::bind_with_config(command.address, config).await;
    let mut listener = listener.map_err(|error| error.to_string())?;
    bench::print_ready(listener.local_addr().port())?;
    bench::until_stdin_line(async {
        if let Role::Sink(traffic) = command.role {
            let stream = listener.accept().await.ok_or("the listener has ended")?;
            return bench::sink(Stream(stream), traffic).await;
        }
        while let Some(stream) = listener.accept().await {
            tokio::spawn(bench::echo(Stream(stream)));
        }
        Ok(())
    })
    .await
}

async fn connect(command: Command) -> Result<(), String> {
    let stream = RaknetStream::connect(command.address).await.map_err(|error| format!("{error:?}"))?;
    bench::client(Stream(stream), command.role).await
}

#[tokio::main]
async fn main() {
    let Some(command) = Command::parse(std::env::args().skip(1)) else {
        eprintln!(
            "usage: peer echo|sink --port PORT | blast|pingpong HOST:PORT  [--count N] [--size BYTES] [--timed] \
             [--connections N]"
        );
        exit(2)
    };
    let result = match command.role {
        Role::Echo | Role::Sink(_) => serve(command).await,
        Role::Blast(_) | Role::PingPong(_) => connect(command).await,
    };
    if let Err(error) = &result {
        eprintln!("{error}");
    }
    exit(i32::from(result.is_err()))
}
