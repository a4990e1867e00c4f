//! Cases, their context and their outcomes.

use crate::check::skip;
use crate::check::{Check, Stop, Timing};
use crate::link::{Link, Trace};
use crate::model::Fault;
use crate::start::{self, Listening, Started};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// How binding a requirement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Other peers depend on it.
    Must,
    /// Good peers do it; a deviation fails only with `--strict`.
    Should,
}

pub(crate) const MUST: Level = Level::Must;
pub(crate) const SHOULD: Level = Level::Should;

/// The peer that a case tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A server of RakNet.
    Server,
    /// A client of RakNet, which connects to the suite.
    Client,
    /// A server of the Game Protocol.
    GameServer,
    /// A server that requires the secure mode of rakwire.
    SecureServer,
}

/// The server that a case needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any server.
    Server,
    /// A server that demands cookies.
    Cookies,
    /// A server with a password that the suite was given.
    Password,
    /// A server with a known number of slots.
    Capacity,
    /// A server that sends messages of its application back.
    Echo,
    /// A client that is started by the suite.
    Start,
}

/// A row of the table of cases.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The number, which never changes: the group in hundreds, then the case.
    pub number: u16,
    /// The name.
    pub name: &'static str,
    /// How binding it is.
    pub level: Level,
    /// The anchor of the section that it checks, in the page of its role.
    pub section: &'static str,
    /// The requirement in one sentence.
    pub requirement: &'static str,
    /// The check.
    pub run: fn(&mut Context) -> Check,
    /// The fault of the built-in model that this case must find.
    pub fault: Fault,
    /// The server that it needs.
    pub needs: Needs,
    /// The peer that it tests.
    pub role: Role,
}

impl Case {
    /// A case for any server.
    pub const fn new(
        number: u16,
        name: &'static str,
        level: Level,
        section: &'static str,
        requirement: &'static str,
        run: fn(&mut Context) -> Check,
        fault: Fault,
    ) -> Self {
        Self {
            number,
            name,
            level,
            section,
            requirement,
            run,
            fault,
            needs: Needs::Server,
            role: Role::Server,
        }
    }

    /// The page that its section is in.
    #[must_use]
    pub const fn page(&self) -> &'static str {
        match self.role {
            Role::Server | Role::Client => "docs/raknet.md",
            Role::GameServer => "docs/game-protocol.md",
            Role::SecureServer => "docs/secure.md",
        }
    }

    /// The same case for a special server.
    #[must_use]
    pub const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// The same case for another peer.
    #[must_use]
    pub const fn of(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// Facts about the server that its operator gave to the suite.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The protocol version to announce.
    pub version: u8,
    /// The server echoes application messages.
    pub echo: bool,
    /// The password of the server.
    pub password: Option<String>,
    /// The number of its slots.
    pub capacity: Option<usize>,
    /// The address to which clients connect, if clients are tested.
    pub listening: Option<Listening>,
    /// A command line that starts a server for each case.
    pub server: Option<String>,
}

/// The time that a server may take until it prints its first line.
const START: Duration = Duration::from_secs(20);
/// The time that it may take from then on until it answers.
const ANSWER: Duration = Duration::from_secs(2);

/// The context of a running case.
#[derive(Debug)]
pub struct Context {
    /// The server.
    pub target: SocketAddr,
    /// Timeouts.
    pub timing: Timing,
    /// Facts about the server.
    pub options: Options,
    /// The datagrams of the case.
    pub trace: Trace,
    /// The peers that were started for the case; they end with it.
    pub(crate) started: Vec<Started>,
    /// Sockets of clients that were started elsewhere.
    pub(crate) accepted: Vec<UdpSocket>,
    sockets: usize,
}

impl Context {
    /// A context with an empty trace.
    #[must_use]
    pub fn new(target: SocketAddr, timing: Timing, options: Options) -> Self {
        Self {
            target,
            timing,
            options,
            trace: Trace::default(),
            started: Vec::new(),
            accepted: Vec::new(),
            sockets: 0,
        }
    }

    /// Opens a socket with a separate address.
    pub fn link(&mut self) -> Check<Link> {
        self.count_socket();
        Ok(Link::new(self.target, self.timing, self.trace.clone(), self.sockets)?)
    }

    /// Returns the number of the next socket.
    pub(crate) fn count_socket(&mut self) -> usize {
        self.sockets += 1;
        self.sockets
    }

    /// The password as bytes, empty without one.
    #[must_use]
    pub fn password(&self) -> Vec<u8> {
        self.options.password.clone().unwrap_or_default().into_bytes()
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The requirement held.
    Passed,
    /// The requirement was broken.
    Failed(String),
    /// The case does not apply.
    Skipped(String),
}

/// The outcome of a case, with its time and datagrams.
#[derive(Debug)]
pub struct Report {
    /// The case.
    pub case: &'static Case,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its duration.
    pub took: Duration,
    /// Its datagrams.
    pub trace: Trace,
}

impl Report {
    /// Returns whether the case counts as failed.
    #[must_use]
    pub fn counts_as_failure(&self, strict: bool) -> bool {
        matches!(self.outcome, Outcome::Failed(_)) && (strict || self.case.level == Level::Must)
    }
}

/// Runs a case against a server.
///
/// # Errors
///
/// When a socket of the suite fails.
pub fn run(case: &'static Case, target: SocketAddr, timing: Timing, options: &Options) -> io::Result<Report> {
    // Another program may take the port that was free a moment ago.
    let start = |line| start::server(line, START).or_else(|_| start::server(line, START));
    let server = options.server.as_deref().map(start).transpose()?;
    if let Some((_, address)) = server.as_ref().filter(|_| case.role != Role::GameServer) {
        start::wait_for_pong(*address, ANSWER)?;
    }
    let (started, target) = server.map_or((None, target), |(server, address)| (Some(server), address));
    let mut context = Context::new(target, timing, options.clone());
    context.started.extend(started);
    let missing = match case.needs {
        Needs::Echo if !options.echo => Some("needs a server that sends messages back (--echo)"),
        Needs::Password if options.password.is_none() => Some("needs the password (--password)"),
        Needs::Start if options.listening.as_ref().is_none_or(|listening| !listening.starts_clients()) => {
            Some("needs a client that the suite starts (--start)")
        }
        Needs::Capacity if options.capacity.is_none() => Some("needs the number of places (--capacity)"),
        _ => None,
    };
    let result = match missing {
        Some(reason) => skip(reason),
        None => (case.run)(&mut context),
    };
    context.dismiss();
    let outcome = match result {
        Ok(()) => Outcome::Passed,
        Err(Stop::Failed(reason)) => Outcome::Failed(reason),
        Err(Stop::Skipped(reason)) => Outcome::Skipped(reason),
        Err(Stop::Socket(error)) => return Err(error),
    };
    let took = context.trace.elapsed();
    Ok(Report { case, outcome, took, trace: context.trace })
}
