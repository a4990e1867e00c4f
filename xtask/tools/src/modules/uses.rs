//! Finds the uses between the files of a crate, by following each path in a formatted source to the file that defines
//! it. Ignores code that is compiled only for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// The uses between files, as numbers of the user and the used file, each with its first line.
pub(super) type Uses = BTreeMap<(usize, usize), usize>;

/// A source file.
pub(super) struct File {
    pub(super) path: String,
    /// The path of the module from the root of the crate, which is `crate`.
    pub(super) module: Vec<String>,
    /// True if it is compiled only for tests.
    pub(super) is_test: bool,
    /// True if it belongs to a program in a crate that also has a library.
    pub(super) is_program: bool,
    /// The text without comments and tests, with the same lines.
    pub(super) code: String,
    imports: Vec<Import>,
    items: BTreeSet<String>,
    /// The modules in the file itself, and those that it declares.
    inner: BTreeSet<String>,
    declared: BTreeSet<String>,
}

/// A name that a `use` brings into a file.
struct Import {
    /// Its name in the file; `*` for all names.
    name: String,
    path: Vec<String>,
    line: usize,
    is_reexport: bool,
}

/// The files of a crate.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    by_module: BTreeMap<Vec<String>, usize>,
}

/// The maximum number of imports to follow for a name.
const MAX_STEPS: usize = 8;

static USE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([^;]+);"));
static ITEM: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b(?:const|enum|fn|static|struct|trait|type|union|macro_rules!) (\w+)"));
static INNER: LazyLock<Regex> = LazyLock::new(|| regex(r"\bmod (\w+) \{"));
static DECLARED: LazyLock<Regex> = LazyLock::new(|| regex(r"\bmod (\w+);"));
/// Matches the beginning of a module inside a file.
static INNER_START: LazyLock<Regex> = LazyLock::new(|| regex(r"^(\s*)(?:pub(?:\([^)]*\))? )?mod \w+ \{$"));
static INNER_SUPER: LazyLock<Regex> = LazyLock::new(|| regex(r"(^|[^:\w])super::"));
/// Matches a visibility. Its scope is not a use.
static SCOPE: LazyLock<Regex> = LazyLock::new(|| regex(r"\bpub\(in [^)]*\)"));
static PATH: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:[a-z]\w*::)+\w+"));
static TEST_MODULE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?m)^#\[cfg\((?:all\()?test\b.*\]\n(?:#\[path = "(\w+)\.rs"\]\n)?(?:#.*\n)*(?:pub.*)?mod (\w+);"#,
    )
});

/// Compiles a pattern of this program.
pub(crate) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{error}"))
}

impl Tree {
    /// Parses the files of a crate, which are below this folder.
    pub(super) fn new(folder: &str, sources: Vec<(String, String)>) -> Self {
        let mut files: Vec<File> = Vec::new();
        let mut tests: Vec<Vec<String>> = Vec::new();
        let has_library = sources.iter().any(|(path, _)| path[folder.len()..] == *"/lib.rs");
        for (path, text) in sources {
            let module = module_of(&path[folder.len()..], has_library);
            for found in TEST_MODULE.captures_iter(&text) {
                // A path is relative to the folder of the file.
                let is_sibling = found.get(1).is_some() && !path.ends_with("/mod.rs");
                let parent = &module[..module.len().saturating_sub(usize::from(is_sibling))];
                tests.push(
                    [parent, &[found.get(1).map_or(&found[2], |path| path.as_str()).to_owned()]].concat(),
                );
            }
            let code = without_tests(&text);
            let names =
                |pattern: &Regex| pattern.captures_iter(&code).map(|found| found[1].to_owned()).collect();
            let (items, inner, declared) = (names(&ITEM), names(&INNER), names(&DECLARED));
            let imports = imports(&code);
            files.push(File {
                path,
                module,
                is_test: false,
                is_program: false,
                code,
                imports,
                items,
                inner,
                declared,
            });
        }
        let of = |module: &[&str]| {
            let file = files.iter().find(|file| file.module == module);
            file.map(|file| file.declared.clone()).unwrap_or_default()
        };
        let mut programs: BTreeSet<_> = &of(&["main"]) - &of(&[]);
        programs.extend(["bin", "main"].map(str::to_owned));
        for file in &mut files {
            file.is_test = tests.iter().any(|test| file.module.starts_with(test));
            file.is_program = file.module.first().is_some_and(|first| programs.contains(first));
        }
        let by_module = files.iter().enumerate().map(|(id, file)| (file.module.clone(), id)).collect();
        Self { files, by_module }
    }

    /// Returns the files that no other file declares as a module, so nothing compiles them.
    pub(super) fn undeclared(&self) -> impl Iterator<Item = &File> {
        let text: String = self.files.iter().map(|file| file.code.as_str()).collect();
        self.files.iter().filter(move |file| {
            let Some((name, parent)) = file.module.split_last() else { return false };
            // A parent without a file of its own is a module inside another file.
            let is_declared = match self.by_module.get(parent) {
                Some(&id) => self.files[id].declared.contains(name),
                None => text.contains(&format!("mod {name};")),
            };
            let is_path = ["", "/mod"].iter().any(|end| text.contains(&format!("{name}{end}.rs\"]")));
            !file.is_test && !file.is_program && !is_declared && !is_path
        })
    }

    /// Returns all uses. A module that re-exports items of its child modules does not use them.
    pub(super) fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (id, file) in self.files.iter().enumerate().filter(|(_, file)| !file.is_test) {
            let mut add = |used: Option<usize>, line| match used {
                Some(used) if used != id => drop(uses.entry((id, used)).or_insert(line)),
                _ => {}
            };
            for import in &file.imports {
                let used = self.find(&file.module, &import.path, 0);
                let is_offer = |used: &usize| self.files[*used].module.starts_with(&file.module);
                add(used.filter(|used| !import.is_reexport || !is_offer(used)), import.line);
            }
            let code = USE.replace_all(&file.code, |found: &regex::Captures<'_>| {
                "\n".repeat(found[0].matches('\n').count())
            });
            for (line, text) in (1..).zip(code.lines()) {
                for path in PATH.find_iter(text) {
                    let path: Vec<_> = path.as_str().split("::").map(str::to_owned).collect();
                    add(self.find(&file.module, &path, 0), line);
                }
            }
        }
        uses
    }

    /// Returns the file that defines the item of a path in a module; `None` for other crates.
    fn find(&self, module: &[String], path: &[String], depth: usize) -> Option<usize> {
        // Longer chains of imports are circular.
        if depth > MAX_STEPS {
            return None;
        }
        let (mut at, mut rest) = (module.to_vec(), path);
        while let [first, after @ ..] = rest {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ => break,
            }
            rest = after;
        }
        let is_local = rest.len() < path.len();
        while let [name, after @ ..] = rest {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            let id = self.owner(&at)?;
            let file = &self.files[id];
            let is_inner =
                file.inner.contains(name) || self.by_module.keys().any(|module| module.starts_with(&child));
            if is_inner {
                (at, rest) = (child, after);
                continue;
            }
            // The file of the declared module is outside of the folder.
            if file.declared.contains(name) {
                return None;
            }
            let import = file.imports.iter().find(|import| import.name == *name);
            if let Some(import) = import {
                return self.find(&at, &[&import.path[..], after].concat(), depth + 1);
            }
            if file.items.contains(name) {
                return Some(id);
            }
            let through = file.imports.iter().filter(|import| import.name == "*").find_map(|glob| {
                let target = self.find(&at, &glob.path, depth + 1).filter(|target| *target != id)?;
                self.find(&self.files[target].module, rest, depth + 1).filter(|found| *found != id)
            });
            return through.or_else(|| is_local.then_some(id));
        }
        self.owner(&at)
    }

    /// Returns the file of a module, which may be in the file of an outer one.
    fn owner(&self, module: &[String]) -> Option<usize> {
        (0..=module.len()).rev().find_map(|length| self.by_module.get(&module[..length]).copied())
    }
}

/// Returns the module of a file, by its path in the folder of its crate.
fn module_of(path: &str, has_library: bool) -> Vec<String> {
    let path = path.trim_start_matches('/').trim_end_matches(".rs").trim_end_matches("/mod");
    let is_root = path == if has_library { "lib" } else { "main" };
    if is_root { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// Empties the lines of comments and of items that are compiled only for tests. In formatted code, the last line of an
/// item has the indentation of its first.
fn without_tests(text: &str) -> String {
    let (mut kept, mut inner) = (String::new(), Vec::new());
    let text = SCOPE.replace_all(text, "pub");
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        let is_test = ["#[cfg(test)]", "#[test]", "#[cfg(all(test"]
            .iter()
            .any(|attribute| start.starts_with(attribute));
        if is_test {
            let indent = &line[..line.len() - start.len()];
            let mut skipped = 1;
            for line in lines.by_ref() {
                skipped += 1;
                let own = line.strip_prefix(indent).filter(|own| !own.starts_with([' ', '#', '/']));
                if own.is_some_and(|own| own.ends_with(['}', ';', ','])) {
                    break;
                }
            }
            kept += &"\n".repeat(skipped);
        } else {
            let code = line.split("//").next().unwrap_or_default();
            // In a module inside the file, `super` is the file itself.
            kept += &if inner.is_empty() { code.into() } else { INNER_SUPER.replace_all(code, "${1}self::") };
            kept.push('\n');
            inner.pop_if(|end| *end == line);
            inner.extend(INNER_START.captures(line).map(|found| format!("{}}}", &found[1])));
        }
    }
    kept
}

/// Returns the imports of a text.
fn imports(code: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    for found in USE.captures_iter(code) {
        let line = 1 + code[..found.get(2).map_or(0, |tree| tree.start())].matches('\n').count();
        let mut paths = Vec::new();
        branches(&[], &found[2].split_whitespace().collect::<Vec<_>>().join(" "), &mut paths);
        for mut path in paths {
            let last = path.pop().unwrap_or_default();
            let (item, name) = last.split_once(" as ").unwrap_or((&last, &last));
            if !["self", "*"].contains(&item) {
                path.push(item.to_owned());
            }
            let name =
                if name == "self" { path.last().cloned().unwrap_or_default() } else { name.to_owned() };
            imports.push(Import { name, path, line, is_reexport: found.get(1).is_some() });
        }
    }
    imports
}

/// Adds each path of a tree after `use`.
fn branches(prefix: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let (head, group) = tree.split_once('{').map_or((tree, None), |(head, rest)| (head, Some(rest)));
    let parts = head.split("::").map(str::trim).filter(|part| !part.is_empty());
    let path: Vec<_> = prefix.iter().cloned().chain(parts.map(str::to_owned)).collect();
    let Some(group) = group.and_then(|group| group.trim_end().strip_suffix('}')) else {
        return paths.push(path);
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let branch = group[start..at].trim();
                if !branch.is_empty() {
                    branches(&path, branch, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the groups of files in which each file uses every other one, directly or indirectly.
pub(super) fn cycles(uses: &BTreeSet<(usize, usize)>) -> BTreeSet<BTreeSet<usize>> {
    let reached_from = |start: usize| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(from) = next.pop() {
            let targets = uses.range((from, 0)..=(from, usize::MAX)).map(|(_, to)| *to);
            next.extend(targets.filter(|to| reached.insert(*to)));
        }
        reached
    };
    let reached: BTreeMap<_, _> = uses.iter().map(|(from, _)| (*from, reached_from(*from))).collect();
    let group = |(file, all): (&usize, &BTreeSet<usize>)| -> BTreeSet<usize> {
        all.iter()
            .copied()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(file)))
            .collect()
    };
    reached.iter().map(group).filter(|group| group.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let lib = ("src/lib.rs", "mod a;\nmod b;\nmod c;\n");
        let files = [lib].into_iter().chain(files.iter().copied());
        Tree::new("src", files.map(|(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    /// Returns the uses in a crate as `from line to`.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let tree = tree(files);
        let name = |file: usize| tree.files[file].module.join("::");
        let uses = tree.uses();
        let mut lines: Vec<_> =
            uses.iter().map(|((from, to), line)| format!("{} {line} {}", name(*from), name(*to))).collect();
        lines.sort();
        lines
    }

    #[test]
    fn uses_in_tests_and_comments_are_ignored() {
        let a = "pub struct A;\n// crate::b::B\n#[cfg(test)]\nuse crate::b::B;\nimpl A {\n    #[cfg(test)]\n    \
                 fn f(b: crate::b::B) {\n    }\n}\n#[cfg(test)]\nmod more;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
        let files = [
            ("src/a.rs", a),
            ("src/a/more.rs", "use crate::b::B;"),
            ("src/b.rs", "use super::a::A;\npub struct B(A);"),
            ("src/c.rs", "fn f() {\n    crate::a::A;\n}"),
            ("src/d.rs", ""),
        ];
        assert_eq!(uses(&files), ["b 1 a", "c 2 a"]);
        let tree = tree(&files);
        assert_eq!(tree.undeclared().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["src/d.rs"]);
    }

    #[test]
    fn a_file_must_be_declared_by_its_parent_module() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\nmod inner {\n    mod leaf;\n}"),
            ("src/a/mod.rs", "mod config;"),
            ("src/a/config.rs", ""),
            ("src/b/mod.rs", ""),
            ("src/b/config.rs", ""),
            ("src/inner/leaf.rs", ""),
        ];
        let tree = tree(&files);
        assert_eq!(tree.undeclared().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["src/b/config.rs"]);
    }

    #[test]
    fn a_re_export_is_traced_to_the_defining_file() {
        let parent = "mod leaf;\nmod other;\npub(crate) use leaf::*;\npub use self::other::Other as Renamed;\npub struct Own;";
        let files = [
            ("src/a/mod.rs", parent),
            ("src/a/leaf.rs", "use super::Own;\npub struct Leaf;\npub enum Kind { One }"),
            ("src/a/other.rs", "use super::{\n    Leaf,\n    Own,\n};\npub struct Other;"),
            ("src/b.rs", "use crate::a::{Kind::One, Renamed};\nconst A: u8 = crate::a::Own::LIMIT;"),
            ("src/c.rs", "use crate::a::{self, Leaf as L};\nfn f(_: a::Leaf) {}"),
        ];
        let expected = [
            "a::leaf 1 a",
            "a::other 1 a",
            "a::other 1 a::leaf",
            "b 1 a::leaf",
            "b 1 a::other",
            "b 2 a",
            "c 1 a",
            "c 1 a::leaf",
        ];
        assert_eq!(uses(&files), expected);
    }

    #[test]
    fn cycles_are_found() {
        let uses = [(0, 1), (1, 2), (2, 0), (2, 3), (4, 4)].into();
        assert_eq!(cycles(&uses), [BTreeSet::from([0, 1, 2])].into());
    }
}
