//! A MAC address for boards without one.

/// The constants of the hash FNV-1a with 64 bits.
const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

/// Derives a MAC address from the unique id of a chip.
///
/// The address is the same at every start, so that a router recognises the board, and differs between boards. It is
/// locally administered and unicast (IEEE 802c). It is not secret.
///
/// ```
/// // The id as the chip reports it: the UID of an STM32, the chip id of an RP2350, the unique id of a flash.
/// let id = 0x1122_3344_5566_7788_u64.to_be_bytes();
/// let address = rakwire_embassy::mac_address(&id);
/// assert_eq!(address, rakwire_embassy::mac_address(&id));
/// assert_eq!(address[0] & 0b11, 0b10);
/// ```
#[must_use]
pub fn mac_address(unique_id: &[u8]) -> [u8; 6] {
    // Ids of one production lot differ in few bits, which the hash spreads over the address.
    let hash =
        unique_id.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    let [a, b, c, d, e, f, g, h] = hash.to_be_bytes();
    let first = (a ^ g) & !GROUP | LOCALLY_ADMINISTERED;
    [first, b ^ h, c, d, e, f]
}

/// The flag bits of the first byte.
const GROUP: u8 = 0x01;
const LOCALLY_ADMINISTERED: u8 = 0x02;

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_address_is_locally_administered_and_unicast() {
        for id in 0..10_000_u64 {
            assert_eq!(mac_address(&id.to_be_bytes())[0] & 0b11, 0b10);
        }
    }

    #[test]
    fn the_address_of_an_id_never_changes() {
        assert_eq!(mac_address(b"123456789abc"), mac_address(b"123456789abc"));
        // The address must not change in a later version, either.
        assert_eq!(mac_address(b"123456789abc"), [0x4A, 0xD2, 0x18, 0x44, 0x22, 0x15]);
    }

    /// Two chips of one wafer may differ only in a coordinate.
    #[test]
    fn similar_ids_have_different_addresses() {
        let mut addresses = BTreeSet::new();
        for x in 0..100 {
            for y in 0..100 {
                addresses.insert(mac_address(&[x, 0, y, 0, 7, b'Q', b'1', b'2', b'3', b'4', b'5', b'6']));
            }
        }
        assert_eq!(addresses.len(), 10_000);
    }
}
