//! RakNet's control messages inside a connection (docs/raknet.md#control-messages).

use core::net::SocketAddr;

use super::address::{self, AddressList};
use super::id;
pub use super::security::Proof;
use super::security::SecuritySizes;
use super::{Guid, Wire};
use crate::cursor::{Source, WireError, Writer};

/// The maximum size of an accepted control message in bytes: 21 IPv6 addresses and two timestamps.
pub const MAX_CONTROL: usize = 640;
/// The maximum length of a password in bytes.
pub const MAX_PASSWORD: usize = 255;

/// A control message of RakNet inside a connection.
///
/// A reader ignores trailing bytes, flag bytes other than 0 and 1, and the rest of a truncated field. A writer
/// normalizes them.
///
/// ```
/// use rakwire::wire::control::Control;
/// use rakwire::wire::{Reader, Wire};
///
/// let ping = Control::read(&mut Reader::new(&[0, 0, 0, 0, 0, 0, 0, 1, 2]))?;
/// assert_eq!(ping, Control::Ping { time: 258 });
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control<'a> {
    /// Connected ping, 0x00: id, the sender's clock in milliseconds (u64).
    Ping {
        /// The sender's clock in milliseconds.
        time: u64,
    },
    /// Connected pong, 0x03: id, the time of the ping (u64), the sender's clock (u64).
    Pong {
        /// The time in the ping, echoed.
        ping_time: u64,
        /// The sender's clock in milliseconds.
        time: u64,
    },
    /// Connection request, 0x09: id, GUID (u64), time (u64), security (u8), [proof (32), identity flag (u8), [identity
    /// (160)]], password to the end.
    Request {
        /// The GUID of the client.
        guid: Guid,
        /// The client's clock in milliseconds.
        time: u64,
        /// The client's proof in a secure connection.
        proof: Option<Proof<'a>>,
        /// The password, 0 to 255 bytes.
        password: &'a [u8],
    },
    /// Remote system requires public key, 0x0A: id, type (u8).
    ///
    /// C++ RakNet truncates the message to two bits, so the type may be missing ([`read_bits`](Self::read_bits)).
    RequiresPublicKey {
        /// The problem with the keys; `None` if the message is truncated.
        problem: Option<KeyProblem>,
    },
    /// Connection request accepted, 0x10: id, address of the client, system index (u16), addresses, time of the request
    /// (u64), the server's clock (u64).
    Accepted {
        /// The client's address as seen by the server.
        client: SocketAddr,
        /// The client's index in the server's table; ignored.
        system_index: u16,
        /// The server's own addresses.
        addresses: AddressList<'a>,
        /// The time in the connection request, echoed.
        request_time: u64,
        /// The server's clock in milliseconds.
        time: u64,
    },
    /// New incoming connection, 0x13: id, address of the server, addresses, time of the acceptance (u64), the client's
    /// clock (u64).
    NewIncoming {
        /// The server's address as given to `connect` at the client.
        server: SocketAddr,
        /// The client's own addresses.
        addresses: AddressList<'a>,
        /// The time in "connection request accepted", echoed.
        accepted_time: u64,
        /// The client's clock in milliseconds.
        time: u64,
    },
    /// Detect lost connections, 0x04: id.
    DetectLost,
    /// Disconnection notification, 0x15: id.
    Disconnect,
    /// Disconnection notification with a reason, 0x15 0x01: the sender cannot store a message of the receiver.
    ///
    /// Implementations that read only the id treat it as [`Disconnect`](Self::Disconnect)
    /// (docs/raknet.md#closing-for-size).
    DisconnectTooLarge,
    /// Invalid password, 0x18: id, GUID of the server.
    ///
    /// C++ RakNet truncates the message to nine bits, so the GUID may be missing.
    InvalidPassword {
        /// The GUID of the server; `None` if the message is truncated.
        guid: Option<Guid>,
    },
}

/// A problem with the keys of a secure connection.
///
/// ```
/// use rakwire::wire::control::{Control, KeyProblem};
/// use rakwire::wire::{Reader, Wire};
///
/// let problem = Some(KeyProblem::IdentityInvalid);
/// assert_eq!(Control::read(&mut Reader::new(&[0x0A, 2]))?, Control::RequiresPublicKey { problem });
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyProblem {
    /// The client does not have the public key of the server (0).
    ///
    /// Never on the wire: C++ RakNet reports it to its own application.
    ServerKeyMissing,
    /// The client did not present an identity (1).
    IdentityMissing,
    /// The identity that the client presented is invalid (2).
    IdentityInvalid,
}

impl KeyProblem {
    const fn from_wire(byte: u8) -> Result<Self, WireError> {
        match byte {
            0 => Ok(Self::ServerKeyMissing),
            1 => Ok(Self::IdentityMissing),
            2 => Ok(Self::IdentityInvalid),
            _ => Err(WireError::BadValue),
        }
    }

    const fn to_wire(self) -> u8 {
        self as u8
    }
}

/// The length in bits to which C++ RakNet truncates "remote system requires public key".
const CUT_OFF_BITS: u16 = 2;
/// The mask of the two bits that remain of its id.
const CUT_OFF_MASK: u8 = 0xC0;

impl<'a> Control<'a> {
    /// Reads a message with the given sizes of security fields; [`Wire::read`] assumes the sizes of C++ RakNet.
    ///
    /// # Errors
    ///
    /// The errors of [`Wire::read`].
    pub fn read_with<S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Self, WireError> {
        match source.u8("id")? {
            id::CONNECTED_PING => Ok(Self::Ping { time: source.u64("time")? }),
            id::CONNECTED_PONG => {
                Ok(Self::Pong { ping_time: source.u64("ping time")?, time: source.u64("time")? })
            }
            id::CONNECTION_REQUEST => read_request(source, sizes),
            id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY => read_requires_public_key(source),
            id::CONNECTION_REQUEST_ACCEPTED => read_accepted(source),
            id::NEW_INCOMING_CONNECTION => read_new_incoming(source),
            id::DETECT_LOST_CONNECTIONS => Ok(Self::DetectLost),
            id::DISCONNECTION_NOTIFICATION => read_disconnect(source),
            id::INVALID_PASSWORD => read_invalid_password(source),
            _ => Err(WireError::UnknownId),
        }
    }

    /// Reads a message that a server sends to a client; a pure client needs no others.
    pub(crate) fn read_of_server<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        match source.u8("id")? {
            id::CONNECTED_PING => Ok(Self::Ping { time: source.u64("time")? }),
            id::CONNECTED_PONG => {
                Ok(Self::Pong { ping_time: source.u64("ping time")?, time: source.u64("time")? })
            }
            id::CONNECTION_REQUEST_ACCEPTED => read_accepted(source),
            id::DETECT_LOST_CONNECTIONS => Ok(Self::DetectLost),
            id::DISCONNECTION_NOTIFICATION => read_disconnect(source),
            id::INVALID_PASSWORD => read_invalid_password(source),
            _ => Err(WireError::UnknownId),
        }
    }

    /// Reads a message from a capsule with a payload of `bits` bits.
    ///
    /// C++ RakNet passes a number of bytes to a function that expects bits. Its "remote system requires public key"
    /// therefore has only the upper two bits of its id. No other message has that length.
    ///
    /// ```
    /// use rakwire::wire::Reader;
    /// use rakwire::wire::control::Control;
    ///
    /// let cut_off = Control::read_bits(&mut Reader::new(&[0]), 2)?;
    /// assert_eq!(cut_off, Control::RequiresPublicKey { problem: None });
    /// # Ok::<(), rakwire::wire::WireError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Wire::read`].
    pub fn read_bits<S: Source<'a>>(source: &mut S, bits: u16) -> Result<Self, WireError> {
        if bits != CUT_OFF_BITS {
            return Self::read(source);
        }
        if source.u8("cut-off id")? & CUT_OFF_MASK != 0 {
            return Err(WireError::UnknownId);
        }
        Ok(Self::RequiresPublicKey { problem: None })
    }
}

impl Control<'_> {
    /// Writes a message that a client sends to a server; other messages return an error.
    pub(crate) fn write_of_client(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::Ping { time } => write_times(writer, id::CONNECTED_PING, &[time]),
            Self::Pong { ping_time, time } => write_times(writer, id::CONNECTED_PONG, &[ping_time, time]),
            Self::Request { guid, time, proof, password } => {
                write_request(writer, guid, time, proof, password)
            }
            Self::NewIncoming { server, addresses, accepted_time, time } => {
                write_new_incoming(writer, &server, addresses, [accepted_time, time])
            }
            Self::Disconnect => writer.u8(id::DISCONNECTION_NOTIFICATION),
            Self::DisconnectTooLarge => {
                writer.u8(id::DISCONNECTION_NOTIFICATION)?;
                writer.u8(TOO_LARGE)
            }
            Self::RequiresPublicKey { .. }
            | Self::Accepted { .. }
            | Self::DetectLost
            | Self::InvalidPassword { .. } => Err(WireError::NoRoom),
        }
    }
}

/// The reason byte of [`Control::DisconnectTooLarge`].
const TOO_LARGE: u8 = 1;

fn read_disconnect<'a, S: Source<'a>>(source: &mut S) -> Result<Control<'a>, WireError> {
    if source.remaining() == 1 && source.peek().first() == Some(&TOO_LARGE) {
        source.u8("reason")?;
        return Ok(Control::DisconnectTooLarge);
    }
    Ok(Control::Disconnect)
}

/// Writes an id followed by 64-bit times.
fn write_times(writer: &mut Writer<'_>, id: u8, times: &[u64]) -> Result<(), WireError> {
    writer.u8(id)?;
    times.iter().try_for_each(|time| writer.u64(*time))
}

fn write_new_incoming(
    writer: &mut Writer<'_>,
    server: &SocketAddr,
    addresses: AddressList<'_>,
    times: [u64; 2],
) -> Result<(), WireError> {
    writer.u8(id::NEW_INCOMING_CONNECTION)?;
    address::write(server, writer)?;
    addresses.write(writer)?;
    times.iter().try_for_each(|time| writer.u64(*time))
}

impl<'a> Wire<'a> for Control<'a> {
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        Self::read_with(source, &SecuritySizes::ORIGINAL)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::Ping { time } => write_times(writer, id::CONNECTED_PING, &[time]),
            Self::Pong { ping_time, time } => write_times(writer, id::CONNECTED_PONG, &[ping_time, time]),
            Self::Request { guid, time, proof, password } => {
                write_request(writer, guid, time, proof, password)
            }
            Self::RequiresPublicKey { problem } => {
                writer.u8(id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY)?;
                problem.map_or(Ok(()), |problem| writer.u8(problem.to_wire()))
            }
            Self::Accepted { client, system_index, addresses, request_time, time } => {
                writer.u8(id::CONNECTION_REQUEST_ACCEPTED)?;
                address::write(&client, writer)?;
                writer.u16(system_index)?;
                addresses.write(writer)?;
                writer.u64(request_time)?;
                writer.u64(time)
            }
            Self::NewIncoming { server, addresses, accepted_time, time } => {
                write_new_incoming(writer, &server, addresses, [accepted_time, time])
            }
            Self::DetectLost => writer.u8(id::DETECT_LOST_CONNECTIONS),
            Self::Disconnect => writer.u8(id::DISCONNECTION_NOTIFICATION),
            Self::DisconnectTooLarge => {
                writer.u8(id::DISCONNECTION_NOTIFICATION)?;
                writer.u8(TOO_LARGE)
            }
            Self::InvalidPassword { guid } => {
                writer.u8(id::INVALID_PASSWORD)?;
                guid.map_or(Ok(()), |guid| writer.u64(guid.0))
            }
        }
    }
}

fn read_request<'a, S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Control<'a>, WireError> {
    let guid = Guid(source.u64("guid")?);
    let time = source.u64("time")?;
    let proof = match source.u8("security")? {
        0 => None,
        _ => Some(Proof::read(source, sizes)?),
    };
    let password = source.rest("password");
    if password.len() > MAX_PASSWORD {
        return Err(WireError::BadLength);
    }
    Ok(Control::Request { guid, time, proof, password })
}

fn write_request(
    writer: &mut Writer<'_>,
    guid: Guid,
    time: u64,
    proof: Option<Proof<'_>>,
    password: &[u8],
) -> Result<(), WireError> {
    if password.len() > MAX_PASSWORD {
        return Err(WireError::BadLength);
    }
    writer.u8(id::CONNECTION_REQUEST)?;
    writer.u64(guid.0)?;
    writer.u64(time)?;
    writer.u8(u8::from(proof.is_some()))?;
    if let Some(proof) = proof {
        proof.write(writer)?;
    }
    writer.bytes(password)
}

fn read_requires_public_key<'a, S: Source<'a>>(source: &mut S) -> Result<Control<'a>, WireError> {
    if source.remaining() == 0 {
        return Ok(Control::RequiresPublicKey { problem: None });
    }
    Ok(Control::RequiresPublicKey { problem: Some(KeyProblem::from_wire(source.u8("type")?)?) })
}

fn read_accepted<'a, S: Source<'a>>(source: &mut S) -> Result<Control<'a>, WireError> {
    Ok(Control::Accepted {
        client: address::read(source, "client address")?,
        system_index: source.u16("system index")?,
        addresses: AddressList::read_before(source, 16)?,
        request_time: source.u64("request time")?,
        time: source.u64("time")?,
    })
}

fn read_new_incoming<'a, S: Source<'a>>(source: &mut S) -> Result<Control<'a>, WireError> {
    Ok(Control::NewIncoming {
        server: address::read(source, "server address")?,
        addresses: AddressList::read_before(source, 16)?,
        accepted_time: source.u64("accepted time")?,
        time: source.u64("time")?,
    })
}

fn read_invalid_password<'a, S: Source<'a>>(source: &mut S) -> Result<Control<'a>, WireError> {
    if source.remaining() < 8 {
        if source.remaining() > 0 {
            source.rest("cut-off guid");
        }
        return Ok(Control::InvalidPassword { guid: None });
    }
    Ok(Control::InvalidPassword { guid: Some(Guid(source.u64("guid")?)) })
}

#[cfg(test)]
mod tests {
    use super::super::law;
    use super::*;
    use crate::cursor::Reader;

    const GUID: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 9];
    const ADDRESS: [u8; 7] = [4, 0x80, 0xFF, 0xFF, 0xFE, 0x4A, 0xBC];
    const UNASSIGNED: [u8; 7] = [4, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];

    fn time(value: u8) -> [u8; 8] {
        [0, 0, 0, 0, 0, 0, 0, value]
    }

    fn loopback() -> SocketAddr {
        "127.0.0.1:19132".parse().expect("a literal address")
    }

    #[test]
    fn pings_pongs_and_disconnects_round_trip() {
        law::check(&Control::Ping { time: 5 }, &[&[0][..], &time(5)].concat());
        law::check(&Control::Pong { ping_time: 5, time: 6 }, &[&[3][..], &time(5), &time(6)].concat());
        law::check(&Control::DetectLost, &[4]);
        law::check(&Control::Disconnect, &[0x15]);
        law::check(&Control::DisconnectTooLarge, &[0x15, 1]);
        assert_eq!(Control::read(&mut Reader::new(&[0x15, 2])), Ok(Control::Disconnect));
    }

    #[test]
    fn connection_requests_round_trip() {
        let request = |proof, password| Control::Request { guid: Guid(9), time: 5, proof, password };
        let plain = [&[9][..], &GUID, &time(5), &[0]].concat();
        assert_eq!(plain.len(), 18);
        law::check(&request(None, b""), &plain);
        law::check(&request(None, b"secret"), &[&plain[..], b"secret"].concat());
        let proof = Proof { proof: &[7; 32], identity: None };
        law::check(&request(Some(proof), b""), &[&plain[..17], &[1], &[7; 32], &[0]].concat());
        let proof = Proof { proof: &[7; 32], identity: Some(&[8; 160]) };
        law::check(
            &request(Some(proof), b"pw"),
            &[&plain[..17], &[1], &[7; 32], &[1], &[8; 160], b"pw"].concat(),
        );
        let long = [&plain[..], &[b'x'; 256]].concat();
        assert_eq!(Control::read(&mut Reader::new(&long)), Err(WireError::BadLength));
    }

    #[test]
    fn handshakes_with_ten_and_twenty_addresses_round_trip() {
        for (count, accepted_size, incoming_size) in [(10, 96, 94), (20, 166, 164)] {
            let list = AddressList::unassigned(count);
            let accepted = Control::Accepted {
                client: loopback(),
                system_index: 258,
                addresses: list,
                request_time: 1,
                time: 2,
            };
            let padding = UNASSIGNED.repeat(count);
            let bytes = [&[0x10][..], &ADDRESS, &[1, 2], &padding, &time(1), &time(2)].concat();
            assert_eq!(bytes.len(), accepted_size);
            law::check(&accepted, &bytes);
            let incoming =
                Control::NewIncoming { server: loopback(), addresses: list, accepted_time: 1, time: 2 };
            let bytes = [&[0x13][..], &ADDRESS, &padding, &time(1), &time(2)].concat();
            assert_eq!(bytes.len(), incoming_size);
            law::check(&incoming, &bytes);
        }
    }

    /// C++ RakNet sends nine bits of the message (docs/raknet.md#cut-messages).
    #[test]
    fn a_truncated_invalid_password_message_is_read() {
        law::check(&Control::InvalidPassword { guid: Some(Guid(9)) }, &[&[0x18][..], &GUID].concat());
        let cut = Control::read(&mut Reader::new(&[0x18, 0x80]));
        assert_eq!(cut, Ok(Control::InvalidPassword { guid: None }));
    }

    /// C++ RakNet sends two bits of the message, both zero.
    #[test]
    fn a_truncated_public_key_problem_is_read() {
        let wanting = |problem| Control::RequiresPublicKey { problem };
        law::check(&wanting(Some(KeyProblem::IdentityMissing)), &[0x0A, 1]);
        law::check(&wanting(Some(KeyProblem::IdentityInvalid)), &[0x0A, 2]);
        law::check(&wanting(None), &[0x0A]);
        assert_eq!(Control::read_bits(&mut Reader::new(&[0]), 2), Ok(wanting(None)));
        assert_eq!(Control::read_bits(&mut Reader::new(&[0x80]), 2), Err(WireError::UnknownId));
        assert_eq!(Control::read_bits(&mut Reader::new(&[4]), 8), Ok(Control::DetectLost));
    }

    #[test]
    fn unknown_ids_and_invalid_fields_are_refused() {
        assert_eq!(Control::read(&mut Reader::new(&[0x86, 1])), Err(WireError::UnknownId));
        assert_eq!(Control::read(&mut Reader::new(&[0x0A, 3])), Err(WireError::BadValue));
        law::check_truncations::<Control<'_>>(&[&[3][..], &time(5), &time(6)].concat());
    }
}
