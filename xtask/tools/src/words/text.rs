//! The words of a file, and whether each is code or stands in a sentence.

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// In code, or between backticks.
    Code,
    /// In a comment or a document.
    Prose,
    /// In a string, or in the text of a page.
    String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) line: usize,
    pub(super) text: &'a str,
    pub(super) kind: Kind,
    /// Whether it is an identifier with `_` that stands among the words of a sentence.
    pub(super) is_stray: bool,
}

/// How a language writes what is no code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Rust,
    /// C++, JavaScript, TypeScript, CSS.
    C,
    /// Python, shells, TOML.
    Hash,
    /// Everything is a sentence but what stands in backticks.
    Document,
    /// Pages: what stands in a tag, a script or a style is code.
    Markup,
    /// Files of which nothing is known: everything counts as code.
    Unknown,
}

/// All words of a file.
pub(super) fn words<'a>(path: &str, text: &'a str) -> Vec<Word<'a>> {
    let mut scanner = Scanner { text, at: 0, line: 1, words: Vec::new() };
    let syntax = syntax(path);
    match syntax {
        Syntax::Document => scanner.prose(text.len(), Kind::Prose, &mut Sentence::default()),
        Syntax::Markup => scanner.markup(),
        Syntax::Unknown => scanner.plain(text.len(), Kind::Code),
        Syntax::Rust | Syntax::C | Syntax::Hash => scanner.code(syntax, 0),
    }
    scanner.words
}

fn syntax(path: &str) -> Syntax {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "rs" => Syntax::Rust,
        "ts" | "js" | "mjs" | "cpp" | "h" | "css" | "json" | "x" => Syntax::C,
        "py" | "sh" | "toml" | "yml" => Syntax::Hash,
        "md" | "txt" => Syntax::Document,
        "html" => Syntax::Markup,
        _ => Syntax::Unknown,
    }
}

/// What is known of a text in sentences from its beginning on.
#[derive(Default)]
struct Sentence {
    /// Between the lines of a fence.
    is_fenced: bool,
    /// Between two backticks.
    is_quoted: bool,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    words: Vec<Word<'a>>,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Passes over so many bytes.
    fn skip(&mut self, bytes: usize) {
        let end = self.text.len().min(self.at + bytes);
        self.line += self.text[self.at..end].matches('\n').count();
        self.at = end;
    }

    /// Takes the word that begins here.
    fn word(&mut self, kind: Kind) {
        let rest = self.rest();
        let length = rest.find(|c| !is_of_identifier(c)).unwrap_or(rest.len());
        let text = &rest[..length];
        let is_stray = kind == Kind::Prose && is_snake_case(text) && self.stands_in_a_sentence(length);
        self.words.push(Word { line: self.line, text, kind, is_stray });
        self.at += length;
    }

    /// Whether there is nothing but a space or a punctuation mark around so many bytes.
    fn stands_in_a_sentence(&self, length: usize) -> bool {
        let (before, after) = (&self.text[..self.at], &self.text[self.at + length..]);
        let is_link = before.ends_with("](");
        // The cells of tables that programs write have names by themselves.
        let is_cell = before.ends_with("| ");
        let begins = before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        let after = after.trim_start_matches(['.', ',', ';', ':', ')', '?', '!']);
        begins && !is_link && !is_cell && after.chars().next().is_none_or(char::is_whitespace)
    }

    /// Words of one kind up to a place in the text.
    fn plain(&mut self, end: usize, kind: Kind) {
        while self.at < end {
            match self.rest().chars().next() {
                Some(c) if is_of_identifier(c) => self.word(kind),
                Some(c) => self.skip(c.len_utf8()),
                None => return,
            }
        }
    }

    fn markup(&mut self) {
        while !self.rest().is_empty() {
            let rest = self.rest();
            // A script or a style is code to its end.
            let is_code = ["<script", "<style"].iter().any(|tag| rest.starts_with(tag));
            if rest.starts_with('<') {
                let end = if is_code { rest.find("</") } else { rest.find('>') };
                self.plain(self.at + end.map_or(rest.len(), |end| end.max(1)), Kind::Code);
            } else {
                self.plain(self.at + rest.find('<').unwrap_or(rest.len()), Kind::String);
            }
        }
    }

    /// Code up to the end, or up to the brace that closes `depth` others.
    fn code(&mut self, syntax: Syntax, mut depth: usize) {
        let is_inner = depth > 0;
        let mut comments = Sentence::default();
        while let Some(c) = self.rest().chars().next() {
            let rest = self.rest();
            let is_comment = match syntax {
                Syntax::Hash => c == '#',
                Syntax::Rust | Syntax::C | Syntax::Document | Syntax::Markup | Syntax::Unknown => {
                    rest.starts_with("//")
                }
            };
            if is_comment {
                let end = self.at + rest.find('\n').map_or(rest.len(), |end| end + 1);
                self.skip(rest.find(|c| c != '/' && c != '!' && c != '#').unwrap_or(0));
                self.prose(end, Kind::Prose, &mut comments);
                continue;
            }
            if !c.is_whitespace() {
                comments = Sentence::default();
            }
            if syntax != Syntax::Hash && rest.starts_with("/*") {
                self.block_comment(syntax == Syntax::Rust);
            } else if let Some(length) = (syntax == Syntax::Rust).then(|| rust_literal(rest)).flatten() {
                self.prose(self.at + length, Kind::String, &mut Sentence::default());
            } else if c == '`' && syntax == Syntax::C {
                self.template();
            } else if c == '"' || c == '\'' && syntax != Syntax::Rust {
                self.prose(self.at + quoted(rest, c), Kind::String, &mut Sentence::default());
            } else if is_of_identifier(c) {
                self.word(Kind::Code);
            } else {
                depth += usize::from(is_inner && c == '{');
                depth -= usize::from(is_inner && c == '}');
                self.skip(c.len_utf8());
                if is_inner && depth == 0 {
                    return;
                }
            }
        }
    }

    fn block_comment(&mut self, is_nested: bool) {
        let rest = self.rest();
        let (mut depth, mut length) = (1, 2);
        while depth > 0 && length < rest.len() {
            let step = match &rest.as_bytes()[length..] {
                [b'*', b'/', ..] => {
                    depth -= 1;
                    2
                }
                [b'/', b'*', ..] if is_nested => {
                    depth += 1;
                    2
                }
                _ => 1,
            };
            length += step;
        }
        self.prose(self.at + length, Kind::Prose, &mut Sentence::default());
    }

    /// A template string of JavaScript, with code in it.
    fn template(&mut self) {
        self.skip(1);
        while let Some(c) = self.rest().chars().next() {
            if self.rest().starts_with("${") {
                self.skip(2);
                self.code(Syntax::C, 1);
            } else if c == '\\' {
                self.skip(2);
            } else if is_of_identifier(c) {
                self.word(Kind::String);
            } else {
                self.skip(c.len_utf8());
                if c == '`' {
                    return;
                }
            }
        }
    }

    /// Sentences up to a place in the text, whose words are of this kind where they are no code.
    fn prose(&mut self, end: usize, kind: Kind, sentence: &mut Sentence) {
        let mut is_blank_line = false;
        while self.at < end {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else { return };
            if rest.starts_with("```") {
                (sentence.is_fenced, sentence.is_quoted) = (!sentence.is_fenced, false);
                self.skip(3);
            } else if is_of_identifier(c) {
                let is_code = sentence.is_fenced || sentence.is_quoted;
                self.word(if is_code { Kind::Code } else { kind });
                is_blank_line = false;
            } else {
                sentence.is_quoted ^= c == '`' && !sentence.is_fenced;
                // A paragraph ends what was quoted in it.
                sentence.is_quoted &= !(c == '\n' && is_blank_line);
                is_blank_line = c == '\n' || is_blank_line && c.is_whitespace();
                self.skip(c.len_utf8());
            }
        }
    }
}

pub(super) fn is_of_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a word is an identifier of several words, as no sentence has them.
fn is_snake_case(text: &str) -> bool {
    let is_plain = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_plain && text.trim_matches('_').contains('_')
}

/// The bytes of a string up to its closing quote, or to the end of its line if it has none.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if c == quote || c == '\n' && quote == '\'' {
            return at + c.len_utf8();
        } else {
            is_escaped = c == '\\';
        }
    }
    text.len()
}

/// The bytes of a string or a character of Rust that begins here; a lifetime is neither.
fn rust_literal(text: &str) -> Option<usize> {
    let plain = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - plain.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = plain.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let inside = raw[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&close).map_or(inside.len(), |at| at + close.len());
        return Some(prefix + 1 + hashes + 1 + length);
    }
    if plain.starts_with('"') {
        return Some(prefix + quoted(plain, '"'));
    }
    let inside = plain.strip_prefix('\'')?;
    let mut chars = inside.char_indices();
    let (_, first) = chars.next()?;
    let (at, second) = chars.next()?;
    if first == '\\' {
        // What is escaped may itself be a quote.
        let after = at + second.len_utf8();
        return inside[after..].find('\'').map(|end| prefix + 1 + after + end + 1);
    }
    (second == '\'').then_some(prefix + 1 + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a text, those in sentences in parentheses.
    fn scanned(path: &str, text: &str) -> String {
        let show = |word: &Word| match word.kind {
            Kind::Code => format!("{}:{}", word.line, word.text),
            Kind::Prose | Kind::String => format!("({}:{})", word.line, word.text),
        };
        words(path, text).iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_strings_of_rust_are_sentences() {
        assert_eq!(
            scanned("a.rs", "let a = \"b \\\" c\"; // d `e`\nf"),
            "1:let 1:a (1:b) (1:c) (1:d) 1:e 2:f"
        );
        assert_eq!(
            scanned("a.rs", "r#\"a\"b\"# /* c /* d */ e */ 'f' '\\'' &'g h"),
            "(1:r) (1:a) (1:b) (1:c) (1:d) (1:e) (1:f) 1:g 1:h"
        );
        assert_eq!(
            scanned("a.rs", "b\"x\" b'y' br\"z\" break"),
            "(1:b) (1:x) (1:b) (1:y) (1:br) (1:z) 1:break"
        );
    }

    #[test]
    fn fences_and_quotes_in_comments_are_code() {
        let text = "/// one `two\n/// three` four\n/// ```\n/// five\n/// ```\n/// six\nseven";
        assert_eq!(scanned("a.rs", text), "(1:one) 1:two 2:three (2:four) 4:five (6:six) 7:seven");
    }

    #[test]
    fn templates_of_javascript_have_code_in_them() {
        assert_eq!(scanned("a.ts", "x(`a ${b({ c: `d` })} e`, 'f')"), "1:x (1:a) 1:b 1:c (1:d) (1:e) (1:f)");
    }

    #[test]
    fn identifiers_in_sentences_are_strays() {
        let strays = |path: &str, text: &str| {
            words(path, text).iter().filter(|word| word.is_stray).map(|word| word.line).collect::<Vec<_>>()
        };
        assert_eq!(
            strays("a.rs", "a_b(\"c_d\"); // e_f\n// `g_h` [i](j_k) l::m_n o_p()\n// q (r_s)."),
            [1, 3]
        );
        assert_eq!(strays("a.md", "| x_y | a_b.wasm c/d_e\n```\nf_g\n```\nh_i, <a id=\"j_k\">"), [5]);
    }

    #[test]
    fn pages_are_sentences_between_their_tags() {
        let text = "<p class=\"a\">b</p>\n<script>c</script>d";
        assert_eq!(scanned("a.html", text), "1:p 1:class 1:a (1:b) 1:p 2:script 2:c 2:script (2:d)");
        assert_eq!(scanned("Makefile", "a # b"), "1:a 1:b");
    }

    #[test]
    fn documents_are_sentences() {
        assert_eq!(scanned("a.md", "a `b` c\n\n```\nd\n```\ne"), "(1:a) 1:b (1:c) 4:d (6:e)");
        assert_eq!(scanned("a.md", "a `b\n\nc"), "(1:a) 1:b (3:c)");
        assert_eq!(scanned("a.toml", "a = \"b\" # c"), "1:a (1:b) (1:c)");
    }
}
