//! The player of the snowball fight in QEMU, in games on a server on the host.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::link::NetworkLink;
use xtask::mcu::{Machine, Report, at};
use xtask::service::Service;
use xtask::shell::Shell;

/// Time limit of a game.
const LIMIT: Duration = Duration::from_secs(600);
/// Frames of a game: ten seconds.
const FRAMES: f64 = 300.0;
/// The seed of the world.
const SEED: &str = "7";
/// A fifth of all datagrams is lost in each direction; others are reordered or duplicated.
const BAD_NETWORK: &str = "loss=20%,latency=2ms,jitter=4ms,reorder=10%,duplicate=2%,seed=1";

/// The programs on the host.
pub(crate) struct Games<'a> {
    pub(crate) shell: &'a Shell,
    pub(crate) firmware: PathBuf,
    /// The player program that receives the world by replication.
    pub(crate) replication: PathBuf,
    pub(crate) server: PathBuf,
}

/// The network of a server, and the minimum results of a player in ten seconds on a busy machine.
struct Conditions {
    network: Option<&'static str>,
    snapshots: f64,
    resent: f64,
    /// On the bad network, one in three pings or its pong is lost.
    pongs: f64,
}

impl Games<'_> {
    /// Plays every game; returns the maximum stack use of the player in bytes.
    pub(crate) fn all(&self) -> Result<f64> {
        let clean = self.game(&Conditions { network: None, snapshots: 100.0, resent: 0.0, pongs: 4.0 })?;
        let lossy =
            self.game(&Conditions { network: Some(BAD_NETWORK), snapshots: 40.0, resent: 10.0, pongs: 1.0 })?;
        self.replicated(None, 30.0)?;
        self.replicated(Some(BAD_NETWORK), 15.0)?;
        self.found()?;
        self.restart()?;
        self.link_loss()?;
        self.no_server()?;
        Ok(clean.max(lossy))
    }

    /// Joins, receives snapshots and moves. Every reliable message arrives.
    fn game(&self, conditions: &Conditions) -> Result<f64> {
        let more = conditions.network.map_or(vec![], |network| vec!["--simulate", network]);
        let server = self.serve("127.0.0.1:0", &more)?;
        let frames = format!("frames={FRAMES}");
        let report = self.start(&at(&server.address), &["sessions=1", &frames], &[])?.succeed()?;
        let of = |name| report.number_of("session=1", name);
        let least = |name, least| at_least(&report, name, least);
        least("frames", FRAMES)?;
        least("entities", 300.0)?;
        least("snapshots", conditions.snapshots)?;
        least("resent", conditions.resent)?;
        least("pongs", conditions.pongs)?;
        // Only commands that reached the server move the player in its snapshots.
        least("walked", 3.0)?;
        least("sent", FRAMES / 4.0)?;
        if of("unacknowledged")? + of("malformed")? > 0.0 {
            bail!("a message did not arrive, or could not be decoded");
        }
        of("stack")
    }

    /// Checks that the board has every object in sight by replication, as the seed defines it, and walks among them.
    fn replicated(&self, network: Option<&str>, updates: f64) -> Result<()> {
        let more = network.map_or(vec![], |network| vec!["--simulate", network]);
        let server = self.serve("127.0.0.1:0", &more)?;
        let raknet = at(&server.first_line);
        let arguments = [raknet, format!("seed={SEED}")];
        self.shell.note(format_args!("mcu: replication {}", arguments.join(" ")));
        let machine = Machine::start(self.shell, &self.replication, &arguments, &[], LIMIT)?;
        let report = machine.succeed()?;
        at_least(&report, "objects", 100.0)?;
        at_least(&report, "walked", 2.0)?;
        at_least(&report, "updates", updates)?;
        let of = |name| report.number_of("session=1", name);
        if of("wrong")? + of("malformed")? > 0.0 {
            bail!("an object differed from that of the server, or an update could not be decoded");
        }
        Ok(())
    }

    /// A ping finds the server. QEMU's network does not forward broadcasts, so it is sent to the host.
    fn found(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let raknet = server.first_line.rsplit(':').next().unwrap_or_default();
        let search = format!("ping=10.0.2.2:{raknet}");
        let report = self.start(&search, &["sessions=1", "frames=30"], &[])?.succeed()?;
        at_least(&report, "snapshots", 1.0)
    }

    /// A server is killed and replaced.
    fn restart(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let address = server.address.clone();
        let mut machine = self.start(&at(&address), &["sessions=2", "frames=60"], &[])?;
        machine.wait_for("joined as player")?;
        server.kill();
        machine.wait_for("session 1:")?;
        let _server = self.serve(&address, &[])?;
        second_game(machine)
    }

    /// A network link goes down and comes up again.
    fn link_loss(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let mut link = NetworkLink::new();
        let options = ["-monitor", &link.option()];
        let mut machine = self.start(&at(&server.address), &["sessions=2", "frames=60"], &options)?;
        machine.wait_for("joined as player")?;
        link.take_down()?;
        machine.wait_for("session 1:")?;
        link.bring_up()?;
        second_game(machine)
    }

    /// Without a server, the player reports that and retries.
    fn no_server(&self) -> Result<()> {
        let deaf = UdpSocket::bind("127.0.0.1:0").context("there is no free port")?;
        let mut machine = self.start(&at(&deaf.local_addr()?.to_string()), &[], &[])?;
        machine.wait_for("the server does not answer")?;
        machine.wait_for("the server does not answer")
    }

    fn serve(&self, listen: &str, more: &[&str]) -> Result<Service> {
        let own = ["--listen", listen, "--listen-raknet", "127.0.0.1:0", "--seed", SEED];
        let args: Vec<_> = own.iter().chain(more).copied().collect();
        Service::start(self.shell, "the game server", &self.server, &args)
    }

    fn start(&self, search: &str, arguments: &[&str], qemu: &[&str]) -> Result<Machine> {
        let all: Vec<_> = [search].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        self.shell.note(format_args!("mcu: player {}", all.join(" ")));
        Machine::start(self.shell, &self.firmware, &all, qemu, LIMIT)
    }
}

/// The player returns without a reset.
fn second_game(machine: Machine) -> Result<()> {
    let report = machine.succeed()?;
    let snapshots = report.number_of("session=2", "snapshots")?;
    let has_both_games = report.says("session 1: Disconnected") && report.says("session 2: Enough");
    if snapshots < 1.0 || !has_both_games {
        bail!("the first game was not ended externally, or there was no second one");
    }
    Ok(())
}

fn at_least(report: &Report, name: &str, least: f64) -> Result<()> {
    let number = report.number_of("session=1", name)?;
    if number < least {
        bail!("the player reported {name}={number}, expected at least {least}");
    }
    Ok(())
}
