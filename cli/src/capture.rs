//! Recording the datagrams of a command: a capture file and a log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use rakwire::Instant;
use rakwire::endpoint::{Direction, LineWriter, LogSink, PacketLogger, PcapWriter, Protocol};
use rakwire_native::endpoint::{Endpoint, Options};

use crate::failure::Failure;
use crate::host;

/// The options for recording datagrams.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Write every datagram to a pcap file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write a line for every datagram to standard error
    #[arg(long)]
    log: bool,
}

impl Capture {
    /// Whether datagrams are recorded.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.pcap.is_some() || self.log
    }

    fn file(&self) -> Result<Option<File>, Failure> {
        let create = |path: &PathBuf| {
            File::create(path).map_err(|error| {
                Failure::usage(format!("cannot write to {}: {error}; choose another file", path.display()))
            })
        };
        self.pcap.as_ref().map(create).transpose()
    }

    /// Binds an endpoint that records its datagrams.
    pub(crate) async fn bind<P: Protocol>(
        &self,
        address: &str,
        options: Options<P>,
    ) -> Result<Endpoint<P>, Failure> {
        let (file, log) = (self.file()?, self.log);
        let bound = if self.is_enabled() {
            let sink = |local| PacketLogger(Records::<P>::new(local, file, log));
            Endpoint::bind_with_hook(address, options, sink).await
        } else {
            Endpoint::bind(address, options).await
        };
        bound.map_err(|error| host::bind_failure(address, &error))
    }
}

type WriteBytes = Box<dyn FnMut(&[u8]) + Send>;

/// The open capture file and the log.
struct Records<P> {
    pcap: Option<PcapWriter<WriteBytes>>,
    lines: Option<LineWriter<P, String>>,
    /// The wall-clock time at the epoch of the endpoint's clock, once it is known.
    epoch: Option<Duration>,
}

impl<P: Protocol> Records<P> {
    fn new(local: SocketAddr, file: Option<File>, log: bool) -> Self {
        let pcap = file.map(|file| PcapWriter::new(local, write_to(file)));
        Self { pcap, lines: log.then(|| LineWriter::new(String::new())), epoch: None }
    }

    /// Converts the time of the endpoint to wall-clock time.
    fn wall_clock(&mut self, at: Instant) -> Instant {
        let epoch = *self.epoch.get_or_insert_with(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.saturating_sub(at.saturating_since(Instant::ZERO))
        });
        at + epoch
    }
}

impl<P: Protocol> LogSink for Records<P> {
    fn record(&mut self, at: Instant, direction: Direction, other: SocketAddr, datagram: &[u8]) {
        let time = self.wall_clock(at);
        if let Some(pcap) = &mut self.pcap {
            pcap.record(time, direction, other, datagram);
        }
        if let Some(lines) = &mut self.lines {
            lines.record(at, direction, other, datagram);
            // Without standard error there is no log.
            let _ = io::stderr().write_all(lines.target.as_bytes());
            lines.target.clear();
        }
    }
}

/// Writes to the file until an error, which is reported once.
fn write_to(file: File) -> WriteBytes {
    let mut file = Some(BufWriter::new(file));
    Box::new(move |bytes| {
        if let Some(error) = file.as_mut().and_then(|file| file.write_all(bytes).err()) {
            // Without standard error the failure cannot be reported.
            let _ = writeln!(io::stderr(), "the capture ends here: {error}");
            file = None;
        }
    })
}
