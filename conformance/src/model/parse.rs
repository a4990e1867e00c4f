//! Decodes datagrams, correctly or with a decoding fault.

use super::fault::Fault;
use crate::wire::{Capsule, Reader, Split};

/// Returns the capsules of a datagram, and true if the whole datagram was decoded.
pub(super) fn capsules(bytes: &[u8], fault: Fault) -> (Vec<Capsule>, bool) {
    let mut from = Reader(bytes);
    let mut out = Vec::new();
    while !from.is_empty() {
        if fault == Fault::SkipsEmptyCapsules && from.0.len() > 3 && from.0[..3] == [0, 0, 0] {
            from.bytes(3);
            continue;
        }
        let rest = from.0;
        let Some(capsule) = capsule(&mut from, fault) else {
            if fault == Fault::ZerosDropDatagram && rest.iter().all(|&byte| byte == 0) {
                out.clear();
            }
            return (out, false);
        };
        out.push(capsule);
        match fault {
            Fault::FirstCapsuleOnly => break,
            Fault::FirstCapsulesOnly(most) if out.len() == most => break,
            _ => {}
        }
    }
    (out, true)
}

fn capsule(from: &mut Reader<'_>, fault: Fault) -> Option<Capsule> {
    let flags = from.u8()?;
    let bits = usize::from(from.u16()?);
    if fault == Fault::CapsuleFlagsExact && flags & 0x0f != 0 {
        return None;
    }
    let mut capsule = Capsule { reliability: flags >> 5, ..Capsule::default() };
    if capsule.is_reliable() {
        capsule.number = from.u24()?;
    }
    if capsule.is_sequenced() {
        capsule.sequence = from.u24()?;
    }
    if capsule.has_order() {
        capsule.order = from.u24()?;
        capsule.channel = from.u8()?;
    }
    if flags & 0x10 != 0 {
        let split = Split { count: from.u32()?, id: from.u16()?, index: from.u32()? };
        (split.index < split.count || fault == Fault::SplitIndexUnchecked).then_some(())?;
        capsule.split = Some(split);
    }
    let channels = if let Fault::ChannelLimit(channels) = fault { channels } else { 32 };
    (bits != 0 && capsule.channel < channels).then_some(())?;
    let len = if fault == Fault::BitsRoundedDown { bits / 8 } else { bits.div_ceil(8) };
    let len = if fault == Fault::DeliversCutOff { len.min(from.0.len()) } else { len };
    capsule.payload = from.bytes(len)?.to_vec();
    Some(capsule)
}

/// Returns the valid ranges of an acknowledgement, and its defect.
pub(super) fn records(bytes: &[u8], fault: Fault) -> (Vec<(u32, u32)>, Broken) {
    let mut out = Vec::new();
    let mut from = Reader(bytes);
    let count = from.u16().unwrap_or_default();
    for _ in 0..count {
        match record(&mut from, fault) {
            Some((first, last)) if first > last => return (out, Broken::Backwards),
            Some(record) => out.push(record),
            None => return (out, Broken::Truncated),
        }
    }
    (out, Broken::No)
}

/// The defect of a malformed acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    No,
    Truncated,
    Backwards,
}

fn record(from: &mut Reader<'_>, fault: Fault) -> Option<(u32, u32)> {
    let flag = from.u8()?;
    let first = from.u24()?;
    if flag == 1 || flag != 0 && fault != Fault::FlagOneOnly {
        return Some((first, first));
    }
    if flag != 0 {
        return None;
    }
    let last = from.u24()?;
    Some((first, if fault == Fault::ReadsRunsAsSingles { first } else { last }))
}
