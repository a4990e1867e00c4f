//! Removes test names, which only contributors need, from pages for users.

use super::pages::lines;

/// Removes test columns and lists of tests from a text.
pub(super) fn without_tests(text: &str) -> String {
    let mut column = None;
    let mut kept = String::new();
    for (line, is_code) in lines(text) {
        if is_code || !line.starts_with('|') {
            column = None;
            kept += line;
        } else {
            let cells = cells(line);
            if column.is_none() {
                column = Some(cells.iter().position(|cell| ["test", "tests"].contains(cell)));
            }
            match column.flatten() {
                None => kept += line,
                Some(dropped) => {
                    let cells = cells.iter().enumerate().filter(|(at, _)| *at != dropped);
                    kept.extend(cells.map(|(_, cell)| format!("| {cell} ")));
                    kept.push('|');
                }
            }
        }
        kept.push('\n');
    }
    let kept = ["Test:", "Tests:"].iter().fold(kept, |text, word| without_lists(&text, word));
    without_parentheses(&kept)
}

/// Removes parentheses that contain only test names.
fn without_parentheses(text: &str) -> String {
    let mut parts = text.split('(');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')').filter(|(inside, _)| is_list_of_tests(inside)) {
            Some((_, rest)) => {
                kept.truncate(kept.trim_end().len());
                kept += rest;
            }
            None => kept += &format!("({part}"),
        }
    }
    kept
}

/// Returns true if a text consists only of names of tests or their files in backticks.
fn is_list_of_tests(text: &str) -> bool {
    let is_test = |name: &str| {
        let is_long =
            name.matches('_').count() >= 4 && !name.contains(|c: char| c.is_uppercase() || c == ' ');
        is_long || name.contains("/tests/") && !name.contains(' ')
    };
    let pieces: Vec<_> = text.split('`').collect();
    let names = pieces.iter().skip(1).step_by(2);
    let between = pieces.iter().step_by(2).all(|words| {
        words.split(|c: char| c.is_whitespace() || c == ',').all(|word| ["", "and", "in"].contains(&word))
    });
    pieces.len() > 2 && pieces.len() % 2 == 1 && between && names.into_iter().all(|name| is_test(name))
}

/// Removes a word together with the following list of names in backticks and the full stop.
fn without_lists(text: &str, word: &str) -> String {
    let mut parts = text.split(word);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut is_name = false;
        let end = part.find(|c: char| {
            is_name ^= c == '`';
            !is_name && !"`, \n".contains(c)
        });
        let (list, rest) = part.split_at(end.unwrap_or(part.len()));
        match rest.strip_prefix('.').filter(|_| list.contains('`')) {
            Some(rest) => {
                kept.truncate(kept.trim_end_matches(' ').len());
                kept += rest;
            }
            None => kept += &format!("{word}{part}"),
        }
    }
    kept
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_are_removed_from_tables_and_sentences() {
        let text = "It holds. Tests: `a::b`,\n`c`. More.\n\n| what | test |\n|---|---|\n| one | `x`, `y` |\n\n| a | b |\n|---|---|\n";
        let expected = "It holds. More.\n\n| what |\n| --- |\n| one |\n\n| a | b |\n|---|---|\n";
        assert_eq!(without_tests(text), expected);
        assert_eq!(without_tests("Tests: run them\n"), "Tests: run them\n");
        assert_eq!(
            without_tests("It holds (`a_b_c_d_e`,\n`x::f_g_h_i_j` in `core/tests/it/a.rs`), as ever\n"),
            "It holds, as ever\n"
        );
        let others = "call (`bind_with_hook`), (see `a_b_c_d_e`), ()\n";
        assert_eq!(without_tests(others), others);
    }
}
