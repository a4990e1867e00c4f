//! Scenarios that the firmware in QEMU must survive.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::link::NetworkLink;
use super::server_key::ServerKey;
use xtask::mcu::{Machine, Report};
use xtask::process::describe;
use xtask::service::Service;
use xtask::shell::Shell;

/// Time limit of a scenario; the firmware itself gives up earlier.
const LIMIT: Duration = Duration::from_secs(300);
/// A third of all datagrams is lost; others are reordered or duplicated.
const BAD_NETWORK: &str = "loss=30%,latency=2ms,jitter=4ms,reorder=10%,duplicate=2%,seed=1";

/// The programs on the host.
pub(crate) struct Scenarios<'a> {
    pub(crate) shell: &'a Shell,
    pub(crate) firmware: PathBuf,
    /// The firmware with secure connections.
    pub(crate) secure: PathBuf,
    /// The single-file example.
    pub(crate) quickstart: PathBuf,
    pub(crate) rakwire: PathBuf,
    pub(crate) peers: PathBuf,
}

/// The results of a run against a working server.
pub(crate) struct Exchange {
    pub(crate) round_trips: f64,
    pub(crate) rtt_us_median: f64,
    pub(crate) loss_percent: f64,
    pub(crate) stack: f64,
}

impl Exchange {
    fn of(report: &Report) -> Result<Self> {
        let (datagrams, lost) = (report.number("datagrams")?, report.number("lost")?);
        Ok(Self {
            round_trips: report.number("round_trips")?,
            rtt_us_median: report.number("rtt_us_median")?,
            loss_percent: 100.0 * lost / datagrams.max(1.0),
            stack: report.number("stack")?,
        })
    }
}

/// The other RakNet servers: the program in `interop/`, the protocol version, and whether a message of many parts is
/// returned whole (one echoes the parts as they arrive).
pub(crate) const FOREIGN: [(&str, u8); 3] = [("cpp-peer", 6), ("rust-raknet-peer", 10), ("python-peer", 11)];

impl Scenarios<'_> {
    /// Makes 2,000 round trips, and sends 20 KB in parts both ways.
    pub(crate) fn clean(&self) -> Result<Exchange> {
        let server = self.serve("127.0.0.1:0", &[])?;
        self.exchange(&server, &["count=2000", "large=3"])
    }

    /// The same over a network that loses almost every third datagram.
    pub(crate) fn lossy(&self) -> Result<Exchange> {
        let server = self.serve("127.0.0.1:0", &["--simulate", BAD_NETWORK])?;
        has_lost(self.exchange(&server, &["count=200", "large=1", "timeout=60"])?)
    }

    /// Repeats the exchange with a server that requires secure connections and has the key that the board trusts. The
    /// board must refuse another server, which has another key.
    pub(crate) fn secure(&self) -> Result<Exchange> {
        let key = ServerKey::generate(self.shell, &self.rakwire)?;
        let server = self.serve("127.0.0.1:0", &["--secure", key.file()?, "--simulate", BAD_NETWORK])?;
        let known = format!("server-key={}", key.public);
        let arguments = ["count=200", "large=1", "timeout=60", &known];
        let exchange = has_lost(Exchange::of(&self.start_secure(&server.address, &arguments)?.succeed()?)?)?;
        drop(key);
        let other = ServerKey::generate(self.shell, &self.rakwire)?;
        let machine = self.start_secure(&server.address, &[&format!("server-key={}", other.public)])?;
        is_refused(machine, "the server has another public key")?;
        Ok(exchange)
    }

    /// Makes round trips with another RakNet server.
    pub(crate) fn foreign(&self, (name, protocol): (&'static str, u8)) -> Result<Exchange> {
        let number = protocol.to_string();
        let program = self.peers.join(name);
        let args = ["server", "--port", "0", "--protocol", &number];
        let server = Service::start(self.shell, name, &program, &args)?;
        self.exchange(&server, &["count=500", "large=1", &format!("protocol={protocol}")])
    }

    /// Uses a fixed address instead of DHCP.
    pub(crate) fn fixed_address(&self) -> Result<Exchange> {
        let server = self.serve("127.0.0.1:0", &[])?;
        self.exchange(&server, &["count=50", "large=0", "network=fixed"])
    }

    /// Connects to a server with another protocol version than the first that the firmware announces.
    pub(crate) fn other_version(&self) -> Result<Exchange> {
        let server = self.serve("127.0.0.1:0", &["--protocol", "9"])?;
        self.exchange(&server, &["count=50", "large=0"])
    }

    /// Makes round trips in real time.
    pub(crate) fn soak(&self, minutes: u64) -> Result<Exchange> {
        let server = self.serve("127.0.0.1:0", &["--simulate", "loss=1%,latency=1ms,jitter=2ms,seed=2"])?;
        let seconds = format!("seconds={}", minutes * 60);
        let limit = LIMIT + Duration::from_secs(minutes * 60);
        let firmware = &self.firmware;
        Exchange::of(&self.start_with(firmware, &server.address, "soak", &[&seconds], &[], limit)?.succeed()?)
    }

    /// Sends more reliable messages than the memory holds.
    pub(crate) fn full_pool(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let report = self.start(&server.address, "full-pool", &[])?.succeed()?;
        if report.number("fitting")? >= report.number("messages")? {
            bail!("the pool was never full");
        }
        Ok(())
    }

    /// A server is killed and replaced.
    pub(crate) fn restart(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let address = server.address.clone();
        let arguments = ["sessions=2", "count=100", "timeout=3"];
        let mut machine = self.start(&address, "restart", &arguments)?;
        machine.wait_for("SESSION 1")?;
        server.kill();
        machine.wait_for("session 1:")?;
        let _server = self.serve(&address, &[])?;
        machine.wait_for("SESSION 2")?;
        let report = machine.succeed()?;
        if report.number("sessions")? < 2.0 {
            bail!("there was no second session");
        }
        Ok(())
    }

    /// A network link goes down and comes up again.
    pub(crate) fn link_loss(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let mut link = NetworkLink::new();
        let arguments = ["sessions=2", "count=100", "timeout=3"];
        let (firmware, option) = (&self.firmware, link.option());
        let monitor = ["-monitor", &option];
        let mut machine =
            self.start_with(firmware, &server.address, "restart", &arguments, &monitor, LIMIT)?;
        machine.wait_for("SESSION 1")?;
        link.take_down()?;
        machine.wait_for("link_up = false")?;
        machine.wait_for("session 1:")?;
        link.bring_up()?;
        machine.wait_for("SESSION 2")?;
        machine.succeed()?;
        Ok(())
    }

    /// Runs the telemetry example.
    pub(crate) fn telemetry(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let report = self.start(&server.address, "telemetry", &["count=300"])?.succeed()?;
        // The last messages may still be in flight.
        if report.number("others")? < 0.5 * report.number("values")? {
            bail!("too few of the values came back");
        }
        Ok(())
    }

    /// Runs the single-file example of the boards: its messages are echoed.
    pub(crate) fn quickstart(&self) -> Result<()> {
        let server = self.serve("127.0.0.1:0", &[])?;
        let arguments = [xtask::mcu::at(&server.address)];
        let mut machine = Machine::start(self.shell, &self.quickstart, &arguments, &[], LIMIT)?;
        machine.wait_for("sent message 2")?;
        machine.wait_for("received [0x90, 0x02]")
    }

    /// With missing and unsuitable servers the firmware reports the error and ends without a panic.
    pub(crate) fn wrong_servers(&self) -> Result<()> {
        let deaf = UdpSocket::bind("127.0.0.1:0").context("there is no free port")?;
        is_refused(
            self.start(&deaf.local_addr()?.to_string(), "exchange", &[])?,
            "the server does not answer",
        )?;

        let parrot = echo()?;
        let address = parrot.local_addr()?.to_string();
        is_refused(self.start(&address, "exchange", &[])?, "the server does not answer")?;
        // An empty datagram ends the thread.
        parrot.send_to(&[], &address)?;

        let guarded = self.serve("127.0.0.1:0", &["--password", "friends"])?;
        is_refused(self.start(&guarded.address, "exchange", &[])?, "the server requires another password")
    }

    fn exchange(&self, server: &Service, arguments: &[&str]) -> Result<Exchange> {
        Exchange::of(&self.start(&server.address, "exchange", arguments)?.succeed()?)
    }

    fn serve(&self, listen: &str, more: &[&str]) -> Result<Service> {
        let args: Vec<_> = ["echo", "--listen", listen].iter().chain(more).copied().collect();
        Service::start(self.shell, "the server", &self.rakwire, &args)
    }

    fn start(&self, address: &str, scenario: &str, arguments: &[&str]) -> Result<Machine> {
        self.start_with(&self.firmware, address, scenario, arguments, &[], LIMIT)
    }

    fn start_secure(&self, address: &str, arguments: &[&str]) -> Result<Machine> {
        self.start_with(&self.secure, address, "exchange", arguments, &[], LIMIT)
    }

    fn start_with(
        &self,
        firmware: &Path,
        address: &str,
        scenario: &str,
        arguments: &[&str],
        qemu: &[&str],
        limit: Duration,
    ) -> Result<Machine> {
        let port = address.rsplit(':').next().unwrap_or_default();
        let own = [format!("scenario={scenario}"), format!("port={port}")];
        let all: Vec<_> = own.into_iter().chain(arguments.iter().map(|word| (*word).to_owned())).collect();
        self.shell.note(format_args!("mcu: {}", all.join(" ")));
        Machine::start(self.shell, firmware, &all, qemu, limit)
    }
}

/// Returns a socket on which a thread returns every datagram, until an empty one.
pub(super) fn echo() -> Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0").context("there is no free port")?;
    let echo = socket.try_clone()?;
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            if length == 0 || echo.send_to(&buffer[..length], from).is_err() {
                return;
            }
        }
    });
    Ok(socket)
}

/// Fails unless the simulated network has lost datagrams.
fn has_lost(exchange: Exchange) -> Result<Exchange> {
    if exchange.loss_percent < 5.0 {
        bail!("only {:.1} % were lost: the simulated network had no effect", exchange.loss_percent);
    }
    Ok(exchange)
}

/// Fails unless the firmware has reported this reason and ended.
fn is_refused(machine: Machine, reason: &str) -> Result<()> {
    let report = machine.finish()?;
    if report.status.code() != Some(1) || !report.says(reason) {
        bail!("with an unsuitable server: {}, without {reason:?}", describe(report.status));
    }
    Ok(())
}
