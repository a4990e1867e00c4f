//! The options of the command line.

use clap::{Args, Parser, Subcommand};
use rakwire_conformance::case::Role;
use std::path::PathBuf;

/// Tests a RakNet peer, or a server of the Game Protocol, with numbered cases over raw datagrams.
///
/// The exit status is 0 if no case failed, 1 if a case failed, and 2 if the suite could not run.
#[derive(Debug, Parser)]
#[command(name = "rakwire-conformance", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// The address of the server, such as 127.0.0.1:19132.
    #[arg(required_unless_present_any = ["list", "listen", "start"])]
    pub(crate) target: Option<String>,
    /// Test a client. It connects to this address repeatedly, or --start starts it for each case.
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["target", "game_protocol"])]
    pub(crate) listen: Option<String>,
    /// Start the peer for each case with this command line, and stop it after the case. The suite replaces {} with the
    /// address and {port} with its port. A server must print a line when it is ready.
    #[arg(long, value_name = "COMMAND", conflicts_with = "target")]
    pub(crate) start: Option<String>,
    /// The time to wait for a client in each case, in seconds.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) patience: u64,
    /// Test a server of the Game Protocol.
    #[arg(long)]
    pub(crate) game_protocol: bool,
    /// Test a server that requires rakwire's secure connections.
    #[arg(long, conflicts_with_all = ["listen", "game_protocol"])]
    pub(crate) secure: bool,
    /// List the cases and exit.
    #[arg(long)]
    pub(crate) list: bool,
    /// Run only the cases with a number that begins with one of these patterns, or a name that contains one.
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub(crate) only: Vec<String>,
    /// Count a failed SHOULD case as a failure.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a JUnit XML report to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write an HTML report to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The time limit for an answer, in milliseconds. If the peer must not answer, the suite waits a quarter of it.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(40..=60_000))]
    pub(crate) timeout: u64,
    /// The time after which the peer closes a silent connection, in seconds.
    #[arg(long, value_name = "S", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) lifetime: u64,
    /// The protocol version to announce to a server.
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub(crate) protocol: u8,
    /// The server echoes application messages as `rakwire echo` does; in RakNet, those with an id of 86 (hex) or above.
    #[arg(long)]
    pub(crate) echo: bool,
    /// The password of the server.
    #[arg(long, value_name = "TEXT")]
    pub(crate) password: Option<String>,
    /// The maximum number of clients of the server. No other client may be connected.
    #[arg(long, value_name = "N")]
    pub(crate) capacity: Option<usize>,
    #[command(flatten)]
    pub(crate) about: About,
}

/// The description of the peer for the page of results.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "For the page of results")]
pub(crate) struct About {
    /// The name of the peer.
    #[arg(long, value_name = "TEXT")]
    pub(crate) peer: Option<String>,
    /// The version of the peer.
    #[arg(long, value_name = "TEXT")]
    pub(crate) peer_version: Option<String>,
    /// The command line that started the peer.
    #[arg(long, value_name = "TEXT")]
    pub(crate) peer_start: Option<String>,
    /// A limitation of the run that readers should know.
    #[arg(long, value_name = "TEXT")]
    pub(crate) peer_note: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a Markdown page from the JSON documents of several runs.
    Page(PageArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// The JSON documents, one for each run.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// A file with the text for the beginning of the page.
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
}

impl Arguments {
    /// Returns the role of the peer under test.
    pub(crate) fn role(&self) -> Role {
        match &self.listen {
            Some(_) => Role::Client,
            None if self.game_protocol => Role::GameServer,
            None if self.secure => Role::SecureServer,
            None => Role::Server,
        }
    }

    /// The address of the server, or the address to listen on.
    pub(crate) fn address(&self) -> &str {
        self.listen.as_deref().or(self.target.as_deref()).unwrap_or_default()
    }
}
