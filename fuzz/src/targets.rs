//! The functions of the fuzz targets. A violated guarantee panics, which libFuzzer reports.

use crate::admitted;
use crate::awareness as protocols;
use crate::data_channels as channels;
use crate::model::operation::Sequence;
use crate::model::{self, rabbit as values, wire, world};
use crate::proxied;
use crate::relay::operations;
use crate::snowfight as play;
use crate::udp_front;

/// A function that runs on an input.
pub type Target = fn(&[u8]);

/// All targets by name.
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

/// Clients that request admission by the relay, with and without tokens, in any order and at any time.
pub fn admission(bytes: &[u8]) {
    admitted::requests(bytes);
}

/// A relay flow with arbitrary datagrams from client and server, for a protocol that the relay supports.
pub fn awareness(bytes: &[u8]) {
    protocols::flow(bytes);
}

/// Datagrams from arbitrary sources to the relay's data channels.
pub fn data_channels(bytes: &[u8]) {
    channels::datagrams(bytes);
}

/// Datagrams of a connection: decoding and encoding must give the same bytes.
pub fn datagram(bytes: &[u8]) {
    hold(wire::datagram(bytes));
}

/// All operations on two peers and their path, checked against the guarantees.
pub fn endpoint(bytes: &[u8]) {
    if let Some(sequence) = Sequence::decode(bytes) {
        hold(world::run(&sequence).map(drop));
    }
}

/// Datagrams from arbitrary sources and from the server to a front of the relay.
pub fn front(bytes: &[u8]) {
    udp_front::datagrams(bytes);
}

/// All operations on two peers of the Game Protocol and their path, checked against the guarantees.
pub fn game(bytes: &[u8]) {
    hold(model::game::run(bytes).map(drop));
}

/// Messages of the game: unpacking and packing must give the same bytes.
pub fn message(bytes: &[u8]) {
    hold(play::messages(bytes));
}

/// Offline messages and RakNet's own messages in connections: decoding and encoding must give the same bytes.
pub fn offline(bytes: &[u8]) {
    hold(wire::offline(bytes));
    hold(wire::control(bytes));
}

/// The PROXY protocol header of a connection to the relay.
pub fn proxy(bytes: &[u8]) {
    proxied::header(bytes);
}

/// Rabbit values of every type: unpacking and packing must give the same bytes.
pub fn rabbit(bytes: &[u8]) {
    hold(values::values(bytes));
}

/// All operations on the flows of the relay, checked against the guarantees.
pub fn relay(bytes: &[u8]) {
    hold(operations::run(bytes).map(drop));
}

/// A secure connection: the fields of its handshake, its datagrams and tokens, unchanged and modified.
pub fn secure(bytes: &[u8]) {
    hold(model::secure::run(bytes));
}

/// A game with two players, one of which sends arbitrary messages. The other must be able to continue.
pub fn snowfight(bytes: &[u8]) {
    hold(play::hostile_client(bytes));
}
