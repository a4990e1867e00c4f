//! The board emulated by QEMU, and a demo player on it.

mod emulator;

use std::time::Duration;

use anyhow::Result;

pub use self::emulator::{Machine, NEEDS as PLAYER_NEEDS, NETWORK, Report};
use crate::firmware::{self, EMULATED};
use crate::shell::Shell;
use crate::targets::THUMB_M4;

/// Time limit for a player to join.
const JOINS_WITHIN: Duration = Duration::from_secs(300);

/// Starts a player on the emulated board, which joins the game of this server; needs [`PLAYER_NEEDS`]. It plays until
/// the machine is dropped.
pub fn player(shell: &Shell, server: &str) -> Result<Machine> {
    let folder = firmware::build(shell, EMULATED, THUMB_M4, &["--bin", "player"])?;
    let firmware = firmware::built(&folder, THUMB_M4, "player")?;
    let mut machine = Machine::start(shell, &firmware, &[at(server)], &[], JOINS_WITHIN)?;
    machine.wait_for("joined as player")?;
    Ok(machine)
}

/// Returns the player's argument for a server on the host.
pub fn at(address: &str) -> String {
    format!("server=10.0.2.2:{}", address.rsplit(':').next().unwrap_or_default())
}
