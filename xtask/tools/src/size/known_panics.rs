//! The panics in the primitives of secure connections. The core has none of its own. The compiler cannot prove that
//! these are unreachable, so a secure client cannot be linked without a panic handler, unlike the plain one.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// A function that contains panics.
struct Known {
    /// A part of its mangled name.
    name: &'static str,
    /// Maximum number of calls to panicking functions.
    calls: usize,
    /// The reason why none of them is reached.
    because: &'static str,
}

const KNOWN: [Known; 7] = [
    Known {
        name: "6blake214Blake2sVarCore8compress5round",
        calls: 1,
        because: "it indexes a block of 16 words with constants of BLAKE2, which are below 16",
    },
    Known {
        name: "16curve25519_dalek10montgomery15MontgomeryPoint11mul_clamped",
        calls: 1,
        because: "it reads bits 0 to 255 of a scalar of 32 bytes",
    },
    Known {
        name: "$LT$core..iter..adapters..rev..Rev$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$3nth",
        calls: 1,
        because: "it skips the highest bit of the same scalar",
    },
    Known {
        name: "16chacha20poly13056cipher15Cipher$LT$C$GT$3new",
        calls: 1,
        because: "it uses the first 64 bytes of a key stream of 256 GiB",
    },
    Known {
        name: "rakwire..secure..primitives..DatagramCipher$GT$4open",
        calls: 1,
        because: "the key stream ends after 256 GiB, and longer messages are refused earlier",
    },
    Known {
        name: "rakwire..secure..primitives..DatagramCipher$GT$4seal",
        calls: 1,
        because: "the key stream ends after 256 GiB, and longer messages are refused earlier",
    },
    Known {
        name: "7rakwire6secure10primitives11hash_behind",
        calls: 1,
        because: "it counts the bytes in the blocks of a slice, which do not exceed the slice",
    },
];

/// Compares the functions that panic, and the number of panicking calls in each, with the known ones.
pub(super) fn check(found: &BTreeMap<String, usize>) -> Result<()> {
    let is_known = |(name, calls): &(&String, &usize)| {
        KNOWN.iter().any(|known| name.contains(known.name) && **calls <= known.calls)
    };
    let unknown: Vec<_> = found.iter().filter(|found| !is_known(found)).collect();
    if !unknown.is_empty() {
        bail!("a panic may be reached in the secure client, from {unknown:?}");
    }
    let is_gone = |known: &&Known| !found.keys().any(|name| name.contains(known.name));
    if let Some(gone) = KNOWN.iter().find(is_gone) {
        bail!("{} no longer panics ({}): remove it from the list", gone.name, gone.because);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> BTreeMap<String, usize> {
        KNOWN.iter().map(|known| (format!("_ZN{}17h0E", known.name), known.calls)).collect()
    }

    #[test]
    fn the_known_panics_are_accepted() {
        assert!(check(&found()).is_ok());
    }

    #[test]
    fn another_function_or_another_call_is_noticed() {
        let mut another = found();
        another.insert("_ZN7rakwire6secure7another17h0E".to_owned(), 1);
        assert!(check(&another).is_err());
        let mut more = found();
        more.values_mut().take(1).for_each(|calls| *calls += 1);
        assert!(check(&more).is_err());
    }

    #[test]
    fn a_removed_panic_is_noticed() {
        let mut fewer = found();
        fewer.pop_last();
        assert!(check(&fewer).is_err());
    }
}
