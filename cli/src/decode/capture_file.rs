//! Reads the datagrams of a capture file (pcap), as written by `--pcap` of the other commands and by tcpdump.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The longest accepted record, longer than any captured frame.
const MAX_RECORD_LENGTH: u32 = 1 << 18;
const UDP: u8 = 17;

/// A UDP datagram of a capture.
#[derive(Debug)]
pub(super) struct Datagram {
    /// The time since the first record.
    pub(super) time: Duration,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// The link layer, which determines the header before the IP header.
#[derive(Clone, Copy, Debug)]
enum Link {
    Ethernet,
    Raw,
    /// The loopback framing of BSD and macOS.
    Loopback,
    LinuxCooked,
    LinuxCooked2,
}

/// An iterator over the records of a capture.
pub(super) struct CaptureFile {
    file: BufReader<File>,
    is_big_endian: bool,
    nanos_per_unit: u32,
    link: Link,
    /// The time of the first record.
    first: Option<Duration>,
}

impl CaptureFile {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut file = BufReader::new(file);
        let mut header = [0; 24];
        file.read_exact(&mut header).map_err(|_| "not a pcap capture".to_owned())?;
        let [magic @ .., _, _, _, _] = header.first_chunk::<8>().copied().unwrap_or_default();
        let (is_big_endian, nanos_per_unit) = match magic {
            [0xA1, 0xB2, 0xC3, 0xD4] => (true, 1_000),
            [0xD4, 0xC3, 0xB2, 0xA1] => (false, 1_000),
            [0xA1, 0xB2, 0x3C, 0x4D] => (true, 1),
            [0x4D, 0x3C, 0xB2, 0xA1] => (false, 1),
            [0x0A, 0x0D, 0x0D, 0x0A] => {
                return Err(
                    "the capture is in pcapng format; convert it with `editcap -F pcap FILE NEW`".to_owned()
                );
            }
            _ => return Err("not a pcap capture".to_owned()),
        };
        let link = match number(is_big_endian, header.last_chunk().copied().unwrap_or_default()) {
            0 => Link::Loopback,
            1 => Link::Ethernet,
            101 => Link::Raw,
            113 => Link::LinuxCooked,
            276 => Link::LinuxCooked2,
            other => return Err(format!("link type {other} is not supported")),
        };
        Ok(Self { file, is_big_endian, nanos_per_unit, link, first: None })
    }

    /// Reads the next record: a datagram, or `Some(Ok(None))` for another protocol or a fragment. Returns `None` after
    /// the last record.
    pub(super) fn next(&mut self) -> Option<Result<Option<Datagram>, String>> {
        let mut header = [0; 16];
        match self.file.read(&mut header) {
            Ok(0) => return None,
            Ok(count) => {
                let rest = header.get_mut(count..).unwrap_or(&mut []);
                if let Err(error) = self.file.read_exact(rest) {
                    return Some(Err(cut(&error)));
                }
            }
            Err(error) => return Some(Err(error.to_string())),
        }
        Some(self.read_record(header))
    }

    fn read_record(&mut self, header: [u8; 16]) -> Result<Option<Datagram>, String> {
        let (fields, _) = header.as_chunks::<4>();
        let field = |index: usize| number(self.is_big_endian, fields.get(index).copied().unwrap_or_default());
        let (seconds, fraction, length) = (field(0), field(1), field(2));
        if length > MAX_RECORD_LENGTH {
            return Err(format!("its length of {length} bytes is too large"));
        }
        let mut frame = vec![0; length as usize];
        self.file.read_exact(&mut frame).map_err(|error| cut(&error))?;
        let nanos = u64::from(fraction) * u64::from(self.nanos_per_unit);
        let time = Duration::from_secs(seconds.into()) + Duration::from_nanos(nanos);
        let time = time.saturating_sub(*self.first.get_or_insert(time));
        Ok(packet_of(self.link, &frame).and_then(datagram_of).map(|(from, to, bytes)| Datagram {
            time,
            from,
            to,
            bytes: bytes.to_vec(),
        }))
    }
}

fn cut(error: &std::io::Error) -> String {
    if error.kind() == ErrorKind::UnexpectedEof {
        "the file ends inside this record".to_owned()
    } else {
        error.to_string()
    }
}

const fn number(is_big_endian: bool, bytes: [u8; 4]) -> u32 {
    if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Returns the IP packet in a frame.
fn packet_of(link: Link, frame: &[u8]) -> Option<&[u8]> {
    match link {
        Link::Raw => Some(frame),
        Link::Ethernet => frame.get(14..),
        Link::Loopback => frame.get(4..),
        Link::LinuxCooked => frame.get(16..),
        Link::LinuxCooked2 => frame.get(20..),
    }
}

fn datagram_of(packet: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let (from, to, udp) = match packet.first()? >> 4 {
        4 => {
            let header = packet.get(..usize::from(packet.first()? & 15) * 4)?;
            // Fragments and other protocols are skipped.
            let is_whole = u16::from_be_bytes(*header.get(6..)?.first_chunk()?) & 0x3FFF == 0;
            if !is_whole || header.get(9) != Some(&UDP) {
                return None;
            }
            let address =
                |at: usize| Some(IpAddr::from(Ipv4Addr::from(*header.get(at..)?.first_chunk::<4>()?)));
            (address(12)?, address(16)?, packet.get(header.len()..)?)
        }
        6 => {
            if packet.get(6) != Some(&UDP) {
                return None;
            }
            let address =
                |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?).to_canonical());
            (address(8)?, address(24)?, packet.get(40..)?)
        }
        _ => return None,
    };
    let word = |at: usize| Some(u16::from_be_bytes(*udp.get(at..)?.first_chunk()?));
    let bytes = udp.get(8..usize::from(word(4)?))?;
    Some((SocketAddr::new(from, word(0)?), SocketAddr::new(to, word(2)?), bytes))
}
