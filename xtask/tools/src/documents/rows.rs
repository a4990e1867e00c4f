//! Where documents name the tests behind what they say: tables with a column "test", and "Tests:" in the text.

use super::index::TestIndex;

/// All that is wrong with the tests that a document names, by lines, and how many places name some.
pub(super) fn problems(text: &str, index: &TestIndex) -> (usize, Vec<(usize, String)>) {
    let rows = rows_with_tests(text);
    let sentences = sentences_with_tests(text);
    let count = rows.len() + sentences.len();
    let mut problems = Vec::new();
    for row in rows.iter().chain(&sentences) {
        problems.extend(row.problem(index).map(|problem| (row.line, problem)));
    }
    (count, problems)
}

/// A row of a table, and what stands in its test column.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    line: usize,
    cell: String,
}

impl Row {
    fn problem(&self, index: &TestIndex) -> Option<String> {
        let names: Vec<_> = self.cell.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            return Some("the row names no test".to_owned());
        }
        // A path is that of a file or a folder with tests. Programs in JavaScript and targets of fuzzing have none.
        let is_unknown = |name: &&&str| match name.contains('/') {
            true => !index.has_file(name) && !name.ends_with(".mjs") && !name.starts_with("fuzz/"),
            false => !index.has_test(name),
        };
        names.iter().find(is_unknown).map(|name| format!("there is no test {name}"))
    }
}

/// The lists of names behind "Test:" and "Tests:".
fn sentences_with_tests(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (at, word) in text.match_indices("Test: ").chain(text.match_indices("Tests: ")) {
        let line = 1 + text[..at].matches('\n').count();
        rows.push(Row { line, cell: list(&text[at + word.len()..]).to_owned() });
    }
    for (at, word) in text.match_indices("Test:\n").chain(text.match_indices("Tests:\n")) {
        let line = 1 + text[..at].matches('\n').count();
        rows.push(Row { line, cell: list(&text[at + word.len()..]).to_owned() });
    }
    rows
}

/// The beginning of a text that is a list of names in backticks.
fn list(text: &str) -> &str {
    let mut is_name = false;
    let end = text.find(|c: char| {
        is_name ^= c == '`';
        !is_name && !"`, \n".contains(c)
    });
    &text[..end.unwrap_or(text.len())]
}

/// The rows of all tables that have a column headed "test" or "tests".
fn rows_with_tests(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut column = None;
    let mut previous: Option<&str> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if !line.starts_with('|') {
            (column, previous) = (None, None);
        } else if previous.is_none() {
            column = cells(line).iter().position(|cell| cell == "test" || cell == "tests");
            previous = Some(line);
        } else if let (Some(column), false) = (column, line.starts_with("|---")) {
            let cell = cells(line).get(column).cloned().unwrap_or_default();
            rows.push(Row { line: number, cell });
        }
    }
    rows
}

fn cells(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
text

| what | test |
|---|---|
| one | `a::exists` and `other` |
| two | nothing |

| what | where |
|---|---|
| three | `not_a_test` |
";

    fn index(text: &str) -> TestIndex {
        let mut index = TestIndex::default();
        index.add("core/tests/it/a.rs", text).unwrap();
        index
    }

    #[test]
    fn rows_of_tables_with_a_test_column_are_found() {
        let rows = rows_with_tests(TABLE);
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [5, 6]);
        let both = index("#[test] fn exists() {}\n#[tokio::test] async fn other(a: u8) {}");
        let expected = vec![(6, "the row names no test".to_owned())];
        assert_eq!(problems(TABLE, &both), (2, expected));
        assert_eq!(rows[0].problem(&index("")).as_deref(), Some("there is no test a::exists"));
        let no_test = index("fn exists() {}\n#[test] fn other() {}");
        assert_eq!(rows[0].problem(&no_test).as_deref(), Some("there is no test a::exists"));
        let elsewhere = TABLE.replace("a::exists", "b::exists");
        assert_eq!(problems(&elsewhere, &both).1[0].1, "there is no test b::exists");
    }

    #[test]
    fn a_path_must_have_tests() {
        let row = |cell: &str| Row { line: 1, cell: cell.to_owned() };
        let index = index("#[test] fn exists() {}");
        assert_eq!(row("`core/tests/it/a.rs`, `fuzz/`, `web/a.mjs`").problem(&index), None);
        assert_eq!(row("`src/gone.rs`").problem(&index).as_deref(), Some("there is no test src/gone.rs"));
    }

    #[test]
    fn lists_of_tests_in_the_text_are_found() {
        let text = "It holds. Tests: `exists`,\n`gone`. Then `more`.\nTest:\n`exists`";
        assert_eq!(
            problems(text, &index("#[test] fn exists() {}")),
            (2, vec![(1, "there is no test gone".to_owned())])
        );
    }
}
