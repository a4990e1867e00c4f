//! A sensor on the network. It sends its value a hundred times per second, unreliably, because only the newest value
//! matters. It receives settings reliably and in order.

use core::net::SocketAddrV4;

use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_time::{Duration, Ticker, Timer};
use rakwire::raknet::{Delivery, DisconnectReason, SendError};
use rakwire_embassy::raknet::{Connection, Handle, Received};

use crate::heartbeat::Heartbeat;
use crate::{network, server};

/// The id of a message with a value. The id is followed by the value's number in 4 bytes and the value in 2 bytes, both
/// big-endian.
pub const VALUE: u8 = 0x90;
/// The id of a message with settings. The id is followed by the number of values per second, 1 to 255.
pub const SETTINGS: u8 = 0x91;

const PAUSE: Duration = Duration::from_secs(1);

/// The settings of the sensor. The sensor sends them when it joins, and the server can send others in the same format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, defmt::Format)]
pub struct Settings {
    /// Values per second, 1 to 255.
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

/// The report of a session.
#[derive(Clone, Copy, Debug, Default, defmt::Format)]
pub struct Report {
    /// Values sent.
    pub values: u32,
    /// Settings received.
    pub settings: u32,
    /// Other messages received.
    pub others: u32,
}

/// Joins the server and sends the values that `read` returns. Recovers from failures of the network, the server and the
/// connection.
pub async fn run(
    handle: Handle<'_>,
    stack: Stack<'_>,
    heartbeat: &Heartbeat,
    mut read: impl FnMut() -> i16,
) -> ! {
    loop {
        heartbeat.while_waiting(network::wait_for_address(stack)).await;
        if let Some(server) = heartbeat.while_waiting(server::find(handle)).await {
            let _ = visit(handle, server, heartbeat, u32::MAX, &mut read).await;
        }
        heartbeat.while_waiting(Timer::after(PAUSE)).await;
    }
}

/// Joins the server once and sends `values` values, or fewer if the connection is closed earlier.
pub async fn visit(
    handle: Handle<'_>,
    server: SocketAddrV4,
    heartbeat: &Heartbeat,
    values: u32,
    read: impl FnMut() -> i16,
) -> Option<Report> {
    let connection = match heartbeat.while_waiting(handle.connect(server.into())).await {
        Ok(connection) => connection,
        Err(error) => {
            defmt::error!("cannot join {}: {}", defmt::Display2Format(&server), error);
            return None;
        }
    };
    defmt::info!("joined {}", defmt::Display2Format(&server));
    let mut report = Report::default();
    let end = session(&connection, heartbeat, values, read, &mut report).await;
    match end {
        Some(reason) => defmt::warn!("the connection ended: {}; {}", defmt::Display2Format(&reason), report),
        None => heartbeat.while_waiting(connection.disconnect()).await,
    }
    Some(report)
}

async fn session(
    connection: &Connection<'_>,
    heartbeat: &Heartbeat,
    values: u32,
    mut read: impl FnMut() -> i16,
    report: &mut Report,
) -> Option<DisconnectReason> {
    let mut settings = Settings::DEFAULT;
    let mut ticker = settings.ticker();
    let sent = connection.send(&settings.write(), Delivery::RELIABLE_ORDERED).await;
    if sent.is_err() {
        return connection.closed_reason();
    }
    while report.values < values {
        match select(ticker.next(), connection.recv()).await {
            Either::First(()) => {
                heartbeat.beat();
                // A value that cannot be queued is dropped, because the next one is newer.
                if send_value(connection, report.values, read()) == Err(SendError::NotConnected) {
                    // `recv` returns when the connection is closed.
                    let _ = heartbeat.while_waiting(connection.recv()).await;
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

fn send_value(connection: &Connection<'_>, number: u32, value: i16) -> Result<(), SendError> {
    let mut message = [VALUE, 0, 0, 0, 0, 0, 0];
    message[1..5].copy_from_slice(&number.to_be_bytes());
    message[5..].copy_from_slice(&value.to_be_bytes());
    connection.try_send(&message, Delivery::UNRELIABLE_SEQUENCED).map(|_| ())
}
