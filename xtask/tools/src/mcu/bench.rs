//! `cargo xtask bench mcu`: instructions per operation, counted by QEMU, and datagrams per second.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::scenarios::parrot;
use crate::measurements::Measurements;
use xtask::artifacts;
use xtask::files;
use xtask::firmware::{self, EMULATED};
use xtask::mcu::{Machine, PLAYER_NEEDS as NEEDS};
use xtask::service::Service;
use xtask::shell::Shell;
use xtask::targets::THUMB_M4;
use xtask::tasks;

const DOCUMENT: &str = "docs/embedded.md";
const BEGIN: &str = "<!-- cargo xtask bench mcu -->\n";
const END: &str = "<!-- end -->";
const UPDATE: &str = "cargo xtask bench mcu --update";
const LIMIT: Duration = Duration::from_secs(120);

/// QEMU assigns 2^8 ns to each instruction, and SysTick counts at 25 MHz: 40 ns.
const SHIFT: u32 = 8;
const TICK_NANOS: f64 = 40.0;

const SIZES: [&str; 3] = ["16", "100", "1000"];
const OPERATIONS: [&str; 6] = ["send", "compose", "receive", "read", "acknowledge", "accept"];
const RABBIT: [&str; 2] = ["pack", "unpack"];

/// The number of pairs of runs, with and without the protocol. The best run of each is reported, because other
/// processes also use this machine.
const ROUNDS: usize = 3;

/// `cargo xtask bench mcu`.
pub(crate) fn command(shell: &Shell, update: bool) -> Result<()> {
    tasks::set_up(shell, &NEEDS)?;
    instructions(shell, update)?;
    throughput(shell)
}

/// Counts instructions, and compares them with the committed table.
pub(crate) fn instructions(shell: &Shell, update: bool) -> Result<()> {
    let options = ["--bin", "instructions", "--features", "server"];
    let folder = firmware::build(shell, EMULATED, THUMB_M4, &options)?;
    let firmware = firmware::built(&folder, THUMB_M4, "instructions")?;
    let count = format!("shift={SHIFT},sleep=off");
    let report = Machine::start(shell, &firmware, &[], &["-icount", &count], LIMIT)?.succeed()?;
    let instructions = |word: &str, operation: &str| -> Result<u64> {
        let ticks = report.number_of(word, operation)?;
        Ok((ticks * TICK_NANOS / f64::from(1 << SHIFT)).round() as u64)
    };
    let mut rows = BTreeMap::new();
    for size in SIZES {
        for operation in OPERATIONS {
            let row = format!("{operation}, {size} bytes");
            rows.insert(row, instructions(&format!("size={size}"), operation)?);
        }
    }
    for operation in RABBIT {
        rows.insert(format!("{operation}, a player entity"), instructions("rabbit=player", operation)?);
    }
    let measured = Measurements { rustc: firmware::rustc(shell)?, rows };
    let document = shell.read(DOCUMENT)?;
    let (before, rest) =
        document.split_once(BEGIN).context("docs/embedded.md has no marker for the table")?;
    let (table, after) = rest.split_once(END).context("the table in docs/embedded.md has no end")?;
    if update {
        let text = format!("{before}{BEGIN}{}{END}{after}", measured.write(""));
        return files::write(&shell.path(DOCUMENT), text);
    }
    Measurements::parse(table)?.check(&measured, UPDATE, &shell.log)?;
    shell.print(format_args!(
        "{} operations take no more instructions than in {DOCUMENT}",
        measured.rows.len()
    ));
    Ok(())
}

/// Measures datagrams per second with and without the protocol.
fn throughput(shell: &Shell) -> Result<()> {
    let folder = firmware::build(shell, EMULATED, THUMB_M4, &["--bin", "throughput"])?;
    let firmware = firmware::built(&folder, THUMB_M4, "throughput")?;
    let rakwire = artifacts::fast_programs(shell)?.rakwire;
    let raw = parrot()?;
    let raw_port = raw.local_addr()?.port().to_string();
    let server = Service::start(shell, "the server", &rakwire, &["echo", "--listen", "127.0.0.1:0"])?;
    let port = server.address.rsplit(':').next().unwrap_or_default();
    let (mut best_raw, mut best_raknet) = (0.0_f64, 0.0_f64);
    for _ in 0..ROUNDS {
        best_raw = best_raw.max(rate(shell, &firmware, "raw", &raw_port)?);
        best_raknet = best_raknet.max(rate(shell, &firmware, "raknet", port)?);
    }
    let share = 100.0 * best_raknet / best_raw;
    shell.print(format_args!("datagrams per second, 4 messages of 1,000 bytes in flight, best of {ROUNDS}:"));
    shell.print(format_args!("raw UDP {best_raw:.0}, RakNet {best_raknet:.0} ({share:.0} %)"));
    Ok(())
}

fn rate(shell: &Shell, firmware: &Path, mode: &str, port: &str) -> Result<f64> {
    let arguments = [format!("mode={mode}"), format!("port={port}")];
    let report = Machine::start(shell, firmware, &arguments, &[], LIMIT)?.succeed()?;
    Ok(report.number("datagrams")? / report.number("micros")? * 1e6)
}
