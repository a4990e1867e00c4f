//! Random calls with random handles, sizes, numbers and bytes. Every pointer is null or names what the header asks for, since
//! nothing else can be recognised; no call may be a bug of the library.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use rakwire_c::codes::{RAKWIRE_ERROR_BUG, rakwire_last_error};
use rakwire_c::types::{
    RakwireAddress, RakwireConnectOptions, RakwireConnectionInfo, RakwireConnectionStats, RakwireEvent,
    RakwireOptions, RakwireSecurePeer, RakwireStats,
};
use rakwire_c::*;

/// A generator of numbers (xorshift), the same in each run.
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

    /// One of these, or anything.
    fn one_of(&mut self, known: &[u64]) -> u64 {
        match self.below(8) {
            0 => self.next(),
            1 => self.below(4),
            _ if known.is_empty() => 0,
            _ => known[self.below(known.len() as u64) as usize],
        }
    }
}

/// A struct with a size that is mostly right, and otherwise too small, or larger than any.
fn sized<T>(random: &mut Random) -> T {
    // SAFETY: the structs of the interface are valid for every pattern of bits.
    let mut value: T = unsafe { std::mem::zeroed() };
    let size = match random.below(8) {
        0 => 0,
        1 => random.below(32) as u32,
        2 => 4_097 + random.below(1 << 20) as u32,
        _ => size_of::<T>() as u32,
    };
    // SAFETY: the structs of the interface begin with their size.
    unsafe {
        (&raw mut value).cast::<u32>().write(size.min(if size <= 4_096 {
            size_of::<T>() as u32
        } else {
            size
        }))
    };
    value
}

/// The handles and addresses of a run.
#[derive(Default)]
struct Known {
    endpoints: Vec<u64>,
    connections: Vec<u64>,
    messages: Vec<u64>,
    requests: Vec<u64>,
    addresses: Vec<RakwireAddress>,
}

const STRINGS: [&str; 9] = [
    "127.0.0.1:9\0",
    "127.0.0.1:0\0",
    "[::1]:5\0",
    "\0",
    "192.0.2.*\0",
    "*\0",
    "loss=5%\0",
    "\u{fffd}:1\0",
    "127.0.0.1\0",
];

impl Known {
    fn address(&self, random: &mut Random) -> RakwireAddress {
        if !self.addresses.is_empty() && random.below(4) > 0 {
            return self.addresses[random.below(self.addresses.len() as u64) as usize];
        }
        let mut ip = [0; 16];
        ip.iter_mut().for_each(|byte| *byte = random.next() as u8);
        // Loopback alone, so that no datagram leaves the machine.
        ip[0] = 127;
        RakwireAddress {
            family: random.below(8) as u8,
            reserved: 0,
            port: random.next() as u16,
            scope: 0,
            ip,
        }
    }

    /// Opens an endpoint, mostly with usable options.
    fn open(&mut self, random: &mut Random) -> i32 {
        let mut options = sized::<RakwireOptions>(random);
        // SAFETY: the struct has its size, and what it names lives as long as the call.
        unsafe {
            if random.below(4) > 0 {
                rakwire_options_init(&raw mut options, size_of::<RakwireOptions>());
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
                if random.below(4) == 0 {
                    options.simulate = c"loss=20%,latency=1ms,duplicate=5%,reorder=9%".as_ptr();
                }
            }
            let mut endpoint = 0;
            let result = rakwire_endpoint_open(&raw const options, &raw mut endpoint);
            if result == 0 {
                self.endpoints.push(endpoint);
                let mut address = self.address(random);
                rakwire_local_address(endpoint, &raw mut address);
                self.addresses.push(address);
            }
            result
        }
    }

    fn poll(&mut self, random: &mut Random, endpoint: u64) -> i32 {
        let mut event = sized::<RakwireEvent>(random);
        // SAFETY: a size that is too large is refused before the event is written.
        let result = unsafe { rakwire_poll(endpoint, &raw mut event) };
        if result == 1 {
            self.connections.push(event.connection);
            self.messages.push(event.message);
            self.requests.push(event.request);
        }
        result
    }

    fn connect(&mut self, random: &mut Random, endpoint: u64, text: *const c_char) -> i32 {
        let mut options = sized::<RakwireConnectOptions>(random);
        options.attempts = random.below(4) as u8;
        options.interval_ms = random.below(20) as u32;
        options.trust = random.below(5) as u8;
        options.protocol_version = random.below(12) as u8;
        let mut target = [0; 64];
        let address = self.address(random);
        let mut connection = 0;
        // SAFETY: the buffer is as long as it says, and ends with a zero byte.
        let result = unsafe {
            rakwire_address_format(&raw const address, target.as_mut_ptr(), target.len());
            let to = if random.below(4) > 0 && target[0] != 0 { target.as_ptr() } else { text };
            let options = if random.below(3) > 0 { null() } else { &raw const options };
            rakwire_connect(endpoint, to, options, &raw mut connection)
        };
        self.connections.push(connection);
        result
    }

    /// Makes one random call.
    fn call(&mut self, random: &mut Random) -> i32 {
        let endpoint = random.one_of(&self.endpoints);
        let connection = random.one_of(&self.connections);
        let text = STRINGS[random.below(STRINGS.len() as u64) as usize].as_ptr().cast();
        let mut bytes = [0; 3_000];
        bytes.iter_mut().for_each(|byte| *byte = random.next() as u8);
        bytes[0] |= 0x80;
        let length = random.below(bytes.len() as u64) as usize;
        let data = if random.below(16) == 0 { null() } else { bytes.as_ptr() };
        let (how, channel, priority) = (random.below(9) as u8, random.below(33) as u8, random.below(5) as u8);
        let address = self.address(random);
        let mut number = 0;
        // SAFETY: each pointer is null or names a value of its type; sizes that are too large are refused.
        unsafe {
            match random.below(34) {
                0 if self.endpoints.len() < 6 => self.open(random),
                1 if random.below(8) == 0 => {
                    self.endpoints.retain(|known| *known != endpoint);
                    rakwire_endpoint_close(endpoint)
                }
                2..=5 => rakwire_update(endpoint),
                6 => rakwire_flush(endpoint),
                7..=10 => self.poll(random, endpoint),
                11..=13 => self.connect(random, endpoint, text),
                14 => rakwire_accept(endpoint, random.one_of(&self.requests)),
                15 => rakwire_refuse(endpoint, random.one_of(&self.requests)),
                16 => rakwire_ignore(endpoint, random.one_of(&self.requests)),
                17..=19 => {
                    rakwire_send(endpoint, connection, data, length, how, channel, priority, &raw mut number)
                }
                20 => {
                    rakwire_broadcast(endpoint, connection, data, length, how, channel, priority, null_mut())
                }
                21 => rakwire_message_release(endpoint, random.one_of(&self.messages)),
                22 => rakwire_disconnect(endpoint, connection),
                23 => rakwire_disconnect_with(endpoint, connection, data, length, how, channel, priority),
                24 => {
                    rakwire_connection_info(endpoint, connection, &mut sized::<RakwireConnectionInfo>(random))
                }
                25 => rakwire_connection_stats(
                    endpoint,
                    connection,
                    &mut sized::<RakwireConnectionStats>(random),
                ),
                26 => rakwire_stats(endpoint, &mut sized::<RakwireStats>(random)),
                27 => {
                    rakwire_ping(endpoint, &raw const address, random.below(3) as u8, random.below(3) as u8)
                }
                28 => rakwire_set_advertisement(endpoint, data, length % 500),
                29 => rakwire_send_out_of_band(endpoint, &raw const address, data, length % 500),
                30 => rakwire_set_password(endpoint, data, length % 300),
                31 => rakwire_ban(endpoint, text, random.below(100) as u32),
                32 => rakwire_unban(endpoint, text),
                33 => rakwire_secure_peer(endpoint, connection, &mut sized::<RakwireSecurePeer>(random)),
                _ => rakwire_set_timeout(endpoint, connection, random.below(300) as u32),
            }
        }
    }
}

#[test]
fn random_calls_find_no_bug() {
    for seed in 1..=20_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut known = Known::default();
        for step in 0..2_000 {
            let result = known.call(&mut random);
            if result == RAKWIRE_ERROR_BUG {
                // SAFETY: the library returns a string with an end.
                let text = unsafe { std::ffi::CStr::from_ptr(rakwire_last_error()) };
                panic!("seed {seed}, step {step}: {}", text.to_string_lossy());
            }
        }
        known.endpoints.iter().for_each(|endpoint| assert_eq!(rakwire_endpoint_close(*endpoint), 0));
    }
}
