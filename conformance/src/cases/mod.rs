//! The table of cases, group by group.

mod acks;
mod echo;
mod handshake;
mod hostile;
mod lifetime;
mod messages;
mod offline;
mod requests;

use crate::case::Case;

/// All cases, by their numbers.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        offline::CASES,
        requests::CASES,
        handshake::CASES,
        acks::CASES,
        messages::CASES,
        lifetime::CASES,
        hostile::CASES,
        echo::CASES,
    ]
    .into_iter()
    .flatten()
}

/// The name of the group of a case.
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
        _ => "messages end to end",
    }
}
