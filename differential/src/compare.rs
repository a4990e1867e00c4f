//! Compares two traces of a script: one from the reference pairing, and one from another pairing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::difference::{Difference, has_end, listed};
use crate::promises;
use crate::script::{Script, Step};
use crate::trace::{Entry, Stream, Trace};
use crate::traffic::{CutOff, Sequenced, Traffic};

/// A rule that permits a difference between traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Reliable unordered messages may arrive in any order.
    Unordered,
    /// The path loses, duplicates or reorders datagrams, which affects unreliable messages.
    Path,
    /// A connection closed while messages were in flight, so only some of them arrived.
    CutOff,
    /// A sequenced message is dropped if a later one arrives first.
    Overtaken,
    /// Receipts arrive in the order of the acknowledgements.
    ReceiptOrder,
    /// Repeated runs of the script on the original differ from each other in the same way.
    OriginalVaries,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unordered => "unordered",
            Self::Path => "path",
            Self::CutOff => "cut-off",
            Self::Overtaken => "overtaken",
            Self::ReceiptOrder => "receipt-order",
            Self::OriginalVaries => "original-varies",
        })
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Differences that no rule permits.
    pub differences: Vec<Difference>,
    /// The rules that permitted differences, each with the number of streams in which it did.
    pub applied: BTreeMap<Rule, usize>,
}

/// Compares a trace with the reference trace, and checks each trace for broken guarantees.
#[must_use]
pub fn compare(script: &Script, reference: &Trace, other: &Trace) -> Comparison {
    let mut comparison = Comparison::default();
    let traffic = Traffic::of(script);
    for (peer, name) in script.peers.iter().enumerate() {
        let (before, after) = (reference.streams(peer), other.streams(peer));
        let streams: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for stream in streams {
            let nothing = Vec::new();
            let (one, two) = (before.get(stream).unwrap_or(&nothing), after.get(stream).unwrap_or(&nothing));
            let case = Case::new(script, &traffic, [reference, other], peer, stream);
            match case.judge(one, two) {
                Ok(None) => {}
                Ok(Some(rule)) => *comparison.applied.entry(rule).or_default() += 1,
                Err(()) => comparison.differences.extend(differences(script, name, stream, one, two)),
            }
        }
        comparison.differences.extend(failed_waits(script, reference, peer));
        comparison.differences.extend(promises::broken(&traffic, script, other, peer));
    }
    comparison
}

/// A stream of a peer, and the context that decides which differences are permitted in it.
struct Case<'a> {
    script: &'a Script,
    traffic: &'a Traffic<'a>,
    stream: &'a Stream,
    peer: usize,
    is_lossy: bool,
    cut_off: CutOff,
    sequenced: Sequenced,
}

impl<'a> Case<'a> {
    fn new(
        script: &'a Script,
        traffic: &'a Traffic<'a>,
        traces: [&Trace; 2],
        peer: usize,
        stream: &'a Stream,
    ) -> Self {
        let place = |name: &String| script.peers.iter().position(|known| known == name);
        let is_lost = |other: usize| traces.iter().any(|trace| has_end(trace, peer, other));
        let (cut_off, sequenced) = match stream {
            Stream::Messages { from: with, .. } | Stream::Bytes(with) => {
                place(with).map_or_else(Default::default, |from| {
                    let Stream::Messages { channel, .. } = stream else {
                        // These messages have no numbers, so a disconnect may cut off any of them.
                        return (traffic.cut_off_receipts(from, peer, is_lost(from)), Sequenced::default());
                    };
                    let sequenced = traffic.sequenced(from, peer, *channel);
                    (traffic.cut_off(from, peer, is_lost(from)), sequenced)
                })
            }
            Stream::Receipts(with) => place(with).map_or_else(Default::default, |to| {
                (traffic.cut_off_receipts(peer, to, is_lost(to)), Sequenced::default())
            }),
            Stream::Calls | Stream::Connection(_) | Stream::Unconnected | Stream::Pings => Default::default(),
        };
        Self { script, traffic, stream, peer, is_lossy: script.is_lossy(), cut_off, sequenced }
    }

    /// Returns the rule that permits the difference between two lists; `None` if they are equal.
    fn judge(&self, one: &[String], two: &[String]) -> Result<Option<Rule>, ()> {
        if one == two {
            return Ok(None);
        }
        let permitted = match self.stream {
            Stream::Calls | Stream::Connection(_) => None,
            Stream::Messages { reliability, .. } => self.messages(*reliability, one, two),
            Stream::Receipts(_) => self.receipts(one, two),
            // Each of these messages is sent in a separate datagram, which may be lost or reordered.
            Stream::Unconnected | Stream::Pings => {
                reordered(one, two, Rule::Path).or_else(|| self.unconnected(one, two))
            }
            Stream::Bytes(_) => (!self.cut_off.is_empty() && is_beginning(one, two)).then_some(Rule::CutOff),
        };
        permitted.map(Some).ok_or(())
    }

    fn messages(&self, reliability: u8, one: &[String], two: &[String]) -> Option<Rule> {
        match reliability {
            // Unreliable, and unreliable sequenced.
            0 => reordered(one, two, Rule::Unordered)
                .or_else(|| self.is_lossy.then_some(Rule::Path))
                .or_else(|| self.cut(one, two)),
            1 if self.is_lossy => Some(Rule::Path),
            1 | 4 if self.is_overtaken(one, two) => Some(Rule::Overtaken),
            1 | 4 => self.cut(one, two),
            2 => reordered(one, two, Rule::Unordered).or_else(|| self.cut(one, two)),
            3 => is_beginning(one, two).then(|| self.cut(one, two)).flatten(),
            _ => None,
        }
    }

    /// Returns true if the lists differ only by sequenced messages that were overtaken. The last message of a channel
    /// cannot be overtaken.
    fn is_overtaken(&self, one: &[String], two: &[String]) -> bool {
        let Stream::Messages { reliability, .. } = self.stream else { return false };
        let has_last = self
            .sequenced
            .last
            .is_none_or(|(last, number)| last == *reliability && !self.cut_off.has(number));
        (self.is_lossy || self.sequenced.may_overtake) && (one.last() == two.last() || !has_last)
    }

    /// Permits a list that lacks only messages that a disconnect may have cut off.
    fn cut(&self, one: &[String], two: &[String]) -> Option<Rule> {
        let (only_one, only_two) = (without(one, two), without(two, one));
        let is_within = only_one.is_empty() || only_two.is_empty();
        let mut missing = only_one.iter().chain(&only_two);
        let is_cut = |text: &&String| number(text, ':').is_some_and(|number| self.cut_off.has(number));
        (is_within && missing.all(|text| is_cut(&text))).then_some(Rule::CutOff)
    }

    /// Permits differences in receipts: a disconnect may drop any of them, and a lossy path may change the
    /// outcomes of unreliable messages.
    fn receipts(&self, one: &[String], two: &[String]) -> Option<Rule> {
        if let Some(rule) = reordered(one, two, Rule::ReceiptOrder) {
            return Some(rule);
        }
        let numbers = |list: &[String]| {
            let mut all: Vec<_> = list.iter().filter_map(|text| number(text, ' ')).collect();
            all.sort_unstable();
            all
        };
        let is_unreliable = |text: &String| {
            number(text, ' ').and_then(|number| self.traffic.reliability(self.peer, number)) == Some(5)
        };
        let mut different = without(one, two);
        different.extend(without(two, one));
        if self.is_lossy && numbers(one) == numbers(two) && different.iter().all(is_unreliable) {
            return Some(Rule::Path);
        }
        let is_cut = |text: &String| number(text, ' ').is_some_and(|number| self.cut_off.has(number));
        different.iter().all(is_cut).then_some(Rule::CutOff)
    }

    /// Permits lost and duplicated datagrams on a lossy path. Every text must still have been sent by a call of the
    /// script.
    fn unconnected(&self, one: &[String], two: &[String]) -> Option<Rule> {
        (self.is_lossy && one.iter().chain(two).all(|text| self.is_said(text))).then_some(Rule::Path)
    }

    /// Returns true if the script contains the call by which SENDER sends the entry `KIND from SENDER TEXT`.
    fn is_said(&self, entry: &str) -> bool {
        let words: Vec<&str> = entry.split(' ').collect();
        let [kind, "from", sender, text] = words[..] else { return false };
        let to_here = format!("@{}", self.script.peers[self.peer]);
        self.script.steps.iter().any(|step| {
            let Step::Call { peer, words, .. } = step else { return false };
            let words: Vec<&str> = words.split(' ').collect();
            self.script.peers[*peer] == sender
                && match (kind, words.as_slice()) {
                    // A server answers pings even if it has no advertisement.
                    ("pong", ["start", ..]) => text == "-",
                    ("pong", ["pong", answer]) => *answer == text,
                    ("ping", ["ping", to, rest @ ..]) => {
                        *to == to_here && (text == "open") == (*rest == ["open"])
                    }
                    (_, [call, to, rest @ ..]) => {
                        *call == kind && *to == to_here && rest.first().copied().unwrap_or("-") == text
                    }
                    _ => false,
                }
        })
    }
}

/// Returns the number that precedes a separator.
fn number(text: &str, separator: char) -> Option<u32> {
    text.split(separator).next()?.parse().ok()
}

/// Returns true if one list is a prefix of the other.
fn is_beginning(one: &[String], two: &[String]) -> bool {
    one.iter().zip(two).all(|(one, two)| one == two)
}

/// Returns the entries of a list without those of another, respecting multiplicity.
fn without(list: &[String], other: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in other {
        *counts.entry(text.as_str()).or_default() += 1;
    }
    let is_extra = |text: &&String| match counts.get_mut(text.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    list.iter().filter(is_extra).cloned().collect()
}

fn reordered(one: &[String], two: &[String], rule: Rule) -> Option<Rule> {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    (sorted(one) == sorted(two)).then_some(rule)
}

/// Lists the differences of a stream: one per call, or one for any other stream as a whole.
fn differences(
    script: &Script,
    peer: &str,
    stream: &Stream,
    one: &[String],
    two: &[String],
) -> Vec<Difference> {
    let make = |stream: String, reference: String, other: String| Difference {
        script: script.name.clone(),
        peer: peer.to_owned(),
        stream,
        reference,
        other,
    };
    if *stream != Stream::Calls {
        return vec![make(stream.to_string(), listed(one), listed(two))];
    }
    let length = one.len().max(two.len());
    let pairs = (0..length).map(|at| (one.get(at), two.get(at))).filter(|(one, two)| one != two);
    let text = |call: Option<&String>| call.map_or_else(|| "nothing".to_owned(), Clone::clone);
    // After a failed wait, later differences are only consequences of it.
    let mut found = Vec::new();
    for (one, two) in pairs {
        let is_wait = [one, two].into_iter().flatten().any(|call| call.starts_with("wait"));
        found.push(make("calls".to_owned(), text(one), text(two)));
        if is_wait {
            break;
        }
    }
    found
}

/// Returns the failed waits of the reference. They are errors in the script: it must wait only for events that occur
/// with the original.
fn failed_waits(script: &Script, reference: &Trace, peer: usize) -> Option<Difference> {
    let calls = reference.peers[peer].iter().filter_map(|entry| match entry {
        Entry::Call(text) if text.starts_with("wait: ") => Some(text.clone()),
        _ => None,
    });
    let failed: Vec<String> = calls.collect();
    (!failed.is_empty()).then(|| Difference {
        script: script.name.clone(),
        peer: script.peers[peer].clone(),
        stream: "waits of the script".to_owned(),
        reference: listed(&failed),
        other: "not compared; change the script to wait only for events of the original".to_owned(),
    })
}
