//! Checks the uses between modules in every crate: they must not form cycles, and must point downwards if the table
//! defines layers.

mod layers;
mod names;
mod table;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use self::table::{CRATES, Crate};
use self::tree::{Arrows, Tree};
use xtask::shell::Shell;
use xtask::tracked;

/// Maximum number of files in a folder, so that each file stays a subject that a reader looks for (ARCHITECTURE.md).
/// The limits may only be lowered; the goal is 70 for the npm package.
const MOST_FILES: [(&str, usize); 4] =
    [("core/src/", 130), ("native/src/", 28), ("relay/src/", 90), ("wasm/ts/", 70)];

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let files = tracked::files(shell)?;
    let mut problems = crowded(&files, &MOST_FILES, |line| shell.print(line));
    // The folder of a crate is everything up to `src`.
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        if let Some(at) = path.find("src/").filter(|at| *at == 0 || path[..*at].ends_with('/')) {
            let folder = path[..at + "src".len()].to_owned();
            crates.entry(folder).or_default().push((path.clone(), shell.read(path)?));
        }
    }
    let mut checked = 0;
    for (folder, sources) in &crates {
        let tree = Tree::read(folder, sources)?;
        problems.extend(problems_of(folder, &tree));
        checked += tree.files.iter().filter(|file| !file.is_test).count();
    }
    for entry in CRATES.iter().filter(|entry| !crates.contains_key(folder_of(entry.root))) {
        problems.push(format!("{}: has layers, but is not the root of a crate", entry.root));
    }
    if !problems.is_empty() {
        bail!("modules violate ARCHITECTURE.md:\n\n{}", problems.join("\n"));
    }
    shell.print(format_args!(
        "{checked} files of {} crates have no cycles, and {} crates respect their layers",
        crates.len(),
        CRATES.len()
    ));
    Ok(())
}

fn folder_of(root: &str) -> &str {
    root.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn problems_of(folder: &str, tree: &Tree) -> Vec<String> {
    let arrows = tree.arrows();
    let mut problems: Vec<_> = tree
        .undeclared()
        .map(|file| format!("{}: no module declares it, so nothing compiles it", file.path))
        .collect();
    problems.extend(circles(folder, tree, &arrows));
    for entry in CRATES.iter().filter(|entry| folder_of(entry.root) == folder) {
        problems.extend(against_table(tree, &arrows, entry));
    }
    problems.extend(beside(folder, tree));
    problems
}

/// Prints the number of files of each folder with a limit, and returns those over the limit.
fn crowded(files: &[String], limits: &[(&str, usize)], mut print: impl FnMut(String)) -> Vec<String> {
    let mut problems = Vec::new();
    for (folder, most) in limits {
        let is_code = |path: &&String| path.ends_with(".rs") || path.ends_with(".ts");
        let count = files.iter().filter(|path| path.starts_with(folder)).filter(is_code).count();
        print(format!("{folder}: {count} files of {most}"));
        if count > *most {
            problems.push(format!(
                "{folder} has {count} files of {most}: merge files that a reader looks for together"
            ));
        }
    }
    problems
}

fn circles(folder: &str, tree: &Tree, arrows: &Arrows) -> Vec<String> {
    let describe = |group: BTreeSet<usize>| {
        let mut text = format!("{folder}: {} files form a cycle\n", group.len());
        for ((from, to), places) in
            arrows.iter().filter(|((from, to), _)| group.contains(from) && group.contains(to))
        {
            let (from, to) = (&tree.files[*from].path, &tree.files[*to].path);
            for (line, names) in places {
                text += &format!("  {from}:{line}: {} of {to}\n", names.join(", "));
            }
        }
        text
    };
    tree::circles(arrows).into_iter().map(describe).collect()
}

/// Checks the uses in a crate against its layers and rules, and that modules and table entries match.
fn against_table(tree: &Tree, arrows: &Arrows, entry: &Crate) -> Vec<String> {
    let mut problems = Vec::new();
    let modules: Vec<_> = tree.files.iter().map(|file| module_name(&file.module)).collect();
    let rules = entry.never.iter().flat_map(|rule| rule.from.iter().chain(rule.to));
    for named in entry.layers.iter().flat_map(|layer| layer.modules).chain(rules) {
        if modules.iter().all(|module| layers::matched(named, module).is_none()) {
            problems.push(format!("{}: the layers contain {named}, which does not exist", entry.root));
        }
    }
    let mut standings = Vec::new();
    for (file, module) in tree.files.iter().zip(&modules) {
        let is_placed = !file.is_test && !file.is_program;
        let standing = is_placed.then(|| layers::standing(entry.layers, module)).transpose();
        standings.push(standing.unwrap_or_else(|error| {
            problems.push(format!("{}: {error}", file.path));
            None
        }));
    }
    for ((from, to), places) in arrows {
        let (Some(above), Some(below)) = (&standings[*from], &standings[*to]) else { continue };
        let is_forbidden =
            entry.never.iter().any(|rule| layers::forbids(rule, &modules[*from], &modules[*to]));
        if above.may_use(below) && !is_forbidden {
            continue;
        }
        for (line, names) in places {
            problems.push(format!(
                "{}:{line}: {} (layer {}) must not use {} of {} (layer {})",
                tree.files[*from].path,
                modules[*from],
                above.layer,
                names.join(", "),
                modules[*to],
                below.layer,
            ));
        }
    }
    problems
}

/// Returns the places that use another crate outside of the module reserved for it, under any name.
fn beside(folder: &str, tree: &Tree) -> Vec<String> {
    let rules: Vec<_> = table::foreign().into_iter().filter(|rule| folder_of(rule.root) == folder).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let is_below = |path: &[String], outer: &[&str]| {
        path.len() >= outer.len() && outer.iter().zip(path).all(|(a, b)| a == b)
    };
    let mut problems = BTreeSet::new();
    for (file, line, path, meanings) in tree.foreign() {
        let module = module_name(&file.module);
        for rule in &rules {
            let is_there = layers::matched(rule.only_in, &module).is_some();
            if !is_there && meanings.iter().any(|meaning| is_below(meaning, rule.path)) {
                problems.insert(format!(
                    "{}:{line}: {} may be used in {} only",
                    file.path,
                    path.join("::"),
                    rule.only_in
                ));
            }
        }
    }
    problems.into_iter().collect()
}

fn module_name(path: &[String]) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

#[cfg(test)]
mod tests {
    use super::table::{Layer, Never};
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let lib = ("src/lib.rs", "mod a;\nmod b;\nmod c;\n");
        let all = [lib].into_iter().chain(files.iter().copied());
        let files: Vec<_> = all.map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        Tree::read("src", &files).unwrap()
    }

    /// Returns the uses in a crate as `from line to`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let tree = tree(files);
        let name = |file: usize| module_name(&tree.files[file].module);
        let arrows = tree.arrows();
        let lines = arrows.iter().flat_map(|((from, to), places)| {
            places.keys().map(|line| format!("{} {line} {}", name(*from), name(*to)))
        });
        let mut lines: Vec<_> = lines.collect();
        lines.sort();
        lines
    }

    #[test]
    fn a_folder_over_its_limit_is_found() {
        let files = ["a/src/one.rs", "a/src/two.ts", "a/src/README.md", "b/src/one.rs"].map(str::to_owned);
        let problems = crowded(&files, &[("a/src/", 1), ("b/src/", 1)], |_| {});
        assert_eq!(problems, ["a/src/ has 2 files of 1: merge files that a reader looks for together"]);
    }

    #[test]
    fn tests_are_ignored() {
        let a = "pub struct A;
            #[cfg(test)] use crate::b::B;
            #[cfg(test)] mod tests { use crate::b::B; }
            #[cfg(test)] mod model_tests;
            #[cfg(test)] #[path = \"more_tests.rs\"] mod others;
            #[cfg(all(test, feature = \"x\"))] mod more { use crate::b::B; }
            #[cfg(test)] impl A { fn f(b: crate::b::B) {} }
            impl A { #[cfg(test)] fn g(b: crate::b::B) {} }
            struct F { #[cfg(test)] b: crate::b::B, d: u8 }
            #[test] fn h() { crate::b::f(); }";
        let files = [
            ("src/a.rs", a),
            ("src/a/model_tests.rs", "use crate::b::B;"),
            ("src/more_tests.rs", "use crate::b::B;"),
            ("src/main.rs", "mod args;\nuse args::Args;"),
            ("src/args.rs", "pub struct Args;"),
            ("src/b.rs", "use super::a::A;\npub struct B(A);\npub fn f() {}"),
            ("src/c.rs", "#[cfg(any(test, feature = \"x\"))]\nuse super::a::A;"),
        ];
        assert_eq!(arrows(&files), ["b 1 a", "c 2 a", "main 2 args"]);
        let tree = tree(&files);
        assert_eq!(tree.undeclared().count(), 0);
        let of_program = tree.files.iter().filter(|file| file.is_program).map(|file| file.path.as_str());
        assert_eq!(of_program.collect::<Vec<_>>(), ["src/main.rs", "src/args.rs"]);
    }

    #[test]
    fn a_file_is_declared_by_its_own_parent() {
        let files = [
            ("src/a.rs", "#[cfg(test)] mod tests;\n#[path = \"c/d.rs\"] mod e;"),
            ("src/a/tests.rs", ""),
            ("src/b/mod.rs", "mod inner { mod f; }\n#[path = \"../c/g.rs\"] mod g;"),
            ("src/b/inner/f.rs", ""),
            ("src/b/tests.rs", ""),
            ("src/c.rs", ""),
            ("src/c/d.rs", ""),
            ("src/c/g.rs", ""),
        ];
        let tree = tree(&files);
        let undeclared: Vec<_> = tree.undeclared().map(|file| file.path.as_str()).collect();
        assert_eq!(undeclared, ["src/b/tests.rs"]);
    }

    #[test]
    fn re_exports_lead_to_the_file_that_defines() {
        let parent = "mod leaf;\nmod other;\npub(crate) use leaf::*;\npub use self::other::Other as Renamed;\n\
             pub struct Own;\nimpl Own { const LIMIT: u8 = 1; }";
        let files = [
            ("src/a/mod.rs", parent),
            ("src/a/leaf.rs", "use super::Own;\npub struct Leaf;\npub enum Kind { One }"),
            ("src/a/other.rs", "use super::{Leaf, Own};\npub struct Other;"),
            ("src/b.rs", "use crate::a::{Renamed, Kind::One};\nconst A: u8 = crate::a::Own::LIMIT;"),
            ("src/c.rs", "use crate::a;\nfn f(_: a::Leaf, _: a::Renamed) {}"),
        ];
        let expected = [
            "a::leaf 1 a",
            "a::other 1 a",
            "a::other 1 a::leaf",
            "b 1 a::leaf",
            "b 1 a::other",
            "b 2 a",
            "c 1 a",
            "c 2 a::leaf",
            "c 2 a::other",
        ];
        assert_eq!(arrows(&files), expected);
    }

    #[test]
    fn paths_in_macros_inline_modules_and_functions_count() {
        let files = [
            (
                "src/a.rs",
                "mod inner { pub use crate::b::B; }\nfn f() {\n  assert!(matches!(x.b, Some(inner::B::Y)), (0..crate::c::N));\n}",
            ),
            ("src/b.rs", "pub enum B { X }\nfn f() {\n  use crate::c::*;\n  g();\n}"),
            ("src/c.rs", "pub(in super) fn g() {}\npub const N: u8 = 1;\nfn h() { let b = 1; b.f(); }"),
        ];
        assert_eq!(arrows(&files), ["a 1 b", "a 3 c", "b 3 c"]);
    }

    #[test]
    fn a_cycle_is_found_with_its_files_and_lines() {
        let files = [
            ("src/a.rs", "use crate::b::B;\npub struct A(B);"),
            ("src/b.rs", "\nuse super::c;\npub struct B;\nfn f(c: c::C) {}"),
            ("src/c.rs", "pub struct C;\nfn f(a: crate::a::A) {}"),
        ];
        assert_eq!(
            problems_of("src", &tree(&files)),
            ["src: 3 files form a cycle\n  \
              src/a.rs:1: crate::b::B of src/b.rs\n  \
              src/b.rs:2: super::c of src/c.rs\n  \
              src/c.rs:2: crate::a::A of src/a.rs\n"]
        );
    }

    #[test]
    fn uses_that_violate_the_table_are_found() {
        const TABLE: Crate = Crate {
            root: "src/lib.rs",
            layers: &[
                Layer::together(&["c", "gone"]),
                Layer::apart(&["a", "b"]),
                Layer::together(&["c::high", "crate"]),
            ],
            never: &[Never { from: &["b"], to: &["c"] }],
        };
        let tree = tree(&[
            ("src/a.rs", "use crate::b::B;\nuse crate::c::C;"),
            ("src/b.rs", "use crate::c::C;\npub struct B;"),
            ("src/c.rs", "mod high;\nmod new;\npub struct C;\nuse crate::b::B;"),
            ("src/c/high.rs", "use crate::a;"),
            ("src/c/new.rs", ""),
        ]);
        assert_eq!(
            against_table(&tree, &tree.arrows(), &TABLE),
            [
                "src/lib.rs: the layers contain gone, which does not exist",
                "src/c/new.rs: c::new has no entry of its own, but c has files in several layers",
                "src/a.rs:1: a (layer 1) must not use crate::b::B of b (layer 1)",
                "src/b.rs:1: b (layer 1) must not use crate::c::C of c (layer 0)",
                "src/c.rs:4: c (layer 0) must not use crate::b::B of b (layer 1)",
            ]
        );
    }

    #[test]
    fn a_crate_reserved_for_a_module_is_found_under_any_name() {
        let outside = [
            (
                "src/a.rs",
                "use embassy_net as n;\nfn f() { n::udp::bind() }\nfn g() { super::b::other::udp::bind() }",
            ),
            ("src/b.rs", "pub use embassy_net as other;"),
            ("src/c.rs", "use embassy_net::*;\nfn f() { udp::bind() }\nfn g() { tcp::bind() }"),
            ("src/socket.rs", "use embassy_net::udp;"),
        ];
        assert_eq!(
            beside("embedded/src", &tree(&outside)),
            [
                "src/a.rs:2: n::udp::bind may be used in socket only",
                "src/a.rs:3: super::b::other::udp::bind may be used in socket only",
                "src/c.rs:2: udp::bind may be used in socket only",
            ]
        );
    }
}
