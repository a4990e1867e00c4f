//! The demo: a game server, the relay and the page in one process tree.

use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::artifacts::{self, PAGE};
use crate::process;
use crate::service::Service;
use crate::setup::{self, Need};
use crate::shell::{Shell, Stdout};
use crate::smoke;

const DEFAULT_PORT: u16 = 8080;
/// Lets the system choose.
const ANY_PORT: u16 = 0;
const POLL: Duration = Duration::from_millis(50);

/// How to run the demo.
#[derive(Args)]
pub(crate) struct Options {
    /// The page's port. Without it: 8080, or a free one where that is taken.
    #[arg(long)]
    port: Option<u16>,
    /// On free ports, let headless Chromium connect, send and see the echo once; print the outcome as a line of JSON.
    #[arg(long, conflicts_with = "port")]
    smoke: bool,
}

pub(crate) fn run(shell: &mut Shell, options: &Options) -> Result<()> {
    if options.smoke {
        // The last line of the standard output is the outcome, so nothing else goes there.
        shell.stdout = Stdout::ToStderr;
        println!("{}", smoke_test(shell)?);
        return Ok(());
    }
    let port = Port::wanted(options.port).choose()?;
    setup::run(shell, &Need::PAGE)?;
    let mut demo = Demo::start(shell, port)?;
    println!("\n    The demo is at  {}\n\n    Ctrl-C ends it.\n", demo.url());
    while !process::interrupted() {
        demo.check()?;
        thread::sleep(POLL);
    }
    eprintln!("\nEnding the demo.");
    Ok(())
}

/// Runs the demo for one connect-send-echo in a browser and gives back the line of JSON that says how it went.
pub(crate) fn smoke_test(shell: &mut Shell) -> Result<String> {
    setup::run(shell, &Need::PAGE)?;
    setup::run(shell, &[Need::Chromium])?;
    let mut demo = Demo::start(shell, ANY_PORT)?;
    let outcome = smoke::drive(shell, demo.url());
    // A server that died is the better explanation of a page that failed.
    demo.check()?;
    outcome
}

/// The port that the page is served at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Exactly(u16),
    Preferably(u16),
}

impl Port {
    fn wanted(port: Option<u16>) -> Self {
        port.map_or(Self::Preferably(DEFAULT_PORT), Self::Exactly)
    }

    /// The port for the relay.
    fn choose(self) -> Result<u16> {
        match self {
            Self::Exactly(port) if is_free(port) => Ok(port),
            Self::Exactly(port) => {
                bail!("port {port} is taken; name another one, or none to have a free one")
            }
            Self::Preferably(port) if is_free(port) => Ok(port),
            Self::Preferably(port) => {
                eprintln!("Port {port} is taken: taking a free one.");
                Ok(ANY_PORT)
            }
        }
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The two running servers. Dropping it ends the relay first, then the game server.
struct Demo {
    relay: Service,
    server: Service,
}

impl Demo {
    /// Builds everything and starts it.
    fn start(shell: &mut Shell, port: u16) -> Result<Self> {
        let programs = artifacts::binaries(shell)?;
        artifacts::web(shell)?;
        let server = Service::start(
            shell,
            "the game server",
            &programs.rakwire,
            &["echo", "--listen", "127.0.0.1:0"],
        )?;
        let listen = format!("127.0.0.1:{port}");
        let target = format!("game={}", server.address);
        let page = shell.path(PAGE);
        let page = page.to_str().context("the path of this repository is not valid UTF-8")?;
        let args = ["--listen", &listen, "--target", &target, "--serve", page];
        let relay = Service::start(shell, "the relay", &programs.relay, &args)?;
        Ok(Self { relay, server })
    }

    fn url(&self) -> &str {
        &self.relay.address
    }

    fn check(&mut self) -> Result<()> {
        self.server.check()?;
        self.relay.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_an_error_only_when_it_was_asked_for() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert_eq!(Port::Preferably(port).choose().unwrap(), ANY_PORT);
        assert!(Port::Exactly(port).choose().unwrap_err().to_string().contains("is taken"));
        drop(taken);
        assert_eq!(Port::Exactly(port).choose().unwrap(), port);
    }

    #[test]
    fn the_default_port_is_only_preferred() {
        assert_eq!(Port::wanted(None), Port::Preferably(DEFAULT_PORT));
        assert_eq!(Port::wanted(Some(1)), Port::Exactly(1));
    }
}
