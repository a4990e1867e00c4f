//! Bounds habits that keep engineers from reading comments and documents: personal pronouns for machines, and sentences
//! that begin with a free relative. Each area has a limit per 1,000 lines of prose, which may only be lowered. Names of
//! tests must not contain such words.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use xtask::shell::Shell;
use xtask::tracked;

const PRONOUNS: [&str; 9] =
    ["who", "whom", "whose", "whoever", "nobody", "somebody", "told", "tells", "untold"];
const OPENERS: [&str; 10] =
    ["What", "Whether", "Whoever", "Whom", "Who", "Which", "Where", "How often", "How long", "How much"];
/// Words that the names of tests must not contain, because such names are proverbs.
const PROVERBS: [&str; 12] = [
    "who", "whom", "whoever", "nobody", "somebody", "anybody", "told", "tells", "what", "whatever", "hears",
    "care",
];
const PROGRAMS: [&str; 11] = [".rs", ".ts", ".mjs", ".js", ".c", ".h", ".hpp", ".cpp", ".cs", ".py", ".pyi"];
/// The maximum number of pronouns and openers per 1,000 lines of an area.
const MOST: (usize, usize) = (2, 10);

/// Lines of prose in one area, with the pronouns and the openers among them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Prose {
    lines: usize,
    pronouns: usize,
    openers: usize,
}

impl Prose {
    fn add(&mut self, line: &str) {
        self.lines += 1;
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        self.pronouns +=
            words.filter(|word| PRONOUNS.iter().any(|one| one.eq_ignore_ascii_case(word))).count();
        let start = line.trim_start_matches(['-', '*', ' ']);
        let opens = |opener: &str| start.strip_prefix(opener).is_some_and(|rest| rest.starts_with(' '));
        self.openers += usize::from(OPENERS.iter().any(|opener| opens(opener)));
    }

    fn per_thousand(&self, count: usize) -> usize {
        (1000 * count).div_ceil(self.lines.max(1))
    }
}

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let mut areas = BTreeMap::<String, Prose>::new();
    let mut wrong = Vec::new();
    for path in tracked::files(shell)?.iter().filter(|path| !path.contains("CHANGELOG")) {
        let is_document = path.ends_with(".md");
        if is_document || PROGRAMS.iter().any(|end| path.ends_with(end)) {
            let area = if is_document { "documents" } else { path.split('/').next().unwrap_or_default() };
            let prose = areas.entry(area.to_owned()).or_default();
            let text = shell.read(path)?;
            lines(&text, is_document).for_each(|line| prose.add(line));
            wrong.extend(proverbs(&text).map(|name| format!("the test {name} of {path}")));
        }
    }
    for (area, prose) in &areas {
        let found = (prose.per_thousand(prose.pronouns), prose.per_thousand(prose.openers));
        shell.print(format_args!("{area}: {found:?} of {MOST:?} pronouns and openers"));
        if found.0 > MOST.0 || found.1 > MOST.1 {
            wrong.push(area.clone());
        }
    }
    let wrong = wrong.join(", ");
    ensure!(
        wrong.is_empty(),
        "not in plain English: {wrong}; write plain verbs and things (CONTRIBUTING.md)"
    );
    Ok(())
}

/// Returns the names of Rust tests and the titles of JavaScript tests that are proverbs.
fn proverbs(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    let names = text.lines().map(str::trim).filter_map(move |line| {
        is_test |= line.starts_with("#[") && line.contains("test") && !line.contains("cfg");
        let name = line.split_once("fn ").filter(|_| std::mem::take(&mut is_test)).map(|(_, name)| name);
        name.or_else(|| line.strip_prefix("test(\""))?.split(['(', '"']).next()
    });
    names.filter(|name| name.split(['_', ' ']).any(|word| PROVERBS.contains(&word)))
}

/// Returns the comments of a program, or the text of a document without its code.
fn lines(text: &str, is_document: bool) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().map(str::trim).filter_map(move |line| {
        let is_fence = is_document && line.starts_with("```");
        in_code ^= is_fence;
        let is_comment = ["//", "/*", "* ", "# "].iter().any(|start| line.starts_with(start));
        let prose = line.trim_start_matches(['/', '!', '*', '#', ' ']);
        (if is_document { !in_code && !is_fence } else { is_comment } && !prose.is_empty()).then_some(prose)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pronouns_and_openers_are_counted_in_prose_alone() {
        let mut prose = Prose::default();
        let code = "/// Whether nobody reads it.\nlet who = 1;\n/** Reads. */\n";
        lines(code, false).for_each(|line| prose.add(line));
        assert_eq!(prose, Prose { lines: 2, pronouns: 1, openers: 1 });
        lines("- What is `sent`\n```\nWho\n```\n", true).for_each(|line| prose.add(line));
        assert_eq!(prose, Prose { lines: 3, pronouns: 1, openers: 2 });
        assert_eq!(prose.per_thousand(prose.pronouns), 334);
    }

    #[test]
    fn proverbs_are_found_in_names_of_tests() {
        let rust =
            "#[tokio::test(start)]\nasync fn they_do_what_they_can() {\n#[test]\nfn whole() {\nfn who() {";
        assert_eq!(proverbs(rust).collect::<Vec<_>>(), ["they_do_what_they_can"]);
        assert_eq!(proverbs("test(\"a page asks nobody\", ").count(), 1);
    }
}
