//! The modules of a crate: which file each lies in, what it defines, and what it names.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::names::{self, Import, Mention};

/// The place of a file in [`Tree::files`].
pub(super) type FileId = usize;
/// The place of a module in [`Tree::modules`].
pub(super) type ModuleId = usize;

/// The text of a file, by its path in the repository; none if there is no such file.
pub(super) type Source<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A crate without its tests.
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
        tree.add_file(root, Vec::new(), None, &text, &folders, source)?;
        Ok(tree)
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
        module: Vec<String>,
        parent: Option<ModuleId>,
        text: &str,
        folders: &Folders,
        source: Source,
    ) -> Result<ModuleId> {
        let syntax = syn::parse_file(text)
            .map_err(|error| anyhow::anyhow!("{path}:{}: {error}", error.span().start().line))?;
        self.files.push(File { path: path.to_owned(), module: module.clone() });
        self.add_module(self.files.len() - 1, module, parent, &syntax.items, folders, source)
    }

    fn add_module(
        &mut self,
        file: FileId,
        path: Vec<String>,
        parent: Option<ModuleId>,
        items: &[Item],
        folders: &Folders,
        source: Source,
    ) -> Result<ModuleId> {
        let id = self.modules.len();
        let names = names::of_items(items);
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            items: names.items,
            imports: names.imports,
            mentions: names.mentions,
        });
        for child in
            items.iter().filter_map(|item| if let Item::Mod(child) = item { Some(child) } else { None })
        {
            let name = child.ident.to_string();
            if names::is_test(&child.attrs) || name.ends_with("tests") {
                continue;
            }
            let mut child_path = path.clone();
            child_path.push(name.clone());
            let child = self.add_child(id, child, child_path, folders, source)?;
            self.modules[id].children.insert(name, child);
        }
        Ok(id)
    }

    fn add_child(
        &mut self,
        parent: ModuleId,
        child: &ItemMod,
        path: Vec<String>,
        folders: &Folders,
        source: Source,
    ) -> Result<ModuleId> {
        let name = child.ident.to_string();
        let file = self.modules[parent].file;
        if let Some((_, items)) = &child.content {
            let inner = folders.children.join(&name);
            let folders = Folders { children: inner.clone(), paths: inner };
            return self.add_module(file, path, Some(parent), items, &folders, source);
        }
        let candidates = match path_attribute(&child.attrs) {
            Some(path) => vec![folders.paths.join(path)],
            None => vec![
                folders.children.join(&name).with_extension("rs"),
                folders.children.join(&name).join("mod.rs"),
            ],
        };
        let found = candidates.iter().map(|path| normal(path)).find_map(|path| Some((source(&path)?, path)));
        let (text, file) = found.with_context(|| {
            let line = child.ident.span().start().line;
            format!("{}:{line}: the file of `mod {name}` is missing", self.files[file].path)
        })?;
        let folders = folders_of(Path::new(&file));
        self.add_file(&file, path, Some(parent), &text, &folders, source)
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
