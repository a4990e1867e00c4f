//! A network in memory that loses, delays, doubles and reorders datagrams, by a seed.
//!
//! A [`Link`] is one direction of a path. It knows no clock and no socket, so it stands in a test between two machines
//! under virtual time, or in a real driver between its machine and its socket. A [`Pair`] joins two machines by two
//! links and moves the time to whatever happens next; a [`Dumbbell`] joins several pairs by one link each way, so that
//! they share its [`Bottleneck`]. A [`Nat`] translates the addresses of datagrams.

mod conditions;
mod drive;
mod dumbbell;
mod link;
mod nat;
mod pair;

pub use conditions::{Bottleneck, Conditions, GilbertElliott};
pub use dumbbell::{Dumbbell, Ends};
pub use link::{Link, LinkStats};
pub use nat::{Filtering, Mapping, Nat, NatBehavior};
pub use pair::Pair;
