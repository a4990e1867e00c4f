//! The commands and their options.

use clap::{Parser, Subcommand};

use crate::{bench, fuzz, mcu, mutants, relay_package, release, size};

/// The commands of `cargo xtask` that this program implements.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the firmware of microcontrollers in QEMU.
    Mcu(mcu::Options),
    /// Measure memory use, and compare it with the committed tables.
    Size(size::Options),
    /// Search for faults in the core with generated input.
    Fuzz(fuzz::FuzzOptions),
    /// Run the core over simulated bad networks, or a server and clients for hours.
    Soak(fuzz::SoakOptions),
    /// Insert faults into a copy of the core, one at a time: the tests must find each of them.
    Mutants(mutants::Options),
    /// Compare speed with other RakNet implementations and with the plain socket.
    Bench(bench::Options),
    /// Build the Debian package of the relay, in target/relay-package.
    PackageRelay(relay_package::Options),
    /// Check and pack a release, and print the commands that upload it.
    Release(release::Options),
    /// Run a stage.
    #[command(hide = true)]
    Stage { name: String },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_match_those_that_xtask_forwards() {
        let cli = Cli::command();
        let own = cli.get_subcommands().filter(|command| !command.is_hide_set());
        let own: Vec<_> = own
            .map(|command| (command.get_name().to_owned(), command.get_about().map(ToString::to_string)))
            .collect();
        let forwarded = xtask::cli::OF_TOOLS.map(|(name, about)| (name.to_owned(), Some(about.to_owned())));
        assert_eq!(own, forwarded);
    }
}
