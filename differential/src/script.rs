//! Scripts: named lists of calls and waits, one per line. README.md describes the language.

use std::fmt;
use std::time::Duration;

use rakwire::sim::Conditions;

/// A script: the calls of its peers, and what happens between them.
#[derive(Clone, Debug)]
pub struct Script {
    /// The name of the script, used in `differences.txt`.
    pub name: String,
    /// The conditions of the network at the start of the script.
    pub conditions: Conditions,
    /// The names of the peers, in the order of their first calls. The first peer usually acts as the server.
    pub peers: Vec<String>,
    /// The steps of the script.
    pub steps: Vec<Step>,
}

/// A step of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A call by a peer. In `words`, `@NAME` is the address of another peer, and `%NAME` its IP address.
    Call {
        /// The index of the peer.
        peer: usize,
        /// The call, as in the script.
        words: String,
        /// True if the next step may start before the call returns.
        is_together: bool,
    },
    /// Waits until a peer reports an event, or the time limit passes.
    Wait {
        /// The index of the peer.
        peer: usize,
        /// The beginning of the event.
        event: String,
    },
    /// Waits until a peer has received this many messages.
    Count {
        /// The index of the peer.
        peer: usize,
        /// The number of messages since the start of the script.
        messages: usize,
    },
    /// Waits until no peer has reported an event for this time.
    Settle(Duration),
    /// Waits for this time.
    Pause(Duration),
    /// Drops all datagrams between the peers with these indices.
    Cut(usize, usize),
    /// Stops dropping the datagrams between the peers with these indices, after a [`Cut`](Self::Cut).
    Join(usize, usize),
    /// Kills the process of the peer with this index, without a disconnect notification.
    Kill(usize),
    /// Changes the conditions of the network.
    Network(Conditions),
}

/// The error for a line that is not valid in the script language.
#[derive(Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The line number, from 1.
    pub line: usize,
    /// A description of the mistake.
    pub mistake: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.mistake)
    }
}

impl std::error::Error for ScriptError {}

/// The calls of a driver.
const CALLS: [&str; 23] = [
    "advertise",
    "again",
    "ban",
    "banned",
    "broadcast",
    "bytes",
    "cancel",
    "close",
    "connect",
    "guid",
    "incoming",
    "list",
    "out-of-band",
    "password",
    "ping",
    "pong",
    "send",
    "shutdown",
    "start",
    "state",
    "timeout",
    "timestamp",
    "unban",
];

/// Parses all scripts in a text. Each starts with `script NAME`.
pub fn parse(text: &str) -> Result<Vec<Script>, ScriptError> {
    let mut scripts: Vec<Script> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let error = |mistake: String| ScriptError { line: number, mistake };
        match (words.as_slice(), scripts.last_mut()) {
            ([], _) => {}
            (["script", name], _) => scripts.push(Script {
                name: (*name).to_owned(),
                conditions: Conditions::default(),
                peers: Vec::new(),
                steps: Vec::new(),
            }),
            (_, None) => return Err(error("before the first `script NAME`".to_owned())),
            (words, Some(script)) => script.add(words).map_err(error)?,
        }
    }
    Ok(scripts)
}

impl Script {
    /// Returns true if the network loses, duplicates or reorders datagrams, or is cut, during the script.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        let is_cut = self.steps.iter().any(|step| matches!(step, Step::Cut(..) | Step::Kill(_)));
        is_cut || self.all_conditions().any(is_lossy)
    }

    /// Returns true if the network duplicates datagrams during the script.
    #[must_use]
    pub fn doubles_datagrams(&self) -> bool {
        self.all_conditions().any(|conditions| conditions.duplication > 0.0)
    }

    fn all_conditions(&self) -> impl Iterator<Item = &Conditions> {
        let changes = self.steps.iter().filter_map(|step| match step {
            Step::Network(conditions) => Some(conditions),
            _ => None,
        });
        changes.chain([&self.conditions])
    }

    fn add(&mut self, words: &[&str]) -> Result<(), String> {
        let step = match words {
            ["network", rest @ ..] => {
                let conditions = conditions(rest)?;
                if self.steps.is_empty() {
                    self.conditions = conditions;
                    return Ok(());
                }
                Step::Network(conditions)
            }
            ["settle"] => Step::Settle(Duration::from_millis(400)),
            ["settle", time] => Step::Settle(milliseconds(time)?),
            ["pause", time] => Step::Pause(milliseconds(time)?),
            ["cut", one, other] => Step::Cut(self.known(one)?, self.known(other)?),
            ["join", one, other] => Step::Join(self.known(one)?, self.known(other)?),
            ["kill", peer] => Step::Kill(self.known(peer)?),
            ["wait", peer, "messages", count] => {
                Step::Count { peer: self.known(peer)?, messages: number(count)? }
            }
            ["wait", peer, event @ ..] if !event.is_empty() => {
                Step::Wait { peer: self.known(peer)?, event: event.join(" ") }
            }
            ["&", peer, call @ ..] => self.call(peer, call, true)?,
            [peer, call @ ..] => self.call(peer, call, false)?,
            [] => return Ok(()),
        };
        self.steps.push(step);
        Ok(())
    }

    fn call(&mut self, peer: &str, call: &[&str], is_together: bool) -> Result<Step, String> {
        let name = call.first().ok_or_else(|| format!("the line has no call after the peer {peer:?}"))?;
        if !CALLS.contains(name) {
            return Err(format!("{name:?} is not a call; the calls are {}", CALLS.join(" ")));
        }
        if *name == "start" && self.known(peer).is_err() {
            self.peers.push(peer.to_owned());
        }
        for word in call.iter().filter_map(|word| word.strip_prefix(['@', '%'])) {
            if !self.peers.iter().any(|known| known == word) {
                return Err(format!("{word:?} has not been started; start all peers first"));
            }
        }
        Ok(Step::Call { peer: self.known(peer)?, words: call.join(" "), is_together })
    }

    fn known(&self, peer: &str) -> Result<usize, String> {
        let index = self.peers.iter().position(|known| known == peer);
        index.ok_or_else(|| format!("{peer:?} has not been started: the first call of a peer is `start`"))
    }
}

fn is_lossy(conditions: &Conditions) -> bool {
    conditions.loss > 0.0
        || conditions.duplication > 0.0
        || conditions.reordering > 0.0
        || !conditions.jitter.is_zero()
}

fn conditions(words: &[&str]) -> Result<Conditions, String> {
    let mut conditions = Conditions::default();
    let mut rest = words.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name:?} needs a value"))?;
        match *name {
            "loss" => conditions.loss = share(value)?,
            "duplicate" => conditions.duplication = share(value)?,
            "reorder" => conditions.reordering = share(value)?,
            "delay" => conditions.latency = milliseconds(value)?,
            "jitter" => conditions.jitter = milliseconds(value)?,
            _ => {
                return Err(format!(
                    "{name:?} is not a condition; use loss, duplicate, reorder, delay or jitter"
                ));
            }
        }
    }
    Ok(conditions)
}

fn share(word: &str) -> Result<f64, String> {
    let value = word.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| format!("{word:?} is not a number from 0 to 1"))
}

fn milliseconds(word: &str) -> Result<Duration, String> {
    word.parse().map(Duration::from_millis).map_err(|_| format!("{word:?} is not a number of milliseconds"))
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_are_reported_with_their_lines() {
        let start = "script one\na start 8 8\n";
        for (text, line, mistake) in [
            ("a start 8 8", 1, "before the first"),
            ("script one\na send @b 3 0 1 50", 2, "\"b\" has not been started"),
            (&format!("{start}a fly"), 3, "\"fly\" is not a call"),
            (&format!("{start}wait c incoming a"), 3, "\"c\" has not been started"),
            (&format!("{start}network loss 2"), 3, "\"2\" is not a number from 0 to 1"),
            (&format!("{start}network speed 2"), 3, "\"speed\" is not a condition"),
            (&format!("{start}pause long"), 3, "\"long\" is not a number of milliseconds"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text}");
            assert!(error.mistake.contains(mistake), "{error}");
        }
    }

    #[test]
    fn network_lines_before_the_first_call_set_the_initial_conditions() {
        let text = "script one # comment\nnetwork loss 0.5\na start 8 8\nnetwork delay 10\n& a list\nwait a messages 4";
        let script = parse(text).expect("a script").remove(0);
        assert!(script.is_lossy() && script.conditions.loss > 0.4);
        let later = Conditions { latency: Duration::from_millis(10), ..Conditions::default() };
        assert_eq!(script.steps[1], Step::Network(later));
        assert_eq!(script.steps[2], Step::Call { peer: 0, words: "list".to_owned(), is_together: true });
        assert_eq!(script.steps[3], Step::Count { peer: 0, messages: 4 });
        assert!(!parse("script two\nnetwork delay 9\na start 8 8").expect("a script")[0].is_lossy());
    }
}
