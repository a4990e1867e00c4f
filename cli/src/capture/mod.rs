//! Records the datagrams of a command to a capture file, an SQLite log and lines on standard error.

mod statistics;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use rakwire::Instant;
use rakwire::endpoint::{Direction, LineWriter, LogSink, PacketLogger, PcapWriter, Protocol};
use rakwire_extras::sqlite_log::{DatagramLog, SqliteLog, SqliteOptions};
use rakwire_native::WallClock;
use rakwire_native::endpoint::{Endpoint, Options};
use rakwire_udp::private_file;

use crate::failure::Failure;
use crate::host;

pub(crate) use statistics::Statistics;

/// The options for recording datagrams.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Write every datagram to a pcap file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Append every datagram, and statistics of every second, to an SQLite file (see log)
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// Write a line for every datagram to standard error
    #[arg(long)]
    log: bool,
}

impl Capture {
    /// Returns true if any recording is enabled.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.pcap.is_some() || self.sqlite.is_some() || self.log
    }

    fn file(&self) -> Result<Option<File>, Failure> {
        let create = |path: &PathBuf| {
            private_file::create(path).map_err(|error| {
                Failure::usage(format!("cannot write to {}: {error}; choose another file", path.display()))
            })
        };
        self.pcap.as_ref().map(create).transpose()
    }

    fn database(&self) -> Result<Option<SqliteLog>, Failure> {
        let open = |path| SqliteLog::open(path, SqliteOptions::default());
        let opened = self.sqlite.as_ref().map(open).transpose();
        opened.map_err(|error| Failure::usage(format!("{error}; choose another file")))
    }

    /// Binds an endpoint that records its datagrams.
    pub(crate) async fn bind<P: Protocol>(
        &self,
        address: &str,
        options: Options<P>,
    ) -> Result<(Endpoint<P>, Statistics), Failure> {
        let (file, database) = (self.file()?, self.database()?);
        let addresses = &host::listening(address).await?[..];
        let bound = if self.is_enabled() {
            let sink = |local| PacketLogger(Records::<P>::new(local, file, database.as_ref(), self.log));
            Endpoint::bind_with_hook(addresses, options, sink).await
        } else {
            Endpoint::bind(addresses, options).await
        };
        let endpoint = bound.map_err(|error| host::bind_failure(address, &error))?;
        let statistics = Statistics::of(database, &endpoint);
        Ok((endpoint, statistics))
    }
}

type WriteBytes = Box<dyn FnMut(&[u8]) + Send>;

/// The open capture file, the log and the lines.
struct Records<P> {
    pcap: Option<PcapWriter<WriteBytes>>,
    database: Option<DatagramLog<P>>,
    lines: Option<LineWriter<P, String>>,
    clock: WallClock,
}

impl<P: Protocol> Records<P> {
    fn new(local: SocketAddr, file: Option<File>, database: Option<&SqliteLog>, log: bool) -> Self {
        Self {
            pcap: file.map(|file| PcapWriter::new(local, write_to(file))),
            database: database.map(|database| database.datagrams(local)),
            lines: log.then(|| LineWriter::new(String::new())),
            clock: WallClock::default(),
        }
    }
}

impl<P: Protocol> LogSink for Records<P> {
    fn record(&mut self, at: Instant, direction: Direction, other: SocketAddr, datagram: &[u8]) {
        if let Some(pcap) = &mut self.pcap {
            pcap.record(Instant::ZERO + self.clock.convert(at), direction, other, datagram);
        }
        if let Some(database) = &mut self.database {
            database.record(at, direction, other, datagram);
        }
        if let Some(lines) = &mut self.lines {
            lines.record(at, direction, other, datagram);
            // If standard error is closed, the line is lost.
            let _ = io::stderr().write_all(lines.target.as_bytes());
            lines.target.clear();
        }
    }
}

/// Returns a writer that writes to the file until the first error and reports that once.
fn write_to(file: File) -> WriteBytes {
    let mut file = Some(BufWriter::new(file));
    Box::new(move |bytes| {
        if let Some(error) = file.as_mut().and_then(|file| file.write_all(bytes).err()) {
            // If standard error is closed, the failure cannot be reported.
            let _ = writeln!(io::stderr(), "cannot write to the capture file, which ends here: {error}");
            file = None;
        }
    })
}
