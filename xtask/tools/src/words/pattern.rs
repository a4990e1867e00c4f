//! How the glossary writes a word that must not occur, and what such a word fits.

use anyhow::{Result, bail};

use super::text::{Kind, is_of_identifier};

/// A word of the glossary's left column.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// `` `Word` ``: an identifier that is exactly this, its plural, or a constant with this name.
    Identifier(String),
    /// `` `*word*` ``: an identifier one of whose parts is this, or its plural.
    Part(Vec<String>),
    /// `"word"`: such an identifier, or the word in a sentence.
    Anywhere(Vec<String>),
}

impl Pattern {
    /// Reads the patterns of a cell: everything in backticks or quotes.
    pub(super) fn of_cell(cell: &str) -> Result<Vec<Self>> {
        let mut patterns = Vec::new();
        let mut rest = cell;
        while let Some(start) = rest.find(['`', '"']) {
            let quote = &rest[start..=start];
            let Some((inside, after)) = rest[start + 1..].split_once(quote) else {
                bail!("{cell} has a quote without an end");
            };
            patterns.push(Self::new(inside, quote)?);
            rest = after;
        }
        if patterns.is_empty() {
            bail!("{cell} names no word: words stand in backticks or quotes");
        }
        Ok(patterns)
    }

    fn new(text: &str, quote: &str) -> Result<Self> {
        let part = text.strip_prefix('*').and_then(|text| text.strip_suffix('*'));
        let name = part.unwrap_or(text);
        if name.is_empty() || !name.chars().all(is_of_identifier) {
            bail!("{text} is no identifier");
        }
        Ok(match (quote, part) {
            ("`", None) => Self::Identifier(name.to_owned()),
            ("`", Some(part)) => Self::Part(parts(part)),
            _ => Self::Anywhere(parts(name)),
        })
    }

    pub(super) fn fits(&self, word: &Candidate) -> bool {
        match (self, word.kind) {
            (Self::Identifier(name), Kind::Code) => {
                let singular = word.text.strip_suffix(['s', 'S']).unwrap_or(word.text);
                [word.text, singular].iter().any(|text| text == name || **text == name.to_uppercase())
            }
            (Self::Part(wanted), Kind::Code) | (Self::Anywhere(wanted), _) => {
                word.parts.windows(wanted.len()).any(|window| is_same_or_plural(window, wanted))
            }
            (Self::Identifier(_) | Self::Part(_), Kind::Prose | Kind::String) => false,
        }
    }
}

/// A word that a pattern may fit.
pub(super) struct Candidate<'a> {
    pub(super) text: &'a str,
    kind: Kind,
    parts: Vec<String>,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(text: &'a str, kind: Kind) -> Self {
        Self { text, kind, parts: parts(text) }
    }
}

fn is_same_or_plural(parts: &[String], wanted: &[String]) -> bool {
    let (Some((last, before)), Some((wanted_last, wanted_before))) =
        (parts.split_last(), wanted.split_last())
    else {
        return false;
    };
    before == wanted_before && (last == wanted_last || last.strip_suffix('s') == Some(wanted_last))
}

/// The parts of an identifier in lower case: `RoundTrip`, `round_trip` and `ROUND_TRIP` are all `round`, `trip`.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = '_';
    for (at, c) in identifier.char_indices() {
        let after = &identifier[at + c.len_utf8()..];
        let ends_capitals = before.is_uppercase() && after.starts_with(char::is_lowercase);
        // `MTUs` and `IPv4` are one part each.
        let is_one = after == "s" || after.starts_with("v4") || after.starts_with("v6");
        let begins =
            before == '_' || c.is_uppercase() && (!before.is_uppercase() || ends_capitals && !is_one);
        if c == '_' {
        } else if begins || parts.is_empty() {
            parts.push(c.to_lowercase().collect());
        } else if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str, kind: Kind) -> bool {
        let patterns = Pattern::of_cell(pattern).unwrap();
        patterns.iter().any(|pattern| pattern.fits(&Candidate::new(text, kind)))
    }

    #[test]
    fn identifiers_have_parts() {
        assert_eq!(parts("RoundTrip"), ["round", "trip"]);
        assert_eq!(parts("ROUND_TRIP"), ["round", "trip"]);
        assert_eq!(parts("_on_foundIPv4"), ["on", "found", "ipv4"]);
        assert_eq!(parts("HTTPMail"), ["http", "mail"]);
        assert_eq!(parts("ReplyMTUs"), ["reply", "mtus"]);
    }

    #[test]
    fn an_identifier_is_itself_alone() {
        assert!(fits("`Basket`", "Basket", Kind::Code));
        assert!(fits("`Basket`", "Baskets", Kind::Code));
        assert!(fits("`basket`", "BASKETS", Kind::Code));
        assert!(!fits("`Basket`", "basket", Kind::Code));
        assert!(!fits("`Basket`", "BasketWeaver", Kind::Code));
        assert!(!fits("`Basket`", "Basket", Kind::Prose));
    }

    #[test]
    fn a_part_is_found_in_any_case_and_number() {
        for text in ["Shelf", "shelf", "TOP_SHELF", "ShelfMark", "shelfs"] {
            assert!(fits("`*shelf*`", text, Kind::Code), "{text}");
        }
        assert!(!fits("`*shelf*`", "shelfless", Kind::Code));
        assert!(!fits("`*shelf*`", "shelf", Kind::Prose));
        assert!(fits("`*top_up*`", "will_top_up", Kind::Code));
        assert!(!fits("`*top_up*`", "topping", Kind::Code));
    }

    #[test]
    fn a_quoted_word_is_found_in_sentences_too() {
        for kind in [Kind::Code, Kind::Prose, Kind::String] {
            assert!(fits("\"gong\"", "Gongs", kind));
            assert!(!fits("\"gong\"", "gongoozler", kind));
        }
    }

    #[test]
    fn a_cell_has_any_number_of_words() {
        let expected = [Pattern::Identifier("Ruler".to_owned()), Pattern::Anywhere(vec!["gong".to_owned()])];
        assert_eq!(Pattern::of_cell("`Ruler`, \"gong\" (native)").unwrap(), expected);
        assert!(Pattern::of_cell("Ruler").is_err());
        assert!(Pattern::of_cell("`Ruler").is_err());
        assert!(Pattern::of_cell("`Turn::Now`").is_err());
    }
}
