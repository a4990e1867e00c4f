//! The memory through which a peer and JavaScript exchange bytes, and addresses as bytes.

use alloc::vec::Vec;
#[cfg(feature = "npm-raknet")]
use core::net::{IpAddr, SocketAddr};

/// The length in bytes of the header before the bytes of a record: four 32-bit numbers, little-endian.
const HEADER: usize = 16;
/// The offset in bytes of the last number of the header, the length of the bytes that follow.
const LENGTH: usize = 12;
/// The size in bytes above which the buffer is freed when a smaller one suffices.
const KEPT: usize = 64 * 1024;

/// Four numbers and bytes at an address that is passed to JavaScript.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Returns the address at which JavaScript may write this many bytes, after the four numbers; null if there is no
    /// memory.
    pub(super) fn reserve(&mut self, length: usize) -> *const u8 {
        if self.bytes.len() > KEPT && length < KEPT {
            self.bytes = Vec::new();
        }
        let needed = length.saturating_add(HEADER);
        if let Some(missing) = needed.checked_sub(self.bytes.len()) {
            if self.bytes.try_reserve(missing).is_err() {
                return core::ptr::null();
            }
            self.bytes.resize(needed, 0);
        }
        self.bytes.as_ptr()
    }

    /// Returns the bytes that JavaScript has written; empty if they are more than reserved.
    pub(super) fn read(&self, length: u32) -> &[u8] {
        self.bytes.get(HEADER..).and_then(|bytes| bytes.get(..length as usize)).unwrap_or_default()
    }

    /// Erases the written bytes, which may be secret.
    #[cfg(feature = "npm-secure")]
    pub(super) fn erase(&mut self) {
        self.bytes.fill(0);
    }

    /// Writes three numbers, the length, and bytes in several pieces, and returns their address; null if there is no
    /// memory.
    pub(super) fn write<'a>(
        &mut self,
        numbers: [u32; 3],
        length: usize,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> *const u8 {
        let pointer = self.reserve(length);
        if pointer.is_null() {
            return pointer;
        }
        self.put(0, numbers);
        self.write_length(length);
        let mut at = HEADER;
        for piece in pieces {
            if let Some(place) = self.bytes.get_mut(at..at + piece.len()) {
                place.copy_from_slice(piece);
            }
            at += piece.len();
        }
        pointer
    }

    /// Writes a text, and returns its address; null if there is no memory.
    pub(super) fn write_text(&mut self, text: &str) -> *const u8 {
        self.write([0; 3], text.len(), core::iter::once(text.as_bytes()))
    }

    /// Writes 64-bit numbers, and returns their address.
    pub(super) fn write_floats(&mut self, floats: impl Iterator<Item = f64>) -> *const u8 {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        floats.for_each(|float| self.bytes.extend_from_slice(&float.to_le_bytes()));
        self.write_length(self.bytes.len() - HEADER);
        self.bytes.as_ptr()
    }

    #[allow(clippy::cast_possible_truncation, reason = "a length in 32-bit memory has at most 32 bits")]
    fn write_length(&mut self, length: usize) {
        self.put(LENGTH, [length as u32]);
    }

    fn put<const N: usize>(&mut self, at: usize, numbers: [u32; N]) {
        let places = self.bytes.iter_mut().skip(at);
        places
            .zip(numbers.iter().flat_map(|number| number.to_le_bytes()))
            .for_each(|(place, byte)| *place = byte);
    }
}

/// The length of an address in bytes: IPv6 and port, in network order.
#[cfg(feature = "npm-raknet")]
pub(super) const ADDRESS_LENGTH: usize = 18;

/// Encodes an address. IPv4 is mapped into IPv6.
#[cfg(feature = "npm-raknet")]
pub(super) fn address_bytes(address: SocketAddr) -> [u8; ADDRESS_LENGTH] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; ADDRESS_LENGTH];
    let written = ip.octets().into_iter().chain(address.port().to_be_bytes());
    bytes.iter_mut().zip(written).for_each(|(place, byte)| *place = byte);
    bytes
}
