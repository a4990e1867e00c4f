//! Programs that keep CPU cores busy, to measure on a machine under load.

use std::io;
use std::time::Duration;

use anyhow::Result;

use crate::pairing::itself;
use crate::process::{Cores, Program};

/// The maximum time until a busy program has started.
const LIMIT: Duration = Duration::from_secs(10);

/// One busy program on each core, killed on drop.
pub(crate) struct Spinners {
    _programs: Vec<Program>,
}

impl Spinners {
    pub(crate) fn start(cores: Cores) -> Result<Self> {
        let mut both = vec![cores.sender, cores.receiver];
        both.dedup();
        let programs = both.into_iter().map(|core| {
            let mut command = itself()?;
            command.arg("spin");
            let program = Program::start(command, core, LIMIT)?;
            program.connected()?;
            Ok(program)
        });
        Ok(Self { _programs: programs.collect::<Result<_>>()? })
    }
}

/// Keeps a core busy until the end of standard input, so that the program does not outlive its parent.
pub(crate) fn run() -> Result<()> {
    std::thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    crate::role::print_line("connected").map_err(anyhow::Error::msg)?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
