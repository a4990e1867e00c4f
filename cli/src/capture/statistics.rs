//! The statistics that a command writes to its SQLite log.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use rakwire::endpoint::Protocol;
use rakwire_extras::sqlite_log::{Sample, SqliteLog};
use rakwire_native::endpoint::{Connection, Endpoint};

use crate::failure::Failure;

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time between the first two samples of a connection, short because many connections are. It then doubles.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);

/// Writes statistics into the log, if the command has one.
#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    log: Option<SqliteLog>,
    local: SocketAddr,
}

impl Statistics {
    /// Samples the statistics of the endpoint every second.
    pub(super) fn of<P: Protocol>(log: Option<SqliteLog>, endpoint: &Endpoint<P>) -> Self {
        let statistics = Self { log, local: endpoint.local_addr() };
        if let Some(log) = statistics.log.clone() {
            let (local, endpoint) = (statistics.local, endpoint.clone());
            tokio::spawn(async move {
                loop {
                    log.sample(local, None, &endpoint.stats());
                    tokio::time::sleep(INTERVAL).await;
                }
            });
        }
        statistics
    }

    /// Samples the statistics of a connection until it is closed.
    pub(crate) fn watch<P: Protocol<ConnectionStats: Sample>>(&self, connection: &Connection<P>) {
        let Some(log) = self.log.clone() else { return };
        let (local, connection) = (self.local, connection.clone());
        tokio::spawn(async move {
            let mut interval = FIRST_INTERVAL;
            while let Some(stats) = connection.stats() {
                log.sample(local, Some(connection.remote()), &stats);
                if tokio::time::timeout(interval, connection.closed()).await.is_ok() {
                    return;
                }
                interval = INTERVAL.min(2 * interval);
            }
        });
    }

    /// Waits until the log has been written.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let Some(log) = self.log else { return Ok(()) };
        let missed = log.missed();
        let written = tokio::task::spawn_blocking(move || log.flush()).await;
        written.map_err(Failure::runtime)?.map_err(Failure::runtime)?;
        if missed > 0 {
            // If standard error is closed, the gap is visible only in the file, which records it as well.
            let _ = writeln!(
                io::stderr(),
                "{missed} records are missing from the log because the disk was too slow"
            );
        }
        Ok(())
    }
}
