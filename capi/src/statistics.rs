//! Counters and measurements of endpoints and connections, and the texts for failures and disconnects.

use std::ffi::{CStr, CString, c_char};
use std::sync::LazyLock;

use rakwire_native::DropReason;

use crate::codes::{Failure, RAKWIRE_ERROR_NO_CONNECTION, RAKWIRE_OK, guard};
use crate::convert::micros;
use crate::memory::{check_out, count, fill, store, write_struct};
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
                proxy_headers_refused: all.proxy_headers_refused,
            })
        })?;
        // SAFETY: the caller passes a struct with its actual size in `size`.
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
            datagrams_late: all.datagrams_late,
            bytes_processed: all.bytes_processed.total,
            bytes_ignored: all.bytes_ignored.total,
            bytes_pushed_last_second: all.bytes_pushed.last_second,
            bytes_sent_last_second: all.bytes_sent.last_second,
            bytes_resent_last_second: all.bytes_resent.last_second,
            bytes_processed_last_second: all.bytes_processed.last_second,
            bytes_ignored_last_second: all.bytes_ignored.last_second,
            actual_bytes_sent_last_second: all.actual_bytes_sent.last_second,
            actual_bytes_received_last_second: all.actual_bytes_received.last_second,
            waiting_resend_messages: all.waiting_resends.messages,
            waiting_resend_bytes: all.waiting_resends.bytes,
            has_clock_difference: all.clock_difference.is_some().into(),
            clock_difference_ms: all.clock_difference.unwrap_or_default(),
        };
        // SAFETY: the caller passes a struct with its actual size in `size`.
        unsafe { write_struct(stats, &found) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Stores the number of dropped datagrams per reason in `counts`, which holds `capacity` numbers. It may be null if `capacity`
/// is 0. Returns the number of reasons; those beyond `capacity` are not stored. rakwire_drop_name() returns their names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_drops(
    endpoint: RakwireEndpoint,
    counts: *mut u64,
    capacity: usize,
) -> RakwireResult {
    guard(|| {
        if capacity > 0 {
            check_out(counts)?;
        }
        registry::with(endpoint, |endpoint| {
            let all = endpoint.polled.peer().stats();
            for (at, reason) in DropReason::ALL.iter().enumerate().take(capacity) {
                // SAFETY: `counts` holds `capacity` numbers, and `at` is below `capacity`.
                unsafe { store(counts.add(at), all.dropped(*reason)) }?;
            }
            Ok(count(DropReason::ALL.len()))
        })
    })
}

/// Returns the name of a drop reason, such as "TooShort", or an empty string. The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_drop_name(reason: u32) -> *const c_char {
    static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
        // Rust identifiers contain no NUL.
        let names = DropReason::ALL.iter().map(|reason| CString::new(format!("{reason:?}")));
        names.map(Result::unwrap_or_default).collect()
    });
    NAMES.get(reason as usize).map_or(c"", CString::as_c_str).as_ptr()
}

/// Writes NUL-terminated advice for the operator if the counters show that clients cannot connect. Returns its length without
/// the NUL; 0 means no advice. 512 bytes are always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_advice(
    endpoint: RakwireEndpoint,
    buffer: *mut c_char,
    capacity: usize,
) -> RakwireResult {
    guard(|| {
        let advice = registry::with(endpoint, |endpoint| Ok(endpoint.polled.advice()))?.unwrap_or_default();
        let text = format!("{advice}\0");
        // SAFETY: the caller passes a buffer with `capacity` bytes.
        unsafe { fill(text.as_bytes(), buffer.cast(), capacity, std::ptr::null_mut()) }?;
        Ok(count(advice.len()))
    })
}

/// Returns the description of the `reason` of an event of this `kind`. The string is static.
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
        2 => c"no server is listening on this address, or there is no route to it",
        3 => c"the server answered, but did not finish the handshake in time",
        4 => c"the server aborted the attempt",
        5 => c"the server already has a connection from this address or GUID",
        6 => c"the server is full",
        7 => c"the server has banned this address",
        8 => c"this address connected a moment ago; try again later",
        9 => c"the server uses another protocol version",
        10 => c"the server requires an encrypted connection",
        11 => c"the server does not support secure connections",
        12 => c"the server requires an identity",
        13 => c"the server rejected the identity",
        14 => c"the server has another public key",
        15 => c"the password or connect token is wrong",
        16 => c"the server closed the connection before it was open",
        17 => c"the attempt was cancelled",
        _ => c"another reason",
    }
}

const fn disconnect_text(reason: i32) -> &'static CStr {
    match reason {
        1 => c"this side disconnected",
        2 => c"the peer disconnected",
        3 => c"the connection timed out: the peer stopped answering",
        4 => c"the peer sent a message that exceeds the memory of a connection",
        5 => c"a message exceeds the memory of the peer; send it in pieces",
        6 => c"the MTU of the path became too small for a message that was sent in parts",
        7 => c"out-of-order messages of the peer exceed the memory of a connection",
        _ => c"another reason",
    }
}

const fn refusal_text(reason: i32) -> &'static CStr {
    match reason {
        1 => c"the password is wrong",
        2 => c"the client has no identity",
        3 => c"the identity is invalid",
        4 => c"the client has no connect token of this backend",
        5 => c"the connect token has expired",
        6 => c"the connect token is for another server",
        7 => c"the connect token belongs to another client",
        8 => c"the connect token was already used",
        9 => c"the server's table of used connect tokens is full; try again later",
        _ => c"another reason",
    }
}
