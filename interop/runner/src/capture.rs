//! The captured datagrams of a cell, in the order in which the proxy received them.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

/// The magic number of a pcap file with timestamps in microseconds.
const PCAP_MAGIC: u32 = 0xa1b2_c3d4;
/// Version 2.4 of the pcap format.
const PCAP_VERSION: u32 = 0x0004_0002;
/// The maximum length of an IP packet.
const LONGEST_PACKET: u32 = 65_535;
/// The link type of packets without a link-layer header.
const RAW_IP: u32 = 101;
/// The length of the IPv4 and UDP headers.
const HEADERS: u16 = 28;
/// The length of the UDP header.
const UDP_HEADER: u16 = 8;
/// The client's port in a pcap file. The server's port is 19132, by which Wireshark recognises RakNet.
const CLIENT_PORT: u16 = 19_131;

/// A side of a connection: the client or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl End {
    /// Returns the other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Returns its name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The effect of the path on a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Forwarded immediately.
    Passed,
    /// Dropped.
    Dropped,
    /// Held back so that later datagrams overtake it.
    Held,
    /// Forwarded twice.
    Doubled,
}

/// A captured datagram.
#[derive(Clone, Debug)]
pub struct Record {
    /// The time at which the proxy received it, since the start of the cell.
    pub at: Duration,
    /// Its sender.
    pub from: End,
    /// Its UDP payload.
    pub bytes: Vec<u8>,
    /// The effect of the path.
    pub fate: Fate,
    /// The times at which copies of it were forwarded.
    pub arrivals: Vec<Duration>,
}

impl Record {
    /// Returns the time at which the first copy was forwarded; `None` if it was dropped.
    #[must_use]
    pub fn arrived(&self) -> Option<Duration> {
        self.arrivals.first().copied()
    }
}

/// All datagrams between a server and a client.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// The datagrams, in the order in which the proxy received them.
    pub records: Vec<Record>,
}

impl Capture {
    /// Returns the datagrams that one side sent, with their indices in the capture.
    pub fn of(&self, from: End) -> impl Iterator<Item = (usize, &Record)> {
        self.records.iter().enumerate().filter(move |(_, record)| record.from == from)
    }

    /// Returns the time of the last datagram.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.records.last().map_or(Duration::ZERO, |record| record.at)
    }

    /// Formats the datagram `around` and `context` datagrams before and after it, with times, directions and
    /// offsets.
    #[must_use]
    pub fn excerpt(&self, around: usize, context: usize) -> String {
        let mut out = String::new();
        let shown = around.saturating_sub(context)..=around + context;
        for (index, record) in self.records.iter().enumerate().filter(|(index, _)| shown.contains(index)) {
            let (time, from, len) = (record.at.as_secs_f64(), record.from.name(), record.bytes.len());
            let mark = if index == around { '>' } else { ' ' };
            // Writing to a string never fails.
            let _ = writeln!(out, "{mark} {index:5} {time:9.4} s  {from}  {len} bytes  {:?}", record.fate);
            if index == around {
                hex(&record.bytes, &mut out);
            }
        }
        out
    }

    /// Writes a pcap file for Wireshark, in which the client is 10.0.0.1 and the server 10.0.0.2.
    ///
    /// # Errors
    ///
    /// Returns an error if the writer fails.
    pub fn write_pcap(&self, out: &mut impl Write) -> io::Result<()> {
        for word in [PCAP_MAGIC, PCAP_VERSION, 0, 0, LONGEST_PACKET, RAW_IP] {
            out.write_all(&word.to_le_bytes())?;
        }
        for record in &self.records {
            let packet = ip_packet(record);
            let words = [record.at.as_secs() as u32, record.at.subsec_micros()];
            for word in words.into_iter().chain([packet.len() as u32; 2]) {
                out.write_all(&word.to_le_bytes())?;
            }
            out.write_all(&packet)?;
        }
        Ok(())
    }
}

/// Prepends IPv4 and UDP headers to a datagram. A UDP checksum of zero means that there is none.
fn ip_packet(record: &Record) -> Vec<u8> {
    let (source, target) = match record.from {
        End::Client => (1, 2),
        End::Server => (2, 1),
    };
    let len = record.bytes.len() as u16;
    // IP version 4, and a header of five words.
    let mut out = vec![0x45, 0];
    out.extend((len + HEADERS).to_be_bytes());
    // Not fragmented, TTL 64, protocol 17 (UDP), and a placeholder for the checksum.
    out.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 0, target]);
    let sum = out.chunks(2).fold(0_u32, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend((CLIENT_PORT + u16::from(source) - 1).to_be_bytes());
    out.extend((CLIENT_PORT + u16::from(target) - 1).to_be_bytes());
    out.extend((len + UDP_HEADER).to_be_bytes());
    out.extend([0, 0]);
    out.extend(&record.bytes);
    out
}

/// Appends a hex dump with sixteen bytes per line. Only the start of a long datagram is shown.
fn hex(bytes: &[u8], out: &mut String) {
    const MAX_LINES: usize = 16;
    for (row, line) in bytes.chunks(16).take(MAX_LINES).enumerate() {
        let _ = write!(out, "      {:04x} ", row * 16);
        for byte in line {
            let _ = write!(out, " {byte:02x}");
        }
        out.push('\n');
    }
    if bytes.len() > 16 * MAX_LINES {
        let _ = writeln!(out, "      ... {} bytes more", bytes.len() - 16 * MAX_LINES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Capture {
        let record = |from, bytes: &[u8]| Record {
            at: Duration::from_millis(1_500),
            from,
            bytes: bytes.to_vec(),
            fate: Fate::Passed,
            arrivals: vec![],
        };
        Capture { records: vec![record(End::Client, &[1, 2, 3]), record(End::Server, &[0x84; 300])] }
    }

    #[test]
    fn an_excerpt_marks_one_datagram_and_shows_its_offsets() {
        let text = capture().excerpt(1, 1);
        assert!(text.contains(">     1    1.5000 s  server  300 bytes  Passed"), "{text}");
        assert!(text.contains("0010  84 84") && text.contains("44 bytes more"), "{text}");
        assert!(text.contains("      0    1.5000 s  client  3 bytes"), "{text}");
    }

    #[test]
    fn a_pcap_file_has_headers_with_valid_lengths_and_checksums() {
        let mut file = Vec::new();
        capture().write_pcap(&mut file).unwrap();
        assert_eq!(file.len(), 24 + 16 + 31 + 16 + 328);
        let packet = &file[40..71];
        let sum: u32 =
            packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(
            (&packet[2..4], &packet[24..26], &packet[28..]),
            (&[0, 31][..], &[0, 11][..], &[1, 2, 3][..])
        );
    }
}
