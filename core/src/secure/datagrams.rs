//! Packet protection: sealing, opening, key epochs and the replay window (docs/secure.md#datagrams).

use core::time::Duration;

use super::primitives::{DatagramCipher, RustCrypto, Secret, TAG, nonce, rekey};
use crate::time::{Instant, micros};

/// The length of the clear header: the first bit, the low bits of the epoch and the low bits of the counter.
pub(crate) const HEADER: usize = 3;
/// The number of bytes that sealing adds to a datagram.
pub const OVERHEAD: u16 = (HEADER + TAG) as u16;

const FIRST_BIT: u32 = 1 << 23;
const EPOCH_MASK: u32 = 3;

error_enum! {
    /// The reason why a sealed datagram was not opened.
    #[non_exhaustive]
    pub enum OpenError {
        /// The datagram is too short, or its first bit is not set.
        Malformed => "the datagram is not sealed",
        /// The datagram was opened before, or its counter is behind the replay window.
        Replayed => "the datagram was opened before, or is too old",
        /// The authentication tag is wrong, or the key of the datagram's epoch is not available.
        Forged => "the datagram was not sealed by the peer, or was changed in transit",
    }
}

/// The limits of a key epoch. When `datagrams`, `age` or `forged` is reached, the next epoch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RekeyLimits {
    /// The maximum number of datagrams sealed in an epoch.
    pub datagrams: u64,
    /// The maximum age of an epoch, at most 71 minutes.
    pub age: Duration,
    /// The maximum number of datagrams that failed to open in an epoch.
    pub forged: u64,
    /// The time for which the previous key can still open late datagrams.
    pub previous_key: Duration,
}

impl RekeyLimits {
    /// The limits of the protocol: 2^20 datagrams, 120 s, 2^35 failed datagrams; the previous key is kept for 5 s.
    pub const DEFAULT: Self = Self {
        datagrams: 1 << 20,
        age: Duration::from_secs(120),
        forged: 1 << 35,
        previous_key: Duration::from_secs(5),
    };
}

impl Default for RekeyLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The keys of both directions.
pub(super) struct Keys {
    pub(super) sending: Secret,
    pub(super) receiving: Secret,
}

impl Keys {
    pub(super) fn of_client([to_server, to_client]: [Secret; 2]) -> Self {
        Self { sending: to_server, receiving: to_client }
    }

    pub(super) fn of_server([to_server, to_client]: [Secret; 2]) -> Self {
        Self { sending: to_client, receiving: to_server }
    }
}

struct Sending {
    key: Secret,
    epoch: u32,
    /// The start time of the epoch.
    since: Instant,
    /// The number of datagrams sealed in the epoch.
    sealed: u64,
    /// The counter of the next datagram.
    counter: u64,
}

struct Receiving {
    key: Secret,
    epoch: u32,
    /// The key of the next epoch; `None` until the handshake has derived it.
    next: Option<Secret>,
    /// The key of the previous epoch and its expiry.
    previous: Option<(Secret, Instant)>,
    window: ReplayWindow,
    /// The number of datagrams of the epoch that failed to open.
    forged: u64,
}

/// The epoch of the key that opens a datagram, relative to the current epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyOf {
    Previous,
    Current,
    Next,
    /// The epoch after the next: all datagrams of the next epoch were lost.
    AfterNext,
}

/// Seals and opens the datagrams of one connection, in both directions.
///
/// It has no clock: the time is passed with each datagram. Keys are erased at the end of their epoch and on drop.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::secure::{DatagramProtection, OVERHEAD, OpenError};
///
/// // In a real program the keys come from a handshake.
/// let mut client = DatagramProtection::with_keys([1; 32], [2; 32], Instant::ZERO);
/// let mut server = DatagramProtection::with_keys([2; 32], [1; 32], Instant::ZERO);
/// let mut datagram = [0; 64];
/// datagram[..5].copy_from_slice(b"plain");
/// let length = client.seal(Instant::ZERO, &mut datagram, 5).expect("enough space");
/// assert_eq!(length, 5 + usize::from(OVERHEAD));
/// let mut copy = datagram;
/// assert_eq!(server.open(Instant::ZERO, &mut datagram[..length]), Ok(&mut b"plain"[..].to_owned()[..]));
/// assert_eq!(server.open(Instant::ZERO, &mut copy[..length]), Err(OpenError::Replayed));
/// ```
pub struct DatagramProtection {
    sending: Sending,
    receiving: Receiving,
    /// Client with an identity (XK): the sending key of epoch 1, until the handshake has finished.
    next_sending: Option<Secret>,
    /// True while epoch 0 ends with the handshake (XK), and not when a limit is reached.
    is_early: bool,
    limits: RekeyLimits,
    cipher: &'static dyn DatagramCipher,
}

impl DatagramProtection {
    /// Creates packet protection from the keys of epoch 0, for example keys of another implementation.
    #[must_use]
    pub fn with_keys(sending: [u8; 32], receiving: [u8; 32], now: Instant) -> Self {
        Self::new(Keys { sending: Secret::new(sending), receiving: Secret::new(receiving) }, now)
    }

    /// Creates epoch 0 of a client without an identity (NK); later epochs are derived by rekeying.
    pub(super) fn new(keys: Keys, now: Instant) -> Self {
        let next = Some(rekey(&keys.receiving));
        Self { is_early: false, ..Self::early(keys, next, None, now) }
    }

    /// Creates epoch 0 of XK at the server, before the keys of epoch 1 are known.
    pub(super) fn early_of_server(keys: Keys, now: Instant) -> Self {
        Self::early(keys, None, None, now)
    }

    /// Creates epoch 0 of XK at the client.
    pub(super) fn early_of_client(keys: Keys, next: Keys, now: Instant) -> Self {
        Self::early(keys, Some(next.receiving), Some(next.sending), now)
    }

    /// Creates packet protection that only opens the datagrams of one direction.
    ///
    /// It takes the key of epoch 0 and, unless rekeying yields it, the key of epoch 1.
    #[cfg(feature = "key-log")]
    pub(super) fn opening(epoch_0: &[u8; 32], epoch_1: Option<&[u8; 32]>) -> Self {
        let secret = |bytes: &[u8; 32]| Secret::new(*bytes);
        let next = epoch_1.map_or_else(|| rekey(&secret(epoch_0)), secret);
        let keys = Keys { sending: secret(epoch_0), receiving: secret(epoch_0) };
        Self::early(keys, Some(next), None, Instant::ZERO)
    }

    /// Returns the keys that the handshake has derived so far for epochs 0 and 1, the sending key first.
    ///
    /// The keys are `None` for a past epoch, and for epoch 1 if rekeying epoch 0 yields them.
    #[cfg(feature = "key-log")]
    pub(super) fn keys_of_handshake(&self) -> [Option<[&Secret; 2]>; 2] {
        let Receiving { key, next, .. } = &self.receiving;
        if self.sending.epoch > 0 {
            return [None, next.as_ref().map(|next| [&self.sending.key, next])];
        }
        let identified = self.next_sending.as_ref().zip(next.as_ref());
        [Some([&self.sending.key, key]), identified.map(|(sending, receiving)| [sending, receiving])]
    }

    fn early(keys: Keys, next: Option<Secret>, next_sending: Option<Secret>, now: Instant) -> Self {
        Self {
            sending: Sending { key: keys.sending, epoch: 0, since: now, sealed: 0, counter: 0 },
            receiving: Receiving {
                key: keys.receiving,
                epoch: 0,
                next,
                previous: None,
                window: ReplayWindow::new(),
                forged: 0,
            },
            next_sending,
            is_early: true,
            limits: RekeyLimits::DEFAULT,
            cipher: &RustCrypto,
        }
    }

    /// Selects another implementation of the cipher. All implementations must produce identical bytes.
    #[must_use]
    pub const fn with_cipher(mut self, cipher: &'static dyn DatagramCipher) -> Self {
        self.cipher = cipher;
        self
    }

    /// Installs the keys of epoch 1 after the server has accepted the identity. From then on the server seals in epoch
    /// 1.
    pub(super) fn install(&mut self, next: Keys, now: Instant) {
        self.receiving.next = Some(next.receiving);
        self.next_sending = Some(next.sending);
        self.begin_sending_epoch(now);
    }

    /// Replaces the limits of the protocol, for tests. Each peer applies its own limits.
    pub const fn set_limits(&mut self, limits: RekeyLimits) {
        self.limits = limits;
    }

    /// Returns the epoch in which datagrams are sealed.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.sending.epoch
    }

    /// Returns true once a datagram from the peer has been opened.
    #[must_use]
    pub const fn has_opened(&self) -> bool {
        self.receiving.window.next() > 0
    }

    /// Seals the first `length` bytes of `datagram` in place, and returns `length` plus [`OVERHEAD`].
    ///
    /// Returns `None` if `datagram` is too short for the overhead, or if no further datagram may be sealed. The
    /// datagram must then not be sent.
    pub fn seal(&mut self, now: Instant, datagram: &mut [u8], length: usize) -> Option<usize> {
        let total = length.checked_add(usize::from(OVERHEAD))?;
        datagram.get_mut(..total)?.copy_within(..length, HEADER);
        self.seal_in_place(now, datagram, length)
    }

    /// Seals like [`seal`](Self::seal), but expects the `length` plain bytes after the space for the header.
    pub(crate) fn seal_in_place(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
        length: usize,
    ) -> Option<usize> {
        self.expire(now);
        if self.is_rekeying_due(now) {
            self.begin_sending_epoch(now);
        }
        let counter = self.sending.counter;
        if counter >= COUNTER_END {
            return None;
        }
        let total = length.checked_add(usize::from(OVERHEAD))?;
        let whole = datagram.get_mut(..total)?;
        let (header, rest) = whole.split_first_chunk_mut::<HEADER>()?;
        let (body, tag) = rest.split_last_chunk_mut::<TAG>()?;
        *header = write_header(self.sending.epoch, counter);
        *tag = self.cipher.seal(self.sending.key.as_bytes(), &nonce(counter), header, body)?;
        self.sending.counter += 1;
        self.sending.sealed += 1;
        Some(total)
    }

    /// Opens `datagram` in place and returns its plain bytes.
    ///
    /// # Errors
    /// An [`OpenError`]; the contents of `datagram` are then unspecified. Only the count of failures changes.
    pub fn open<'d>(&mut self, now: Instant, datagram: &'d mut [u8]) -> Result<&'d mut [u8], OpenError> {
        let (header, rest) = datagram.split_first_chunk_mut::<HEADER>().ok_or(OpenError::Malformed)?;
        let (body, tag) = rest.split_last_chunk_mut::<TAG>().ok_or(OpenError::Malformed)?;
        self.open_parts(now, *header, body, tag)?;
        Ok(body)
    }

    /// Opens a datagram without changing it: the plain bytes are written to `buffer`, and their number is returned.
    ///
    /// `buffer` must be long enough for the plain bytes. In all other respects it works like [`open`](Self::open).
    ///
    /// # Errors
    /// An [`OpenError`]; the contents of `buffer` are then unspecified.
    pub fn open_copy(
        &mut self,
        now: Instant,
        datagram: &[u8],
        buffer: &mut [u8],
    ) -> Result<usize, OpenError> {
        let (header, rest) = datagram.split_first_chunk::<HEADER>().ok_or(OpenError::Malformed)?;
        let (sealed, tag) = rest.split_last_chunk::<TAG>().ok_or(OpenError::Malformed)?;
        let body = buffer.get_mut(..sealed.len()).ok_or(OpenError::Malformed)?;
        body.copy_from_slice(sealed);
        self.open_parts(now, *header, body, tag)?;
        Ok(sealed.len())
    }

    fn open_parts(
        &mut self,
        now: Instant,
        header: [u8; HEADER],
        body: &mut [u8],
        tag: &[u8; TAG],
    ) -> Result<(), OpenError> {
        self.expire(now);
        let (epoch, low) = read_header(header).ok_or(OpenError::Malformed)?;
        let counter = reconstruct(self.receiving.window.next(), low);
        if counter >= COUNTER_END {
            return Err(OpenError::Forged);
        }
        if !self.receiving.window.is_new(counter) {
            return Err(OpenError::Replayed);
        }
        let is_opened_by =
            |key: &Secret| self.cipher.open(key.as_bytes(), &nonce(counter), &header, body, tag);
        let opened = self.receiving.open(epoch, is_opened_by).ok_or_else(|| {
            self.receiving.forged = self.receiving.forged.saturating_add(1);
            OpenError::Forged
        })?;
        self.receiving.window.mark(counter);
        let epochs = match opened {
            KeyOf::Previous | KeyOf::Current => 0,
            KeyOf::Next => 1,
            KeyOf::AfterNext => 2,
        };
        for _ in 0..epochs {
            self.receiving.begin_epoch(now, self.limits.previous_key);
            // Epoch 0 has ended, so the limits apply from now on.
            self.is_early = false;
        }
        while self.sending.epoch < self.receiving.epoch {
            self.begin_sending_epoch(now);
        }
        Ok(())
    }

    /// Returns true if the next datagram starts an epoch: a limit is reached, and the peer has entered the current
    /// epoch.
    fn is_rekeying_due(&self, now: Instant) -> bool {
        let is_answered = self.has_opened() && self.receiving.epoch == self.sending.epoch;
        let is_over = self.sending.sealed >= self.limits.datagrams
            || now.micros_since(self.sending.since) >= micros(self.limits.age)
            || self.receiving.forged >= self.limits.forged;
        !self.is_early && is_answered && is_over
    }

    fn begin_sending_epoch(&mut self, now: Instant) {
        let next = self.next_sending.take();
        self.sending.key = next.unwrap_or_else(|| rekey(&self.sending.key));
        self.sending.epoch = self.sending.epoch.wrapping_add(1);
        self.sending.since = now;
        self.sending.sealed = 0;
    }

    /// Erases the previous key after its expiry.
    fn expire(&mut self, now: Instant) {
        self.receiving.previous.take_if(|(_, until)| now >= *until);
    }
}

impl Receiving {
    /// Returns the key that opens a datagram with these low bits of the epoch, or `None` if no key does.
    fn open(&self, epoch: u32, is_opened_by: impl FnOnce(&Secret) -> bool) -> Option<KeyOf> {
        let key_of = match epoch.wrapping_sub(self.epoch) & EPOCH_MASK {
            0 => KeyOf::Current,
            1 => KeyOf::Next,
            2 => KeyOf::AfterNext,
            _ => KeyOf::Previous,
        };
        let after_next;
        let key = match key_of {
            KeyOf::Current => &self.key,
            KeyOf::Next => self.next.as_ref()?,
            KeyOf::Previous => self.previous.as_ref().map(|(key, _)| key)?,
            KeyOf::AfterNext => {
                after_next = rekey(self.next.as_ref()?);
                &after_next
            }
        };
        is_opened_by(key).then_some(key_of)
    }

    fn begin_epoch(&mut self, now: Instant, previous_key: Duration) {
        let Some(key) = self.next.take() else { return };
        self.next = Some(rekey(&key));
        let previous = core::mem::replace(&mut self.key, key);
        self.previous = Some((previous, now + previous_key));
        self.epoch = self.epoch.wrapping_add(1);
        self.forged = 0;
    }
}

fn write_header(epoch: u32, counter: u64) -> [u8; HEADER] {
    let low = u32::try_from(counter & COUNTER_MASK).unwrap_or(0);
    let [_, header @ ..] = (FIRST_BIT | ((epoch & EPOCH_MASK) << COUNTER_BITS) | low).to_be_bytes();
    header
}

/// Returns the low bits of the epoch and of the counter; `None` if the first bit is clear.
fn read_header([a, b, c]: [u8; HEADER]) -> Option<(u32, u64)> {
    let number = u32::from_be_bytes([0, a, b, c]);
    let epoch = (number >> COUNTER_BITS) & EPOCH_MASK;
    (number & FIRST_BIT != 0).then_some((epoch, u64::from(number) & COUNTER_MASK))
}

/// The size of the replay window: twice the reordering window of a connection's datagram numbers.
const WINDOW: u64 = 2048;
/// The number of transmitted bits of the counter.
const COUNTER_BITS: u32 = 21;
/// The mask of the transmitted bits of the counter.
const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;
/// The exclusive limit of the counter.
const COUNTER_END: u64 = 1 << 62;

const WORDS: usize = (WINDOW / 32) as usize;

/// Returns the counter with the low bits `low` that is closest to `expected` (RFC 9000, appendix A.3).
///
/// Precondition: `expected` is at most [`COUNTER_END`].
const fn reconstruct(expected: u64, low: u64) -> u64 {
    const SPAN: u64 = 1 << COUNTER_BITS;
    const HALF: u64 = SPAN / 2;
    let candidate = (expected & !COUNTER_MASK) | (low & COUNTER_MASK);
    if candidate + HALF <= expected && candidate < COUNTER_END - SPAN {
        candidate + SPAN
    } else if candidate > expected + HALF && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

/// The replay window: a bit for each of the last 2,048 counters.
#[derive(Clone, Debug)]
struct ReplayWindow {
    /// The highest marked counter plus one.
    next: u64,
    bits: [u32; WORDS],
}

impl ReplayWindow {
    const fn new() -> Self {
        Self { next: 0, bits: [0; WORDS] }
    }

    /// Returns the highest marked counter plus one; 0 if none was marked.
    const fn next(&self) -> u64 {
        self.next
    }

    const fn place(counter: u64) -> (usize, u32) {
        let bit = counter % WINDOW;
        ((bit / 32) as usize, 1 << (bit % 32))
    }

    /// Returns true if the counter is not behind the window and not marked.
    fn is_new(&self, counter: u64) -> bool {
        let (word, mask) = Self::place(counter);
        match self.next.checked_sub(counter) {
            None | Some(0) => true,
            Some(age) => age <= WINDOW && self.bits.get(word).is_some_and(|word| word & mask == 0),
        }
    }

    /// Marks a counter that [`is_new`](Self::is_new).
    fn mark(&mut self, counter: u64) {
        if counter >= self.next {
            if counter - self.next >= WINDOW {
                self.bits = [0; WORDS];
            } else {
                (self.next..counter).for_each(|skipped| self.set(skipped, false));
            }
            self.next = counter + 1;
        }
        self.set(counter, true);
    }

    fn set(&mut self, counter: u64, value: bool) {
        let (word, mask) = Self::place(counter);
        if let Some(word) = self.bits.get_mut(word) {
            *word = if value { *word | mask } else { *word & !mask };
        }
    }
}

#[cfg(test)]
#[path = "datagrams_tests.rs"]
mod tests;
