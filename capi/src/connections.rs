//! Connecting, accepting, disconnecting.

use std::net::SocketAddr;

use rakwire_native::rakwire::endpoint::Decision;
use rakwire_native::{ConnectOptions, Guid};

use crate::attempts::Attempt;
use crate::codes::{
    Failure, Outcome, RAKWIRE_ERROR_BUFFER, RAKWIRE_ERROR_NO_CONNECTION, RAKWIRE_ERROR_NULL, RAKWIRE_OK,
    guard,
};
use crate::convert::{address_of, connect_error, delivery, duration, side, state};
use crate::endpoint::Endpoint;
use crate::lifecycle::resolve;
use crate::memory::{
    Versioned, bytes, check_out, count, init_struct, read_struct, store, text, write_struct,
};
use crate::registry;
use crate::security::{Credentials, KeptSecurity};
use crate::types::{
    RakwireConnectOptions, RakwireConnection, RakwireConnectionInfo, RakwireEndpoint, RakwireRequest,
    RakwireResult,
};

/// Sets the options of a connection attempt to their defaults. Pass sizeof(rakwire_connect_options_t) as `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_connect_options_init(
    options: *mut RakwireConnectOptions,
    size: usize,
) -> RakwireResult {
    guard(|| {
        // SAFETY: the caller passes a pointer to `size` bytes.
        unsafe { init_struct(options, &RakwireConnectOptions::zeroed(), size) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Starts connecting to "host:port". An event reports success or failure. Resolving a name blocks the thread; its addresses are
/// tried in order until one answers. `options` null: defaults. `address` null: the address of the server in the connect token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_connect(
    endpoint: RakwireEndpoint,
    address: *const std::ffi::c_char,
    options: *const RakwireConnectOptions,
    connection: *mut RakwireConnection,
) -> RakwireResult {
    guard(|| {
        check_out(connection)?;
        let from = if options.is_null() {
            RakwireConnectOptions::zeroed()
        } else {
            // SAFETY: the caller passes options with their actual size in `size`.
            unsafe { read_struct(options) }?
        };
        // SAFETY: the caller passes a string or null.
        let address = unsafe { text(address) }?;
        // SAFETY: the lengths in the options match their bytes.
        let password = unsafe { bytes(from.password, from.password_length) }?;
        // SAFETY: as above, for keys, data and the token.
        let credentials = unsafe { Credentials::read(&from) }?;
        #[cfg_attr(
            not(feature = "secure"),
            expect(clippy::needless_update, reason = "with security there are more fields")
        )]
        let with = ConnectOptions {
            password,
            protocol_version: (from.protocol_version > 0).then_some(from.protocol_version),
            connect_timeout: (from.connect_timeout_ms > 0).then(|| duration(from.connect_timeout_ms)),
            attempts: (from.attempts > 0).then_some(from.attempts),
            interval: (from.interval_ms > 0).then(|| duration(from.interval_ms)),
            timeout: (from.timeout_ms > 0).then(|| duration(from.timeout_ms)),
            ..ConnectOptions::default()
        };
        let number = credentials.use_for(with, |with, name| {
            let address = address.or(name).ok_or(Failure::new(RAKWIRE_ERROR_NULL))?;
            // An invalid endpoint must fail before a name is resolved.
            registry::with(endpoint, |_| Ok(()))?;
            let addresses = resolve(address)?;
            registry::with(endpoint, |endpoint| connect(endpoint, addresses, with, || credentials.keep(with)))
        })?;
        // SAFETY: the caller passes a writable number, which was checked above.
        unsafe { store(connection, number) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Starts an attempt at the first usable address. The others follow if it does not answer.
fn connect(
    endpoint: &mut Endpoint,
    addresses: Vec<SocketAddr>,
    with: &ConnectOptions<'_>,
    keep: impl FnOnce() -> KeptSecurity,
) -> Outcome<u64> {
    let mut refused = None;
    let mut addresses = addresses.into_iter();
    while let Some(address) = addresses.next() {
        match endpoint.polled.connect_with(address, with) {
            Ok(id) => {
                if addresses.len() > 0 {
                    endpoint.attempts.insert(id, Attempt::new(addresses, with, keep()));
                }
                return Ok(endpoint.number_of(id));
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or(Failure::new(RAKWIRE_ERROR_NO_CONNECTION), |error| connect_error(&error)))
}

fn decide(endpoint: u64, request: u64, decision: Decision) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| endpoint.decide(request, decision))?;
        Ok(RAKWIRE_OK)
    })
}

/// Accepts a client. RAKWIRE_EVENT_CONNECTED follows when its handshake completes.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_accept(endpoint: RakwireEndpoint, request: RakwireRequest) -> RakwireResult {
    decide(endpoint, request, Decision::Accept)
}

/// Refuses a client with the reply "server full". The client may retry.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_refuse(endpoint: RakwireEndpoint, request: RakwireRequest) -> RakwireResult {
    decide(endpoint, request, Decision::Refuse)
}

/// Ignores a client without a reply. If it retries, that is a new request.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_ignore(endpoint: RakwireEndpoint, request: RakwireRequest) -> RakwireResult {
    decide(endpoint, request, Decision::Ignore)
}

/// Starts closing a connection or attempt. Earlier reliable messages are delivered first. An event reports when it has closed.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_disconnect(
    endpoint: RakwireEndpoint,
    connection: RakwireConnection,
) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            endpoint.disconnect(id);
            Ok(RAKWIRE_OK)
        })
    })
}

/// Sends a last message and starts closing the connection. The connection also closes if sending the message fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_disconnect_with(
    endpoint: RakwireEndpoint,
    connection: RakwireConnection,
    data: *const u8,
    length: usize,
    reliability: u8,
    channel: u8,
    priority: u8,
) -> RakwireResult {
    guard(|| {
        let delivery = delivery(reliability, channel, priority)?;
        // SAFETY: the caller passes `length` bytes.
        let message = unsafe { bytes(data, length) }?;
        registry::with(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            endpoint.disconnect_with(id, message, delivery)?;
            Ok(RAKWIRE_OK)
        })
    })
}

/// Sets the timeout of a connection, `timeout_ms` of rakwire_options_t. During an attempt it applies to all addresses.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_set_timeout(
    endpoint: RakwireEndpoint,
    connection: RakwireConnection,
    timeout_ms: u32,
) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            endpoint.set_timeout(id, duration(timeout_ms))?;
            Ok(RAKWIRE_OK)
        })
    })
}

/// Returns the number of connections, including those opening or closing. Stores their handles in `connections`, which holds
/// `capacity` handles. If the handles do not fit, returns RAKWIRE_ERROR_BUFFER. If `capacity` is 0, only returns the number, and
/// `connections` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_connections(
    endpoint: RakwireEndpoint,
    connections: *mut RakwireConnection,
    capacity: usize,
) -> RakwireResult {
    guard(|| {
        if capacity > 0 {
            check_out(connections)?;
        }
        registry::with(endpoint, |endpoint| {
            if capacity == 0 {
                return Ok(count(endpoint.polled.connections()));
            }
            let all: Vec<_> = endpoint.polled.peer().connections().collect();
            if all.len() > capacity {
                return Err(Failure::new(RAKWIRE_ERROR_BUFFER));
            }
            for (at, id) in all.iter().enumerate() {
                // SAFETY: `connections` holds `capacity` numbers, and `at` is below `capacity`.
                unsafe { store(connections.add(at), endpoint.number_of(*id)) }?;
            }
            Ok(count(all.len()))
        })
    })
}

/// Stores the address, GUID, state, MTU and maximum message length of a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_connection_info(
    endpoint: RakwireEndpoint,
    connection: RakwireConnection,
    info: *mut RakwireConnectionInfo,
) -> RakwireResult {
    guard(|| {
        let found = registry::with(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let missing = || Failure::new(RAKWIRE_ERROR_NO_CONNECTION);
            let known = endpoint.polled.peer().connection(id).ok_or_else(missing)?;
            let stats = endpoint.polled.peer().connection_stats(id).ok_or_else(missing)?;
            let Guid(guid) = known.identity;
            Ok(RakwireConnectionInfo {
                size: 0,
                mtu: stats.mtu,
                side: side(known.side),
                state: state(known.state),
                address: address_of(known.remote),
                guid,
                max_message_len: endpoint.polled.max_message_len(id).unwrap_or_default() as u64,
            })
        })?;
        // SAFETY: the caller passes a struct with its actual size in `size`.
        unsafe { write_struct(info, &found) }?;
        Ok(RAKWIRE_OK)
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use rakwire_native::rakwire::endpoint::ConnectionState;
    use rakwire_native::{Options, polled};

    use super::*;
    use crate::codes::RAKWIRE_ERROR_NOT_CONNECTED;
    use crate::types::{
        RAKWIRE_DISCONNECT_LOST, RAKWIRE_EVENT_CONNECT_FAILED, RAKWIRE_EVENT_CONNECTED,
        RAKWIRE_EVENT_DISCONNECTED, RAKWIRE_FAILURE_CANCELLED, RakwireEvent,
    };

    fn endpoint(options: Options) -> Endpoint {
        Endpoint::new(polled::Endpoint::bind("127.0.0.1:0", options).expect("a free port"), None)
    }

    /// Returns the first event of an attempt at these addresses, and the handle of the attempt.
    fn attempt(addresses: Vec<SocketAddr>, server: &mut Endpoint) -> (RakwireEvent, u64) {
        let mut client = endpoint(Options::client().expect("entropy"));
        let options =
            ConnectOptions { attempts: Some(3), interval: Some(duration(10)), ..ConnectOptions::default() };
        let number = connect(&mut client, addresses, &options, KeptSecurity::default).expect("a free slot");
        loop {
            client.polled.update();
            let mut event = RakwireEvent::zeroed();
            if client.poll(&mut event) {
                return (event, number);
            }
            server.polled.update();
            while server.poll(&mut RakwireEvent::zeroed()) {}
            std::thread::sleep(duration(1));
        }
    }

    #[test]
    fn an_attempt_keeps_its_handle_for_its_next_address() {
        let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let silent = silent.local_addr().expect("an address");
        let silent_too = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let silent_too = silent_too.local_addr().expect("an address");
        let mut server = endpoint(Options::server(4).expect("entropy"));
        let there = server.polled.local_addr();
        let unusable: SocketAddr = "[::1]:9".parse().expect("an address");
        let (event, number) = attempt(vec![silent, unusable, silent_too, there], &mut server);
        assert_eq!((event.kind, event.connection), (RAKWIRE_EVENT_CONNECTED, number));
        assert_eq!(event.address, address_of(there));
        let (event, number) = attempt(vec![silent, silent_too], &mut server);
        assert_eq!((event.kind, event.connection), (RAKWIRE_EVENT_CONNECT_FAILED, number));
        assert_eq!(event.address, address_of(silent_too));
    }

    /// Starts an attempt at an address that does not answer and then at `next`. Returns once the first address has
    /// failed. No event has been polled yet, so the caller has not seen the failure. Returns the socket of the first
    /// address, and the handles of the endpoint and of the attempt.
    fn attempt_between_addresses(options: Options, next: SocketAddr) -> (UdpSocket, u64, u64) {
        let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let addresses = vec![silent.local_addr().expect("an address"), next];
        let mut client = endpoint(options);
        let short =
            ConnectOptions { attempts: Some(3), interval: Some(duration(5)), ..ConnectOptions::default() };
        let number = connect(&mut client, addresses, &short, KeptSecurity::default).expect("a free slot");
        let id = client.connection(number).expect("the attempt");
        let is_connecting = |client: &Endpoint| {
            let known = client.polled.peer().connection(id);
            known.is_some_and(|known| known.state == ConnectionState::Connecting)
        };
        while is_connecting(&client) {
            client.polled.update();
            std::thread::sleep(duration(1));
        }
        (silent, registry::insert(client).expect("a free slot"), number)
    }

    /// Updates an endpoint until it has an event, and returns the event. Panics after 20,000 updates without an event.
    fn next_event(endpoint: u64, mut meanwhile: impl FnMut()) -> RakwireEvent {
        let poll = |endpoint: &mut Endpoint| {
            endpoint.polled.update();
            let mut event = RakwireEvent::zeroed();
            Ok(endpoint.poll(&mut event).then_some(event))
        };
        for _ in 0..20_000 {
            if let Some(event) = registry::with(endpoint, poll).expect("an endpoint") {
                return event;
            }
            meanwhile();
            std::thread::sleep(duration(1));
        }
        panic!("no event in 20,000 updates");
    }

    #[test]
    fn disconnecting_between_two_addresses_cancels_the_attempt() {
        type Disconnect = fn(u64, u64) -> i32;
        let without_message: Disconnect = |endpoint, connection| rakwire_disconnect(endpoint, connection);
        let with_message: Disconnect = |endpoint, connection| {
            // SAFETY: the message has one byte.
            unsafe { rakwire_disconnect_with(endpoint, connection, [0x86].as_ptr(), 1, 3, 0, 0) }
        };
        for (disconnect, result) in
            [(without_message, RAKWIRE_OK), (with_message, RAKWIRE_ERROR_NOT_CONNECTED)]
        {
            let server = endpoint(Options::server(4).expect("entropy"));
            let next = server.polled.local_addr();
            let (silent, client, number) =
                attempt_between_addresses(Options::client().expect("entropy"), next);
            assert_eq!(disconnect(client, number), result);
            let event = next_event(client, || ());
            assert_eq!(
                (event.kind, event.reason, event.connection),
                (RAKWIRE_EVENT_CONNECT_FAILED, RAKWIRE_FAILURE_CANCELLED, number)
            );
            assert_eq!(event.address, address_of(silent.local_addr().expect("an address")));
            let mut further = RakwireEvent::zeroed();
            let is_there = registry::with(client, |client| Ok(client.poll(&mut further)));
            assert_eq!(is_there.ok(), Some(false), "{further:?}");
            // SAFETY: the capacity is 0.
            assert_eq!(unsafe { rakwire_connections(client, std::ptr::null_mut(), 0) }, 0);
            registry::remove(client).expect("an endpoint");
        }
    }

    #[test]
    fn a_timeout_set_during_an_attempt_applies_to_the_next_address() {
        let mut server = endpoint(Options::server(4).expect("entropy"));
        let next = server.polled.local_addr();
        let mut options = Options::client().expect("entropy");
        options.config.timeout = duration(3_600_000);
        options.fail_on_unreachable = false;
        let (_silent, client, number) = attempt_between_addresses(options, next);
        assert_eq!(rakwire_set_timeout(client, number, 300), RAKWIRE_OK);
        let event = next_event(client, || {
            server.polled.update();
            while server.poll(&mut RakwireEvent::zeroed()) {}
        });
        assert_eq!((event.kind, event.connection), (RAKWIRE_EVENT_CONNECTED, number));
        drop(server);
        let event = next_event(client, || ());
        assert_eq!((event.kind, event.reason), (RAKWIRE_EVENT_DISCONNECTED, RAKWIRE_DISCONNECT_LOST));
        registry::remove(client).expect("an endpoint");
    }

    #[test]
    fn a_refusal_cancels_the_remaining_addresses() {
        let mut refusing = endpoint(Options::server(4).expect("entropy"));
        let there = refusing.polled.local_addr();
        refusing.polled.peer_mut().set_password(b"unknown").expect("a short password");
        let (event, _) = attempt(vec![there, "127.0.0.1:9".parse().expect("an address")], &mut refusing);
        assert_eq!((event.kind, event.address), (RAKWIRE_EVENT_CONNECT_FAILED, address_of(there)));
    }
}
