//! A difference between two traces, and its description.

use std::fmt;

use crate::trace::{Entry, Trace};

/// A difference between two traces in one stream of a peer: its results, its events or its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the script.
    pub script: String,
    /// The name of the peer.
    pub peer: String,
    /// The stream in which the difference is, as text.
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

/// Returns true if a trace contains a disconnect event between two peers.
pub(crate) fn has_end(trace: &Trace, one: usize, other: usize) -> bool {
    let has = |peer: usize, remote: usize| {
        trace.peers[peer].iter().any(|entry| {
            matches!(entry, Entry::Connection { event, with }
                if *with == trace.names[remote] && (event.starts_with("disconnected") || event.starts_with("lost")))
        })
    };
    has(one, other) || has(other, one)
}

/// Returns the first 24 entries of a list as text, and the number of further entries.
pub(crate) fn listed(list: &[String]) -> String {
    const MOST: usize = 24;
    if list.is_empty() {
        return "nothing".to_owned();
    }
    let more = if list.len() > MOST { format!(" and {} more", list.len() - MOST) } else { String::new() };
    let shown = &list[..list.len().min(MOST)];
    format!("{}{more}", shown.join(", "))
}
