//! `rakwire overhead`: the size of a message on the wire, by format and mode.

use std::fmt::Write;

use clap::Args;
use rakwire::game_protocol::wire as game_protocol;
use rakwire::raknet::Reliability;
use rakwire::secure::OVERHEAD;
use rakwire::wire::datagram::{CapsuleHeader, DATA_HEADER, MAX_HEADER};
use rakwire::wire::{IP_UDP_OVERHEAD, MAX_MTU, MIN_MTU};
use serde_json::{Value, json};

use crate::failure::{Failure, print};

/// Shows how many bytes messages take on the wire: by the two tables of RakNet's documents, for version 3 before and
/// since 3.6201, and as rakwire sends them with RakNet, plain and secure, and with the Game Protocol.
///
/// IP headers are those of IPv4; those of IPv6 take 20 bytes more. Acknowledgements, pings and resends are not
/// included.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The size of a message in bytes, 1 to 16,777,216
    #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    size: u32,
    /// The number of messages sent together; those that fit share a datagram
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// The number of such bursts per second, for the last column
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// The MTU with IP and UDP headers, 576 to 1492
    #[arg(long, default_value_t = MAX_MTU, value_parser = clap::value_parser!(u16).range(i64::from(MIN_MTU)..=i64::from(MAX_MTU)))]
    mtu: u16,
    /// Print one JSON object, with the headers in bits
    #[arg(long)]
    json: bool,
}

/// A mode of sending messages. Headers are in bits, because those of old versions do not end on a byte boundary.
#[derive(Clone, Copy, Debug)]
struct Layout {
    format: &'static str,
    name: &'static str,
    datagram: u64,
    message: u64,
    /// The header of a part of a long message, instead of `message`.
    part: u64,
    longest: Longest,
    /// Bits of a datagram, without IP and UDP headers, that are kept free of messages.
    reserved: u64,
    /// True if several messages can share a datagram.
    is_shared: bool,
}

/// The longest message that is not split, and the length of each part but the last.
#[derive(Clone, Copy, Debug)]
enum Longest {
    /// A number of bytes, at every MTU.
    Always(u64),
    /// The space that remains in a datagram after this number of header bits.
    Beside(u64),
}

/// The cost of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    datagrams: u64,
    /// The bytes of all datagrams, including IP and UDP headers.
    bytes: u64,
}

const IP_UDP: u64 = IP_UDP_OVERHEAD as u64;
/// C++ RakNet counts nine bytes for the datagram header, which has only four. Peers rely on that count.
const COUNTED_HEADER: u64 = 9;
/// The five documented reliabilities: whether each is reliable, and whether it is ordered or sequenced on a channel.
const DOCUMENTED: [(Reliability, &str, bool, bool); 5] = [
    (Reliability::Unreliable, "unreliable", false, false),
    (Reliability::UnreliableSequenced, "unreliable sequenced", false, true),
    (Reliability::Reliable, "reliable", true, false),
    (Reliability::ReliableSequenced, "reliable sequenced", true, true),
    (Reliability::ReliableOrdered, "reliable ordered", true, true),
];

/// Returns every mode.
fn layouts() -> Vec<Layout> {
    let mut layouts = Vec::new();
    for (_, name, _, has_channel) in DOCUMENTED {
        let message = 32 + 32 + 4 + if has_channel { 32 + 5 } else { 0 };
        // Two fields of a part are compressed to 1 or 2 bytes each; 2 are assumed here.
        layouts.push(documented("documents, 3.x to 3.6201", name, 65, message, 16 + 32 + 16));
    }
    for (_, name, is_reliable, has_channel) in DOCUMENTED {
        let message = 24 + if is_reliable { 24 } else { 0 } + if has_channel { 32 } else { 0 };
        layouts.push(documented("documents, since 3.6201", name, 64, message, 80));
    }
    layouts.extend(raknet("RakNet, as rakwire", 0));
    layouts.extend(raknet("RakNet, secure, as rakwire", u64::from(OVERHEAD)));
    layouts.push(Layout {
        format: "Game Protocol, as rakwire",
        name: "unreliable or reliable",
        datagram: 8 * game_protocol::HEADER as u64,
        message: 0,
        part: 0,
        longest: Longest::Always(game_protocol::CHUNK as u64),
        reserved: 8 * game_protocol::HEADER as u64,
        is_shared: false,
    });
    layouts
}

/// Returns the modes of RakNet, with `overhead` extra bytes in each datagram.
fn raknet(format: &'static str, overhead: u64) -> impl Iterator<Item = Layout> {
    // The overhead is subtracted twice, as in C++ RakNet.
    let reserved = 8 * (COUNTED_HEADER + 2 * overhead);
    DOCUMENTED.into_iter().map(move |(reliability, name, ..)| {
        // The parts of an unreliable message are sent reliably.
        let in_parts = if reliability == Reliability::Unreliable {
            Reliability::Reliable
        } else if reliability == Reliability::UnreliableSequenced {
            Reliability::ReliableSequenced
        } else {
            reliability
        };
        Layout {
            format,
            name,
            datagram: 8 * (DATA_HEADER as u64 + overhead),
            message: 8 * CapsuleHeader::size(reliability, false) as u64,
            part: 8 * CapsuleHeader::size(in_parts, true) as u64,
            longest: Longest::Beside(reserved + 8 * MAX_HEADER as u64),
            reserved,
            is_shared: true,
        }
    })
}

const fn documented(
    format: &'static str,
    name: &'static str,
    datagram: u64,
    message: u64,
    split: u64,
) -> Layout {
    let part = message + split;
    Layout {
        format,
        name,
        datagram,
        message,
        part,
        longest: Longest::Beside(datagram + part),
        reserved: datagram,
        is_shared: true,
    }
}

impl Layout {
    /// Returns the length in bytes of the longest message that is not split.
    fn longest(&self, mtu: u16) -> u64 {
        match self.longest {
            Longest::Always(bytes) => bytes,
            Longest::Beside(bits) => (8 * (u64::from(mtu) - IP_UDP) - bits) / 8,
        }
    }

    /// Returns the cost of sending `count` messages of `size` bytes together.
    fn cost(&self, size: u64, count: u64, mtu: u16) -> Cost {
        let room = 8 * (u64::from(mtu) - IP_UDP) - self.reserved;
        let longest = self.longest(mtu);
        if size > longest {
            let (whole, rest) = (size / longest, size % longest);
            let bytes = |payload: u64| IP_UDP + (self.datagram + self.part + 8 * payload).div_ceil(8);
            let last = if rest == 0 { 0 } else { bytes(rest) };
            return Cost {
                datagrams: count * (whole + u64::from(rest > 0)),
                bytes: count * (whole * bytes(longest) + last),
            };
        }
        let each = self.message + 8 * size;
        let together = if self.is_shared { (room / each).max(1) } else { 1 };
        let (full, rest) = (count / together, count % together);
        let bytes = |messages: u64| IP_UDP + (self.datagram + messages * each).div_ceil(8);
        let last = if rest == 0 { 0 } else { bytes(rest) };
        Cost { datagrams: full + u64::from(rest > 0), bytes: full * bytes(together) + last }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    print(if arguments.json { format!("{}\n", as_json(arguments)) } else { table(arguments) })
}

fn as_json(arguments: &Arguments) -> Value {
    let Arguments { size, count, rate, mtu, .. } = *arguments;
    let row = |mode: &Layout| {
        let Cost { datagrams, bytes } = mode.cost(u64::from(size), u64::from(count), mtu);
        let (always, beside) = match mode.longest {
            Longest::Always(bytes) => (Some(bytes), None),
            Longest::Beside(bits) => (None, Some(bits)),
        };
        json!({
            "format": mode.format,
            "mode": mode.name,
            "datagrams": datagrams,
            "bytes": bytes,
            "bytes_per_second": bytes * u64::from(rate),
            "layout": {
                "datagram_bits": mode.datagram,
                "message_bits": mode.message,
                "part_bits": mode.part,
                "reserved_bits": mode.reserved,
                "is_shared": mode.is_shared,
                "longest_bytes": always,
                "longest_beside_bits": beside,
            },
        })
    };
    let rows: Vec<Value> = layouts().iter().map(row).collect();
    json!({ "size": size, "count": count, "rate": rate, "mtu": mtu, "rows": rows })
}

fn table(arguments: &Arguments) -> String {
    let Arguments { size, count, rate, mtu, .. } = *arguments;
    let payload = u64::from(size) * u64::from(count);
    let mut text = format!(
        "{count} x {size} bytes at an MTU of {mtu}, with IPv4 and UDP headers (IPv6: 20 bytes a datagram more)\n\n{:<26} {:<22} {:>9} {:>12} {:>9} {:>13}\n",
        "format", "mode", "datagrams", "bytes", "overhead", "bytes/s"
    );
    for mode in layouts() {
        let Cost { datagrams, bytes } = mode.cost(u64::from(size), u64::from(count), mtu);
        let percent = (bytes - payload) as f64 * 100.0 / payload as f64;
        let (name, format, per_second) = (mode.name, mode.format, bytes * u64::from(rate));
        // Writing to a string never fails.
        let _ = writeln!(
            text,
            "{format:<26} {name:<22} {datagrams:>9} {bytes:>12} {percent:>8.1}% {per_second:>13}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rakwire::endpoint::{Capacity, ConnectionId, Event, Peer, Protocol};
    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::{ConnectOptions, Delivery, RakNet, Security};
    use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};
    use rakwire::sim::{Conditions, Pair};

    use super::*;

    fn cost(format: &str, name: &str, size: u64, count: u64) -> Cost {
        let all = layouts();
        let mode = all.iter().find(|mode| mode.format.starts_with(format) && mode.name.starts_with(name));
        mode.expect("a mode").cost(size, count, 1_492)
    }

    type Peers<P> = Pair<Peer<'static, P>, Peer<'static, P>>;

    fn peers<P: Protocol>(client: P::Config, mut server: P::Config) -> Peers<P> {
        let capacity = Capacity { connections: 1, blocks: 256, block_size: 512 };
        *P::max_incoming(&mut server) = 1;
        let server = Peer::<P>::with_capacity(capacity, server);
        let client = Peer::<P>::with_capacity(capacity, client);
        let conditions = Conditions { latency: Duration::from_millis(1), ..Conditions::default() };
        Pair::new(client, server, conditions, 1)
    }

    fn plain<P: Protocol>() -> (Peers<P>, ConnectionId) {
        let mut pair = peers::<P>(P::config([1; 32]), P::config([2; 32]));
        let id = pair.a.connect(pair.now, pair.b_address).expect("a free slot");
        (pair, id)
    }

    fn secure() -> (Peers<RakNet>, ConnectionId) {
        let [client, server] = [1, 2].map(|seed| {
            let mut config = RakNet::config([seed; 32]);
            let mut security = Security::new([seed + 2; 32]);
            security.server = Some(ServerIdentity::new(StaticKey::from_bytes([seed + 4; 32])));
            config.security = Some(security);
            config
        });
        let mut pair = peers::<RakNet>(client, server);
        let options = ConnectOptions { trust: Some(ServerTrust::Any), ..ConnectOptions::default() };
        let id = pair.a.connect_with(pair.now, pair.b_address, &options).expect("a free slot");
        (pair, id)
    }

    /// Returns the datagrams and bytes that a connection sends for `count` messages.
    fn sent<P: Protocol>(
        (mut pair, id): (Peers<P>, ConnectionId),
        delivery: P::Delivery,
        size: usize,
        count: usize,
    ) -> Cost {
        while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
            assert!(pair.step());
        }
        // This time is long enough to acknowledge the handshake, and too short for a connection to time out.
        let end = pair.now + Duration::from_millis(500);
        loop {
            pair.transmit();
            let timeouts = [pair.a.poll_timeout(), pair.b.poll_timeout()];
            let in_flight = [pair.forth().next_arrival(), pair.back().next_arrival()];
            let next = timeouts.into_iter().chain(in_flight).flatten().min();
            if next.is_none_or(|next| next > end) {
                break;
            }
            pair.step();
        }
        for _ in 0..count {
            pair.a.send(pair.now, id, &vec![0x86; size], delivery).expect("enough space");
        }
        let mut cost = Cost { datagrams: 0, bytes: 0 };
        let mut buffer = [0; 2_048];
        while let Some(transmit) = pair.a.poll_transmit(pair.now, &mut buffer) {
            cost.datagrams += 1;
            cost.bytes += IP_UDP + transmit.payload.len() as u64;
        }
        cost
    }

    /// Ten messages of 136 bytes would fit into a datagram if no bytes of it were reserved.
    #[test]
    fn rakwire_rows_match_the_bytes_sent() {
        for (reliability, name, ..) in DOCUMENTED {
            let delivery = Delivery { reliability, ..Delivery::default() };
            for (size, count) in [(1, 1), (100, 5), (136, 10), (1_432, 1), (1_433, 1), (3_000, 1)] {
                let sent = sent(plain::<RakNet>(), delivery, size, count);
                let computed = cost("RakNet, as", name, size as u64, count as u64);
                assert_eq!(computed, sent, "{name} {size} {count}");
            }
            for (size, count) in [(1, 1), (100, 5), (136, 10), (1_394, 1), (1_395, 1), (3_000, 1)] {
                let sent = sent(secure(), delivery, size, count);
                let computed = cost("RakNet, secure", name, size as u64, count as u64);
                assert_eq!(computed, sent, "secure, {name} {size} {count}");
            }
        }
        for (size, count) in [(1, 1), (100, 5), (504, 1), (505, 1), (2_000, 1)] {
            let sent = sent(plain::<GameProtocol>(), Default::default(), size, count);
            assert_eq!(cost("Game Protocol", "", size as u64, count as u64), sent, "{size} {count}");
        }
    }

    /// The expected values were computed by hand from the tables in RakNet's documentation.
    #[test]
    fn rows_match_the_tables_in_the_raknet_documentation() {
        let new = "documents, since";
        assert_eq!(cost(new, "unreliable", 100, 1), Cost { datagrams: 1, bytes: 28 + 8 + 3 + 100 });
        assert_eq!(
            cost(new, "reliable ordered", 100, 5),
            Cost { datagrams: 1, bytes: 28 + 8 + 5 * (3 + 3 + 4 + 100) }
        );
        assert_eq!(cost(new, "reliable", 1_438, 2).datagrams, 2);
        assert_eq!(cost(new, "reliable", 14_400, 1).datagrams, 10);
        let old = "documents, 3.x";
        // 1 + 64 bits, and 32 + 32 + 4.
        assert_eq!(cost(old, "unreliable", 100, 1), Cost { datagrams: 1, bytes: 28 + 17 + 100 });
        // In a channel 32 + 5 bits more: 170 bits in total.
        assert_eq!(cost(old, "reliable ordered", 100, 1), Cost { datagrams: 1, bytes: 28 + 22 + 100 });
    }
}
