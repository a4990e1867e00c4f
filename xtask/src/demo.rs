//! The demo: the snowball fight with a few bots, an echo server, the relay and the pages in one process tree.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::artifacts::{self, PAGE};
use crate::files;
use crate::log::Log;
use crate::mcu::{self, Machine};
use crate::runner;
use crate::service::Service;
use crate::setup::Need;
use crate::shell::Shell;
use crate::slow_page;
use crate::smoke;
use crate::stop;
use crate::tasks;

const DEFAULT_PORT: u16 = 8080;
/// The port number with which the system chooses a free port.
const ANY_PORT: u16 = 0;
/// The number of bots in a game before the first player joins, as an argument.
const BOTS: &str = "4";
const NO_BOTS: &str = "0";
/// The file for the key of the game server, which is new in each demo.
const KEY_FILE: &str = "target/demo/server.key";
const POLL: Duration = Duration::from_millis(50);
/// Slightly longer than the interval at which a game server reports during a measurement.
const REPORT_INTERVAL: Duration = Duration::from_millis(1_200);

/// The needs of the demo. The page comes first, so that its steps after cargo run in parallel with the build of the
/// programs.
const NEEDS: [Need; 2] = [Need::DemoPage, Need::DemoPrograms];
const SMOKE_NEEDS: [Need; 3] = [Need::DemoPage, Need::DemoPrograms, Need::Chromium];
/// The needs of a slow-page measurement, which uses the published page and not its development build.
const SLOW_PAGE_NEEDS: [Need; 3] = [Need::Page, Need::DemoPrograms, Need::Chromium];

/// The options of the demo, as on the command line.
pub struct Options {
    /// The requested port of the page, if any.
    pub port: Option<u16>,
    /// True to let two pages play against each other and exit.
    pub smoke: bool,
    /// True to measure a slow page instead of playing.
    pub slow_page: bool,
    /// Milliseconds of every 100 for which the main thread of the slow page is blocked.
    pub blocked: u8,
    /// Duration of each measurement in seconds.
    pub seconds: u16,
    /// Number of measurements per case.
    pub runs: u32,
    /// True to add a player on an emulated microcontroller.
    pub mcu: bool,
}

/// Runs the demo until it is interrupted, or until its test is complete.
pub fn run(shell: &Shell, options: &Options) -> Result<()> {
    let started = Instant::now();
    if options.smoke {
        // Keeps the standard output free, because its last line is the result.
        let quiet = shell.with_free_stdout();
        if options.slow_page {
            tasks::set_up(&quiet, &SLOW_PAGE_NEEDS)?;
            return measure_slow_page(&quiet, options).map(|line| shell.print(line));
        }
        tasks::set_up(&quiet, &SMOKE_NEEDS)?;
        shell.print(smoke_test(&quiet, &smoke::WAYS)?);
        return Ok(());
    }
    let port = free_port(options.port, DEFAULT_PORT)?;
    let more = if options.mcu { &mcu::PLAYER_NEEDS[..] } else { &[] };
    tasks::set_up(shell, &[&NEEDS[..], more].concat())?;
    let mut demo = Demo::start(shell, port, BOTS, &[])?;
    let mut board = if options.mcu { Some(mcu::player(shell, &demo.game.address)?) } else { None };
    let (game, url) = (demo.game_url(), demo.url());
    println!("\n    Play at  {game}\n    Echoes   {url}/echo.html\n\n    Press Ctrl-C to stop.\n");
    let (took, busy) = (started.elapsed().as_secs_f64(), runner::busy()?.as_secs_f64());
    println!("Ready after {took:.0} s ({busy:.0} CPU seconds).");
    while !stop::interrupted() {
        demo.check()?;
        board.as_mut().map_or(Ok(()), Machine::check)?;
        thread::sleep(POLL);
    }
    eprintln!("\nStopping the demo.");
    Ok(())
}

/// Lets pages play the built demo once with each transport, and returns the results as a line of JSON.
pub fn smoke_test(shell: &Shell, ways: &[&str]) -> Result<String> {
    play(shell, BOTS, "--look")?;
    play(shell, NO_BOTS, &format!("--ways={}", ways.join(",")))
}

/// Measures a slow page in all cases, each in its own demo, and returns a line of JSON.
fn measure_slow_page(shell: &Shell, options: &Options) -> Result<String> {
    let Options { blocked, seconds, .. } = *options;
    let mut rows = Vec::new();
    for (run, case) in (1..=options.runs).flat_map(|run| slow_page::cases().map(move |case| (run, case))) {
        let path = shell.path(slow_page::LOG);
        let logged = shell.with_log(Log::create(&path)?);
        let mut demo = Demo::start(&logged, ANY_PORT, NO_BOTS, slow_page::server(case))?;
        let pages = slow_page::drive(&logged, demo.url(), case, blocked, seconds);
        demo.check()?;
        // The relay reports its counters when it ends, and the server once per second.
        thread::sleep(REPORT_INTERVAL);
        drop(demo);
        let said = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", slow_page::LOG))?;
        let row = slow_page::row(case, run, &pages?, &said)?;
        shell.note(&row);
        rows.push(row);
    }
    Ok(json!({ "blocked_ms_of_100": blocked, "seconds": seconds, "rows": rows }).to_string())
}

/// Starts a demo with `bots`, and runs the page test against it. `mode` is an option of web/tests/smoke.mjs.
fn play(shell: &Shell, bots: &str, mode: &str) -> Result<String> {
    let mut demo = Demo::start(shell, ANY_PORT, bots, &[])?;
    let outcome = smoke::drive(shell, &demo.game_url(), &demo.metrics, mode);
    // Reports a server that has died first, because that explains the failure of a page.
    demo.check()?;
    outcome
}

/// Returns the requested port, or fails if it is taken, before anything is compiled. Without a request, returns the
/// default port, or 0 if that is taken.
fn free_port(requested: Option<u16>, default: u16) -> Result<u16> {
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    match requested {
        Some(port) if !is_free(port) => {
            bail!("port {port} is taken; pass another --port, or omit it to use a free one")
        }
        Some(port) => Ok(port),
        None if is_free(default) => Ok(default),
        None => {
            eprintln!("Port {default} is taken: using a free one.");
            Ok(ANY_PORT)
        }
    }
}

/// The running servers. Dropping it stops the relay first.
struct Demo {
    relay: Service,
    game: Service,
    echo: Service,
    /// The key hash of the game server, in the form used in links.
    key: String,
    /// The address of the relay's metrics.
    metrics: String,
}

impl Demo {
    /// Starts the built programs, with more arguments for the game server.
    fn start(shell: &Shell, port: u16, bots: &str, more: &[&str]) -> Result<Self> {
        let [relay, game, echo] = artifacts::built_demo_programs(shell)?;
        let any = "127.0.0.1:0";
        let file = free_key_file(shell)?;
        let secure = ["--secure", &*file, "--new-key"];
        let args = [&["--listen", any, "--listen-raknet", any, "--bots", bots], &secure[..], more].concat();
        let game = Service::start(shell, "the game server", &game, &args)?;
        let raknet = game.first_line.rsplit(' ').next().unwrap_or_default();
        let key = key_hash(&game.first_line).context("the game server printed no key hash")?.to_owned();
        let echo = Service::start(shell, "the echo server", &echo, &["--listen", any])?;
        let targets = [
            format!("snowfight={},kind=game-protocol", game.address),
            format!("snowfight-raknet={raknet},kind=raknet"),
            format!("echo={},kind=raknet", echo.address),
        ];
        let page = shell.path(PAGE);
        let page = files::text(&page)?;
        let listen = format!("127.0.0.1:{port}");
        let mut args = vec!["--listen", &*listen, "--serve", page, "--admin-listen", any];
        args.extend(targets.iter().flat_map(|target| ["--target", target]));
        let mut relay = Service::start(shell, "the relay", &relay, &args)?;
        let admin = relay.find("monitoring on ")?;
        Ok(Self { relay, game, echo, key, metrics: format!("{admin}/metrics") })
    }

    /// Returns the URL of the game, which contains the server's key hash.
    fn game_url(&self) -> String {
        format!("{}/?key={}", self.url(), self.key)
    }

    fn url(&self) -> &str {
        &self.relay.address
    }

    fn check(&mut self) -> Result<()> {
        self.game.check()?;
        self.echo.check()?;
        self.relay.check()
    }
}

/// Removes the key file of an earlier demo and returns its path. The game server creates the file.
fn free_key_file(shell: &Shell) -> Result<String> {
    let file = shell.path(KEY_FILE);
    files::remove_file(&file)?;
    file.parent().map_or(Ok(()), files::create_folder)?;
    Ok(files::text(&file)?.to_owned())
}

/// Returns the 32 characters of the key hash in the first line of the game server.
fn key_hash(line: &str) -> Option<&str> {
    let (_, hash) = line.split_once("rakwire-key-hash-1:")?;
    hash.split(',').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_an_error_only_if_it_was_requested() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(free_port(Some(port), 1).unwrap_err().to_string().contains("is taken"));
        assert_eq!(free_port(None, port).unwrap(), ANY_PORT);
    }

    #[test]
    fn the_key_hash_is_read_from_the_first_line() {
        let line =
            "listening on 127.0.0.1:1 and, with RakNet and the key rakwire-key-hash-1:abc, on 127.0.0.1:2";
        assert_eq!(key_hash(line), Some("abc"));
        assert_eq!(key_hash("listening on 127.0.0.1:1 and, with RakNet, on 127.0.0.1:2"), None);
    }
}
