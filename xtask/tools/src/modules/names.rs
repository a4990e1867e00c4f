//! The names that a Rust file defines and uses, from its tokens. Code compiled only for tests is left out.

use std::mem;

use anyhow::Result;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A name that a `use` brings into a module.
pub(super) struct Import {
    /// Its name in this module; `None` for `*`.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// True if other modules can use it through this one.
    pub(super) is_reexport: bool,
}

/// A module with its own file.
pub(super) struct Declared {
    pub(super) name: String,
    /// The path of the file without its ending, from `#[path = "…"]`.
    pub(super) stem: Option<String>,
    /// True if it is compiled only for tests.
    pub(super) is_test: bool,
}

/// The body of a module.
#[derive(Default)]
pub(super) struct Names {
    pub(super) items: Vec<String>,
    pub(super) imports: Vec<Import>,
    /// Paths in the code, with their lines.
    pub(super) mentions: Vec<(Vec<String>, usize)>,
    /// The modules with their own file.
    pub(super) files: Vec<Declared>,
    /// The inline modules.
    pub(super) inner: Vec<(String, Self)>,
}

const DEFINING: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

/// Parses a file.
pub(super) fn of_text(text: &str) -> Result<Names> {
    let tokens: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| {
        anyhow::anyhow!("line {}: {error}", error.span().start().line)
    })?;
    Ok(of_tokens(tokens))
}

fn of_tokens(tokens: TokenStream) -> Names {
    let mut names = Names::default();
    names.read(tokens, true);
    names
}

impl Names {
    /// Adds the names in some tokens. Only the tokens of a module itself define items.
    fn read(&mut self, tokens: TokenStream, is_module: bool) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let (mut at, mut is_test, mut stem) = (0, false, None);
        while at < tokens.len() {
            let (before, rest) = tokens.split_at(at);
            at += match rest {
                [hash, TokenTree::Group(attribute), ..] if is_punct(hash, '#') => {
                    is_test |= is_for_tests(attribute);
                    stem = stem_of_path(attribute).or(stem);
                    2
                }
                [hash, mark, TokenTree::Group(_), ..] if is_punct(hash, '#') && is_punct(mark, '!') => 3,
                _ => {
                    let (is_test, stem) = (mem::take(&mut is_test), stem.take());
                    if let Some((name, length)) = file_module(rest) {
                        self.files.push(Declared { name, stem, is_test });
                        length
                    } else if is_test {
                        length_of_item(rest)
                    } else {
                        self.read_one(before, rest, is_module)
                    }
                }
            };
        }
    }

    /// Parses the construct that begins here, and returns its length in tokens.
    fn read_one(&mut self, before: &[TokenTree], rest: &[TokenTree], is_module: bool) -> usize {
        match rest {
            [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(body), ..] if word == "mod" => {
                self.inner.push((name.to_string(), of_tokens(body.stream())));
                3
            }
            // A visibility names a scope, which is not a use.
            [TokenTree::Ident(word), TokenTree::Group(group), ..]
                if word == "pub" && group.delimiter() == Delimiter::Parenthesis =>
            {
                2
            }
            [TokenTree::Ident(word), next, ..] if word == "use" && !is_punct(next, '<') => {
                let end = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
                if !is_punct(next, ':') {
                    self.add_use(&rest[1..end], &[], is_public(before));
                }
                end + 1
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), ..]
                if DEFINING.iter().any(|defining| word == defining) && name != "fn" && name != "unsafe" =>
            {
                if is_module {
                    self.items.push(name.to_string());
                }
                2
            }
            [TokenTree::Ident(word), _, TokenTree::Ident(name), ..] if word == "macro_rules" => {
                self.items.push(name.to_string());
                3
            }
            [TokenTree::Ident(first), ..] => {
                let path = path_at(rest);
                let length = 3 * path.len() - 2;
                if begins_path(before) && !is_field(&path, &rest[length..]) {
                    self.mentions.push((path, first.span().start().line));
                }
                length
            }
            [TokenTree::Group(group), ..] => {
                self.read(group.stream(), false);
                1
            }
            _ => 1,
        }
    }

    /// Adds the imports of a tree after `use`.
    fn add_use(&mut self, tree: &[TokenTree], prefix: &[String], is_reexport: bool) {
        for branch in tree.split(|token| is_punct(token, ',')).filter(|branch| !branch.is_empty()) {
            let mut path = prefix.to_vec();
            path.extend(path_at(branch));
            let line = branch[0].span().start().line;
            let rest = &branch[(3 * (path.len() - prefix.len())).saturating_sub(2)..];
            let rest = if rest.len() > 2 && is_punct(&rest[0], ':') { &rest[2..] } else { rest };
            let name = match rest {
                [TokenTree::Group(group), ..] => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    self.add_use(&inner, &path, is_reexport);
                    continue;
                }
                [star, ..] if is_punct(star, '*') => None,
                [_, TokenTree::Ident(name)] => Some(name.to_string()),
                _ => {
                    path.pop_if(|last| last == "self");
                    path.last().cloned()
                }
            };
            path.pop_if(|last| last == "self" && !prefix.is_empty());
            self.imports.push(Import { name, path, line, is_reexport });
        }
    }
}

/// Returns the module of a declaration without a body, and the declaration's length.
fn file_module(tokens: &[TokenTree]) -> Option<(String, usize)> {
    let skipped =
        tokens.iter().take(3).position(|token| matches!(token, TokenTree::Ident(word) if word == "mod"))?;
    let is_visibility = |token: &TokenTree| match token {
        TokenTree::Ident(word) => word == "pub",
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    };
    match &tokens[skipped..] {
        [_, TokenTree::Ident(name), end, ..]
            if is_punct(end, ';') && tokens[..skipped].iter().all(is_visibility) =>
        {
            Some((name.to_string(), skipped + 3))
        }
        _ => None,
    }
}

/// Returns the length of the item, field or variant at the beginning of these tokens.
fn length_of_item(tokens: &[TokenTree]) -> usize {
    let is_use = tokens.iter().take(3).any(|token| matches!(token, TokenTree::Ident(word) if word == "use"));
    let mut angles = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Punct(mark) => match mark.as_char() {
                '<' => angles += 1,
                '>' => angles -= 1,
                ';' => return at + 1,
                ',' if angles <= 0 => return at + 1,
                _ => {}
            },
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !is_use => return at + 1,
            TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Literal(_) => {}
        }
    }
    tokens.len()
}

/// Returns true if an attribute restricts its item to tests: `test`, `cfg(test)`, `cfg(all(test, …))`.
fn is_for_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    let condition = text.strip_prefix("cfg(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(&text);
    let all = condition.strip_prefix("all(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(condition);
    let is_one = |part: &str| part == "test" || part == "doctest";
    is_one(&text) || text.starts_with("cfg(") && all.split(',').any(is_one)
}

/// The path of the file in `#[path = "…"]`, without its ending.
fn stem_of_path(attribute: &Group) -> Option<String> {
    let text = attribute.stream().to_string().replace(' ', "");
    let path = text.strip_prefix("path=\"")?.strip_suffix("\"")?;
    Some(path.trim_end_matches(".rs").trim_end_matches("/mod").to_owned())
}

/// Returns true if the tokens before a `use` make it public.
fn is_public(before: &[TokenTree]) -> bool {
    let last = |back: usize| before.len().checked_sub(back).and_then(|at| before.get(at));
    let is_pub = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Ident(word)) if word == "pub");
    is_pub(last(1)) || matches!(last(1), Some(TokenTree::Group(_))) && is_pub(last(2))
}

/// Returns true if an identifier after these tokens begins a path: it is not a member, a lifetime, or preceded by `::`.
fn begins_path(before: &[TokenTree]) -> bool {
    let has = |back: usize, mark: char| {
        before
            .len()
            .checked_sub(back)
            .and_then(|at| before.get(at))
            .is_some_and(|token| is_punct(token, mark))
    };
    // The two dots of a range are not a member access.
    !(has(1, '.') && !has(2, '.') || has(1, '\'') || has(1, ':') && has(2, ':'))
}

/// Returns true if a single name before these tokens is that of a field or a parameter.
fn is_field(path: &[String], after: &[TokenTree]) -> bool {
    path.len() == 1 && after.first().is_some_and(|token| is_punct(token, ':'))
}

/// Returns the identifiers at the beginning of these tokens that `::` joins.
fn path_at(tokens: &[TokenTree]) -> Vec<String> {
    let mut path = Vec::new();
    let mut rest = tokens;
    while let [TokenTree::Ident(ident), after @ ..] = rest {
        path.push(ident.to_string());
        let [first, second, after @ ..] = after else { break };
        if !is_punct(first, ':') || !is_punct(second, ':') {
            break;
        }
        rest = after;
    }
    path
}

fn is_punct(token: &TokenTree, expected: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == expected)
}
