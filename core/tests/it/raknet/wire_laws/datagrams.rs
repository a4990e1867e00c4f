//! Datagrams of a connection: headers, capsules, acknowledgements.

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire::U24;
use rakwire::raknet::Reliability;
use rakwire::wire::datagram::{CHANNELS, CapsuleHeader, DatagramHeader, Record, Split};
use rakwire::wire::{Reader, Source, Wire};

use super::laws::{Ends, check, written};
use super::values::u24s;
use crate::model::ledger::RELIABILITIES;

proptest! {
    /// The reliability determines which fields are on the wire. Absent fields are read as zero.
    #[test]
    fn capsule_headers_round_trip(header in capsule_headers()) {
        check(&header, &written(&header)?, Ends::Fixed);
    }

    /// A truncated datagram is read up to the first incomplete capsule.
    #[test]
    fn data_datagrams_round_trip(
        hints in 0_u8..32,
        number in u24s(),
        capsules in vec((capsule_headers(), any::<u8>()), 0..8),
        cut in any::<proptest::sample::Index>(),
    ) {
        let header = DatagramHeader::Data { hints, number };
        check(&header, &written(&header)?, Ends::Fixed);
        let mut bytes = written(&header)?;
        let mut ends = Vec::new();
        for (capsule, filling) in &capsules {
            bytes.extend(written(capsule)?);
            bytes.resize(bytes.len() + capsule.length(), *filling);
            ends.push(bytes.len());
        }
        prop_assert_eq!(&capsules_of(&bytes), &capsules);
        let cut = cut.index(bytes.len() + 1).max(4);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        prop_assert_eq!(&capsules_of(&bytes[..cut])[..], &capsules[..whole]);
    }

    #[test]
    fn acknowledgements_round_trip(speed in proptest::option::of(any::<f32>()), records: u16) {
        let ack = DatagramHeader::Ack { arrival_speed: speed, records };
        check(&ack, &written(&ack)?, Ends::Fixed);
        let nack = DatagramHeader::Nack { records };
        check(&nack, &written(&nack)?, Ends::Fixed);
    }

    #[test]
    fn records_round_trip(first in u24s(), more in 0_u32..2_000) {
        let last = U24::new((first.get() + more).min(0xFF_FFFF));
        for record in [Record { first, last }, Record { first, last: first }] {
            let bytes = written(&record)?;
            prop_assert_eq!(bytes.len(), if record.first == record.last { 4 } else { 7 });
            check(&record, &bytes, Ends::Fixed);
        }
    }
}

fn reliabilities() -> impl Strategy<Value = Reliability> {
    proptest::sample::select(RELIABILITIES.to_vec())
}

fn splits() -> impl Strategy<Value = Split> {
    (1_u32.., any::<u16>(), any::<u32>()).prop_map(|(count, id, index)| Split {
        count,
        id,
        index: index % count,
    })
}

fn capsule_headers() -> impl Strategy<Value = CapsuleHeader> {
    let numbers = (u24s(), u24s(), u24s(), 0..CHANNELS);
    (reliabilities(), 1_u16..=2_000, numbers, proptest::option::of(splits())).prop_map(
        |(reliability, bits, (reliable, sequence, order, channel), split)| {
            let zero = U24::new(0);
            let has_number = reliability.is_reliable() && !reliability.has_receipt();
            CapsuleHeader {
                reliability,
                bits,
                reliable: if has_number { reliable } else { zero },
                sequence: if reliability.is_sequenced() { sequence } else { zero },
                order: if reliability.has_channel() { order } else { zero },
                channel: if reliability.has_channel() { channel } else { 0 },
                split,
            }
        },
    )
}

/// Returns the capsules of a datagram, each with the byte that fills its payload.
fn capsules_of(datagram: &[u8]) -> Vec<(CapsuleHeader, u8)> {
    let mut reader = Reader::new(datagram);
    DatagramHeader::read(&mut reader).expect("a header");
    let mut capsules = Vec::new();
    while let Ok(capsule) = CapsuleHeader::read(&mut reader) {
        let Ok(payload) = reader.bytes("payload", capsule.length()) else { break };
        capsules.push((capsule, payload[0]));
    }
    capsules
}
