//! Checks that the words which docs/glossary.md replaces occur nowhere any more.

mod glossary;
mod pattern;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};

use self::glossary::{Glossary, Rule};
use self::pattern::Candidate;
use self::text::Kind;
use xtask::shell::Shell;
use xtask::tracked;

const GLOSSARY: &str = "docs/glossary.md";

/// Files that are not looked at: the glossary itself, what has happened, and what others or programs have written.
const NOT_READ: [&str; 8] = [
    GLOSSARY,
    "CHANGELOG.md",
    "LICENSE",
    "core/tests/vectors/",
    "core/tests/proptest-regressions/",
    "fuzz/corpus/",
    "snowfight/tests/vectors/",
    "wasm/LICENSE",
];
const ENDINGS_NOT_READ: [&str; 5] = [".lock", "-lock.json", ".png", ".svg", ".stderr"];

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let glossary =
        Glossary::parse(&shell.read(GLOSSARY)?).with_context(|| format!("{GLOSSARY} is no glossary"))?;
    let mut problems = Vec::new();
    let mut files = 0;
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in tracked::files(shell)?.iter().filter(|path| is_read(path)) {
        // What a link leads to is read in its own place.
        if shell.path(path).is_symlink() {
            continue;
        }
        // What is no text has no words.
        let Ok(text) = fs::read_to_string(shell.path(path)) else { continue };
        files += 1;
        problems.extend(problems_of(&glossary, path, &text));
        for word in text::words(path, &text) {
            if glossary.keeps(path, word.text) {
                used.entry(word.text.to_owned()).or_default().insert(path.clone());
            }
        }
    }
    problems.extend(glossary.unused(&used).into_iter().map(|problem| format!("{GLOSSARY}: {problem}")));
    if !problems.is_empty() {
        bail!("words are not those of {GLOSSARY}, in {} places:\n\n{}", problems.len(), problems.join("\n"));
    }
    shell.print(format_args!("{files} files use the words of {GLOSSARY}"));
    Ok(())
}

fn is_read(path: &str) -> bool {
    let is_left_out = NOT_READ.iter().any(|start| path.starts_with(start));
    !is_left_out && !ENDINGS_NOT_READ.iter().any(|ending| path.ends_with(ending))
}

/// All that is wrong with a file, its name included: for each rule the words and their lines.
fn problems_of(glossary: &Glossary, path: &str, text: &str) -> Vec<String> {
    let stems: Vec<_> = path.split('/').map(stem).collect();
    let mut places: BTreeMap<(&str, Kind), BTreeSet<usize>> = BTreeMap::new();
    // Line 0 is the name of the file with its folders.
    for stem in &stems {
        places.entry((stem, Kind::Code)).or_default().insert(0);
    }
    let all = text::words(path, text);
    for word in &all {
        places.entry((word.text, word.kind)).or_default().insert(word.line);
    }
    places.retain(|(word, _), _| !glossary.keeps(path, word));
    let words: Vec<_> =
        places.iter().map(|((word, kind), lines)| (Candidate::new(word, *kind), lines)).collect();
    let mut strays: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for word in all.iter().filter(|word| word.is_stray && !glossary.keeps(path, word.text)) {
        strays.entry(word.text).or_default().insert(word.line);
    }
    let in_backticks = |(word, lines): (_, BTreeSet<usize>)| {
        let (place, more) = place(path, &lines)?;
        Some(format!("{place}: {word}{more} is an identifier and stands in backticks"))
    };
    let mut problems: Vec<_> = strays.into_iter().filter_map(in_backticks).collect();
    for rule in glossary.rules.iter().filter(|rule| rule.is_for(path)) {
        let is_wrong = |word| rule.patterns.iter().any(|pattern| pattern.fits(word));
        let wrong: Vec<_> = words.iter().filter(|(word, _)| is_wrong(word)).collect();
        let names: BTreeSet<_> = wrong.iter().map(|(word, _)| word.text).collect();
        let lines: BTreeSet<_> = wrong.iter().flat_map(|(_, lines)| *lines).copied().collect();
        problems.extend(problem(path, rule, &names, &lines));
    }
    problems
}

/// The name of a file or a folder as an identifier, without its ending.
fn stem(name: &str) -> String {
    name.split('.').next().unwrap_or(name).replace('-', "_")
}

fn problem(path: &str, rule: &Rule, words: &BTreeSet<&str>, lines: &BTreeSet<usize>) -> Option<String> {
    let words: Vec<_> = words.iter().copied().collect();
    let (place, more) = place(path, lines)?;
    Some(format!("{place}: {}{more}, better: {} ({GLOSSARY}:{})", words.join(", "), rule.instead, rule.line))
}

/// The first of some lines with its file, and the others.
fn place(path: &str, lines: &BTreeSet<usize>) -> Option<(String, String)> {
    let place = match lines.first()? {
        0 => path.to_owned(),
        line => format!("{path}:{line}"),
    };
    let more: Vec<_> = lines.iter().skip(1).map(usize::to_string).collect();
    let more = if more.is_empty() { String::new() } else { format!(" (and in {})", more.join(", ")) };
    Some((place, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOSSARY: &str = "\
# Glossary

| not this | but this | where |
|---|---|---|
| `Basket` | `BlockHeader` | |
| `*shelf*`, \"salute\" | `Rack` | `core/`, `native/` |

| kept | where | why |
|---|---|---|
| `shelf_life` | `core/a.rs` | how long food keeps |
";

    fn problems(path: &str, text: &str) -> Vec<String> {
        problems_of(&Glossary::parse(GLOSSARY).unwrap(), path, text)
    }

    #[test]
    fn words_are_reported_with_their_lines_and_the_better_ones() {
        assert_eq!(
            problems("web/a.rs", "struct A;\nstruct B(Basket, Basket);\nBasket"),
            ["web/a.rs:2: Basket (and in 3), better: `BlockHeader` (docs/glossary.md:5)"]
        );
        assert!(problems("web/a.rs", "struct Basketry; // an Basket\nlet a = \"Basket\";").is_empty());
    }

    #[test]
    fn a_rule_may_hold_for_some_folders_only() {
        assert!(problems("web/a.rs", "let shelf = 1;").is_empty());
        assert_eq!(
            problems("native/a.rs", "let shelf = 1;\n// Salute"),
            ["native/a.rs:1: Salute, shelf (and in 2), better: `Rack` (docs/glossary.md:6)"]
        );
    }

    #[test]
    fn words_that_are_kept_are_kept_where_it_says() {
        assert!(problems("core/a.rs", "let shelf_life = 1;").is_empty());
        assert_eq!(problems("core/b.rs", "let shelf_life = 1;").len(), 1);
    }

    #[test]
    fn what_is_kept_must_be_somewhere() {
        let glossary = Glossary::parse(GLOSSARY).unwrap();
        let words =
            |path: &str| BTreeMap::from([("shelf_life".to_owned(), BTreeSet::from([path.to_owned()]))]);
        assert!(glossary.unused(&words("core/a.rs")).is_empty());
        assert_eq!(glossary.unused(&words("core/b.rs")), ["line 10 keeps shelf_life, which is nowhere"]);
        // Without a pattern that fits it there is nothing to keep.
        let other = Glossary::parse(&GLOSSARY.replace("*shelf*", "*board*")).unwrap();
        assert_eq!(other.unused(&words("core/a.rs")).len(), 1);
    }

    #[test]
    fn names_of_files_count() {
        assert_eq!(
            problems("core/top-shelf.rs", ""),
            ["core/top-shelf.rs: top_shelf, better: `Rack` (docs/glossary.md:6)"]
        );
        assert_eq!(
            problems("core/shelves/shelf/a.rs", ""),
            ["core/shelves/shelf/a.rs: shelf, better: `Rack` (docs/glossary.md:6)"]
        );
    }

    #[test]
    fn an_identifier_in_a_sentence_is_reported() {
        assert_eq!(
            problems("web/a.rs", "// are recently_lost\n// are `recently_lost`"),
            ["web/a.rs:1: recently_lost is an identifier and stands in backticks"]
        );
        assert!(
            problems("core/a.rs", "// the shelf_life is long")
                .iter()
                .all(|text| !text.contains("shelf_life"))
        );
    }

    #[test]
    fn a_glossary_without_words_or_reasons_is_refused() {
        let error = |text: &str| Glossary::parse(text).unwrap_err().to_string();
        assert_eq!(error("# Glossary"), "there is no table with the columns not this, but this, where");
        let unexplained = GLOSSARY.replace("how long food keeps", "");
        assert_eq!(error(&unexplained), "line 10 keeps `shelf_life` without a reason");
        assert_eq!(error(&GLOSSARY.replace("`Basket`", "Basket")), "line 5 cannot be read");
    }

    #[test]
    fn what_others_wrote_is_not_read() {
        assert!(is_read("core/src/lib.rs") && is_read("docs/raknet.md"));
        assert!(!is_read("docs/glossary.md") && !is_read("Cargo.lock") && !is_read("wasm/package-lock.json"));
    }
}
