//! Encodes and decodes offline messages.

use super::{MAGIC, Reader, id, put_address};
use std::net::SocketAddr;

/// Returns the offset of the magic in an offline message with this id.
#[must_use]
pub fn magic_offset(id: u8) -> Option<usize> {
    match id {
        0x05..=0x08 | 0x11 | 0x12 | 0x14 | 0x17 | 0x1a => Some(1),
        0x19 => Some(2),
        0x01 | 0x02 | 0x0d => Some(9),
        0x1c => Some(17),
        _ => None,
    }
}

/// Returns the id of an offline message, or `None` if the magic is not at the offset for this id.
#[must_use]
pub fn offline_id(datagram: &[u8]) -> Option<u8> {
    let id = *datagram.first()?;
    let at = magic_offset(id)?;
    (datagram.get(at..at + 16)? == MAGIC).then_some(id)
}

/// Builds an unconnected ping.
#[must_use]
pub fn ping(id: u8, time: u64, guid: u64) -> Vec<u8> {
    [&[id][..], &time.to_be_bytes(), &MAGIC, &guid.to_be_bytes()].concat()
}

/// Builds an unconnected pong.
#[must_use]
pub fn pong(time: u64, guid: u64, data: &[u8]) -> Vec<u8> {
    [&[id::PONG][..], &time.to_be_bytes(), &guid.to_be_bytes(), &MAGIC, data].concat()
}

/// Builds a request 1 padded to `len` bytes.
#[must_use]
pub fn request_1(version: u8, len: usize) -> Vec<u8> {
    let mut out = [&[id::REQUEST_1][..], &MAGIC, &[version]].concat();
    out.resize(len.max(out.len()), 0);
    out
}

/// Builds a request 2 without a challenge. After a cookie, a flag byte of 0 states that no challenge follows.
#[must_use]
pub fn request_2(cookie: Option<u32>, server: SocketAddr, mtu: u16, guid: u64) -> Vec<u8> {
    let mut out = [&[id::REQUEST_2][..], &MAGIC].concat();
    if let Some(cookie) = cookie {
        out.extend(cookie.to_be_bytes());
        out.push(0);
    }
    put_address(&mut out, server);
    out.extend(mtu.to_be_bytes());
    out.extend(guid.to_be_bytes());
    out
}

/// The fields of a request 2.
#[derive(Clone, Copy, Debug)]
pub struct Request2 {
    /// The cookie, if the client returns one.
    pub cookie: Option<u32>,
    /// The byte after the cookie.
    pub challenge: u8,
    /// The server address to which the client connects.
    pub server: SocketAddr,
    /// The MTU that the client requests, in bytes, including 28 for IP and UDP headers.
    pub mtu: u16,
    /// The client's GUID.
    pub guid: u64,
}

/// Decodes a request 2 without a challenge.
#[must_use]
pub fn read_request_2(datagram: &[u8]) -> Option<Request2> {
    let mut from = Reader(datagram);
    (from.u8()? == id::REQUEST_2).then_some(())?;
    from.magic()?;
    // Without a cookie, exactly an address, an MTU and a GUID remain.
    let plain = matches!((from.0.len(), from.0.first()), (17, Some(4)) | (39, Some(6)));
    let (cookie, challenge) = if plain { (None, 0) } else { (Some(from.u32()?), from.u8()?) };
    Some(Request2 { cookie, challenge, server: from.address()?, mtu: from.u16()?, guid: from.u64()? })
}

/// Builds a reply 1. A cookie sets the security byte.
#[must_use]
pub fn reply_1(guid: u64, cookie: Option<u32>, mtu: u16) -> Vec<u8> {
    let mut out = refusal(id::REPLY_1, guid);
    out.push(u8::from(cookie.is_some()));
    out.extend(cookie.map(u32::to_be_bytes).into_iter().flatten());
    out.extend(mtu.to_be_bytes());
    out
}

/// Builds a reply 2 without encryption.
#[must_use]
pub fn reply_2(guid: u64, client: SocketAddr, mtu: u16) -> Vec<u8> {
    let mut out = refusal(id::REPLY_2, guid);
    put_address(&mut out, client);
    out.extend(mtu.to_be_bytes());
    out.push(0);
    out
}

/// Builds a message 19, incompatible protocol version.
#[must_use]
pub fn incompatible(version: u8, guid: u64) -> Vec<u8> {
    [&[id::INCOMPATIBLE, version][..], &MAGIC, &guid.to_be_bytes()].concat()
}

/// Builds a message that consists of an id, the magic and a GUID.
#[must_use]
pub fn refusal(id: u8, guid: u64) -> Vec<u8> {
    [&[id][..], &MAGIC, &guid.to_be_bytes()].concat()
}

/// The time, GUID and data of a pong.
#[derive(Clone, Debug)]
pub struct Pong {
    /// The time that the ping contained.
    pub time: u64,
    /// The server's GUID.
    pub guid: u64,
    /// The data of the server's application.
    pub data: Vec<u8>,
}

/// Reads a pong.
#[must_use]
pub fn read_pong(datagram: &[u8]) -> Option<Pong> {
    let mut from = Reader(datagram);
    (from.u8()? == id::PONG).then_some(())?;
    let (time, guid) = (from.u64()?, from.u64()?);
    from.magic()?;
    Some(Pong { time, guid, data: from.0.to_vec() })
}

/// The fields of a reply 1.
#[derive(Clone, Copy, Debug)]
pub struct Reply1 {
    /// The server's GUID.
    pub guid: u64,
    /// The byte that announces a cookie.
    pub security: u8,
    /// The cookie, if the server requires one.
    pub cookie: Option<u32>,
    /// True if a public key follows the cookie.
    pub key: bool,
    /// The MTU that the server offers, in bytes, including 28 for IP and UDP headers.
    pub mtu: u16,
}

/// Reads a reply 1. Zero padding is allowed, so 64 zeros after the cookie are not a key.
#[must_use]
pub fn read_reply_1(datagram: &[u8]) -> Option<Reply1> {
    let mut from = Reader(datagram);
    (from.u8()? == id::REPLY_1).then_some(())?;
    from.magic()?;
    let (guid, security) = (from.u64()?, from.u8()?);
    let (mut cookie, mut key) = (None, false);
    if security != 0 {
        cookie = Some(from.u32()?);
        // Only zero padding may follow the MTU. Other bytes after these two are a key of 64 bytes before the MTU.
        let padded = from.0.get(2..).is_some_and(|rest| rest.iter().all(|&byte| byte == 0));
        if !padded && from.0.len() >= 66 {
            key = from.bytes(64)?.iter().any(|&byte| byte != 0);
        }
    }
    Some(Reply1 { guid, security, cookie, key, mtu: from.u16()? })
}

/// The fields of a reply 2.
#[derive(Clone, Copy, Debug)]
pub struct Reply2 {
    /// The server's GUID.
    pub guid: u64,
    /// The address that the server saw.
    pub client: SocketAddr,
    /// The MTU of the connection, in bytes, including 28 for IP and UDP headers.
    pub mtu: u16,
    /// The encryption byte, which is 0 without a secure mode.
    pub encryption: u8,
    /// The number of bytes after the encryption byte.
    pub rest: usize,
}

/// Reads a reply 2.
#[must_use]
pub fn read_reply_2(datagram: &[u8]) -> Option<Reply2> {
    let mut from = Reader(datagram);
    (from.u8()? == id::REPLY_2).then_some(())?;
    from.magic()?;
    let guid = from.u64()?;
    let client = from.address()?;
    let (mtu, encryption) = (from.u16()?, from.u8()?);
    Some(Reply2 { guid, client, mtu, encryption, rest: from.0.len() })
}
