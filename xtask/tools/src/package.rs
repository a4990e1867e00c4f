//! Registry packages as their users get them: packed, unpacked side by side without the rest of the repository, and
//! compiled with the examples of their READMEs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use toml::Table;

use xtask::artifacts;
use xtask::files;
use xtask::shell::Shell;
use xtask::tracked;

/// Files that every package needs in addition to its code.
const REQUIRED: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// The manifest, and files that cargo adds.
const OF_CARGO: [&str; 4] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig"];
/// The folders of packages with the endings of their files, by the beginning of a package's name.
const FOLDERS: [(&str, &str, &[&str]); 13] = [
    ("", "src/", &[".rs"]),
    ("", "examples/", &[".rs"]),
    ("", "tests/", &[".rs"]),
    ("", "tests/documents/", &[".md"]),
    ("", "tests/vectors/", &[".json"]),
    ("", "tests/proptest-regressions/", &[".txt"]),
    ("rakwire-cli", "tests/it/", &[".sh"]),
    ("rakwire-extras", "src/sqlite_log/", &[".sql"]),
    ("rakwire-native", "tests/README.md", &[""]),
    ("rakwire-relay", "examples/", &[".mjs"]),
    (
        "rakwire-relay",
        "packaging/",
        &[".cfg", ".conf", ".json", ".service", ".socket", ".toml", ".yml", "file"],
    ),
    ("rakwire-relay", "packaging/debian/", &["conffiles", "control", "postinst", "postrm", "prerm"]),
    ("rakwire-wasm", "src/npm/texts/", &[".txt"]),
];
/// How large the file of a package may be in bytes. The largest has 600 KB, most of them tests and recorded packets.
const LARGEST: u64 = 700_000;
/// The path of a clone in the documents, relative to a user's project.
const CLONE: &str = "../rakwire/";

/// Selects whether packages may contain uncommitted files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    /// The working tree: while a change is being made.
    Any,
    /// Only committed files: for a release.
    Committed,
}

/// A published crate.
#[derive(Deserialize)]
pub(crate) struct Published {
    pub(crate) name: String,
    version: String,
    manifest_path: PathBuf,
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
    description: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Published {
    /// Returns the name of its folder when unpacked.
    fn folder_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Returns its folder in the repository.
    fn folder<'p>(&'p self, root: &Path) -> Option<&'p str> {
        self.manifest_path.parent()?.strip_prefix(root).ok()?.to_str()
    }

    pub(crate) fn has_library(&self) -> bool {
        ["lib", "rlib", "proc-macro"].into_iter().any(|kind| self.has_target(kind))
    }

    /// Checks requirements that the registry enforces only at the upload, and that the hosted documentation has the
    /// features that the stage `doc` checks.
    fn check_manifest(&self) -> Result<()> {
        let is_few = |values: &[String]| (1..=5).contains(&values.len());
        if self.description.is_none() || !is_few(&self.keywords) || !is_few(&self.categories) {
            bail!(
                "the manifest of {} needs a description and one to five keywords and categories",
                self.name
            );
        }
        if let Some(word) = self.keywords.iter().find(|word| !is_keyword(word)) {
            bail!("the registry refuses the keyword {word:?} of {}", self.name);
        }
        let hosted = self.metadata.as_ref().and_then(|metadata| metadata.pointer("/docs/rs/all-features"));
        if self.has_library() && hosted != Some(&Value::Bool(true)) {
            bail!("[package.metadata.docs.rs] of {} has no `all-features = true`", self.name);
        }
        Ok(())
    }

    /// A file that neither this package nor cargo needs there.
    fn unexpected<'l>(&self, listed: &'l str) -> Option<&'l str> {
        listed.lines().find(|file| {
            let fits = |(name, folder, endings): &(&str, &str, &[&str])| {
                let is_there = self.name.starts_with(name) && file.starts_with(folder);
                is_there && endings.iter().any(|ending| file.ends_with(ending))
            };
            !REQUIRED.contains(file) && !OF_CARGO.contains(file) && !FOLDERS.iter().any(fits)
        })
    }

    fn has_target(&self, kind: &str) -> bool {
        self.targets.iter().flat_map(|target| &target.kind).any(|found| found == kind)
    }
}

/// Whether the registry takes a keyword: 20 characters of ASCII at most, of which the first is a letter or a digit.
fn is_keyword(word: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
    word.len() <= 20 && word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(is_inner)
}

/// The stage of `cargo xtask ci`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let packages = published(shell)?;
    let folder = unpacked(shell, &packages, Tree::Any)?;
    cargo(shell, &folder, ["check", "--workspace", "--all-targets", "--all-features"])
}

/// Packs for a release, runs the tests from the packages, and installs the programs.
pub(crate) fn test(shell: &Shell, packages: &[Published]) -> Result<()> {
    let folder = unpacked(shell, packages, Tree::Committed)?;
    cargo(shell, &folder, ["test", "--workspace", "--all-features"])?;
    let root = folder.with_file_name("installed").to_string_lossy().into_owned();
    for package in packages.iter().filter(|package| package.has_target("bin")) {
        let args = ["install", "--debug", "--force", "--root", &root, "--path", &package.folder_name()];
        cargo(shell, &folder, args)?;
    }
    Ok(())
}

/// Returns the published crates of the workspace.
pub(crate) fn published(shell: &Shell) -> Result<Vec<Published>> {
    let packages = artifacts::metadata(shell)?["packages"].take();
    let packages: Vec<Published> =
        serde_json::from_value(packages).context("`cargo metadata` reports no packages")?;
    Ok(packages.into_iter().filter(|package| package.publish.is_none()).collect())
}

/// Packs all crates and unpacks them into a workspace in which they find each other as in the registry, with a project
/// for each README with instructions to add its crate. The builds use the target folder and profiles of the repository,
/// so that the dependencies are already compiled.
fn unpacked(shell: &Shell, packages: &[Published], tree: Tree) -> Result<PathBuf> {
    packages.iter().try_for_each(Published::check_manifest)?;
    for package in packages {
        let args = ["package", "--list", "--allow-dirty", "--package", &package.name];
        let listed = shell.cmd("cargo", args).output()?;
        if !listed.status.success() {
            bail!("cargo lists no files of {}", package.name);
        }
        if let Some(file) = package.unexpected(&listed.stdout) {
            bail!("the package of {} would have {file}: exclude it, or add it to FOLDERS", package.name);
        }
    }
    check_documents(shell, packages)?;
    let names = packages.iter().flat_map(|package| ["--package", package.name.as_str()]);
    let dirty = (tree == Tree::Any).then_some("--allow-dirty");
    shell.cmd("cargo", ["package", "--quiet", "--no-verify"].into_iter().chain(dirty).chain(names)).run()?;
    let packed = artifacts::target_dir(shell)?.join("package");
    let folder = packed.join("workspace");
    files::empty_folder(&folder)?;
    for package in packages {
        unpack(shell, package, &packed, &folder)?;
    }
    files::write(&folder.join("Cargo.lock"), &shell.read("Cargo.lock")?)?;
    let users = packages.iter().filter(|package| has_example(&folder, package)).collect::<Vec<_>>();
    let members = packages.iter().map(Published::folder_name).chain(users.iter().map(|user| user_name(user)));
    files::write(&folder.join("Cargo.toml"), &workspace(&shell.read("Cargo.toml")?, packages, members)?)?;
    for user in &users {
        files::write(&folder.join(user_name(user)).join("src/lib.rs"), "")?;
        let manifest =
            format!("[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n", user_name(user));
        files::write(&folder.join(user_name(user)).join("Cargo.toml"), &manifest)?;
    }
    for user in users {
        follow_readme(shell, &folder, user, packages)?;
    }
    Ok(folder)
}

/// Checks the installation lines of the documents: the crates of their lines for a manifest, and the packed files of
/// npm.
fn check_documents(shell: &Shell, packages: &[Published]) -> Result<()> {
    let root = shell.path(".").canonicalize()?;
    let crates: Vec<_> = packages
        .iter()
        .map(|package| (&*package.name, &*package.version, package.folder(&root).unwrap_or_default()))
        .collect();
    let manifest: Value = serde_json::from_str(&shell.read("wasm/package.json")?)?;
    let npm = manifest["version"].as_str().context("wasm/package.json has no version")?;
    let mut wrong = Vec::new();
    for document in tracked::files(shell)?.iter().filter(|file| file.ends_with(".md")) {
        let found = installs(&shell.read(document)?, &crates, npm);
        wrong.extend(found.into_iter().map(|(line, problem)| format!("{document}:{line}: {problem}")));
    }
    if !wrong.is_empty() {
        bail!("documents install what does not exist:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// The lines of a document that install a crate or a packed file that there is not. A crate has a name, a version and a folder.
fn installs(text: &str, crates: &[(&str, &str, &str)], npm: &str) -> Vec<(usize, String)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let mut wrong = Vec::new();
    let mut in_manifest = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_manifest = line.trim() == "```toml";
        }
        for file in line.split(|c| !is_name(c)).filter_map(|word| word.strip_suffix(".tgz")) {
            let version = file.strip_prefix("create-").unwrap_or(file).strip_prefix("rakwire-");
            if version.is_some_and(|version| version != npm && version != "VERSION") {
                wrong.push((number, format!("{file}.tgz is not of version {npm}")));
            }
        }
        let is_ours = in_manifest && line.starts_with("rakwire");
        let Some(table) = is_ours.then(|| line.parse::<Table>().ok()).flatten() else { continue };
        for (name, value) in table {
            let known = crates.iter().find(|known| known.0 == name);
            let text = |key| value.get(key).and_then(|text| text.as_str());
            let version = value.as_str().or_else(|| text("version"));
            let is_right = known.is_some_and(|(_, newest, folder)| {
                let path = text("path").map(|path| path.strip_prefix(CLONE));
                path.is_none_or(|path| path == Some(folder))
                    && version.is_none_or(|version| format!("{newest}.").starts_with(&format!("{version}.")))
            });
            if !is_right {
                wrong.push((number, format!("no {name} has this path and version")));
            }
        }
    }
    wrong
}

fn unpack(shell: &Shell, package: &Published, packed: &Path, folder: &Path) -> Result<()> {
    let file = packed.join(format!("{}.crate", package.folder_name()));
    let size = file.metadata().with_context(|| format!("cargo packed no {}", file.display()))?.len();
    // Cargo gives all files the same date, so that changed files would count as built.
    let args = ["--extract", "--gzip", "--touch", "--file", &*file.to_string_lossy()];
    shell.cmd("tar", args.into_iter().chain(["--directory", &*folder.to_string_lossy()])).run()?;
    let is_there = |name: &&&str| folder.join(package.folder_name()).join(name).is_file();
    if let Some(missing) = REQUIRED.iter().find(|name| !is_there(name)) {
        bail!("the package of {} has no {missing}", package.name);
    }
    if size > LARGEST {
        bail!("the package of {} has {size} bytes, more than {LARGEST}", package.name);
    }
    shell.print(format_args!("{}: {} KB", package.name, size / 1_000));
    Ok(())
}

fn cargo<'a>(shell: &Shell, folder: &Path, args: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let target = artifacts::target_dir(shell)?;
    shell.cmd("cargo", args).folder(folder).env("CARGO_TARGET_DIR", target).run()
}

/// Returns the manifest of the workspace, with the repository's profiles.
fn workspace(root: &str, packages: &[Published], members: impl Iterator<Item = String>) -> Result<String> {
    let profiles = root.find("[profile.").context("Cargo.toml has no profiles")?;
    let patches = packages
        .iter()
        .map(|package| format!("{} = {{ path = {:?} }}\n", package.name, package.folder_name()));
    Ok(format!(
        "[workspace]\nresolver = \"3\"\nmembers = {:?}\n\n[patch.crates-io]\n{}\n{}",
        members.collect::<Vec<_>>(),
        patches.collect::<String>(),
        &root[profiles..]
    ))
}

fn user_name(package: &Published) -> String {
    format!("user-of-{}", package.name)
}

fn readme(folder: &Path, package: &Published) -> Result<String> {
    Ok(fs::read_to_string(folder.join(package.folder_name()).join("README.md"))?)
}

fn has_example(folder: &Path, package: &Published) -> bool {
    readme(folder, package).is_ok_and(|readme| readme.contains("\ncargo add --path "))
}

/// Adds the crates of a README and its examples to a user's project.
fn follow_readme(shell: &Shell, folder: &Path, package: &Published, packages: &[Published]) -> Result<()> {
    let (readme, user) = (readme(folder, package)?, folder.join(user_name(package)));
    let root = shell.path(".").canonicalize()?;
    for line in readme.lines().filter_map(|line| line.strip_prefix("cargo add ")) {
        let command = line.split(" #").next().unwrap_or(line);
        let words = command.split_whitespace().map(|word| match word.strip_prefix(CLONE) {
            Some(named) => {
                let found = packages.iter().find(|package| package.folder(&root) == Some(named));
                let found = found
                    .with_context(|| format!("there is no published crate in {named}: `cargo add {line}`"));
                Ok(format!("../{}", found?.folder_name()))
            }
            None => Ok(word.to_owned()),
        });
        let words = words.collect::<Result<Vec<_>>>()?;
        let args = ["add", "--quiet", "--offline"].into_iter().chain(words.iter().map(String::as_str));
        cargo(shell, &user, args)?;
    }
    for (number, program) in programs(&readme).iter().enumerate() {
        files::write(&user.join(format!("examples/readme_{number}.rs")), program)?;
    }
    Ok(())
}

/// Returns the Rust examples of a README, each as a program.
fn programs(readme: &str) -> Vec<String> {
    let blocks = readme.split("\n```rust\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or(rest));
    blocks.map(program).collect()
}

fn program(block: &str) -> String {
    // Lines that rustdoc hides belong to the example.
    let lines: Vec<_> = block.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
    if block.contains("fn main(") {
        return lines.join("\n") + "\n";
    }
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.starts_with("Ok::<(), ")).collect();
    format!(
        "async fn readme() -> Result<(), Box<dyn std::error::Error>> {{\n{}\nOk(())\n}}\n\nfn main() {{\n    drop(readme());\n}}\n",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, keywords: &[&str]) -> Published {
        serde_json::from_value(serde_json::json!({
            "name": name, "version": "0.1.0", "manifest_path": "/x/Cargo.toml", "publish": null, "targets": [],
            "description": "a", "keywords": keywords, "categories": ["embedded"], "metadata": null,
        }))
        .unwrap()
    }

    #[test]
    fn keywords_that_the_registry_refuses_are_found() {
        let is_taken = |keywords: &[&str]| package("rakwire", keywords).check_manifest().is_ok();
        assert!(is_taken(&["no_std", "2d", "c++", "twenty-characters-ok"]));
        let bad: [&[&str]; 6] =
            [&[], &["a"; 6], &["two words"], &["-a"], &["\u{e9}"], &["twenty-one-characters"]];
        for keywords in bad {
            assert!(!is_taken(keywords), "{keywords:?}");
        }
    }

    #[test]
    fn stray_files_of_a_package_are_found() {
        let good = "Cargo.toml\nCargo.toml.orig\nLICENSE-MIT\nsrc/a/b.rs\ntests/vectors/a.json";
        assert_eq!(package("rakwire", &[]).unexpected(good), None);
        assert_eq!(package("rakwire-relay", &[]).unexpected("packaging/relay.toml"), None);
        for stray in ["notes.md", "src/key.pem", "packaging/relay.toml", "corpus/a.rs", "tests/it/a.sh"] {
            assert_eq!(package("rakwire", &[]).unexpected(&format!("{good}\n{stray}")), Some(stray));
        }
    }

    #[test]
    fn documents_install_crates_and_files_that_exist() {
        let problems = |text: &str| {
            let crates = [("rakwire", "0.2.1", "core"), ("rakwire-native", "0.2.1", "native")];
            let found = installs(text, &crates, "0.2.1");
            found.into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        let good = "npm install ../rakwire-0.2.1.tgz, rakwire-VERSION.tgz\n```toml\nrakwire = { path = \"../rakwire/core\" }\n\
                    rakwire-native = \"0.2\"\nother = \"9\"\n```\nrakwire = \"9\"\n";
        assert_eq!(problems(good), [0; 0]);
        let bad = "npx ./create-rakwire-0.2.0.tgz\n```toml\nrakwire = { path = \"../rakwire/native\" }\nrakwire = \"0.3\"\n\
                   rakwire-gone = { path = \"../rakwire/core\" }\nrakwire = { version = \"0.1\", features = [] }\n```";
        assert_eq!(problems(bad), [1, 3, 4, 5, 6]);
    }

    #[test]
    fn examples_become_programs() {
        let readme =
            "a\n```rust\nlet a = b()?;\n# Ok::<(), E>(())\n```\n\n```rust\n# fn main() {\nc();\n# }\n```\n";
        let programs = programs(readme);
        assert!(programs[0].contains("{\nlet a = b()?;\nOk(())\n}"), "{}", programs[0]);
        assert_eq!(programs[1..], ["fn main() {\nc();\n}\n"]);
    }
}
