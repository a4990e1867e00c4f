//! Addresses and offline messages.

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire::raknet::{Guid, Refusal};
use rakwire::wire::address::{AddressList, MAX_ADDRESS};
use rakwire::wire::control::Control;
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope, ServerSecurity};
use rakwire::wire::{Reader, WireError, Writer, address};

use super::laws::{Ends, check, check_with, written};
use super::values::{
    HEAD, address_lists, address_size, addresses, cookies, guids, keys, may_be_cut_to_a_cookie, sizes,
};

proptest! {
    #[test]
    fn addresses_round_trip(address in addresses()) {
        let mut buffer = [0; MAX_ADDRESS];
        let mut writer = Writer::new(&mut buffer);
        address::write(&address, &mut writer).expect("every address fits");
        let bytes = writer.finish();
        prop_assert_eq!(bytes.len(), address_size(&address));
        prop_assert_eq!(address::read(&mut Reader::new(bytes), ""), Ok(address));
        for length in 0..bytes.len() {
            prop_assert_eq!(address::read(&mut Reader::new(&bytes[..length]), ""), Err(WireError::Truncated));
            prop_assert_eq!(address::write(&address, &mut Writer::new(&mut [0; MAX_ADDRESS][..length])), Err(WireError::NoRoom));
        }
    }

    #[test]
    fn address_lists_round_trip(list in address_lists()) {
        let mut buffer = [0; 20 * MAX_ADDRESS];
        let encoded = AddressList::encode(list.iter().copied(), &mut buffer).expect("twenty addresses fit");
        prop_assert!(encoded.iter().eq(list.iter().copied()));
        let size = list.iter().map(address_size).sum::<usize>();
        for length in 0..size {
            let mut short = [0; 20 * MAX_ADDRESS];
            prop_assert_eq!(AddressList::encode(list.iter().copied(), &mut short[..length]), Err(WireError::NoRoom));
        }
    }

    /// The GUID is optional and may be truncated.
    #[test]
    fn unconnected_pings_round_trip(time: u64, guid in proptest::option::of(guids()), open: bool) {
        let scope = if open { PingScope::OpenConnections } else { PingScope::Any };
        let packet = Offline::Ping { scope, time, guid };
        check(&packet, &written(&packet)?, Ends::From(HEAD + 8));
    }

    /// The data extends to the end of the message.
    #[test]
    fn unconnected_pongs_round_trip(time: u64, guid in guids(), data in vec(any::<u8>(), 0..=399)) {
        let packet = Offline::Pong { time, guid, data: &data };
        check(&packet, &written(&packet)?, Ends::From(HEAD + 16));
    }

    /// The padding extends to the end of the message, and its length determines the MTU.
    #[test]
    fn open_connection_request_1_round_trips(protocol: u8, mtu in 46_u16..=1_600) {
        let packet = Offline::Request1 { protocol, mtu };
        let bytes = written(&packet)?;
        prop_assert_eq!(bytes.len() + 28, usize::from(mtu));
        check(&packet, &bytes, Ends::From(HEAD + 1));
    }

    /// A reply with a key that is truncated two bytes after the cookie is a valid reply without a key.
    #[test]
    fn open_connection_reply_1_round_trips(
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
    fn open_connection_request_2_round_trips(
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

    /// The answer is optional even if the encryption flag is set.
    #[test]
    fn open_connection_reply_2_round_trips(
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
    fn incompatible_protocol_version_round_trips(protocol: u8, guid in guids()) {
        let packet = Offline::IncompatibleProtocol { protocol, guid };
        check(&packet, &written(&packet)?, Ends::Fixed);
    }

    #[test]
    fn refusals_round_trip(guid in guids()) {
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

    /// The data extends to the end of the message and has at least one byte.
    #[test]
    fn out_of_band_messages_round_trip(guid in guids(), data in vec(any::<u8>(), 1..=399)) {
        let packet = Offline::OutOfBand { guid, data: &data };
        check(&packet, &written(&packet)?, Ends::From(HEAD + 8 + 1));
    }

    /// Data that a receiver would refuse is not written.
    #[test]
    fn oversized_data_is_not_written(data in vec(any::<u8>(), 400..500)) {
        let (guid, time) = (Guid(1), 1);
        prop_assert_eq!(written(&Offline::Pong { time, guid, data: &data }), Err(WireError::BadLength));
        prop_assert_eq!(written(&Offline::OutOfBand { guid, data: &data }), Err(WireError::BadLength));
        prop_assert_eq!(written(&Offline::OutOfBand { guid, data: &[] }), Err(WireError::BadLength));
        let request = Control::Request { guid, time, proof: None, password: &data };
        prop_assert_eq!(written(&request), Err(WireError::BadLength));
    }
}
