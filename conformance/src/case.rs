//! Cases, their context and their outcomes.

use crate::check::skip;
use crate::check::{Check, Stop, Timing};
use crate::link::{Link, Trace};
use crate::model::Fault;
use std::io;
use std::net::SocketAddr;
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

/// The server that a case needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any server.
    Server,
    /// A server that demands cookies.
    Cookies,
    /// A server with a password that the suite was given.
    Password,
    /// A server with a known number of places.
    Capacity,
    /// A server that sends messages of its application back.
    Echo,
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
    /// The anchor of the section of docs/raknet.md that it checks.
    pub section: &'static str,
    /// The requirement in one sentence.
    pub requirement: &'static str,
    /// The check.
    pub run: fn(&mut Context) -> Check,
    /// The fault of the built-in model that this case must find.
    pub fault: Fault,
    /// The server that it needs.
    pub needs: Needs,
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
        Self { number, name, level, section, requirement, run, fault, needs: Needs::Server }
    }

    /// The same case for a special server.
    #[must_use]
    pub const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
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
    /// The number of its places.
    pub capacity: Option<usize>,
}

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
    sockets: usize,
}

impl Context {
    /// A context with an empty trace.
    #[must_use]
    pub fn new(target: SocketAddr, timing: Timing, options: Options) -> Self {
        Self { target, timing, options, trace: Trace::default(), sockets: 0 }
    }

    /// Opens a socket of its own address.
    pub fn link(&mut self) -> Check<Link> {
        self.sockets += 1;
        Ok(Link::new(self.target, self.timing, self.trace.clone(), self.sockets)?)
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
    let mut context = Context::new(target, timing, options.clone());
    let missing = match case.needs {
        Needs::Echo if !options.echo => Some("needs an echo server (--echo)"),
        Needs::Password if options.password.is_none() => Some("needs the password (--password)"),
        Needs::Capacity if options.capacity.is_none() => Some("needs the number of places (--capacity)"),
        _ => None,
    };
    let result = match missing {
        Some(reason) => skip(reason),
        None => (case.run)(&mut context),
    };
    let outcome = match result {
        Ok(()) => Outcome::Passed,
        Err(Stop::Failed(reason)) => Outcome::Failed(reason),
        Err(Stop::Skipped(reason)) => Outcome::Skipped(reason),
        Err(Stop::Socket(error)) => return Err(error),
    };
    let took = context.trace.elapsed();
    Ok(Report { case, outcome, took, trace: context.trace })
}
