//! Scenarios that the firmware in QEMU must survive.

use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use xtask::files;
use xtask::firmware;
use xtask::mcu::{Machine, NETWORK, Report, at};
use xtask::process::describe;
use xtask::service::Service;
use xtask::shell::Shell;
use xtask::targets::THUMB_M4;

/// Time limit of a scenario; the firmware itself gives up earlier.
const LIMIT: Duration = Duration::from_secs(600);
/// The options of a simulated network that loses 30 % of the datagrams, and reorders and duplicates others.
const BAD_NETWORK: &str = "loss=30%,latency=2ms,jitter=4ms,reorder=10%,duplicate=2%,seed=1";
const ANY: &str = "127.0.0.1:0";

/// The firmware, and the programs on the host.
pub(crate) struct Host<'a> {
    pub(crate) shell: &'a Shell,
    /// The folder with the builds of firmware.
    pub(crate) firmware: PathBuf,
    pub(crate) rakwire: PathBuf,
    pub(crate) snowfight: PathBuf,
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

    /// Fails unless the simulated network has lost datagrams.
    fn with_losses(self) -> Result<Self> {
        if self.loss_percent < 5.0 {
            bail!("only {:.1} % of the datagrams were lost: nothing was simulated", self.loss_percent);
        }
        Ok(self)
    }
}

/// The other RakNet servers: the program in `interop/`, and the protocol version.
pub(crate) const FOREIGN: [(&str, &str); 3] =
    [("cpp-peer", "6"), ("rust-raknet-peer", "10"), ("python-peer", "11")];

impl Host<'_> {
    /// Starts a program of the firmware.
    pub(super) fn start(
        &self,
        program: &str,
        arguments: &[&str],
        qemu: &[&str],
        limit: Duration,
    ) -> Result<Machine> {
        self.shell.note(format_args!("mcu: {program} {}", arguments.join(" ")));
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let firmware = firmware::built(&self.firmware, THUMB_M4, program)?;
        Machine::start(self.shell, &firmware, &arguments, qemu, limit)
    }

    fn scenario(&self, name: &str, address: &str, arguments: &[&str], qemu: &[&str]) -> Result<Machine> {
        self.scenario_of("scenarios", name, address, arguments, qemu)
    }

    fn scenario_of(
        &self,
        program: &str,
        name: &str,
        address: &str,
        arguments: &[&str],
        qemu: &[&str],
    ) -> Result<Machine> {
        let port = format!("port={}", address.rsplit(':').next().unwrap_or_default());
        let own = [&format!("scenario={name}"), &*port];
        self.start(program, &[&own[..], arguments].concat(), qemu, LIMIT)
    }

    fn echo(&self, listen: &str, more: &[&str]) -> Result<Service> {
        Service::start(
            self.shell,
            "the server",
            &self.rakwire,
            &[&["echo", "--listen", listen], more].concat(),
        )
    }

    /// Exchanges messages with a server that has these arguments.
    fn exchange(&self, server: &[&str], arguments: &[&str]) -> Result<Exchange> {
        let server = self.echo(ANY, server)?;
        Exchange::of(&self.scenario("exchange", &server.address, arguments, &[])?.succeed()?)
    }

    /// Makes 2,000 round trips, and sends 20 KB in parts in both directions.
    pub(crate) fn clean(&self) -> Result<Exchange> {
        self.exchange(&[], &["count=2000", "large=3"])
    }

    /// Makes 200 round trips, and sends 20 KB in parts, over a network that loses 30 % of the datagrams.
    pub(crate) fn lossy(&self) -> Result<Exchange> {
        self.exchange(&["--simulate", BAD_NETWORK], &["count=200", "large=1", "timeout=60"])?.with_losses()
    }

    /// Uses a fixed address instead of DHCP.
    pub(crate) fn fixed_address(&self) -> Result<Exchange> {
        self.exchange(&[], &["count=50", "large=0", "network=fixed"])
    }

    /// Connects to a server with a protocol version other than the first that the firmware announces.
    pub(crate) fn other_version(&self) -> Result<Exchange> {
        self.exchange(&["--protocol", "9"], &["count=50", "large=0"])
    }

    /// Repeats the exchange with a server that requires secure connections and has the key that the board trusts. The
    /// board must refuse another server, which has another key.
    pub(crate) fn secure(&self) -> Result<Exchange> {
        let (file, key) = self.new_key("own")?;
        let server = self.echo(ANY, &["--secure", &file, "--simulate", BAD_NETWORK])?;
        let exchange = |arguments: &[&str]| {
            self.scenario_of("secure-scenarios", "exchange", &server.address, arguments, &[])
        };
        let arguments = ["count=200", "large=1", "timeout=60", &key];
        let good = Exchange::of(&exchange(&arguments)?.succeed()?)?.with_losses()?;
        is_refused(exchange(&[&self.new_key("other")?.1])?, "the server has another public key")?;
        Ok(good)
    }

    /// Creates a key with `rakwire keygen`. Returns its file and the firmware argument with the public key.
    fn new_key(&self, name: &str) -> Result<(String, String)> {
        let file = self.shell.path(&format!("target/mcu/{name}.key"));
        files::remove_file(&file)?;
        file.parent().map_or(Ok(()), files::create_folder)?;
        let output = self.shell.cmd(files::text(&self.rakwire)?, ["keygen", files::text(&file)?]).output()?;
        let public = output.stdout.lines().next().filter(|_| output.status.success());
        Ok((
            files::text(&file)?.to_owned(),
            format!("server-key={}", public.context("rakwire keygen printed no key")?),
        ))
    }

    /// Makes round trips with another RakNet server.
    pub(crate) fn foreign(&self, (name, protocol): (&'static str, &str)) -> Result<Exchange> {
        let args = ["server", "--port", "0", "--protocol", protocol];
        let server = Service::start(self.shell, name, &self.peers.join(name), &args)?;
        let arguments = ["count=500", "large=1", &format!("protocol={protocol}")];
        Exchange::of(&self.scenario("exchange", &server.address, &arguments, &[])?.succeed()?)
    }

    /// Makes round trips over a lossy network for `minutes` of real time.
    pub(crate) fn soak(&self, minutes: u64) -> Result<Exchange> {
        let server = self.echo(ANY, &["--simulate", "loss=1%,latency=1ms,jitter=2ms,seed=2"])?;
        let port = server.address.rsplit(':').next().unwrap_or_default();
        let arguments = ["scenario=soak", &format!("port={port}"), &format!("seconds={}", minutes * 60)];
        Exchange::of(
            &self
                .start("scenarios", &arguments, &[], LIMIT + Duration::from_secs(minutes * 60))?
                .succeed()?,
        )
    }

    /// Runs the scenarios that return no measurements.
    pub(crate) fn others(&self) -> Result<()> {
        // More reliable messages than the memory holds.
        let server = self.echo(ANY, &[])?;
        let report = self.scenario("full-pool", &server.address, &[], &[])?.succeed()?;
        if report.number("fitting")? >= report.number("messages")? {
            bail!("the pool was never full");
        }
        // Runs the telemetry example. The echoes of its last messages may still be in transit.
        let report = self.scenario("telemetry", &server.address, &["count=300"], &[])?.succeed()?;
        if report.number("others")? < 0.5 * report.number("values")? {
            bail!("too few of the values were echoed");
        }
        // Runs the single-file example of the boards, and checks that its messages are echoed.
        let mut machine = self.start("quickstart", &[&at(&server.address)], &[], LIMIT)?;
        machine.wait_for("sent message 2")?;
        machine.wait_for("received [0x90, 0x02]")?;
        drop(server);
        self.restart()?;
        self.link_loss()?;
        self.wrong_servers()
    }

    /// Kills the server and starts another one. The firmware must open a second session.
    fn restart(&self) -> Result<()> {
        let server = self.echo(ANY, &[])?;
        let address = server.address.clone();
        let mut machine =
            self.scenario("restart", &address, &["sessions=2", "count=100", "timeout=3"], &[])?;
        machine.wait_for("SESSION 1")?;
        server.kill();
        machine.wait_for("session 1:")?;
        let _server = self.echo(&address, &[])?;
        machine.wait_for("SESSION 2")?;
        if machine.succeed()?.number("sessions")? < 2.0 {
            bail!("the firmware opened no second session after the restart of the server");
        }
        Ok(())
    }

    /// Takes the network link down and up again. The firmware must reconnect.
    fn link_loss(&self) -> Result<()> {
        let server = self.echo(ANY, &[])?;
        let mut link = NetworkLink::new();
        let arguments = ["sessions=2", "count=100", "timeout=3"];
        let mut machine =
            self.scenario("restart", &server.address, &arguments, &["-monitor", &link.option()])?;
        machine.wait_for("SESSION 1")?;
        link.set("off")?;
        machine.wait_for("link_up = false")?;
        machine.wait_for("session 1:")?;
        link.set("on")?;
        machine.wait_for("SESSION 2")?;
        machine.succeed().map(drop)
    }

    /// Checks that the firmware reports missing and unsuitable servers, and ends without a panic.
    fn wrong_servers(&self) -> Result<()> {
        let exchange = |address: &str| self.scenario("exchange", address, &[], &[]);
        let deaf = UdpSocket::bind(ANY).context("there is no free port")?;
        is_refused(exchange(&deaf.local_addr()?.to_string())?, "the server does not answer")?;
        let parrot = parrot()?;
        let address = parrot.local_addr()?.to_string();
        is_refused(exchange(&address)?, "the server does not answer")?;
        // Ends the thread of the socket with an empty datagram.
        parrot.send_to(&[], &address)?;
        let guarded = self.echo(ANY, &["--password", "friends"])?;
        is_refused(exchange(&guarded.address)?, "the server requires another password")
    }
}

/// The network link of an emulated machine, controlled through QEMU's monitor.
pub(super) struct NetworkLink {
    monitor: PathBuf,
    stream: Option<UnixStream>,
}

impl NetworkLink {
    pub(super) fn new() -> Self {
        let monitor = std::env::temp_dir().join(format!("rakwire-monitor-{}", std::process::id()));
        Self { monitor, stream: None }
    }

    /// Returns the value of QEMU's `-monitor`.
    pub(super) fn option(&self) -> String {
        format!("unix:{},server=on,wait=off", self.monitor.display())
    }

    /// Sets it `on` or `off`.
    pub(super) fn set(&mut self, state: &str) -> Result<()> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => UnixStream::connect(&self.monitor).context("QEMU's monitor cannot be reached")?,
        };
        writeln!(self.stream.insert(stream), "set_link {NETWORK} {state}")
            .context("QEMU's monitor cannot be written to")
    }
}

/// Returns a socket on which a thread echoes every datagram, until it receives an empty one.
pub(super) fn parrot() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(ANY).context("there is no free port")?;
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

/// Checks that the firmware reports this reason and ends.
fn is_refused(machine: Machine, reason: &str) -> Result<()> {
    let report = machine.finish()?;
    if report.status.code() != Some(1) || !report.says(reason) {
        bail!("the firmware did not refuse the server with {reason:?}: {}", describe(report.status));
    }
    Ok(())
}
