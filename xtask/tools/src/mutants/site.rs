//! Where the text of a mutant stands in the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::list::Mutant;

/// The sources by their paths from the root of the repository.
pub(crate) type Sources = BTreeMap<String, String>;

/// How many lines that look like the missing text are shown.
const SIMILAR_LINES: usize = 3;

/// The place of the mutant's text in its file, or what is wrong and how to mend it.
pub(crate) fn locate(mutant: &Mutant, sources: &Sources) -> Result<Range<usize>, String> {
    let Some(source) = sources.get(&mutant.file) else {
        return Err(format!("there is no {}{}", mutant.file, elsewhere(mutant, sources)));
    };
    match find(source, &mutant.after, &mutant.from).as_slice() {
        [place] => Ok(place.clone()),
        [] => {
            let known = elsewhere(mutant, sources);
            let hint = if known.is_empty() { similar_lines(source, &mutant.from) } else { known };
            Err(format!("{} does not contain `{}`{hint}", mutant.file, mutant.from.trim()))
        }
        places => {
            let lines: Vec<_> = places.iter().map(|place| line_of(source, place.start).to_string()).collect();
            Err(format!(
                "{} contains `{}` {} times, in the lines {}: take more of it, or tell them apart by `after`",
                mutant.file,
                mutant.from.trim(),
                places.len(),
                lines.join(", "),
            ))
        }
    }
}

/// Every place of `text` in `source` with `after` right before it. White space does not matter, and names match as a
/// whole.
fn find(source: &str, after: &str, text: &str) -> Vec<Range<usize>> {
    let solid: Vec<(usize, char)> = source.char_indices().filter(|(_, c)| !c.is_whitespace()).collect();
    let solid_text = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
    let (skipped, needle) = (solid_text(after).len(), solid_text(&format!("{after}{text}")));
    let windows = solid.windows(needle.len());
    windows
        .filter(|window| window.iter().map(|(_, c)| c).eq(&needle))
        .filter_map(|window| {
            let (first, last) = (window.first()?, window.last()?);
            let end = last.0 + last.1.len_utf8();
            is_whole(source, first.0, end).then_some(window.get(skipped)?.0..end)
        })
        .collect()
}

/// Whether no name is cut at either end.
fn is_whole(source: &str, start: usize, end: usize) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let cut = |at: usize| {
        let (before, behind) = source.split_at(at);
        before.chars().next_back().is_some_and(is_name) && behind.chars().next().is_some_and(is_name)
    };
    !cut(start) && !cut(end)
}

/// The other files that have the text.
fn elsewhere(mutant: &Mutant, sources: &Sources) -> String {
    let files: Vec<_> = sources
        .iter()
        .filter(|(_, source)| !find(source, &mutant.after, &mutant.from).is_empty())
        .map(|(file, _)| file.as_str())
        .collect();
    if files.is_empty() { String::new() } else { format!("; the text stands in {}", files.join(", ")) }
}

/// The lines that have the most names in common with the text.
fn similar_lines(source: &str, text: &str) -> String {
    let wanted = names(text);
    let mut lines: Vec<_> = (1..)
        .zip(source.lines())
        .map(|(number, line)| (names(line).intersection(&wanted).count(), number, line.trim()))
        .filter(|(common, _, _)| *common > 0)
        .collect();
    lines.sort_by_key(|(common, number, _)| (usize::MAX - common, *number));
    let shown: Vec<_> =
        lines.iter().take(SIMILAR_LINES).map(|(_, number, line)| format!("\n    {number}: {line}")).collect();
    if shown.is_empty() { String::new() } else { format!("; the lines most like it:{}", shown.concat()) }
}

fn names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| name.len() > 1).collect()
}

fn line_of(source: &str, at: usize) -> usize {
    1 + source[..at].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
fn one() {
    let count = pool
        .header(record)
        .count;
    let other = pool.header(record).count;
    is_older_than(count);
}
";

    fn mutant(file: &str, after: &str, from: &str) -> Mutant {
        Mutant {
            name: "some".to_owned(),
            breaks: "Something.".to_owned(),
            file: file.to_owned(),
            after: after.to_owned(),
            from: from.to_owned(),
            to: String::new(),
        }
    }

    fn sources() -> Sources {
        Sources::from([("a.rs".to_owned(), SOURCE.to_owned()), ("b.rs".to_owned(), "gone();\n".to_owned())])
    }

    fn located(file: &str, after: &str, from: &str) -> Result<String, String> {
        let place = locate(&mutant(file, after, from), &sources())?;
        Ok(SOURCE[place].to_owned())
    }

    #[test]
    fn a_text_is_found_however_it_is_laid_out() {
        let found = located("a.rs", "let count =", "pool.header(record).count").unwrap();
        assert_eq!(found, "pool\n        .header(record)\n        .count");
        assert_eq!(located("a.rs", "", "( count )").unwrap(), "(count)");
    }

    #[test]
    fn part_of_a_name_is_not_the_name() {
        assert!(located("a.rs", "", "is_older").is_err());
        assert_eq!(located("a.rs", "", "is_older_than").unwrap(), "is_older_than");
    }

    #[test]
    fn a_text_that_occurs_twice_is_an_error_with_the_lines() {
        let error = located("a.rs", "", "pool.header(record).count").unwrap_err();
        assert_eq!(
            error,
            "a.rs contains `pool.header(record).count` 2 times, in the lines 2, 5: take more of it, or tell them apart \
             by `after`"
        );
    }

    #[test]
    fn a_text_that_moved_is_an_error_with_its_new_file() {
        let moved = "; the text stands in b.rs";
        assert_eq!(
            located("a.rs", "", "gone();").unwrap_err(),
            format!("a.rs does not contain `gone();`{moved}")
        );
        assert_eq!(located("c.rs", "", "gone();").unwrap_err(), format!("there is no c.rs{moved}"));
    }

    #[test]
    fn a_text_that_changed_is_an_error_with_the_lines_most_like_it() {
        let error = located("a.rs", "", "is_newer_than(count)").unwrap_err();
        assert_eq!(
            error,
            "a.rs does not contain `is_newer_than(count)`; the lines most like it:\n    2: let count = pool\n    \
             4: .count;\n    5: let other = pool.header(record).count;"
        );
    }
}
