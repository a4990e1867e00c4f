//! The packages as their users have them: unpacked side by side, without the rest of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::archive;
use super::installs::Install;
use super::manifest::Published;
use super::readme;
use xtask::artifacts;
use xtask::shell::Shell;

/// Where they are unpacked, in the folder of packages.
const FOLDER: &str = "workspace";

/// Compiles the packages with their tests and examples, and what the documents tell users to write into manifests. The
/// folder of builds is that of the repository: what the packages need of others is there already.
pub(super) fn check(shell: &Shell, packages: &[Published], installs: &[Install]) -> Result<()> {
    let folder = make(shell, packages, installs)?;
    cargo(shell, &folder, &["check", "--workspace", "--all-targets", "--all-features"])?;
    shell.print(format_args!(
        "{} packages compile with their tests, and {} ways to install",
        packages.len(),
        installs.len()
    ));
    Ok(())
}

/// Runs the tests of the packages, and installs the programs as the documents say.
pub(crate) fn test(shell: &Shell, packages: &[Published], installs: &[Install]) -> Result<()> {
    let folder = make(shell, packages, installs)?;
    cargo(shell, &folder, &["test", "--workspace", "--all-features"])?;
    let root = artifacts::target_dir(shell)?.join("package/installed");
    let root = root.to_string_lossy();
    for package in packages.iter().filter(|package| package.has_program) {
        cargo(
            shell,
            &folder,
            &["install", "--debug", "--force", "--root", &root, "--path", &package.folder_name()],
        )?;
    }
    Ok(())
}

fn cargo(shell: &Shell, folder: &Path, args: &[&str]) -> Result<()> {
    let target = artifacts::target_dir(shell)?;
    let command = shell.cmd("cargo", args.iter().copied()).with(|command| {
        command.current_dir(folder).env("CARGO_TARGET_DIR", target);
    });
    command.run()
}

/// Unpacks all packages anew into a workspace in which they find each other as in the registry.
fn make(shell: &Shell, packages: &[Published], installs: &[Install]) -> Result<PathBuf> {
    let folder = artifacts::target_dir(shell)?.join("package").join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    for package in packages {
        archive::unpack(shell, package, &folder)?;
    }
    let users: Vec<_> = installs.iter().filter(|install| is_dependency(install)).collect();
    let members = packages.iter().map(Published::folder_name).chain((0..users.len()).map(user_name));
    let manifest = workspace(&shell.read("Cargo.toml")?, packages, members.collect())?;
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join("Cargo.lock"), &shell.read("Cargo.lock")?)?;
    for number in 0..users.len() {
        write_user(&folder.join(user_name(number)), number)?;
    }
    for (number, install) in users.iter().enumerate() {
        add(shell, &folder.join(user_name(number)), install, packages)?;
    }
    Ok(folder)
}

const fn is_dependency(install: &Install) -> bool {
    matches!(install, Install::Add { .. } | Install::Manifest(_))
}

fn user_name(number: usize) -> String {
    format!("user-{number}")
}

/// A project that does as a document says.
fn write_user(folder: &Path, number: usize) -> Result<()> {
    let name = user_name(number);
    write(
        &folder.join("Cargo.toml"),
        &format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n"),
    )?;
    write(&folder.join("src/lib.rs"), "#![no_std]\n")
}

/// Does in the project what the document says, with the packages instead of a clone.
fn add(shell: &Shell, user: &Path, install: &Install, packages: &[Published]) -> Result<()> {
    let package = |folder: &str| packages.iter().find(|package| package.folder == folder);
    let path = |folder: &str| {
        package(folder).map(|package| format!("../{}", package.folder_name())).unwrap_or_default()
    };
    let mut names = Vec::new();
    match install {
        Install::Add { folder, more } => {
            let path = path(folder);
            let args = ["add", "--quiet", "--offline", "--path", &path]
                .into_iter()
                .chain(more.iter().map(String::as_str));
            cargo(shell, user, &args.collect::<Vec<_>>())?;
            names.extend(package(folder).map(|package| package.name.as_str()));
            write_examples(shell, user, &user.join(&path), more)?;
        }
        Install::Manifest(dependencies) => {
            let mut manifest = fs::read_to_string(user.join("Cargo.toml"))?;
            for line in dependencies {
                let here = line
                    .line
                    .replace(&format!("../rakwire/{}\"", line.folder), &format!("{}\"", path(&line.folder)));
                manifest.push_str(&format!("{here}\n"));
                names.push(&line.name);
            }
            write(&user.join("Cargo.toml"), &manifest)?;
        }
        Install::Program { .. } | Install::Npm { .. } => {}
    }
    let uses = names.iter().map(|name| format!("use {} as _;\n", name.replace('-', "_")));
    write(&user.join("src/lib.rs"), &format!("#![no_std]\n{}", uses.collect::<String>()))
}

/// The examples of the package's README, in a project with what the README says to add. Examples that need features are in
/// projects that have those.
fn write_examples(shell: &Shell, user: &Path, package: &Path, more: &[String]) -> Result<()> {
    let readme = package.join("README.md");
    if !readme.exists() {
        return Ok(());
    }
    let readme = fs::read_to_string(readme)?;
    let programs = readme::programs(&readme)?;
    for words in readme::additions(&readme) {
        let args = ["add", "--quiet", "--offline"].into_iter().chain(words.iter().map(String::as_str));
        cargo(shell, user, &args.collect::<Vec<_>>())?;
    }
    for (number, program) in programs.iter().enumerate() {
        // The only feature that an example needs is that of the driver.
        let needs_driver = program.contains("::native::");
        if !needs_driver || more.iter().any(|word| word == "native") {
            write(&user.join(format!("examples/readme_{number}.rs")), program)?;
        }
    }
    Ok(())
}

/// The manifest of the workspace: builds are made as in the repository, so that both share what they need of others.
fn workspace(root: &str, packages: &[Published], members: Vec<String>) -> Result<String> {
    let root: Table = root.parse().context("Cargo.toml cannot be read")?;
    let mut profile = root.get("profile").and_then(|profile| profile.get("dev")).cloned();
    if let Some(of_packages) =
        profile.as_mut().and_then(|dev| dev.get_mut("package")).and_then(Value::as_table_mut)
    {
        let ours =
            root.get("workspace").and_then(|workspace| workspace.get("members")).and_then(Value::as_array);
        let ours: Vec<&str> = ours.into_iter().flatten().filter_map(Value::as_str).collect();
        // A package is called as its folder, or stands below the one that is called as the package around it.
        let is_member = |name: &str| ours.iter().any(|folder| folder.replace('/', "-") == name);
        // Members that are not published are not here.
        of_packages.retain(|name, _| !is_member(name) || packages.iter().any(|package| package.name == name));
    }
    let mut workspace = Table::new();
    workspace.insert("resolver".to_owned(), "3".into());
    workspace.insert("members".to_owned(), members.into());
    let patches = packages.iter().map(|package| {
        let path = Table::from_iter([("path".to_owned(), Value::from(package.folder_name()))]);
        (package.name.clone(), Value::Table(path))
    });
    let registry = Table::from_iter([("crates-io".to_owned(), Value::Table(patches.collect()))]);
    let mut manifest = Table::new();
    manifest.insert("workspace".to_owned(), workspace.into());
    manifest.insert("patch".to_owned(), registry.into());
    manifest.extend(
        profile.map(|dev| ("profile".to_owned(), Table::from_iter([("dev".to_owned(), dev)]).into())),
    );
    Ok(manifest.to_string())
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_builds_as_the_repository_does() {
        let root = "[workspace]\nmembers = [\"core\", \"xtask\"]\n[profile.dev]\nopt-level = 1\n\
                    [profile.dev.package.\"*\"]\ndebug = false\n[profile.dev.package.xtask]\nopt-level = 0\n";
        let manifest: Table = workspace(root, &[], vec!["a-1".to_owned()]).unwrap().parse().unwrap();
        assert_eq!(manifest["profile"]["dev"]["opt-level"].as_integer(), Some(1));
        let of_packages: Vec<_> = manifest["profile"]["dev"]["package"].as_table().unwrap().keys().collect();
        assert_eq!(of_packages, ["*"]);
        assert_eq!(manifest["workspace"]["members"][0].as_str(), Some("a-1"));
        assert!(workspace("no manifest", &[], vec![]).is_err());
    }
}
