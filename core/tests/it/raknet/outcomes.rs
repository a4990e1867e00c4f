//! The outcome of request 2 for each state of the server and each kind of request (docs/raknet.md#request-2).

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    Config, ConnectFailure, ConnectionState, CookiePolicy, DropReason, Event, Guid, Peer, Refusal,
    Reliability,
};
use rakwire::wire::address::AddressList;
use rakwire::wire::control::Control;
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{Reader, Wire};

use crate::support::forged::{answers, capsule, data, written};
use crate::support::raknet::{client_config, peer, server_config};

const NOW: Instant = Instant::from_micros(1_000_000);
const MTU: u16 = 1_200;

/// The state of a client that the server knows. Its GUID is the number of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// The client has sent request 2.
    Unverified = 1,
    /// The client has sent its connection request.
    Awaiting,
    /// The client is connected.
    Connected,
    /// The client has sent its disconnection notification. The server only acknowledges its retransmissions.
    Ended,
}
use Known::{Awaiting, Connected, Ended, Unverified};

const KNOWN: [Known; 4] = [Unverified, Awaiting, Connected, Ended];

/// The owner of the address or GUID in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Of(Known),
    Unknown,
}
use Owner::{Of, Unknown};

/// The server's reaction to request 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The server repeats its first reply to this client and takes no other slot.
    SameReply,
    /// The server sends reply 2 and takes a slot.
    Accepted,
    /// The server sends a refusal with this message id and takes no slot.
    Refused(u8),
    /// The server drops and counts the request.
    Dropped(DropReason),
}
use Outcome::{Accepted, Dropped, Refused, SameReply};

const ALREADY_CONNECTED: Outcome = Refused(0x12);

fn address(of: Owner) -> SocketAddr {
    let host = match of {
        Of(known) => known as u8,
        Unknown => 9,
    };
    SocketAddr::from(([203, 0, 113, host], 4_000))
}

fn guid(of: Owner) -> Guid {
    match of {
        Of(known) => Guid(known as u64),
        Unknown => Guid(9),
    }
}

/// Sends request 1; returns the cookie in the reply, if there is one.
fn cookie(server: &mut Peer<'_>, from: SocketAddr) -> Option<u32> {
    server.handle_datagram(NOW, from, &written(&Offline::Request1 { protocol: 6, mtu: 1_492 }));
    let (to, reply) = answers(server, NOW).pop()?;
    assert_eq!(to, from);
    match Offline::read(&mut Reader::new(&reply)) {
        Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) => Some(cookie),
        Ok(Offline::Reply1 { security: ServerSecurity::None, .. }) => None,
        other => panic!("{other:?}"),
    }
}

fn request_2(server: &mut Peer<'_>, from: SocketAddr, security: ClientSecurity<'_>, guid: Guid) {
    let request = Offline::Request2 { security, server: from, mtu: MTU, guid };
    server.handle_datagram(NOW, from, &written(&request));
}

/// Sends requests 1 and 2, with a cookie if required; returns the server's responses to request 2.
fn ask(server: &mut Peer<'_>, from: SocketAddr, guid: Guid) -> Vec<Vec<u8>> {
    let security = cookie(server, from).map_or(ClientSecurity::None, ClientSecurity::Cookie);
    request_2(server, from, security, guid);
    answers(server, NOW).into_iter().filter(|(to, _)| *to == from).map(|(_, answer)| answer).collect()
}

/// Advances a client's connection to the state `known`. Returns the server's reply 2.
fn bring(server: &mut Peer<'_>, known: Known) -> Vec<u8> {
    let (from, guid) = (address(Of(known)), guid(Of(known)));
    let reply = ask(server, from, guid).pop().expect("reply 2");
    let request = Control::Request { guid, time: 0, proof: None, password: b"" };
    let addresses = AddressList::unassigned(10);
    let open = Control::NewIncoming { server: from, addresses, accepted_time: 0, time: 0 };
    let steps = [
        (Reliability::Reliable, request, Awaiting),
        (Reliability::ReliableOrdered, open, Connected),
        (Reliability::ReliableOrdered, Control::Disconnect, Ended),
    ];
    for (number, (reliability, control, leads_to)) in (0..).zip(steps) {
        if known as u8 >= leads_to as u8 {
            let order = number.max(1) - 1;
            let datagram = data(number, capsule(reliability, number, order), &written(&control));
            server.handle_datagram(NOW, from, &datagram);
        }
    }
    // Discards acknowledgements and messages of the connection.
    answers(server, NOW);
    while server.poll_event().is_some() {}
    reply
}

/// Returns a server with a client in each state, and the server's reply 2 to each client.
fn server_that_knows() -> (Peer<'static>, [Vec<u8>; 4]) {
    let mut server = peer(server_config());
    let replies = KNOWN.map(|known| bring(&mut server, known));
    let state = |known| {
        let id = server.connection_at(address(Of(known)))?;
        server.connection(id).map(|info| info.state)
    };
    assert_eq!(state(Unverified), Some(ConnectionState::Connecting));
    assert_eq!(state(Awaiting), Some(ConnectionState::Connecting));
    assert_eq!(state(Connected), Some(ConnectionState::Connected));
    assert!(!matches!(state(Ended), Some(ConnectionState::Connecting | ConnectionState::Connected)));
    (server, replies)
}

/// The owner of the address and of the GUID in request 2, and the outcome.
#[rustfmt::skip]
const TABLE: [(Owner, Owner, Outcome); 25] = [
    // Address and GUID are known. If both belong to a client that may lack its reply, the server repeats the reply.
    (Of(Unverified), Of(Unverified), SameReply),
    (Of(Unverified), Of(Awaiting),   ALREADY_CONNECTED),
    (Of(Unverified), Of(Connected),  ALREADY_CONNECTED),
    (Of(Awaiting),   Of(Unverified), ALREADY_CONNECTED),
    (Of(Awaiting),   Of(Awaiting),   ALREADY_CONNECTED),
    (Of(Awaiting),   Of(Connected),  ALREADY_CONNECTED),
    (Of(Connected),  Of(Unverified), ALREADY_CONNECTED),
    (Of(Connected),  Of(Awaiting),   ALREADY_CONNECTED),
    (Of(Connected),  Of(Connected),  ALREADY_CONNECTED),
    // The address is known, the GUID is not.
    (Of(Unverified), Unknown,        ALREADY_CONNECTED),
    (Of(Awaiting),   Unknown,        ALREADY_CONNECTED),
    (Of(Connected),  Unknown,        ALREADY_CONNECTED),
    // The GUID is known, the address is not.
    (Unknown,        Of(Unverified), ALREADY_CONNECTED),
    (Unknown,        Of(Awaiting),   ALREADY_CONNECTED),
    (Unknown,        Of(Connected),  ALREADY_CONNECTED),
    // Neither is known.
    (Unknown,        Unknown,        Accepted),
    // A closed connection is evicted: neither its address nor its GUID counts as known.
    (Of(Ended),      Of(Ended),      Accepted),
    (Of(Ended),      Unknown,        Accepted),
    (Unknown,        Of(Ended),      Accepted),
    (Of(Ended),      Of(Unverified), ALREADY_CONNECTED),
    (Of(Ended),      Of(Awaiting),   ALREADY_CONNECTED),
    (Of(Ended),      Of(Connected),  ALREADY_CONNECTED),
    (Of(Unverified), Of(Ended),      ALREADY_CONNECTED),
    (Of(Awaiting),   Of(Ended),      ALREADY_CONNECTED),
    (Of(Connected),  Of(Ended),      ALREADY_CONNECTED),
];

fn check(server: &mut Peer<'_>, from: SocketAddr, guid: Guid, first: &[u8], expected: Outcome) {
    let (before, id_before) = (server.connections().count(), server.connection_at(from));
    let answers = ask(server, from, guid);
    let (after, id) = (server.connections().count(), server.connection_at(from));
    let row = format!("{from}, {guid:?}: {expected:?}");
    assert_eq!(answers.len(), 1, "{row}");
    match expected {
        SameReply => assert_eq!((answers[0].as_slice(), id, after), (first, id_before, before), "{row}"),
        Accepted => {
            assert_eq!((answers[0][0], answers[0].len()), (0x08, 35), "{row}");
            assert_eq!(answers[0][32..34], MTU.to_be_bytes(), "{row}");
            assert!(id.is_some() && id != id_before, "{row}");
            assert_eq!(server.connection_of(guid), id, "{row}");
        }
        Refused(refusal) => {
            assert_eq!((answers[0][0], after), (refusal, before), "{row}");
            assert!(id == id_before || id.is_none(), "{row}: only a closed connection may be evicted");
        }
        Dropped(reason) => panic!("{row}: TABLE cannot contain the outcome {reason:?}"),
    }
}

#[test]
fn every_pair_of_address_and_guid_has_the_documented_outcome() {
    for &(from, owner, expected) in &TABLE {
        let (mut server, replies) = server_that_knows();
        let first = match from {
            Of(known) => replies[known as usize - 1].as_slice(),
            Unknown => &[],
        };
        check(&mut server, address(from), guid(owner), first, expected);
    }
    let all = KNOWN.into_iter().map(Of).chain([Unknown]);
    let pairs = all.clone().flat_map(|from| all.clone().map(move |owner| (from, owner)));
    assert!(
        pairs.clone().all(|pair| TABLE.iter().any(|row| (row.0, row.1) == pair)),
        "TABLE must contain every pair of an address and a GUID"
    );
    assert_eq!(pairs.count(), TABLE.len());
}

/// An event at the server before a new client connects.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    /// Another client entered this state.
    Came(Known),
    /// The new client's network was banned after its request 1.
    Banned,
}

/// The cookie that the new client sends.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// The cookie from reply 1, if there is one.
    Given,
    Wrong,
    Missing,
    /// No cookie, and no preceding request 1.
    Unasked,
}

fn server(change: fn(&mut Config)) -> Peer<'static> {
    let mut config = server_config();
    change(&mut config);
    peer(config)
}

fn no_cookies(config: &mut Config) {
    config.cookies = CookiePolicy::Off;
}

fn one_half_open(config: &mut Config) {
    no_cookies(config);
    config.max_half_open_per_network = 1;
}

fn one_unvalidated(config: &mut Config) {
    config.cookies = CookiePolicy::UnderLoad { unvalidated: 1 };
}

const fn one(config: &mut Config) {
    config.max_incoming = 1;
}

const fn rarely(config: &mut Config) {
    config.connection_interval = Some(Duration::from_millis(100));
}

const fn as_it_is(_: &mut Config) {}

const fn pure_client(config: &mut Config) {
    config.max_incoming = 0;
}

/// The host of the connected client.
const SAME_HOST: Owner = Of(Connected);
/// A host without a connection.
const OTHER_HOST: Owner = Unknown;

/// The configuration, the previous event, the new client's host, its cookie, and the outcome.
type Row = (fn(&mut Config), Before, Owner, Proof, Outcome);

/// The outcomes for a new client with an unknown address and GUID.
#[rustfmt::skip]
const NEWCOMERS: [Row; 21] = [
    (as_it_is,      Before::Nothing,          OTHER_HOST, Proof::Given,   Accepted),
    (as_it_is,      Before::Came(Connected),  OTHER_HOST, Proof::Given,   Accepted),
    (as_it_is,      Before::Came(Connected),  SAME_HOST,  Proof::Given,   Accepted),
    (as_it_is,      Before::Nothing,          OTHER_HOST, Proof::Wrong,   Dropped(DropReason::BadCookie)),
    (as_it_is,      Before::Nothing,          OTHER_HOST, Proof::Missing, Dropped(DropReason::MissingCookie)),
    (no_cookies,    Before::Nothing,          OTHER_HOST, Proof::Given,   Accepted),
    (no_cookies,    Before::Nothing,          OTHER_HOST, Proof::Wrong,   Accepted),
    (no_cookies,    Before::Nothing,          OTHER_HOST, Proof::Unasked, Dropped(DropReason::WouldAmplify)),
    (pure_client,   Before::Nothing,          OTHER_HOST, Proof::Unasked, Dropped(DropReason::Unexpected)),
    (as_it_is,      Before::Banned,           OTHER_HOST, Proof::Given,   Refused(0x17)),
    (one,           Before::Came(Connected),  OTHER_HOST, Proof::Given,   Refused(0x14)),
    (one,           Before::Came(Awaiting),   OTHER_HOST, Proof::Given,   Refused(0x14)),
    // The oldest half-open connection is evicted, and the new client retransmits its request.
    (one,           Before::Came(Unverified), OTHER_HOST, Proof::Given,   Dropped(DropReason::HalfOpenLimit)),
    (rarely,        Before::Came(Connected),  SAME_HOST,  Proof::Given,   Refused(0x1A)),
    (rarely,        Before::Came(Connected),  OTHER_HOST, Proof::Given,   Accepted),
    (one_half_open, Before::Came(Unverified), OTHER_HOST, Proof::Given,   Dropped(DropReason::HalfOpenLimit)),
    // The first client needs no cookie and gets none. All later clients need one.
    (one_unvalidated,  Before::Nothing,          OTHER_HOST, Proof::Given,   Accepted),
    (one_unvalidated,  Before::Nothing,          OTHER_HOST, Proof::Wrong,   Dropped(DropReason::BadCookie)),
    (one_unvalidated,  Before::Came(Connected),  OTHER_HOST, Proof::Given,   Accepted),
    (one_unvalidated,  Before::Came(Connected),  OTHER_HOST, Proof::Wrong,   Dropped(DropReason::BadCookie)),
    (one_unvalidated,  Before::Came(Connected),  OTHER_HOST, Proof::Unasked, Dropped(DropReason::MissingCookie)),
];

#[test]
fn new_clients_are_accepted_or_refused_by_the_servers_limits() {
    for (number, &(change, before, host, proof, expected)) in NEWCOMERS.iter().enumerate() {
        let mut server = server(change);
        if let Before::Came(known) = before {
            bring(&mut server, known);
        }
        let (from, guid) = (SocketAddr::new(address(host).ip(), 1), guid(Unknown));
        let given = match proof {
            Proof::Unasked => None,
            Proof::Given | Proof::Wrong | Proof::Missing => cookie(&mut server, from),
        };
        let security = match (proof, given) {
            (Proof::Given, Some(cookie)) => ClientSecurity::Cookie(cookie),
            (Proof::Wrong, _) => ClientSecurity::Cookie(given.unwrap_or(0) ^ 1),
            (Proof::Given, None) | (Proof::Missing | Proof::Unasked, _) => ClientSecurity::None,
        };
        if let Before::Banned = before {
            let bans = server.bans_mut().expect("a ban list");
            bans.add("203.0.113.*".parse().expect("a pattern"), None).expect("a free entry");
        }
        let dropped = |server: &Peer<'_>| match expected {
            Dropped(reason) => server.stats().dropped(reason),
            SameReply | Accepted | Refused(_) => 0,
        };
        let before = dropped(&server);
        request_2(&mut server, from, security, guid);
        let answers: Vec<_> = answers(&mut server, NOW).into_iter().filter(|(to, _)| *to == from).collect();
        let found = match (answers.first(), server.connection_at(from)) {
            (None, None) => Dropped(DropReason::Unexpected),
            (Some((_, reply)), Some(_)) if reply[0] == 0x08 => Accepted,
            (Some((_, reply)), None) => Refused(reply[0]),
            other => panic!("NEWCOMERS[{number}]: {other:?}"),
        };
        match (found, expected) {
            (Dropped(_), Dropped(_)) => assert_eq!(dropped(&server), before + 1, "NEWCOMERS[{number}]"),
            (found, expected) => assert_eq!(found, expected, "NEWCOMERS[{number}]"),
        }
    }
}

/// Only a refusal from the server's address fails the attempt.
#[test]
fn every_refusal_is_reported_to_the_client() {
    let to = address(Unknown);
    for (refusal, words) in [
        (Refusal::AttemptFailed, "ended the attempt"),
        (Refusal::AlreadyConnected, "already"),
        (Refusal::NoFreeIncomingConnections, "full"),
        (Refusal::Banned, "banned"),
        (Refusal::RecentlyConnected, "later"),
    ] {
        let mut client = peer(client_config());
        let id = client.connect(NOW, to).expect("a free slot");
        assert_eq!(answers(&mut client, NOW).len(), 1);
        let refused = written(&Offline::Refused { refusal, guid: Guid(7) });
        client.handle_datagram(NOW, address(Of(Connected)), &refused);
        assert!(client.poll_event().is_none(), "a refusal from another address must be ignored");
        client.handle_datagram(NOW, to, &refused);
        match client.poll_event() {
            Some(Event::ConnectFailed { id: failed, reason, .. }) => {
                assert_eq!((failed, reason), (id, ConnectFailure::Refused(refusal)));
                assert!(reason.to_string().contains(words), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        assert!(client.poll_event().is_none(), "the failure must be reported once");
    }
}
