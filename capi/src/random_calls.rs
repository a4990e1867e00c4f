//! Calls random functions with random handles, sizes, lengths, numbers and bytes, with and without valgrind. Every
//! pointer is null, misaligned or valid: the library cannot detect other invalid pointers. No call may return
//! RAKWIRE_ERROR_BUG.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::mem::zeroed;
use std::process::Command;
use std::ptr::{null, null_mut};

use crate::codes::{RAKWIRE_ERROR_BUG, rakwire_last_error, rakwire_result_text};
use crate::types::{
    RakwireAddress, RakwireConnectOptions, RakwireConnectionInfo, RakwireConnectionStats, RakwireEvent,
    RakwireOptions, RakwireSecurePeer, RakwireStats, RakwireTokenClaims,
};
use crate::*;

/// A random number generator (xorshift) with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns one of the known values, or a random number.
    fn one_of(&mut self, known: &[u64]) -> u64 {
        match self.below(8) {
            0 => self.next(),
            1 => self.below(4),
            _ if known.is_empty() => 0,
            _ => known[self.below(known.len() as u64) as usize],
        }
    }
}

/// A caller's struct in its own allocation of exactly `size` bytes, so that valgrind detects writes beyond it. The size is
/// usually that of the current version, and otherwise that of an older one, too small, or too large.
struct Sized<T> {
    memory: Vec<u64>,
    kind: PhantomData<T>,
}

impl<T> Sized<T> {
    fn new(random: &mut Random) -> Self {
        let whole = size_of::<T>() as u64;
        let size = match random.below(8) {
            0 => 0,
            1 => random.below(32),
            2 => whole + random.below(200),
            3 if random.below(2) == 0 => whole + 200 + random.below(1 << 20),
            3 => whole.saturating_sub(8 * random.below(4)),
            _ => whole,
        };
        // The library refuses a size far beyond the struct before it reads more than the size.
        let length = if size >= whole + 200 { whole } else { size.max(4) };
        let mut memory = vec![0_u64; length.div_ceil(8) as usize];
        // SAFETY: the allocation has at least eight bytes.
        unsafe { memory.as_mut_ptr().cast::<u32>().write(size as u32) };
        Self { memory, kind: PhantomData }
    }

    const fn as_mut_ptr(&mut self) -> *mut T {
        self.memory.as_mut_ptr().cast()
    }

    /// Returns the struct if the allocation holds all of it.
    fn whole(&mut self) -> Option<&mut T> {
        let is_whole = size_of_val(&self.memory[..]) >= size_of::<T>();
        // SAFETY: the allocation has the size and alignment of the struct, which is valid for every bit pattern.
        is_whole.then(|| unsafe { &mut *self.memory.as_mut_ptr().cast::<T>() })
    }
}

/// Returns a pointer for a result, which is usually valid and otherwise null or misaligned.
fn out<T>(random: &mut Random, place: &mut [T; 2]) -> *mut T {
    match random.below(12) {
        0 => null_mut(),
        1 => place.as_mut_ptr().cast::<u8>().wrapping_add(1).cast(),
        _ => place.as_mut_ptr(),
    }
}

/// Returns a length, which is usually that of the buffer and otherwise smaller, or larger than any object.
fn length(random: &mut Random, there: usize) -> usize {
    match random.below(10) {
        0 => 0,
        1 => usize::MAX - random.below(3) as usize,
        2 => (isize::MAX as usize) + 1 + random.below(9) as usize,
        _ => random.below(there as u64 + 1) as usize,
    }
}

/// The handles and addresses that a run has obtained.
#[derive(Default)]
struct Known {
    endpoints: Vec<u64>,
    connections: Vec<u64>,
    messages: Vec<u64>,
    requests: Vec<u64>,
    addresses: Vec<RakwireAddress>,
}

const STRINGS: [&str; 11] = [
    "10.0.0.7/32,fd00::/64\0",
    "/no/such/folder/key\0",
    "127.0.0.1:9\0",
    "127.0.0.1:0\0",
    "[::1]:5\0",
    "\0",
    "192.0.2.*\0",
    "*\0",
    "loss=5%\0",
    "\u{fffd}\0",
    "127.0.0.1\0",
];

impl Known {
    fn address(&self, random: &mut Random) -> RakwireAddress {
        if !self.addresses.is_empty() && random.below(4) > 0 {
            return self.addresses[random.below(self.addresses.len() as u64) as usize];
        }
        let mut ip = [0; 16];
        ip.iter_mut().for_each(|byte| *byte = random.next() as u8);
        // Only loopback addresses, so that no datagram leaves the machine.
        ip[0] = 127;
        RakwireAddress {
            family: random.below(8) as u8,
            reserved: 0,
            port: random.next() as u16,
            scope: 0,
            ip,
        }
    }

    /// Opens an endpoint, usually with valid options.
    fn open(&mut self, random: &mut Random) -> i32 {
        let mut options = Sized::<RakwireOptions>::new(random);
        let texts = [(); 3].map(|()| text(random));
        // SAFETY: the options have their actual size in `size`, and their pointers are valid during the call.
        unsafe {
            if let Some(options) = options.whole().filter(|_| random.below(4) > 0) {
                rakwire_options_init(options, size_of::<RakwireOptions>());
                options.bind_address = c"127.0.0.1:0".as_ptr();
                options.max_incoming = random.below(5) as u16;
                options.max_connections = random.below(3) as u32 * 4;
                options.defer_incoming = random.below(2) as u8;
                options.out_of_band = random.below(2) as u8;
                options.timeout_ms = random.below(200) as u32;
                options.connect_interval_ms = random.below(50) as u32;
                options.mtu = 500 + random.below(1_100) as u16;
                options.blocks = random.below(4) as u32 * 8;
                options.max_message_len = random.next() as u32;
                options.cookies = random.below(5) as u8;
                options.pongs_per_second = random.next() as u16;
                options.connection_blocks = random.below(9) as u32;
                options.ping_interval_ms = random.below(90) as u32;
                options.outgoing_limit = random.next() >> random.below(64);
                if random.below(4) == 0 {
                    options.simulate = c"loss=20%,latency=1ms,duplicate=5%,reorder=9%".as_ptr();
                }
                if random.below(8) == 0 {
                    [options.trusted_proxies, options.server_key_file, options.token_key_file] = texts;
                }
            }
            let mut endpoint = [0; 2];
            let result = rakwire_endpoint_open(options.as_mut_ptr(), out(random, &mut endpoint));
            if result == 0 {
                self.endpoints.push(endpoint[0]);
                let mut address = self.address(random);
                rakwire_local_address(endpoint[0], &raw mut address);
                self.addresses.push(address);
            }
            result
        }
    }

    fn poll(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        let mut event = Sized::<RakwireEvent>::new(random);
        if let Some(event) = event.whole() {
            event.message = random.one_of(&self.messages);
        }
        // SAFETY: the event has its actual size in `size`, or a size that is refused.
        let result = unsafe {
            match random.below(3) {
                0 => rakwire_poll(endpoint, event.as_mut_ptr()),
                1 => rakwire_poll_next(endpoint, event.as_mut_ptr()),
                _ => rakwire_poll_many(endpoint, event.as_mut_ptr(), random.below(3) as usize, 1),
            }
        };
        if let Some(event) = event.whole().filter(|_| result == 1) {
            self.connections.push(event.connection);
            self.messages.push(event.message);
            self.requests.push(event.request);
        }
        result
    }

    fn connect(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        let mut options = Sized::<RakwireConnectOptions>::new(random);
        let is_default = random.below(3) > 0;
        let text = text(random);
        if let Some(options) = options.whole() {
            options.attempts = random.below(4) as u8;
            options.interval_ms = random.below(20) as u32;
            options.trust = random.below(5) as u8;
            options.protocol_version = random.below(12) as u8;
            options.token = if random.below(9) == 0 { text } else { null() };
        }
        let mut target = [0; 64];
        let address = self.address(random);
        let mut connection = [0; 2];
        // SAFETY: the buffer has the given length, and ends with a zero byte.
        let result = unsafe {
            rakwire_address_format(&raw const address, target.as_mut_ptr(), target.len());
            let to = if random.below(4) > 0 && target[0] != 0 { target.as_ptr() } else { text };
            let options = if is_default { null_mut() } else { options.as_mut_ptr() };
            rakwire_connect(endpoint, to, options, out(random, &mut connection))
        };
        self.connections.push(connection[0]);
        result
    }

    /// Makes one random call.
    fn call(&mut self, random: &mut Random) -> i32 {
        let endpoint = random.one_of(&self.endpoints);
        match random.below(10) {
            0..=1 => self.call_with_endpoint(random, endpoint),
            2 => self.call_of_connection(random, endpoint),
            3..=4 => self.send(random, endpoint),
            5 => self.call_unconnected(random, endpoint),
            6 => call_without_endpoint(random),
            7 => self.open_or_close(random, endpoint),
            _ => self.poll(random, endpoint),
        }
    }

    fn open_or_close(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        match random.below(12) {
            0 if self.endpoints.len() < 6 => self.open(random),
            1 if random.below(8) == 0 => {
                self.endpoints.retain(|known| *known != endpoint);
                rakwire_endpoint_close(endpoint)
            }
            _ => self.connect(random, endpoint),
        }
    }

    fn call_with_endpoint(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        let mut numbers = [0; 2];
        let mut address = [self.address(random); 2];
        let mut text = [0; 9];
        let mut counts = vec![0; random.below(40) as usize];
        // SAFETY: each pointer is null, misaligned, or points to a value of its type; arrays have the given length.
        unsafe {
            match random.below(16) {
                0..=4 => rakwire_update(endpoint),
                5 => rakwire_flush(endpoint),
                6 => rakwire_wait(endpoint, random.below(2) as u32),
                7 => rakwire_timeout(endpoint, out(random, &mut numbers)),
                8 => rakwire_socket(endpoint, out(random, &mut numbers)),
                9 => rakwire_guid(endpoint, out(random, &mut numbers)),
                10 => rakwire_local_address(endpoint, out(random, &mut address)),
                11 => rakwire_stats(endpoint, Sized::<RakwireStats>::new(random).as_mut_ptr()),
                12 => rakwire_drops(endpoint, counts.as_mut_ptr(), counts.len()),
                13 => rakwire_advice(endpoint, text.as_mut_ptr(), random.below(10) as usize),
                14 => rakwire_connections(endpoint, counts.as_mut_ptr(), counts.len()),
                _ => rakwire_message_release(endpoint, random.one_of(&self.messages)),
            }
        }
    }

    fn call_of_connection(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        let connection = random.one_of(&self.connections);
        let request = random.one_of(&self.requests);
        // SAFETY: the field `size` of each struct is its actual size, or a size that is refused.
        unsafe {
            match random.below(8) {
                0 => rakwire_accept(endpoint, request),
                1 => rakwire_refuse(endpoint, request),
                2 => rakwire_ignore(endpoint, request),
                3 => rakwire_disconnect(endpoint, connection),
                4 => {
                    let mut info = Sized::<RakwireConnectionInfo>::new(random);
                    rakwire_connection_info(endpoint, connection, info.as_mut_ptr())
                }
                5 => {
                    let mut stats = Sized::<RakwireConnectionStats>::new(random);
                    rakwire_connection_stats(endpoint, connection, stats.as_mut_ptr())
                }
                6 => {
                    let mut peer = Sized::<RakwireSecurePeer>::new(random);
                    rakwire_secure_peer(endpoint, connection, peer.as_mut_ptr())
                }
                _ => rakwire_set_timeout(endpoint, connection, random.below(300) as u32),
            }
        }
    }

    fn send(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        let connection = random.one_of(&self.connections);
        let bytes = bytes(random, 3_000);
        let length = length(random, bytes.len());
        let data = if random.below(16) == 0 { null() } else { bytes.as_ptr() };
        let (how, channel, priority) = (random.below(9) as u8, random.below(33) as u8, random.below(5) as u8);
        let mut number = [0; 2];
        // SAFETY: the pointer is valid for `length` bytes, or the length is refused.
        unsafe {
            match random.below(6) {
                0 => rakwire_disconnect_with(endpoint, connection, data, length, how, channel, priority),
                1 => {
                    let refused = out(random, &mut number);
                    rakwire_broadcast(endpoint, connection, data, length, how, channel, priority, refused)
                }
                _ => {
                    let receipt = out(random, &mut number);
                    rakwire_send(endpoint, connection, data, length, how, channel, priority, receipt)
                }
            }
        }
    }

    fn call_unconnected(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        let mut places = [self.address(random); 2];
        let address = out(random, &mut places);
        let bytes = bytes(random, 500);
        let length = length(random, bytes.len());
        let data = bytes.as_ptr();
        // SAFETY: the pointer is valid for `length` bytes, or the length is refused.
        unsafe {
            match random.below(8) {
                0 => rakwire_ping(endpoint, address, random.below(3) as u8, random.below(3) as u8),
                1 => rakwire_set_advertisement(endpoint, data, length),
                2 => rakwire_advertise(endpoint, address, data, length),
                3 => rakwire_send_out_of_band(endpoint, address, data, length),
                4 => rakwire_set_password(endpoint, data, length),
                5 => rakwire_ban(endpoint, text(random), random.below(100) as u32),
                6 => rakwire_unban(endpoint, text(random)),
                _ => rakwire_is_banned(endpoint, address),
            }
        }
    }
}

fn text(random: &mut Random) -> *const c_char {
    if random.below(12) == 0 {
        return null();
    }
    STRINGS[random.below(STRINGS.len() as u64) as usize].as_ptr().cast()
}

/// Returns up to `most` random bytes, usually with a first byte that is free for applications.
fn bytes(random: &mut Random, most: u64) -> Box<[u8]> {
    let mut bytes: Box<[u8]> = (0..=random.below(most)).map(|_| random.next() as u8).collect();
    if random.below(9) > 0 {
        bytes[0] |= 0x80;
    }
    bytes
}

/// Calls a function that needs no endpoint.
fn call_without_endpoint(random: &mut Random) -> i32 {
    let mut address = [RakwireAddress { family: 4, reserved: 0, port: 9, scope: 0, ip: [127; 16] }; 2];
    let (mut key, mut public) = ([7; 32], [0; 32]);
    let mut buffer = vec![0; random.below(80) as usize];
    let size = length(random, size_of::<RakwireOptions>());
    // SAFETY: each pointer is null, misaligned, or points to a value of its type; arrays have the given length. Structs are
    // initialised with a size that is at most their own, or refused.
    unsafe {
        match random.below(15) {
            0 => rakwire_options_init(Box::new(zeroed::<RakwireOptions>()).as_mut(), size),
            1 => {
                let mut options = zeroed::<RakwireConnectOptions>();
                rakwire_connect_options_init(&raw mut options, size.min(size_of::<RakwireConnectOptions>()))
            }
            2 => rakwire_address_parse(text(random), out(random, &mut address)),
            3 => rakwire_address_format(out(random, &mut address), buffer.as_mut_ptr(), buffer.len()),
            4 => rakwire_key_generate(key.as_mut_ptr(), public.as_mut_ptr()),
            5 => rakwire_public_key(key.as_ptr(), public.as_mut_ptr()),
            6 => rakwire_key_file_create(c"/no/such/folder/key".as_ptr(), public.as_mut_ptr()),
            7 => rakwire_key_file_public(text(random), public.as_mut_ptr()),
            8 => rakwire_token_key_file_create(c"/no/such/folder/key".as_ptr()),
            9 => {
                let mut claims = Sized::<RakwireTokenClaims>::new(random);
                let names = [(); 4].map(|()| text(random));
                let keys = [3; 128];
                if let Some(claims) = claims.whole() {
                    claims.server_count = random.below(6) as u32;
                    claims.client_key = public.as_ptr();
                    (claims.server_keys, claims.server_names) = (keys.as_ptr(), names.as_ptr());
                }
                let mut length = [0; 2];
                let stored = out(random, &mut length);
                rakwire_token_create(
                    key.as_ptr(),
                    claims.as_mut_ptr(),
                    buffer.as_mut_ptr(),
                    buffer.len(),
                    stored,
                )
            }
            10 => is_text(rakwire_drop_name(random.next() as u32 >> random.below(32))),
            11 => is_text(rakwire_reason_text(
                random.below(16) as u32,
                random.next() as i32 >> random.below(32),
            )),
            12 => is_text(rakwire_result_text(random.next() as i32 >> random.below(32))),
            13 => is_text(rakwire_last_error()),
            _ => is_text(rakwire_version()) + (rakwire_features() as i32),
        }
    }
}

/// Reads a string of the library to its terminator.
fn is_text(text: *const c_char) -> i32 {
    assert!(!text.is_null());
    // SAFETY: the library returns a NUL-terminated string.
    unsafe { CStr::from_ptr(text) }.to_bytes().len() as i32
}

/// The number of seeds and of calls per seed. The test under valgrind lowers both.
const BOUNDS: &str = "RAKWIRE_RANDOM_CALLS";

#[test]
fn random_calls_never_return_the_bug_code() {
    let bounds = std::env::var(BOUNDS).unwrap_or_else(|_| "10 2000".to_owned());
    let bounds =
        bounds.split_once(' ').and_then(|(seeds, calls)| Some((seeds.parse().ok()?, calls.parse().ok()?)));
    let (seeds, calls): (u64, u32) = bounds.expect("two numbers");
    for seed in 1..=seeds {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut known = Known::default();
        for step in 0..calls {
            let result = known.call(&mut random);
            if result == RAKWIRE_ERROR_BUG {
                // SAFETY: the library returns a NUL-terminated string.
                let text = unsafe { CStr::from_ptr(rakwire_last_error()) };
                panic!("seed {seed}, step {step}: {}", text.to_string_lossy());
            }
        }
        known.endpoints.iter().for_each(|endpoint| assert_eq!(rakwire_endpoint_close(*endpoint), 0));
    }
}

/// Repeats some of the random calls under valgrind, which checks every memory access.
#[test]
fn random_calls_access_only_valid_memory_under_valgrind() {
    let this = std::env::current_exe().expect("the path of the test");
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9"]).arg(this);
    command.args(["--exact", "random_calls::random_calls_never_return_the_bug_code"]).env(BOUNDS, "1 1000");
    let output = command.output().expect("valgrind");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
