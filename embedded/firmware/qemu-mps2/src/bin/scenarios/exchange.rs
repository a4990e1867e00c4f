//! Messages whose content tells whether they arrived as they left.

use embassy_time::Instant;
use rakwire::raknet::Delivery;
use rakwire_embassy::raknet::{Connection, Received};
use static_cell::ConstStaticCell;

use crate::failure::Failure;

/// Bytes of the large message.
pub(crate) const LARGE: usize = 20_000;
/// Bytes of the others.
pub(crate) const SMALL: usize = 100;
const ID: u8 = 0xFE;

/// Where messages are composed, one at a time.
pub(crate) struct Composer {
    buffer: &'static mut [u8; LARGE],
}

impl Composer {
    /// There is one.
    pub(crate) fn take() -> Self {
        static BUFFER: ConstStaticCell<[u8; LARGE]> = ConstStaticCell::new([0; LARGE]);
        Self { buffer: BUFFER.take() }
    }

    /// The message of this number, of at most [`LARGE`] bytes.
    pub(crate) fn compose(&mut self, number: u32, length: usize) -> &[u8] {
        let message = &mut self.buffer[..length];
        for (at, byte) in message.iter_mut().enumerate() {
            *byte = content(number, at);
        }
        message
    }
}

/// The byte at a place of a message: its id, its number, and then what both tell.
fn content(number: u32, at: usize) -> u8 {
    match at {
        0 => ID,
        1..5 => number.to_be_bytes()[at - 1],
        _ => (31 * number as usize + 7 * at + 13 * (at / 256)) as u8,
    }
}

/// Whether a message is the one of this number and length.
pub(crate) fn is(message: &Received<'_>, number: u32, length: usize) -> bool {
    message.len() == length
        && message.read(|message| {
            let mut bytes = message.chunks().flatten().enumerate();
            bytes.all(|(at, byte)| *byte == content(number, at))
        })
}

/// Sends a message and waits until it comes back; returns the microseconds that it took.
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

/// Waits for a message, which must be the one of this number and length.
pub(crate) async fn receive(connection: &Connection<'_>, number: u32, length: usize) -> Result<(), Failure> {
    let Some(message) = connection.recv().await else {
        defmt::info!("message {} never came", number);
        return Err(Failure::ended(connection));
    };
    if is(&message, number, length) { Ok(()) } else { Err(Failure::WrongContent(number)) }
}
