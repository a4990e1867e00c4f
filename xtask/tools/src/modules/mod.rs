//! Checks which module uses which, in every crate: arrows between files run in no circle, and downwards where the
//! table gives layers.

mod arrows;
mod circles;
mod foreign;
mod layers;
mod names;
mod table;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use self::arrows::Arrows;
use self::table::{CRATES, Crate, Foreign, Layer};
use self::tree::Tree;
use xtask::shell::Shell;
use xtask::tracked;

/// The most files of a folder, so that a file stays a subject that a reader looks for (ARCHITECTURE.md). The limits may only be
/// lowered; the goal is 70 for the npm package.
const MOST_FILES: [(&str, usize); 4] =
    [("core/src/", 130), ("native/src/", 49), ("relay/src/", 90), ("wasm/ts/", 75)];

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let files = tracked::files(shell)?;
    let crowded = crowded(&files, &MOST_FILES, |line| shell.print(line));
    let sources: Vec<_> = files.into_iter().filter(|path| is_source(path)).collect();
    let root = shell.path(".");
    let source = |path: &str| fs::read_to_string(root.join(path)).ok();
    let mut reached = BTreeSet::new();
    let mut checked = 0;
    let mut problems = crowded;
    let roots: Vec<_> = sources.iter().filter(|path| is_root(path)).collect();
    for root in &roots {
        let tree = Tree::read(root, &source)?;
        let arrows = arrows::of(&tree);
        problems.extend(circles(root, &tree, &arrows));
        if let Some(entry) = CRATES.iter().find(|entry| entry.root == root.as_str()) {
            problems.extend(against_table(root, &tree, &arrows, entry));
        }
        for rule in &table::foreign(root.as_str()) {
            problems.extend(beside(&tree, rule));
        }
        checked += tree.files.iter().filter(|file| !file.is_test).count();
        reached.extend(tree.files.into_iter().map(|file| file.path));
    }
    for entry in CRATES.iter().filter(|entry| roots.iter().all(|root| root.as_str() != entry.root)) {
        problems.push(format!("{}: has layers, but is the root of no crate", entry.root));
    }
    for path in sources.iter().filter(|path| !reached.contains(path.as_str())) {
        problems.push(format!("{path}: belongs to no crate, so nothing checks what it uses"));
    }
    if !problems.is_empty() {
        bail!("modules are not as ARCHITECTURE.md says:\n\n{}", problems.join("\n"));
    }
    shell.print(format_args!(
        "{checked} files of {} crates use each other in no circle, and {} crates keep to their layers",
        roots.len(),
        CRATES.len()
    ));
    Ok(())
}

/// Prints the number of files of each folder with a limit, and returns those that have more.
fn crowded(files: &[String], limits: &[(&str, usize)], mut print: impl FnMut(String)) -> Vec<String> {
    let mut problems = Vec::new();
    for (folder, most) in limits {
        let is_code = |path: &&String| path.ends_with(".rs") || path.ends_with(".ts");
        let count = files.iter().filter(|path| path.starts_with(folder)).filter(is_code).count();
        print(format!("{folder}: {count} files of {most}"));
        if count > *most {
            problems
                .push(format!("{folder} has {count} files of {most}: join what a reader looks for together"));
        }
    }
    problems
}

/// A Rust file of a library or a program, not of an integration test, an example or a bench.
fn is_source(path: &str) -> bool {
    path.ends_with(".rs") && path.split('/').any(|part| part == "src")
}

/// Whether cargo takes a file for the root of a crate.
fn is_root(path: &str) -> bool {
    let path = Path::new(path);
    let name =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folders: Vec<_> = path.ancestors().skip(1).map(name).collect();
    match folders.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["src", ..] => ["lib.rs", "main.rs"].contains(&name(path).as_str()),
        ["bin", "src", ..] => true,
        [_, "bin", "src", ..] => name(path) == "main.rs",
        _ => false,
    }
}

/// What a crate with layers does against them, and which modules it keeps apart know each other.
fn against_table(root: &str, tree: &Tree, arrows: &Arrows, entry: &Crate) -> Vec<String> {
    let modules: Vec<String> = tree.files.iter().map(|file| module_name(&file.module)).collect();
    let mut problems = against_layers(root, tree, arrows, &modules, entry.layers);
    for rule in entry.never {
        problems.extend(layers::unused_of(rule, &modules).map(|entry| unknown(root, entry)));
        for ((from, to), places) in arrows {
            let (user, used) = (&modules[*from], &modules[*to]);
            if layers::forbids(rule, user, used) {
                let file = &tree.files[*from].path;
                problems.extend(places.iter().map(|(line, names)| {
                    format!("{file}:{line}: {user} must not use {} of {used}", names.join(", "))
                }));
            }
        }
    }
    problems
}

fn unknown(root: &str, entry: &str) -> String {
    format!("{root}: the layers name {entry}, which does not exist")
}

fn circles(root: &str, tree: &Tree, arrows: &Arrows) -> Vec<String> {
    let edges: BTreeSet<_> = arrows.keys().copied().collect();
    let groups = circles::find(tree.files.len(), &edges);
    let describe = |group: &BTreeSet<usize>| {
        let mut text = format!("{root}: {} files use each other in a circle\n", group.len());
        for ((from, to), places) in arrows {
            if group.contains(from) && group.contains(to) {
                let (from, to) = (&tree.files[*from].path, &tree.files[*to].path);
                for (line, names) in places {
                    text += &format!("  {from}:{line}: {} of {to}\n", names.join(", "));
                }
            }
        }
        text
    };
    groups.iter().map(describe).collect()
}

fn against_layers(
    root: &str,
    tree: &Tree,
    arrows: &Arrows,
    modules: &[String],
    layers: &[Layer],
) -> Vec<String> {
    let with_layers = || tree.files.iter().zip(modules).enumerate().filter(|(_, (file, _))| !file.is_test);
    let named: Vec<_> = with_layers().map(|(_, (_, module))| module.clone()).collect();
    let unused = layers::unused(layers, &named);
    let mut problems: Vec<_> = unused.iter().map(|entry| unknown(root, entry)).collect();
    let mut standings = vec![None; modules.len()];
    for (id, (file, module)) in with_layers() {
        match layers::standing(layers, module) {
            Ok(standing) => standings[id] = Some(standing),
            Err(error) => problems.push(format!("{}: {error}", file.path)),
        }
    }
    for ((from, to), places) in arrows {
        let (Some(above), Some(below)) = (&standings[*from], &standings[*to]) else { continue };
        if above.may_use(below) {
            continue;
        }
        let (user, used) = (&modules[*from], &modules[*to]);
        for (line, names) in places {
            problems.push(format!(
                "{}:{line}: {user} (layer {}) must not use {} of {used} (layer {})",
                tree.files[*from].path,
                above.layer,
                names.join(", "),
                below.layer,
            ));
        }
    }
    problems
}

/// Where another crate is named that stands behind a module, under whatever name.
fn beside(tree: &Tree, rule: &Foreign) -> Vec<String> {
    let mut problems = Vec::new();
    for (id, module) in tree.modules.iter().enumerate() {
        let file = &tree.files[module.file];
        let name = module_name(&file.module);
        if name.strip_prefix(rule.only_in).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")) {
            continue;
        }
        let imports = module.imports.iter().map(|import| (&import.path, import.line));
        let mentions = module.mentions.iter().map(|mention| (&mention.path, mention.line));
        for (path, line) in imports.chain(mentions) {
            if foreign::meanings(tree, id, path).iter().any(|meaning| is_below(meaning, rule.path)) {
                let (file, path) = (&file.path, path.join("::"));
                problems.push(format!("{file}:{line}: {path} is for {} only", rule.only_in));
            }
        }
    }
    problems
}

fn is_below(path: &[String], outer: &[&str]) -> bool {
    path.len() >= outer.len() && outer.iter().zip(path).all(|(a, b)| a == b)
}

fn module_name(path: &[String]) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

#[cfg(test)]
mod tests {
    use super::table::Never;
    use super::*;

    fn problems_of(root: &str, tree: &Tree, layers: &'static [Layer]) -> Vec<String> {
        let arrows = arrows::of(tree);
        let mut problems = circles(root, tree, &arrows);
        if !layers.is_empty() {
            problems.extend(against_table(root, tree, &arrows, &Crate { root: "", layers, never: &[] }));
        }
        problems
    }

    const LIB: (&str, &str) = ("src/lib.rs", "mod a;\nmod b;\nmod c;\n");

    #[test]
    fn a_folder_with_more_files_than_its_limit_is_found() {
        let files = ["a/src/one.rs", "a/src/two.ts", "a/src/README.md", "b/src/one.rs"].map(str::to_owned);
        let mut printed = Vec::new();
        let problems = crowded(&files, &[("a/src/", 1), ("b/src/", 1)], |line| printed.push(line));
        assert_eq!(printed, ["a/src/: 2 files of 1", "b/src/: 1 files of 1"]);
        assert_eq!(problems, ["a/src/ has 2 files of 1: join what a reader looks for together"]);
    }

    #[test]
    fn a_circle_is_found_with_its_files_and_lines() {
        let tree = Tree::of_texts(&[
            LIB,
            ("src/a.rs", "use crate::b::B;\npub struct A(B);"),
            ("src/b.rs", "\nuse super::c;\npub struct B;\nfn f(c: c::C) {}"),
            ("src/c.rs", "pub struct C;\nfn f(a: crate::a::A) {}"),
        ]);
        let problems = problems_of("src/lib.rs", &tree, &[]);
        assert_eq!(
            problems,
            ["src/lib.rs: 3 files use each other in a circle\n  \
              src/a.rs:1: crate::b::B of src/b.rs\n  \
              src/b.rs:2: super::c of src/c.rs\n  \
              src/c.rs:2: crate::a::A of src/a.rs\n"]
        );
    }

    #[test]
    fn what_runs_one_way_is_no_circle() {
        let tree = Tree::of_texts(&[
            LIB,
            ("src/a.rs", "use crate::{b::{self, B}, c};\npub struct A(B, b::Other, c::C);"),
            ("src/b.rs", "use super::c::C;\npub struct B(C);\npub struct Other;"),
            ("src/c.rs", "pub struct C;"),
        ]);
        assert!(problems_of("src/lib.rs", &tree, &[]).is_empty());
    }

    #[test]
    fn an_arrow_against_the_layers_is_found() {
        const LAYERS: &[Layer] =
            &[Layer::together(&["c"]), Layer::apart(&["a", "b"]), Layer::together(&["crate"])];
        let below = ("src/c.rs", "pub struct C;");
        let files = [LIB, ("src/a.rs", "use crate::c::C;"), ("src/b.rs", "pub struct B;"), below];
        assert!(problems_of("src/lib.rs", &Tree::of_texts(&files), LAYERS).is_empty());

        let upwards = ("src/c.rs", "\nuse crate::b::B;");
        let problems =
            problems_of("src/lib.rs", &Tree::of_texts(&[LIB, ("src/a.rs", ""), files[2], upwards]), LAYERS);
        assert_eq!(problems, ["src/c.rs:2: c (layer 0) must not use crate::b::B of b (layer 1)"]);

        let aside = ("src/a.rs", "use crate::b::B;");
        let problems = problems_of("src/lib.rs", &Tree::of_texts(&[LIB, aside, files[2], below]), LAYERS);
        assert_eq!(problems, ["src/a.rs:1: a (layer 1) must not use crate::b::B of b (layer 1)"]);
    }

    #[test]
    fn a_module_without_a_layer_and_a_layer_without_a_module_are_found() {
        const LAYERS: &[Layer] = &[Layer::together(&["crate", "a", "b", "gone"])];
        let tree = Tree::of_texts(&[LIB, ("src/a.rs", ""), ("src/b.rs", ""), ("src/c.rs", "")]);
        assert_eq!(
            problems_of("src/lib.rs", &tree, LAYERS),
            ["src/lib.rs: the layers name gone, which does not exist", "src/c.rs: c stands in no layer"]
        );
    }

    #[test]
    fn what_never_may_be_used_is_found_whatever_the_layers_say() {
        const TABLE: Crate = Crate {
            root: "src/lib.rs",
            layers: &[Layer::together(&["a", "b"]), Layer::together(&["c"]), Layer::together(&["crate"])],
            never: &[Never { from: &["c", "gone"], to: &["b"] }],
        };
        let tree = Tree::of_texts(&[
            LIB,
            ("src/a.rs", "use super::b::B;"),
            ("src/b.rs", "pub struct B;"),
            ("src/c.rs", "use super::a;\nuse super::b::B;"),
        ]);
        assert_eq!(
            against_table("src/lib.rs", &tree, &arrows::of(&tree), &TABLE),
            [
                "src/lib.rs: the layers name gone, which does not exist",
                "src/c.rs:2: c must not use super::b::B of b"
            ]
        );
    }

    #[test]
    fn what_stands_behind_a_module_has_no_other_name() {
        const RULE: Foreign = Foreign { root: "src/lib.rs", path: &["net", "udp"], only_in: "a" };
        let tree = Tree::of_texts(&[
            ("src/lib.rs", "mod a;\nmod b;\nmod c;\nuse net as other;\n"),
            ("src/a.rs", "mod part;\nuse net::udp;"),
            ("src/a/part.rs", "use super::udp;\nuse net::udp::Socket;"),
            ("src/b.rs", "use net as n;\nfn f() { n::udp::bind() }\nfn g() { super::other::udp::bind() }"),
            ("src/c.rs", "use net::*;\nfn f() { udp::bind() }\nfn g() { tcp::bind() }"),
        ]);
        assert_eq!(
            beside(&tree, &RULE),
            [
                "src/b.rs:2: n::udp::bind is for a only",
                "src/b.rs:3: super::other::udp::bind is for a only",
                "src/c.rs:2: udp::bind is for a only"
            ]
        );
    }

    #[test]
    fn what_stands_behind_a_module_is_named_nowhere_else() {
        const RULE: Foreign = Foreign { root: "src/lib.rs", path: &["net", "udp"], only_in: "a" };
        let tree = Tree::of_texts(&[
            LIB,
            ("src/a.rs", "use net::udp::Socket;"),
            ("src/b.rs", "use net::Stack;\nfn f() { net::udp::bind() }"),
            ("src/c.rs", "use net::{Stack, udp};"),
        ]);
        assert_eq!(
            beside(&tree, &RULE),
            ["src/b.rs:2: net::udp::bind is for a only", "src/c.rs:1: net::udp is for a only"]
        );
    }

    #[test]
    fn roots_are_told_by_their_places() {
        let roots = ["core/src/lib.rs", "src/main.rs", "a/src/bin/tool.rs", "a/src/bin/tool/main.rs"];
        assert!(roots.into_iter().all(is_root));
        let others = ["core/src/wire/lib.rs", "a/src/bin/tool/part.rs", "a/src/time.rs", "a/tests/main.rs"];
        assert!(!others.into_iter().any(is_root));
        assert!(is_source("a/src/b/c.rs") && !is_source("a/tests/b.rs") && !is_source("a/src/b.md"));
    }
}
