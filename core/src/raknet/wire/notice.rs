//! Application messages with a layout that RakNet defines (docs/raknet.md#notices).
//!
//! They are sent in capsules of any reliability, like all application messages. [`Notice::Advertise`] is the
//! exception: it is the payload of an out-of-band message.

use core::net::SocketAddr;

use super::address;
use super::id;
use super::{Guid, Wire};
use crate::cursor::{Reader, Source, WireError, Writer};

/// An application message with a layout that RakNet defines.
///
/// ```
/// use rakwire::wire::notice::Notice;
/// use rakwire::wire::{Reader, Wire};
///
/// let bytes = [0x1B, 0, 0, 0, 0, 0, 0, 1, 2, 0x86, b'x'];
/// let notice = Notice::read(&mut Reader::new(&bytes))?;
/// assert_eq!(notice, Notice::Timestamp { time: 258, message: b"\x86x" });
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// Timestamp, 0x1B: id, time (u64), the actual message to the end.
    ///
    /// The time is the sender's clock in milliseconds. C++ RakNet converts it to the receiver's clock before the
    /// application reads it.
    Timestamp {
        /// The sender's time to which the message refers, in milliseconds.
        time: u64,
        /// The actual message with its own id; may be empty.
        message: &'a [u8],
    },
    /// Advertise system, 0x1D: id, raw data to the end.
    Advertise {
        /// The advertised data.
        data: &'a [u8],
    },
    /// Remote disconnection notification, 0x1F: id, address, GUID (u64).
    ///
    /// A peer of the sender closed its connection to the sender.
    RemoteDisconnected {
        /// The address of the disconnected peer.
        address: SocketAddr,
        /// The GUID of the disconnected peer.
        guid: Guid,
    },
    /// Remote connection lost, 0x20: id, address, GUID (u64). The sender's connection to one of its peers timed out.
    RemoteLost {
        /// The address of the lost peer.
        address: SocketAddr,
        /// The GUID of the lost peer.
        guid: Guid,
    },
    /// Remote new incoming connection, 0x21: id, count (u32), and for each peer address, GUID (u64), ping (u16).
    RemoteConnected {
        /// The peers connected to the sender.
        peers: RemotePeers<'a>,
    },
}

/// A peer connected to the sender: address, GUID (u64), ping in milliseconds (u16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemotePeer {
    /// The address of the peer.
    pub address: SocketAddr,
    /// The GUID of the peer.
    pub guid: Guid,
    /// The round-trip time between the peer and the sender, in milliseconds.
    pub ping: u16,
}

impl RemotePeer {
    /// The maximum size of an entry in bytes.
    pub const MAX_SIZE: usize = address::MAX_ADDRESS + 8 + 2;
}

impl<'a> Wire<'a> for RemotePeer {
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        Ok(Self {
            address: address::read(source, "address")?,
            guid: Guid(source.u64("guid")?),
            ping: source.u16("ping")?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        address::write(&self.address, writer)?;
        writer.u64(self.guid.0)?;
        writer.u16(self.ping)
    }
}

/// The entries of [`Notice::RemoteConnected`], as validated bytes.
///
/// ```
/// use rakwire::raknet::Guid;
/// use rakwire::wire::notice::{RemotePeer, RemotePeers};
///
/// let peer = RemotePeer { address: "192.0.2.7:19132".parse()?, guid: Guid(7), ping: 30 };
/// let mut buffer = [0; 2 * RemotePeer::MAX_SIZE];
/// let peers = RemotePeers::encode([peer, peer], &mut buffer)?;
/// assert!(peers.iter().eq([peer, peer]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemotePeers<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> RemotePeers<'a> {
    /// Encodes peers into `buffer`, each in at most [`RemotePeer::MAX_SIZE`] bytes, and returns the list.
    ///
    /// # Errors
    ///
    /// [`WireError::NoRoom`] if they do not fit into `buffer`.
    pub fn encode(
        peers: impl IntoIterator<Item = RemotePeer>,
        buffer: &'a mut [u8],
    ) -> Result<Self, WireError> {
        let mut writer = Writer::new(buffer);
        let mut count = 0_u32;
        for peer in peers {
            peer.write(&mut writer)?;
            count = count.checked_add(1).ok_or(WireError::BadLength)?;
        }
        Ok(Self { count, bytes: writer.finish() })
    }

    /// Returns the decoded entries.
    pub fn iter(&self) -> impl Iterator<Item = RemotePeer> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        core::iter::from_fn(move || RemotePeer::read(&mut reader).ok())
    }

    /// Reads the entries. The work is bounded by the number of bytes, even if the count is wrong.
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        let count = source.u32("count")?;
        let before = source.peek();
        for _ in 0..count {
            RemotePeer::read(source)?;
        }
        let length = before.len() - source.remaining();
        Ok(Self { count, bytes: before.get(..length).ok_or(WireError::Truncated)? })
    }
}

impl<'a> Wire<'a> for Notice<'a> {
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        match source.u8("id")? {
            id::TIMESTAMP => {
                Ok(Self::Timestamp { time: source.u64("time")?, message: source.rest("message") })
            }
            id::ADVERTISE_SYSTEM => Ok(Self::Advertise { data: source.rest("data") }),
            id::REMOTE_DISCONNECTION_NOTIFICATION => Ok(Self::RemoteDisconnected {
                address: address::read(source, "address")?,
                guid: Guid(source.u64("guid")?),
            }),
            id::REMOTE_CONNECTION_LOST => Ok(Self::RemoteLost {
                address: address::read(source, "address")?,
                guid: Guid(source.u64("guid")?),
            }),
            id::REMOTE_NEW_INCOMING_CONNECTION => {
                Ok(Self::RemoteConnected { peers: RemotePeers::read(source)? })
            }
            _ => Err(WireError::UnknownId),
        }
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::Timestamp { time, message } => {
                writer.u8(id::TIMESTAMP)?;
                writer.u64(time)?;
                writer.bytes(message)
            }
            Self::Advertise { data } => {
                writer.u8(id::ADVERTISE_SYSTEM)?;
                writer.bytes(data)
            }
            Self::RemoteDisconnected { address, guid } => {
                writer.u8(id::REMOTE_DISCONNECTION_NOTIFICATION)?;
                address::write(&address, writer)?;
                writer.u64(guid.0)
            }
            Self::RemoteLost { address, guid } => {
                writer.u8(id::REMOTE_CONNECTION_LOST)?;
                address::write(&address, writer)?;
                writer.u64(guid.0)
            }
            Self::RemoteConnected { peers } => {
                writer.u8(id::REMOTE_NEW_INCOMING_CONNECTION)?;
                writer.u32(peers.count)?;
                writer.bytes(peers.bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::law;
    use super::*;

    const GUID: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 9];
    const ADDRESS: [u8; 7] = [4, 0x80, 0xFF, 0xFF, 0xFE, 0x4A, 0xBC];

    #[test]
    fn layouts_match_documented_bytes() {
        let address = "127.0.0.1:19132".parse().expect("a literal address");
        let time = Notice::Timestamp { time: 258, message: &[0xFE, 1] };
        law::check(&time, &[0x1B, 0, 0, 0, 0, 0, 0, 1, 2, 0xFE, 1]);
        law::check(&Notice::Advertise { data: b"hi" }, b"\x1Dhi");
        let gone = [&ADDRESS[..], &GUID].concat();
        let guid = Guid(9);
        law::check(&Notice::RemoteDisconnected { address, guid }, &[&[0x1F][..], &gone].concat());
        law::check(&Notice::RemoteLost { address, guid }, &[&[0x20][..], &gone].concat());
        let mut buffer = [0; RemotePeer::MAX_SIZE];
        let peers = RemotePeers::encode([RemotePeer { address, guid, ping: 258 }], &mut buffer);
        let peers = peers.expect("space for one");
        let bytes = [&[0x21, 0, 0, 0, 1][..], &ADDRESS, &GUID, &[1, 2]].concat();
        law::check(&Notice::RemoteConnected { peers }, &bytes);
        law::check_truncations::<Notice<'_>>(&bytes);
    }

    /// A count of 2^32 - 1 costs no more than the bytes after it.
    #[test]
    fn a_peer_count_above_the_number_of_entries_is_rejected() {
        let bytes = [&[0x21, 0xFF, 0xFF, 0xFF, 0xFF][..], &ADDRESS, &GUID, &[1, 2]].concat();
        assert_eq!(Notice::read(&mut Reader::new(&bytes)), Err(WireError::Truncated));
    }
}
