//! The local addresses that peers announce (docs/raknet.md#internal-addresses).
//!
//! They are stored in the pool in their wire format. The protocol version determines the number of addresses in a
//! handshake message.

use core::net::SocketAddr;

use heapless::Vec;

use crate::raknet::config::Config;
use crate::raknet::connection::block_header::BlockHeader;
use crate::raknet::wire::address::{AddressList, MAX_ADDRESS, UNASSIGNED};
use crate::storage::{BlockLink, Pool};

/// The maximum number of addresses in a list.
pub(in crate::raknet) const MAX_ADDRESSES: usize = 20;
/// The maximum size of an encoded list in bytes.
pub(in crate::raknet) const MAX_ADDRESS_LIST: usize = MAX_ADDRESSES * MAX_ADDRESS;

/// The local addresses that a peer announces, at most 20.
pub type InternalAddresses = Vec<SocketAddr, MAX_ADDRESSES>;

/// A list of addresses stored in the pool, or none.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::raknet) struct StoredAddresses(BlockLink);

impl StoredAddresses {
    /// Replaces the stored addresses; returns false and stores none if there is no memory.
    pub(in crate::raknet) fn keep(
        &mut self,
        pool: &mut Pool<'_, BlockHeader>,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> bool {
        self.forget(pool);
        let mut buffer = [0; MAX_ADDRESS_LIST];
        let Ok(list) = AddressList::encode(addresses.take(MAX_ADDRESSES), &mut buffer) else { return false };
        if !list.as_bytes().is_empty() {
            self.0 = pool.store_common(list.as_bytes(), &BlockHeader::Raw);
        }
        list.as_bytes().is_empty() || self.0.is_some()
    }

    pub(in crate::raknet) const fn is_some(self) -> bool {
        self.0.is_some()
    }

    #[inline]
    pub(in crate::raknet) fn forget(&mut self, pool: &mut Pool<'_, BlockHeader>) {
        if let Some(list) = self.0.take() {
            pool.free_common(list);
        }
    }

    /// Returns the stored addresses.
    pub(in crate::raknet) fn get(self, pool: &Pool<'_, BlockHeader>) -> InternalAddresses {
        if self.0.is_none() {
            return InternalAddresses::new();
        }
        let mut buffer = [0; MAX_ADDRESS_LIST];
        let mut addresses = InternalAddresses::new();
        for address in self.copy(pool, &mut buffer).iter() {
            // Cannot fail: the stored list never exceeds the capacity.
            let _ = addresses.push(address);
        }
        addresses
    }

    /// Returns the number of blocks that the stored list takes.
    pub(in crate::raknet) fn blocks(self, pool: &Pool<'_, BlockHeader>) -> usize {
        self.0.map_or(0, |list| pool.blocks_for(pool.size(list)))
    }

    /// Encodes a list of exactly `length` addresses.
    ///
    /// Excess addresses are omitted, and missing ones are written as unassigned.
    pub(in crate::raknet) fn listed<'b>(
        self,
        pool: &Pool<'_, BlockHeader>,
        config: &Config,
        length: ListLength,
        buffer: &'b mut [u8; MAX_ADDRESS_LIST],
    ) -> AddressList<'b> {
        let count = configured_length(config, length.addresses());
        if self.0.is_none() {
            return AddressList::unassigned(count);
        }
        let mut own = [0; MAX_ADDRESS_LIST];
        let padded = self.copy(pool, &mut own).iter().chain(core::iter::repeat(UNASSIGNED));
        AddressList::encode(padded.take(count), buffer).unwrap_or_else(|_| AddressList::unassigned(count))
    }

    fn copy<'b>(
        self,
        pool: &Pool<'_, BlockHeader>,
        buffer: &'b mut [u8; MAX_ADDRESS_LIST],
    ) -> AddressList<'b> {
        AddressList::from_bytes(self.0.and_then(|list| pool.copy(list, buffer)).unwrap_or(&[]))
    }
}

/// Returns true unless the address is the unassigned one.
pub(in crate::raknet) fn is_assigned(address: &SocketAddr) -> bool {
    *address != UNASSIGNED
}

/// Returns the maximum number of addresses that this peer may announce.
pub(in crate::raknet) fn most_addresses(config: &Config) -> usize {
    configured_length(config, MAX_ADDRESSES)
}

/// Returns the configured list length, or `otherwise` if none is configured.
fn configured_length(config: &Config, otherwise: usize) -> usize {
    config.address_count.map_or(otherwise, usize::from).min(MAX_ADDRESSES)
}

/// The number of addresses in a handshake message.
///
/// Some peers expect a fixed number, and misread all fields after a list of another length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListLength {
    /// 10: C++ RakNet, up to protocol version 8.
    #[default]
    Ten,
    /// 20: Minecraft Bedrock, from protocol version 9 on.
    Twenty,
}

impl ListLength {
    /// The highest protocol version with ten addresses.
    const NEWEST_TEN: u8 = 8;

    /// Returns the list length for a protocol version.
    pub(in crate::raknet) const fn of_version(version: u8) -> Self {
        if version <= Self::NEWEST_TEN { Self::Ten } else { Self::Twenty }
    }

    /// Returns the list length for all these versions, or `None` if they differ.
    pub(in crate::raknet) fn of_versions(versions: &[u8]) -> Option<Self> {
        let mut lengths = versions.iter().map(|version| Self::of_version(*version));
        let first = lengths.next()?;
        lengths.all(|length| length == first).then_some(first)
    }

    /// Returns the length as one bit, the kind of a cookie.
    pub(in crate::raknet) const fn is_twenty(self) -> bool {
        matches!(self, Self::Twenty)
    }

    pub(in crate::raknet) const fn from_bit(is_twenty: bool) -> Self {
        if is_twenty { Self::Twenty } else { Self::Ten }
    }

    /// Returns the number of addresses.
    pub(in crate::raknet) const fn addresses(self) -> usize {
        match self {
            Self::Ten => 10,
            Self::Twenty => 20,
        }
    }
}
