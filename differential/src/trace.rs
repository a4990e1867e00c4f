//! Traces: the results of calls and the events of each peer, without times, addresses and GUIDs.

use std::collections::BTreeMap;
use std::fmt;

/// The results and events of one run of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The names of the peers.
    pub names: Vec<String>,
    /// The entries of each peer.
    pub peers: Vec<Vec<Entry>>,
}

/// An entry of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A call with its result, or a failed wait.
    Call(String),
    /// An event of a connection or attempt, and the name of the remote.
    Connection {
        /// The event.
        event: String,
        /// The name of the remote.
        with: String,
    },
    /// A received message with a number.
    Message(Message),
    /// The receipt of a sent message.
    Receipt {
        /// The remote to which the message was sent.
        with: String,
        /// The number of the message that the receipt is for.
        number: i64,
        /// True if the message was acknowledged.
        is_acknowledged: bool,
    },
    /// A ping or pong, an out-of-band message or an advertisement.
    Unconnected(String),
    /// A message without a number, such as raw bytes or a timestamp.
    Bytes {
        /// The name of the sender.
        with: String,
        /// The bytes, or a description of them.
        text: String,
    },
}

/// A received numbered message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The name of the sender.
    pub from: String,
    /// The reliability that the sender chose.
    pub reliability: u8,
    /// The channel that the sender chose.
    pub channel: u8,
    /// The number of the message. Each sender counts all messages that it sends.
    pub number: u32,
    /// The length of the message in bytes.
    pub size: u32,
}

/// A part of a peer's trace that is compared as a unit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The results of the calls.
    Calls,
    /// The connection events that involve the remote with this name.
    Connection(String),
    /// The messages of one remote with one reliability on one channel.
    Messages {
        /// The name of the sender.
        from: String,
        /// The reliability of the messages, as the sender gave it.
        reliability: u8,
        /// The channel.
        channel: u8,
    },
    /// The outcomes of the messages with receipts to the remote with this name, as `NUMBER acked` or `NUMBER loss`.
    Receipts(String),
    /// Messages without a connection.
    Unconnected,
    /// Unconnected pings, which some libraries report to the application.
    Pings,
    /// The messages without a number from the remote with this name.
    Bytes(String),
}

/// The sender name of messages that a peer sends to itself.
pub const ITSELF: &str = "itself";

/// The names of reliabilities, by their numbers in RakNet.
pub const RELIABILITIES: [&str; 8] = [
    "unreliable",
    "unreliable-sequenced",
    "reliable",
    "reliable-ordered",
    "reliable-sequenced",
    "unreliable-with-receipt",
    "reliable-with-receipt",
    "reliable-ordered-with-receipt",
];

impl fmt::Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls => write!(formatter, "calls"),
            Self::Connection(with) => write!(formatter, "connection with {with}"),
            Self::Messages { from, reliability, channel } => {
                let name = RELIABILITIES.get(usize::from(*reliability)).unwrap_or(&"unknown");
                write!(formatter, "{name} messages from {from} on channel {channel}")
            }
            Self::Receipts(with) => write!(formatter, "receipts of {with}"),
            Self::Unconnected => write!(formatter, "unconnected"),
            Self::Pings => write!(formatter, "pings"),
            Self::Bytes(with) => write!(formatter, "bytes from {with}"),
        }
    }
}

impl Trace {
    /// Returns the streams of a peer.
    #[must_use]
    pub fn streams(&self, peer: usize) -> BTreeMap<Stream, Vec<String>> {
        let mut streams: BTreeMap<Stream, Vec<String>> = BTreeMap::new();
        for entry in self.peers.get(peer).into_iter().flatten() {
            let (stream, text) = split(entry);
            streams.entry(stream).or_default().push(text);
        }
        streams
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, entries) in self.names.iter().zip(&self.peers) {
            for entry in entries {
                let (stream, text) = split(entry);
                writeln!(formatter, "{name} {stream}: {text}")?;
            }
        }
        Ok(())
    }
}

fn split(entry: &Entry) -> (Stream, String) {
    match entry {
        Entry::Call(text) => (Stream::Calls, text.clone()),
        Entry::Connection { event, with } => (Stream::Connection(with.clone()), event.clone()),
        Entry::Message(Message { from, reliability, channel, number, size }) => {
            // Reliabilities with a receipt share the order of their channel with their counterparts without one.
            let kind = match reliability {
                5 => 0,
                6 => 2,
                7 => 3,
                other => *other,
            };
            let is_on_channel = matches!(kind, 1 | 3 | 4);
            let channel = if is_on_channel { *channel } else { 0 };
            let stream = Stream::Messages { from: from.clone(), reliability: kind, channel };
            (stream, format!("{number}:{size}"))
        }
        Entry::Receipt { with, number, is_acknowledged } => {
            let outcome = if *is_acknowledged { "acked" } else { "loss" };
            (Stream::Receipts(with.clone()), format!("{number} {outcome}"))
        }
        Entry::Unconnected(text) if text.starts_with("ping ") => (Stream::Pings, text.clone()),
        Entry::Unconnected(text) => (Stream::Unconnected, text.clone()),
        Entry::Bytes { with, text } => (Stream::Bytes(with.clone()), text.clone()),
    }
}

/// Parses an event line of a driver. `name` maps an address to a peer name, and `identity` maps a GUID to a peer name.
pub fn event(
    line: &str,
    name: impl Fn(&str) -> String,
    identity: impl Fn(u64) -> Option<String>,
) -> Option<Entry> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let with = name(words.get(1)?);
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
    let byte = |at: usize| number(at).and_then(|value| u8::try_from(value).ok());
    let long = |at: usize| number(at).and_then(|value| u32::try_from(value).ok());
    let rest = words.get(2..)?.join(" ");
    Some(match *words.first()? {
        "message" => Entry::Message(Message {
            from: with,
            reliability: byte(2)?,
            channel: byte(3)?,
            number: long(4)?,
            size: long(5)?,
        }),
        "receipt" => {
            Entry::Receipt { with, number: number(3)?, is_acknowledged: words.get(2) == Some(&"acked") }
        }
        kind @ ("ping" | "pong" | "out-of-band" | "advertisement") => {
            Entry::Unconnected(format!("{kind} from {with} {rest}"))
        }
        "bytes" => Entry::Bytes { with, text: rest },
        "timestamp" => Entry::Bytes { with, text: format!("timestamp {rest}") },
        "damaged" => Entry::Bytes { with, text: "damaged".to_owned() },
        kind => {
            // A wrong GUID counts as a difference, except for failed attempts, where GUIDs vary.
            let guid = words.get(2).and_then(|word| word.parse().ok()).and_then(identity);
            let is_open = matches!(kind, "accepted" | "incoming" | "disconnected" | "lost");
            let event = match guid {
                Some(guid) if is_open && guid == with => kind.to_owned(),
                Some(guid) if is_open => format!("{kind} with the GUID of {guid}"),
                None if is_open => format!("{kind} with an unknown GUID"),
                _ => kind.to_owned(),
            };
            Entry::Connection { event, with }
        }
    })
}
