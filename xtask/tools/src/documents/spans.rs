//! The parts of a document in backticks.

/// Returns the texts between two backticks, with their lines; fenced blocks are left out.
pub(super) fn inline(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    let mut start: Option<(usize, usize)> = None;
    let mut at = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if is_fence || is_fenced || line.trim().is_empty() {
            // A paragraph ends an unclosed quote.
            start = None;
        } else {
            for (offset, _) in line.match_indices('`') {
                match start.take() {
                    Some((line, start)) => found.push((line, &text[start..at + offset])),
                    None => start = Some((number, at + offset + 1)),
                }
            }
        }
        at += line.len();
    }
    found
}

/// Returns the lines of fenced and indented blocks, with their numbers.
pub(super) fn block_lines(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") {
            found.push((number, line.trim_start()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_blocks_are_distinguished() {
        let text = "a `b` c `d\ne` f\n```\n`g`\n```\n\n    h\n`open\n\n`i`";
        assert_eq!(inline(text), [(1, "b"), (1, "d\ne"), (10, "i")]);
        assert_eq!(block_lines(text), [(4, "`g`"), (7, "h")]);
    }
}
