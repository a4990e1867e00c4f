//! Checks of the laws in the documentation of the parent module.

use core::fmt::Debug;

use rakwire::wire::{Reader, Source, Wire, WireError, Writer};

pub(crate) const LONGEST: usize = 4_096;

pub(crate) fn written<'a>(packet: &impl Wire<'a>) -> Result<Vec<u8>, WireError> {
    let mut buffer = [0; LONGEST];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer)?;
    Ok(writer.finish().to_vec())
}

/// The lengths at which a truncated packet is still a valid packet.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    /// At no shorter length.
    Fixed,
    /// Only at this length, because the last field is optional.
    At(usize),
    /// At this length and every greater one, because the last field extends to the end.
    From(usize),
}

impl Ends {
    fn allow(self, length: usize) -> bool {
        match self {
            Self::Fixed => false,
            Self::At(end) => length == end,
            Self::From(end) => length >= end,
        }
    }
}

/// Checks the laws for a packet that was written as `bytes`.
pub(crate) fn check<'a, P: Wire<'a> + PartialEq + Debug>(packet: &P, bytes: &'a [u8], ends: Ends) {
    check_with(packet, bytes, ends, P::read);
}

pub(crate) fn check_with<'a, P: Wire<'a> + PartialEq + Debug>(
    packet: &P,
    bytes: &'a [u8],
    ends: Ends,
    read: impl Fn(&mut Reader<'a>) -> Result<P, WireError>,
) {
    let mut reader = Reader::new(bytes);
    let found = read(&mut reader).expect("a written packet can be read");
    assert_eq!(&found, packet);
    assert_eq!(reader.remaining(), 0);
    assert_eq!(written(&found).as_deref(), Ok(bytes));
    let mut buffer = [0; LONGEST];
    for length in 0..bytes.len() {
        assert_eq!(packet.write(&mut Writer::new(&mut buffer[..length])), Err(WireError::NoRoom));
        let prefix = &bytes[..length];
        match read(&mut Reader::new(prefix)) {
            Err(_) => {}
            Ok(short) => {
                assert!(ends.allow(length), "{length} of {} bytes were read as {short:?}", bytes.len());
                let again = written(&short).expect("a read packet can be written");
                assert!(prefix.starts_with(&again), "{short:?}");
            }
        }
    }
}
