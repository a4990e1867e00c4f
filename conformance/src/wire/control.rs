//! RakNet's own messages inside a connection.

use super::{Reader, id, put_address};
use std::net::{Ipv4Addr, SocketAddr};

/// Builds a connected ping.
#[must_use]
pub fn connected_ping(time: u64) -> Vec<u8> {
    [&[id::CONNECTED_PING][..], &time.to_be_bytes()].concat()
}

/// Builds a connected pong.
#[must_use]
pub fn connected_pong(ping: u64, time: u64) -> Vec<u8> {
    [&[id::CONNECTED_PONG][..], &ping.to_be_bytes(), &time.to_be_bytes()].concat()
}

/// Builds a connection request without encryption.
#[must_use]
pub fn connection_request(guid: u64, time: u64, password: &[u8]) -> Vec<u8> {
    [&[id::CONNECTION_REQUEST][..], &guid.to_be_bytes(), &time.to_be_bytes(), &[0], password].concat()
}

/// Builds a new incoming connection (13).
#[must_use]
pub fn new_incoming(server: SocketAddr, addresses: usize, accepted: u64, time: u64) -> Vec<u8> {
    let mut out = vec![id::NEW_INCOMING];
    put_address(&mut out, server);
    for _ in 0..addresses {
        put_address(&mut out, unassigned());
    }
    out.extend(accepted.to_be_bytes());
    out.extend(time.to_be_bytes());
    out
}

/// Builds a connection request accepted (10).
#[must_use]
pub fn accepted(client: SocketAddr, addresses: usize, request_time: u64, time: u64) -> Vec<u8> {
    let mut out = vec![id::ACCEPTED];
    put_address(&mut out, client);
    out.extend([0, 0]);
    (0..addresses).for_each(|_| put_address(&mut out, unassigned()));
    out.extend(request_time.to_be_bytes());
    out.extend(time.to_be_bytes());
    out
}

/// The fields of a new incoming connection (13).
#[derive(Clone, Copy, Debug)]
pub struct NewIncoming {
    /// The address of the server.
    pub server: SocketAddr,
    /// The number of addresses in its address list.
    pub addresses: usize,
    /// The server's time from connection request accepted (10).
    pub accepted: u64,
    /// The client's time.
    pub time: u64,
}

/// Decodes a new incoming connection (13). The address list ends before the last sixteen bytes.
#[must_use]
pub fn read_new_incoming(payload: &[u8]) -> Option<NewIncoming> {
    let mut from = Reader(payload);
    (from.u8()? == id::NEW_INCOMING).then_some(())?;
    let server = from.address()?;
    let mut addresses = 0;
    while from.0.len() > 16 {
        from.address()?;
        addresses += 1;
    }
    Some(NewIncoming { server, addresses, accepted: from.u64()?, time: from.u64()? })
}

/// Returns the unassigned address.
#[must_use]
pub fn unassigned() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
}

/// The fields of a connection request accepted (10).
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The client's address as the server saw it.
    pub client: SocketAddr,
    /// The number of addresses in its address list.
    pub addresses: usize,
    /// The client's time from its connection request.
    pub request_time: u64,
    /// The server's time.
    pub time: u64,
}

/// Decodes a connection request accepted (10). The address list ends before the last sixteen bytes.
#[must_use]
pub fn read_accepted(payload: &[u8]) -> Option<Accepted> {
    let mut from = Reader(payload);
    (from.u8()? == id::ACCEPTED).then_some(())?;
    let client = from.address()?;
    from.u16()?;
    let mut addresses = 0;
    while from.0.len() > 16 {
        from.address()?;
        addresses += 1;
    }
    let (request_time, time) = (from.u64()?, from.u64()?);
    Some(Accepted { client, addresses, request_time, time })
}
