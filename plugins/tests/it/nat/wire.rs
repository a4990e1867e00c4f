//! The messages on the wire.

use heapless::Vec;
use proptest::prelude::*;
use rakwire::raknet::Guid;
use rakwire_plugins::nat::{
    FromClient, FromFacilitator, MAX_CANDIDATES, MAX_INTERNAL, MAX_MESSAGE, Punch, PunchKind, Refusal,
};
use serde_json::Value;
use std::net::SocketAddr;

fn addresses<const N: usize>() -> impl Strategy<Value = Vec<SocketAddr, N>> {
    let v4 = (any::<[u8; 4]>(), any::<u16>()).prop_map(SocketAddr::from);
    let v6 = (any::<[u16; 8]>(), any::<u16>()).prop_map(SocketAddr::from);
    prop::collection::vec(prop_oneof![v4, v6], 0..=N).prop_map(|list| list.into_iter().collect())
}

fn from_client() -> impl Strategy<Value = FromClient> {
    prop_oneof![
        addresses::<MAX_INTERNAL>().prop_map(|internal| FromClient::Hello { internal }),
        any::<u64>().prop_map(|guid| FromClient::Open { target: Guid(guid) }),
        any::<u64>().prop_map(|session| FromClient::Failed { session }),
        any::<u64>().prop_map(|token| FromClient::FilterProbeReceived { token }),
        any::<u64>().prop_map(|session| FromClient::Connected { session }),
    ]
}

fn from_facilitator() -> impl Strategy<Value = FromFacilitator> {
    let reasons = prop::sample::select(vec![Refusal::NotConnected, Refusal::Busy, Refusal::NoPath]);
    let mapped = addresses::<1>().prop_filter_map("an address", |list| list.first().copied());
    let begin = (any::<(u64, u64, bool)>(), addresses::<MAX_CANDIDATES>());
    prop_oneof![
        any::<(u64, u16)>().prop_map(|(token, port)| FromFacilitator::Probe { token, port }),
        (any::<u64>(), mapped).prop_map(|(token, mapped)| FromFacilitator::Probed { token, mapped }),
        begin.prop_map(|((session, peer, connects), candidates)| {
            FromFacilitator::Begin { session, peer: Guid(peer), connects, candidates }
        }),
        any::<(u64, u64, bool, u16)>().prop_map(|(session, peer, connects, port)| {
            FromFacilitator::Forwarded { session, peer: Guid(peer), connects, port }
        }),
        (any::<u64>(), reasons)
            .prop_map(|(peer, reason)| FromFacilitator::Refused { peer: Guid(peer), reason }),
    ]
}

proptest! {
    #[test]
    fn messages_round_trip(client in from_client(), facilitator in from_facilitator()) {
        let mut buffer = [0; MAX_MESSAGE];
        let bytes = client.encode(&mut buffer).expect("enough space");
        prop_assert_eq!(FromClient::decode(bytes), Ok(client.clone()));
        prop_assert!((0..bytes.len()).all(|len| FromClient::decode(&bytes[..len]).is_err()));
        let bytes = facilitator.encode(&mut buffer).expect("enough space");
        prop_assert_eq!(FromFacilitator::decode(bytes), Ok(facilitator.clone()));
        prop_assert!((0..bytes.len()).all(|len| FromFacilitator::decode(&bytes[..len]).is_err()));
    }

    #[test]
    fn decoding_arbitrary_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let with_id = [&[133], &bytes[..]].concat();
        for bytes in [&bytes, &with_id] {
            let _ = (FromClient::decode(bytes), FromFacilitator::decode(bytes), Punch::decode(bytes));
        }
    }

    #[test]
    fn punches_round_trip(number in any::<u64>()) {
        for kind in [PunchKind::Probe, PunchKind::FilterProbe, PunchKind::ToAccepting, PunchKind::ToConnecting, PunchKind::Ack] {
            let punch = Punch { kind, number };
            prop_assert_eq!(Punch::decode(&punch.encode()), Some(punch));
        }
    }
}

fn number(vector: &Value, of: &str) -> u64 {
    u64::from_str_radix(vector[of].as_str().expect("a text"), 16).expect("hexadecimal digits")
}

fn addresses_of<const N: usize>(vector: &Value) -> Vec<SocketAddr, N> {
    let texts = vector["addresses"].as_array().expect("a list").iter();
    texts.map(|text| text.as_str().expect("a text").parse().expect("an address")).collect()
}

fn port(vector: &Value) -> u16 {
    u16::try_from(vector["port"].as_u64().expect("a number")).expect("a port")
}

fn reason(vector: &Value) -> Refusal {
    match vector["reason"].as_str().expect("a text") {
        "not-connected" => Refusal::NotConnected,
        "busy" => Refusal::Busy,
        "no-path" => Refusal::NoPath,
        other => panic!("unknown reason {other}"),
    }
}

/// Returns the client message of a vector, if it is one.
fn client_of(vector: &Value) -> Option<FromClient> {
    Some(match vector["message"].as_str().expect("a text") {
        "hello" => FromClient::Hello { internal: addresses_of(vector) },
        "open" => FromClient::Open { target: Guid(number(vector, "peer")) },
        "failed" => FromClient::Failed { session: number(vector, "number") },
        "heard" => FromClient::FilterProbeReceived { token: number(vector, "number") },
        "connected" => FromClient::Connected { session: number(vector, "number") },
        _ => return None,
    })
}

fn facilitator_of(vector: &Value) -> Option<FromFacilitator> {
    let peer = || Guid(number(vector, "peer"));
    let connects = || vector["connects"].as_bool().expect("true or false");
    Some(match vector["message"].as_str().expect("a text") {
        "probe" => FromFacilitator::Probe { token: number(vector, "number"), port: port(vector) },
        "probed" => {
            let mapped = addresses_of::<1>(vector)[0];
            FromFacilitator::Probed { token: number(vector, "number"), mapped }
        }
        "begin" => FromFacilitator::Begin {
            session: number(vector, "number"),
            peer: peer(),
            connects: connects(),
            candidates: addresses_of(vector),
        },
        "forwarded" => FromFacilitator::Forwarded {
            session: number(vector, "number"),
            peer: peer(),
            connects: connects(),
            port: port(vector),
        },
        "refused" => FromFacilitator::Refused { peer: peer(), reason: reason(vector) },
        _ => return None,
    })
}

fn punch_of(vector: &Value) -> Punch {
    let kind = match vector["message"].as_str().expect("a text") {
        "punch-probe" => PunchKind::Probe,
        "punch-knock" => PunchKind::FilterProbe,
        "punch-to-accepting" => PunchKind::ToAccepting,
        "punch-to-connecting" => PunchKind::ToConnecting,
        "punch-ack" => PunchKind::Ack,
        other => panic!("unknown message {other}"),
    };
    Punch { kind, number: number(vector, "number") }
}

#[test]
fn message_encoding_matches_the_test_vectors() {
    let vectors: std::vec::Vec<Value> =
        serde_json::from_str(include_str!("../../vectors/nat.json")).expect("valid JSON");
    assert_eq!(vectors.len(), 17);
    for vector in vectors {
        let hex = vector["hex"].as_str().expect("a text");
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        let bytes: std::vec::Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        let mut buffer = [0; MAX_MESSAGE];
        if let Some(message) = client_of(&vector) {
            assert_eq!(message.encode(&mut buffer), Ok(&bytes[..]), "{vector}");
            assert_eq!(FromClient::decode(&bytes), Ok(message));
        } else if let Some(message) = facilitator_of(&vector) {
            assert_eq!(message.encode(&mut buffer), Ok(&bytes[..]), "{vector}");
            assert_eq!(FromFacilitator::decode(&bytes), Ok(message));
        } else {
            let punch = punch_of(&vector);
            assert_eq!(punch.encode(), bytes[..], "{vector}");
            assert_eq!(Punch::decode(&bytes), Some(punch));
        }
    }
}
