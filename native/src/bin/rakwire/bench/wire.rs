//! What the two ends of a measurement say to each other: a user message, whose second byte says what it is for.

/// The first byte of every message.
const ID: u8 = 0xFE;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// To be sent back.
    Echo = 1,
    /// To be counted.
    Counted = 2,
    /// Asks what was counted since the last time.
    Tell = 3,
}

impl Probe {
    /// What a message is for; nothing if it is none of these.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        match message {
            [ID, 1, ..] => Some(Self::Echo),
            [ID, 2, ..] => Some(Self::Counted),
            [ID, 3] => Some(Self::Tell),
            _ => None,
        }
    }

    /// A message of `size` bytes, at least two.
    pub(super) fn message(self, size: usize) -> Vec<u8> {
        let mut message = vec![ID, self as u8];
        message.resize(size.max(2), 0x55);
        message
    }
}

/// Messages that were counted, and their bytes.
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
    fn messages_say_what_they_are_for() {
        for probe in [Probe::Echo, Probe::Counted, Probe::Tell] {
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
