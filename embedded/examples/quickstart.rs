//! A board that sends a value ten times a second, or as often as its server says.
#![no_std]

use core::net::SocketAddr;
use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_time::{Duration, Ticker};
use rakwire::raknet::{Config, Delivery, Reliability};
use rakwire_embassy::raknet::{self, ConnectError, Handle, Runner, profiles::Sensor};
use rand_core::RngCore;
use static_cell::ConstStaticCell;

static MEMORY: ConstStaticCell<Sensor<'static>> = ConstStaticCell::new(Sensor::new());

/// Takes the memory; the random bytes must come from the generator of the chip.
pub fn start(stack: Stack<'static>, rng: &mut impl RngCore) -> (Handle<'static>, Runner<'static>) {
    raknet::new(MEMORY.take(), stack, 0, Config::new(rakwire_embassy::entropy(rng)))
}

/// A task of its own: `#[embassy_executor::task]`.
pub async fn network(mut runner: Runner<'static>) -> ! {
    runner.run().await
}

/// Another task.
pub async fn report(
    handle: Handle<'static>,
    server: SocketAddr,
    mut measure: impl FnMut() -> u8,
) -> Result<(), ConnectError> {
    let connection = handle.connect(server).await?;
    let mut ticker = Ticker::every(Duration::from_millis(100));
    let newest = Delivery::new(Reliability::UnreliableSequenced);
    loop {
        match select(ticker.next(), connection.recv()).await {
            // No room is no reason to stop: the next value is newer.
            Either::First(()) => drop(connection.try_send(&[0x90, measure()], newest)),
            // The second byte of an answer says after how many milliseconds the next value is due.
            Either::Second(Some(message)) => {
                if let Some(&[_, millis, ..]) = message.copy_to(&mut [0; 16]) {
                    ticker = Ticker::every(Duration::from_millis(u64::from(millis).max(1)));
                }
            }
            Either::Second(None) => return Ok(()),
        }
    }
}
