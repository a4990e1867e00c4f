//! Cases, the context in which they run, and their outcomes.

use crate::check::skip;
use crate::check::{Check, Stop, Timing};
use crate::link::{Link, Trace};
use crate::model::Fault;
use crate::start::{self, Listening, Started};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// The strictness of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A requirement that other peers rely on.
    Must,
    /// A recommendation. A deviation counts as a failure only with `--strict`.
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
    /// A server that requires secure connections of rakwire.
    SecureServer,
}

/// The precondition of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any server.
    Server,
    /// A server that requires cookies.
    Cookies,
    /// A server with a password that was passed to the suite.
    Password,
    /// A server with a number of slots that was passed to the suite.
    Capacity,
    /// A server that echoes application messages.
    Echo,
    /// A client that the suite starts.
    Start,
}

/// A case, as a row of the table of cases.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The number, which never changes. The hundreds are the group.
    pub number: u16,
    /// The name.
    pub name: &'static str,
    /// The strictness of the requirement.
    pub level: Level,
    /// The anchor of the section that states the requirement, in the document for the role.
    pub section: &'static str,
    /// The requirement in one sentence.
    pub requirement: &'static str,
    /// Runs the check.
    pub run: fn(&mut Context) -> Check,
    /// The fault of the built-in model that this case must detect, for the tests of the suite.
    pub fault: Fault,
    /// The precondition of the case.
    pub needs: Needs,
    /// The role of the peer under test.
    pub role: Role,
}

impl Case {
    /// Creates a case for any server.
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

    /// Returns the document that contains the section.
    #[must_use]
    pub const fn page(&self) -> &'static str {
        match self.role {
            Role::Server | Role::Client => "docs/raknet.md",
            Role::GameServer => "docs/game-protocol.md",
            Role::SecureServer => "docs/secure.md",
        }
    }

    /// Sets the precondition of the case.
    #[must_use]
    pub const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// Sets the role that the case tests.
    #[must_use]
    pub const fn of(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// The properties of the tested peer, from the command line.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The protocol version that the suite announces.
    pub version: u8,
    /// True if the server echoes application messages.
    pub echo: bool,
    /// The password of the server.
    pub password: Option<String>,
    /// The number of slots of the server.
    pub capacity: Option<usize>,
    /// The address on which the suite listens, if it tests clients.
    pub listening: Option<Listening>,
    /// The command line that starts a server for each case.
    pub server: Option<String>,
}

/// The time limit for a started server to print its first line.
const START: Duration = Duration::from_secs(20);
/// The time limit for a started server to answer after its first line.
const ANSWER: Duration = Duration::from_secs(2);

/// The state of a running case.
#[derive(Debug)]
pub struct Context {
    /// The address of the server.
    pub target: SocketAddr,
    /// The time limits.
    pub timing: Timing,
    /// The properties of the tested peer.
    pub options: Options,
    /// The datagrams of the case so far.
    pub trace: Trace,
    /// The peers that were started for the case. They are stopped at the end of the case.
    pub(crate) started: Vec<Started>,
    /// The sockets of clients that the suite did not start.
    pub(crate) accepted: Vec<UdpSocket>,
    sockets: usize,
}

impl Context {
    /// Creates a context with an empty trace.
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

    /// Opens a socket at a new port.
    pub fn link(&mut self) -> Check<Link> {
        self.count_socket();
        Ok(Link::new(self.target, self.timing, self.trace.clone(), self.sockets)?)
    }

    /// Returns the number for the next socket.
    pub(crate) fn count_socket(&mut self) -> usize {
        self.sockets += 1;
        self.sockets
    }

    /// Returns the password as bytes; empty if there is none.
    #[must_use]
    pub fn password(&self) -> Vec<u8> {
        self.options.password.clone().unwrap_or_default().into_bytes()
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The requirement is met.
    Passed,
    /// The requirement is not met, for this reason.
    Failed(String),
    /// The case does not apply, for this reason.
    Skipped(String),
}

/// The result of a case.
#[derive(Debug)]
pub struct Report {
    /// The case that ran.
    pub case: &'static Case,
    /// The outcome of the case.
    pub outcome: Outcome,
    /// The duration of the case.
    pub took: Duration,
    /// The datagrams of the case.
    pub trace: Trace,
}

impl Report {
    /// Returns true if the case counts as failed: with `strict`, a failed SHOULD counts, too.
    #[must_use]
    pub fn counts_as_failure(&self, strict: bool) -> bool {
        matches!(self.outcome, Outcome::Failed(_)) && (strict || self.case.level == Level::Must)
    }
}

/// Runs a case.
///
/// # Errors
///
/// Returns an error if a socket of the suite fails.
pub fn run(case: &'static Case, target: SocketAddr, timing: Timing, options: &Options) -> io::Result<Report> {
    // Retry once, because another program may have taken the free port before the server bound it.
    let start = |line| start::server(line, START).or_else(|_| start::server(line, START));
    let server = options.server.as_deref().map(start).transpose()?;
    if let Some((_, address)) = server.as_ref().filter(|_| case.role != Role::GameServer) {
        start::wait_for_pong(*address, ANSWER)?;
    }
    let (started, target) = server.map_or((None, target), |(server, address)| (Some(server), address));
    let mut context = Context::new(target, timing, options.clone());
    context.started.extend(started);
    let missing = match case.needs {
        Needs::Echo if !options.echo => Some("the case needs a server that echoes messages (--echo)"),
        Needs::Password if options.password.is_none() => {
            Some("the case needs the server's password (--password)")
        }
        Needs::Start if options.listening.as_ref().is_none_or(|listening| !listening.starts_clients()) => {
            Some("the case needs a client that the suite starts (--start)")
        }
        Needs::Capacity if options.capacity.is_none() => {
            Some("the case needs the server's maximum number of clients (--capacity)")
        }
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
