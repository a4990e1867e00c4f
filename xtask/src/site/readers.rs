//! Pages for users. They omit test names, which only contributors need, and split the features table into one page per
//! library, because its eight columns do not fit a phone.

use super::pages::{Page, lines};

/// The libraries of the features table: the column, the title of the page and the suffix of its file name.
const LIBRARIES: [(&str, &str, &str); 5] = [
    ("core", "Features of the core", "core"),
    ("native", "Features of rakwire-native", "native"),
    ("npm", "Features of the npm package", "npm"),
    ("Rust in browsers", "Features of rakwire-wasm", "browsers"),
    ("embassy", "Features of rakwire-embassy", "boards"),
];
/// The beginnings of cells that name no item.
const ABSENT: [&str; 2] = ["Not offered", "Impossible"];

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

/// Converts the features table to an overview and a page per library.
pub(super) fn features(path: &str, text: &str) -> Vec<Page> {
    let stem = path.strip_suffix(".md").unwrap_or(path);
    let mut overview = Page {
        path: path.to_owned(),
        title: String::new(),
        depth: 0,
        text: "# Features\n\nThe features of rakwire, and the libraries that offer them.\n\n".to_owned(),
    };
    let mut pages: Vec<_> = LIBRARIES
        .iter()
        .map(|(_, title, end)| Page {
            path: format!("{stem}-{end}.md"),
            title: (*title).to_owned(),
            depth: 1,
            text: format!("# {title}\n\nThe public items that offer each feature, by their paths from the root of the library.\n"),
        })
        .collect();
    let name = path.rsplit('/').next().and_then(|name| name.strip_suffix(".md")).unwrap_or_default();
    overview.text.extend(LIBRARIES.iter().map(|(_, title, end)| format!("- [{title}]({name}-{end}.md)\n")));
    let mut columns: Vec<String> = Vec::new();
    for (line, is_code) in lines(text) {
        if let Some(section) = line.strip_prefix("## ") {
            overview.text +=
                &format!("\n## {section}\n\n| feature | protocol | libraries |\n|---|---|---|\n");
            pages.iter_mut().for_each(|page| page.text += &format!("\n## {section}\n\n"));
        }
        if is_code || !line.starts_with('|') || line.trim_matches(['|', '-', ' ']).is_empty() {
            continue;
        }
        let cells = cells(line);
        if cells.first() == Some(&"feature") {
            columns = cells.iter().map(|cell| (*cell).to_owned()).collect();
            continue;
        }
        let cell = |wanted: &str| {
            columns
                .iter()
                .position(|column| column == wanted)
                .and_then(|at| cells.get(at).copied())
                .unwrap_or_default()
        };
        let offers = |library: &str| !ABSENT.iter().any(|start| cell(library).starts_with(start));
        let libraries = LIBRARIES.iter().map(|(library, _, _)| *library).filter(|library| offers(library));
        let libraries = libraries.collect::<Vec<_>>().join(", ");
        overview.text += &format!("| {} | {} | {libraries} |\n", cell("feature"), cell("protocol"));
        for ((library, _, _), page) in LIBRARIES.iter().zip(&mut pages) {
            page.text += &format!("- **{}** ({}): {}\n", cell("feature"), cell("protocol"), cell(library));
        }
    }
    [vec![overview], pages].concat()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_left_out_of_tables_and_sentences() {
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

    #[test]
    fn each_library_has_a_page_of_its_features() {
        let table = &without_tests(
            "## Here\n\n| feature | protocol | core | native | npm | Rust in browsers | embassy | tests |\n|---|---|---|---|---|---|---|---|\n\
                     | open | both | `a` | `b` | Not offered: no. | Impossible: x | `e` | `t` |\n",
        );
        let pages = features("docs/features.md", table);
        assert_eq!(pages.len(), 6);
        assert!(pages[0].text.contains("- [Features of the core](features-core.md)\n"));
        assert!(pages[0].text.ends_with("## Here\n\n| feature | protocol | libraries |\n|---|---|---|\n| open | both | core, native, embassy |\n"));
        assert!(pages[3].text.ends_with("## Here\n\n- **open** (both): Not offered: no.\n"));
        assert_eq!(pages[5].path, "docs/features-boards.md");
    }
}
