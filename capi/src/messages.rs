//! Sending messages, and releasing received ones.

use crate::codes::{RAKWIRE_OK, guard};
use crate::convert::{delivery, send_error};
use crate::memory::{bytes, store};
use crate::registry;
use crate::types::{RakwireConnection, RakwireEndpoint, RakwireMessage, RakwireResult};

/// Queues a copy of a message. Its first byte must be at least 0x1B; applications should use 0x86 and above. `receipt` may be
/// null; without a receipt it is set to 0. The message is sent by rakwire_flush() or rakwire_update().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_send(
    endpoint: RakwireEndpoint,
    connection: RakwireConnection,
    data: *const u8,
    length: usize,
    reliability: u8,
    channel: u8,
    priority: u8,
    receipt: *mut u32,
) -> RakwireResult {
    guard(|| {
        let delivery = delivery(reliability, channel, priority)?;
        // SAFETY: the caller passes null or a writable number. It is written first, so that a wrong pointer sends nothing.
        unsafe { store(receipt, 0) }?;
        // SAFETY: the caller passes `length` bytes.
        let message = unsafe { bytes(data, length) }?;
        registry::with(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let sent = endpoint.polled.send(id, message, delivery).map_err(send_error)?;
            // SAFETY: as above.
            unsafe { store(receipt, sent.map_or(0, |receipt| receipt.0)) }?;
            Ok(RAKWIRE_OK)
        })
    })
}

/// Queues a message for all open connections except `except`, which may be 0. Returns how many accepted it. `refused` may be
/// null; it is set to the number of connections that could not accept it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_broadcast(
    endpoint: RakwireEndpoint,
    except: RakwireConnection,
    data: *const u8,
    length: usize,
    reliability: u8,
    channel: u8,
    priority: u8,
    refused: *mut u32,
) -> RakwireResult {
    guard(|| {
        let delivery = delivery(reliability, channel, priority)?;
        // SAFETY: the caller passes null or a writable number. It is written first, so that a wrong pointer sends nothing.
        unsafe { store(refused, 0) }?;
        // SAFETY: the caller passes `length` bytes.
        let message = unsafe { bytes(data, length) }?;
        registry::with(endpoint, |endpoint| {
            let all = if except == 0 {
                endpoint.polled.broadcast(message, delivery)
            } else {
                let id = endpoint.connection(except)?;
                endpoint.polled.broadcast_except(id, message, delivery)
            };
            // If no connection could ever accept the message, that is an error, as in `rakwire_send`.
            if let ([(_, error), ..], 0) = (&all.refused[..], all.sent) {
                return Err(send_error(*error));
            }
            // SAFETY: as above.
            unsafe { store(refused, u32::try_from(all.refused.len()).unwrap_or(u32::MAX)) }?;
            Ok(crate::memory::count(all.sent))
        })
    })
}

/// Releases the message of an event. Its bytes become invalid. 0 is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_message_release(
    endpoint: RakwireEndpoint,
    message: RakwireMessage,
) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            if message != 0 {
                endpoint.messages.release(message)?;
            }
            Ok(RAKWIRE_OK)
        })
    })
}
