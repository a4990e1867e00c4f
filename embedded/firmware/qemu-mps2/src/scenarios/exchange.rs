//! Messages with verifiable content.

use embassy_time::Instant;
use rakwire::raknet::Delivery;
use rakwire_embassy::raknet::{Connection, Received};
use static_cell::ConstStaticCell;

use super::failure::Failure;

/// The length of a large message in bytes.
pub(crate) const LARGE: usize = 20_000;
/// The length of other messages in bytes.
pub(crate) const SMALL: usize = 100;
const ID: u8 = 0xFE;

/// The buffer in which messages are composed.
pub(crate) struct Composer {
    buffer: &'static mut [u8; LARGE],
}

impl Composer {
    /// Takes the only instance.
    pub(crate) fn take() -> Self {
        static BUFFER: ConstStaticCell<[u8; LARGE]> = ConstStaticCell::new([0; LARGE]);
        Self { buffer: BUFFER.take() }
    }

    /// Composes the message with this number, of at most [`LARGE`] bytes.
    pub(crate) fn compose(&mut self, number: u32, length: usize) -> &[u8] {
        let message = &mut self.buffer[..length];
        for (at, byte) in message.iter_mut().enumerate() {
            *byte = content(number, at);
        }
        message
    }
}

/// Returns the byte at an offset of a message, which consists of its id, its number and a pattern.
fn content(number: u32, at: usize) -> u8 {
    match at {
        0 => ID,
        1..5 => number.to_be_bytes()[at - 1],
        _ => (31 * number as usize + 7 * at + 13 * (at / 256)) as u8,
    }
}

/// Returns whether a message has this number, length and content.
pub(crate) fn is(message: &Received<'_>, number: u32, length: usize) -> bool {
    message.len() == length
        && message.read(|message| {
            let mut bytes = message.chunks().flatten().enumerate();
            bytes.all(|(at, byte)| *byte == content(number, at))
        })
}

/// Sends a message and waits for its echo. Returns the round-trip time in microseconds.
pub(crate) async fn round_trip(
    connection: &Connection<'_>,
    composer: &mut Composer,
    number: u32,
    length: usize,
) -> Result<u32, Failure> {
    let sent = Instant::now();
    let message = composer.compose(number, length);
    connection.send(message, Delivery::RELIABLE_ORDERED).await.map_err(|_| Failure::ended(connection))?;
    receive(connection, number, length).await?;
    Ok(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX))
}

/// Waits for the message with this number and length.
pub(crate) async fn receive(connection: &Connection<'_>, number: u32, length: usize) -> Result<(), Failure> {
    let Some(message) = connection.recv().await else {
        defmt::info!("message {} did not arrive", number);
        return Err(Failure::ended(connection));
    };
    if is(&message, number, length) { Ok(()) } else { Err(Failure::WrongContent(number)) }
}
