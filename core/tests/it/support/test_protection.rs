//! A test implementation of packet protection, with eleven bytes of overhead.

use rakwire::wire::protection::PacketProtection;

/// A protection that inverts the bits of a datagram, and appends a checksum of eight bytes and a number of three bytes.
///
/// A datagram with a number that is not above the last opened one is refused.
#[derive(Debug, Default)]
pub(crate) struct TestProtection {
    sealed: u32,
    opened: u32,
}

pub(crate) const OVERHEAD: u16 = 11;
const SUM: usize = 8;

impl PacketProtection for TestProtection {
    fn overhead(&self) -> u16 {
        OVERHEAD
    }

    fn seal(&mut self, datagram: &mut [u8], length: usize) -> Option<usize> {
        let (plain, room) = datagram.split_at_mut_checked(length)?;
        let room = room.get_mut(..OVERHEAD.into())?;
        self.sealed += 1;
        let number = self.sealed.to_be_bytes();
        room[..SUM].copy_from_slice(&sum(plain, &number[1..]));
        room[SUM..].copy_from_slice(&number[1..]);
        flip(plain);
        Some(length + usize::from(OVERHEAD))
    }

    fn open(&mut self, datagram: &mut [u8]) -> Option<usize> {
        let length = datagram.len().checked_sub(OVERHEAD.into())?;
        let (plain, mark) = datagram.split_at_mut(length);
        flip(plain);
        let number = u32::from_be_bytes([0, mark[SUM], mark[SUM + 1], mark[SUM + 2]]);
        if sum(plain, &mark[SUM..]) != mark[..SUM] || number <= self.opened {
            return None;
        }
        self.opened = number;
        Some(length)
    }
}

/// Inverts all bits except the first one, which distinguishes datagrams of connections from offline messages.
fn flip(plain: &mut [u8]) {
    plain.iter_mut().for_each(|byte| *byte = !*byte);
    if let Some(first) = plain.first_mut() {
        *first ^= 0x80;
    }
}

/// Returns an FNV-1a checksum. It detects any single changed byte, but not a deliberate forgery.
fn sum(plain: &[u8], number: &[u8]) -> [u8; SUM] {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    plain.iter().chain(number).fold(0xCBF2_9CE4_8422_2325, step).to_be_bytes()
}
