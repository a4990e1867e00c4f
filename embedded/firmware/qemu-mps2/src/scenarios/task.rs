//! The task that runs a scenario in the emulated board.

use core::net::SocketAddrV4;

use defmt::{info, println, warn};
use embassy_net::Stack;
use embassy_time::{Duration, Instant, Timer};
#[cfg(not(feature = "secure"))]
use rakwire::raknet::ConnectOptions;
use rakwire::raknet::Delivery;
use rakwire_embassy::raknet::{Connection, Handle};
use rakwire_firmware::heartbeat::Heartbeat;
use rakwire_firmware::{network, telemetry};
use static_cell::ConstStaticCell;

use super::exchange::{Composer, LARGE, SMALL, receive, round_trip};
use super::failure::Failure;
use rakwire_qemu_mps2::arguments::Arguments;
use rakwire_qemu_mps2::stack;

/// The maximum number of stored round-trip times.
const STORED: usize = 4_000;
/// The number of messages in the scenario with a full pool.
const FLOOD: u32 = 1_500;

/// A scenario and its environment.
pub(crate) struct Task<'a> {
    pub(crate) stack: Stack<'static>,
    pub(crate) handle: Handle<'static>,
    pub(crate) server: SocketAddrV4,
    pub(crate) arguments: &'a Arguments,
}

/// Round-trip times.
struct Times {
    micros: &'static mut [u32; STORED],
    count: usize,
}

impl Times {
    fn take() -> Self {
        static MICROS: ConstStaticCell<[u32; STORED]> = ConstStaticCell::new([0; STORED]);
        Self { micros: MICROS.take(), count: 0 }
    }

    fn add(&mut self, micros: u32) {
        self.micros[self.count % STORED] = micros;
        self.count += 1;
    }

    fn median(&mut self) -> u32 {
        let stored = &mut self.micros[..self.count.min(STORED)];
        stored.sort_unstable();
        stored.get(stored.len() / 2).copied().unwrap_or(0)
    }
}

impl Task<'_> {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let is = |name| self.arguments.is("scenario", name);
        if is("exchange") {
            self.exchange().await
        } else if is("soak") {
            self.soak().await
        } else if is("full-pool") {
            self.full_pool().await
        } else if is("restart") {
            self.restart().await
        } else if is("telemetry") {
            self.telemetry().await
        } else {
            Err(Failure::Unknown)
        }
    }

    fn count(&self, otherwise: u32) -> u32 {
        self.arguments.get("count").unwrap_or(otherwise)
    }

    async fn join(&self) -> Result<Connection<'static>, Failure> {
        #[cfg(feature = "secure")]
        let options = super::security::options(self.arguments);
        #[cfg(not(feature = "secure"))]
        let options = ConnectOptions::default();
        let opened = self.handle.connect_with(self.server.into(), &options).await;
        let connection = opened.map_err(Failure::Join)?;
        #[cfg(feature = "secure")]
        super::security::check(&connection, &options)?;
        info!("connected to {}", defmt::Display2Format(&self.server));
        Ok(connection)
    }

    /// Makes consecutive round trips, and sends a large message in both directions.
    async fn exchange(&self) -> Result<(), Failure> {
        let connection = self.join().await?;
        let (mut composer, mut times) = (Composer::take(), Times::take());
        for number in 0..self.count(2_000) {
            times.add(round_trip(&connection, &mut composer, number, SMALL).await?);
        }
        for number in 0..self.arguments.get("large").unwrap_or(1) {
            let micros = round_trip(&connection, &mut composer, number, LARGE).await?;
            info!("{} bytes echoed in {} us", LARGE, micros);
        }
        report(&connection, &mut times);
        connection.disconnect().await;
        Ok(())
    }

    /// Makes round trips for `seconds` seconds, some of them with a large message.
    async fn soak(&self) -> Result<(), Failure> {
        let connection = self.join().await?;
        let (mut composer, mut times) = (Composer::take(), Times::take());
        let end = Instant::now() + Duration::from_secs(self.arguments.get("seconds").unwrap_or(60));
        let mut number = 0;
        while Instant::now() < end {
            let length = if number % 500 == 499 { LARGE } else { SMALL };
            times.add(round_trip(&connection, &mut composer, number, length).await?);
            number += 1;
            Timer::after_millis(5).await;
        }
        report(&connection, &mut times);
        connection.disconnect().await;
        Ok(())
    }

    /// Sends more messages than fit into memory, and reads the echoes after all have been sent.
    async fn full_pool(&self) -> Result<(), Failure> {
        let connection = self.join().await?;
        let mut composer = Composer::take();
        let mut fitting = 0;
        while connection.try_send(composer.compose(fitting, SMALL), Delivery::RELIABLE_ORDERED).is_ok() {
            fitting += 1;
            if fitting == FLOOD {
                return Err(Failure::NeverFull);
            }
        }
        info!("the pool is full after {} messages", fitting);
        for number in fitting..FLOOD {
            let message = composer.compose(number, SMALL);
            let sent = connection.send(message, Delivery::RELIABLE_ORDERED).await;
            sent.map_err(|_| Failure::ended(&connection))?;
        }
        for number in 0..FLOOD {
            receive(&connection, number, SMALL).await?;
        }
        println!("RESULT messages={} fitting={}", FLOOD, fitting);
        connection.disconnect().await;
        Ok(())
    }

    /// Makes round trips until the server or the network fails, and reconnects without a reset of the board once both
    /// work again.
    async fn restart(&self) -> Result<(), Failure> {
        let mut composer = Composer::take();
        let sessions: u32 = self.arguments.get("sessions").unwrap_or(2);
        for session in 1..=sessions {
            let connection = loop {
                network::wait_for_address(self.stack).await;
                match self.join().await {
                    Ok(connection) => break connection,
                    Err(failure) => warn!("{}; retrying in a second", failure),
                }
                Timer::after_secs(1).await;
            };
            let mut number = 0;
            while number < self.count(200) || session < sessions {
                match round_trip(&connection, &mut composer, number, SMALL).await {
                    Ok(_) => number += 1,
                    Err(Failure::Ended(_)) => break,
                    Err(failure) => return Err(failure),
                }
                if number == self.count(200) {
                    println!("SESSION {}", session);
                }
                Timer::after_millis(2).await;
            }
            warn!("session {}: {} round trips, {}", session, number, Failure::ended(&connection));
        }
        println!("RESULT sessions={}", sessions);
        Ok(())
    }

    /// Runs the telemetry example with `count` values.
    async fn telemetry(&self) -> Result<(), Failure> {
        static HEARTBEAT: Heartbeat = Heartbeat::new();
        let values = self.count(300);
        let mut value = 0;
        let read = || {
            value += 1;
            value
        };
        let started = Instant::now();
        let report = telemetry::visit(self.handle, self.server, &HEARTBEAT, values, read).await;
        let report = report.ok_or(Failure::NoSettings)?;
        println!(
            "RESULT values={} settings={} others={} ms={}",
            report.values,
            report.settings,
            report.others,
            started.elapsed().as_millis()
        );
        // The echo server of the test returns the settings.
        if report.settings == 1 { Ok(()) } else { Err(Failure::NoSettings) }
    }
}

fn report(connection: &Connection<'_>, times: &mut Times) {
    let stats = connection.stats().unwrap_or_default();
    let median = times.median();
    println!(
        "RESULT round_trips={} rtt_us_median={} datagrams={} lost={} stack={}",
        times.count,
        median,
        stats.datagrams_sent,
        stats.datagrams_lost,
        stack::high_water().0
    );
}
