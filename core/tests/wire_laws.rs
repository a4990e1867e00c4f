//! The laws of the wire, on generated values.
//!
//! For every packet: what was written reads back equal; what was read writes the same bytes; a packet that is cut off is
//! refused, except where the format leaves its end open (each test says where). And for arbitrary bytes: nothing
//! panics, and what reads, writes and reads again has the same fields, but for padding and hints.

#[path = "support/marked.rs"]
mod marked;
#[path = "support/recorder.rs"]
mod recorder;

use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire::U24;
use rakwire::raknet::{Guid, Refusal, Reliability};
use rakwire::wire::address::{AddressList, MAX_ADDRESS};
use rakwire::wire::capsule::{CHANNELS, CapsuleHeader, Split};
use rakwire::wire::control::{Control, KeyProblem, Proof};
use rakwire::wire::datagram::{DatagramHeader, Record};
use rakwire::wire::local::{Local, Receipt, Subject};
use rakwire::wire::notice::{Notice, RemotePeer, RemotePeers};
use rakwire::wire::offline::{ClientSecurity, MAGIC, Offline, PingScope, ServerSecurity};
use rakwire::wire::seal::{Plain, Seal};
use rakwire::wire::{Reader, SecuritySizes, Source, Value, Wire, WireError, Writer, address};

use marked::Marked;
use recorder::{Field, Recorder};

const LONGEST: usize = 4_096;

fn written<'a>(packet: &impl Wire<'a>) -> Result<Vec<u8>, WireError> {
    let mut buffer = [0; LONGEST];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer)?;
    Ok(writer.finish().to_vec())
}

/// Where a packet that is cut off is still one.
#[derive(Clone, Copy)]
enum Ends {
    /// Nowhere.
    Fixed,
    /// There: its last field may be missing.
    At(usize),
    /// From there on: its last field takes what is left.
    From(usize),
}

impl Ends {
    fn allow(self, length: usize) -> bool {
        match self {
            Self::Fixed => false,
            Self::At(end) => length == end,
            Self::From(end) => length >= end,
        }
    }
}

/// Checks the laws for a packet; `bytes` are what it wrote.
fn check<'a, P: Wire<'a> + PartialEq + Debug>(packet: &P, bytes: &'a [u8], ends: Ends) {
    check_with(packet, bytes, ends, P::read);
}

fn check_with<'a, P: Wire<'a> + PartialEq + Debug>(
    packet: &P,
    bytes: &'a [u8],
    ends: Ends,
    read: impl Fn(&mut Reader<'a>) -> Result<P, WireError>,
) {
    let mut reader = Reader::new(bytes);
    let found = read(&mut reader).expect("what was written reads");
    assert_eq!(&found, packet);
    assert_eq!(reader.remaining(), 0);
    assert_eq!(written(&found).as_deref(), Ok(bytes));
    let mut buffer = [0; LONGEST];
    for length in 0..bytes.len() {
        assert_eq!(packet.write(&mut Writer::new(&mut buffer[..length])), Err(WireError::NoRoom));
        let prefix = &bytes[..length];
        match read(&mut Reader::new(prefix)) {
            Err(_) => {}
            Ok(short) => {
                assert!(ends.allow(length), "{length} of {} bytes are {short:?}", bytes.len());
                let again = written(&short).expect("what was read writes");
                assert!(prefix.starts_with(&again), "{short:?}");
            }
        }
    }
}

fn addresses() -> impl Strategy<Value = SocketAddr> {
    let v4 = any::<([u8; 4], u16)>()
        .prop_map(|(ip, port)| SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from(ip), port)));
    let v6 = any::<([u8; 16], u16, u32, u32)>().prop_map(|(ip, port, flow, scope)| {
        SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope))
    });
    prop_oneof![v4, v6]
}

fn address_size(address: &SocketAddr) -> usize {
    if address.is_ipv4() { 7 } else { MAX_ADDRESS }
}

/// Lists of 10 and of 20, both versions mixed.
fn address_lists() -> impl Strategy<Value = Vec<SocketAddr>> {
    prop_oneof![vec(addresses(), 10), vec(addresses(), 20), vec(addresses(), 0..10)]
}

fn guids() -> impl Strategy<Value = Guid> {
    any::<u64>().prop_map(Guid)
}

fn u24s() -> impl Strategy<Value = U24> {
    any::<u32>().prop_map(U24::new)
}

/// Bytes of a key: not zero, so that a cut-off key is never taken for the padding of a reply without one.
fn keys(length: u16) -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8.., usize::from(length))
}

fn sizes() -> impl Strategy<Value = SecuritySizes> {
    let other = SecuritySizes { public_key: 33, challenge: 100, answer: 1, proof: 16, identity: 300 };
    prop_oneof![Just(SecuritySizes::ORIGINAL), Just(SecuritySizes::DOCUMENTS), Just(other)]
}

/// Cookies whose first byte is not the version of an address. A request 2 without its last bytes may be one without a
/// cookie otherwise: only the length tells them apart.
fn cookies() -> impl Strategy<Value = u32> {
    any::<u32>().prop_filter("looks like an address", |cookie| !matches!(cookie >> 24, 4 | 6))
}

/// Whether a request 2 without a cookie, cut off in this address, may be one with a cookie: the version, the family and
/// the upper byte of the port as the cookie, the lower as the flag, and the flow as the beginning of an IPv4 address.
fn may_be_cut_to_a_cookie(server: &SocketAddr) -> bool {
    match server {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(server) => server.port() & 0xFF == 0 && server.flowinfo() >> 24 == 4,
    }
}

const HEAD: usize = 1 + MAGIC.len();

proptest! {
    #[test]
    fn address(address in addresses()) {
        let mut buffer = [0; MAX_ADDRESS];
        let mut writer = Writer::new(&mut buffer);
        address::write(&address, &mut writer).expect("the longest address fits");
        let bytes = writer.finish();
        prop_assert_eq!(bytes.len(), address_size(&address));
        prop_assert_eq!(address::read(&mut Reader::new(bytes), ""), Ok(address));
        for length in 0..bytes.len() {
            prop_assert_eq!(address::read(&mut Reader::new(&bytes[..length]), ""), Err(WireError::Truncated));
            prop_assert_eq!(address::write(&address, &mut Writer::new(&mut [0; MAX_ADDRESS][..length])), Err(WireError::NoRoom));
        }
    }

    #[test]
    fn address_list(list in address_lists()) {
        let mut buffer = [0; 20 * MAX_ADDRESS];
        let encoded = AddressList::encode(list.iter().copied(), &mut buffer).expect("twenty fit");
        prop_assert!(encoded.iter().eq(list.iter().copied()));
        let size = list.iter().map(address_size).sum::<usize>();
        for length in 0..size {
            let mut short = [0; 20 * MAX_ADDRESS];
            prop_assert_eq!(AddressList::encode(list.iter().copied(), &mut short[..length]), Err(WireError::NoRoom));
        }
    }

    /// The GUID may be missing.
    #[test]
    fn unconnected_ping(time: u64, guid in proptest::option::of(guids()), open: bool) {
        let scope = if open { PingScope::OpenConnections } else { PingScope::Any };
        let packet = Offline::Ping { scope, time, guid };
        check(&packet, &written(&packet)?, Ends::From(HEAD + 8));
    }

    /// The data takes what is left.
    #[test]
    fn unconnected_pong(time: u64, guid in guids(), data in vec(any::<u8>(), 0..=399)) {
        let packet = Offline::Pong { time, guid, data: &data };
        check(&packet, &written(&packet)?, Ends::From(HEAD + 16));
    }

    /// The padding takes what is left, and its length is the message.
    #[test]
    fn open_connection_request_1(protocol: u8, mtu in 46_u16..=1_600) {
        let packet = Offline::Request1 { protocol, mtu };
        let bytes = written(&packet)?;
        prop_assert_eq!(bytes.len() + 28, usize::from(mtu));
        check(&packet, &bytes, Ends::From(HEAD + 1));
    }

    /// A reply with a key may end after its cookie and two bytes: that is one without a key.
    #[test]
    fn open_connection_reply_1(
        (sizes, key) in sizes().prop_flat_map(|sizes| (Just(sizes), keys(sizes.public_key))),
        guid in guids(),
        cookie: u32,
        mtu: u16,
    ) {
        let forms = [
            (ServerSecurity::None, Ends::Fixed),
            (ServerSecurity::Cookie(cookie), Ends::Fixed),
            (ServerSecurity::PublicKey { cookie, key: &key }, Ends::At(HEAD + 8 + 1 + 4 + 2)),
        ];
        for (security, ends) in forms {
            let packet = Offline::Reply1 { guid, security, mtu };
            check_with(&packet, &written(&packet)?, ends, |source| Offline::read_with(source, &sizes));
        }
    }

    #[test]
    fn open_connection_request_2(
        (sizes, challenge) in
            sizes().prop_flat_map(|sizes| (Just(sizes), vec(any::<u8>(), usize::from(sizes.challenge)))),
        cookie in cookies(),
        server in addresses(),
        mtu: u16,
        guid in guids(),
    ) {
        let forms = [
            ClientSecurity::None,
            ClientSecurity::Cookie(cookie),
            ClientSecurity::Challenge { cookie, challenge: &challenge },
        ];
        prop_assume!(!may_be_cut_to_a_cookie(&server));
        for security in forms {
            let packet = Offline::Request2 { security, server, mtu, guid };
            let bytes = written(&packet)?;
            check_with(&packet, &bytes, Ends::Fixed, |source| Offline::read_with(source, &sizes));
        }
    }

    /// The answer may be missing although the byte announces it.
    #[test]
    fn open_connection_reply_2(
        (sizes, answer) in
            sizes().prop_flat_map(|sizes| (Just(sizes), vec(any::<u8>(), usize::from(sizes.answer)))),
        guid in guids(),
        client in addresses(),
        mtu: u16,
    ) {
        let plain = Offline::Reply2 { guid, client, mtu, answer: None };
        check(&plain, &written(&plain)?, Ends::Fixed);
        let packet = Offline::Reply2 { guid, client, mtu, answer: Some(&answer) };
        let bytes = written(&packet)?;
        let read = |source: &mut Reader<'_>| Offline::read_with(source, &sizes).map(|_| ());
        let end = HEAD + 8 + address_size(&client) + 3;
        for length in 0..bytes.len() {
            prop_assert_eq!(read(&mut Reader::new(&bytes[..length])).is_ok(), length == end);
        }
        prop_assert_eq!(Offline::read_with(&mut Reader::new(&bytes), &sizes), Ok(packet));
    }

    #[test]
    fn incompatible_protocol_version(protocol: u8, guid in guids()) {
        let packet = Offline::IncompatibleProtocol { protocol, guid };
        check(&packet, &written(&packet)?, Ends::Fixed);
    }

    #[test]
    fn refusals(guid in guids()) {
        for refusal in [
            Refusal::AttemptFailed,
            Refusal::AlreadyConnected,
            Refusal::NoFreeIncomingConnections,
            Refusal::Banned,
            Refusal::RecentlyConnected,
        ] {
            let packet = Offline::Refused { refusal, guid };
            check(&packet, &written(&packet)?, Ends::Fixed);
        }
    }

    /// The data takes what is left, one byte at least.
    #[test]
    fn out_of_band(guid in guids(), data in vec(any::<u8>(), 1..=399)) {
        let packet = Offline::OutOfBand { guid, data: &data };
        check(&packet, &written(&packet)?, Ends::From(HEAD + 8 + 1));
    }

    /// What a receiver would refuse is not written.
    #[test]
    fn data_that_is_too_long_is_not_written(data in vec(any::<u8>(), 400..500)) {
        let (guid, time) = (Guid(1), 1);
        prop_assert_eq!(written(&Offline::Pong { time, guid, data: &data }), Err(WireError::BadLength));
        prop_assert_eq!(written(&Offline::OutOfBand { guid, data: &data }), Err(WireError::BadLength));
        prop_assert_eq!(written(&Offline::OutOfBand { guid, data: &[] }), Err(WireError::BadLength));
        let request = Control::Request { guid, time, proof: None, password: &data };
        prop_assert_eq!(written(&request), Err(WireError::BadLength));
    }

    #[test]
    fn connected_ping_and_pong(time: u64, ping_time: u64) {
        let ping = Control::Ping { time };
        check(&ping, &written(&ping)?, Ends::Fixed);
        let pong = Control::Pong { ping_time, time };
        check(&pong, &written(&pong)?, Ends::Fixed);
    }

    /// The password takes what is left.
    #[test]
    fn connection_request(
        (sizes, proof, identity) in sizes().prop_flat_map(|sizes| {
            let bytes = |size: u16| vec(any::<u8>(), usize::from(size));
            (Just(sizes), bytes(sizes.proof), bytes(sizes.identity))
        }),
        guid in guids(),
        time: u64,
        password in vec(any::<u8>(), 0..=255),
    ) {
        let proofs = [
            (None, 18),
            (Some(Proof { proof: &proof, identity: None }), 19 + proof.len()),
            (
                Some(Proof { proof: &proof, identity: Some(&identity) }),
                19 + proof.len() + identity.len(),
            ),
        ];
        for (proof, end) in proofs {
            let packet = Control::Request { guid, time, proof, password: &password };
            let bytes = written(&packet)?;
            check_with(&packet, &bytes, Ends::From(end), |source| Control::read_with(source, &sizes));
        }
    }

    /// The addresses take what is left before the times.
    #[test]
    fn connection_request_accepted(
        client in addresses(),
        system_index: u16,
        list in address_lists(),
        request_time: u64,
        time: u64,
    ) {
        let mut buffer = [0; 20 * MAX_ADDRESS];
        let addresses = AddressList::encode(list, &mut buffer).expect("twenty fit");
        let packet = Control::Accepted { client, system_index, addresses, request_time, time };
        check(&packet, &written(&packet)?, Ends::From(1 + address_size(&client) + 2 + 16));
    }

    /// The addresses take what is left before the times.
    #[test]
    fn new_incoming_connection(
        server in addresses(),
        list in address_lists(),
        accepted_time: u64,
        time: u64,
    ) {
        let mut buffer = [0; 20 * MAX_ADDRESS];
        let addresses = AddressList::encode(list, &mut buffer).expect("twenty fit");
        let packet = Control::NewIncoming { server, addresses, accepted_time, time };
        check(&packet, &written(&packet)?, Ends::From(1 + address_size(&server) + 16));
    }

    /// The GUID may be cut off.
    #[test]
    fn invalid_password(guid in proptest::option::of(guids())) {
        let packet = Control::InvalidPassword { guid };
        check(&packet, &written(&packet)?, Ends::From(1));
    }

    /// The reliability decides which fields there are; the others are zero.
    #[test]
    fn capsule_header(header in capsule_headers()) {
        check(&header, &written(&header)?, Ends::Fixed);
    }

    /// A datagram of capsules reads back as what was put into it, and a cut ends it where the first capsule is cut.
    #[test]
    fn data_datagram(
        hints in 0_u8..32,
        number in u24s(),
        capsules in vec((capsule_headers(), any::<u8>()), 0..8),
        cut in any::<proptest::sample::Index>(),
    ) {
        let header = DatagramHeader::Data { hints, number };
        check(&header, &written(&header)?, Ends::Fixed);
        let mut bytes = written(&header)?;
        let mut ends = Vec::new();
        for (capsule, filling) in &capsules {
            bytes.extend(written(capsule)?);
            bytes.resize(bytes.len() + capsule.length(), *filling);
            ends.push(bytes.len());
        }
        prop_assert_eq!(&capsules_of(&bytes), &capsules);
        let cut = cut.index(bytes.len() + 1).max(4);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        prop_assert_eq!(&capsules_of(&bytes[..cut])[..], &capsules[..whole]);
    }

    #[test]
    fn acknowledgement(speed in proptest::option::of(any::<f32>()), records: u16) {
        let ack = DatagramHeader::Ack { arrival_speed: speed, records };
        check(&ack, &written(&ack)?, Ends::Fixed);
        let nack = DatagramHeader::Nack { records };
        check(&nack, &written(&nack)?, Ends::Fixed);
    }

    #[test]
    fn record(first in u24s(), more in 0_u32..2_000) {
        let last = U24::new((first.get() + more).min(0xFF_FFFF));
        for record in [Record { first, last }, Record { first, last: first }] {
            let bytes = written(&record)?;
            prop_assert_eq!(bytes.len(), if record.first == record.last { 4 } else { 7 });
            check(&record, &bytes, Ends::Fixed);
        }
    }

    /// The message takes what is left.
    #[test]
    fn timestamp(time: u64, message in vec(any::<u8>(), 0..600)) {
        let packet = Notice::Timestamp { time, message: &message };
        check(&packet, &written(&packet)?, Ends::From(9));
    }

    /// The data takes what is left; it travels inside an out-of-band message.
    #[test]
    fn advertise_system(guid in guids(), data in vec(any::<u8>(), 0..398)) {
        let packet = Notice::Advertise { data: &data };
        let inner = written(&packet)?;
        check(&packet, &inner, Ends::From(1));
        let outer = Offline::OutOfBand { guid, data: &inner };
        check(&outer, &written(&outer)?, Ends::From(HEAD + 8 + 1));
    }

    #[test]
    fn remote_disconnection_and_loss(address in addresses(), guid in guids()) {
        let disconnected = Notice::RemoteDisconnected { address, guid };
        check(&disconnected, &written(&disconnected)?, Ends::Fixed);
        let lost = Notice::RemoteLost { address, guid };
        check(&lost, &written(&lost)?, Ends::Fixed);
    }

    #[test]
    fn remote_new_incoming_connection(list in vec((addresses(), guids(), any::<u16>()), 0..12)) {
        let list = list.into_iter().map(|(address, guid, ping)| RemotePeer { address, guid, ping });
        let list: Vec<RemotePeer> = list.collect();
        let mut buffer = [0; 12 * RemotePeer::MAX_SIZE];
        let peers = RemotePeers::encode(list.iter().copied(), &mut buffer).expect("twelve fit");
        prop_assert!(peers.iter().eq(list.iter().copied()));
        let packet = Notice::RemoteConnected { peers };
        check(&packet, &written(&packet)?, Ends::Fixed);
    }

    /// Two of the events have a second, longer form.
    #[test]
    fn local_events(
        address in addresses(),
        guid in guids(),
        number: u32,
        total: u32,
        first in vec(any::<u8>(), 0..600),
    ) {
        for peer in [None, Some(Subject { address, guid })] {
            let security = Local::RequiresSecurity { peer };
            check(&security, &written(&security)?, Ends::At(1));
            let lost = Local::ConnectionLost { peer };
            check(&lost, &written(&lost)?, Ends::At(1));
        }
        let others = [
            Local::PublicKeyMismatch,
            Local::AttemptFailed,
            Local::Receipt { outcome: Receipt::Acknowledged, number },
            Local::Receipt { outcome: Receipt::Lost, number },
            Local::DownloadProgress { received: number, total, first: &first },
        ];
        for event in &others {
            check(event, &written(event)?, Ends::Fixed);
        }
    }
}

/// The type may be missing.
#[test]
fn remote_system_requires_public_key() {
    let problems = [KeyProblem::ServerKeyMissing, KeyProblem::IdentityMissing, KeyProblem::IdentityInvalid];
    for problem in problems.map(Some).into_iter().chain([None]) {
        let packet = Control::RequiresPublicKey { problem };
        check(&packet, &written(&packet).expect("two bytes"), Ends::At(1));
    }
}

#[test]
fn messages_without_fields() {
    for packet in [Control::DetectLost, Control::Disconnect] {
        check(&packet, &written(&packet).expect("one byte"), Ends::Fixed);
    }
}

fn reliabilities() -> impl Strategy<Value = Reliability> {
    proptest::sample::select(vec![
        Reliability::Unreliable,
        Reliability::UnreliableSequenced,
        Reliability::Reliable,
        Reliability::ReliableOrdered,
        Reliability::ReliableSequenced,
        Reliability::UnreliableWithReceipt,
        Reliability::ReliableWithReceipt,
        Reliability::ReliableOrderedWithReceipt,
    ])
}

fn splits() -> impl Strategy<Value = Split> {
    (1_u32.., any::<u16>(), any::<u32>()).prop_map(|(count, id, index)| Split {
        count,
        id,
        index: index % count,
    })
}

fn capsule_headers() -> impl Strategy<Value = CapsuleHeader> {
    let numbers = (u24s(), u24s(), u24s(), 0..CHANNELS);
    (reliabilities(), 1_u16..=2_000, numbers, proptest::option::of(splits())).prop_map(
        |(reliability, bits, (reliable, sequence, order, channel), split)| {
            let zero = U24::new(0);
            let has_number = reliability.is_reliable() && !reliability.has_receipt();
            CapsuleHeader {
                reliability,
                bits,
                reliable: if has_number { reliable } else { zero },
                sequence: if reliability.is_sequenced() { sequence } else { zero },
                order: if reliability.has_channel() { order } else { zero },
                channel: if reliability.has_channel() { channel } else { 0 },
                split,
            }
        },
    )
}

/// The capsules of a datagram, each with the byte that fills its payload.
fn capsules_of(datagram: &[u8]) -> Vec<(CapsuleHeader, u8)> {
    let mut reader = Reader::new(datagram);
    DatagramHeader::read(&mut reader).expect("a header");
    let mut capsules = Vec::new();
    while let Ok(capsule) = CapsuleHeader::read(&mut reader) {
        let Ok(payload) = reader.bytes("payload", capsule.length()) else { break };
        capsules.push((capsule, payload[0]));
    }
    capsules
}

/// Bytes that get further than noise does: an id, zeros and versions of addresses among the rest, and the magic at one
/// of its places.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![4 => any::<u8>(), 2 => Just(0_u8), 1 => Just(1_u8), 2 => Just(4_u8), 1 => Just(6_u8)];
    let magic_at = proptest::sample::select(vec![1_usize, 1, 1, 2, 9, 17]);
    (vec(byte, 0..700), 0_u8..0x24, magic_at, any::<bool>()).prop_map(|(mut bytes, id, at, has_magic)| {
        if let Some(first) = bytes.first_mut() {
            *first = id;
        }
        if has_magic && let Some(room) = bytes.get_mut(at..at + MAGIC.len()) {
            room.copy_from_slice(&MAGIC);
        }
        bytes
    })
}

/// Reads a packet and writes it again.
type Through = fn(&mut Recorder<'_>) -> Result<Vec<u8>, WireError>;

/// Checks that what `bytes` read as has the same fields when it was written and read again. Of `flags`, the bits of
/// `mask` count.
fn check_arbitrary(bytes: &[u8], mask: u64, through: Through) {
    let mut first = Recorder::new(bytes);
    let Ok(again) = through(&mut first) else { return };
    let mut second = Recorder::new(&again);
    let thrice = through(&mut second).expect("what was written reads");
    assert_eq!(again, thrice);
    assert_eq!(second.remaining(), 0);
    let (first, second) = (first.fields(), second.fields());
    assert_eq!(counting(&first, mask), counting(&second, mask));
}

/// The fields without what a writer makes uniform: padding, what is left of a cut-off field, hints.
fn counting(fields: &[Field<'_>], mask: u64) -> Vec<String> {
    let first = fields.iter().find(|field| field.name == "first");
    let counts = |field: &&Field<'_>| match field.name {
        "padding" | "encryption" | "single" | "cut-off guid" => false,
        // A run of one number is written as one number.
        "last" => first.is_none_or(|first| first.value != field.value),
        _ => true,
    };
    let text = |field: &Field<'_>| match (field.name, field.value) {
        ("security" | "challenge follows" | "identity follows", Value::Number(flag)) => {
            format!("{} {}", field.name, flag != 0)
        }
        ("flags", Value::Number(flags)) => format!("flags {}", flags & mask),
        (name, Value::Float(number)) => format!("{name} {:x}", number.to_bits()),
        (name, value) => format!("{name} {value:?}"),
    };
    fields.iter().filter(counts).map(text).collect()
}

fn check_everything(bytes: &[u8]) {
    let all = u64::MAX;
    check_arbitrary(bytes, all, |source| written(&Offline::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Offline::read_with(source, &SecuritySizes::DOCUMENTS)?));
    check_arbitrary(bytes, all, |source| written(&Control::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Control::read_with(source, &SecuritySizes::DOCUMENTS)?));
    check_arbitrary(bytes, all, |source| written(&Notice::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Local::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Record::read(source)?));
    check_arbitrary(bytes, 0xF0, |source| written(&CapsuleHeader::read(source)?));
    let is_data = bytes.first().is_some_and(|flags| flags & 0x60 == 0);
    check_arbitrary(bytes, if is_data { all } else { 0xE0 }, |source| {
        written(&DatagramHeader::read(source)?)
    });
    let _ = Control::read_bits(&mut Reader::new(bytes), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..120)) {
        check_everything(&bytes);
    }

    #[test]
    fn likely_bytes_of_packets(bytes in likely_bytes()) {
        check_everything(&bytes);
    }

    /// Sealed datagrams open as they were; what was changed, cut, forged or seen before does not open.
    #[test]
    fn seals(plain in vec(any::<u8>(), 0..1_400), at in any::<proptest::sample::Index>(), bit in 0..8) {
        let mut datagram = [&plain[..], &[0; 11]].concat();
        prop_assert_eq!(Plain.seal(&mut datagram, plain.len()), Some(plain.len()));
        prop_assert_eq!(Plain.open(&mut datagram[..plain.len()]), Some(plain.len()));
        prop_assert_eq!(&datagram[..plain.len()], &plain[..]);

        let (mut sender, mut receiver) = (Marked::default(), Marked::default());
        prop_assert_eq!(sender.seal(&mut datagram[..plain.len() + 10], plain.len()), None);
        let length = sender.seal(&mut datagram, plain.len()).expect("room for the mark");
        prop_assert_eq!(length, plain.len() + usize::from(sender.overhead()));
        let mut damaged = datagram.clone();
        damaged[at.index(length)] ^= 1_u8 << bit;
        prop_assert_eq!(receiver.open(&mut damaged), None);
        prop_assert_eq!(receiver.open(&mut datagram.clone()[..length - 1]), None);
        let copy = datagram.clone();
        prop_assert_eq!(receiver.open(&mut datagram), Some(plain.len()));
        prop_assert_eq!(&datagram[..plain.len()], &plain[..]);
        prop_assert_eq!(receiver.open(&mut copy.clone()), None);
    }
}
