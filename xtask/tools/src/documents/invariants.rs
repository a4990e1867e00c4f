//! The invariants of ARCHITECTURE.md: the check that each names in brackets must exist.

use anyhow::{Result, bail};

use super::index::TestIndex;
use super::paths::KnownPaths;

const HEADING: &str = "## Invariants";

/// What is wrong with the section, by lines.
pub(super) fn problems(
    text: &str,
    stages: &[&str],
    index: &TestIndex,
    paths: &KnownPaths,
) -> Result<Vec<(usize, String)>> {
    let Some((before, section)) = text.split_once(HEADING) else { bail!("there is no heading {HEADING}") };
    let section = section.split("\n## ").next().unwrap_or(section);
    let mut problems = Vec::new();
    let mut line = 1 + before.matches('\n').count();
    for (number, item) in section.split("\n- ").enumerate() {
        // The first piece is what stands before the list.
        if number > 0 {
            let names: Vec<_> = brackets(item).collect();
            if names.is_empty() {
                problems.push((line, "the invariant names no check".to_owned()));
            }
            let is_known = |name: &str| {
                let is_file = name.contains('/') && paths.has(name) && index.has_file(name);
                stages.contains(&name) || index.has(name) || is_file
            };
            let unknown = names.iter().filter(|name| !is_known(name));
            problems.extend(unknown.map(|name| (line, format!("there is no stage and no test {name}"))));
        }
        line += 1 + item.matches('\n').count();
    }
    Ok(problems)
}

/// What stands in backticks in brackets.
fn brackets(item: &str) -> impl Iterator<Item = &str> {
    let inside = item.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
    inside.filter(|inside| inside.starts_with('`')).flat_map(|inside| inside.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invariant_names_a_check_that_exists() {
        let mut index = TestIndex::default();
        index.add("core/tests/it/hostile.rs", "#[test] fn holds() {}").unwrap();
        let paths = KnownPaths::new(&["core/tests/it/hostile.rs".to_owned()]);
        let problems = |text: &str| problems(text, &["words"], &index, &paths).unwrap();
        let good = "# A\n## Invariants\n\n- One [a](b.md) [`words`, `hostile::holds`].\n- Two\n  [`core/tests/it/hostile.rs`].\n";
        assert_eq!(problems(good), []);
        let bad = "# A\n## Invariants\n\n- One [`words`,\n  `gone`].\n- Two.\n\n## B\n- Three";
        assert_eq!(
            problems(bad),
            [
                (4, "there is no stage and no test gone".to_owned()),
                (6, "the invariant names no check".to_owned())
            ]
        );
    }
}
