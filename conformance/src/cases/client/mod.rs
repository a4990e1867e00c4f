//! Cases for clients, which connect to the suite: those only for clients, and those shared with servers.

mod attempt;
mod handshake;
mod opened;
mod requests;

use super::{acks, hostile, lifetime, messages};
use crate::case::{Case, Role};

/// The number of a case for clients, minus the number of the same case for servers.
const ABOVE: u16 = 2000;

/// The groups, by their numbers.
pub(super) const GROUPS: &[&[Case]] = &[
    attempt::CASES,
    requests::CASES,
    handshake::CASES,
    &ACKS,
    opened::RESENDS,
    &MESSAGES,
    &LIFETIME,
    opened::PACE,
    &ENDS,
    &HOSTILE,
    opened::HOSTILE,
];

/// Returns the cases with these numbers in a table for servers, adapted to clients.
const fn of_clients<const N: usize>(all: &[Case], numbers: [u16; N]) -> [Case; N] {
    let mut out = [all[0]; N];
    let mut at = 0;
    while at < N {
        let mut from = 0;
        while all[from].number != numbers[at] {
            from += 1;
        }
        out[at] = Case { number: numbers[at] + ABOVE, ..all[from].of(Role::Client) };
        at += 1;
    }
    out
}

const ACKS: [Case; 29] = of_clients(
    acks::CASES,
    [
        501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 512, 513, 514, 515, 516, 517, 526, 527, 528,
        529, 530, 531, 532, 533, 534, 535, 536, 537,
    ],
);

const MESSAGES: [Case; 58] = of_clients(
    messages::CASES,
    [
        600, 601, 602, 603, 604, 605, 606, 607, 608, 609, 610, 611, 612, 613, 614, 615, 616, 617, 618, 619,
        620, 621, 622, 623, 624, 625, 626, 627, 628, 629, 630, 631, 632, 633, 634, 635, 636, 637, 638, 639,
        640, 701, 702, 703, 704, 705, 706, 707, 708, 709, 710, 711, 712, 713, 715, 716, 717, 718,
    ],
);

const LIFETIME: [Case; 5] = of_clients(lifetime::CASES, [801, 802, 803, 804, 807]);

const ENDS: [Case; 4] = of_clients(lifetime::CASES, [901, 902, 903, 906]);

const HOSTILE: [Case; 9] = of_clients(hostile::CASES, [1003, 1007, 1012, 1013, 1014, 1016, 1018, 1019, 1020]);
