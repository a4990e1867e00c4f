//! Checks that programs in documents are those of the repository, which the tests compile and run.
//!
//! A comment before a fenced block names the file:
//!
//! - `<!-- file: PATH -->`: the block equals the file.
//! - `<!-- part: PATH -->`: the block is a part of the file, in whole lines.

use anyhow::Result;

/// The number of checked blocks, and the blocks that differ from their files, by line.
pub(super) fn problems(text: &str, read: impl Fn(&str) -> Result<String>) -> (usize, Vec<(usize, String)>) {
    let mut checked = 0;
    let mut problems = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((line, comment)) = lines.next() {
        let Some((kind, path)) = named(comment) else { continue };
        checked += 1;
        if lines.next_if(|(_, next)| next.starts_with("```")).is_none() {
            problems.push((line, format!("no block follows the comment about {path}")));
            continue;
        }
        let block: String = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .map(|line| format!("{line}\n"))
            .collect();
        match read(path) {
            Err(_) => problems.push((line, format!("there is no {path}"))),
            Ok(file) if !kind.fits(&block, &file) => {
                problems.push((line, format!("the block differs from {path}")));
            }
            Ok(_) => {}
        }
    }
    (checked, problems)
}

#[derive(Clone, Copy)]
enum Kind {
    File,
    Part,
}

impl Kind {
    fn fits(self, block: &str, file: &str) -> bool {
        match self {
            Self::File => block == file,
            Self::Part => !block.is_empty() && format!("\n{file}").contains(&format!("\n{block}")),
        }
    }
}

/// Returns the kind and the path of a comment.
fn named(line: &str) -> Option<(Kind, &str)> {
    let inside = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let file = inside.strip_prefix("file: ").map(|path| (Kind::File, path));
    file.or_else(|| inside.strip_prefix("part: ").map(|path| (Kind::Part, path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(text: &str) -> (usize, Vec<(usize, String)>) {
        problems(text, |path| {
            if path == "a.rs" { Ok("one\ntwo\nthree\n".to_owned()) } else { anyhow::bail!("none") }
        })
    }

    #[test]
    fn blocks_that_equal_their_files_are_correct() {
        let text = "<!-- file: a.rs -->\n```rust\none\ntwo\nthree\n```\n<!-- part: a.rs -->\n```rust\ntwo\n```\n<!-- other -->\n";
        assert_eq!(problems_of(text), (2, Vec::new()));
    }

    #[test]
    fn blocks_that_differ_from_their_files_are_problems() {
        for (text, expected) in [
            ("<!-- file: a.rs -->\n```rust\none\ntwo\n```\n", "the block differs from a.rs"),
            ("<!-- part: a.rs -->\n```rust\nwo\n```\n", "the block differs from a.rs"),
            ("<!-- part: a.rs -->\n```rust\ntw\n```\n", "the block differs from a.rs"),
            ("<!-- part: a.rs -->\n```rust\n```\n", "the block differs from a.rs"),
            ("<!-- part: b.rs -->\n```rust\ntwo\n```\n", "there is no b.rs"),
            ("<!-- part: a.rs -->\ntext\n```rust\ntwo\n```\n", "no block follows the comment about a.rs"),
        ] {
            assert_eq!(problems_of(text), (1, vec![(1, expected.to_owned())]));
        }
    }
}
