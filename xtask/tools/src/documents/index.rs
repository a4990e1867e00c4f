//! An index of the repository's tests, and checks of the places in documents that cite them: tables with a column
//! "test", "Tests:" in the text, and the invariants of ARCHITECTURE.md.

use std::collections::BTreeSet;

/// Macros that make a test of each name which they begin an item with, by their beginnings and ends.
const MAKERS: [(&str, char); 2] = [("by_both_protocols!(", ')'), ("\ncases! {", '}')];

/// The Rust files with tests.
#[derive(Default)]
pub(super) struct TestIndex(Vec<File>);

struct File {
    /// The folders and the modules of the file.
    modules: Vec<String>,
    functions: BTreeSet<String>,
}

impl TestIndex {
    /// Adds a Rust file, if it has tests.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let functions = tests(text);
        if functions.is_empty() {
            return;
        }
        let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let behind =
            |word| words.windows(2).filter(move |pair| pair[0] == word).map(|pair| pair[1].to_owned());
        let modules = module_of(path).into_iter().chain(behind("mod")).collect();
        self.0.push(File { modules, functions });
    }

    /// Returns true if there is a function of this name, optionally after some of its modules, or a module.
    pub(super) fn has(&self, name: &str) -> bool {
        let names: Vec<_> = name.split("::").collect();
        self.has_test(name) || self.0.iter().any(|file| file.has_modules(&names))
    }

    fn has_test(&self, name: &str) -> bool {
        let names: Vec<_> = name.split("::").collect();
        names.split_last().is_some_and(|(function, modules)| {
            self.0.iter().any(|file| file.functions.contains(*function) && file.has_modules(modules))
        })
    }

    /// Returns true if there are tests in this file or below this folder.
    pub(super) fn has_file(&self, path: &str) -> bool {
        let wanted = module_of(path);
        self.0.iter().any(|file| file.modules.starts_with(&wanted))
    }

    /// Returns the number of places that cite tests, and the missing tests by line.
    pub(super) fn problems(&self, text: &str) -> (usize, Vec<(usize, String)>) {
        let mut places = cells(text);
        for word in ["Test: ", "Test:\n", "Tests: ", "Tests:\n"] {
            let after = text
                .match_indices(word)
                .map(|(at, word)| (text[..at].matches('\n').count() + 1, at + word.len()));
            places.extend(after.map(|(line, at)| (line, list(&text[at..]))));
        }
        let problem = |cell: &str| {
            let mut names = cell.split('`').skip(1).step_by(2).peekable();
            if names.peek().is_none() {
                return Some("the row cites no test".to_owned());
            }
            // Programs in other languages and fuzz targets have no Rust tests.
            let is_foreign = |name: &str| [".mjs", ".cs", ".py"].iter().any(|end| name.ends_with(end));
            let is_unknown = |name: &&str| match name.contains('/') {
                true => !self.has_file(name) && !is_foreign(name) && !name.starts_with("fuzz/"),
                false => !self.has_test(name),
            };
            names.find(is_unknown).map(|name| format!("there is no test {name}"))
        };
        let problems = places.iter().filter_map(|(line, cell)| Some((*line, problem(cell)?))).collect();
        (places.len(), problems)
    }

    /// Returns the invariants that cite no check in brackets, or one that is neither a test nor a stage.
    pub(super) fn invariants(&self, text: &str, stages: &[&str]) -> Vec<(usize, String)> {
        let Some((before, section)) = text.split_once("## Invariants") else {
            return vec![(1, "there are no invariants".to_owned())];
        };
        let section = section.split("\n## ").next().unwrap_or(section);
        let mut problems = Vec::new();
        let mut line = 1 + before.matches('\n').count();
        for (number, item) in section.split("\n- ").enumerate() {
            let inside = item.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
            let names = inside.filter(|inside| inside.starts_with('`'));
            let names: Vec<_> = names.flat_map(|inside| inside.split('`').skip(1).step_by(2)).collect();
            // The first piece precedes the list.
            if names.is_empty() && number > 0 {
                problems.push((line, "the invariant cites no check".to_owned()));
            }
            let is_known = |name: &&str| {
                stages.contains(name) || self.has(name) || name.contains('/') && self.has_file(name)
            };
            let unknown = names.iter().filter(|name| !is_known(name));
            problems.extend(unknown.map(|name| (line, format!("there is no stage and no test {name}"))));
            line += 1 + item.matches('\n').count();
        }
        problems
    }
}

impl File {
    /// Returns true if its modules have these names, in order.
    fn has_modules(&self, names: &[&str]) -> bool {
        let mut modules = self.modules.iter();
        names.iter().all(|name| modules.any(|module| module == name))
    }
}

/// The tests of a file: functions below an attribute of tests, and the names that a macro of `MAKERS` has.
fn tests(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let mut is_test = false;
    // Each part has one attribute, and the item behind it unless another attribute follows.
    for part in text.split("#[").skip(1) {
        let path = part.split(|c: char| !is_word(c) && c != ':').next().unwrap_or_default();
        is_test |= path.rsplit(':').next().is_some_and(|last| last.contains("test"));
        let item = part.lines().skip_while(|line| !line.contains(']')).find(|line| line.contains("fn "));
        let name = item.and_then(|line| line.split("fn ").nth(1)?.split(|c| !is_word(c)).next());
        if let Some(name) = name {
            if is_test {
                found.insert(name.to_owned());
            }
            is_test = false;
        }
    }
    for (begin, end) in MAKERS {
        for body in text.split(begin).skip(1).filter_map(|rest| rest.split(end).next()) {
            let names = body.split([',', ';']).map(|item| item.split(':').next().unwrap_or(item).trim());
            found.extend(names.filter(|name| name.chars().all(is_word)).map(str::to_owned));
        }
    }
    found
}

/// The folders and the module of a file.
fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_end_matches('/').trim_end_matches(".rs");
    let outer = ["/mod", "/main", "/lib"].iter().find_map(|end| path.strip_suffix(end));
    outer.unwrap_or(path).split('/').map(str::to_owned).collect()
}

/// Returns the leading list of names in backticks.
fn list(text: &str) -> &str {
    let mut is_name = false;
    let end = text.find(|c: char| {
        is_name ^= c == '`';
        !is_name && !"`, \n".contains(c)
    });
    &text[..end.unwrap_or(text.len())]
}

/// Returns the cells of all columns headed "test" or "tests", with their lines.
fn cells(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut column = None;
    let mut is_table = false;
    for (number, line) in (1..).zip(text.lines()) {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        if !line.starts_with('|') {
            is_table = false;
        } else if !is_table {
            column = cells.position(|cell| cell == "test" || cell == "tests");
            is_table = true;
        } else if let (Some(column), false) = (column, line.starts_with("|---")) {
            found.push((number, cells.nth(column).unwrap_or_default()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> TestIndex {
        let mut index = TestIndex::default();
        index.add(
            "core/tests/it/raknet/a.rs",
            "#[test] fn exists() {}\nmod inner { #[tokio::test] async fn other() {} }",
        );
        index.add("core/src/b.rs", "fn helper() {}");
        index
    }

    #[test]
    fn tests_are_found_by_their_modules() {
        let index = index();
        for name in
            ["exists", "raknet::a::exists", "it::other", "raknet::inner::other", "raknet", "it::raknet::a"]
        {
            assert!(index.has(name), "{name}");
        }
        for name in ["helper", "gone", "game::exists", "a::raknet::exists"] {
            assert!(!index.has(name), "{name}");
        }
        assert!(
            index.has_file("core/tests/it")
                && index.has_file("core/tests/it/raknet/a.rs")
                && !index.has_file("core/src")
        );
    }

    #[test]
    fn a_helper_beside_tests_is_no_test() {
        let text = "\
#[tokio::test(flavor = \"multi_thread\")]
#[cfg(unix)]
async fn one() {}
fn helper() {}
#[cfg(test)]
mod tests {
    fn other_helper() {}
    proptest! {
        #[test]
        fn two(x in 0..1) {}
    }
}
by_both_protocols!(three, four,);
fn three<P>() {}
fn five<P>() {}
cases! {
    six: action(\"a\", 6);
}
";
        let found = tests(text);
        let named: Vec<_> = found.iter().filter(|name| !name.is_empty()).collect();
        assert_eq!(named, ["four", "one", "six", "three", "two"]);
    }

    #[test]
    fn tests_that_documents_name_must_exist() {
        let text = "\
| what | test |
|---|---|
| one | `a::exists` and `other` |
| two | nothing |
| three | `b::exists` |
| four | `core/tests/it/`, `fuzz/`, `web/a.mjs`, `csharp/tests/A.cs` |

| what | where |
|---|---|
| five | `gone` |

It holds. Tests: `exists`,\n`gone`. Then `more`.
";
        let expected = [
            (4, "the row cites no test".to_owned()),
            (5, "there is no test b::exists".to_owned()),
            (12, "there is no test gone".to_owned()),
        ];
        assert_eq!(index().problems(text), (5, expected.to_vec()));
    }

    #[test]
    fn every_invariant_cites_an_existing_check() {
        let text = "# A\n## Invariants\n\n- One [a](b.md) [`docs`, `a::exists`].\n- Two [`docs`,\n  `gone`].\n- Three.\n\n## B\n- Four";
        let expected = [
            (5, "there is no stage and no test gone".to_owned()),
            (7, "the invariant cites no check".to_owned()),
        ];
        assert_eq!(index().invariants(text, &["docs"]), expected);
    }
}
