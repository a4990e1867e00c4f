use super::super::law;
use super::*;
use crate::cursor::Reader;

const GUID: Guid = Guid(0x0102_0304_0506_0708);
const GUID_BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const ADDRESS: [u8; 7] = [4, 0x80, 0xFF, 0xFF, 0xFE, 0x4A, 0xBC];

fn address() -> SocketAddr {
    "127.0.0.1:19132".parse().expect("a literal address")
}

/// Checks a message against its parts, and that no prefix of it reads.
fn check(message: &Offline<'_>, parts: &[&[u8]]) {
    let bytes = parts.concat();
    law::check(message, &bytes);
}

#[test]
fn pings_and_pongs() {
    let time = [0, 0, 0, 0, 0, 0, 1, 2];
    let ping = |scope| Offline::Ping { scope, time: 258, guid: Some(GUID) };
    check(&ping(PingScope::Any), &[&[1], &time, &MAGIC, &GUID_BYTES]);
    check(&ping(PingScope::OpenConnections), &[&[2], &time, &MAGIC, &GUID_BYTES]);
    check(&Offline::Ping { scope: PingScope::Any, time: 258, guid: None }, &[&[1], &time, &MAGIC]);
    check(
        &Offline::Pong { time: 258, guid: GUID, data: b"hello" },
        &[&[0x1C], &time, &GUID_BYTES, &MAGIC, b"hello"],
    );
}

#[test]
fn pong_data_of_400_bytes_is_refused() {
    let data = [b'x'; MAX_PONG_DATA + 1];
    let bytes = [&[0x1C][..], &[0; 8], &GUID_BYTES, &MAGIC, &data].concat();
    assert_eq!(Offline::read(&mut Reader::new(&bytes)), Err(WireError::BadLength));
    assert!(Offline::read(&mut Reader::new(bytes.split_last().expect("not empty").1)).is_ok());
}

#[test]
fn the_first_request_and_its_reply() {
    let padding = [0; 548 - 18];
    check(&Offline::Request1 { protocol: 6, mtu: 576 }, &[&[5], &MAGIC, &[6], &padding]);
    let reply = |security| Offline::Reply1 { guid: GUID, security, mtu: 1492 };
    let head = [&[6][..], &MAGIC, &GUID_BYTES].concat();
    check(&reply(ServerSecurity::None), &[&head, &[0, 5, 0xD4]]);
    check(&reply(ServerSecurity::Cookie(258)), &[&head, &[1, 0, 0, 1, 2, 5, 0xD4]]);
    let key = [7; 64];
    let security = ServerSecurity::PublicKey { cookie: 258, key: &key };
    check(&reply(security), &[&head, &[1, 0, 0, 1, 2], &key, &[5, 0xD4]]);
}

#[test]
fn the_second_request_and_its_reply() {
    let request = |security| Offline::Request2 { security, server: address(), mtu: 1400, guid: GUID };
    let tail = [&ADDRESS[..], &[5, 0x78], &GUID_BYTES].concat();
    check(&request(ClientSecurity::None), &[&[7], &MAGIC, &tail]);
    check(&request(ClientSecurity::Cookie(258)), &[&[7], &MAGIC, &[0, 0, 1, 2, 0], &tail]);
    let challenge = [7; 64];
    let security = ClientSecurity::Challenge { cookie: 258, challenge: &challenge };
    check(&request(security), &[&[7], &MAGIC, &[0, 0, 1, 2, 1], &challenge, &tail]);

    let reply = |answer| Offline::Reply2 { guid: GUID, client: address(), mtu: 1400, answer };
    let head = [&[8][..], &MAGIC, &GUID_BYTES, &ADDRESS, &[5, 0x78]].concat();
    check(&reply(None), &[&head, &[0]]);
    let answer = [9; 128];
    check(&reply(Some(&answer)), &[&head, &[0x80], &answer]);
}

/// The sizes for IPv4 of docs/raknet.md#offline-messages.
#[test]
fn sizes() {
    let size = |message: Offline<'_>| {
        let mut buffer = [0; 2048];
        let mut writer = Writer::new(&mut buffer);
        message.write(&mut writer).expect("the buffer is large enough");
        writer.written()
    };
    assert_eq!(size(Offline::Request1 { protocol: 11, mtu: 1492 }), 1464);
    assert_eq!(size(Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1492 }), 28);
    assert_eq!(size(Offline::Reply1 { guid: GUID, security: ServerSecurity::Cookie(1), mtu: 1492 }), 32);
    let request_2 = |security| Offline::Request2 { security, server: address(), mtu: 1400, guid: GUID };
    assert_eq!(size(request_2(ClientSecurity::None)), 34);
    assert_eq!(size(request_2(ClientSecurity::Cookie(1))), 39);
    assert_eq!(size(Offline::Reply2 { guid: GUID, client: address(), mtu: 1400, answer: None }), 35);
    assert_eq!(size(Offline::IncompatibleProtocol { protocol: 6, guid: GUID }), 26);
}

/// One server pads its reply 1 with zeros up to the MTU (peers, difference 1).
#[test]
fn a_padded_reply_1_is_not_taken_for_a_key() {
    let mut bytes = [&[6][..], &MAGIC, &GUID_BYTES, &[1, 0, 0, 1, 2, 5, 0xD4]].concat();
    bytes.resize(1464, 0);
    let expected = Offline::Reply1 { guid: GUID, security: ServerSecurity::Cookie(258), mtu: 1492 };
    assert_eq!(Offline::read(&mut Reader::new(&bytes)), Ok(expected));
}

/// Peers write the encryption bit of reply 2 in different ways, and one sets it for nothing (peers, difference 3).
#[test]
fn reply_2_without_an_answer_is_plain() {
    for byte in [1, 0x80] {
        let bytes = [&[8][..], &MAGIC, &GUID_BYTES, &ADDRESS, &[5, 0x78, byte]].concat();
        let expected = Offline::Reply2 { guid: GUID, client: address(), mtu: 1400, answer: None };
        assert_eq!(Offline::read(&mut Reader::new(&bytes)), Ok(expected));
    }
}

#[test]
fn refusals() {
    check(&Offline::IncompatibleProtocol { protocol: 6, guid: GUID }, &[&[0x19, 6], &MAGIC, &GUID_BYTES]);
    let refusals = [
        (0x11, Refusal::AttemptFailed),
        (0x12, Refusal::AlreadyConnected),
        (0x14, Refusal::NoFreeIncomingConnections),
        (0x17, Refusal::Banned),
        (0x1A, Refusal::RecentlyConnected),
    ];
    for (id, refusal) in refusals {
        let bytes = [&[id][..], &MAGIC, &GUID_BYTES].concat();
        law::check(&Offline::Refused { refusal, guid: GUID }, &bytes);
        law::check_truncations::<Offline<'_>>(&bytes);
    }
}

#[test]
fn a_wrong_magic_is_refused() {
    let mut bytes = [&[0x12][..], &MAGIC, &GUID_BYTES].concat();
    for index in 1..17 {
        bytes[index] ^= 1;
        assert_eq!(Offline::read(&mut Reader::new(&bytes)), Err(WireError::BadMagic));
        bytes[index] ^= 1;
    }
    bytes[0] = 0x33;
    assert_eq!(Offline::read(&mut Reader::new(&bytes)), Err(WireError::UnknownId));
}
