//! The Rust counterpart of `examples/speed.py`. Usage: `speed server`, or `speed client ADDRESS ROUND_TRIPS MESSAGES`.

use std::error::Error;
use std::time::Instant;

use rakwire_native::{Connection, Delivery, Endpoint, Options};

/// The id of a message that the server echoes.
const ECHO: u8 = 0x86;
/// The id of a message that the server only counts.
const COUNT: u8 = 0x87;
/// The id of the last message, which the server echoes.
const LAST: u8 = 0x88;
/// The length of a message in bytes.
const SIZE: usize = 100;

async fn serve() -> Result<(), Box<dyn Error>> {
    let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    println!("ready {}", server.local_addr());
    let connection = server.accept().await.ok_or("closed")?;
    while let Some(message) = connection.recv().await {
        if message.bytes[0] != COUNT {
            connection.send(&message.bytes, Delivery::RELIABLE_ORDERED).await?;
        }
    }
    Ok(())
}

async fn round_trip(connection: &Connection, kind: u8) -> Result<(), Box<dyn Error>> {
    connection.send(&[kind; SIZE], Delivery::RELIABLE_ORDERED).await?;
    connection.recv().await.ok_or("the server is gone")?;
    Ok(())
}

async fn play(address: &str, round_trips: usize, messages: u32) -> Result<(), Box<dyn Error>> {
    let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    let connection = client.connect(address.parse()?).await?;
    let mut times = Vec::with_capacity(round_trips);
    for _ in 0..round_trips {
        let start = Instant::now();
        round_trip(&connection, ECHO).await?;
        times.push(start.elapsed());
    }
    times.sort();
    let start = Instant::now();
    for _ in 0..messages {
        connection.send(&[COUNT; SIZE], Delivery::RELIABLE_ORDERED).await?;
    }
    round_trip(&connection, LAST).await?;
    let rate = f64::from(messages) / start.elapsed().as_secs_f64();
    println!("{} {rate}", times[round_trips / 2].as_secs_f64());
    connection.disconnect().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server"] => serve().await,
        ["client", address, round_trips, messages] => {
            play(address, round_trips.parse()?, messages.parse()?).await
        }
        _ => Err("usage: speed server, or speed client ADDRESS ROUND_TRIPS MESSAGES".into()),
    }
}
