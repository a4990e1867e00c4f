//! A connection of the model: reliability, ordering and split messages.

use super::fault::Fault;
use super::parse::{self, Broken};
use crate::wire::{self, Capsule, Split, U24, id};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Reply 2 was sent.
    Reserved,
    /// Connection request accepted (10) was sent.
    Requested,
    /// The password was wrong.
    Refused,
    /// New incoming connection (13) was received.
    Open,
    /// Disconnection notification (15) was received.
    Closed(Instant),
}

#[derive(Debug, Default)]
struct Channel {
    next: u32,
    newest: Option<u32>,
    waiting: Vec<Capsule>,
}

#[derive(Debug)]
struct Assembly {
    first: Capsule,
    count: u32,
    arrived: u32,
    parts: BTreeMap<u32, Vec<u8>>,
    in_order_of_arrival: Vec<u8>,
}

#[derive(Debug)]
struct Unacked {
    datagram: u32,
    at: Instant,
    capsule: Capsule,
}

/// The effect of a faulty connection on the whole server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    /// The server stops answering permanently.
    Die,
    /// Every connection of the server is closed.
    DisconnectAll,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) guid: u64,
    pub(super) mtu: u16,
    pub(super) stage: Stage,
    pub(super) heard: Instant,
    pub(super) outgoing: Vec<Vec<u8>>,
    /// Delivered messages, for the server and its application.
    pub(super) delivered: Vec<Capsule>,
    pub(super) opened: Option<Instant>,
    pub(super) pinged: Option<Instant>,
    fault: Fault,
    expected: u32,
    confused: bool,
    datagrams: HashSet<u32>,
    pending: Vec<u32>,
    pending_since: Instant,
    reported: Vec<(u32, u32)>,
    reliable: HashSet<u32>,
    next_in_line: u32,
    channels: HashMap<u8, Channel>,
    assemblies: HashMap<u16, Assembly>,
    finished: HashSet<u16>,
    next_datagram: u32,
    next_reliable: u32,
    next_order: u32,
    next_split: u16,
    unacked: Vec<Unacked>,
}

const RESEND: Duration = Duration::from_millis(200);

impl Connection {
    pub(super) fn new(guid: u64, mtu: u16, fault: Fault, used_before: bool) -> Self {
        let now = Instant::now();
        let reused = u32::from(fault == Fault::ReusesState && used_before) * 3;
        Self {
            guid,
            mtu,
            stage: Stage::Reserved,
            heard: now,
            outgoing: Vec::new(),
            delivered: Vec::new(),
            opened: None,
            pinged: None,
            fault,
            expected: 0,
            confused: false,
            datagrams: HashSet::new(),
            pending: Vec::new(),
            pending_since: now,
            reported: Vec::new(),
            reliable: HashSet::new(),
            next_in_line: 0,
            channels: HashMap::new(),
            assemblies: HashMap::new(),
            finished: HashSet::new(),
            next_datagram: if let Fault::FirstDatagram(first) = fault { first } else { 0 },
            next_reliable: 0,
            next_order: if let Fault::FirstOrder(first) = fault { first } else { reused },
            next_split: 0,
            unacked: Vec::new(),
        }
    }

    /// Handles a datagram of the connection.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Wish {
        self.heard = Instant::now();
        if self.fault == Fault::DropsLongerThanMtu && bytes.len() > usize::from(self.mtu) - 28 {
            return Wish::Nothing;
        }
        if bytes[0] & 0x40 != 0 {
            return self.take_records(bytes, true);
        }
        if bytes[0] & 0x20 != 0 {
            return self.take_records(bytes, false);
        }
        self.take_data(bytes)
    }

    fn take_records(&mut self, bytes: &[u8], ack: bool) -> Wish {
        let speed = ack && bytes[0] & 0x20 != 0;
        match self.fault {
            Fault::AckByteExact if ack && !matches!(bytes[0], 0xc0 | 0xe0) => return Wish::Nothing,
            Fault::IgnoresSpeedForm if speed => return Wish::Nothing,
            Fault::AcksAcks if ack => self.outgoing.push(wire::records(0xc0, &[(0, 0)])),
            Fault::AcksNaks if !ack => self.outgoing.push(wire::records(0xc0, &[(0, 0)])),
            _ => {}
        }
        let at = if speed { 5 } else { 1 };
        let (records, broken) = parse::records(bytes.get(at..).unwrap_or_default(), self.fault);
        let unknown = records.iter().any(|record| record.1 >= self.next_datagram);
        let wide = records.iter().any(|record| record.1 - record.0 > 100_000);
        let dies = match self.fault {
            Fault::DiesOfTruncatedAck => broken == Broken::Truncated,
            Fault::DiesOfBackwardsRecord => broken == Broken::Backwards,
            Fault::DiesOfUnknownAck => ack && unknown,
            Fault::DiesOfUnknownNak => !ack && unknown,
            Fault::HangsOnWideAck => wide,
            _ => false,
        };
        if dies {
            return Wish::Die;
        }
        let named = |number: u32| records.iter().any(|record| (record.0..=record.1).contains(&number));
        if ack && self.fault != Fault::ResendsForever {
            self.unacked.retain(|unacked| !named(unacked.datagram));
        }
        if !ack && self.fault != Fault::IgnoresNaks {
            let named: Vec<bool> = self.unacked.iter().map(|unacked| named(unacked.datagram)).collect();
            self.resend(|index, _| named[index]);
        }
        Wish::Nothing
    }

    fn take_data(&mut self, bytes: &[u8]) -> Wish {
        let exact = self.fault != Fault::DataByteExact || matches!(bytes[0], 0x80 | 0x84);
        let Some(number) = wire::Reader(&bytes[1..]).u24().filter(|_| exact && !self.confused) else {
            return Wish::Nothing;
        };
        let Some(fresh) = self.accept_number(number) else {
            return Wish::Nothing;
        };
        let (capsules, clean) = parse::capsules(&bytes[4..], self.fault);
        if !clean && matches!(self.fault, Fault::DiesOfGarbage | Fault::DiesOfTruncatedData) {
            return Wish::Die;
        }
        self.acknowledge(number, fresh, &capsules);
        if !fresh && self.fault == Fault::DropsRepeatedNumbers {
            return Wish::Nothing;
        }
        let mut part_seen = false;
        for capsule in capsules {
            let repeated = !fresh && !capsule.is_reliable() && self.fault != Fault::UnreliableTwice;
            let second_part = capsule.split.is_some() && part_seen && self.fault == Fault::OnePartADatagram;
            part_seen |= capsule.split.is_some();
            if repeated || second_part {
                continue;
            }
            if self.receive(capsule) == Wish::Die {
                return Wish::Die;
            }
        }
        Wish::Nothing
    }

    /// Returns true for a new datagram, false for a repeated one, and `None` if the datagram is to be ignored.
    fn accept_number(&mut self, number: u32) -> Option<bool> {
        let ahead = number.wrapping_sub(self.expected) & (U24 - 1);
        if self.fault == Fault::NoWrap && number + 0x80_0000 < self.expected {
            return None;
        }
        if self.fault == Fault::NaksTwice && !self.reported.is_empty() {
            self.outgoing.push(wire::records(0xa0, &self.reported));
        }
        if ahead > 0x7f_ffff {
            return (self.fault != Fault::DropsLate).then(|| self.datagrams.insert(number));
        }
        let most = if self.fault == Fault::RefusesJumps { 100 } else { 50_000 };
        if ahead > most && self.fault != Fault::TakesAnyJump {
            self.confused = self.fault == Fault::JumpConfuses;
            return None;
        }
        if ahead > 0 && self.fault != Fault::NoNaks {
            self.report_missing(number, ahead);
        }
        self.expected = if self.fault == Fault::NoWrap { number + 1 } else { (number + 1) % U24 };
        self.datagrams.insert(number);
        Some(true)
    }

    fn report_missing(&mut self, number: u32, ahead: u32) {
        let most = if self.fault == Fault::NaksAll { ahead } else { 1000 };
        let mut first = (number + U24 - ahead.min(most)) % U24;
        if self.fault == Fault::NaksTooMany {
            first = first.saturating_sub(1);
        }
        let last = (number + U24 - 1) % U24;
        let runs = if first <= last || self.fault == Fault::NaksWrapped {
            vec![(first, last)]
        } else {
            vec![(first, U24 - 1), (0, last)]
        };
        self.outgoing.push(wire::records(0xa0, &runs));
        self.reported = runs;
    }

    fn acknowledge(&mut self, number: u32, fresh: bool, capsules: &[Capsule]) {
        let holds = |id: u8| capsules.iter().any(|capsule| capsule.payload.first() == Some(&id));
        let withheld = match self.fault {
            Fault::AcksOnlyReliable => !capsules.iter().any(Capsule::is_reliable),
            Fault::NoAckOfDuplicates => !fresh,
            Fault::NoAckOfFirst => number == 0,
            Fault::NoAckOfNewIncoming => holds(id::NEW_INCOMING),
            Fault::NoAckOfDisconnection => holds(id::DISCONNECTION),
            Fault::AcksWholeOnly => capsules.iter().any(|capsule| capsule.split.is_some()),
            _ => false,
        };
        if withheld {
            return;
        }
        if self.pending.is_empty() {
            self.pending_since = Instant::now();
        }
        self.pending.push(number);
        if self.fault == Fault::AcksSingly {
            self.flush_acks();
        }
    }

    pub(super) fn flush_acks(&mut self) {
        let late = self.fault == Fault::LateAcks && self.pending_since.elapsed() < Duration::from_millis(150);
        if self.pending.is_empty() || late {
            return;
        }
        self.pending.sort_unstable();
        self.pending.dedup();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &number in &self.pending {
            match runs.last_mut() {
                Some(run) if run.1 + 1 == number => run.1 = number,
                _ => runs.push((number, number)),
            }
        }
        if self.fault == Fault::AcksLastOfBurst {
            runs = runs.last().map(|run| (run.1, run.1)).into_iter().collect();
        }
        if let Some(run) = runs.last_mut().filter(|_| self.fault == Fault::AcksOneMore) {
            run.1 += 1;
        }
        let mut bytes = wire::records(0xc0, &runs);
        if self.fault == Fault::AckTail {
            bytes.push(1);
        }
        self.outgoing.push(bytes);
        self.pending.clear();
    }

    fn receive(&mut self, mut capsule: Capsule) -> Wish {
        if self.fault == Fault::OneChannelForAll {
            capsule.channel = 0;
        }
        let is_new = !capsule.is_reliable() || self.reliable.insert(capsule.number);
        if !is_new && self.fault != Fault::DeliversDuplicates {
            return Wish::Nothing;
        }
        if capsule.is_reliable() && self.fault == Fault::ReliableInOrder {
            if capsule.number != self.next_in_line {
                return Wish::Nothing;
            }
            self.next_in_line += 1;
        }
        let Some(split) = capsule.split else {
            self.order(capsule);
            return Wish::Nothing;
        };
        let dies = match self.fault {
            Fault::DiesOfSplitCount => split.count > 1_000_000,
            Fault::DiesOfUnfinished(most) => self.assemblies.len() >= most,
            _ => false,
        };
        if dies {
            return Wish::Die;
        }
        if let Some(whole) = self.assemble(capsule, split) {
            if self.fault == Fault::PartsIgnoreOrder {
                self.delivered.push(whole);
            } else {
                self.order(whole);
            }
        }
        Wish::Nothing
    }

    fn assemble(&mut self, part: Capsule, split: Split) -> Option<Capsule> {
        let refused = match self.fault {
            Fault::NoSplits => true,
            Fault::PartLimit(most) => split.count > most,
            Fault::RefusesOnePart => split.count == 1,
            Fault::SplitIdOnce => self.finished.contains(&split.id),
            _ => split.count > 10_000,
        };
        if refused {
            return None;
        }
        if self.fault == Fault::DeliversIncomplete {
            return Some(part);
        }
        if self.fault == Fault::OneSplitAtATime {
            self.assemblies.retain(|&id, _| id == split.id);
        }
        let assembly = self.assemblies.entry(split.id).or_insert_with(|| Assembly {
            first: Capsule { split: None, payload: Vec::new(), ..part.clone() },
            count: split.count,
            arrived: 0,
            parts: BTreeMap::new(),
            in_order_of_arrival: Vec::new(),
        });
        if self.fault == Fault::TakesLastCount {
            assembly.count = split.count;
        }
        if assembly.count != split.count {
            return None;
        }
        assembly.arrived += 1;
        assembly.in_order_of_arrival.extend(&part.payload);
        assembly.parts.entry(split.index).or_insert(part.payload);
        let parts = assembly.parts.len() as u32;
        let arrived = if self.fault == Fault::CountsPartsTwice { assembly.arrived } else { parts };
        if arrived < assembly.count {
            return None;
        }
        let whole = self.assemblies.remove(&split.id)?;
        self.finished.insert(split.id);
        let payload = match self.fault {
            Fault::PartsInArrivalOrder => whole.in_order_of_arrival,
            _ => whole.parts.into_values().flatten().collect(),
        };
        Some(Capsule { payload, ..whole.first })
    }

    /// Delivers a message in the order of its channel.
    fn order(&mut self, capsule: Capsule) {
        if !capsule.has_order() {
            self.delivered.push(capsule);
            return;
        }
        let fault = self.fault;
        let channel = self.channels.entry(capsule.channel).or_default();
        let ahead = capsule.order.wrapping_sub(channel.next) & (U24 - 1);
        let sequenced = capsule.is_sequenced();
        if ahead > 0x7f_ffff {
            let forgives = if sequenced { Fault::SequencedOldDelivered } else { Fault::OrderedOldDelivered };
            if fault == forgives {
                self.delivered.push(capsule);
            }
            return;
        }
        let at_once = (sequenced && fault == Fault::SequencedIgnoresOrder)
            || (!sequenced && fault == Fault::OrderedAtOnce);
        if ahead > 0 && !at_once {
            if fault != Fault::ForgetsWaiting {
                channel.waiting.push(capsule);
            }
            return;
        }
        let mut released = Vec::new();
        channel.release(capsule, fault, &mut released);
        channel.release_waiting(fault, &mut released);
        if fault == Fault::ReleasesReversed {
            released.reverse();
        }
        self.delivered.extend(released);
    }

    /// Sends a message, split if necessary.
    pub(super) fn send(&mut self, reliability: u8, payload: Vec<u8>) {
        if self.fault == Fault::MuteControl(payload[0]) {
            return;
        }
        let longest = usize::from(self.mtu) - 28 - 9 - 23;
        let longest = if self.fault == Fault::IgnoresMtu { 3000 } else { longest };
        let order = if reliability == 3 { self.take_order() } else { 0 };
        let whole = Capsule { reliability, order, ..Capsule::unreliable(payload) };
        if whole.payload.len() <= longest {
            self.number_and_send(whole);
            return;
        }
        let pieces: Vec<Vec<u8>> = whole.payload.chunks(longest).map(<[u8]>::to_vec).collect();
        let (count, id) = (pieces.len() as u32, self.next_split);
        self.next_split += 1;
        let shared = self.next_reliable;
        for (index, payload) in (0..).zip(pieces) {
            let split = Some(Split { count, id, index });
            let mut part = Capsule { split, payload, ..whole.clone() };
            match self.fault {
                Fault::PartsDiffer => part.order += index,
                Fault::PartsShareNumber => self.next_reliable = shared,
                Fault::PartsUnreliable => part.reliability = 0,
                _ => {}
            }
            self.number_and_send(part);
        }
    }

    fn take_order(&mut self) -> u32 {
        let step = if self.fault == Fault::SkipsOrder { 2 } else { 1 };
        self.next_order += step;
        self.next_order - step
    }

    fn number_and_send(&mut self, mut capsule: Capsule) {
        if capsule.is_reliable() {
            capsule.number = self.next_reliable;
            self.next_reliable += if self.fault == Fault::SkipsReliableNumbers { 2 } else { 1 };
        }
        let datagram = self.send_capsule(&capsule);
        if capsule.is_reliable() {
            self.unacked.push(Unacked { datagram, at: Instant::now(), capsule });
        }
    }

    fn send_capsule(&mut self, capsule: &Capsule) -> u32 {
        let number = self.next_datagram;
        self.next_datagram += if self.fault == Fault::SkipsDatagramNumbers { 2 } else { 1 };
        self.outgoing.push(wire::data(0x84, number, std::slice::from_ref(capsule)));
        number
    }

    /// Retransmits messages with an expired retransmission timeout.
    pub(super) fn resend_late(&mut self) {
        let after = if self.fault == Fault::ResendsWildly { Duration::ZERO } else { RESEND };
        self.resend(|_, unacked| unacked.at.elapsed() >= after);
    }

    fn resend(&mut self, which: impl Fn(usize, &Unacked) -> bool) {
        if self.fault == Fault::NeverResends {
            return;
        }
        for index in 0..self.unacked.len() {
            if !which(index, &self.unacked[index]) {
                continue;
            }
            let mut capsule = self.unacked[index].capsule.clone();
            if self.fault == Fault::ResendsRenumbered {
                capsule.number = self.next_reliable;
                self.next_reliable += 1;
            }
            let before = self.next_datagram;
            if self.fault == Fault::ResendsSameDatagram {
                self.next_datagram = self.unacked[index].datagram;
            }
            let datagram = self.send_capsule(&capsule);
            self.next_datagram = self.next_datagram.max(before);
            self.unacked[index] = Unacked { datagram, at: Instant::now(), capsule };
        }
    }

    /// Stops retransmitting: drops all unacknowledged messages.
    pub(super) fn stop_sending(&mut self) {
        self.unacked.clear();
    }
}

impl Channel {
    /// Delivers a message that has the next ordering index.
    fn release(&mut self, capsule: Capsule, fault: Fault, out: &mut Vec<Capsule>) {
        if !capsule.is_sequenced() {
            self.next = (capsule.order + 1) % U24;
            if fault != Fault::SequencingGoesOn {
                self.newest = None;
            }
            out.push(capsule);
            return;
        }
        let newer = self.newest.is_none_or(|newest| match fault {
            Fault::SequenceNoWrap => capsule.sequence > newest,
            Fault::SequencedOldDelivered => true,
            _ => wire::is_newer(capsule.sequence, newest),
        });
        let in_line = capsule.sequence == self.newest.map_or(0, |newest| newest + 1);
        if newer && (in_line || fault != Fault::SequencedWaits) {
            self.newest = Some(capsule.sequence);
            out.push(capsule);
        }
    }

    /// Delivers queued messages: within each gap, sequenced messages precede the ordered one.
    fn release_waiting(&mut self, fault: Fault, out: &mut Vec<Capsule>) {
        loop {
            let turn = self.waiting.iter().enumerate().filter(|(_, capsule)| capsule.order == self.next);
            let first = turn.min_by_key(|(_, capsule)| (!capsule.is_sequenced(), capsule.sequence));
            let Some((at, _)) = first else {
                return;
            };
            let capsule = self.waiting.remove(at);
            self.release(capsule, fault, out);
        }
    }
}
