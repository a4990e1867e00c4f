//! The modules of a crate: which file each lies in, what it defines, and what it names.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::names::{self, Import, Mention, Names};

/// The place of a file in [`Tree::files`].
pub(super) type FileId = usize;
/// The place of a module in [`Tree::modules`].
pub(super) type ModuleId = usize;

/// The text of a file, by its path in the repository; none if there is no such file.
pub(super) type Source<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A crate. Of its tests only the files are known.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    pub(super) modules: Vec<Module>,
}

/// A source file, which is the body of one module and may have others inline.
pub(super) struct File {
    pub(super) path: String,
    /// The module of which it is the body, from the root of the crate, which is empty.
    pub(super) module: Vec<String>,
    /// Whether it is compiled for tests alone.
    pub(super) is_test: bool,
}

#[derive(Default)]
pub(super) struct Module {
    pub(super) file: FileId,
    pub(super) parent: Option<ModuleId>,
    pub(super) children: BTreeMap<String, ModuleId>,
    pub(super) items: Vec<String>,
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
}

/// A module that is about to be added.
struct Place {
    /// From the root of the crate, which is empty.
    path: Vec<String>,
    parent: Option<ModuleId>,
    is_test: bool,
}

/// Where the files of a module's children are looked for.
struct Folders {
    /// For `mod child;`.
    children: PathBuf,
    /// For `#[path = "…"] mod child;`.
    paths: PathBuf,
}

impl Tree {
    /// Reads a crate from its root file on.
    pub(super) fn read(root: &str, source: Source) -> Result<Self> {
        let mut tree = Self::default();
        let text = source(root).with_context(|| format!("{root} cannot be read"))?;
        let folder = parent(Path::new(root));
        let folders = Folders { children: folder.clone(), paths: folder };
        let place = Place { path: Vec::new(), parent: None, is_test: false };
        tree.add_file(root, place, &text, &folders, source)?;
        Ok(tree)
    }

    /// A crate of files in memory, the first of them its root.
    #[cfg(test)]
    pub(super) fn of_texts(files: &[(&str, &str)]) -> Self {
        let source = |wanted: &str| {
            let found = files.iter().find(|(path, _)| *path == wanted);
            found.map(|(_, text)| (*text).to_owned())
        };
        Self::read(files[0].0, &source).unwrap()
    }

    /// Whether this module is that one or lies in it.
    pub(super) fn is_within(&self, mut inner: ModuleId, outer: ModuleId) -> bool {
        while inner != outer {
            match self.modules[inner].parent {
                Some(parent) => inner = parent,
                None => return false,
            }
        }
        true
    }

    fn add_file(
        &mut self,
        path: &str,
        place: Place,
        text: &str,
        folders: &Folders,
        source: Source,
    ) -> Result<ModuleId> {
        let syntax = syn::parse_file(text)
            .map_err(|error| anyhow::anyhow!("{path}:{}: {error}", error.span().start().line))?;
        self.files.push(File { path: path.to_owned(), module: place.path.clone(), is_test: place.is_test });
        self.add_module(self.files.len() - 1, place, &syntax.items, folders, source)
    }

    fn add_module(
        &mut self,
        file: FileId,
        place: Place,
        items: &[Item],
        folders: &Folders,
        source: Source,
    ) -> Result<ModuleId> {
        let id = self.modules.len();
        // Tests may use everything.
        let names = if place.is_test { Names::default() } else { names::of_items(items) };
        self.modules.push(Module {
            file,
            parent: place.parent,
            children: BTreeMap::new(),
            items: names.items,
            imports: names.imports,
            mentions: names.mentions,
        });
        for item in items {
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                let is_test = place.is_test || names::is_test(&child.attrs);
                let path = place.path.iter().chain([&name]).cloned().collect();
                let inner = Place { path, parent: Some(id), is_test };
                let module = self.add_child(file, child, inner, folders, source)?;
                if !is_test {
                    self.modules[id].children.insert(name, module);
                }
            }
        }
        Ok(id)
    }

    /// Adds a module that this file declares.
    fn add_child(
        &mut self,
        file: FileId,
        child: &ItemMod,
        place: Place,
        folders: &Folders,
        source: Source,
    ) -> Result<ModuleId> {
        let name = child.ident.to_string();
        if let Some((_, items)) = &child.content {
            let inner = folders.children.join(&name);
            let folders = Folders { children: inner.clone(), paths: inner };
            return self.add_module(file, place, items, &folders, source);
        }
        let candidates = match path_attribute(&child.attrs) {
            Some(path) => vec![folders.paths.join(path)],
            None => vec![
                folders.children.join(&name).with_extension("rs"),
                folders.children.join(&name).join("mod.rs"),
            ],
        };
        let found = candidates.iter().map(|path| normal(path)).find_map(|path| Some((source(&path)?, path)));
        let (text, path) = found.with_context(|| {
            let line = child.ident.span().start().line;
            format!("{}:{line}: the file of `mod {name}` is missing", self.files[file].path)
        })?;
        let folders = folders_of(Path::new(&path));
        self.add_file(&path, place, &text, &folders, source)
    }
}

/// The folders of a module that is not the root of its crate.
fn folders_of(file: &Path) -> Folders {
    let is_named_mod = file.file_stem().is_some_and(|stem| stem == "mod");
    let children = if is_named_mod { parent(file) } else { file.with_extension("") };
    Folders { children, paths: parent(file) }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The path without `..`.
fn normal(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.components() {
        if part == Component::ParentDir {
            parts.pop();
        } else {
            parts.push(part.as_os_str().to_string_lossy());
        }
    }
    parts.join("/")
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
        pair.path.is_ident("path").then(|| text.value())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_where_the_compiler_finds_them() {
        let tree = Tree::of_texts(&[
            (
                "src/bin/tool/main.rs",
                "mod a;\n#[path = \"../../far.rs\"]\nmod far;\nmod inline { mod deep; }",
            ),
            ("src/bin/tool/a.rs", "mod b;\nmod c;"),
            ("src/bin/tool/a/b.rs", ""),
            ("src/bin/tool/a/c/mod.rs", "mod d;"),
            ("src/bin/tool/a/c/d.rs", ""),
            ("src/far.rs", ""),
            ("src/bin/tool/inline/deep.rs", ""),
        ]);
        let modules: Vec<_> = tree.files.iter().map(|file| file.module.join("::")).collect();
        assert_eq!(modules, ["", "a", "a::b", "a::c", "a::c::d", "far", "inline::deep"]);
    }

    #[test]
    fn a_missing_file_and_bad_syntax_are_errors_with_their_lines() {
        let error = |text: &str| {
            let read = |path: &str| (path == "src/lib.rs").then(|| text.to_owned());
            Tree::read("src/lib.rs", &read).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(error("\nmod gone;"), "src/lib.rs:2: the file of `mod gone` is missing");
        assert!(error("\nfn {").starts_with("src/lib.rs:2: "));
    }

    #[test]
    fn files_of_tests_are_known_but_not_what_they_use() {
        let tree = Tree::of_texts(&[
            (
                "src/lib.rs",
                "#[cfg(test)]\nmod replay;\n#[cfg(test)]\nmod inline { mod deep; }\nmod a;\nmod named_tests;",
            ),
            ("src/replay.rs", "mod inputs;\nuse crate::a::A;"),
            ("src/replay/inputs.rs", ""),
            ("src/inline/deep.rs", "fn f() { crate::a::f(); }"),
            ("src/a.rs", "pub struct A;"),
            ("src/named_tests.rs", "pub struct B;"),
        ]);
        let of = |is_test| {
            let files = tree.files.iter().filter(move |file| file.is_test == is_test);
            files.map(|file| file.path.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of(true), ["src/replay.rs", "src/replay/inputs.rs", "src/inline/deep.rs"]);
        assert_eq!(of(false), ["src/lib.rs", "src/a.rs", "src/named_tests.rs"]);
        assert!(super::super::arrows::of(&tree).is_empty());
    }
}
