//! User messages exchanged by a measurement; the second byte is the kind of probe.

/// The first byte of every message.
const ID: u8 = 0xFE;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// The receiver sends it back.
    Echo = 1,
    /// The receiver counts it.
    Counted = 2,
    /// Requests the count since the previous request.
    ReportCount = 3,
}

impl Probe {
    /// Returns the purpose of a message, or `None` if it is not a probe.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        match message {
            [ID, 1, ..] => Some(Self::Echo),
            [ID, 2, ..] => Some(Self::Counted),
            [ID, 3] => Some(Self::ReportCount),
            _ => None,
        }
    }

    /// Builds a message of `size` bytes, at least two.
    pub(super) fn message(self, size: usize) -> Vec<u8> {
        let mut message = vec![ID, self as u8];
        message.resize(size.max(2), 0x55);
        message
    }
}

/// The number of counted messages, and their total bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Count {
    pub(super) const fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        [&[ID][..], &self.messages.to_be_bytes(), &self.bytes.to_be_bytes()].concat()
    }

    pub(super) fn from_bytes(message: &[u8]) -> Option<Self> {
        let (&[ID], rest) = message.split_first_chunk::<1>()? else { return None };
        let (messages, bytes) = rest.split_first_chunk::<8>()?;
        let bytes = bytes.try_into().ok()?;
        Some(Self { messages: u64::from_be_bytes(*messages), bytes: u64::from_be_bytes(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_recognised_by_their_second_byte() {
        for probe in [Probe::Echo, Probe::Counted, Probe::ReportCount] {
            assert_eq!(Probe::of(&probe.message(2)), Some(probe));
        }
        assert_eq!(Probe::Counted.message(100).len(), 100);
        assert_eq!(Probe::of(&[ID]), None);
        assert_eq!(Probe::of(&[ID, 9]), None);
        let count = Count { messages: 5, bytes: u64::MAX };
        assert_eq!(Count::from_bytes(&count.to_bytes()), Some(count));
        assert_eq!(Count::from_bytes(&[ID, 0]), None);
    }
}
