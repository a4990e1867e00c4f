//! A sensor on the network: its value a hundred times a second, of which only the newest counts, and settings that arrive
//! for certain and in order.

use core::net::SocketAddrV4;

use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_time::{Duration, Ticker, Timer};
use rakwire::raknet::{Delivery, DisconnectReason, SendError};
use rakwire_embassy::raknet::{Connection, Handle, Received};

use crate::pulse::Pulse;
use crate::{network, server};

/// The id of a message with a value: then its number, 4 bytes, and the value, 2 bytes, big-endian.
pub const VALUE: u8 = 0x90;
/// The id of a message with settings: then values a second, 1 to 255.
pub const SETTINGS: u8 = 0x91;

const PAUSE: Duration = Duration::from_secs(1);

/// How the sensor works. The server may send others in the same form as the sensor tells its own when it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, defmt::Format)]
pub struct Settings {
    /// Values a second, 1 to 255.
    pub rate: u8,
}

impl Settings {
    const DEFAULT: Self = Self { rate: 100 };

    fn read(message: &Received<'_>) -> Option<Self> {
        let mut bytes = [0; 2];
        match *message.copy_to(&mut bytes)? {
            [SETTINGS, rate] if rate > 0 => Some(Self { rate }),
            _ => None,
        }
    }

    const fn write(self) -> [u8; 2] {
        [SETTINGS, self.rate]
    }

    fn ticker(self) -> Ticker {
        Ticker::every(Duration::from_hz(self.rate.max(1).into()))
    }
}

/// What a session did.
#[derive(Clone, Copy, Debug, Default, defmt::Format)]
pub struct Report {
    /// Values sent.
    pub values: u32,
    /// Settings received.
    pub settings: u32,
    /// Other messages received.
    pub others: u32,
}

/// Joins the server and reports what `read` reads, for ever: the network, the server or the connection may go and come
/// back.
pub async fn run(handle: Handle<'_>, stack: Stack<'_>, pulse: &Pulse, mut read: impl FnMut() -> i16) -> ! {
    loop {
        pulse.while_waiting(network::wait_for_address(stack)).await;
        if let Some(server) = pulse.while_waiting(server::find(handle)).await {
            let _ = visit(handle, server, pulse, u32::MAX, &mut read).await;
        }
        pulse.while_waiting(Timer::after(PAUSE)).await;
    }
}

/// Joins the server once and reports `values` values, or until the connection ends.
pub async fn visit(
    handle: Handle<'_>,
    server: SocketAddrV4,
    pulse: &Pulse,
    values: u32,
    read: impl FnMut() -> i16,
) -> Option<Report> {
    let connection = match pulse.while_waiting(handle.connect(server.into())).await {
        Ok(connection) => connection,
        Err(error) => {
            defmt::error!("cannot join {}: {}", defmt::Display2Format(&server), error);
            return None;
        }
    };
    defmt::info!("joined {}", defmt::Display2Format(&server));
    let mut report = Report::default();
    let end = session(&connection, pulse, values, read, &mut report).await;
    match end {
        Some(reason) => defmt::warn!("the connection ended: {}; {}", defmt::Display2Format(&reason), report),
        None => pulse.while_waiting(connection.disconnect()).await,
    }
    Some(report)
}

async fn session(
    connection: &Connection<'_>,
    pulse: &Pulse,
    values: u32,
    mut read: impl FnMut() -> i16,
    report: &mut Report,
) -> Option<DisconnectReason> {
    let mut settings = Settings::DEFAULT;
    let mut ticker = settings.ticker();
    let told = connection.send(&settings.write(), Delivery::RELIABLE_ORDERED).await;
    if told.is_err() {
        return connection.closed_reason();
    }
    while report.values < values {
        match select(ticker.next(), connection.recv()).await {
            Either::First(()) => {
                pulse.beat();
                // A value for which there is no room now is worth nothing later.
                if tell(connection, report.values, read()) == Err(SendError::NotConnected) {
                    // The reader learns why.
                    let _ = pulse.while_waiting(connection.recv()).await;
                    return connection.closed_reason();
                }
                report.values = report.values.wrapping_add(1);
            }
            Either::Second(Some(message)) => match Settings::read(&message) {
                Some(new) => {
                    report.settings = report.settings.wrapping_add(1);
                    defmt::info!("settings: {}", new);
                    settings = new;
                    ticker = settings.ticker();
                }
                None => report.others = report.others.wrapping_add(1),
            },
            Either::Second(None) => return connection.closed_reason(),
        }
    }
    None
}

fn tell(connection: &Connection<'_>, number: u32, value: i16) -> Result<(), SendError> {
    let mut message = [VALUE, 0, 0, 0, 0, 0, 0];
    message[1..5].copy_from_slice(&number.to_be_bytes());
    message[5..].copy_from_slice(&value.to_be_bytes());
    connection.try_send(&message, Delivery::UNRELIABLE_SEQUENCED).map(|_| ())
}
