//! Checks the files of the repository. Uses between modules must form no cycles, and point downwards in crates with
//! layers. Folders and files have size limits. Only one module may create files with secrets.

mod layers;
pub(crate) mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use anyhow::{Result, bail};
use regex::Regex;
use xtask::shell::Shell;
use xtask::site::resolved;
use xtask::tracked;

use self::layers::{CRATES, Layers};
use self::uses::{Tree, cycles, regex};

/// The maximum number of files in a folder, so that each file stays a subject that a reader looks for
/// (ARCHITECTURE.md). These limits may only be lowered.
const MAX_FILES: [(&str, usize); 4] =
    [("core/src/", 130), ("native/src/", 28), ("relay/src/", 90), ("wasm/ts/", 70)];
/// Maximum number of lines of Rust in `xtask/`; the goal is 7,000.
const MAX_LINES_OF_XTASK: usize = 11_550;
/// The maximum number of lines of a file with its tests, and the exceptions.
const LONGEST: usize = 700;
const LONGER: [(&str, usize); 10] = [
    // Each is a single file, because users copy it.
    ("csharp/Rakwire.cs", 1_500),
    ("capi/include/rakwire.h", 1_000),
    ("capi/include/rakwire/raknet_compat.h", 800),
    // Tests of one subject, which are not split yet.
    ("core/tests/it/raknet/path_mtu.rs", 1_000),
    ("core/tests/it/raknet/secure.rs", 750),
    ("relay/tests/it/webtransport.rs", 850),
    ("relay/tests/it/operations.rs", 750),
    ("snowfight/src/server/tests.rs", 830),
    ("plugins/tests/it/calls.rs", 820),
    ("cli/tests/it/commands.rs", 760),
];
/// The folders of crates that keep keys or the traffic of users in files, and the modules that may create such files.
const PRIVATE: [&str; 7] = [
    "relay/src",
    "native/src",
    "native/extras/src",
    "cli/src",
    "udp/src",
    "plugins/src",
    "snowfight/server/src",
];
const MAKERS: [&str; 2] = ["udp/src/private_file.rs", "plugins/src/directory/store"];
static MAKES_FILE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"\bfs::(?:write|copy)\b|\bFile::(?:create|create_new|options)\b|\bOpenOptions\b|\btokio::fs\b")
});
/// Items that only one module of a crate may use: the relay opens no connections, except in the tests of its front.
const FOREIGN: [(&str, &str, &str); 2] = [
    (
        "relay/src",
        r"\brakwire::(?:(?:raknet|game_protocol)::(?:Peer\b|\{[^}]*\bPeer\b)|endpoint\b)",
        "relay/src/front/tests",
    ),
    ("embedded/src", r"\bembassy_net::udp\b", "embedded/src/socket"),
];
static SCRIPT_USE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(?m)^(?:import|export)\b[^;'"]*?\bfrom "(\.[^"]+)\.js";"#));

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let files = tracked::files(shell)?;
    let mut problems = sizes(shell, &files)?;
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        if let Some((folder, _)) = path.split_once("/src/") {
            crates.entry(format!("{folder}/src")).or_default().push((path.clone(), shell.read(path)?));
        }
    }
    let layers: BTreeMap<_, _> = CRATES.into();
    problems.extend(
        layers.keys().filter(|name| !crates.contains_key(**name)).map(|name| format!("there is no {name}")),
    );
    let count = crates.len();
    for (folder, sources) in crates {
        let layers = layers.get(&*folder).map(|text| Layers::parse(text)).transpose()?;
        problems.extend(of_crate(&folder, &Tree::new(&folder, sources), layers.as_ref()));
    }
    problems.extend(of_scripts(shell, &files)?);
    if !problems.is_empty() {
        bail!("files violate ARCHITECTURE.md:\n\n{}", problems.join("\n"));
    }
    shell.print(format_args!(
        "{count} crates and wasm/ts have no cycles, and {} respect their layers",
        layers.len()
    ));
    Ok(())
}

/// Prints the sizes with limits, and returns those over their limits.
fn sizes(shell: &Shell, files: &[String]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut check = |what: &str, found: usize, most: usize, unit: &str| {
        if found > most {
            problems.push(format!("{what} has {found} {unit}, more than {most}"));
        }
    };
    let is_code = |path: &&String| {
        [".rs", ".ts", ".mjs", ".js", ".cs", ".c", ".h", ".hpp", ".cpp", ".py"]
            .iter()
            .any(|end| path.ends_with(end))
    };
    let mut xtask = 0;
    for path in files.iter().filter(is_code) {
        let lines = shell.read(path)?.lines().count();
        let longer = LONGER.iter().find(|(longer, _)| longer == path);
        check(path, lines, longer.map_or(LONGEST, |(_, most)| *most), "lines");
        xtask += if path.starts_with("xtask/") && path.ends_with(".rs") { lines } else { 0 };
    }
    check("xtask", xtask, MAX_LINES_OF_XTASK, "lines");
    shell.print(format_args!("xtask: {xtask} lines of {MAX_LINES_OF_XTASK}"));
    for (folder, most) in MAX_FILES {
        let count = files.iter().filter(|path| path.starts_with(folder)).filter(is_code).count();
        shell.print(format_args!("{folder}: {count} files of {most}"));
        check(folder, count, most, "files");
    }
    Ok(problems)
}

fn of_crate(folder: &str, tree: &Tree, layers: Option<&Layers>) -> Vec<String> {
    let undeclared = tree.undeclared();
    let mut problems: Vec<_> = undeclared
        .map(|file| format!("{}: no module declares it, so nothing compiles it", file.path))
        .collect();
    for file in tree.files.iter().filter(|file| !file.is_test) {
        if PRIVATE.contains(&folder)
            && !MAKERS.iter().any(|maker| file.path.starts_with(maker))
            && MAKES_FILE.is_match(&file.code)
        {
            problems.push(format!("{}: creates a file other than by {}", file.path, MAKERS.join(" or ")));
        }
    }
    for (_, pattern, only_in) in FOREIGN.iter().filter(|(of, ..)| *of == folder) {
        let pattern = regex(pattern);
        let foreign =
            tree.files.iter().filter(|file| !file.path.starts_with(only_in) && pattern.is_match(&file.code));
        problems.extend(foreign.map(|file| format!("{}: only {only_in} may contain this use", file.path)));
    }
    let uses = tree.uses();
    let place = |(from, to): (usize, usize)| {
        let line = uses.get(&(from, to)).copied().unwrap_or_default();
        format!("{}:{line}: uses {}", tree.files[from].path, tree.files[to].path)
    };
    problems.extend(in_cycles(&uses.keys().copied().collect(), place));
    let Some(layers) = layers else { return problems };
    let name = |id: usize| match tree.files[id].module.join("::") {
        name if name.is_empty() => "crate".to_owned(),
        name => name,
    };
    let is_placed = |id: &usize| !tree.files[*id].is_test && !tree.files[*id].is_program;
    let placed: BTreeSet<_> = (0..tree.files.len()).filter(is_placed).collect();
    let modules: Vec<_> = placed.iter().map(|id| name(*id)).collect();
    problems.extend(
        layers
            .unused(&modules)
            .map(|entry| format!("{folder}: the layers contain {entry}, which does not exist")),
    );
    problems.extend(
        modules.iter().filter_map(|module| layers.standing(module).err()).map(|error| error.to_string()),
    );
    let uses = uses.keys().filter(|(from, to)| placed.contains(from) && placed.contains(to));
    let wrong = uses.filter(|(from, to)| matches!(layers.allow(&name(*from), &name(*to)), Ok(false)));
    problems.extend(wrong.map(|pair| format!("{}, which the layers forbid", place(*pair))));
    problems
}

/// Describes each cycle by the uses in it.
fn in_cycles(uses: &BTreeSet<(usize, usize)>, place: impl Fn((usize, usize)) -> String) -> Vec<String> {
    let describe = |group: BTreeSet<usize>| {
        let inside = uses.iter().filter(|(from, to)| group.contains(from) && group.contains(to));
        let lines: Vec<_> = inside.map(|pair| format!("  {}", place(*pair))).collect();
        format!("{} files form a cycle\n{}", group.len(), lines.join("\n"))
    };
    cycles(uses).into_iter().map(describe).collect()
}

/// Returns the cycles of imports, of types too, in the TypeScript of the npm package.
fn of_scripts(shell: &Shell, files: &[String]) -> Result<Vec<String>> {
    let scripts: Vec<_> =
        files.iter().filter(|path| path.starts_with("wasm/ts/") && path.ends_with(".ts")).collect();
    let mut uses = BTreeSet::new();
    for (id, path) in scripts.iter().enumerate() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for found in SCRIPT_USE.captures_iter(&shell.read(path)?) {
            let used = resolved(folder, &format!("{}.ts", &found[1]));
            uses.extend(scripts.iter().position(|path| **path == used).map(|used| (id, used)));
        }
    }
    Ok(in_cycles(&uses, |(from, to)| format!("{} imports {}", scripts[from], scripts[to])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_violations_cycles_and_unsafe_file_creation_are_found() {
        let file = |path: &str, text: &str| (format!("udp/src/{path}.rs"), text.to_owned());
        let sources = vec![
            file("lib", "mod a;\nmod b;\nmod private_file;"),
            file("a", "use crate::b::B;\npub struct A;\nfn f() {\n    std::fs::write(\"key\", \"\");\n}"),
            file("b", "use crate::a::A;\npub struct B;"),
            file("private_file", "use std::fs::OpenOptions;"),
        ];
        let layers = Layers::parse("private_file a\nb\ncrate").unwrap();
        let expected = [
            "udp/src/a.rs: creates a file other than by udp/src/private_file.rs or plugins/src/directory/store",
            "2 files form a cycle\n  udp/src/a.rs:1: uses udp/src/b.rs\n  udp/src/b.rs:1: uses udp/src/a.rs",
            "udp/src/a.rs:1: uses udp/src/b.rs, which the layers forbid",
        ];
        assert_eq!(of_crate("udp/src", &Tree::new("udp/src", sources), Some(&layers)), expected);
    }

    #[test]
    fn imports_of_scripts_are_read() {
        let text = "import { A } from \"./a.js\";\nimport type {\n  B,\n} from \"../b/c.js\";\nexport * from \"./d.js\";\nimport x from \"y\";";
        let found: Vec<_> = SCRIPT_USE.captures_iter(text).map(|found| found[1].to_owned()).collect();
        assert_eq!(found, ["./a", "../b/c", "./d"]);
    }
}
