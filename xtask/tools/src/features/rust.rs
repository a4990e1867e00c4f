//! What a crate offers under which names.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Attribute, Fields, ImplItem, Item, ItemMod, Meta, TraitItem, Type, UseTree, Visibility};

/// The name of the core, whose items drivers offer under their own names.
const CORE: &str = "rakwire";
/// A chain of names that leads on is no longer than this.
const MAX_DEPTH: usize = 16;

type Source<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The items of a crate by modules, and the members of its types.
#[derive(Default)]
pub(super) struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
    /// Public functions and constants of types, by the names of the types.
    methods: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Default)]
struct Module {
    /// A module and a function may have the same name.
    items: BTreeMap<String, Vec<Entry>>,
    /// The paths of `pub use …::*`.
    globs: Vec<Vec<String>>,
}

struct Entry {
    is_public: bool,
    kind: Kind,
}

enum Kind {
    Module,
    /// An item with these public fields, variants or functions.
    Item(BTreeSet<String>),
    /// Another name for the item of this path.
    Alias(Vec<String>),
}

impl Crate {
    /// Reads a crate from its root file on.
    pub(super) fn read(root: &str, source: Source<'_>) -> Result<Self> {
        let mut found = Self::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        found.add_file(root, folder, &[], source)?;
        Ok(found)
    }

    /// Whether this path, from the root of the crate, names a public item, or a public member of one.
    pub(super) fn has(&self, path: &str, core: Option<&Self>) -> bool {
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        self.leads_to_item(&[], &path, 0, core, 0)
    }

    /// Whether a path that begins in a module leads to an item; the first `private` names of it need not be public.
    fn leads_to_item(
        &self,
        module: &[String],
        path: &[String],
        private: usize,
        core: Option<&Self>,
        depth: usize,
    ) -> bool {
        let (Some((name, rest)), Some(scope), true) =
            (path.split_first(), self.modules.get(module), depth < MAX_DEPTH)
        else {
            return false;
        };
        let entries = scope.items.get(name).into_iter().flatten();
        let mut entries = entries.filter(|entry| entry.is_public || private > 0);
        let leads = |entry: &Entry| match &entry.kind {
            Kind::Module => {
                let inner = [module, std::slice::from_ref(name)].concat();
                rest.is_empty() || self.leads_to_item(&inner, rest, private.saturating_sub(1), core, depth)
            }
            Kind::Item(members) => match rest {
                [] => true,
                [member] => members.contains(member) || self.has_method(name, member),
                _ => false,
            },
            Kind::Alias(target) => {
                let of_own = matches!(rest, [member] if self.has_method(name, member));
                of_own || self.leads_on(module, &[target, rest].concat(), target.len(), core, depth)
            }
        };
        let by_glob =
            |glob: &Vec<String>| self.leads_on(module, &[glob, path].concat(), glob.len(), core, depth);
        entries.any(leads) || scope.globs.iter().any(by_glob)
    }

    /// Follows the path of a `use` or of an alias: what it names itself may lie in private modules.
    fn leads_on(
        &self,
        module: &[String],
        path: &[String],
        private: usize,
        core: Option<&Self>,
        depth: usize,
    ) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let (depth, left) = (depth + 1, private.saturating_sub(1));
        match first.as_str() {
            "crate" => self.leads_to_item(&[], rest, left, core, depth),
            "self" => self.leads_to_item(module, rest, left, core, depth),
            "super" => {
                let outer = &module[..module.len().saturating_sub(1)];
                self.leads_on(outer, rest, left, core, depth)
            }
            CORE if core.is_some() => core.is_some_and(|core| core.leads_to_item(&[], rest, 0, None, depth)),
            _ => self.leads_to_item(module, path, private, core, depth),
        }
    }

    fn has_method(&self, of: &str, method: &str) -> bool {
        self.methods.get(of).is_some_and(|methods| methods.contains(method))
    }

    fn add_file(&mut self, path: &str, folder: &str, module: &[String], source: Source<'_>) -> Result<()> {
        let text = source(path).with_context(|| format!("{path} cannot be read"))?;
        let syntax = syn::parse_file(&text).map_err(|error| anyhow!("{path}: {error}"))?;
        self.add_items(syntax.items, folder, module, source)
    }

    fn add_items(
        &mut self,
        items: Vec<Item>,
        folder: &str,
        module: &[String],
        source: Source<'_>,
    ) -> Result<()> {
        self.modules.entry(module.to_vec()).or_default();
        for item in items {
            if let Item::Mod(inner) = item {
                if !is_for_tests(&inner.attrs) {
                    self.add_module(inner, folder, module, source)?;
                }
            } else if let Item::Impl(item) = item {
                let of = type_path(&item.self_ty).pop().filter(|_| item.trait_.is_none());
                let methods = of.map(|name| self.methods.entry(name).or_default());
                methods.into_iter().for_each(|all| all.extend(item.items.iter().filter_map(public_member)));
            } else {
                self.modules.entry(module.to_vec()).or_default().add(&item);
            }
        }
        Ok(())
    }

    fn add_module(
        &mut self,
        inner: ItemMod,
        folder: &str,
        module: &[String],
        source: Source<'_>,
    ) -> Result<()> {
        let name = inner.ident.to_string();
        let path = [module, std::slice::from_ref(&name)].concat();
        let entry = Entry { is_public: is_public(&inner.vis), kind: Kind::Module };
        self.modules.entry(module.to_vec()).or_default().insert(name.clone(), entry);
        let folder = format!("{folder}/{name}");
        match inner.content {
            Some((_, items)) => self.add_items(items, &folder, &path, source),
            None => {
                let files = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
                let file = files.iter().find(|file| source(file).is_some());
                self.add_file(
                    file.with_context(|| format!("{folder}.rs is missing"))?,
                    &folder,
                    &path,
                    source,
                )
            }
        }
    }
}

impl Module {
    fn insert(&mut self, name: String, entry: Entry) {
        self.items.entry(name).or_default().push(entry);
    }

    fn add(&mut self, item: &Item) {
        let (visibility, name, members) = match item {
            Item::Struct(item) => (&item.vis, &item.ident, fields(&item.fields)),
            Item::Enum(item) => (
                &item.vis,
                &item.ident,
                item.variants.iter().map(|variant| variant.ident.to_string()).collect(),
            ),
            Item::Trait(item) => (&item.vis, &item.ident, item.items.iter().filter_map(required).collect()),
            Item::Fn(item) => (&item.vis, &item.sig.ident, BTreeSet::new()),
            Item::Const(item) => (&item.vis, &item.ident, BTreeSet::new()),
            Item::Type(item) => {
                let kind = Kind::Alias(type_path(&item.ty));
                self.insert(item.ident.to_string(), Entry { is_public: is_public(&item.vis), kind });
                return;
            }
            Item::Use(item) => return self.add_use(&item.tree, &mut Vec::new(), is_public(&item.vis)),
            Item::Macro(item) => return self.add_tokens(item.mac.tokens.clone()),
            Item::ExternCrate(_)
            | Item::ForeignMod(_)
            | Item::Impl(_)
            | Item::Mod(_)
            | Item::Static(_)
            | Item::TraitAlias(_)
            | Item::Union(_)
            | Item::Verbatim(_)
            | _ => return,
        };
        self.insert(name.to_string(), Entry { is_public: is_public(visibility), kind: Kind::Item(members) });
    }

    fn add_use(&mut self, tree: &UseTree, path: &mut Vec<String>, is_public: bool) {
        let mut alias = |name: &syn::Ident, target: &syn::Ident, path: &[String]| {
            let target = match target.to_string() {
                target if target == "self" => path.to_vec(),
                target => [path, &[target]].concat(),
            };
            self.insert(name.to_string(), Entry { is_public, kind: Kind::Alias(target) });
        };
        match tree {
            UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = path.last().cloned() {
                    let kind = Kind::Alias(path.clone());
                    self.insert(last, Entry { is_public, kind });
                }
            }
            UseTree::Name(name) => alias(&name.ident, &name.ident, path),
            UseTree::Rename(rename) => alias(&rename.rename, &rename.ident, path),
            UseTree::Glob(_) if is_public => self.globs.push(path.clone()),
            UseTree::Glob(_) => {}
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(tree, path, is_public)),
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.add_use(&inner.tree, path, is_public);
                path.pop();
            }
        }
    }

    /// The public enumerations in a call of a macro that defines some.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        for window in tokens.windows(4) {
            let [
                TokenTree::Ident(public),
                TokenTree::Ident(word),
                TokenTree::Ident(name),
                TokenTree::Group(body),
            ] = window
            else {
                continue;
            };
            if public == "pub" && word == "enum" && body.delimiter() == Delimiter::Brace {
                let idents = body.stream().into_iter().filter_map(|token| {
                    let TokenTree::Ident(ident) = token else { return None };
                    Some(ident.to_string())
                });
                let kind = Kind::Item(idents.collect());
                self.insert(name.to_string(), Entry { is_public: true, kind });
            }
        }
    }
}

/// Whether what has these attributes is compiled for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && ["test", "doctest"].contains(&condition.as_str())
    })
}

const fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn fields(fields: &Fields) -> BTreeSet<String> {
    let public = fields.iter().filter(|field| is_public(&field.vis));
    public.filter_map(|field| field.ident.as_ref().map(ToString::to_string)).collect()
}

fn public_member(item: &ImplItem) -> Option<String> {
    let (visibility, name) = match item {
        ImplItem::Fn(function) => (&function.vis, &function.sig.ident),
        ImplItem::Const(constant) => (&constant.vis, &constant.ident),
        ImplItem::Type(_) | ImplItem::Macro(_) | ImplItem::Verbatim(_) | _ => return None,
    };
    is_public(visibility).then(|| name.to_string())
}

fn required(item: &TraitItem) -> Option<String> {
    let TraitItem::Fn(function) = item else { return None };
    Some(function.sig.ident.to_string())
}

/// The path of a type, without what is between angle brackets.
fn type_path(of: &Type) -> Vec<String> {
    let Type::Path(path) = of else { return Vec::new() };
    path.path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Crate {
        let source = |wanted: &str| {
            let found = files.iter().find(|(path, _)| *path == wanted);
            found.map(|(_, text)| (*text).to_owned())
        };
        Crate::read(files[0].0, &source).unwrap()
    }

    #[test]
    fn public_items_are_found_under_the_names_that_users_write() {
        let core = of(&[
            (
                "core/lib.rs",
                "mod inner; pub mod codec { pub mod bits { pub fn read() {} } }\npub use inner::{Config, Peer as Endpoint};",
            ),
            (
                "core/inner.rs",
                "pub struct Config { pub limit: u8, secret: u8 }\npub struct Peer<'a>(&'a u8);\n\
                 impl Peer<'_> { pub fn ping(&self) {} fn hide(&self) {} }\n\
                 reasons! { /// Text.\n pub enum Reason { Lost, /// Text.\n Full } }",
            ),
        ]);
        for name in ["Config::limit", "Endpoint", "codec::bits::read"] {
            assert!(core.has(name, None), "{name}");
        }
        for name in
            ["Config::secret", "inner::Config", "Peer", "Endpoint::hide", "codec::gone", "Config::limit::x"]
        {
            assert!(!core.has(name, None), "{name}");
        }
        let driver = of(&[
            (
                "d/lib.rs",
                "mod a;\npub use rakwire::codec;\npub use a::*;\npub use rakwire::Gone;\nuse rakwire::Config as Own;",
            ),
            (
                "d/a/mod.rs",
                "mod b;\npub use rakwire::Config;\npub type Handle = crate::a::b::Handle<u8>;\npub trait Hook { fn on_event(&self) {} }\nmod ping;\npub use ping::ping;",
            ),
            ("d/a/ping.rs", "pub fn ping() {}\npub fn hidden() {}"),
            ("d/a/b.rs", "pub struct Handle<P>(P);\nimpl super::Handle { pub fn connect(&self) {} }"),
        ]);
        for name in
            ["codec::bits::read", "Config::limit", "Handle", "Handle::connect", "Hook::on_event", "ping"]
        {
            assert!(driver.has(name, Some(&core)), "{name}");
        }
        for name in
            ["Gone", "Own", "Handle::gone", "Config::gone", "a::Config", "Config::secret", "ping::hidden"]
        {
            assert!(!driver.has(name, Some(&core)), "{name}");
        }
    }

    #[test]
    fn enumerations_of_macros_are_items() {
        let found = of(&[("lib.rs", "reasons! { /// Text.\n pub enum Reason { Lost, /// Text.\n Full } }")]);
        assert!(found.has("Reason::Full", None) && !found.has("Reason::Gone", None));
    }
}
