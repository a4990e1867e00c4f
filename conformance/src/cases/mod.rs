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
        2 => "request 1, MTU and versions",
        3 => "request 2 and cookies",
        4 => "handshake",
        5 => "acknowledgements",
        6 => "reliabilities and order",
        7 => "messages in parts",
        8 => "keep-alive and timeouts",
        9 => "the end of a connection",
        10 => "hostile bytes",
        11 => "messages end to end",
        22 => "a client's requests 1",
        23 => "a client's request 2, cookies and refusals",
        24 => "a client's handshake",
        25 => "acknowledgements of a client",
        26 => "reliabilities and order at a client",
        27 => "messages in parts at a client",
        28 => "keep-alive and timeouts of a client",
        29 => "the end of a client's connection",
        30 => "hostile bytes at a client",
        41 => "handshake of the Game Protocol",
        42 => "packets and acknowledgements",
        43 => "resends of the Game Protocol",
        44 => "payloads of the Game Protocol",
        45 => "the end of a connection of the Game Protocol",
        46 => "hostile bytes at a server of the Game Protocol",
        51 => "the secure handshake",
        _ => "sealed datagrams",
    }
}
