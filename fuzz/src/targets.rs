//! The functions of the fuzz targets. A broken guarantee ends the process, as a finding.

use crate::admitted;
use crate::awareness as protocols;
use crate::data_channels as channels;
use crate::model::operation::Sequence;
use crate::model::{self, rabbit as values, wire, world};
use crate::proxied;
use crate::relay::operations;
use crate::snowfight as play;
use crate::udp_front;

/// A function that runs with an input.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const ALL: [(&str, Target); 14] = [
    ("admission", admission),
    ("awareness", awareness),
    ("data_channels", data_channels),
    ("datagram", datagram),
    ("endpoint", endpoint),
    ("front", front),
    ("game", game),
    ("message", message),
    ("offline", offline),
    ("proxy", proxy),
    ("rabbit", rabbit),
    ("relay", relay),
    ("secure", secure),
    ("snowfight", snowfight),
];

fn hold(kept: model::Kept) {
    if let Err(broken) = kept {
        panic!("{broken}");
    }
}

/// Clients that request admission by the relay, with tokens and without, in any order and at any time.
pub fn admission(bytes: &[u8]) {
    admitted::requests(bytes);
}

/// A flow with a client and a server that send anything to a relay that knows their protocol.
pub fn awareness(bytes: &[u8]) {
    protocols::flow(bytes);
}

/// Datagrams from anyone to the data channels of the relay.
pub fn data_channels(bytes: &[u8]) {
    channels::datagrams(bytes);
}

/// Datagrams of a connection: reading and writing them gives the same bytes.
pub fn datagram(bytes: &[u8]) {
    hold(wire::datagram(bytes));
}

/// All operations on two peers and on the path between them, checked against their guarantees.
pub fn endpoint(bytes: &[u8]) {
    if let Some(sequence) = Sequence::decode(bytes) {
        hold(world::run(&sequence).map(drop));
    }
}

/// Datagrams from anyone to a front of the relay, and from its server.
pub fn front(bytes: &[u8]) {
    udp_front::datagrams(bytes);
}

/// All operations on two peers of the Game Protocol and on the path between them, checked against their guarantees.
pub fn game(bytes: &[u8]) {
    hold(model::game::run(bytes).map(drop));
}

/// Each message of the game: unpacking and packing it gives the same bytes.
pub fn message(bytes: &[u8]) {
    hold(play::messages(bytes));
}

/// Messages outside connections, and RakNet's own messages inside them: reading and writing them gives the same bytes.
pub fn offline(bytes: &[u8]) {
    hold(wire::offline(bytes));
    hold(wire::control(bytes));
}

/// The PROXY protocol at the beginning of a connection to the relay.
pub fn proxy(bytes: &[u8]) {
    proxied::header(bytes);
}

/// Packed values of every type: unpacking and packing them gives the same bytes.
pub fn rabbit(bytes: &[u8]) {
    hold(values::values(bytes));
}

/// All operations on the flows of the relay, checked against their guarantees.
pub fn relay(bytes: &[u8]) {
    hold(operations::run(bytes).map(drop));
}

/// A secure connection: the fields of its handshake, its datagrams and tokens, intact and modified.
pub fn secure(bytes: &[u8]) {
    hold(model::secure::run(bytes));
}

/// A game of two players, one of which sends anything: the other one keeps playing.
pub fn snowfight(bytes: &[u8]) {
    hold(play::hostile_client(bytes));
}
