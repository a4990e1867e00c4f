//! The player of the snowball fight in QEMU, in games on a server on the host.

use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::scenarios::{Host, NetworkLink};
use xtask::mcu::{Machine, Report, at};
use xtask::service::Service;

/// Time limit of a game.
const LIMIT: Duration = Duration::from_secs(600);
/// The number of frames of a game, which takes ten seconds.
const FRAMES: f64 = 300.0;
/// The seed of the world.
const SEED: &str = "7";
const ANY: &str = "127.0.0.1:0";
/// The options of a server that loses 20 % of the datagrams in each direction, and reorders and duplicates others.
const BAD_NETWORK: [&str; 2] =
    ["--simulate", "loss=20%,latency=2ms,jitter=4ms,reorder=10%,duplicate=2%,seed=1"];

impl Host<'_> {
    /// Plays every game; returns the maximum stack use of the player in bytes.
    pub(crate) fn games(&self) -> Result<f64> {
        // The minimum results of a player in ten seconds on a busy machine: snapshots, resent messages, pongs. On the bad
        // network, one in three pings or its pong is lost.
        let clean = self.game(&[], [100.0, 0.0, 4.0])?;
        let lossy = self.game(&BAD_NETWORK, [40.0, 10.0, 1.0])?;
        self.replicated(&[], 30.0)?;
        self.replicated(&BAD_NETWORK, 15.0)?;
        self.found()?;
        self.server_restart()?;
        self.link_loss_in_game()?;
        self.no_server()?;
        Ok(clean.max(lossy))
    }

    /// Joins, receives snapshots and moves. Every reliable message arrives.
    fn game(&self, network: &[&str], [snapshots, resent, pongs]: [f64; 3]) -> Result<f64> {
        let server = self.serve(ANY, network)?;
        let report =
            self.play(&at(&server.address), &["sessions=1", &format!("frames={FRAMES}")], &[])?.succeed()?;
        // Only commands that reached the server move the player in its snapshots.
        for (name, least) in [
            ("frames", FRAMES),
            ("entities", 300.0),
            ("snapshots", snapshots),
            ("resent", resent),
            ("pongs", pongs),
            ("walked", 3.0),
            ("sent", FRAMES / 4.0),
        ] {
            at_least(&report, name, least)?;
        }
        has_none(&report, ["unacknowledged", "malformed"])?;
        report.number_of("session=1", "stack")
    }

    /// Checks that the board receives the objects in its view as the seed defines them, and that its player walks.
    fn replicated(&self, network: &[&str], updates: f64) -> Result<()> {
        let server = self.serve(ANY, network)?;
        let arguments = [&*at(&server.first_line), &format!("seed={SEED}")];
        let report = self.start("replication", &arguments, &[], LIMIT)?.succeed()?;
        at_least(&report, "objects", 100.0)?;
        at_least(&report, "walked", 2.0)?;
        at_least(&report, "updates", updates)?;
        has_none(&report, ["wrong", "malformed"])
    }

    /// Checks that a ping finds the server. It is sent to the host, because QEMU forwards no broadcasts.
    fn found(&self) -> Result<()> {
        let server = self.serve(ANY, &[])?;
        let search = at(&server.first_line).replacen("server=", "ping=", 1);
        let report = self.play(&search, &["sessions=1", "frames=30"], &[])?.succeed()?;
        at_least(&report, "snapshots", 1.0)
    }

    /// Kills the server and starts another one. The player must join again.
    fn server_restart(&self) -> Result<()> {
        let server = self.serve(ANY, &[])?;
        let address = server.address.clone();
        let mut machine = self.play(&at(&address), &["sessions=2", "frames=60"], &[])?;
        machine.wait_for("joined as player")?;
        server.kill();
        machine.wait_for("session 1:")?;
        let _server = self.serve(&address, &[])?;
        second_game(machine)
    }

    /// Takes the network link down for a while. The player must join again.
    fn link_loss_in_game(&self) -> Result<()> {
        let server = self.serve(ANY, &[])?;
        let mut link = NetworkLink::new();
        let arguments = ["sessions=2", "frames=60"];
        let mut machine = self.play(&at(&server.address), &arguments, &["-monitor", &link.option()])?;
        machine.wait_for("joined as player")?;
        link.set("off")?;
        machine.wait_for("session 1:")?;
        link.set("on")?;
        second_game(machine)
    }

    /// Checks that the player reports a missing server and retries.
    fn no_server(&self) -> Result<()> {
        let deaf = UdpSocket::bind(ANY).context("there is no free port")?;
        let mut machine = self.play(&at(&deaf.local_addr()?.to_string()), &[], &[])?;
        machine.wait_for("the server does not answer")?;
        machine.wait_for("the server does not answer")
    }

    fn serve(&self, listen: &str, more: &[&str]) -> Result<Service> {
        let own = ["--listen", listen, "--listen-raknet", ANY, "--seed", SEED];
        Service::start(self.shell, "the game server", &self.snowfight, &[&own[..], more].concat())
    }

    fn play(&self, search: &str, arguments: &[&str], qemu: &[&str]) -> Result<Machine> {
        self.start("player", &[&[search], arguments].concat(), qemu, LIMIT)
    }
}

/// Checks that the player has joined a second game without a reset.
fn second_game(machine: Machine) -> Result<()> {
    let report = machine.succeed()?;
    let snapshots = report.number_of("session=2", "snapshots")?;
    let has_both_games = report.says("session 1: Disconnected") && report.says("session 2: Enough");
    if snapshots < 1.0 || !has_both_games {
        bail!("the player was not disconnected from the first game, or joined no second game");
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

fn has_none(report: &Report, names: [&str; 2]) -> Result<()> {
    let found = names.into_iter().find(|name| !matches!(report.number_of("session=1", name), Ok(0.0)));
    found.map_or(Ok(()), |name| bail!("the player reported messages or objects that are {name}"))
}
