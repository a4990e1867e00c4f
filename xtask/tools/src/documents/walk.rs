//! Counts the files of the lists in ARCHITECTURE.md that follow a datagram, in the order in which they name them.

/// The headings of the lists, and the largest number of files and of returns of each.
const WALKS: [(&str, usize, usize); 2] =
    [("From the socket to `recv`", 20, 12), ("From `send` to the socket", 20, 12)];

/// The files that a datagram passes, and the number of times that it returns to one that it has left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Walk {
    pub(super) heading: &'static str,
    pub(super) files: usize,
    pub(super) returns: usize,
}

/// Returns the walks, and a problem for each that is missing or too long.
pub(super) fn walks(text: &str) -> (Vec<Walk>, Vec<(usize, String)>) {
    let (mut walks, mut problems) = (Vec::new(), Vec::new());
    for (heading, most_files, most_returns) in WALKS {
        let walk = text.find(heading).map(|at| follow(heading, &text[at..])).filter(|walk| walk.files > 0);
        let Some(walk) = walk else {
            problems.push((1, format!("no list of files follows \"{heading}\"")));
            continue;
        };
        if walk.files > most_files || walk.returns > most_returns {
            let Walk { files, returns, .. } = walk;
            problems.push((
                1,
                format!("\"{heading}\": {files} files of {most_files}, {returns} returns of {most_returns}"),
            ));
        }
        walks.push(walk);
    }
    (walks, problems)
}

/// Follows the files of the numbered list after a heading.
fn follow(heading: &'static str, text: &str) -> Walk {
    let list = text.lines().skip_while(|line| !line.starts_with("1. ")).take_while(|line| !line.is_empty());
    let list = list.collect::<Vec<_>>().join(" ");
    let mut passed: Vec<&str> = Vec::new();
    let (mut last, mut returns) = ("", 0);
    for file in list.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
        match passed.contains(&file) {
            true if file != last => returns += 1,
            true => {}
            false => passed.push(file),
        }
        last = file;
    }
    Walk { heading, files: passed.len(), returns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_returns_of_a_list_are_counted() {
        let list = "\n\n1. It is read (`a.rs`,\n   `b.rs`).\n2. `recv` has it (`b.rs`, `c.rs`).\n3. Again (`a.rs`).\n\nOther `d.rs`\n";
        let text = format!("{}:{list}{}:{list}", WALKS[0].0, WALKS[1].0);
        let walk = |heading| Walk { heading, files: 3, returns: 1 };
        assert_eq!(walks(&text), (vec![walk(WALKS[0].0), walk(WALKS[1].0)], Vec::new()));
    }

    #[test]
    fn a_long_or_missing_list_is_a_problem() {
        let files: Vec<_> = (0..21).map(|number| format!("`{number}.rs`")).collect();
        let text = format!("{}:\n\n1. {}\n\n", WALKS[0].0, files.join(" "));
        let (_, problems) = walks(&text);
        let problems: Vec<_> = problems.into_iter().map(|(_, problem)| problem).collect();
        assert!(problems[0].contains("21 files of 20"), "{problems:?}");
        assert!(problems[1].starts_with("no list"), "{problems:?}");
    }
}
