//! Runs a script with one driver process per peer.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::driver::{Driver, Line};
use crate::pairing::Pairing;
use crate::programs::Programs;
use crate::proxy::{Network, ip_of};
use crate::script::{Script, Step};
use crate::trace::{self, Entry, ITSELF, Trace};

/// The time limit of a call or a wait, generous for busy machines.
const TIME_LIMIT: Duration = Duration::from_secs(25);
/// The interval at which drivers are polled.
const PAUSE: Duration = Duration::from_millis(2);

/// A running script.
struct Run<'a> {
    script: &'a Script,
    pairing: Pairing,
    programs: &'a Programs,
    network: Network,
    drivers: Vec<Option<Driver>>,
    guids: Vec<Vec<u64>>,
    /// Received results that no call has consumed yet, in the order of the calls, for each peer.
    results: Vec<Vec<String>>,
    /// Events, as text, that no wait has consumed yet, for each peer.
    unused: Vec<Vec<String>>,
    /// The calls that have no result yet.
    pending: Vec<(usize, String)>,
    last_event: Instant,
    trace: Trace,
}

/// Runs a script, and returns its trace. Returns an error only for problems of the machine, such as a missing program.
pub fn run(script: &Script, pairing: Pairing, programs: &Programs, seed: u64) -> io::Result<Trace> {
    let peers = script.peers.len();
    let mut run = Run {
        script,
        pairing,
        programs,
        network: Network::start(peers, script.conditions, seed)?,
        drivers: (0..peers).map(|_| None).collect(),
        guids: vec![Vec::new(); peers],
        results: vec![Vec::new(); peers],
        unused: vec![Vec::new(); peers],
        pending: Vec::new(),
        last_event: Instant::now(),
        trace: Trace { names: script.peers.clone(), peers: vec![Vec::new(); peers] },
    };
    for step in &script.steps {
        run.step(step)?;
    }
    run.finish_calls()?;
    Ok(run.trace)
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Call { peer, words, is_together } => self.call(*peer, words, *is_together)?,
            Step::Wait { peer, event } => {
                let wanted = |run: &mut Self| run.use_event(*peer, event);
                if !self.wait(TIME_LIMIT, wanted)? {
                    self.failed(*peer, &format!("no {event}"));
                }
            }
            Step::Count { peer, messages } => {
                let wanted = |run: &mut Self| run.messages(*peer) >= *messages;
                if !self.wait(TIME_LIMIT, wanted)? {
                    self.failed(*peer, &format!("not {messages} messages"));
                }
            }
            Step::Settle(quiet) => {
                self.last_event = Instant::now();
                self.wait(TIME_LIMIT, |run| run.last_event.elapsed() >= *quiet)?;
            }
            Step::Pause(time) => {
                self.wait(*time, |_| false)?;
            }
            Step::Cut(one, other) => self.network.cut(*one, *other, true),
            Step::Join(one, other) => self.network.cut(*one, *other, false),
            Step::Kill(peer) => self.drivers[*peer] = None,
            Step::Network(conditions) => self.network.set_conditions(*conditions),
        }
        Ok(())
    }

    fn failed(&mut self, peer: usize, text: &str) {
        self.trace.peers[peer].push(Entry::Call(format!("wait: {text}")));
    }

    fn call(&mut self, peer: usize, words: &str, is_together: bool) -> io::Result<()> {
        if words.starts_with("start") {
            let program = self.programs.of(self.pairing.library(peer));
            self.drivers[peer] = Some(Driver::start(program)?);
        }
        let line = self.with_addresses(peer, words);
        let driver = self.drivers[peer].as_mut().ok_or(io::ErrorKind::NotConnected)?;
        driver.call(&line)?;
        self.pending.push((peer, words.to_owned()));
        if is_together { Ok(()) } else { self.finish_calls() }
    }

    /// Waits for the results of all calls so far.
    fn finish_calls(&mut self) -> io::Result<()> {
        for (peer, words) in std::mem::take(&mut self.pending) {
            let result = |run: &mut Self| !run.results[peer].is_empty();
            if !self.wait(TIME_LIMIT, result)? {
                let is_running = self.drivers[peer].as_mut().is_some_and(Driver::is_running);
                let state = if is_running { "does not return" } else { "has terminated" };
                self.failed(peer, &format!("{words:?} {state}"));
                continue;
            }
            let result = self.results[peer].remove(0);
            let is_start = words.starts_with("start") || words.starts_with("again");
            let result =
                if is_start { self.started(peer, &result) } else { self.named(peer, &words, &result) };
            self.trace.peers[peer].push(Entry::Call(format!("{words} = {result}")));
        }
        Ok(())
    }

    /// Records the port and GUID of a peer from the result of its start.
    fn started(&mut self, peer: usize, result: &str) -> String {
        let mut words = result.split_whitespace();
        let outcome = words.next().unwrap_or_default().to_owned();
        let port = words.next().and_then(|port| port.parse().ok()).unwrap_or(0);
        if let Some(guid) = words.next().and_then(|guid| guid.parse().ok()) {
            self.guids[peer].push(guid);
        }
        self.network.place(peer, SocketAddr::from(([127, 0, 0, 1], port)));
        outcome
    }

    /// Replaces addresses and GUIDs in a result by peer names.
    fn named(&self, peer: usize, words: &str, result: &str) -> String {
        let is_guid = words.starts_with("guid");
        let names = result.split_whitespace().map(|word| {
            if is_guid {
                let guid = word.parse().ok().and_then(|guid| self.identity(guid));
                return guid.unwrap_or_else(|| "unassigned".to_owned());
            }
            if word.contains('|') { self.name(peer, word) } else { word.to_owned() }
        });
        let mut names: Vec<_> = names.collect();
        // Lists of connections have no defined order.
        names.sort();
        names.join(" ")
    }

    /// Replaces `@NAME` by an address and `%NAME` by an IP address.
    fn with_addresses(&self, peer: usize, words: &str) -> String {
        let index = |name: &str| self.script.peers.iter().position(|known| known == name).unwrap_or(0);
        let replaced = words.split(' ').map(|word| {
            if let Some(name) = word.strip_prefix('@') {
                let address = self.network.address(index(name), peer);
                format!("{}|{}", address.ip(), address.port())
            } else if let Some(name) = word.strip_prefix('%') {
                ip_of(index(name)).to_string()
            } else {
                word.to_owned()
            }
        });
        replaced.collect::<Vec<_>>().join(" ")
    }

    /// Returns the name of the peer that `peer` sees at an address.
    fn name(&self, peer: usize, address: &str) -> String {
        let socket = address.replace('|', ":").parse().ok();
        if socket.is_some() && socket == self.network.place_of(peer) {
            return ITSELF.to_owned();
        }
        let found = socket.and_then(|address| self.network.peer_at(address, peer));
        found.map_or_else(|| "an-unknown-address".to_owned(), |found| self.script.peers[found].clone())
    }

    fn identity(&self, guid: u64) -> Option<String> {
        let owner = self.guids.iter().position(|guids| guids.contains(&guid))?;
        Some(self.script.peers[owner].clone())
    }

    /// Waits until a condition holds. Returns false after the time limit.
    fn wait(&mut self, limit: Duration, is_done: impl Fn(&mut Self) -> bool) -> io::Result<bool> {
        let start = Instant::now();
        loop {
            self.take_lines();
            if is_done(self) {
                return Ok(true);
            }
            if start.elapsed() > limit {
                return Ok(false);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn take_lines(&mut self) {
        for peer in 0..self.drivers.len() {
            while let Some(line) = self.drivers[peer].as_ref().and_then(Driver::next_line) {
                match line {
                    Line::Result(result) => self.results[peer].push(result),
                    Line::Event(event) => self.take_event(peer, &event),
                }
            }
        }
    }

    fn take_event(&mut self, peer: usize, line: &str) {
        self.last_event = Instant::now();
        let entry = trace::event(line, |address| self.name(peer, address), |guid| self.identity(guid));
        let Some(entry) = entry else { return };
        let text = match &entry {
            Entry::Connection { event, with } => format!("{event} {with}"),
            Entry::Receipt { number, is_acknowledged, .. } => {
                format!("receipt {number} {}", if *is_acknowledged { "acked" } else { "loss" })
            }
            Entry::Unconnected(text) => text.clone(),
            Entry::Bytes { text, .. } if text.starts_with("timestamp") => text.clone(),
            Entry::Bytes { text, .. } => format!("bytes {text}"),
            Entry::Message(_) | Entry::Call(_) => String::new(),
        };
        self.unused[peer].push(text);
        self.trace.peers[peer].push(entry);
    }

    /// Consumes the first event of a peer that starts with this text and was not consumed by a wait. Returns
    /// false if there is none.
    fn use_event(&mut self, peer: usize, event: &str) -> bool {
        let found = self.unused[peer].iter().position(|text| text.starts_with(event));
        found.map(|at| self.unused[peer].remove(at)).is_some()
    }

    fn messages(&self, peer: usize) -> usize {
        self.trace.peers[peer].iter().filter(|entry| matches!(entry, Entry::Message(_))).count()
    }
}
