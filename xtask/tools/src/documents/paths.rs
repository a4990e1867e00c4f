//! Checks paths in documents: text in backticks that looks like a path of the repository must be one.

use std::collections::BTreeSet;

use super::spans;

/// Extensions of files that are written by hand.
const ENDINGS: [&str; 10] = [".rs", ".ts", ".mjs", ".toml", ".json", ".yml", ".sh", ".py", ".cpp", ".md"];
/// Built or downloaded files, which a fresh clone does not have.
const BUILT: [&str; 5] = ["target/", "wasm/pkg/", "wasm/dist/", "web/dist", "node_modules/"];

/// The files of the repository, and all folders with files.
pub(super) struct KnownPaths(BTreeSet<String>);

impl KnownPaths {
    pub(super) fn new(files: &[String]) -> Self {
        let mut paths = BTreeSet::new();
        for file in files {
            paths.insert(file.clone());
            paths.extend(file.match_indices('/').map(|(at, _)| file[..at].to_owned()));
        }
        Self(paths)
    }

    fn has(&self, path: &str) -> bool {
        self.0.contains(path.trim_end_matches('/'))
    }

    /// Returns the invalid paths of a document, with their lines. Paths are relative to the root of the repository or
    /// to the document's own folder.
    pub(super) fn problems(&self, document: &str, text: &str) -> Vec<(usize, String)> {
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut problems = Vec::new();
        for (line, span) in spans::inline(text) {
            let path = span.split('#').next().unwrap_or(span);
            let is_there = || self.has(path) || self.has(&format!("{folder}/{path}"));
            if self.looks_like_one(path) && !BUILT.iter().any(|start| path.starts_with(start)) && !is_there()
            {
                problems.push((line, format!("there is no {path}")));
            }
        }
        problems
    }

    fn looks_like_one(&self, text: &str) -> bool {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        let is_name = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
        let first = text.split_once('/').map(|(first, _)| first);
        // An extension alone, such as `.rs`, is not a path.
        let is_file = ENDINGS.iter().any(|ending| text.len() > ending.len() && text.ends_with(ending));
        let is_below = first.is_some_and(|first| self.0.contains(first) || ["src", "tests"].contains(&first));
        is_plain && is_name && (is_file || is_below || text.ends_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_must_exist() {
        let files = ["core/src/lib.rs", "cli/README.md", "cli/setup.sh"].map(str::to_owned);
        let problems = |text: &str| {
            let found = KnownPaths::new(&files).problems("cli/README.md", text);
            found.into_iter().map(|(line, problem)| format!("{line} {problem}")).collect::<Vec<_>>()
        };
        let good = "`core/src/lib.rs` `core/src` `core/` `setup.sh` `cli/` `a/b` `bytes/s` `/echo.html` `target/x.json` `.rs`";
        assert_eq!(problems(good), [""; 0]);
        assert_eq!(
            problems("`core/src/gone.rs`\n`gone.rs` `core/tests`\n`firmware/` `src/game`"),
            [
                "1 there is no core/src/gone.rs",
                "2 there is no gone.rs",
                "2 there is no core/tests",
                "3 there is no firmware/",
                "3 there is no src/game"
            ]
        );
    }
}
