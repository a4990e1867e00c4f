//! Opening, updating and closing an endpoint.

use std::ffi::{c_char, c_int};
use std::net::SocketAddr;

use rakwire_native::{BindError, lookup_blocking, polled};

use crate::codes::{
    Failure, Outcome, RAKWIRE_ERROR_ADDRESS, RAKWIRE_ERROR_ARGUMENT, RAKWIRE_ERROR_BIND,
    RAKWIRE_ERROR_BUFFER, RAKWIRE_OK, guard,
};
use crate::convert::{address_of, set_error, socket_address};
use crate::endpoint::Endpoint;
use crate::incoming::Incoming;
use crate::memory::{
    self, StructArray, Versioned, check_out, checked_struct, needed_text, store, write_struct, zeroed_struct,
};
use crate::options::{self, Prepared};
use crate::registry;
use crate::types::{
    RAKWIRE_FEATURE_SECURE, RAKWIRE_FEATURE_SIM, RakwireAddress, RakwireEndpoint, RakwireEvent,
    RakwireOptions, RakwireResult,
};

/// Returns the version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Returns the features of this build as RAKWIRE_FEATURE_ bits.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_features() -> u32 {
    let secure = if cfg!(feature = "secure") { RAKWIRE_FEATURE_SECURE } else { 0 };
    let sim = if cfg!(feature = "sim") { RAKWIRE_FEATURE_SIM } else { 0 };
    secure | sim
}

/// Opens an endpoint on the calling thread. `options` null: the defaults of rakwire_options_init().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_endpoint_open(
    options: *const RakwireOptions,
    endpoint: *mut RakwireEndpoint,
) -> RakwireResult {
    guard(|| {
        check_out(endpoint)?;
        // SAFETY: the caller passes options with their actual size in `size`, and valid pointers in them.
        let opened = open(unsafe { options::read(options) }?)?;
        let handle = registry::insert(opened)?;
        // SAFETY: the caller passes a writable pointer, which was checked above.
        unsafe { store(endpoint, handle) }?;
        Ok(RAKWIRE_OK)
    })
}

fn open(prepared: Prepared<'_>) -> Outcome<Endpoint> {
    let Prepared { address, options, password, defer_incoming } = prepared;
    let addresses = lookup_blocking(address).map_err(|error| Failure::with(RAKWIRE_ERROR_ADDRESS, error))?;
    let incoming = defer_incoming.then(Incoming::default);
    let bound = match incoming.clone() {
        None => polled::Endpoint::bind(&addresses[..], options),
        Some(incoming) => polled::Endpoint::bind_with_hook(&addresses[..], options, |_| incoming),
    };
    let mut polled = bound.map_err(|error| {
        let code = match &error {
            BindError::Resolve(_) | BindError::NoAddress => RAKWIRE_ERROR_ADDRESS,
            BindError::Socket { .. } | _ => RAKWIRE_ERROR_BIND,
        };
        Failure::with(code, error)
    })?;
    if let Some(incoming) = &incoming {
        polled.peer_mut().share_admission(Box::new(incoming.clone()));
    }
    polled.peer_mut().set_password(password).map_err(set_error)?;
    Ok(Endpoint::new(polled, incoming))
}

/// Closes an endpoint immediately without notifying its peers. To notify them, disconnect and update until
/// rakwire_connections() returns 0. Borrowed messages become invalid.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_endpoint_close(endpoint: RakwireEndpoint) -> RakwireResult {
    guard(|| {
        drop(registry::remove(endpoint)?);
        Ok(RAKWIRE_OK)
    })
}

/// Handles received datagrams and expired timers, and sends datagrams. Call it once per frame, before rakwire_poll().
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_update(endpoint: RakwireEndpoint) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            endpoint.polled.update();
            Ok(RAKWIRE_OK)
        })
    })
}

/// Sends queued datagrams as far as congestion control allows. Call it at the end of each frame.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_flush(endpoint: RakwireEndpoint) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            endpoint.polled.flush();
            Ok(RAKWIRE_OK)
        })
    })
}

/// Stores the next event. Returns 1, 0 if there is none, or an error. Release the message of each event that has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_poll(endpoint: RakwireEndpoint, event: *mut RakwireEvent) -> RakwireResult {
    // SAFETY: the caller passes an event with its actual size in `size`.
    guard(|| registry::with(endpoint, |endpoint| unsafe { take_event(endpoint, event) }))
}

/// Combines rakwire_message_release() for the message of `event` with rakwire_poll(). Before the first call, zero the event and
/// set `size`. To keep a message, set `message` to 0. After an error the event is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_poll_next(
    endpoint: RakwireEndpoint,
    event: *mut RakwireEvent,
) -> RakwireResult {
    guard(|| {
        // Read the event only after checking the thread of the endpoint: another thread may be using the event.
        registry::with(endpoint, |endpoint| {
            // SAFETY: the caller passes an event with its actual size in `size`.
            let place = unsafe { checked_struct(event) }?;
            // SAFETY: the pointer was checked, and the first version of the struct has this field.
            let message = unsafe { (&raw const (*place).message).read() };
            if message != 0 {
                endpoint.messages.release(message)?;
            }
            // SAFETY: as above.
            unsafe { take_event(endpoint, event) }
        })
    })
}

/// Releases the messages of the first `used` events of an array, then stores up to `capacity` next events in it. Returns their
/// number. `size` is read only from the first event. To keep a message, set `message` to 0. An error takes no event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_poll_many(
    endpoint: RakwireEndpoint,
    events: *mut RakwireEvent,
    used: usize,
    capacity: usize,
) -> RakwireResult {
    guard(|| {
        // As in `rakwire_poll_next`, the events are read only after checking the thread of the endpoint.
        registry::with(endpoint, |endpoint| {
            if used > capacity {
                return Err(Failure::with(
                    RAKWIRE_ERROR_ARGUMENT,
                    "more events were used than the array has",
                ));
            }
            if capacity == 0 {
                return Ok(0);
            }
            // SAFETY: the caller passes `capacity` events, with the size of each in the first one.
            let events = unsafe { StructArray::new(events, capacity) }?;
            for at in 0..used {
                // SAFETY: the place is in the array, and the first version of the struct has this field.
                let message = unsafe { &raw mut (*events.place(at)).message };
                // SAFETY: as above.
                let handle = unsafe { message.read() };
                if handle != 0 {
                    endpoint.messages.release(handle)?;
                    // SAFETY: as above.
                    unsafe { message.write(0) };
                }
            }
            let mut stored = 0;
            // SAFETY: as above.
            while stored < capacity && unsafe { take_event(endpoint, events.sized_place(stored)) }? > 0 {
                stored += 1;
            }
            Ok(memory::count(stored))
        })
    })
}

/// Writes the next event to the caller's struct. Checks the struct first, so that an error loses no event.
///
/// # Safety
/// `event` is null, or points to `size` writable bytes.
unsafe fn take_event(endpoint: &mut Endpoint, event: *mut RakwireEvent) -> Outcome<i32> {
    // SAFETY: required of the caller of this function.
    if let Some(place) = unsafe { zeroed_struct(event) }? {
        return Ok(endpoint.poll(place).into());
    }
    let mut next = RakwireEvent::zeroed();
    let is_there = endpoint.poll(&mut next);
    // SAFETY: as above.
    unsafe { write_struct(event, &next) }?;
    Ok(is_there.into())
}

/// Stores the local address of the socket, with the actual port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_local_address(
    endpoint: RakwireEndpoint,
    address: *mut RakwireAddress,
) -> RakwireResult {
    guard(|| {
        check_out(address)?;
        let local = registry::with(endpoint, |endpoint| Ok(endpoint.polled.local_addr()))?;
        // SAFETY: the caller passes a writable address, which was checked above.
        unsafe { store(address, address_of(local)) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Stores the GUID of the endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_guid(endpoint: RakwireEndpoint, guid: *mut u64) -> RakwireResult {
    guard(|| {
        check_out(guid)?;
        let own = registry::with(endpoint, |endpoint| Ok(endpoint.polled.peer().config().guid.0))?;
        // SAFETY: the caller passes a writable number, which was checked above.
        unsafe { store(guid, own) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Resolves "host:port" to addresses. Resolving a name blocks the thread.
pub(crate) fn resolve(text: &str) -> Outcome<Vec<SocketAddr>> {
    let addresses = lookup_blocking(text);
    let addresses =
        addresses.map_err(|error| Failure::with(RAKWIRE_ERROR_ADDRESS, format_args!("{text}: {error}")))?;
    if addresses.is_empty() {
        return Err(Failure::new(RAKWIRE_ERROR_ADDRESS));
    }
    Ok(addresses)
}

/// Parses "host:port", such as "192.0.2.1:19132", "[2001:db8::1]:19132" or "game.example.org:19132". Resolving a name blocks
/// the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_address_parse(
    text: *const c_char,
    address: *mut RakwireAddress,
) -> RakwireResult {
    guard(|| {
        check_out(address)?;
        // SAFETY: the caller passes a string or null.
        let first = resolve(unsafe { needed_text(text) }?)?[0];
        // SAFETY: the caller passes a writable address, which was checked above.
        unsafe { store(address, address_of(first)) }?;
        Ok(RAKWIRE_OK)
    })
}

/// Writes an address as NUL-terminated text of at most 64 bytes. Returns its length without the NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_address_format(
    address: *const RakwireAddress,
    buffer: *mut c_char,
    capacity: usize,
) -> c_int {
    guard(|| {
        check_out(address.cast_mut())?;
        // SAFETY: not null and aligned; the caller passes an address, and all its patterns of bits are valid.
        let text = format!("{}\0", socket_address(unsafe { &*address })?);
        if text.len() > capacity {
            return Err(Failure::new(RAKWIRE_ERROR_BUFFER));
        }
        // SAFETY: the caller passes a buffer with `capacity` bytes.
        unsafe { memory::fill(text.as_bytes(), buffer.cast(), capacity, std::ptr::null_mut()) }?;
        Ok(memory::count(text.len() - 1))
    })
}
