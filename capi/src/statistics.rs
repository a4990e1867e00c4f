//! Counters, measurements, and sentences about reasons.

use std::ffi::{CStr, c_char};

use crate::codes::{Failure, RAKWIRE_ERROR_NO_CONNECTION, RAKWIRE_OK, guard};
use crate::convert::micros;
use crate::memory::write_struct;
use crate::registry;
use crate::types::{
    RAKWIRE_EVENT_CONNECT_FAILED, RAKWIRE_EVENT_DISCONNECTED, RAKWIRE_EVENT_REFUSED, RakwireConnection,
    RakwireConnectionStats, RakwireEndpoint, RakwireResult, RakwireStats,
};

/// Stores the counters of an endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_stats(endpoint: RakwireEndpoint, stats: *mut RakwireStats) -> RakwireResult {
    guard(|| {
        let found = registry::with(endpoint, |endpoint| {
            let all = endpoint.polled.stats();
            Ok(RakwireStats {
                size: 0,
                connections: u32::try_from(endpoint.polled.connections()).unwrap_or(u32::MAX),
                datagrams_received: all.peer.datagrams_received,
                bytes_received: all.peer.bytes_received,
                datagrams_refused: all.peer.datagrams_refused,
                datagrams_sent: all.peer.datagrams_sent,
                bytes_sent: all.peer.bytes_sent,
                datagrams_dropped: all.peer.drops().map(|(_, count)| count).sum(),
                too_long: all.too_long,
                send_failures: all.send_failures,
                receive_failures: all.receive_failures,
                borrowed_messages: endpoint.messages.borrowed() as u64,
                incoming_overflows: endpoint.incoming_overflows(),
            })
        })?;
        // SAFETY: the caller passes a struct of the size that it names.
        unsafe { write_struct(stats, &found) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Stores the counters and measurements of a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_connection_stats(
    endpoint: RakwireEndpoint,
    connection: RakwireConnection,
    stats: *mut RakwireConnectionStats,
) -> RakwireResult {
    guard(|| {
        let all = registry::with(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let stats = endpoint.polled.peer().connection_stats(id);
            stats.ok_or(Failure::new(RAKWIRE_ERROR_NO_CONNECTION))
        })?;
        let found = RakwireConnectionStats {
            size: 0,
            mtu: all.mtu.into(),
            messages_sent: all.messages_sent,
            messages_received: all.messages_received,
            datagrams_sent: all.datagrams_sent,
            datagrams_received: all.datagrams_received,
            datagrams_lost: all.datagrams_lost,
            datagrams_acknowledged: all.datagrams_acknowledged,
            bytes_pushed: all.bytes_pushed.total,
            bytes_sent: all.bytes_sent.total,
            bytes_resent: all.bytes_resent.total,
            actual_bytes_sent: all.actual_bytes_sent.total,
            actual_bytes_received: all.actual_bytes_received.total,
            round_trip_us: micros(all.round_trip),
            last_ping_us: micros(all.last_ping),
            average_ping_us: micros(all.average_ping),
            lowest_ping_us: micros(all.lowest_ping),
            congestion_window: all.congestion_window,
            in_flight: all.in_flight,
            waiting_messages: all.waiting.map(|waiting| waiting.messages),
            waiting_bytes: all.waiting.map(|waiting| waiting.bytes),
            loss: all.loss(),
            loss_last_second: all.loss_last_second(),
        };
        // SAFETY: the caller passes a struct of the size that it names.
        unsafe { write_struct(stats, &found) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Returns a sentence about the `reason` of an event of this `kind`. It is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_reason_text(kind: u32, reason: i32) -> *const c_char {
    let text = match kind {
        RAKWIRE_EVENT_CONNECT_FAILED => failure_text(reason),
        RAKWIRE_EVENT_DISCONNECTED => disconnect_text(reason),
        RAKWIRE_EVENT_REFUSED => refusal_text(reason),
        _ => c"",
    };
    text.as_ptr()
}

const fn failure_text(reason: i32) -> &'static CStr {
    match reason {
        1 => c"the server does not answer",
        2 => c"nothing listens at this address, or no route leads there",
        3 => c"the server answered, but did not finish the handshake in time",
        4 => c"the server gave the attempt up",
        5 => c"the server has a connection of this address or GUID already",
        6 => c"the server is full",
        7 => c"the server has banned this address",
        8 => c"this address connected a moment ago; try again later",
        9 => c"the server speaks another protocol version",
        10 => c"the server requires an encrypted connection",
        11 => c"the server has no security",
        12 => c"the server requires an identity",
        13 => c"the server does not accept the identity",
        14 => c"the server has another public key",
        15 => c"the password or connect token is wrong",
        16 => c"the server ended the connection before it was open",
        17 => c"the attempt was cancelled",
        _ => c"another reason",
    }
}

const fn disconnect_text(reason: i32) -> &'static CStr {
    match reason {
        1 => c"this side disconnected",
        2 => c"the peer disconnected",
        3 => c"nothing was received from the peer for too long",
        4 => c"a message of the peer is larger than a connection may hold",
        5 => c"the peer cannot hold a message that was sent",
        6 => c"the path has become too narrow for a message that was sent in parts",
        7 => c"the peer left gaps that hold too much memory",
        _ => c"another reason",
    }
}

const fn refusal_text(reason: i32) -> &'static CStr {
    match reason {
        1 => c"the password is wrong",
        2 => c"no identity was shown",
        3 => c"the identity is not valid",
        4 => c"the client has no connect token of this backend",
        5 => c"the connect token has expired",
        6 => c"the connect token is for another server",
        7 => c"the connect token belongs to another client",
        8 => c"the connect token was used before",
        9 => c"too many connect tokens are in use",
        _ => c"another reason",
    }
}
