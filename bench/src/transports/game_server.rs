//! The game server behind the relay. On request it echoes or counts messages, or sends as fast as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use rakwire_native::{Connection, Delivery, Endpoint, Message, Options};

// The second byte of a message is the request. The script of the page uses the same numbers.
// A message with any other second byte is echoed.

/// Adds the length of the message to a counter.
const COUNT: u8 = 1;
/// Requests the counter. The answer repeats the two bytes, followed by the counter in 32 bits, little-endian.
const TELL: u8 = 2;
/// Requests a download. The next two bytes are its duration in milliseconds, little-endian.
const DOWNLOAD: u8 = 3;
/// The size of the messages of a download in bytes.
const MESSAGE: usize = 1_200;
const ID: u8 = 0xfe;

pub(crate) fn run() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<()> {
    let server = Endpoint::bind("127.0.0.1:0", Options::server(4)?).await?;
    println!("ready {}", server.local_addr().port());
    while let Some(connection) = server.accept().await {
        tokio::spawn(play(Arc::new(connection)));
    }
    Ok(())
}

async fn play(connection: Arc<Connection>) {
    let counted = AtomicU64::new(0);
    while let Some(message) = connection.recv().await {
        match *message.bytes {
            [_, COUNT, ..] => {
                counted.fetch_add(message.bytes.len() as u64, Ordering::Relaxed);
            }
            [_, TELL, ..] => {
                let bytes = u32::try_from(counted.load(Ordering::Relaxed)).unwrap_or(u32::MAX).to_le_bytes();
                let answer = [&[ID, TELL][..], &bytes].concat();
                tokio::spawn(answer_to(Arc::clone(&connection), answer, Delivery::RELIABLE));
            }
            [_, DOWNLOAD, low, high, ..] => {
                let time = Duration::from_millis(u16::from_le_bytes([low, high]).into());
                tokio::spawn(download(Arc::clone(&connection), Instant::now() + time));
            }
            _ => {
                let Message { bytes, delivery, .. } = message;
                tokio::spawn(answer_to(Arc::clone(&connection), bytes.to_vec(), delivery));
            }
        }
    }
}

/// Sends an answer. Ignores errors, because a closed connection needs no answer.
async fn answer_to(connection: Arc<Connection>, answer: Vec<u8>, delivery: Delivery) {
    let _ = connection.send(&answer, delivery).await;
}

async fn download(connection: Arc<Connection>, end: Instant) {
    let mut message = [0; MESSAGE];
    message[..2].copy_from_slice(&[ID, DOWNLOAD]);
    while Instant::now() < end && connection.send(&message, Delivery::RELIABLE).await.is_ok() {}
}
