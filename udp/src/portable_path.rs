//! Portable file names, for names that come from the network or go to another system. Names that Windows interprets
//! differently are refused on every system, in any directory.

/// Device names, with any extension (Microsoft, "Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Device names that end in a number.
const NUMBERED: [&str; 2] = ["COM", "LPT"];

/// Returns whether a path with `/` between its names refers to the same file on every system, including Windows.
///
/// ```
/// use rakwire_udp::is_portable_path;
///
/// assert!(is_portable_path("maps/ice.json"));
/// assert!(["aux.txt", "maps/ice.json.", "a:b", "a\\b"].into_iter().all(|path| !is_portable_path(path)));
/// ```
#[must_use]
pub fn is_portable_path(path: &str) -> bool {
    path.split('/').all(is_name)
}

/// Windows drops dots and spaces at the end of a name, so `.. ` is the parent directory. A colon introduces an
/// alternate data stream of a file.
fn is_name(name: &str) -> bool {
    const OTHERS: [char; 8] = ['<', '>', ':', '"', '|', '?', '*', '\\'];
    let has_others = name.contains(|character: char| OTHERS.contains(&character) || character.is_control());
    !name.ends_with(['.', ' ']) && !has_others && !is_device(name)
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ');
    let is_numbered = |(begin, number): (&str, &str)| {
        let mut digits = number.chars();
        let digit = digits.next().filter(|_| digits.next().is_none());
        let is_number = digit.is_some_and(|digit| digit.is_ascii_digit() || ['¹', '²', '³'].contains(&digit));
        is_number && NUMBERED.iter().any(|device| device.eq_ignore_ascii_case(begin))
    };
    DEVICES.iter().any(|device| device.eq_ignore_ascii_case(stem))
        || stem.split_at_checked(3).is_some_and(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_ambiguous_names_are_not_portable() {
        for path in [
            "a",
            "maps/ice.json",
            "console",
            "com",
            "com10",
            "lpt",
            "a b",
            ".hidden",
            "nullable/aux2",
            "comé",
        ] {
            assert!(is_portable_path(path), "{path}");
        }
        let others = [
            "con",
            "a/NUL",
            "aux.txt",
            "Prn.tar.gz",
            "nul .txt",
            "COM1",
            "lpt9.log",
            "com\u{b9}",
            "conin$",
            "a.",
            "a ",
            ".. /b",
            "...",
            "a/b./c",
            "a<b",
            "a>b",
            "a|b",
            "a?",
            "*",
            "\"a\"",
            "a:b",
            "c:/a",
            "index.html::$DATA",
            "a\\b",
            "a\nb",
        ];
        for path in others {
            assert!(!is_portable_path(path), "{path}");
        }
    }
}
