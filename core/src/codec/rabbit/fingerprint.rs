//! Fingerprints: two types have the same one if their values have the same encoding.

/// How deep types may lie in types. Deeper ones, and so those that contain themselves, have no fingerprint.
const MAX_NESTING: u8 = 32;
/// The constants of FNV-1a with 64 bits (draft-eastlake-fnv).
const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0100_0000_01B3;

/// The fingerprint of an encoding while it is computed: FNV-1a with 64 bits over a description of the types
/// (`docs/rabbit.md#fingerprints`).
///
/// [`Pack::describe`](super::Pack::describe) describes a type:
///
/// ```
/// use rakwire::codec::rabbit::Fingerprint;
///
/// let of_pair = Fingerprint::of::<(u16, Option<u8>)>();
/// assert!(of_pair.is_some());
/// assert_eq!(Fingerprint::of::<(u16, (Option<u8>, ()))>(), of_pair, "their values have the same bits");
/// assert_ne!(Fingerprint::of::<(u32, Option<u8>)>(), of_pair);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    hash: u64,
    nesting: u8,
    is_known: bool,
}

impl Fingerprint {
    /// The fingerprint of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { hash: OFFSET_BASIS, nesting: 0, is_known: true }
    }

    /// Appends bytes of a description.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// Appends what `describe` describes as a part, unless parts lie too deep in parts.
    pub(super) fn part(&mut self, describe: impl FnOnce(&mut Self)) {
        if !self.is_known || self.nesting >= MAX_NESTING {
            self.is_known = false;
            return;
        }
        self.nesting += 1;
        describe(self);
        self.nesting -= 1;
    }

    /// Appends a number of this many bits.
    pub fn raw(&mut self, width: u32) {
        let [width, ..] = width.to_le_bytes();
        self.bytes(&[b'r', width]);
    }

    /// Takes note of a type without a description: there is no fingerprint of what contains it.
    pub const fn opaque(&mut self) {
        self.is_known = false;
    }

    /// The fingerprint of everything that was appended; `None` if a part of it is not described.
    #[must_use]
    pub const fn finish(&self) -> Option<u64> {
        if self.is_known { Some(self.hash) } else { None }
    }
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self::new()
    }
}
