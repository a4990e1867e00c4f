//! Names of files that come from the network or go to another system: those that Windows gives another meaning are refused on every
//! system, whichever directory they are in.

/// Devices, with whatever extension (Microsoft, "Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Devices with a number.
const NUMBERED: [&str; 2] = ["COM", "LPT"];

/// Returns whether a path with `/` between its names means the same file to every system, Windows included.
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

/// Dots and spaces at the end are dropped by Windows, so that `.. ` is the directory above. What follows a colon is a part of a file.
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
    fn devices_and_names_with_another_meaning_are_no_portable_paths() {
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
