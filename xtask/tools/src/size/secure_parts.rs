//! The flash use of secure connections: the functions and constants of a program compared with those of a plain one.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Names and sizes of functions and constants.
type Symbols = [(String, u64)];

/// The parts, and substrings of their mangled function names. The first match applies.
const PARTS: [(&str, &[&str]); 5] = [
    ("X25519", &["curve25519", "x25519", "adapters..rev..Rev"]),
    ("ChaCha20-Poly1305", &["chacha20", "poly1305", "RustCrypto", "cipher..stream", "6cipher6stream"]),
    ("BLAKE2s", &["blake2", "hash_behind"]),
    ("handshake and records", &["rakwire6secure", "rakwire..secure"]),
    ("connections, and the program", &["rakwire", "start"]),
];
/// Memory functions, panics and anonymous symbols.
const REST: &str = "the rest";
/// Number of largest differences that are printed individually.
const LARGEST: usize = 12;

/// Returns a table of the parts, which have `more` bytes in total, and the symbols that have grown most.
pub(super) fn table(plain: &Symbols, secure: &Symbols, more: u64) -> String {
    let mut grown: BTreeMap<&str, i64> = BTreeMap::new();
    for (symbols, sign) in [(secure, 1), (plain, -1)] {
        for (name, bytes) in symbols {
            *grown.entry(without_hash(name)).or_default() += sign * bytes.cast_signed();
        }
    }
    let mut parts: BTreeMap<&str, i64> = BTreeMap::new();
    for (name, bytes) in &grown {
        *parts.entry(part(name)).or_default() += bytes;
    }
    let named: i64 = PARTS.iter().filter_map(|(part, _)| parts.get(part)).sum();
    let mut text = String::from("part                           bytes\n");
    for (name, _) in PARTS {
        line(&mut text, name, parts.get(name).copied().unwrap_or(0));
    }
    line(&mut text, REST, more.cast_signed() - named);
    line(&mut text, "together", more.cast_signed());
    text.push_str("\nlargest increases\n");
    let mut largest: Vec<_> = grown.into_iter().collect();
    largest.sort_by_key(|(_, bytes)| -bytes);
    largest.iter().take(LARGEST).for_each(|(name, bytes)| line(&mut text, name, *bytes));
    text
}

fn line(text: &mut String, name: &str, bytes: i64) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{name:<29} {bytes:>6}");
}

fn part(name: &str) -> &'static str {
    let fits = |(_, beginnings): &&(&str, &[&str])| beginnings.iter().any(|part| name.contains(part));
    PARTS.iter().find(fits).map_or(REST, |(part, _)| part)
}

/// Removes the part of a mangled name that differs between programs.
fn without_hash(name: &str) -> &str {
    name.rsplit_once("17h").map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additional_symbols_are_listed_by_part() {
        let symbol = |name: &str, bytes| (name.to_owned(), bytes);
        let plain = [symbol("_ZN7rakwire4send17haE", 10), symbol("memcpy", 5)];
        let secure = [
            symbol("_ZN7rakwire4send17hbE", 14),
            symbol("memcpy", 5),
            symbol("_ZN7rakwire6secure4open17hcE", 30),
            symbol("_ZN16curve25519_dalek3mul17hdE", 100),
        ];
        let table = table(&plain, &secure, 140);
        let bytes = |part: &str| {
            let line = table.lines().find(|line| line.starts_with(part));
            line.and_then(|line| line.split_whitespace().last()?.parse::<i64>().ok())
        };
        let parts = ["X25519", "BLAKE2s", "handshake", "connections", "the rest", "together"].map(bytes);
        assert_eq!(parts, [100, 0, 30, 4, 6, 140].map(Some));
        assert_eq!(bytes("_ZN16curve25519_dalek3mul"), Some(100));
    }
}
