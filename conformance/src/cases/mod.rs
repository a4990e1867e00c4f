//! The table of cases, group by group.

mod acks;
mod client;
mod echo;
mod game;
mod handshake;
mod hostile;
mod lifetime;
mod messages;
mod offline;
mod requests;
mod secure;

use crate::case::Case;

/// Returns all cases in the order of their numbers.
pub fn all() -> impl Iterator<Item = &'static Case> {
    let servers: [&'static [Case]; 8] = [
        offline::CASES,
        requests::CASES,
        handshake::CASES,
        acks::CASES,
        messages::CASES,
        lifetime::CASES,
        hostile::CASES,
        echo::CASES,
    ];
    servers
        .into_iter()
        .chain(client::GROUPS.iter().copied())
        .chain(game::GROUPS.iter().copied())
        .chain([secure::CASES])
        .flatten()
}

/// Returns the name of the group of a case.
#[must_use]
pub fn group(number: u16) -> &'static str {
    match number / 100 {
        1 => "offline messages",
        2 => "request 1, MTU and protocol versions",
        3 => "request 2, refusals and cookies",
        4 => "handshake",
        5 => "acknowledgements and retransmission",
        6 => "reliability, ordering and capsules",
        7 => "split messages",
        8 => "keep-alive and timeouts",
        9 => "disconnection",
        10 => "hostile datagrams",
        11 => "application messages",
        22 => "client: request 1",
        23 => "client: request 2, refusals and cookies",
        24 => "client: handshake",
        25 => "client: acknowledgements and retransmission",
        26 => "client: reliability, ordering and capsules",
        27 => "client: split messages",
        28 => "client: keep-alive and timeouts",
        29 => "client: disconnection",
        30 => "client: hostile datagrams",
        41 => "Game Protocol: handshake",
        42 => "Game Protocol: packets and acknowledgements",
        43 => "Game Protocol: retransmission",
        44 => "Game Protocol: payloads",
        45 => "Game Protocol: disconnection",
        46 => "Game Protocol: hostile datagrams",
        51 => "secure connections: handshake",
        _ => "secure connections: sealed datagrams",
    }
}
