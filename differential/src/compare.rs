//! Compares two traces of a script: the reference, and another pairing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::script::{Script, Step};
use crate::trace::{Entry, ITSELF, Stream, Trace};

/// A rule that permits a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Reliable messages without an order arrive in any order.
    Unordered,
    /// The path loses, duplicates or reorders datagrams, which affects messages without a guarantee.
    Path,
    /// The connection ended while messages were in flight, and only some of them arrived.
    CutOff,
    /// A sequenced message is dropped when a later one has overtaken it.
    Overtaken,
    /// Receipts arrive in the order of acknowledgements.
    ReceiptOrder,
    /// The original shows the same difference from itself in other runs of the same script.
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

/// A difference in a stream of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the script.
    pub script: String,
    /// The name of the peer.
    pub peer: String,
    /// The stream, as text.
    pub stream: String,
    /// The entries of the reference.
    pub reference: String,
    /// The entries of the other trace.
    pub other: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { script, peer, stream, reference, other } = self;
        write!(formatter, "{script}: {peer} {stream}\n    original: {reference}\n    now:      {other}")
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Differences that no rule permits.
    pub differences: Vec<Difference>,
    /// The rules that permitted other differences, with the number of streams.
    pub applied: BTreeMap<Rule, usize>,
}

/// Compares a trace with the reference, and checks the guarantees of each trace.
#[must_use]
pub fn compare(script: &Script, reference: &Trace, other: &Trace) -> Comparison {
    let mut comparison = Comparison::default();
    for (peer, name) in script.peers.iter().enumerate() {
        let (before, after) = (reference.streams(peer), other.streams(peer));
        let streams: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for stream in streams {
            let nothing = Vec::new();
            let (one, two) = (before.get(stream).unwrap_or(&nothing), after.get(stream).unwrap_or(&nothing));
            let case = Case {
                stream,
                ended: ends(script, reference, other, peer, stream),
                is_lossy: script.is_lossy(),
                sequenced: sequenced(script, stream),
            };
            match case.judge(one, two) {
                Ok(None) => {}
                Ok(Some(rule)) => *comparison.applied.entry(rule).or_default() += 1,
                Err(()) => comparison.differences.extend(differences(script, name, stream, one, two)),
            }
        }
        comparison.differences.extend(failed_waits(script, reference, peer));
        let broken = broken_promises(script, other, peer);
        comparison.differences.extend(broken);
    }
    comparison
}

/// Returns true if messages of this stream may have been in flight when their connection ended.
fn ends(script: &Script, reference: &Trace, other: &Trace, peer: usize, stream: &Stream) -> bool {
    let (Stream::Messages { from: with, .. } | Stream::Receipts(with) | Stream::Bytes(with)) = stream else {
        return false;
    };
    let has_end = |trace: &Trace, one: usize, remote: &str| {
        trace.peers[one].iter().any(|entry| {
            matches!(entry, Entry::Connection { event, with }
                if with == remote && (event.starts_with("disconnected") || event.starts_with("lost")))
        })
    };
    let closes = |step: &Step| match step {
        Step::Call { words, .. } => words.starts_with("close") || words.starts_with("shutdown"),
        Step::Kill(_) => true,
        _ => false,
    };
    let remote = script.peers.iter().position(|name| name == with);
    let name = &script.peers[peer];
    let is_ended = |trace: &Trace| {
        has_end(trace, peer, with) || remote.is_some_and(|remote| has_end(trace, remote, name))
    };
    script.steps.iter().any(closes) || is_ended(reference) || is_ended(other)
}

/// The sequenced and ordered messages of a sender on a channel. A sequenced message is dropped after a later one of either kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sequenced {
    /// Set if a later message may arrive first even on a clean path, because priorities differ or messages are split.
    may_overtake: bool,
    /// Set if several reliabilities share the channel, so that a message of another stream may overtake.
    is_shared: bool,
}

/// The smallest message that may be split.
const SPLIT_FROM: u32 = 1_300;

fn sequenced(script: &Script, stream: &Stream) -> Sequenced {
    let Stream::Messages { from, channel, .. } = stream else { return Sequenced::default() };
    let sender = script.peers.iter().position(|name| name == from);
    let sends = script.steps.iter().filter_map(|step| match step {
        Step::Call { peer, words, .. } if Some(*peer) == sender => {
            let mut words = words.split(' ');
            let is_send = words.next().is_some_and(|call| matches!(call, "send" | "broadcast"));
            // The first word is the target.
            let numbers: Vec<u32> = words.skip(1).map(|word| word.parse().unwrap_or(0)).collect();
            (is_send && numbers.len() >= 4).then_some(numbers)
        }
        _ => None,
    });
    let of_channel =
        |numbers: &Vec<u32>| matches!(numbers[0], 1 | 3 | 4 | 7) && numbers[1] == u32::from(*channel);
    let sends: Vec<_> = sends.filter(of_channel).collect();
    let different = |at: usize| sends.iter().map(|numbers| numbers[at]).collect::<BTreeSet<_>>().len() > 1;
    Sequenced {
        may_overtake: different(2) || sends.iter().any(|numbers| numbers[3] >= SPLIT_FROM),
        is_shared: different(0),
    }
}

struct Case<'a> {
    stream: &'a Stream,
    ended: bool,
    is_lossy: bool,
    sequenced: Sequenced,
}

impl Case<'_> {
    /// Returns the rule that permits the difference of two lists, if there is a difference.
    fn judge(&self, one: &[String], two: &[String]) -> Result<Option<Rule>, ()> {
        if one == two {
            return Ok(None);
        }
        let permitted = match self.stream {
            Stream::Calls | Stream::Connection(_) => None,
            Stream::Messages { reliability, .. } => self.messages(*reliability, one, two),
            Stream::Receipts(_) => self.receipts(one, two),
            // They travel in separate datagrams, without any guarantee.
            Stream::Unconnected | Stream::Pings => {
                self.is_lossy.then_some(Rule::Path).or_else(|| reordered(one, two, Rule::Path))
            }
            Stream::Bytes(_) => self.prefix(one, two),
        };
        permitted.map(Some).ok_or(())
    }

    fn messages(&self, reliability: u8, one: &[String], two: &[String]) -> Option<Rule> {
        match reliability {
            // Unreliable.
            0 => reordered(one, two, Rule::Unordered).or_else(|| self.lost()),
            1 if self.is_lossy => Some(Rule::Path),
            1 | 4 if self.is_overtaken(reliability, one, two) => Some(Rule::Overtaken),
            1 | 4 => self.ended.then_some(Rule::CutOff),
            2 => reordered(one, two, Rule::Unordered).or_else(|| self.ended.then_some(Rule::CutOff)),
            3 => self.prefix(one, two),
            _ => None,
        }
    }

    fn is_overtaken(&self, reliability: u8, one: &[String], two: &[String]) -> bool {
        // The last message of a channel is not overtaken, and if it is reliable, it arrives.
        let is_complete = reliability == 1 || self.sequenced.is_shared || one.last() == two.last();
        (self.is_lossy || self.sequenced.may_overtake) && is_complete
    }

    fn lost(&self) -> Option<Rule> {
        if self.is_lossy { Some(Rule::Path) } else { self.ended.then_some(Rule::CutOff) }
    }

    /// Permits a difference if the connection ended and one list is a prefix of the other.
    fn prefix(&self, one: &[String], two: &[String]) -> Option<Rule> {
        let is_beginning = one.iter().zip(two).all(|(one, two)| one == two);
        (self.ended && is_beginning).then_some(Rule::CutOff)
    }

    fn receipts(&self, one: &[String], two: &[String]) -> Option<Rule> {
        let numbers = |list: &[String]| {
            let mut all: Vec<_> =
                list.iter().filter_map(|text| text.split(' ').next()).map(str::to_owned).collect();
            all.sort();
            all
        };
        reordered(one, two, Rule::ReceiptOrder)
            .or_else(|| (self.is_lossy && numbers(one) == numbers(two)).then_some(Rule::Path))
            .or_else(|| self.ended.then_some(Rule::CutOff))
    }
}

fn reordered(one: &[String], two: &[String], rule: Rule) -> Option<Rule> {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    (sorted(one) == sorted(two)).then_some(rule)
}

/// Calls are compared one by one, other streams as a whole.
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
    // After a failed wait, the rest differs as a consequence.
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

/// Returns the failed waits of the reference. A script with any is wrong, because scripts wait only for events of the original.
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
        other: "not compared: change the script".to_owned(),
    })
}

fn listed(list: &[String]) -> String {
    const MOST: usize = 24;
    if list.is_empty() {
        return "nothing".to_owned();
    }
    let more = if list.len() > MOST { format!(" and {} more", list.len() - MOST) } else { String::new() };
    let shown = &list[..list.len().min(MOST)];
    format!("{}{more}", shown.join(", "))
}

/// Checks the guarantees of every trace: no damage, no duplicates, sequenced messages in order, none outside a connection.
fn broken_promises(script: &Script, trace: &Trace, peer: usize) -> Vec<Difference> {
    let mut broken = Vec::new();
    let mut report = |stream: &str, text: String| {
        broken.push(Difference {
            script: script.name.clone(),
            peer: script.peers[peer].clone(),
            stream: format!("promise of {stream}"),
            reference: "kept".to_owned(),
            other: text,
        });
    };
    for (stream, list) in trace.streams(peer) {
        if let Stream::Messages { reliability, .. } = stream {
            let numbers: Vec<u64> =
                list.iter().filter_map(|text| text.split(':').next()?.parse().ok()).collect();
            let is_increasing = numbers.windows(2).all(|pair| pair[0] < pair[1]);
            let different: BTreeSet<_> = numbers.iter().collect();
            if matches!(reliability, 1 | 3 | 4) && !is_increasing {
                report(&stream.to_string(), format!("out of order: {}", listed(&list)));
            } else if different.len() < numbers.len() {
                report(&stream.to_string(), format!("twice: {}", listed(&list)));
            }
        }
        if list.iter().any(|text| text == "damaged") {
            report(&stream.to_string(), "damaged bytes".to_owned());
        }
    }
    if let Some(from) = outside(&trace.peers[peer]) {
        report("connections", format!("a message from {from} without a connection"));
    }
    broken
}

/// Returns the sender of a message that arrived before or after its connection.
fn outside(entries: &[Entry]) -> Option<String> {
    let mut open = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Connection { event, with }
                if event.starts_with("accepted") || event.starts_with("incoming") =>
            {
                open.insert(with.clone());
            }
            Entry::Connection { event, with }
                if event.starts_with("disconnected") || event.starts_with("lost") =>
            {
                open.remove(with);
            }
            Entry::Message(message) if message.from != ITSELF && !open.contains(&message.from) => {
                return Some(message.from.clone());
            }
            _ => {}
        }
    }
    None
}
