//! What is written down of the datagrams of a command.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use rakwire::Instant;
use rakwire::raknet::{LineWriter, LogDirection, LogSink, PacketLogger, PcapWriter};
use rakwire_native::{Endpoint, Options};

use crate::failure::Failure;
use crate::host;

/// What to write down of the datagrams.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Write every datagram to a file that Wireshark opens
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write a line for every datagram to the standard error
    #[arg(long)]
    log: bool,
}

impl Capture {
    /// Whether anything is to be written down.
    pub(crate) const fn is_asked_for(&self) -> bool {
        self.pcap.is_some() || self.log
    }

    /// Binds an endpoint whose datagrams are written down.
    pub(crate) async fn bind(&self, address: &str, options: Options) -> Result<Endpoint, Failure> {
        let file = self.pcap.as_ref().map(|path| {
            File::create(path).map_err(|error| {
                Failure::usage(format!("cannot write to {}: {error}; choose another file", path.display()))
            })
        });
        let file = file.transpose()?;
        let bound = if file.is_none() && !self.log {
            Endpoint::bind(address, options).await
        } else {
            let log = self.log;
            let sink = |local| PacketLogger(Records::new(local, file, log));
            Endpoint::bind_with_hook(address, options, sink).await
        };
        bound.map_err(|error| host::refuse_to_bind(address, &error))
    }
}

type WriteBytes = Box<dyn FnMut(&[u8]) + Send>;

/// The open capture file and the log.
struct Records {
    pcap: Option<PcapWriter<WriteBytes>>,
    lines: Option<LineWriter<String>>,
    /// The time of day at the epoch of the endpoint's clock, once it is known.
    epoch: Option<Duration>,
}

impl Records {
    fn new(local: SocketAddr, file: Option<File>, log: bool) -> Self {
        let pcap = file.map(|file| PcapWriter::new(local, into(file)));
        Self { pcap, lines: log.then(LineWriter::default), epoch: None }
    }

    /// The time of day.
    fn time_of_day(&mut self, at: Instant) -> Instant {
        let epoch = *self.epoch.get_or_insert_with(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.saturating_sub(at.saturating_since(Instant::ZERO))
        });
        at + epoch
    }
}

impl LogSink for Records {
    fn record(&mut self, at: Instant, way: LogDirection, other: SocketAddr, datagram: &[u8]) {
        let time = self.time_of_day(at);
        if let Some(pcap) = &mut self.pcap {
            pcap.record(time, way, other, datagram);
        }
        if let Some(lines) = &mut self.lines {
            lines.record(at, way, other, datagram);
            // When nobody listens, the log has no reader.
            let _ = io::stderr().write_all(lines.0.as_bytes());
            lines.0.clear();
        }
    }
}

/// Writes to the file until it takes no more, which is said once.
fn into(file: File) -> WriteBytes {
    let mut file = Some(BufWriter::new(file));
    Box::new(move |bytes| {
        if let Some(error) = file.as_mut().and_then(|file| file.write_all(bytes).err()) {
            // When nobody listens, nobody can be told.
            let _ = writeln!(io::stderr(), "the capture ends here: {error}");
            file = None;
        }
    })
}
