//! A log of datagrams and statistics in an SQLite file (feature `sqlite`), and three built-in queries.
//!
//! A separate thread writes many records per transaction, so that an endpoint never waits for the disk. If the thread
//! falls behind, records are dropped and counted, in memory and in the file. The log keeps the newest rows, up to
//! [`max_rows`](SqliteOptions::max_rows). It contains no bytes of datagrams unless
//! [`keep_bytes`](SqliteOptions::keep_bytes) is set.
//!
//! ```
//! use rakwire_native::endpoint::{Endpoint, Options};
//! use rakwire_native::raknet::{Delivery, PacketLogger, RakNet};
//! use rakwire_extras::sqlite_log::{Query, SqliteLog, SqliteOptions};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::env::temp_dir().join(format!("rakwire-doc-{}.db", std::process::id()));
//! let log = SqliteLog::open(&path, SqliteOptions::default())?;
//! let datagrams = log.clone();
//! let hook = move |local| PacketLogger(datagrams.datagrams::<RakNet>(local));
//! let server = Endpoint::<RakNet>::bind_with_hook("127.0.0.1:0", Options::server(8)?, hook).await?;
//!
//! let client = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::client()?).await?;
//! let connection = client.connect(server.local_addr()).await?;
//! connection.send(b"\x86hello", Delivery::RELIABLE_ORDERED).await?;
//! let accepted = server.accept().await.ok_or("closed")?;
//! assert!(accepted.recv().await.is_some());
//!
//! log.sample(server.local_addr(), None, &server.stats());
//! if let Some(stats) = accepted.stats() {
//!     log.sample(server.local_addr(), Some(accepted.remote()), &stats);
//! }
//! log.flush()?;
//! let kinds = Query::Kinds.run(&path)?;
//! assert_eq!(kinds.columns[0], "kind");
//! assert!(kinds.rows.iter().any(|row| row[0] == "open connection request 1"));
//! # std::fs::remove_file(&path)?;
//! # Ok(())
//! # }
//! ```

mod database;
mod record;
mod writer;

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use rakwire::Instant;
use rakwire::endpoint::{Direction, LogSink, Protocol};
use rakwire_native::WallClock;

use record::{Datagram, Record, Samples, describe, since_1970};
use writer::{Progress, Writer};

pub use database::{Query, SqliteLogError, Table};
pub use record::Sample;

/// The limits and contents of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// Maximum number of rows in each table; the oldest rows beyond it are deleted. Default: 1,000,000, about 150 MB of
    /// datagrams.
    pub max_rows: u64,
    /// Maximum number of records in the queue of the writing thread; further records are dropped and counted. Default:
    /// 16,384.
    pub queue: usize,
    /// True to store the bytes of datagrams.
    ///
    /// The bytes include messages of players and, on connections that are not secure, passwords. Default: false.
    pub keep_bytes: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { max_rows: 1_000_000, queue: 16_384, keep_bytes: false }
    }
}

/// A log in an SQLite file.
///
/// A clone is another handle of the same log. When the last handle is dropped, the writing thread writes the pending
/// records and ends. Call [`flush`](Self::flush) before the program exits, or they may be lost.
#[derive(Clone, Debug)]
pub struct SqliteLog {
    queue: SyncSender<Record>,
    progress: Arc<Progress>,
    keep_bytes: bool,
}

impl SqliteLog {
    /// Opens a file to append to, or creates it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, is not an SQLite file, or no thread can be started.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, SqliteLogError> {
        let path = path.as_ref();
        let database = database::open(path)?;
        let (queue, records) = sync_channel(options.queue.max(1));
        let progress = Arc::new(Progress::new(path));
        let writer = Writer::new(database, Arc::clone(&progress), options.max_rows.max(1));
        let spawned = std::thread::Builder::new().name("sqlite-log".to_owned()).spawn(|| writer.run(records));
        spawned.map_err(|error| SqliteLogError::new(path, &error))?;
        Ok(Self { queue, progress, keep_bytes: options.keep_bytes })
    }

    /// Returns a sink for the datagrams of the endpoint at `local`, to pass to a
    /// [`PacketLogger`](rakwire::endpoint::PacketLogger).
    #[must_use]
    pub fn datagrams<P: Protocol>(&self, local: SocketAddr) -> DatagramLog<P> {
        DatagramLog { log: self.clone(), local, clock: WallClock::default(), protocol: PhantomData }
    }

    /// Records current counters and measurements: those of the connection to `remote`, or with `None` those of the
    /// endpoint at `local`.
    pub fn sample(&self, local: SocketAddr, remote: Option<SocketAddr>, stats: &impl Sample) {
        self.write(Record::Samples(Samples { at: since_1970(), local, remote, values: stats.values() }));
    }

    /// Returns the number of records that were not written because the queue was full or the log has failed.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.progress.missed()
    }

    /// Waits until everything recorded earlier is in the file. Blocks the thread.
    ///
    /// # Errors
    /// Returns the error with which the log has failed. A failed log writes no further records.
    pub fn flush(&self) -> Result<(), SqliteLogError> {
        let (done, flushed) = sync_channel(1);
        // The thread ends early only by a panic, which is reported as the failure of the log.
        if self.queue.send(Record::Flush(done)).is_ok() {
            let _ = flushed.recv();
        }
        self.progress.failure().map_or(Ok(()), Err)
    }

    fn write(&self, record: Record) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(record) {
            self.progress.miss();
        }
    }
}

/// Writes the datagrams of an endpoint into a [`SqliteLog`].
#[derive(Debug)]
pub struct DatagramLog<P> {
    log: SqliteLog,
    local: SocketAddr,
    clock: WallClock,
    protocol: PhantomData<P>,
}

impl<P: Protocol> LogSink for DatagramLog<P> {
    fn record(&mut self, at: Instant, direction: Direction, remote: SocketAddr, datagram: &[u8]) {
        self.log.write(Record::Datagram(Datagram {
            at: self.clock.convert(at),
            local: self.local,
            remote,
            direction,
            kind: P::kind(datagram),
            description: describe::<P>(datagram),
            length: u32::try_from(datagram.len()).unwrap_or(u32::MAX),
            bytes: self.log.keep_bytes.then(|| datagram.into()),
        }));
    }
}
