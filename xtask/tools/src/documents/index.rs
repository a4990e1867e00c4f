//! The tests of the repository, by their modules.

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Every test, as the folders, the modules and the function that lead to it.
#[derive(Default)]
pub(super) struct TestIndex {
    paths: Vec<Vec<String>>,
}

impl TestIndex {
    /// Adds the tests of a Rust file.
    pub(super) fn add(&mut self, file: &str, text: &str) -> Result<()> {
        let tokens: TokenStream =
            text.parse().ok().with_context(|| format!("{file} cannot be taken apart into tokens"))?;
        let mut found = Found::default();
        found.read(tokens, &module_of(file));
        self.paths.append(&mut found.tests);
        // A macro makes tests of the functions that it lists.
        self.paths.extend(found.listed.into_iter().filter(|path| found.functions.contains(path)));
        Ok(())
    }

    /// Whether there is a test with this name, or in a module with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.has_test(name) || self.has_module(name)
    }

    /// Whether there is a test with this name: a function, behind some of its modules from the outside inwards.
    pub(super) fn has_test(&self, name: &str) -> bool {
        let (modules, function) = name.rsplit_once("::").unwrap_or(("", name));
        self.paths.iter().filter_map(|path| path.split_last()).any(|(last, within)| {
            let mut within = within.iter();
            let mut modules = modules.split("::").filter(|module| !module.is_empty());
            last == function && modules.all(|wanted| within.any(|module| module == wanted))
        })
    }

    /// Whether there are tests in a module with this name.
    fn has_module(&self, name: &str) -> bool {
        let wanted: Vec<_> = name.split("::").collect();
        self.paths.iter().any(|path| (1..path.len()).any(|end| path[..end].ends_with_names(&wanted)))
    }

    /// Whether there are tests in this file, or below this folder.
    pub(super) fn has_file(&self, file: &str) -> bool {
        let wanted = module_of(file);
        self.paths.iter().any(|path| path.starts_with(&wanted))
    }
}

trait Names {
    fn ends_with_names(&self, wanted: &[&str]) -> bool;
}

impl Names for [String] {
    fn ends_with_names(&self, wanted: &[&str]) -> bool {
        self.len() >= wanted.len() && self[self.len() - wanted.len()..].iter().eq(wanted)
    }
}

/// The folders and the module of a file.
fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<_> = file.trim_end_matches('/').split('/').map(str::to_owned).collect();
    if let Some(last) = parts.pop() {
        match last.strip_suffix(".rs") {
            Some("mod" | "main" | "lib") => {}
            Some(name) => parts.push(name.to_owned()),
            None => parts.push(last),
        }
    }
    parts
}

#[derive(Default)]
struct Found {
    tests: Vec<Vec<String>>,
    functions: Vec<Vec<String>>,
    /// The names in calls of macros that have names and nothing else.
    listed: Vec<Vec<String>>,
}

impl Found {
    fn read(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let below = |name: &dyn ToString| [module, &[name.to_string()]].concat();
        let mut is_test = false;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let mut length = 1;
            match &tokens[at..] {
                [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] if hash.as_char() == '#' => {
                    is_test |= is_test_attribute(attribute.stream());
                    length = 2;
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), ..] if word == "fn" => {
                    self.functions.push(below(name));
                    if is_test {
                        self.tests.push(below(name));
                    }
                    is_test = false;
                    length = 2;
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(body), ..]
                    if word == "mod" =>
                {
                    self.read(body.stream(), &below(name));
                    is_test = false;
                    length = 3;
                }
                [TokenTree::Punct(mark), TokenTree::Group(arguments), ..] if mark.as_char() == '!' => {
                    self.listed.extend(names(arguments.stream()).iter().map(|name| below(name)));
                }
                [TokenTree::Group(group), ..] if group.delimiter() != Delimiter::Bracket => {
                    self.read(group.stream(), module);
                    is_test &= group.delimiter() != Delimiter::Brace;
                }
                _ => is_test &= !matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';'),
            }
            at += length;
        }
    }
}

/// Whether an attribute is `test` or a path that ends so, as `tokio::test`.
fn is_test_attribute(tokens: TokenStream) -> bool {
    let path = tokens.into_iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
    path.last().is_some_and(|token| matches!(token, TokenTree::Ident(name) if name == "test"))
}

/// The names of a list that has nothing else.
fn names(tokens: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => names.push(name.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ',' => {}
            TokenTree::Punct(_) | TokenTree::Group(_) | TokenTree::Literal(_) => return Vec::new(),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_tests_by_an_attribute_or_a_list_in_a_macro() {
        let mut index = TestIndex::default();
        let text = "
            fn helper() {}
            #[test]
            #[cfg(unix)]
            fn plain() {}
            mod inner { #[tokio::test(flavor = \"x\")] async fn later() {} }
            proptest! { #[test] fn law(a in 0..2) {} }
            async fn both<P>() {}
            by_both!(both, gone);
        ";
        index.add("core/tests/it/raknet/mod.rs", text).unwrap();
        for name in ["plain", "raknet::plain", "it::raknet::inner::later", "it::later", "raknet::law", "both"]
        {
            assert!(index.has_test(name), "{name}");
        }
        for name in ["helper", "gone", "game::plain", "inner::plain", "inner::raknet::later", "raknet"] {
            assert!(!index.has_test(name), "{name}");
        }
        assert!(index.has("raknet") && index.has("raknet::inner") && !index.has("game"));
        assert!(index.has_file("core/tests/it") && index.has_file("core/tests/it/raknet/mod.rs"));
        assert!(!index.has_file("core/src") && index.add("a.rs", "fn {").is_err());
    }
}
