//! Helpers for the tables of cases of the Game Protocol.

use crate::case::{Case, Context, Level, Role};
use crate::check::Check;
use crate::model::{Fault, GameFault};

/// Creates a case for servers of the Game Protocol.
pub(super) const fn game(
    number: u16,
    name: &'static str,
    level: Level,
    section: &'static str,
    requirement: &'static str,
    run: fn(&mut Context) -> Check,
    fault: GameFault,
) -> Case {
    Case::new(number, name, level, section, requirement, run, Fault::Game(fault)).of(Role::GameServer)
}
