//! Checks that the names in documents exist: tests, paths, commands, and the checks of the invariants. Also checks that programs
//! and the table of stages match the committed ones.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use anyhow::{Context, Result, bail};
use regex::Regex;
use xtask::listing;
use xtask::shell::Shell;
use xtask::site::prose;
use xtask::tracked;

use crate::commands::Known;
use crate::modules::uses::regex;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// The changelog, which may contain names that no longer exist.
const HISTORY: &str = "CHANGELOG.md";
const STAGES: &str = "CONTRIBUTING.md";
/// The headings of the lists of files that a datagram passes, each with the maximum number of files and of returns to
/// an earlier file.
const WALKS: [(&str, usize, usize); 2] =
    [("From the socket to `recv`", 20, 12), ("From `send` to the socket", 20, 12)];

/// Matches a function below a test attribute.
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"#\[(?:\w+::)*\w*test\w*[^\]]*\]\s*(?:(?:#\[[^\]]*\]|//[^\n]*)\s*)*(?:async )?fn (\w+)")
});
/// Matches macros that create a test for each name at the beginning of an item.
static MAKERS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?s)by_both_protocols!\((.*?)\)|\ncases! \{(.*?)\n\}"));
static MADE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[,;])\s*(\w+)"));
static MODULE: LazyLock<Regex> = LazyLock::new(|| regex(r"\bmod (\w+)|(\w+)(?:/|\.rs$)"));
/// Matches a list of tests in a sentence.
static CITED: LazyLock<Regex> = LazyLock::new(|| regex(r"Tests?:\s((?:`[^`]+`[,\s]*)+)"));
/// Matches the path of a file of the repository that is written by hand, or of a folder.
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"`((?:[A-Za-z0-9_][\w./-]*)?\w\.(?:rs|ts|mjs|toml|json|yml|sh|py|cpp|md)|(?:core|native|relay|wasm|web|cli|xtask|embedded|docs|bench|src|tests)/[\w./-]*)(?:#[\w-]+)?`",
    )
});
/// The prefixes of built or downloaded files, which a fresh clone does not have.
const BUILT: [&str; 5] = ["target/", "wasm/pkg/", "wasm/dist/", "web/dist", "node_modules/"];
/// Matches a comment with the file that the next block equals or is a part of, and that block.
static PROGRAM: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?m)^<!-- (file|part): (\S+) -->\n(?:```.*\n((?:[^`\n].*\n|\n|`{1,2}[^`].*\n)*)```$)?")
});

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let stages = xtask::stages::all();
    check_table(&shell.read(STAGES)?, &listing::table(&stages))?;
    let stages: Vec<_> = stages.iter().map(|stage| stage.name).collect();
    let files = tracked::files(shell)?;
    let mut tests = Tests::default();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        tests.add(file, &shell.read(file)?);
    }
    let known = Known::new(shell, &files, &stages)?;
    let (mut named, mut shown, mut commands) = (0, 0, 0);
    let mut wrong = Vec::new();
    // Paths of a document are relative to its own folder, not to that of a symbolic link to it.
    let is_read =
        |file: &&String| file.ends_with(".md") && *file != HISTORY && !shell.path(file).is_symlink();
    for document in files.iter().filter(is_read) {
        let text = shell.read(document)?;
        let cited = cited(&text);
        named += cited.len();
        let mut problems: Vec<_> =
            cited.iter().filter_map(|(line, cell)| Some((*line, tests.problem(cell)?))).collect();
        problems.extend(missing_paths(document, &text, &files));
        let (count, unknown) = known.problems(&text);
        commands += count;
        problems.extend(unknown.into_iter().map(|(at, problem)| (line_at(&text, at), problem)));
        for program in PROGRAM.captures_iter(&text) {
            shown += 1;
            let Ok(file) = shell.read(&program[2]) else {
                problems.push((line_of(&text, &program[0]), format!("there is no {}", &program[2])));
                continue;
            };
            let block = program.get(3).map_or("", |block| block.as_str());
            let fits = if &program[1] == "file" {
                file == block
            } else {
                format!("\n{file}").contains(&format!("\n{block}"))
            };
            if block.is_empty() || !fits {
                problems
                    .push((line_of(&text, &program[0]), format!("the block differs from {}", &program[2])));
            }
        }
        if document == ARCHITECTURE {
            problems.extend(tests.invariants(&text, &stages));
            problems.extend(walks(&text, |line| shell.print(line)));
        }
        wrong.extend(problems.iter().map(|(line, problem)| format!("{document}:{line}: {problem}")));
    }
    if !wrong.is_empty() {
        bail!("documents contain names that do not exist, or differ from files:\n  {}", wrong.join("\n  "));
    }
    if named == 0 || shown == 0 || commands == 0 {
        bail!("no document cites a test, a command or a program: the check does not parse the documents");
    }
    shell.print(format_args!(
        "{named} places of documents cite existing tests, {commands} commands name what exists, and {shown} programs \
         equal their files"
    ));
    Ok(())
}

/// Compares the table of stages in the document with the expected one.
fn check_table(text: &str, expected: &str) -> Result<()> {
    const BEGIN: &str = "<!-- cargo xtask ci --table -->\n";
    let inner = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once("\n<!-- end -->"));
    let (found, _) = inner.with_context(|| format!("{STAGES} has no line {:?}", BEGIN.trim()))?;
    if found != expected {
        let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
        let (found, expected) = differs.unwrap_or(("one of them", "is longer"));
        bail!("{STAGES} differs from the output of `cargo xtask ci --table`:\n  {found}\n  {expected}");
    }
    Ok(())
}

/// The Rust files with tests: their functions, and their folders and modules.
#[derive(Default)]
struct Tests(Vec<(String, BTreeSet<String>, BTreeSet<String>)>);

impl Tests {
    fn add(&mut self, path: &str, text: &str) {
        let mut functions: BTreeSet<_> = TEST.captures_iter(text).map(|found| found[1].to_owned()).collect();
        for made in MAKERS.captures_iter(text) {
            let body = made.get(1).or_else(|| made.get(2)).map_or("", |body| body.as_str());
            functions.extend(MADE.captures_iter(body).map(|found| found[1].to_owned()));
        }
        let modules = MODULE.captures_iter(text).chain(MODULE.captures_iter(path));
        let modules =
            modules.filter_map(|found| Some(found.get(1).or_else(|| found.get(2))?.as_str().to_owned()));
        if !functions.is_empty() {
            self.0.push((path.to_owned(), functions, modules.collect()));
        }
    }

    /// Returns true if there is a test with this name, which may be prefixed with its innermost modules.
    fn has(&self, name: &str) -> bool {
        let (modules, function) = name.rsplit_once("::").unwrap_or(("", name));
        let has_modules =
            |own: &BTreeSet<String>| modules.split("::").all(|name| name.is_empty() || own.contains(name));
        self.0.iter().any(|(_, functions, own)| functions.contains(function) && has_modules(own))
    }

    /// Returns true if there are tests in this file, module or folder.
    fn has_file(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/').replace("::", "/");
        self.0.iter().any(|(file, ..)| {
            file == &path
                || file.starts_with(&format!("{path}/"))
                || file.strip_prefix(&path).is_some_and(|end| end == ".rs")
                || file.contains(&format!("/{path}/"))
                || file.ends_with(&format!("/{path}.rs"))
        })
    }

    /// Returns the first cited test of a place that does not exist.
    fn problem(&self, cell: &str) -> Option<String> {
        let mut names = cell.split('`').skip(1).step_by(2).peekable();
        if names.peek().is_none() {
            return Some("the row cites no test".to_owned());
        }
        // Programs in other languages and fuzz targets have no Rust tests.
        let is_foreign = |name: &str| {
            name.starts_with("fuzz/") || [".mjs", ".cs", ".py"].iter().any(|end| name.ends_with(end))
        };
        let is_unknown = |name: &&str| match name.contains('/') {
            true => !is_foreign(name) && !self.has_file(name),
            false => !self.has(name),
        };
        names.find(is_unknown).map(|name| format!("there is no test {name}"))
    }

    /// Returns the invariants that cite no check in brackets, or one that is neither a test nor a stage.
    fn invariants(&self, text: &str, stages: &[&str]) -> Vec<(usize, String)> {
        let section = text
            .split_once("## Invariants")
            .map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or(rest));
        let mut problems = Vec::new();
        // The first piece precedes the list.
        for item in section.split("\n- ").skip(1) {
            let inside = item.split("[`").skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
            let names: Vec<_> = inside
                .flat_map(|inside| inside.split('`').step_by(2))
                .filter(|name| !name.is_empty())
                .collect();
            if names.is_empty() {
                problems.push((line_of(text, item), "the invariant cites no check".to_owned()));
            }
            let is_known = |name: &&&str| stages.contains(name) || self.has(name) || self.has_file(name);
            let unknown = names.iter().filter(|name| !is_known(name));
            problems.extend(
                unknown.map(|name| (line_of(text, item), format!("there is no stage and no test {name}"))),
            );
        }
        problems
    }
}

fn line_of(text: &str, part: &str) -> usize {
    text.find(part).map_or(1, |at| line_at(text, at))
}

fn line_at(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// Returns texts that cite tests, with their lines: cells of columns headed "test", and lists in sentences.
fn cited(text: &str) -> Vec<(usize, &str)> {
    let lists = CITED.captures_iter(text).filter_map(|found| found.get(1));
    let mut found: Vec<_> = lists.map(|list| (line_at(text, list.start()), list.as_str())).collect();
    let (mut column, mut is_table) = (None, false);
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

/// Returns the paths in backticks that do not exist, relative to the root or to the folder of the document.
fn missing_paths(document: &str, text: &str, files: &[String]) -> Vec<(usize, String)> {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let exists = |path: &str| {
        let inside = format!("{path}/");
        files.iter().any(|file| file == path || file.starts_with(&inside))
    };
    let text = prose(text);
    let paths = PATH.captures_iter(&text).filter_map(|found| found.get(1));
    let missing = paths.filter(|path| {
        let path = path.as_str().trim_end_matches('/');
        let is_built = BUILT.iter().any(|start| path.starts_with(start.trim_end_matches('/')));
        !is_built && !exists(path) && !exists(&format!("{folder}/{path}"))
    });
    missing.map(|path| (line_at(&text, path.start()), format!("there is no {}", path.as_str()))).collect()
}

/// Counts the files in each list that follows a datagram, and the returns to a file that the list has left.
fn walks(text: &str, mut print: impl FnMut(String)) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    for (heading, most_files, most_returns) in WALKS {
        let list = text
            .split_once(heading)
            .and_then(|(_, rest)| rest.split_once("\n1. "))
            .map_or("", |(_, list)| list);
        let list = list.split("\n\n").next().unwrap_or_default();
        let (mut passed, mut last, mut returns) = (BTreeSet::new(), "", 0);
        for file in list.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
            returns += usize::from(!passed.insert(file) && file != last);
            last = file;
        }
        let found =
            format!("{heading}: {} files of {most_files}, {returns} returns of {most_returns}", passed.len());
        if passed.is_empty() || passed.len() > most_files || returns > most_returns {
            problems.push((line_of(text, heading), found.clone()));
        }
        print(found);
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests() -> Tests {
        let mut tests = Tests::default();
        let text = "#[test]\nfn exists() {}\nmod inner {\n    #[tokio::test(flavor = \"x\")]\n    #[cfg(unix)]\n    async fn other() {}\n}\n\
                    fn helper() {}\nby_both_protocols!(three, four,);\ncases! {\n    six: action(\"a\", 6);\n}\n";
        tests.add("core/tests/it/raknet/a.rs", text);
        tests.add("core/src/b.rs", "fn helper() {}");
        tests
    }

    #[test]
    fn tests_that_documents_name_must_exist() {
        for name in ["exists", "raknet::a::exists", "it::other", "inner::other", "three", "four", "six"] {
            assert!(tests().has(name), "{name}");
        }
        for name in ["helper", "gone", "game::exists"] {
            assert!(!tests().has(name), "{name}");
        }
        let text = "| what | test |\n|---|---|\n| one | `a::exists` |\n| two | nothing |\n| three | `b::exists` |\n\
                    | four | `core/tests/it/`, `web/a.mjs` |\n\nIt holds. Tests: `exists`,\n`gone`. `x`\n";
        let cited = cited(text);
        let problems: Vec<_> =
            cited.iter().filter_map(|(line, cell)| Some((*line, tests().problem(cell)?))).collect();
        let expected =
            [(8, "there is no test gone"), (4, "the row cites no test"), (5, "there is no test b::exists")];
        assert_eq!(problems, expected.map(|(line, problem)| (line, problem.to_owned())));
    }

    #[test]
    fn every_invariant_cites_an_existing_check() {
        let text = "# A\n## Invariants\n\n- One [a](b.md) [`docs`, `a::exists`].\n- Two [`raknet::a`,\n  `gone`].\n- Three.\n\n## B\n- Four";
        let expected = [(5, "there is no stage and no test gone"), (7, "the invariant cites no check")];
        assert_eq!(
            tests().invariants(text, &["docs"]),
            expected.map(|(line, problem)| (line, problem.to_owned()))
        );
    }

    #[test]
    fn missing_paths_and_embedded_programs_are_found() {
        let files = ["core/src/lib.rs", "cli/README.md", "cli/setup.sh"].map(str::to_owned);
        let text = "`core/src` `setup.sh` `core/src/lib.rs#a` `bytes/s` `target/x.json` `.rs`\n```\n`no.rs`\n```\n`core/gone` `gone.rs`";
        let expected = [(5, "there is no core/gone".to_owned()), (5, "there is no gone.rs".to_owned())];
        assert_eq!(missing_paths("cli/README.md", text, &files), expected);
        let program = PROGRAM.captures("<!-- part: a.rs -->\n```rust\none\n\n`two`\n```\n").unwrap();
        assert_eq!((&program[1], &program[2], &program[3]), ("part", "a.rs", "one\n\n`two`\n"));
        assert!(PROGRAM.captures("<!-- file: a.rs -->\ntext\n").unwrap().get(3).is_none());
    }

    #[test]
    fn the_list_of_files_that_a_datagram_passes_is_limited() {
        let list = |files: &str| {
            format!(
                "{0}:\n\n1. A (`a.rs`).\n2. B (`b.rs`, `a.rs`{files}).\n\n{1}:\n\n1. `c.rs`\n\n",
                WALKS[0].0, WALKS[1].0
            )
        };
        let mut lines = Vec::new();
        assert!(walks(&list(""), |line| lines.push(line)).is_empty());
        assert!(lines[0].ends_with("2 files of 20, 1 returns of 12"), "{lines:?}");
        let files: String = (0..20).map(|number| format!(", `{number}.rs`")).collect();
        assert_eq!(walks(&list(&files), |_| {}).len(), 1);
    }

    #[test]
    fn a_table_that_differs_from_its_command_is_an_error() {
        let document =
            |table: &str| format!("# A\n\n<!-- cargo xtask ci --table -->\n{table}\n<!-- end -->\nB\n");
        check_table(&document("| a |\n| b |"), "| a |\n| b |").unwrap();
        assert!(
            check_table(&document("| a |\n| b |"), "| a |\n| c |")
                .unwrap_err()
                .to_string()
                .contains("  | b |\n  | c |")
        );
    }
}
