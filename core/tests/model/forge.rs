//! The bytes of forged datagrams.

use rakwire::U24;
use rakwire::raknet::{Guid, Reliability};
use rakwire::wire::control::Control;
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope};
use rakwire::wire::{Wire, Writer};

use super::ledger::RELIABILITIES;
use super::operation::Forgery;

const SPLIT: u8 = 0x10;

/// Returns the bytes of a forged datagram for a connection with datagram numbers that started at `first`.
pub fn compose(forgery: &Forgery, first: u32) -> Vec<u8> {
    match *forgery {
        Forgery::Raw(ref bytes) => bytes.clone(),
        Forgery::Data { number, flags, reliable, order, channel, count, index, length } => {
            let split = Split { count: count.into(), id: u16::from(count % 4), index: index.into() };
            let near = |offset: u8| U24::new(first).plus(offset.into());
            let header = CapsuleHeader {
                reliability: RELIABILITIES[usize::from(flags >> 5)],
                bits: u16::from(length) * 8,
                reliable: near(reliable),
                sequence: U24::new(order.into()),
                order: U24::new((order / 2).into()),
                channel: channel % 40,
                split: (flags & SPLIT != 0).then_some(split),
            };
            let mut bytes = written(&DatagramHeader::Data { hints: 0, number: near(number) });
            bytes.extend(written(&header));
            bytes.extend((0..length).map(|byte| byte ^ flags));
            bytes
        }
        Forgery::Disconnect { number, reliable } => {
            let near = |offset: u8| U24::new(first).plus(offset.into());
            let header = CapsuleHeader {
                reliability: Reliability::Reliable,
                bits: 8,
                reliable: near(reliable),
                sequence: U24::new(0),
                order: U24::new(0),
                channel: 0,
                split: None,
            };
            let mut bytes = written(&DatagramHeader::Data { hints: 0, number: near(number) });
            bytes.extend(written(&header));
            bytes.extend(written(&Control::Disconnect));
            bytes
        }
        Forgery::Records { first, last, copies, missing } => {
            let record = Record { first: U24::new(first), last: U24::new(last) };
            let records = u16::from(copies);
            let mut bytes = if missing {
                written(&DatagramHeader::Nack { records })
            } else {
                written(&DatagramHeader::Ack { arrival_speed: None, records })
            };
            (0..copies).for_each(|_| bytes.extend(written(&record)));
            bytes
        }
        Forgery::Request2 { cookie, guid } => written(&Offline::Request2 {
            security: cookie.map_or(ClientSecurity::None, ClientSecurity::Cookie),
            server: ([192, 0, 2, 2], 7).into(),
            mtu: 1_492,
            guid: Guid(guid.into()),
        }),
        Forgery::Request1 { protocol, padding } => {
            let mut bytes = written(&Offline::Request1 { protocol: protocol % 12, mtu: 576 });
            bytes.truncate(18 + usize::from(padding));
            bytes
        }
        Forgery::Ping => written(&Offline::Ping { scope: PingScope::Any, time: 5, guid: None }),
    }
}

fn written<'a>(packet: &impl Wire<'a>) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let mut writer = Writer::new(&mut buffer);
    match packet.write(&mut writer) {
        Ok(()) => writer.finish().to_vec(),
        Err(_) => Vec::new(),
    }
}
