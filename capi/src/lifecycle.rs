//! Opening, running and closing an endpoint.

use std::ffi::{c_char, c_int};
use std::net::SocketAddr;

use rakwire_native::rakwire::endpoint::Capacity;
use rakwire_native::{BindError, Guid, Options, OutOfBand, lookup_blocking, polled};

use crate::codes::{
    Failure, Outcome, RAKWIRE_ERROR_ADDRESS, RAKWIRE_ERROR_ARGUMENT, RAKWIRE_ERROR_BIND,
    RAKWIRE_ERROR_BUFFER, RAKWIRE_ERROR_SYSTEM, RAKWIRE_OK, guard,
};
use crate::convert::{address_of, duration, millis, set_error, socket_address};
use crate::endpoint::Endpoint;
use crate::incoming::Incoming;
use crate::memory::{
    self, Versioned, bytes, check_out, flag, init_struct, needed_text, read_struct, store, text, write_struct,
};
use crate::network::Arrivals;
use crate::registry;
use crate::security;
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

/// Returns what this build of the library has: RAKWIRE_FEATURE_ bits.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_features() -> u32 {
    let secure = if cfg!(feature = "secure") { RAKWIRE_FEATURE_SECURE } else { 0 };
    let sim = if cfg!(feature = "sim") { RAKWIRE_FEATURE_SIM } else { 0 };
    secure | sim
}

/// Sets the options of a client. Pass sizeof(rakwire_options_t) as `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_options_init(options: *mut RakwireOptions, size: usize) -> RakwireResult {
    guard(|| {
        let defaults = defaults()?;
        // SAFETY: the caller passes a pointer to `size` bytes.
        unsafe { init_struct(options, &defaults, size) }?;
        Ok(RAKWIRE_OK)
    })
}

fn new_options() -> Outcome<Options> {
    Options::client().map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))
}

fn defaults() -> Outcome<RakwireOptions> {
    let options = new_options()?;
    let config = &options.config;
    let mut accepted_versions = [0; 8];
    accepted_versions.iter_mut().zip(&config.accepted_versions).for_each(|(to, from)| *to = *from);
    Ok(RakwireOptions {
        protocol_version: config.protocol_version,
        hears_unreachable: options.fail_on_unreachable.into(),
        mtu: config.mtu,
        max_message_len: config.max_message_len,
        timeout_ms: millis(config.timeout),
        close_timeout_ms: millis(config.close_timeout),
        handshake_timeout_ms: millis(config.handshake_timeout),
        unreliable_timeout_ms: millis(config.unreliable_timeout),
        connect_interval_ms: millis(config.connect_interval),
        connect_attempts: config.connect_attempts.into(),
        progress_interval: config.progress_interval,
        accepted_versions,
        ..RakwireOptions::zeroed()
    })
}

/// Applies the options that are numbers.
fn apply(from: &RakwireOptions, options: &mut Options) -> Outcome<()> {
    let refused = |text| Failure::with(RAKWIRE_ERROR_ARGUMENT, text);
    let config = &mut options.config;
    if !(576..=1_492).contains(&from.mtu) {
        return Err(refused("the MTU must be 576 to 1492; begin with rakwire_options_init()"));
    }
    config.connect_attempts = u8::try_from(from.connect_attempts)
        .ok()
        .filter(|attempts| *attempts > 0)
        .ok_or_else(|| refused("an attempt has 1 to 255 requests"))?;
    config.protocol_version = from.protocol_version;
    config.accepted_versions =
        from.accepted_versions.iter().copied().take_while(|version| *version > 0).collect();
    config.max_incoming = from.max_incoming;
    config.mtu = from.mtu;
    config.max_message_len = from.max_message_len;
    config.timeout = duration(from.timeout_ms);
    config.close_timeout = duration(from.close_timeout_ms);
    config.handshake_timeout = duration(from.handshake_timeout_ms);
    config.unreliable_timeout = duration(from.unreliable_timeout_ms);
    config.connect_interval = duration(from.connect_interval_ms);
    config.progress_interval = from.progress_interval;
    config.max_per_address = (from.max_per_address > 0).then_some(from.max_per_address);
    if from.guid > 0 {
        config.guid = Guid(from.guid);
    }
    if flag(from.out_of_band, "out_of_band")? {
        config.out_of_band = OutOfBand::Accept;
    }
    options.fail_on_unreachable = flag(from.hears_unreachable, "hears_unreachable")?;
    let connections = match from.max_connections {
        0 => u32::from(from.max_incoming).max(64),
        some @ 1..=65_534 => some,
        _ => return Err(refused("an endpoint has 1 to 65534 connections")),
    };
    options.capacity = Capacity::for_connections(connections as usize);
    match from.blocks {
        0 => {}
        some @ 4..=16_777_216 => options.capacity.blocks = some as usize,
        _ => return Err(refused("an endpoint has 4 to 16777216 blocks")),
    }
    Ok(())
}

/// Makes the way of arriving datagrams.
#[cfg(feature = "sim")]
fn simulate(description: Option<&str>, arrivals: &mut Arrivals) -> Outcome<()> {
    if let Some(description) = description {
        let simulation: rakwire_native::Simulation =
            description.parse().map_err(|error| Failure::with(RAKWIRE_ERROR_ARGUMENT, error))?;
        arrivals.network = Some(crate::network::Network::new(simulation));
    }
    Ok(())
}

#[cfg(not(feature = "sim"))]
fn simulate(description: Option<&str>, _: &mut Arrivals) -> Outcome<()> {
    description.map_or(Ok(()), |_| Err(Failure::new(crate::codes::RAKWIRE_ERROR_UNSUPPORTED)))
}

/// Opens an endpoint for this thread. Options null: those of rakwire_options_init().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_endpoint_open(
    options: *const RakwireOptions,
    endpoint: *mut RakwireEndpoint,
) -> RakwireResult {
    guard(|| {
        check_out(endpoint)?;
        let from = if options.is_null() {
            defaults()?
        } else {
            // SAFETY: the caller passes options of the size that they name.
            unsafe { read_struct(options) }?
        };
        // SAFETY: the options name a string or null.
        let address = unsafe { text(from.bind_address) }?.unwrap_or("0.0.0.0:0");
        // SAFETY: the options name as many bytes as they say.
        let password = unsafe { bytes(from.password, from.password_length) }?;
        let mut options = new_options()?;
        apply(&from, &mut options)?;
        // SAFETY: the options name keys of 32 bytes or null.
        unsafe { security::apply(&from, &mut options) }?;
        let incoming = flag(from.defer_incoming, "defer_incoming")?.then(Incoming::default);
        let mut arrivals = Arrivals::new(incoming.clone());
        // SAFETY: the options name a string or null.
        simulate(unsafe { text(from.simulate) }?, &mut arrivals)?;
        let opened = open(address, options, arrivals, password, incoming)?;
        let handle = registry::insert(opened)?;
        // SAFETY: the caller passes a writable pointer, which was checked above.
        unsafe { store(endpoint, handle) }?;
        Ok(RAKWIRE_OK)
    })
}

fn open(
    address: &str,
    options: Options,
    arrivals: Arrivals,
    password: &[u8],
    incoming: Option<Incoming>,
) -> Outcome<Endpoint> {
    let addresses = lookup_blocking(address).map_err(|error| Failure::with(RAKWIRE_ERROR_ADDRESS, error))?;
    let bound = if arrivals.is_empty() {
        polled::Endpoint::bind(&addresses[..], options)
    } else {
        polled::Endpoint::bind_with_hook(&addresses[..], options, |_| arrivals)
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

/// Closes an endpoint at once. Peers are not notified: disconnect first, and update until rakwire_connections() is 0.
/// Messages that are still borrowed become invalid.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_endpoint_close(endpoint: RakwireEndpoint) -> RakwireResult {
    guard(|| {
        drop(registry::remove(endpoint)?);
        Ok(RAKWIRE_OK)
    })
}

/// Handles the datagrams that have arrived, does what is due, and sends. Call it once a frame, then rakwire_poll().
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_update(endpoint: RakwireEndpoint) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            endpoint.polled.update();
            Ok(RAKWIRE_OK)
        })
    })
}

/// Sends what may be sent now. Call it at the end of a frame.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_flush(endpoint: RakwireEndpoint) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            endpoint.polled.flush();
            Ok(RAKWIRE_OK)
        })
    })
}

/// Takes the next event. Returns 1 with an event, 0 without, or an error. Release the message of each event that has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_poll(endpoint: RakwireEndpoint, event: *mut RakwireEvent) -> RakwireResult {
    guard(|| {
        // The struct is checked before an event is taken, which would be lost.
        // SAFETY: the caller passes an event of the size that it names.
        unsafe { write_struct(event, &RakwireEvent::zeroed()) }?;
        registry::with(endpoint, |endpoint| {
            let Some(next) = endpoint.poll() else { return Ok(0) };
            // SAFETY: as above.
            unsafe { write_struct(event, &next) }?;
            Ok(1)
        })
    })
}

/// Stores the address of the socket with its actual port.
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

/// Returns the first address for a text: a number or a name with a port. A name blocks the thread until it is resolved.
pub(crate) fn resolve(text: &str) -> Outcome<Vec<SocketAddr>> {
    let addresses = lookup_blocking(text);
    let addresses =
        addresses.map_err(|error| Failure::with(RAKWIRE_ERROR_ADDRESS, format_args!("{text}: {error}")))?;
    if addresses.is_empty() {
        return Err(Failure::new(RAKWIRE_ERROR_ADDRESS));
    }
    Ok(addresses)
}

/// Parses "host:port", such as "192.0.2.1:19132", "[2001:db8::1]:19132" or "game.example.org:19132". A name blocks the thread
/// until it is resolved.
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

/// Writes an address as text with its end, in at most 64 bytes. Returns the length without the end.
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
