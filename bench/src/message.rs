//! The messages that every program of a benchmark sends, whatever RakNet it is made of.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

/// The first byte: a user message that every peer passes on.
const ID: u8 = 0xFE;
/// The id, the number (u32 BE) and the time of sending (u64 BE, nanoseconds of the system's clock).
pub(crate) const MIN_SIZE: usize = 13;
/// What the receiver says when it has everything.
pub(crate) const DONE: &[u8] = b"\xFEdone";

/// Whether messages carry the time at which they were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    Off,
    On,
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Makes `message` the one with this number.
pub(crate) fn fill(message: &mut [u8], number: u32, stamps: Stamps) {
    let time = if stamps == Stamps::On { now() } else { 0 };
    let Some((head, rest)) = message.split_first_chunk_mut::<MIN_SIZE>() else { return };
    let [a, b, c, d] = number.to_be_bytes();
    let [s, t, u, v, w, x, y, z] = time.to_be_bytes();
    *head = [ID, a, b, c, d, s, t, u, v, w, x, y, z];
    if let Some(last) = rest.last_mut() {
        *last = d;
    }
}

/// What a receiver has seen of an ordered stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    next: u32,
    nanos: Vec<u64>,
}

impl Stream {
    /// Takes the next message.
    pub(crate) fn take(&mut self, message: &[u8], size: usize, stamps: Stamps) -> Result<()> {
        let Some((&[_, a, b, c, d, time @ ..], _)) = message.split_first_chunk::<MIN_SIZE>() else {
            bail!("a message of {} bytes", message.len());
        };
        let number = u32::from_be_bytes([a, b, c, d]);
        let torn = message.len() > MIN_SIZE && message.last() != Some(&d);
        if message.len() != size || number != self.next || torn {
            bail!("message {number} with {} bytes where {} was expected", message.len(), self.next);
        }
        self.next += 1;
        if stamps == Stamps::On {
            self.nanos.push(now().saturating_sub(u64::from_be_bytes(time)));
        }
        Ok(())
    }

    pub(crate) const fn count(&self) -> u32 {
        self.next
    }

    /// What share of the messages took at most so many microseconds; nothing without stamps.
    pub(crate) fn percentile(&mut self, share: f64) -> Option<f64> {
        percentile(&mut self.nanos, share)
    }
}

/// The value in microseconds that this share of the nanoseconds does not exceed.
pub(crate) fn percentile(nanos: &mut [u64], share: f64) -> Option<f64> {
    nanos.sort_unstable();
    let place = (nanos.len() as f64 * share).ceil() as usize;
    nanos.get(place.max(1) - 1).map(|nanos| *nanos as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_takes_what_was_filled_in_order_and_nothing_else() {
        let mut stream = Stream::default();
        let mut message = [0; 20];
        for number in 0..3 {
            fill(&mut message, number, Stamps::On);
            stream.take(&message, 20, Stamps::On).unwrap();
        }
        assert_eq!(stream.count(), 3);
        assert!(stream.take(&message, 20, Stamps::On).is_err());
        fill(&mut message, 3, Stamps::On);
        assert!(stream.take(&message, 21, Stamps::On).is_err());
        message[19] ^= 1;
        assert!(stream.take(&message, 20, Stamps::On).is_err());
        assert!(stream.percentile(0.5).is_some_and(|micros| micros >= 0.0));
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let mut nanos: Vec<u64> = (1..=100).rev().map(|value| value * 1_000).collect();
        assert_eq!(percentile(&mut nanos, 0.5), Some(50.0));
        assert_eq!(percentile(&mut nanos, 0.99), Some(99.0));
        assert_eq!(percentile(&mut nanos, 1.0), Some(100.0));
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
