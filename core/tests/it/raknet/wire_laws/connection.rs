//! RakNet's own messages inside a connection.

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire::wire::address::{AddressList, MAX_ADDRESS};
use rakwire::wire::control::{Control, KeyProblem, Proof};

use super::laws::{Ends, check, check_with, written};
use super::values::{address_lists, address_size, addresses, guids, sizes};

proptest! {
    #[test]
    fn connected_pings_and_pongs_round_trip(time: u64, ping_time: u64) {
        let ping = Control::Ping { time };
        check(&ping, &written(&ping)?, Ends::Fixed);
        let pong = Control::Pong { ping_time, time };
        check(&pong, &written(&pong)?, Ends::Fixed);
    }

    /// The password extends to the end of the message.
    #[test]
    fn connection_requests_round_trip(
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

    /// The address list extends to the two times at the end of the message.
    #[test]
    fn connection_request_accepted_messages_round_trip(
        client in addresses(),
        system_index: u16,
        list in address_lists(),
        request_time: u64,
        time: u64,
    ) {
        let mut buffer = [0; 20 * MAX_ADDRESS];
        let addresses = AddressList::encode(list, &mut buffer).expect("twenty addresses fit");
        let packet = Control::Accepted { client, system_index, addresses, request_time, time };
        check(&packet, &written(&packet)?, Ends::From(1 + address_size(&client) + 2 + 16));
    }

    /// The address list extends to the two times at the end of the message.
    #[test]
    fn new_incoming_connection_messages_round_trip(
        server in addresses(),
        list in address_lists(),
        accepted_time: u64,
        time: u64,
    ) {
        let mut buffer = [0; 20 * MAX_ADDRESS];
        let addresses = AddressList::encode(list, &mut buffer).expect("twenty addresses fit");
        let packet = Control::NewIncoming { server, addresses, accepted_time, time };
        check(&packet, &written(&packet)?, Ends::From(1 + address_size(&server) + 16));
    }

    /// The GUID may be truncated or absent.
    #[test]
    fn invalid_password_messages_round_trip(guid in proptest::option::of(guids())) {
        let packet = Control::InvalidPassword { guid };
        check(&packet, &written(&packet)?, Ends::From(1));
    }
}

/// The kind of problem may be absent.
#[test]
fn remote_system_requires_public_key_messages_round_trip() {
    let problems = [KeyProblem::ServerKeyMissing, KeyProblem::IdentityMissing, KeyProblem::IdentityInvalid];
    for problem in problems.map(Some).into_iter().chain([None]) {
        let packet = Control::RequiresPublicKey { problem };
        check(&packet, &written(&packet).expect("the message fits"), Ends::At(1));
    }
}

#[test]
fn messages_without_fields_round_trip() {
    for packet in [Control::DetectLost, Control::Disconnect] {
        check(&packet, &written(&packet).expect("the message fits"), Ends::Fixed);
    }
}
