//! The modules of a crate, and the uses between its files: every name is resolved to the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use anyhow::{Context, Result};

use super::names::{self, Names};

/// The index of a file in [`Tree::files`].
pub(super) type FileId = usize;
/// A path from the root of the crate, which is empty.
pub(super) type ModulePath = Vec<String>;
/// The names that a file uses of another one, by line, for each pair of files. If there is an import, only the imports
/// are listed.
pub(super) type Arrows = BTreeMap<(FileId, FileId), BTreeMap<usize, Vec<String>>>;

/// A crate.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    modules: BTreeMap<ModulePath, (FileId, Names)>,
    /// The modules with files for tests.
    tests: Vec<ModulePath>,
    /// All modules with files, as their parents declare them.
    declared: BTreeSet<ModulePath>,
}

/// A source file: the body of one module, which may contain inline modules.
pub(super) struct File {
    pub(super) path: String,
    pub(super) module: ModulePath,
    /// True if it is compiled only for tests.
    pub(super) is_test: bool,
    /// True if it belongs to a program next to the library of its crate.
    pub(super) is_program: bool,
}

/// All meanings of a path: a name may be that of a module and of an item.
#[derive(Default)]
struct Found {
    modules: BTreeSet<ModulePath>,
    /// The files that define the items.
    items: BTreeSet<FileId>,
    /// The paths in other crates.
    foreign: BTreeSet<Vec<String>>,
}

/// The imports on the way to a name, each by its module and index; a circular import resolves to nothing.
type Way = Vec<(ModulePath, usize)>;

impl Tree {
    /// Parses a crate from its files, all of which are in one folder.
    pub(super) fn read(folder: &str, files: &[(String, String)]) -> Result<Self> {
        let mut tree = Self::default();
        let has_library = files.iter().any(|(path, _)| path.strip_prefix(folder) == Some("/lib.rs"));
        for (id, (path, text)) in files.iter().enumerate() {
            let module = module_of(path.strip_prefix(folder).unwrap_or(path), has_library);
            let file = File { path: path.clone(), module: module.clone(), is_test: false, is_program: false };
            tree.files.push(file);
            tree.add(module, id, names::of_text(text).with_context(|| path.clone())?);
        }
        let declared = |module: &[String]| {
            tree.modules.get(module).map(|(_, names)| &names.files[..]).unwrap_or_default()
        };
        let of_library: Vec<_> = declared(&[]).iter().map(|module| &module.name).collect();
        let of_main = declared(&["main".to_owned()]).iter().map(|module| &module.name);
        let of_main: Vec<_> = of_main.filter(|name| !of_library.contains(name)).collect();
        for file in &mut tree.files {
            file.is_test = tree.tests.iter().any(|test| file.module.starts_with(test));
            let is_program = |first: &String| first == "bin" || first == "main" || of_main.contains(&first);
            file.is_program = file.module.first().is_some_and(is_program);
        }
        Ok(tree)
    }

    fn add(&mut self, path: ModulePath, file: FileId, mut names: Names) {
        let below = |name: &String| [&path[..], slice::from_ref(name)].concat();
        for module in &names.files {
            let mut declared = below(&module.name);
            if let Some(stem) = &module.stem {
                // A path is relative to the folder of this file.
                declared = self.folder_of(file, &path);
                for part in stem.split('/') {
                    if part == ".." {
                        declared.pop();
                    } else {
                        declared.push(part.to_owned());
                    }
                }
            }
            if module.is_test {
                self.tests.push(declared.clone());
            }
            self.declared.insert(declared);
        }
        for (name, inner) in std::mem::take(&mut names.inner) {
            self.add(below(&name), file, inner);
        }
        self.modules.insert(path, (file, names));
    }

    /// Returns the module with the folder of this file, in which it is the body of a module.
    fn folder_of(&self, file: FileId, module: &ModulePath) -> ModulePath {
        let is_folder = self.files[file].path.ends_with("/mod.rs") || &self.files[file].module != module;
        let length = if is_folder { module.len() } else { module.len().saturating_sub(1) };
        module[..length].to_vec()
    }

    /// Returns the files that no module declares, so that they are never compiled.
    pub(super) fn undeclared(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| {
            !file.is_program && !file.module.is_empty() && !self.declared.contains(&file.module)
        })
    }

    /// Returns all uses.
    ///
    /// A private import is a use, and so is a path in the code. A re-export is one only if its target is not below the
    /// re-exporting module: offering items of child modules does not count as using them.
    pub(super) fn arrows(&self) -> Arrows {
        let mut imports = Arrows::new();
        let mut mentions = Arrows::new();
        for (module, (file, names)) in self.modules.iter().filter(|(_, (file, _))| !self.files[*file].is_test)
        {
            for import in &names.imports {
                let found = self.find(module, &import.path, &mut Way::new());
                let used = found.modules.iter().map(|module| self.modules[module].0).chain(found.items);
                for used in
                    used.filter(|used| !import.is_reexport || !self.files[*used].module.starts_with(module))
                {
                    add(&mut imports, (*file, used), &import.path, import.line);
                }
            }
            for (path, line) in &names.mentions {
                // A bare module name is neither a value nor a type: such a name is a variable.
                for used in self.find(module, path, &mut Way::new()).items {
                    add(&mut mentions, (*file, used), path, *line);
                }
            }
        }
        mentions.extend(imports);
        mentions
    }

    /// Resolves a path in a module.
    fn find(&self, module: &ModulePath, path: &[String], way: &mut Way) -> Found {
        let (at, rest) = walk(module, path);
        if rest.is_empty() {
            return Found { modules: BTreeSet::from([at]), ..Found::default() };
        }
        let mut found = self.below(&at, rest, way);
        if found.modules.is_empty() && found.items.is_empty() && rest.len() == path.len() {
            found.foreign.insert(path.to_vec());
        }
        found
    }

    /// Resolves a path that begins with a name in this module.
    fn below(&self, module: &ModulePath, path: &[String], way: &mut Way) -> Found {
        let [name, rest @ ..] = path else { return Found::default() };
        let found = self.named(module, name, way);
        if rest.is_empty() {
            return found;
        }
        let mut inside = Found::default();
        for module in found.modules {
            inside.extend(self.below(&module, rest, way));
        }
        if inside.is_empty() {
            // The rest of the path names a part of an item: a variant, a constant, a function.
            inside.items = found.items;
        }
        inside.foreign.extend(found.foreign.into_iter().map(|outer| [&outer[..], rest].concat()));
        inside
    }

    /// Resolves one name in a module.
    fn named(&self, module: &ModulePath, name: &str, way: &mut Way) -> Found {
        let mut found = Found::default();
        // The modules of a program next to a library are in the folder of its file.
        let parent = if *module == ["main"] { &[] } else { &module[..] };
        let child = [parent, &[name.to_owned()]].concat();
        if self.modules.contains_key(&child) {
            found.modules.insert(child);
        }
        let Some((file, names)) = self.modules.get(module) else { return found };
        if names.items.iter().any(|item| item == name) {
            found.items.insert(*file);
        }
        for (index, import) in names.imports.iter().enumerate() {
            if import.name.as_deref() == Some(name) {
                found.extend(self.import(module, index, way));
            }
        }
        let globs = names.imports.iter().enumerate().filter(|(_, import)| import.name.is_none());
        for (index, _) in globs.filter(|_| found.is_empty()).collect::<Vec<_>>() {
            let outside = self.import(module, index, way);
            let name_of = |outer: Vec<String>| [&outer[..], &[name.to_owned()]].concat();
            found.foreign.extend(outside.foreign.into_iter().map(name_of));
            for inside in outside.modules {
                way.push((module.clone(), index));
                found.extend(self.named(&inside, name, way));
                way.pop();
            }
        }
        found
    }

    /// Resolves an import, unless it was already passed on the way.
    fn import(&self, module: &ModulePath, index: usize, way: &mut Way) -> Found {
        let step = (module.clone(), index);
        if way.contains(&step) {
            return Found::default();
        }
        way.push(step);
        let found = self.find(module, &self.modules[module].1.imports[index].path, way);
        way.pop();
        found
    }

    /// Returns every path in the code, with its file and line, and its meanings in other crates.
    pub(super) fn foreign(&self) -> impl Iterator<Item = (&File, usize, &[String], BTreeSet<Vec<String>>)> {
        let modules = self.modules.iter().filter(|(_, (file, _))| !self.files[*file].is_test);
        modules.flat_map(move |(module, (file, names))| {
            let imports = names.imports.iter().map(|import| (&import.path, import.line));
            let mentions = names.mentions.iter().map(|(path, line)| (path, *line));
            imports.chain(mentions).map(move |(path, line)| {
                (&self.files[*file], line, &path[..], self.find(module, path, &mut Way::new()).foreign)
            })
        })
    }
}

/// Returns the module of a file, by its path in the folder of its crate.
fn module_of(path: &str, has_library: bool) -> ModulePath {
    let path = path.trim_start_matches('/').trim_end_matches(".rs").trim_end_matches("/mod");
    match path {
        "lib" => Vec::new(),
        "main" if !has_library => Vec::new(),
        _ => path.split('/').map(str::to_owned).collect(),
    }
}

/// Resolves `crate`, `super` and `self` at the beginning of a path.
fn walk<'p>(module: &ModulePath, path: &'p [String]) -> (ModulePath, &'p [String]) {
    let (mut at, mut rest) = (module.clone(), path);
    while let [first, after @ ..] = rest {
        match first.as_str() {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            _ => break,
        }
        rest = after;
    }
    (at, rest)
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

/// Returns the strongly connected groups of files, without groups of one.
pub(super) fn circles(arrows: &Arrows) -> BTreeSet<BTreeSet<FileId>> {
    let reached_from = |file: FileId| {
        let mut reached = BTreeSet::from([file]);
        let mut next = vec![file];
        while let Some(from) = next.pop() {
            let targets = arrows.range((from, 0)..=(from, FileId::MAX)).map(|((_, to), _)| *to);
            next.extend(targets.filter(|to| reached.insert(*to)));
        }
        reached
    };
    let files: BTreeSet<_> = arrows.keys().map(|(from, _)| *from).collect();
    let reached: BTreeMap<_, _> = files.into_iter().map(|file| (file, reached_from(file))).collect();
    let group = |(file, all): (&FileId, &BTreeSet<FileId>)| -> BTreeSet<FileId> {
        all.iter()
            .copied()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(file)))
            .collect()
    };
    reached.iter().map(group).filter(|group| group.len() > 1).collect()
}

impl Found {
    fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.items.is_empty() && self.foreign.is_empty()
    }

    fn extend(&mut self, other: Self) {
        self.modules.extend(other.modules);
        self.items.extend(other.items);
        self.foreign.extend(other.foreign);
    }
}
