//! What a module defines and what it names, without its tests.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Field, ImplItem, Item, ItemMod, ItemUse, Macro, Meta, Path, Stmt, UseTree, Variant, Visibility,
};

/// A name that a `use` brings into a module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The name that it has here; none for `*` and for `_`.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    pub(super) is_glob: bool,
    /// Whether others can name it through this module.
    pub(super) is_reexport: bool,
}

/// A path in the code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

#[derive(Default)]
pub(super) struct Names {
    pub(super) items: Vec<String>,
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
}

/// The names of the items of a module; modules inside of it are left out.
pub(super) fn of_items(items: &[Item]) -> Names {
    let mut names = Names::default();
    for item in items {
        if !attributes(item).is_some_and(is_test) {
            names.items.extend(defined(item));
        }
        names.visit_item(item);
    }
    names
}

/// Whether what has these attributes is compiled for tests alone.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg")
            && (condition == "test" || condition == "doctest" || requires_test(&condition))
    })
}

/// Whether a condition is `all(…)` with `test` as one of its own.
fn requires_test(condition: &str) -> bool {
    let inner = condition.strip_prefix("all").map(str::trim).and_then(|rest| rest.strip_prefix('('));
    inner.is_some_and(|rest| rest.trim_end_matches(')').split(',').any(|part| part.trim() == "test"))
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Verbatim(_) | _ => return None,
    })
}

/// The name that an item defines in its module.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::ExternCrate(_) | Item::ForeignMod(_) | Item::Impl(_) | Item::Mod(_) | Item::Use(_) => {
            return None;
        }
        Item::Verbatim(_) | _ => return None,
    };
    Some(name.to_string())
}

impl Visit<'_> for Names {
    fn visit_item(&mut self, item: &Item) {
        if !attributes(item).is_some_and(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            ImplItem::Verbatim(_) | _ => return,
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &Field) {
        if !is_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &Variant) {
        if !is_test(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        let is_for_tests = matches!(statement, Stmt::Local(local) if is_test(&local.attrs));
        if !is_for_tests {
            visit::visit_stmt(self, statement);
        }
    }

    /// Modules inside are modules of their own.
    fn visit_item_mod(&mut self, _: &ItemMod) {}

    /// `pub(in path)` says who may see a thing, not what the thing uses.
    fn visit_visibility(&mut self, _: &Visibility) {}

    fn visit_attribute(&mut self, _: &Attribute) {}

    fn visit_item_use(&mut self, item: &ItemUse) {
        if item.leading_colon.is_none() {
            let is_reexport = !matches!(item.vis, Visibility::Inherited);
            self.add_use(&item.tree, &mut Vec::new(), is_reexport);
        }
    }

    fn visit_path(&mut self, path: &Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first()) {
            self.mentions.push(Mention {
                path: path.segments.iter().map(|segment| segment.ident.to_string()).collect(),
                line: first.ident.span().start().line,
            });
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &Macro) {
        self.visit_path(&call.path);
        self.add_tokens(call.tokens.clone());
    }
}

impl Names {
    fn add_use(&mut self, tree: &UseTree, before: &mut Vec<String>, is_reexport: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_use(&path.tree, before, is_reexport);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, before, is_reexport);
                }
            }
            UseTree::Name(name) => {
                let line = name.ident.span().start().line;
                let mut path = before.clone();
                if name.ident != "self" {
                    path.push(name.ident.to_string());
                }
                let name = path.last().cloned();
                self.imports.push(Import { name, path, line, is_glob: false, is_reexport });
            }
            UseTree::Rename(rename) => {
                let line = rename.ident.span().start().line;
                let mut path = before.clone();
                if rename.ident != "self" {
                    path.push(rename.ident.to_string());
                }
                let name = Some(rename.rename.to_string()).filter(|name| name != "_");
                self.imports.push(Import { name, path, line, is_glob: false, is_reexport });
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.imports.push(Import {
                    name: None,
                    path: before.clone(),
                    line,
                    is_glob: true,
                    is_reexport,
                });
            }
        }
    }

    /// Paths among the tokens of a macro, which have no other syntax yet.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let mut length = 1;
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let path = path_at(&tokens[at..]);
                    length = 3 * path.len() - 2;
                    if !is_member(&tokens[..at]) {
                        self.mentions.push(Mention { path, line: first.span().start().line });
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += length;
        }
    }
}

/// Whether a name behind these tokens is a field or a method: it follows one dot, but not the two of a range.
fn is_member(before: &[TokenTree]) -> bool {
    let is_dot = |token: Option<&TokenTree>| token.is_some_and(|token| is_punct(token, '.'));
    let (last, rest) = (before.last(), &before[..before.len().saturating_sub(1)]);
    is_dot(last) && !is_dot(rest.last())
}

/// The identifiers at the beginning of these tokens, as far as `::` joins them.
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
