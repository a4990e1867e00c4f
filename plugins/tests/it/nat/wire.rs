//! The messages on the wire.

use heapless::Vec;
use proptest::prelude::*;
use rakwire::raknet::Guid;
use rakwire_plugins::nat::{
    FromClient, FromFacilitator, MAX_CANDIDATES, MAX_INTERNAL, MAX_MESSAGE, Punch, PunchKind, Refusal,
};
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
        any::<u64>().prop_map(|token| FromClient::Heard { token }),
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
    fn messages_come_back_as_they_were(client in from_client(), facilitator in from_facilitator()) {
        let mut buffer = [0; MAX_MESSAGE];
        let bytes = client.encode(&mut buffer).expect("room");
        prop_assert_eq!(FromClient::decode(bytes), Ok(client.clone()));
        prop_assert!((0..bytes.len()).all(|len| FromClient::decode(&bytes[..len]).is_err()));
        let bytes = facilitator.encode(&mut buffer).expect("room");
        prop_assert_eq!(FromFacilitator::decode(bytes), Ok(facilitator.clone()));
        prop_assert!((0..bytes.len()).all(|len| FromFacilitator::decode(&bytes[..len]).is_err()));
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let with_id = [&[133], &bytes[..]].concat();
        for bytes in [&bytes, &with_id] {
            let _ = (FromClient::decode(bytes), FromFacilitator::decode(bytes), Punch::decode(bytes));
        }
    }

    #[test]
    fn punches_come_back_as_they_were(number in any::<u64>()) {
        for kind in [PunchKind::Probe, PunchKind::Knock, PunchKind::ToAccepting, PunchKind::ToConnecting, PunchKind::Ack] {
            let punch = Punch { kind, number };
            prop_assert_eq!(Punch::decode(&punch.encode()), Some(punch));
        }
    }
}

/// The bytes of docs/plugins/nat.md.
#[test]
fn messages_have_the_bytes_of_the_page() {
    let mut buffer = [0; MAX_MESSAGE];
    let internal = Vec::from_iter(["192.168.0.2:5000".parse().expect("an address")]);
    let hello = FromClient::Hello { internal }.encode(&mut buffer).expect("room").to_vec();
    assert_eq!(hello, [133, 1, 1, 4, !192, !168, !0, !2, 0x13, 0x88]);
    let open = FromClient::Open { target: Guid(0x0102_0304_0506_0708) };
    assert_eq!(open.encode(&mut buffer), Ok(&[133, 2, 1, 2, 3, 4, 5, 6, 7, 8][..]));
    let refused = FromFacilitator::Refused { peer: Guid(1), reason: Refusal::NoPath };
    assert_eq!(refused.encode(&mut buffer), Ok(&[133, 20, 0, 0, 0, 0, 0, 0, 0, 1, 3][..]));
    let punch = Punch { kind: PunchKind::ToAccepting, number: 0x0A0B };
    assert_eq!(punch.encode(), [133, 3, 0, 0, 0, 0, 0, 0, 0x0A, 0x0B]);
}
