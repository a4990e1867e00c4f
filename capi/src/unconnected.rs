//! Functions that need no connection: pings, advertisements, out-of-band messages, the password and bans.

use std::ffi::{c_char, c_int};
use std::net::{IpAddr, SocketAddr};

use rakwire_native::rakwire::Instant;
use rakwire_native::rakwire::raknet::OutOfBandError;
use rakwire_native::{AddressPattern, PingScope};

use crate::codes::{
    Failure, Outcome, RAKWIRE_ERROR_ADDRESS, RAKWIRE_ERROR_ADDRESS_FAMILY, RAKWIRE_ERROR_ARGUMENT,
    RAKWIRE_ERROR_FULL, RAKWIRE_ERROR_NO_ROOM, RAKWIRE_ERROR_TOO_LONG, RAKWIRE_OK, guard,
};
use crate::convert::{duration, set_error, socket_address};
use crate::endpoint::Endpoint;
use crate::memory::{bytes, check_out, flag, needed_text};
use crate::registry;
use crate::types::{RakwireAddress, RakwireEndpoint, RakwireResult};

/// Reads a destination address, and checks that the socket can send to it.
///
/// # Safety
/// `address` is null or points to an address.
unsafe fn destination(endpoint: &Endpoint, address: *const RakwireAddress) -> Outcome<SocketAddr> {
    check_out(address.cast_mut())?;
    // SAFETY: the pointer is not null and is aligned. By the contract it points to an address, for which every bit
    // pattern is valid.
    let to = socket_address(unsafe { &*address })?;
    if to.is_ipv6() && endpoint.polled.local_addr().is_ipv4() {
        return Err(Failure::new(RAKWIRE_ERROR_ADDRESS_FAMILY));
    }
    // An IPv4-mapped IPv6 address counts as IPv4, as for connections.
    match to.ip().to_canonical() {
        ip @ IpAddr::V4(_) => Ok(SocketAddr::new(ip, to.port())),
        IpAddr::V6(_) => Ok(to),
    }
}

/// Pings a server without a connection. RAKWIRE_EVENT_PONG follows if it answers. `is_broadcast` 1: a broadcast or multicast
/// address; every server that answers within five seconds causes an event. `only_open` 1, with `is_broadcast`: full servers do
/// not answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_ping(
    endpoint: RakwireEndpoint,
    address: *const RakwireAddress,
    is_broadcast: u8,
    only_open: u8,
) -> RakwireResult {
    guard(|| {
        let is_broadcast = flag(is_broadcast, "is_broadcast")?;
        let only_open = flag(only_open, "only_open")?;
        if only_open && !is_broadcast {
            return Err(Failure::with(RAKWIRE_ERROR_ARGUMENT, "only_open needs is_broadcast"));
        }
        registry::with(endpoint, |endpoint| {
            // SAFETY: the caller passes an address or null.
            let to = unsafe { destination(endpoint, address) }?;
            let now = endpoint.polled.now();
            let peer = endpoint.polled.peer_mut();
            let scope = if only_open { PingScope::OpenConnections } else { PingScope::Any };
            let sent = if is_broadcast { peer.discover(now, to, scope) } else { peer.ping(now, to) };
            sent.map_err(|error| Failure::with(RAKWIRE_ERROR_FULL, error))?;
            Ok(RAKWIRE_OK)
        })
    })
}

/// Sets the data in pongs of this endpoint, at most 399 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_set_advertisement(
    endpoint: RakwireEndpoint,
    data: *const u8,
    length: usize,
) -> RakwireResult {
    guard(|| {
        // SAFETY: the caller passes `length` bytes.
        let data = unsafe { bytes(data, length) }?;
        registry::with(endpoint, |endpoint| {
            endpoint.polled.peer_mut().set_advertisement(data).map_err(set_error)?;
            Ok(RAKWIRE_OK)
        })
    })
}

type SendUnconnected = fn(
    &mut rakwire_native::rakwire::raknet::Peer<'_>,
    Instant,
    SocketAddr,
    &[u8],
) -> Result<(), OutOfBandError>;

/// # Safety
/// `address` is null, or points to an address. `data` points to `length` bytes.
unsafe fn send_unconnected(
    endpoint: u64,
    address: *const RakwireAddress,
    (data, length): (*const u8, usize),
    send: SendUnconnected,
) -> Outcome<i32> {
    // SAFETY: required of the caller of this function.
    let data = unsafe { bytes(data, length) }?;
    registry::with(endpoint, |endpoint| {
        // SAFETY: required of the caller of this function.
        let to = unsafe { destination(endpoint, address) }?;
        let now = endpoint.polled.now();
        send(endpoint.polled.peer_mut(), now, to, data).map_err(|error| {
            let code = match error {
                OutOfBandError::TooMany => RAKWIRE_ERROR_NO_ROOM,
                OutOfBandError::BadLength | _ => RAKWIRE_ERROR_TOO_LONG,
            };
            Failure::with(code, error)
        })?;
        Ok(RAKWIRE_OK)
    })
}

/// Sends one out-of-band message of 1 to 399 bytes to a peer without a connection, which must have `out_of_band` set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_send_out_of_band(
    endpoint: RakwireEndpoint,
    address: *const RakwireAddress,
    data: *const u8,
    length: usize,
) -> RakwireResult {
    guard(|| {
        // SAFETY: the caller passes an address or null, and `length` bytes.
        unsafe {
            send_unconnected(endpoint, address, (data, length), |peer, now, to, data| {
                peer.send_out_of_band(now, to, data)
            })
        }
    })
}

/// Sends one advertisement of 0 to 398 bytes to a peer without a connection, which must have `out_of_band` set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_advertise(
    endpoint: RakwireEndpoint,
    address: *const RakwireAddress,
    data: *const u8,
    length: usize,
) -> RakwireResult {
    guard(|| {
        // SAFETY: the caller passes an address or null, and `length` bytes.
        unsafe {
            send_unconnected(endpoint, address, (data, length), |peer, now, to, data| {
                peer.advertise(now, to, data)
            })
        }
    })
}

/// Sets the password that new clients must send, at most 255 bytes. Length 0: none. Clients send it unencrypted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_set_password(
    endpoint: RakwireEndpoint,
    password: *const u8,
    length: usize,
) -> RakwireResult {
    guard(|| {
        // SAFETY: the caller passes `length` bytes.
        let password = unsafe { bytes(password, length) }?;
        registry::with(endpoint, |endpoint| {
            endpoint.polled.peer_mut().set_password(password).map_err(set_error)?;
            Ok(RAKWIRE_OK)
        })
    })
}

/// # Safety
/// `pattern` is null or a string.
unsafe fn pattern(pattern: *const c_char) -> Outcome<AddressPattern> {
    // SAFETY: required of the caller of this function.
    let text = unsafe { needed_text(pattern) }?;
    text.parse().map_err(|error| Failure::with(RAKWIRE_ERROR_ADDRESS, error))
}

/// Bans an address, a wildcard such as "192.0.2.*", or a prefix such as "2001:db8::/32". `duration_ms` 0: permanently. Existing
/// connections stay open. There can be 64 bans.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_ban(
    endpoint: RakwireEndpoint,
    addresses: *const c_char,
    duration_ms: u32,
) -> RakwireResult {
    guard(|| {
        // SAFETY: the caller passes a string or null.
        let pattern = unsafe { pattern(addresses) }?;
        registry::with(endpoint, |endpoint| {
            let now = endpoint.polled.now();
            let full = Failure::new(RAKWIRE_ERROR_FULL);
            let Some(bans) = endpoint.polled.peer_mut().bans_mut() else { return Err(full) };
            bans.expire(now);
            let until = (duration_ms > 0).then(|| now + duration(duration_ms));
            bans.add(pattern, until).map_err(|_| full)?;
            Ok(RAKWIRE_OK)
        })
    })
}

/// Removes a ban. Returns 1 if it existed, otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_unban(endpoint: RakwireEndpoint, addresses: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller passes a string or null.
        let pattern = unsafe { pattern(addresses) }?;
        registry::with(endpoint, |endpoint| {
            let bans = endpoint.polled.peer_mut().bans_mut();
            Ok(bans.is_some_and(|bans| bans.remove(pattern)).into())
        })
    })
}

/// Returns 1 if the address is currently banned, otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_is_banned(
    endpoint: RakwireEndpoint,
    address: *const RakwireAddress,
) -> c_int {
    guard(|| {
        check_out(address.cast_mut())?;
        // SAFETY: the pointer is not null and is aligned. The caller passes an address, for which every bit pattern is
        // valid.
        let ip = socket_address(unsafe { &*address })?.ip();
        registry::with(endpoint, |endpoint| {
            let now = endpoint.polled.now();
            let bans = endpoint.polled.peer_mut().bans_mut();
            Ok(bans.is_some_and(|bans| bans.is_banned(ip, now)).into())
        })
    })
}
