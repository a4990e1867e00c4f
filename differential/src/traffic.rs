//! The numbered messages that a script sends, and which of them a disconnect may cut off.

use crate::script::{Script, Step};

/// A call that sends numbered messages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Send {
    from: usize,
    to: Target,
    reliability: u8,
    channel: u8,
    priority: u32,
    size: u32,
    /// The number of the first message of this call. Each process numbers the messages that it sends.
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Peer(usize),
    All,
    AllBut(usize),
}

impl Send {
    /// Returns true if the messages are addressed to a peer. A broadcast is addressed to all other peers, except an
    /// excluded one.
    fn is_for(&self, peer: usize) -> bool {
        match self.to {
            Target::Peer(to) => to == peer,
            Target::All => self.from != peer,
            Target::AllBut(other) => self.from != peer && other != peer,
        }
    }

    fn count(&self) -> u32 {
        self.last + 1 - self.first
    }

    /// Returns true for sequenced and ordered messages on a channel. They share the ordering of the channel.
    fn is_on_channel(&self, channel: u8) -> bool {
        matches!(self.reliability, 1 | 3 | 4 | 7) && self.channel == channel
    }
}

/// The numbered messages of a script.
#[derive(Clone, Debug)]
pub struct Traffic<'a> {
    script: &'a Script,
    /// The sending calls, with the indices of their steps.
    sends: Vec<(usize, Send)>,
}

/// The messages between two peers that a disconnect may cut off, as ranges of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOff(Vec<(u32, u32)>);

impl CutOff {
    /// Returns true if the message with this number may be cut off.
    #[must_use]
    pub fn has(&self, number: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// Returns true if no message may be cut off.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The sequenced and ordered messages from one peer to another on a channel. A later message of either kind can
/// overtake a sequenced one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequenced {
    /// True if messages may overtake each other even on a lossless path, because they have different priorities or are
    /// split.
    pub may_overtake: bool,
    /// The reliability and number of the last message, which cannot be overtaken.
    pub last: Option<(u8, u32)>,
}

/// The minimum length in bytes of a message that may be split.
const SPLIT_FROM: u32 = 1_300;

impl<'a> Traffic<'a> {
    /// Collects the sends of a script.
    #[must_use]
    pub fn of(script: &'a Script) -> Self {
        let mut numbers = vec![0; script.peers.len()];
        let mut sends = Vec::new();
        for (step, call) in script.steps.iter().enumerate() {
            let Step::Call { peer, words, .. } = call else { continue };
            if words.starts_with("start") {
                numbers[*peer] = 0;
            }
            if let Some(send) = read(script, *peer, words, numbers[*peer]) {
                numbers[*peer] = send.last;
                sends.push((step, send));
            }
        }
        Self { script, sends }
    }

    /// Returns the reliability of a message.
    #[must_use]
    pub fn reliability(&self, from: usize, number: u32) -> Option<u8> {
        let found = self
            .sends
            .iter()
            .find(|(_, send)| send.from == from && (send.first..=send.last).contains(&number));
        found.map(|(_, send)| send.reliability)
    }

    /// Returns whether the messages from one peer to another on a channel can overtake each other, and the last one.
    #[must_use]
    pub fn sequenced(&self, from: usize, to: usize, channel: u8) -> Sequenced {
        let of_channel =
            |(_, send): &&(usize, Send)| send.from == from && send.is_for(to) && send.is_on_channel(channel);
        let sends: Vec<_> = self.sends.iter().filter(of_channel).map(|(_, send)| send).collect();
        Sequenced {
            may_overtake: sends.windows(2).any(|pair| pair[0].priority != pair[1].priority)
                || sends.iter().any(|send| send.size >= SPLIT_FROM),
            last: sends.last().map(|send| (send.reliability, send.last)),
        }
    }

    /// Returns the messages from one peer to another that disconnects may cut off.
    ///
    /// A disconnect may cut off messages that were sent before it, unless the script has waited for them, and messages
    /// that are sent before the next connect. `is_lost` is true if a trace contains a disconnect event: a broken path
    /// may cause a disconnect, too.
    #[must_use]
    pub fn cut_off(&self, from: usize, to: usize, is_lost: bool) -> CutOff {
        let mut cut = Draft::default();
        let (mut sent, mut due) = (0, 0);
        for (at, step) in self.script.steps.iter().enumerate() {
            let send = self.sends.iter().find(|(step, _)| *step == at).map(|(_, send)| send);
            if let Some(send) = send {
                due += if send.is_for(to) { send.count() } else { 0 };
                sent = if send.from == from { send.last } else { sent };
            } else if let Step::Count { peer, messages } = step
                && *peer == to
                && u32::try_from(*messages) == Ok(due)
            {
                cut.arrived(sent);
            } else if ends(self.script, step, from, to, is_lost) {
                cut.end();
            } else if connects(self.script, step, from, to) {
                cut.connect(sent);
            }
        }
        cut.finish()
    }

    /// Returns the messages from one peer to another with receipts that a disconnect may cut off. The
    /// message itself may have arrived.
    #[must_use]
    pub fn cut_off_receipts(&self, from: usize, to: usize, is_lost: bool) -> CutOff {
        let is_cut = self.script.steps.iter().any(|step| ends(self.script, step, from, to, is_lost));
        CutOff(if is_cut { vec![(0, u32::MAX)] } else { Vec::new() })
    }

    /// Returns true if the script waits for everything to arrive after its last message with a receipt.
    #[must_use]
    pub fn waits_for_receipts(&self) -> bool {
        let last = self.sends.iter().rev().find(|(_, send)| send.reliability >= 5);
        let settled = self.script.steps.iter().rposition(|step| matches!(step, Step::Settle(_)));
        last.is_some_and(|(step, _)| settled.is_some_and(|settled| settled > *step))
    }
}

/// The cut-off ranges, while the steps of a script are read.
#[derive(Default)]
struct Draft {
    ranges: Vec<(u32, u32)>,
    /// The first message of the range that a disconnect has opened.
    open: Option<u32>,
    /// The last message that has certainly arrived.
    arrived: u32,
}

impl Draft {
    fn arrived(&mut self, last: u32) {
        self.arrived = last;
        self.ranges.clear();
        self.open = self.open.map(|_| last + 1);
    }

    fn end(&mut self) {
        self.open = self.open.or(Some(self.arrived + 1));
    }

    fn connect(&mut self, last: u32) {
        if let Some(first) = self.open.take() {
            self.ranges.push((first, last));
        }
    }

    fn finish(mut self) -> CutOff {
        self.connect(u32::MAX);
        self.ranges.retain(|(first, last)| first <= last);
        CutOff(self.ranges)
    }
}

/// Parses `send TARGET RELIABILITY CHANNEL PRIORITY SIZE [COUNT]`, or `broadcast` with the same parameters.
fn read(script: &Script, from: usize, words: &str, before: u32) -> Option<Send> {
    let mut words = words.split(' ');
    let call = words.next()?;
    let target = words.next()?;
    let named = target.strip_prefix('@').and_then(|name| script.peers.iter().position(|known| known == name));
    let to = match (call, named) {
        ("send", Some(peer)) => Target::Peer(peer),
        ("send", None) => Target::Peer(from),
        ("broadcast", Some(peer)) => Target::AllBut(peer),
        ("broadcast", None) => Target::All,
        _ => return None,
    };
    let numbers: Vec<u32> = words.map_while(|word| word.parse().ok()).collect();
    let [reliability, channel, priority, size, ref count @ ..] = numbers[..] else { return None };
    Some(Send {
        from,
        to,
        reliability: u8::try_from(reliability).ok()?,
        channel: u8::try_from(channel).ok()?,
        priority,
        size,
        first: before + 1,
        last: before + count.first().copied().unwrap_or(1),
    })
}

/// Returns true if a step disconnects two peers from each other.
fn ends(script: &Script, step: &Step, one: usize, other: usize, is_lost: bool) -> bool {
    let is_either = |peer: usize| peer == one || peer == other;
    match step {
        Step::Kill(peer) => is_either(*peer),
        Step::Cut(first, second) => is_lost && is_either(*first) && is_either(*second),
        Step::Call { peer, words, .. } => {
            let (call, rest) = words.split_once(' ').unwrap_or((words, ""));
            let named =
                || script.peers.iter().position(|name| rest.split(' ').next() == Some(&format!("@{name}")));
            match call {
                "shutdown" => is_either(*peer),
                "close" => is_either(*peer) && named().is_some_and(is_either),
                "ban" => is_lost && is_either(*peer),
                _ => false,
            }
        }
        _ => false,
    }
}

fn connects(script: &Script, step: &Step, one: usize, other: usize) -> bool {
    let Step::Call { peer, words, .. } = step else { return false };
    let to = words.strip_prefix("connect @").and_then(|rest| rest.split(' ').next());
    let to = to.and_then(|name| script.peers.iter().position(|known| known == name));
    to.is_some_and(|to| (*peer, to) == (one, other) || (to, *peer) == (one, other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::parse;

    const START: &str = "script test\na start 8 8\nb start 1 0\nc start 1 0\n";

    fn cut(steps: &str, is_lost: bool) -> Vec<(u32, u32)> {
        let script = parse(&format!("{START}{steps}")).expect("a script").remove(0);
        Traffic::of(&script).cut_off(1, 0, is_lost).0
    }

    #[test]
    fn unawaited_messages_may_be_cut_off_by_a_close() {
        assert_eq!(cut("b send @a 3 0 1 50 5\n", true), []);
        assert_eq!(cut("b send @a 3 0 1 50 5\na close @b notify\n", false), [(1, u32::MAX)]);
        let waits = "b send @a 3 0 1 50 5\nwait a messages 5\n";
        assert_eq!(cut(&format!("{waits}b close @a notify\n"), false), [(6, u32::MAX)]);
        assert_eq!(
            cut("b send @a 3 0 1 50 5\nb close @a notify\nwait a messages 5\n", false),
            [(6, u32::MAX)]
        );
        let partly = "b send @a 3 0 1 50 5\nc send @a 3 0 1 50 5\nwait a messages 5\n";
        assert_eq!(
            cut(&format!("{partly}b close @a notify\n"), false),
            [(1, u32::MAX)],
            "the five messages may come from either sender"
        );
        assert_eq!(
            cut("b send @a 3 0 1 50 5\nb close @a notify\nb connect @a\nb send @a 3 0 1 50 5\n", false),
            [(1, 5)]
        );
    }

    #[test]
    fn only_disconnects_between_two_peers_cut_off_their_messages() {
        assert_eq!(cut("c close @a notify\nkill c\nc shutdown 100\na close @c notify\n", true), []);
        for all in ["kill a\n", "a shutdown 100\n", "b shutdown 100\n", "kill b\n"] {
            assert_eq!(cut(all, false), [(1, u32::MAX)], "{all}");
        }
        assert_eq!(cut("cut a b\n", false), []);
        assert_eq!(cut("cut a b\n", true), [(1, u32::MAX)]);
        assert_eq!(cut("cut a c\n", true), []);
    }

    #[test]
    fn traffic_contains_the_reliability_and_sequence_of_every_send() {
        let steps = "b send @a 6 0 1 50 3 receipt 9\nb broadcast @a 4 2 0 5000\nb send self 3 0 1 50 2\nb broadcast - 5 1 1 9 2\n";
        let script = parse(&format!("{START}{steps}")).expect("a script").remove(0);
        let traffic = Traffic::of(&script);
        let reliabilities: Vec<_> = (1..=9).map(|number| traffic.reliability(1, number)).collect();
        let known = [6, 6, 6, 4, 3, 3, 5, 5].map(Some);
        assert_eq!((&reliabilities[..8], reliabilities[8]), (&known[..], None));
        assert_eq!(traffic.sequenced(1, 2, 2), Sequenced { may_overtake: true, last: Some((4, 4)) });
        assert_eq!(traffic.sequenced(1, 0, 2), Sequenced::default(), "the broadcast must exclude peer a");
    }
}
