//! Names that Windows gives another meaning, whichever directory they are in.

/// Devices, with whatever extension (Microsoft, "Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Devices with a number.
const NUMBERED: [&str; 2] = ["COM", "LPT"];

/// Returns whether the path of a file means that file to Windows, too.
pub(super) fn mean_files_to_windows(path: &str) -> bool {
    path.split('/').all(is_name)
}

/// Dots and spaces at the end are dropped there, so that `.. ` is the directory above.
fn is_name(name: &str) -> bool {
    !name.ends_with(['.', ' ']) && !name.contains(['<', '>', '"', '|', '?', '*']) && !is_device(name)
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
    fn devices_and_names_that_are_shortened_are_told_from_files() {
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
            assert!(mean_files_to_windows(path), "{path}");
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
        ];
        for path in others {
            assert!(!mean_files_to_windows(path), "{path}");
        }
    }
}
