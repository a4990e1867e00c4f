//! The options of an endpoint.

use std::ffi::c_char;

use rakwire_native::rakwire::endpoint::Capacity;
use rakwire_native::rakwire::raknet::CongestionControl;
use rakwire_native::{CookiePolicy, Guid, Options, OutOfBand};

use crate::codes::{Failure, Outcome, RAKWIRE_ERROR_ARGUMENT, RAKWIRE_ERROR_SYSTEM, RAKWIRE_OK, guard};
use crate::convert::{duration, millis};
use crate::memory::{Versioned, bytes, flag, init_struct, read_struct_over, text};
use crate::security;
use crate::types::{
    RAKWIRE_CONGESTION_DELAY, RAKWIRE_CONGESTION_NEW_RENO, RAKWIRE_COOKIES_AUTOMATIC, RAKWIRE_COOKIES_OFF,
    RAKWIRE_COOKIES_REQUIRED, RAKWIRE_COOKIES_UNDER_LOAD, RakwireOptions, RakwireResult,
};

/// Sets the options of an endpoint to the defaults of a client. Pass sizeof(rakwire_options_t) as `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_options_init(options: *mut RakwireOptions, size: usize) -> RakwireResult {
    guard(|| {
        let defaults = defaults()?;
        // SAFETY: the caller passes a pointer to `size` bytes.
        unsafe { init_struct(options, &defaults, size) }?;
        Ok(RAKWIRE_OK)
    })
}

/// The options of an endpoint after reading and checking.
pub(crate) struct Prepared<'a> {
    pub(crate) address: &'a str,
    pub(crate) options: Options,
    pub(crate) password: &'a [u8],
    pub(crate) defer_incoming: bool,
}

/// Reads and checks options. Null selects the defaults.
///
/// # Safety
/// `options` is null, or points to options with their actual size in `size`. The pointers in the options are null or
/// valid for `'a`: strings are NUL-terminated, and other data has the length given beside it.
pub(crate) unsafe fn read<'a>(options: *const RakwireOptions) -> Outcome<Prepared<'a>> {
    let mut from = defaults()?;
    if !options.is_null() {
        // SAFETY: required of the caller of this function. A program that is older than a field gets the default of the field.
        from = unsafe { read_struct_over(options, from) }?;
    }
    let mut options = new_options()?;
    apply_config(&from, &mut options)?;
    apply_limits(&from, &mut options)?;
    // SAFETY: by the contract of this function, the pointers in the options are null or valid.
    unsafe {
        apply_proxies(from.trusted_proxies, &mut options)?;
        security::apply(&from, &mut options)?;
        simulate(text(from.simulate)?, &mut options)?;
        Ok(Prepared {
            address: text(from.bind_address)?.unwrap_or("0.0.0.0:0"),
            password: bytes(from.password, from.password_length)?,
            defer_incoming: flag(from.defer_incoming, "defer_incoming")?,
            options,
        })
    }
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
        fail_on_unreachable: options.fail_on_unreachable.into(),
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
        max_half_open_per_network: config.max_half_open_per_network,
        pongs_per_second: config.pongs_per_second,
        pongs_per_network: config.pongs_per_network,
        ping_interval_ms: config.ping_interval.map_or(0, millis),
        ..RakwireOptions::zeroed()
    })
}

fn refused(text: &'static str) -> Failure {
    Failure::with(RAKWIRE_ERROR_ARGUMENT, text)
}

/// Applies the protocol options.
fn apply_config(from: &RakwireOptions, options: &mut Options) -> Outcome<()> {
    let config = &mut options.config;
    if !(576..=1_492).contains(&from.mtu) {
        return Err(refused("the MTU must be 576 to 1492; begin with rakwire_options_init()"));
    }
    config.connect_attempts = u8::try_from(from.connect_attempts)
        .ok()
        .filter(|attempts| *attempts > 0)
        .ok_or_else(|| refused("connect_attempts must be 1 to 255"))?;
    config.protocol_version = from.protocol_version;
    config.accepted_versions =
        from.accepted_versions.iter().copied().take_while(|version| *version > 0).collect();
    config.mtu = from.mtu;
    config.max_message_len = from.max_message_len;
    config.timeout = duration(from.timeout_ms);
    config.close_timeout = duration(from.close_timeout_ms);
    config.handshake_timeout = duration(from.handshake_timeout_ms);
    config.unreliable_timeout = duration(from.unreliable_timeout_ms);
    config.connect_interval = duration(from.connect_interval_ms);
    config.progress_interval = from.progress_interval;
    config.ping_interval = (from.ping_interval_ms > 0).then(|| duration(from.ping_interval_ms));
    config.outgoing_limit = (from.outgoing_limit > 0).then_some(from.outgoing_limit);
    config.congestion_control = match from.congestion {
        RAKWIRE_CONGESTION_DELAY => CongestionControl::DelayBased,
        RAKWIRE_CONGESTION_NEW_RENO => CongestionControl::NewReno,
        _ => return Err(refused("congestion must be a RAKWIRE_CONGESTION_ value")),
    };
    if from.guid > 0 {
        config.guid = Guid(from.guid);
    }
    if flag(from.out_of_band, "out_of_band")? {
        config.out_of_band = OutOfBand::Accept;
    }
    options.fail_on_unreachable = flag(from.fail_on_unreachable, "fail_on_unreachable")?;
    Ok(())
}

/// Applies the limits on clients and memory.
fn apply_limits(from: &RakwireOptions, options: &mut Options) -> Outcome<()> {
    let config = &mut options.config;
    config.max_incoming = from.max_incoming;
    config.max_per_address = (from.max_per_address > 0).then_some(from.max_per_address);
    config.max_per_network = (from.max_per_network > 0).then_some(from.max_per_network);
    config.max_half_open_per_network = from.max_half_open_per_network;
    config.connection_interval =
        (from.connection_interval_ms > 0).then(|| duration(from.connection_interval_ms));
    config.pongs_per_second = from.pongs_per_second;
    config.pongs_per_network = from.pongs_per_network;
    config.connection_blocks = (from.connection_blocks > 0).then_some(from.connection_blocks);
    config.cookies = match from.cookies {
        RAKWIRE_COOKIES_AUTOMATIC => CookiePolicy::Automatic,
        RAKWIRE_COOKIES_REQUIRED => CookiePolicy::Required,
        RAKWIRE_COOKIES_UNDER_LOAD => CookiePolicy::UnderLoad { unvalidated: from.cookies_unvalidated },
        RAKWIRE_COOKIES_OFF => CookiePolicy::Off,
        _ => return Err(refused("cookies must be a RAKWIRE_COOKIES_ value")),
    };
    let connections = match from.max_connections {
        0 => u32::from(from.max_incoming).max(64),
        some @ 1..=65_534 => some,
        _ => return Err(refused("max_connections must be 0 to 65534")),
    };
    options.capacity = Capacity::for_connections(connections as usize);
    match from.blocks {
        0 => {}
        some @ 4..=16_777_216 => options.capacity.blocks = some as usize,
        _ => return Err(refused("blocks must be 0, or 4 to 16777216")),
    }
    Ok(())
}

/// Parses a comma-separated list of networks, such as "10.0.0.7/32,fd00::/64".
///
/// # Safety
/// `networks` is null or a string.
unsafe fn apply_proxies(networks: *const c_char, options: &mut Options) -> Outcome<()> {
    // SAFETY: required of the caller of this function.
    let Some(networks) = unsafe { text(networks) }? else { return Ok(()) };
    for network in networks.split(',').map(str::trim) {
        let network = network.parse().map_err(|error| {
            Failure::with(
                RAKWIRE_ERROR_ARGUMENT,
                format_args!("trusted_proxies: {network:?}: {error}; use networks such as 10.0.0.7/32"),
            )
        })?;
        options.trusted_proxies.push(network);
    }
    Ok(())
}

#[cfg(feature = "sim")]
fn simulate(description: Option<&str>, options: &mut Options) -> Outcome<()> {
    if let Some(description) = description {
        let simulation = description.parse().map_err(|error: rakwire_native::SimulationSyntaxError| {
            Failure::with(RAKWIRE_ERROR_ARGUMENT, error)
        })?;
        options.simulate = Some(simulation);
    }
    Ok(())
}

#[cfg(not(feature = "sim"))]
fn simulate(description: Option<&str>, _: &mut Options) -> Outcome<()> {
    description.map_or(Ok(()), |_| Err(Failure::new(crate::codes::RAKWIRE_ERROR_UNSUPPORTED)))
}
