//! Events that C++ RakNet passes to its own application as bytes (docs/raknet.md#local-events).
//!
//! C++ RakNet **never sends** them. A received message with such an id is dropped, except for messages about the keys
//! of a secure connection. The module is for tools that read logs and captures of C++ RakNet programs, and for bindings
//! with RakNet's interface. The public RakNet documents describe two of the events with additional fields;
//! both forms are read.
//!
//! Numbers are little endian, as in the memory of C++ RakNet, except in the documented longer forms.

use core::net::SocketAddr;

use super::address;
use super::id;
use super::{Guid, Wire};
use crate::cursor::{Source, WireError, Writer};

/// An event of C++ RakNet, never on the wire.
///
/// ```
/// use rakwire::wire::local::{Local, Receipt};
/// use rakwire::wire::{Reader, Wire};
///
/// let event = Local::read(&mut Reader::new(&[0x0E, 2, 1, 0, 0]))?;
/// assert_eq!(event, Local::Receipt { outcome: Receipt::Acknowledged, number: 258 });
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Local<'a> {
    /// Our system requires security, 0x0B: id; in the documented form followed by the address of the client and the
    /// GUID of the server.
    RequiresSecurity {
        /// The peer without security, in the documented form.
        peer: Option<Subject>,
    },
    /// Public key mismatch, 0x0C: id.
    PublicKeyMismatch,
    /// Receipt, 0x0E or 0x0F: id, number (u32, little endian).
    Receipt {
        /// Whether the message was acknowledged.
        outcome: Receipt,
        /// The number that RakNet's `Send` returned.
        number: u32,
    },
    /// Connection attempt failed, 0x11: id.
    ///
    /// The form with the magic is [`Refusal::AttemptFailed`](super::offline::Refusal::AttemptFailed).
    AttemptFailed,
    /// Connection lost, 0x16: id; in the documented form followed by the GUID and the address of the client.
    ConnectionLost {
        /// The unresponsive peer, in the documented form.
        peer: Option<Subject>,
    },
    /// Download progress, 0x1E: id, parts received (u32), total parts (u32), length of the first part (u32), its bytes;
    /// little endian.
    DownloadProgress {
        /// The number of parts received so far.
        received: u32,
        /// The total number of parts.
        total: u32,
        /// The payload of the first part.
        first: &'a [u8],
    },
}

/// The outcome of a message that was sent with a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Receipt {
    /// The message was acknowledged (0x0E).
    Acknowledged,
    /// The message was lost (0x0F).
    Lost,
}

/// The peer to which an event refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The address of the peer.
    pub address: SocketAddr,
    /// The GUID of the peer.
    pub guid: Guid,
}

impl<'a> Wire<'a> for Local<'a> {
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        match source.u8("id")? {
            id::OUR_SYSTEM_REQUIRES_SECURITY => Ok(Self::RequiresSecurity { peer: read_security(source)? }),
            id::PUBLIC_KEY_MISMATCH => Ok(Self::PublicKeyMismatch),
            id::SEND_RECEIPT_ACKED => read_receipt(source, Receipt::Acknowledged),
            id::SEND_RECEIPT_LOSS => read_receipt(source, Receipt::Lost),
            id::CONNECTION_ATTEMPT_FAILED => Ok(Self::AttemptFailed),
            id::CONNECTION_LOST => Ok(Self::ConnectionLost { peer: read_lost(source)? }),
            id::DOWNLOAD_PROGRESS => read_progress(source),
            _ => Err(WireError::UnknownId),
        }
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::RequiresSecurity { peer } => {
                writer.u8(id::OUR_SYSTEM_REQUIRES_SECURITY)?;
                let Some(peer) = peer else { return Ok(()) };
                address::write(&peer.address, writer)?;
                writer.u64(peer.guid.0)
            }
            Self::PublicKeyMismatch => writer.u8(id::PUBLIC_KEY_MISMATCH),
            Self::Receipt { outcome, number } => {
                writer.u8(match outcome {
                    Receipt::Acknowledged => id::SEND_RECEIPT_ACKED,
                    Receipt::Lost => id::SEND_RECEIPT_LOSS,
                })?;
                writer.u32_le(number)
            }
            Self::AttemptFailed => writer.u8(id::CONNECTION_ATTEMPT_FAILED),
            Self::ConnectionLost { peer } => {
                writer.u8(id::CONNECTION_LOST)?;
                let Some(peer) = peer else { return Ok(()) };
                writer.u64(peer.guid.0)?;
                address::write(&peer.address, writer)
            }
            Self::DownloadProgress { received, total, first } => {
                writer.u8(id::DOWNLOAD_PROGRESS)?;
                writer.u32_le(received)?;
                writer.u32_le(total)?;
                writer.u32_le(u32::try_from(first.len()).map_err(|_| WireError::BadLength)?)?;
                writer.bytes(first)
            }
        }
    }
}

fn read_receipt<'a, S: Source<'a>>(source: &mut S, outcome: Receipt) -> Result<Local<'a>, WireError> {
    Ok(Local::Receipt { outcome, number: source.u32_le("number")? })
}

fn read_security<'a, S: Source<'a>>(source: &mut S) -> Result<Option<Subject>, WireError> {
    if source.remaining() == 0 {
        return Ok(None);
    }
    let address = address::read(source, "client address")?;
    Ok(Some(Subject { address, guid: Guid(source.u64("guid")?) }))
}

fn read_lost<'a, S: Source<'a>>(source: &mut S) -> Result<Option<Subject>, WireError> {
    if source.remaining() == 0 {
        return Ok(None);
    }
    let guid = Guid(source.u64("guid")?);
    Ok(Some(Subject { address: address::read(source, "client address")?, guid }))
}

fn read_progress<'a, S: Source<'a>>(source: &mut S) -> Result<Local<'a>, WireError> {
    let received = source.u32_le("parts received")?;
    let total = source.u32_le("parts in all")?;
    let length = source.u32_le("length of the first part")?;
    let length = usize::try_from(length).map_err(|_| WireError::BadLength)?;
    Ok(Local::DownloadProgress { received, total, first: source.bytes("first part", length)? })
}

#[cfg(test)]
mod tests {
    use super::super::law;
    use super::*;

    #[test]
    fn layouts_match_documented_bytes() {
        let address = "127.0.0.1:19132".parse().expect("a literal address");
        let peer = Some(Subject { address, guid: Guid(9) });
        let guid = [0, 0, 0, 0, 0, 0, 0, 9];
        let bytes = [4, 0x80, 0xFF, 0xFF, 0xFE, 0x4A, 0xBC];
        law::check(&Local::RequiresSecurity { peer: None }, &[0x0B]);
        law::check(&Local::RequiresSecurity { peer }, &[&[0x0B][..], &bytes, &guid].concat());
        law::check(&Local::PublicKeyMismatch, &[0x0C]);
        law::check(&Local::Receipt { outcome: Receipt::Acknowledged, number: 1 }, &[0x0E, 1, 0, 0, 0]);
        law::check(&Local::Receipt { outcome: Receipt::Lost, number: 256 }, &[0x0F, 0, 1, 0, 0]);
        law::check(&Local::AttemptFailed, &[0x11]);
        law::check(&Local::ConnectionLost { peer: None }, &[0x16]);
        law::check(&Local::ConnectionLost { peer }, &[&[0x16][..], &guid, &bytes].concat());
        let progress = Local::DownloadProgress { received: 2, total: 258, first: b"ab" };
        let bytes = [0x1E, 2, 0, 0, 0, 2, 1, 0, 0, 2, 0, 0, 0, b'a', b'b'];
        law::check(&progress, &bytes);
        law::check_truncations::<Local<'_>>(&bytes);
    }
}
