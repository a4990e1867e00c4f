//! Which file of a crate uses which: every name is followed to the file that defines it.

use std::collections::{BTreeMap, BTreeSet};

use super::names::Mention;
use super::tree::{FileId, ModuleId, Tree};

/// What a file uses of another one: the names by their lines, as they are written there.
pub(super) type Places = BTreeMap<usize, Vec<String>>;

/// The arrows between files. Where there is an import, the places are the imports alone.
pub(super) type Arrows = BTreeMap<(FileId, FileId), Places>;

/// Everything that a path can mean: a name may be that of a module and of an item.
#[derive(Default)]
struct Found {
    modules: BTreeSet<ModuleId>,
    /// The files that define the items.
    items: BTreeSet<FileId>,
}

/// The imports on the way to a name, each by its module and its place there; one that leads to itself leads nowhere.
type Way = Vec<(ModuleId, usize)>;

/// All arrows of a crate.
///
/// A private import is an arrow, and so is a path in the code. A re-export is one only if what it names does not lie
/// below the module that re-exports it: a module that offers what its children define does not use it by that.
pub(super) fn of(tree: &Tree) -> Arrows {
    let mut imports = Arrows::new();
    let mut mentions = Arrows::new();
    for (module, body) in tree.modules.iter().enumerate() {
        for import in &body.imports {
            let found = find(tree, module, &import.path, &mut Way::new());
            let files = found.modules.iter().map(|module| tree.modules[*module].file).chain(found.items);
            for file in files.filter(|file| !import.is_reexport || !lies_below(tree, *file, module)) {
                add(&mut imports, (body.file, file), &import.path, import.line);
            }
        }
        for Mention { path, line } in &body.mentions {
            // A module by itself is no value and no type: such a name is a variable.
            for file in find(tree, module, path, &mut Way::new()).items {
                add(&mut mentions, (body.file, file), path, *line);
            }
        }
    }
    mentions.extend(imports);
    mentions
}

fn add(arrows: &mut Arrows, (from, to): (FileId, FileId), path: &[String], line: usize) {
    if from != to {
        let names = arrows.entry((from, to)).or_default().entry(line).or_default();
        let name = path.join("::");
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

fn lies_below(tree: &Tree, file: FileId, module: ModuleId) -> bool {
    let body = tree.modules.iter().position(|candidate| candidate.file == file);
    body.is_some_and(|body| tree.is_within(body, module))
}

/// What a path means in a module.
fn find(tree: &Tree, module: ModuleId, path: &[String], way: &mut Way) -> Found {
    let mut at = module;
    let mut rest = path;
    while let [first, after @ ..] = rest {
        at = match (first.as_str(), tree.modules[at].parent) {
            ("crate", _) => 0,
            ("super", Some(parent)) => parent,
            ("self", _) => at,
            _ => break,
        };
        rest = after;
    }
    if rest.is_empty() {
        return Found { modules: BTreeSet::from([at]), items: BTreeSet::new() };
    }
    below(tree, at, rest, way)
}

/// What a path means that begins with a name in this module.
fn below(tree: &Tree, module: ModuleId, path: &[String], way: &mut Way) -> Found {
    let [name, rest @ ..] = path else { return Found::default() };
    let found = named(tree, module, name, way);
    if rest.is_empty() {
        return found;
    }
    let mut inside = Found::default();
    for module in found.modules {
        let more = below(tree, module, rest, way);
        inside.modules.extend(more.modules);
        inside.items.extend(more.items);
    }
    if inside.modules.is_empty() && inside.items.is_empty() {
        // The rest names what belongs to an item: a variant, a constant, a function.
        inside.items = found.items;
    }
    inside
}

/// What one name means in a module.
fn named(tree: &Tree, module: ModuleId, name: &str, way: &mut Way) -> Found {
    let body = &tree.modules[module];
    let mut found = Found::default();
    found.modules.extend(body.children.get(name));
    if body.items.iter().any(|item| item == name) {
        found.items.insert(body.file);
    }
    for (index, import) in body.imports.iter().enumerate() {
        if import.name.as_deref() == Some(name) {
            found.extend(import_of(tree, module, index, way));
        }
    }
    if !found.is_empty() {
        return found;
    }
    for (index, _) in body.imports.iter().enumerate().filter(|(_, import)| import.is_glob) {
        for inside in import_of(tree, module, index, way).modules {
            way.push((module, index));
            found.extend(named(tree, inside, name, way));
            way.pop();
        }
    }
    found
}

/// What an import means, unless the way has come through it already.
fn import_of(tree: &Tree, module: ModuleId, index: usize, way: &mut Way) -> Found {
    if way.contains(&(module, index)) {
        return Found::default();
    }
    way.push((module, index));
    let found = find(tree, module, &tree.modules[module].imports[index].path, way);
    way.pop();
    found
}

impl Found {
    fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.items.is_empty()
    }

    fn extend(&mut self, other: Self) {
        self.modules.extend(other.modules);
        self.items.extend(other.items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: (&str, &str) = ("src/lib.rs", "mod a;\nmod b;\nmod c;\n");

    /// The arrows of a crate as `from line to`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of_texts(files);
        let name =
            |file: usize| tree.files[file].path.trim_start_matches("src/").trim_end_matches(".rs").to_owned();
        let mut lines = Vec::new();
        for ((from, to), places) in of(&tree) {
            lines.extend(places.keys().map(|line| format!("{} {line} {}", name(from), name(to))));
        }
        lines.sort();
        lines
    }

    #[test]
    fn tests_do_not_count() {
        let files = [
            LIB,
            (
                "src/a.rs",
                "pub struct A;
                #[cfg(test)] use crate::b::B;
                #[cfg(test)] mod tests { use crate::b::B; }
                #[cfg(test)] mod model_tests;
                #[cfg(all(test, feature = \"x\"))] mod more { use crate::b::B; }
                #[cfg(test)] impl A { fn f(b: crate::b::B) {} }
                impl A { #[cfg(test)] fn g(b: crate::b::B) {} }
                #[test] fn h() { crate::b::f(); }",
            ),
            ("src/a/model_tests.rs", "use crate::b::B;"),
            ("src/b.rs", "use super::a::A;\npub struct B(A);\npub fn f() {}"),
            ("src/c.rs", "#[cfg(any(test, feature = \"x\"))]\nuse super::a::A;"),
        ];
        assert_eq!(arrows(&files), ["b 1 a", "c 2 a"]);
    }

    #[test]
    fn re_exports_lead_to_the_file_that_defines() {
        let parent = (
            "src/a/mod.rs",
            "mod leaf;\nmod other;\npub(crate) use leaf::*;\npub use self::other::Other as Renamed;\n\
             pub struct Own;\nimpl Own { const LIMIT: u8 = 1; }",
        );
        let files = [
            LIB,
            parent,
            ("src/a/leaf.rs", "use super::Own;\npub struct Leaf;\npub enum Kind { One }"),
            ("src/a/other.rs", "use super::{Leaf, Own};\npub struct Other;"),
            ("src/b.rs", "use crate::a::{Renamed, Kind::One};\nconst A: u8 = crate::a::Own::LIMIT;"),
            ("src/c.rs", "use crate::a;\nfn f(_: a::Leaf, _: a::Renamed) {}"),
        ];
        assert_eq!(
            arrows(&files),
            [
                "a/leaf 1 a/mod",
                "a/other 1 a/leaf",
                "a/other 1 a/mod",
                "b 1 a/leaf",
                "b 1 a/other",
                "b 2 a/mod",
                "c 1 a/mod",
                "c 2 a/leaf",
                "c 2 a/other",
            ]
        );
    }

    #[test]
    fn a_parent_that_uses_what_it_re_exports_has_an_arrow() {
        let child = ("src/a/child.rs", "use super::Own;\npub struct Child(Own);");
        let only_offers = ("src/a/mod.rs", "mod child;\npub use child::Child;\npub struct Own;");
        let uses = ("src/a/mod.rs", "mod child;\npub use child::Child;\npub struct Own;\nfn f(_: Child) {}");
        let rest = [("src/b.rs", ""), ("src/c.rs", "")];
        assert_eq!(arrows(&[LIB, only_offers, child, rest[0], rest[1]]), ["a/child 1 a/mod"]);
        assert_eq!(arrows(&[LIB, uses, child, rest[0], rest[1]]), ["a/child 1 a/mod", "a/mod 4 a/child"]);
    }

    #[test]
    fn re_exports_of_what_lies_elsewhere_are_arrows() {
        let files =
            [LIB, ("src/a.rs", "pub use super::b::B;"), ("src/b.rs", "pub struct B;"), ("src/c.rs", "")];
        assert_eq!(arrows(&files), ["a 1 b"]);
    }

    #[test]
    fn the_end_of_a_range_in_a_macro_is_no_member() {
        let files = [
            LIB,
            ("src/a.rs", "fn f() {\n  assert!((0..crate::b::N).contains(&x.c));\n}"),
            ("src/b.rs", "pub const N: u8 = 1;"),
            ("src/c.rs", "fn g() {\n  assert!(a.c, ..=crate::b::N);\n}"),
        ];
        assert_eq!(arrows(&files), ["a 2 b", "c 2 b"]);
    }

    #[test]
    fn paths_in_macros_inline_modules_and_functions_count() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\nmod c;\nmod inner { pub use crate::b::B; }\n"),
            ("src/a.rs", "fn f() {\n  assert!(matches!(x.b, Some(crate::inner::B::Y)));\n}"),
            ("src/b.rs", "pub enum B { X }\nfn f() {\n  use crate::c::*;\n  g();\n}"),
            ("src/c.rs", "pub(in super) fn g() {}\nfn h() { let b = 1; b.f(); }"),
        ];
        assert_eq!(arrows(&files), ["a 2 b", "b 3 c", "lib 4 b"]);
    }
}
