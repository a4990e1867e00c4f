//! Calls random functions with random handles, sizes, lengths, numbers and bytes. The tests take them from seeds, with and
//! without valgrind, and the fuzz target `capi` takes them from its input. Every pointer is null, misaligned or valid: the
//! library cannot detect other invalid pointers. No call may return RAKWIRE_ERROR_BUG, and no call of an endpoint that is
//! closed or of another thread may succeed.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::{LazyLock, mpsc};
use std::thread;

use crate::codes::{RAKWIRE_ERROR_BUG, rakwire_last_error, rakwire_result_text};
use crate::types::{
    RakwireAddress, RakwireConnectOptions, RakwireConnectionInfo, RakwireConnectionStats, RakwireEvent,
    RakwireOptions, RakwireSecurePeer, RakwireStats, RakwireTokenClaims,
};
use crate::*;

/// A source of the numbers that determine the calls.
enum Numbers<'a> {
    /// A random number generator (xorshift) with a seed.
    Seed(u64),
    /// The bytes of an input, followed by zeros.
    Input(&'a [u8]),
}

impl Numbers<'_> {
    fn next(&mut self) -> u64 {
        self.take(8)
    }

    /// Returns a number of `count` bytes.
    fn take(&mut self, count: usize) -> u64 {
        match self {
            Self::Seed(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                *state
            }
            Self::Input(input) => {
                let (bytes, rest) = input.split_at(count.min(input.len()));
                *input = rest;
                bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
        }
    }

    /// Returns a number below `limit`. It takes few bytes of an input, so that a change of one byte changes one choice.
    fn below(&mut self, limit: u64) -> u64 {
        self.take(if limit <= 1 << 8 {
            1
        } else if limit <= 1 << 16 {
            2
        } else {
            8
        }) % limit
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

    /// Fills a buffer with bytes that one number determines.
    fn fill(&mut self, buffer: &mut [u8]) {
        let mut content = Self::Seed(self.below(1 << 16) + 1);
        buffer.iter_mut().for_each(|byte| *byte = content.next() as u8);
    }

    const fn is_over(&self) -> bool {
        matches!(self, Self::Input([]))
    }
}

/// A caller's struct in its own allocation of exactly `size` bytes, so that valgrind detects writes beyond it. The size is
/// usually that of the current version, and otherwise that of an older one, too small, or too large.
struct Sized<T> {
    memory: Vec<u64>,
    kind: PhantomData<T>,
}

impl<T> Sized<T> {
    fn new(numbers: &mut Numbers<'_>) -> Self {
        let whole = size_of::<T>() as u64;
        let size = match numbers.below(8) {
            0 => 0,
            1 => numbers.below(32),
            2 => whole + numbers.below(200),
            3 if numbers.below(2) == 0 => whole + 200 + numbers.below(1 << 20),
            3 => whole.saturating_sub(8 * numbers.below(4)),
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
fn out<T>(numbers: &mut Numbers<'_>, place: &mut [T; 2]) -> *mut T {
    match numbers.below(12) {
        0 => null_mut(),
        1 => place.as_mut_ptr().cast::<u8>().wrapping_add(1).cast(),
        _ => place.as_mut_ptr(),
    }
}

/// Returns a length, which is usually that of the buffer and otherwise smaller, or larger than any object.
fn length(numbers: &mut Numbers<'_>, there: usize) -> usize {
    match numbers.below(10) {
        0 => 0,
        1 => usize::MAX - numbers.below(3) as usize,
        2 => (isize::MAX as usize) + 1 + numbers.below(9) as usize,
        _ => numbers.below(there as u64 + 1) as usize,
    }
}

/// The handles and addresses that a run has obtained.
#[derive(Default)]
struct Known {
    /// The open endpoints of this thread.
    endpoints: Vec<u64>,
    closed: Vec<u64>,
    connections: Vec<u64>,
    messages: Vec<u64>,
    requests: Vec<u64>,
    addresses: Vec<RakwireAddress>,
}

/// An endpoint of another thread, which never ends.
static FOREIGN: LazyLock<u64> = LazyLock::new(|| {
    let (to, from) = mpsc::channel();
    thread::spawn(move || {
        let (options, mut endpoint) = (default_options(), 0);
        // SAFETY: the options are initialised, and both pointers are valid.
        let opened = unsafe { rakwire_endpoint_open(&raw const options, &raw mut endpoint) };
        to.send((opened, endpoint)).expect("a thread that waits");
        loop {
            thread::park();
        }
    });
    let (opened, endpoint) = from.recv().expect("a thread that sends");
    assert_eq!(opened, 0, "an endpoint at any port");
    endpoint
});

/// Returns initialised options of an endpoint at a loopback address.
fn default_options() -> RakwireOptions {
    // SAFETY: the struct is valid for every bit pattern.
    let mut options = unsafe { zeroed::<RakwireOptions>() };
    // SAFETY: the struct has this size.
    unsafe { rakwire_options_init(&raw mut options, size_of::<RakwireOptions>()) };
    options.bind_address = c"127.0.0.1:0".as_ptr();
    options
}

/// The longest string without an end that a function may read, in its own allocation.
static ENDLESS: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![b'7'; 1_025].into());

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
    fn address(&self, numbers: &mut Numbers<'_>) -> RakwireAddress {
        if !self.addresses.is_empty() && numbers.below(4) > 0 {
            return self.addresses[numbers.below(self.addresses.len() as u64) as usize];
        }
        let mut ip = [0; 16];
        numbers.fill(&mut ip);
        // Only loopback addresses, so that no datagram leaves the machine.
        ip[0] = 127;
        RakwireAddress {
            family: numbers.below(8) as u8,
            reserved: 0,
            port: numbers.below(1 << 16) as u16,
            scope: 0,
            ip,
        }
    }

    /// Opens an endpoint, usually with valid options.
    fn open(&mut self, numbers: &mut Numbers<'_>) -> i32 {
        let mut options = Sized::<RakwireOptions>::new(numbers);
        let texts = [(); 3].map(|()| text(numbers));
        // SAFETY: the options have their actual size in `size`, and their pointers are valid during the call.
        unsafe {
            if let Some(options) = options.whole().filter(|_| numbers.below(4) > 0) {
                *options = default_options();
                options.max_incoming = numbers.below(5) as u16;
                options.max_connections = numbers.below(3) as u32 * 4;
                options.defer_incoming = numbers.below(2) as u8;
                options.out_of_band = numbers.below(2) as u8;
                options.timeout_ms = numbers.below(200) as u32;
                options.connect_interval_ms = numbers.below(50) as u32;
                options.mtu = 500 + numbers.below(1_100) as u16;
                options.blocks = numbers.below(4) as u32 * 8;
                options.max_message_len = numbers.next() as u32;
                options.cookies = numbers.below(5) as u8;
                options.pongs_per_second = numbers.next() as u16;
                options.connection_blocks = numbers.below(9) as u32;
                options.ping_interval_ms = numbers.below(90) as u32;
                options.outgoing_limit = numbers.next() >> numbers.below(64);
                if numbers.below(4) == 0 {
                    options.simulate = c"loss=20%,latency=1ms,duplicate=5%,reorder=9%".as_ptr();
                }
                if numbers.below(8) == 0 {
                    [options.trusted_proxies, options.server_key_file, options.token_key_file] = texts;
                }
            }
            let mut endpoint = [0; 2];
            let result = rakwire_endpoint_open(options.as_mut_ptr(), out(numbers, &mut endpoint));
            if result == 0 {
                self.endpoints.push(endpoint[0]);
                let mut address = self.address(numbers);
                rakwire_local_address(endpoint[0], &raw mut address);
                self.addresses.push(address);
            }
            result
        }
    }

    fn poll(&mut self, numbers: &mut Numbers<'_>, endpoint: u64) -> i32 {
        let mut event = Sized::<RakwireEvent>::new(numbers);
        if let Some(event) = event.whole() {
            event.message = numbers.one_of(&self.messages);
        }
        // SAFETY: the event has its actual size in `size`, or a size that is refused.
        let result = unsafe {
            match numbers.below(3) {
                0 => rakwire_poll(endpoint, event.as_mut_ptr()),
                1 => rakwire_poll_next(endpoint, event.as_mut_ptr()),
                _ => rakwire_poll_many(endpoint, event.as_mut_ptr(), numbers.below(3) as usize, 1),
            }
        };
        if let Some(event) = event.whole().filter(|_| result == 1) {
            self.connections.push(event.connection);
            self.messages.push(event.message);
            self.requests.push(event.request);
        }
        result
    }

    fn connect(&mut self, numbers: &mut Numbers<'_>, endpoint: u64) -> i32 {
        let mut options = Sized::<RakwireConnectOptions>::new(numbers);
        let is_default = numbers.below(3) > 0;
        let text = text(numbers);
        if let Some(options) = options.whole() {
            options.attempts = numbers.below(4) as u8;
            options.interval_ms = numbers.below(20) as u32;
            options.trust = numbers.below(5) as u8;
            options.protocol_version = numbers.below(12) as u8;
            options.token = if numbers.below(9) == 0 { text } else { null() };
        }
        let mut target = [0; 64];
        let address = self.address(numbers);
        let mut connection = [0; 2];
        // SAFETY: the buffer has the given length, and ends with a zero byte.
        let result = unsafe {
            rakwire_address_format(&raw const address, target.as_mut_ptr(), target.len());
            let to = if numbers.below(4) > 0 && target[0] != 0 { target.as_ptr() } else { text };
            let options = if is_default { null_mut() } else { options.as_mut_ptr() };
            rakwire_connect(endpoint, to, options, out(numbers, &mut connection))
        };
        self.connections.push(connection[0]);
        result
    }

    /// Makes one random call.
    fn call(&mut self, numbers: &mut Numbers<'_>) -> i32 {
        let endpoint = match numbers.below(32) {
            0 => *FOREIGN,
            1 => numbers.one_of(&self.closed),
            _ => numbers.one_of(&self.endpoints),
        };
        let is_usable = self.endpoints.contains(&endpoint);
        let result = match numbers.below(10) {
            0..=1 => self.call_with_endpoint(numbers, endpoint),
            2 => self.call_of_connection(numbers, endpoint),
            3..=4 => self.send(numbers, endpoint),
            5 => self.call_unconnected(numbers, endpoint),
            6 if numbers.below(8) == 0 && self.endpoints.len() < 6 => return self.open(numbers),
            6 => return call_without_endpoint(numbers),
            7 => self.connect_or_close(numbers, endpoint),
            _ => self.poll(numbers, endpoint),
        };
        assert!(
            is_usable || result < 0,
            "a call of endpoint {endpoint:#x}, which is not open here, succeeds"
        );
        result
    }

    fn connect_or_close(&mut self, numbers: &mut Numbers<'_>, endpoint: u64) -> i32 {
        if numbers.below(96) > 0 {
            return self.connect(numbers, endpoint);
        }
        if let Some(place) = self.endpoints.iter().position(|known| *known == endpoint) {
            self.closed.push(self.endpoints.swap_remove(place));
        }
        rakwire_endpoint_close(endpoint)
    }

    fn call_with_endpoint(&mut self, numbers: &mut Numbers<'_>, endpoint: u64) -> i32 {
        let mut found = [0; 2];
        let mut address = [self.address(numbers); 2];
        let mut text = [0; 9];
        let mut counts = vec![0; numbers.below(40) as usize];
        // SAFETY: each pointer is null, misaligned, or points to a value of its type; arrays have the given length.
        unsafe {
            match numbers.below(16) {
                0..=4 => rakwire_update(endpoint),
                5 => rakwire_flush(endpoint),
                6 => rakwire_wait(endpoint, numbers.below(2) as u32),
                7 => rakwire_timeout(endpoint, out(numbers, &mut found)),
                8 => rakwire_socket(endpoint, out(numbers, &mut found)),
                9 => rakwire_guid(endpoint, out(numbers, &mut found)),
                10 => rakwire_local_address(endpoint, out(numbers, &mut address)),
                11 => rakwire_stats(endpoint, Sized::<RakwireStats>::new(numbers).as_mut_ptr()),
                12 => rakwire_drops(endpoint, counts.as_mut_ptr(), counts.len()),
                13 => rakwire_advice(endpoint, text.as_mut_ptr(), numbers.below(10) as usize),
                14 => rakwire_connections(endpoint, counts.as_mut_ptr(), counts.len()),
                _ => rakwire_message_release(endpoint, numbers.one_of(&self.messages)),
            }
        }
    }

    fn call_of_connection(&mut self, numbers: &mut Numbers<'_>, endpoint: u64) -> i32 {
        let connection = numbers.one_of(&self.connections);
        let request = numbers.one_of(&self.requests);
        // SAFETY: the field `size` of each struct is its actual size, or a size that is refused.
        unsafe {
            match numbers.below(8) {
                0 => rakwire_accept(endpoint, request),
                1 => rakwire_refuse(endpoint, request),
                2 => rakwire_ignore(endpoint, request),
                3 => rakwire_disconnect(endpoint, connection),
                4 => {
                    let mut info = Sized::<RakwireConnectionInfo>::new(numbers);
                    rakwire_connection_info(endpoint, connection, info.as_mut_ptr())
                }
                5 => {
                    let mut stats = Sized::<RakwireConnectionStats>::new(numbers);
                    rakwire_connection_stats(endpoint, connection, stats.as_mut_ptr())
                }
                6 => {
                    let mut peer = Sized::<RakwireSecurePeer>::new(numbers);
                    rakwire_secure_peer(endpoint, connection, peer.as_mut_ptr())
                }
                _ => rakwire_set_timeout(endpoint, connection, numbers.below(300) as u32),
            }
        }
    }

    fn send(&mut self, numbers: &mut Numbers<'_>, endpoint: u64) -> i32 {
        let connection = numbers.one_of(&self.connections);
        let bytes = bytes(numbers, 3_000);
        let length = length(numbers, bytes.len());
        let data = if numbers.below(16) == 0 { null() } else { bytes.as_ptr() };
        let (how, channel, priority) =
            (numbers.below(9) as u8, numbers.below(33) as u8, numbers.below(5) as u8);
        let mut number = [0; 2];
        // SAFETY: the pointer is valid for `length` bytes, or the length is refused.
        unsafe {
            match numbers.below(6) {
                0 => rakwire_disconnect_with(endpoint, connection, data, length, how, channel, priority),
                1 => {
                    let refused = out(numbers, &mut number);
                    rakwire_broadcast(endpoint, connection, data, length, how, channel, priority, refused)
                }
                _ => {
                    let receipt = out(numbers, &mut number);
                    rakwire_send(endpoint, connection, data, length, how, channel, priority, receipt)
                }
            }
        }
    }

    fn call_unconnected(&mut self, numbers: &mut Numbers<'_>, endpoint: u64) -> i32 {
        let mut places = [self.address(numbers); 2];
        let address = out(numbers, &mut places);
        let bytes = bytes(numbers, 500);
        let length = length(numbers, bytes.len());
        let data = bytes.as_ptr();
        // SAFETY: the pointer is valid for `length` bytes, or the length is refused.
        unsafe {
            match numbers.below(8) {
                0 => rakwire_ping(endpoint, address, numbers.below(3) as u8, numbers.below(3) as u8),
                1 => rakwire_set_advertisement(endpoint, data, length),
                2 => rakwire_advertise(endpoint, address, data, length),
                3 => rakwire_send_out_of_band(endpoint, address, data, length),
                4 => rakwire_set_password(endpoint, data, length),
                5 => rakwire_ban(endpoint, text(numbers), numbers.below(100) as u32),
                6 => rakwire_unban(endpoint, text(numbers)),
                _ => rakwire_is_banned(endpoint, address),
            }
        }
    }
}

fn text(numbers: &mut Numbers<'_>) -> *const c_char {
    match numbers.below(16) {
        0 => null(),
        1 => ENDLESS.as_ptr().cast(),
        _ => STRINGS[numbers.below(STRINGS.len() as u64) as usize].as_ptr().cast(),
    }
}

/// Returns up to `most` random bytes, usually with a first byte that is free for applications.
fn bytes(numbers: &mut Numbers<'_>, most: u64) -> Box<[u8]> {
    let mut bytes = vec![0; numbers.below(most) as usize + 1].into_boxed_slice();
    numbers.fill(&mut bytes);
    if numbers.below(9) > 0 {
        bytes[0] |= 0x80;
    }
    bytes
}

/// Calls a function that needs no endpoint.
fn call_without_endpoint(numbers: &mut Numbers<'_>) -> i32 {
    let mut address = [RakwireAddress { family: 4, reserved: 0, port: 9, scope: 0, ip: [127; 16] }; 2];
    let (mut key, mut public) = ([7; 32], [0; 32]);
    let mut buffer = vec![0; numbers.below(80) as usize];
    let size = length(numbers, size_of::<RakwireOptions>());
    // SAFETY: each pointer is null, misaligned, or points to a value of its type; arrays have the given length. Structs are
    // initialised with a size that is at most their own, or refused.
    unsafe {
        match numbers.below(15) {
            0 => rakwire_options_init(Box::new(zeroed::<RakwireOptions>()).as_mut(), size),
            1 => {
                let mut options = zeroed::<RakwireConnectOptions>();
                rakwire_connect_options_init(&raw mut options, size.min(size_of::<RakwireConnectOptions>()))
            }
            2 => rakwire_address_parse(text(numbers), out(numbers, &mut address)),
            3 => rakwire_address_format(out(numbers, &mut address), buffer.as_mut_ptr(), buffer.len()),
            4 => rakwire_key_generate(key.as_mut_ptr(), public.as_mut_ptr()),
            5 => rakwire_public_key(key.as_ptr(), public.as_mut_ptr()),
            6 => rakwire_key_file_create(c"/no/such/folder/key".as_ptr(), public.as_mut_ptr()),
            7 => rakwire_key_file_public(text(numbers), public.as_mut_ptr()),
            8 => rakwire_token_key_file_create(c"/no/such/folder/key".as_ptr()),
            9 => {
                let mut claims = Sized::<RakwireTokenClaims>::new(numbers);
                let names = [(); 4].map(|()| text(numbers));
                let keys = [3; 128];
                if let Some(claims) = claims.whole() {
                    claims.server_count = numbers.below(6) as u32;
                    claims.client_key = public.as_ptr();
                    (claims.server_keys, claims.server_names) = (keys.as_ptr(), names.as_ptr());
                }
                let mut length = [0; 2];
                let stored = out(numbers, &mut length);
                rakwire_token_create(
                    key.as_ptr(),
                    claims.as_mut_ptr(),
                    buffer.as_mut_ptr(),
                    buffer.len(),
                    stored,
                )
            }
            10 => is_text(rakwire_drop_name(numbers.next() as u32 >> numbers.below(32))),
            11 => is_text(rakwire_reason_text(
                numbers.below(16) as u32,
                numbers.next() as i32 >> numbers.below(32),
            )),
            12 => is_text(rakwire_result_text(numbers.next() as i32 >> numbers.below(32))),
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

/// Makes up to `calls` calls, until an input is over, and closes all endpoints.
fn run(numbers: &mut Numbers<'_>, calls: u32) {
    let mut known = Known::default();
    for _ in 0..2 {
        known.open(numbers);
    }
    for step in 0..calls {
        if numbers.is_over() {
            break;
        }
        if known.call(numbers) == RAKWIRE_ERROR_BUG {
            // SAFETY: the library returns a NUL-terminated string.
            let text = unsafe { CStr::from_ptr(rakwire_last_error()) };
            panic!("step {step}: {}", text.to_string_lossy());
        }
    }
    known.endpoints.iter().for_each(|endpoint| assert_eq!(rakwire_endpoint_close(*endpoint), 0));
}

/// Makes the calls that the bytes of an input determine.
///
/// # Panics
/// Panics if a call returns [`RAKWIRE_ERROR_BUG`], or succeeds with an endpoint that is not open on this thread.
pub fn run_input(input: &[u8]) {
    run(&mut Numbers::Input(input), u32::MAX);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The number of seeds and of calls per seed. The test under valgrind lowers both.
    const BOUNDS: &str = "RAKWIRE_RANDOM_CALLS";

    #[test]
    fn random_calls_never_return_the_bug_code() {
        let bounds = std::env::var(BOUNDS).unwrap_or_else(|_| "10 2000".to_owned());
        let bounds = bounds
            .split_once(' ')
            .and_then(|(seeds, calls)| Some((seeds.parse().ok()?, calls.parse().ok()?)));
        let (seeds, calls): (u64, u32) = bounds.expect("two numbers");
        for seed in 1..=seeds {
            println!("seed {seed}");
            run(&mut Numbers::Seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), calls);
        }
    }

    /// Repeats some of the random calls under valgrind, which checks every memory access.
    #[test]
    fn random_calls_access_only_valid_memory_under_valgrind() {
        let this = std::env::current_exe().expect("the path of the test");
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9"]).arg(this);
        command.args(["--exact", "random_calls::tests::random_calls_never_return_the_bug_code"]);
        let output = command.env(BOUNDS, "1 1000").output().expect("valgrind");
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}
