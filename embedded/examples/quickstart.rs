//! A board that sends a value ten times a second, or at the rate that its server requests.
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

/// Creates the peer. The random bytes must come from the chip's random number generator.
pub fn start(stack: Stack<'static>, rng: &mut impl RngCore) -> (Handle<'static>, Runner<'static>) {
    raknet::new(MEMORY.take(), stack, 0, Config::new(rakwire_embassy::entropy(rng)))
}

/// Needs its own task: `#[embassy_executor::task]`.
pub async fn network(mut runner: Runner<'static>) -> ! {
    runner.run().await
}

/// Needs another task.
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
            // If the send queue is full, the value is dropped: the next one is newer.
            Either::First(()) => drop(connection.try_send(&[0x90, measure()], newest)),
            // The second byte of an answer is the delay before the next value in milliseconds.
            Either::Second(Some(message)) => {
                if let Some(&[_, millis, ..]) = message.copy_to(&mut [0; 16]) {
                    ticker = Ticker::every(Duration::from_millis(u64::from(millis).max(1)));
                }
            }
            Either::Second(None) => return Ok(()),
        }
    }
}
