//! The known panics in the cryptographic primitives of secure connections. The core itself has none. The compiler
//! cannot prove that these panics are unreachable, so a secure client needs a panic handler, unlike a plain client.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// Parts of the mangled names of functions with one call to a panicking function each.
const KNOWN: [&str; 7] = [
    // Indexes a block of 16 words with constants of BLAKE2, which are below 16.
    "6blake214Blake2sVarCore8compress5round",
    // Reads bits 0 to 255 of a scalar of 32 bytes.
    "16curve25519_dalek10montgomery15MontgomeryPoint11mul_clamped",
    // Skips the highest bit of that scalar.
    "$LT$core..iter..adapters..rev..Rev$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$3nth",
    // Uses the first 64 bytes of a key stream of 256 GiB. Messages that exceed it are refused earlier.
    "16chacha20poly13056cipher15Cipher$LT$C$GT$3new",
    "rakwire..secure..primitives..DatagramCipher$GT$4open",
    "rakwire..secure..primitives..DatagramCipher$GT$4seal",
    // Counts the bytes in whole blocks of a slice, which cannot exceed its length.
    "7rakwire6secure10primitives11hash_behind",
];

/// Compares the functions that panic, and the number of panicking calls in each, with the known ones.
pub(super) fn check(found: &BTreeMap<String, usize>) -> Result<()> {
    let is_known =
        |(name, calls): &(&String, &usize)| **calls == 1 && KNOWN.iter().any(|known| name.contains(known));
    let unknown: Vec<_> = found.iter().filter(|found| !is_known(found)).collect();
    if !unknown.is_empty() {
        bail!("a panic may be reached in the secure client, from {unknown:?}");
    }
    match KNOWN.iter().find(|known| !found.keys().any(|name| name.contains(**known))) {
        Some(gone) => bail!("{gone} no longer panics: remove it from the list"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_additional_and_removed_panics_are_errors() {
        let found: BTreeMap<_, _> = KNOWN.iter().map(|known| (format!("_ZN{known}17h0E"), 1)).collect();
        assert!(check(&found).is_ok());
        let (mut another, mut more, mut fewer) = (found.clone(), found.clone(), found);
        another.insert("_ZN7rakwire6secure7another17h0E".to_owned(), 1);
        more.values_mut().take(1).for_each(|calls| *calls += 1);
        fewer.pop_last();
        assert!([another, more, fewer].iter().all(|found| check(found).is_err()));
    }
}
