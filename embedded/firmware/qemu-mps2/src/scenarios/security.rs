//! Secure connections, with the server authenticated by the key in the argument `server-key`.

use rakwire::raknet::{Config, ConnectOptions, SecurePeer, Security};
use rakwire::secure::{PublicKey, SecureRandom, SeededRandom, ServerTrust};
use rakwire_embassy::raknet::Connection;

use super::failure::Failure;
use rakwire_qemu_mps2::arguments::Arguments;
use rakwire_qemu_mps2::board::Board;
use rakwire_qemu_mps2::exit;

/// Enables secure connections in the peer.
pub(super) fn set_up(config: &mut Config, board: &Board) {
    // The seed is derived from the host's random bytes, which the configuration also uses.
    let mut seed = [0; 32];
    SeededRandom::new(board.entropy).fill(&mut seed);
    config.security = Some(Security::new(seed));
}

/// Returns connect options that trust the key in the argument `server-key`. Exits if it is missing or invalid.
pub(super) fn options(arguments: &Arguments) -> ConnectOptions<'static> {
    let Some(key) = arguments.get::<PublicKey>("server-key") else {
        defmt::error!("the argument server-key= must be the public key of the server");
        exit(2);
    };
    ConnectOptions { trust: Some(ServerTrust::Key(key)), ..ConnectOptions::default() }
}

/// Checks that the connection is with the trusted server.
pub(super) fn check(connection: &Connection<'_>, options: &ConnectOptions<'_>) -> Result<(), Failure> {
    match (connection.secure_peer(), options.trust) {
        (Some(SecurePeer::Server(server)), Some(trust)) if trust.accepts(&server.key) => Ok(()),
        _ => Err(Failure::NotSecure),
    }
}
