//! What each target does with an input. A broken promise ends the process, as a finding.

use crate::admitted;
use crate::awareness as protocols;
use crate::data_channels as channels;
use crate::model::operation::Sequence;
use crate::model::{self, rabbit as values, wire, world};
use crate::proxied;
use crate::relay::operations;
use crate::snowfight as play;
use crate::udp_front;

/// What is run with an input.
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

/// Clients who want to be let in by the relay, with tokens and without, in any order and at any time.
pub fn admission(bytes: &[u8]) {
    admitted::requests(bytes);
}

/// A flow whose client and server say anything to a relay that knows their protocol.
pub fn awareness(bytes: &[u8]) {
    protocols::flow(bytes);
}

/// Datagrams of anybody to the data channels of the relay.
pub fn data_channels(bytes: &[u8]) {
    channels::datagrams(bytes);
}

/// Datagrams of a connection: what is read is written the same.
pub fn datagram(bytes: &[u8]) {
    hold(wire::datagram(bytes));
}

/// Everything that can be done to two peers and to the path between them, against what they promise.
pub fn endpoint(bytes: &[u8]) {
    if let Some(sequence) = Sequence::decode(bytes) {
        hold(world::run(&sequence).map(drop));
    }
}

/// Datagrams of anybody to a front of the relay, and of its server.
pub fn front(bytes: &[u8]) {
    udp_front::datagrams(bytes);
}

/// Everything that can be done to two peers of the Game Protocol and to the path between them, against what they
/// promise.
pub fn game(bytes: &[u8]) {
    hold(model::game::run(bytes).map(drop));
}

/// Each message of the game: what is unpacked is packed the same.
pub fn message(bytes: &[u8]) {
    hold(play::messages(bytes));
}

/// Messages outside of any connection, and those of RakNet itself inside one: what is read is written the same.
pub fn offline(bytes: &[u8]) {
    hold(wire::offline(bytes));
    hold(wire::control(bytes));
}

/// The PROXY protocol at the beginning of a connection to the relay.
pub fn proxy(bytes: &[u8]) {
    proxied::header(bytes);
}

/// Packed values of every type: what is unpacked is packed the same.
pub fn rabbit(bytes: &[u8]) {
    hold(values::values(bytes));
}

/// Everything that can be done to the flows of the relay, against what they promise.
pub fn relay(bytes: &[u8]) {
    hold(operations::run(bytes).map(drop));
}

/// A secure connection: fields of its handshake, its datagrams, and tokens, as they are and changed.
pub fn secure(bytes: &[u8]) {
    hold(model::secure::run(bytes));
}

/// A game of two, of whom one says anything: the other plays on.
pub fn snowfight(bytes: &[u8]) {
    hold(play::hostile_client(bytes));
}
