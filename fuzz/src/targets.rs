//! The functions of the fuzz targets. They panic if a guarantee is violated, and libFuzzer reports the panic.

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
pub const ALL: [(&str, Target); 15] = [
    ("admission", admission),
    ("awareness", awareness),
    ("capi", capi),
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

/// Checks the relay's admission of clients with and without tokens, in any order and at any time.
pub fn admission(bytes: &[u8]) {
    admitted::requests(bytes);
}

/// Checks the relay's inspection of a flow with arbitrary datagrams from client and server, for each protocol kind.
pub fn awareness(bytes: &[u8]) {
    protocols::flow(bytes);
}

/// Calls the functions of the C API with arbitrary handles, sizes, lengths, strings and numbers.
pub fn capi(bytes: &[u8]) {
    rakwire_fuzz_capi::random_calls::run_input(bytes);
}

/// Checks the relay's data channel port with datagrams from arbitrary sources.
pub fn data_channels(bytes: &[u8]) {
    channels::datagrams(bytes);
}

/// Decodes a datagram of a connection. Encoding it again must give the same bytes.
pub fn datagram(bytes: &[u8]) {
    hold(wire::datagram(bytes));
}

/// Runs arbitrary operations on two peers and the path between them, and checks the guarantees of the protocol.
pub fn endpoint(bytes: &[u8]) {
    if let Some(sequence) = Sequence::decode(bytes) {
        hold(world::run(&sequence).map(drop));
    }
}

/// Checks a front of the relay with datagrams from arbitrary sources and from the server.
pub fn front(bytes: &[u8]) {
    udp_front::datagrams(bytes);
}

/// Runs arbitrary operations on two peers of the Game Protocol and the path between them, and checks the guarantees.
pub fn game(bytes: &[u8]) {
    hold(model::game::run(bytes).map(drop));
}

/// Unpacks a message of the game. Packing it again must give the same bytes.
pub fn message(bytes: &[u8]) {
    hold(play::messages(bytes));
}

/// Decodes an offline message, and a message of RakNet itself within a connection. Encoding them again must give the
/// same bytes.
pub fn offline(bytes: &[u8]) {
    hold(wire::offline(bytes));
    hold(wire::control(bytes));
}

/// Checks the parser of the PROXY protocol header of a connection to the relay.
pub fn proxy(bytes: &[u8]) {
    proxied::header(bytes);
}

/// Unpacks Rabbit values of every type. Packing them again must give the same bytes.
pub fn rabbit(bytes: &[u8]) {
    hold(values::values(bytes));
}

/// Runs arbitrary operations on the flows of the relay, and checks the guarantees.
pub fn relay(bytes: &[u8]) {
    hold(operations::run(bytes).map(drop));
}

/// Checks a secure connection with unchanged and modified handshake fields, datagrams and tokens.
pub fn secure(bytes: &[u8]) {
    hold(model::secure::run(bytes));
}

/// Runs a game with two players. One sends arbitrary messages, and the other must be able to continue.
pub fn snowfight(bytes: &[u8]) {
    hold(play::hostile_client(bytes));
}
