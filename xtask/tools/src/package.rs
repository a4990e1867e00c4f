//! Tests registry packages as users get them: packed, unpacked side by side without the rest of the repository, and
//! compiled.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use xtask::artifacts;
use xtask::files;
use xtask::shell::Shell;

/// Files that every package needs in addition to its code.
const REQUIRED: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// The maximum size of a package file in bytes. The largest package has 600 KB, mostly tests and recorded packets.
const LARGEST: u64 = 700_000;

/// A published crate.
#[derive(Deserialize)]
pub(crate) struct Published {
    pub(crate) name: String,
    version: String,
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
    description: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
    metadata: Option<Value>,
    manifest_path: PathBuf,
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

    pub(crate) fn has_library(&self) -> bool {
        ["lib", "rlib", "proc-macro"].into_iter().any(|kind| self.has_target(kind))
    }

    fn has_target(&self, kind: &str) -> bool {
        self.targets.iter().flat_map(|target| &target.kind).any(|found| found == kind)
    }

    /// Checks requirements that the registry enforces only at the upload, and that docs.rs builds all features, like
    /// the stage `doc`.
    fn check_manifest(&self) -> Result<()> {
        let is_few = |values: &[String]| (1..=5).contains(&values.len());
        if self.description.is_none() || !is_few(&self.keywords) || !is_few(&self.categories) {
            bail!(
                "the manifest of {} needs a description and one to five keywords and categories",
                self.name
            );
        }
        let manifest = fs::read_to_string(&self.manifest_path)?;
        if !manifest.lines().any(|line| line.starts_with("include = [")) {
            bail!("the manifest of {} needs `include`, so that no stray file is published", self.name);
        }
        let hosted = self.metadata.as_ref().and_then(|metadata| metadata.pointer("/docs/rs/all-features"));
        if self.has_library() && hosted != Some(&Value::Bool(true)) {
            bail!("[package.metadata.docs.rs] of {} has no `all-features = true`", self.name);
        }
        Ok(())
    }
}

/// The stage of `cargo xtask ci`. Packages may contain uncommitted files.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let folder = unpacked(shell, &published(shell)?, &["--allow-dirty"])?;
    cargo(shell, &folder, ["check", "--workspace", "--all-targets", "--all-features"])
}

/// Packs for a release, runs the tests from the packages, and installs the programs.
pub(crate) fn test(shell: &Shell, packages: &[Published]) -> Result<()> {
    let folder = unpacked(shell, packages, &[])?;
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

/// Packs all crates and unpacks them into a workspace that replaces the registry. Builds use the target folder and
/// profiles of the repository, so the dependencies are already compiled.
fn unpacked(shell: &Shell, packages: &[Published], more: &[&str]) -> Result<PathBuf> {
    packages.iter().try_for_each(Published::check_manifest)?;
    let names = packages.iter().flat_map(|package| ["--package", package.name.as_str()]);
    let pack = ["package", "--quiet", "--no-verify"].into_iter().chain(more.iter().copied()).chain(names);
    shell.cmd("cargo", pack).run()?;
    let packed = artifacts::target_dir(shell)?.join("package");
    let folder = packed.join("workspace");
    files::empty_folder(&folder)?;
    for package in packages {
        unpack(shell, package, &packed, &folder)?;
    }
    files::write(&folder.join("Cargo.lock"), shell.read("Cargo.lock")?)?;
    let root = shell.read("Cargo.toml")?;
    let profiles = root.find("[profile.").context("Cargo.toml has no profiles")?;
    let members: Vec<_> = packages.iter().map(Published::folder_name).collect();
    let patches = packages
        .iter()
        .map(|package| format!("{} = {{ path = {:?} }}\n", package.name, package.folder_name()));
    let patches: String = patches.collect();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[patch.crates-io]\n{patches}\n{}",
        &root[profiles..]
    );
    files::write(&folder.join("Cargo.toml"), manifest)?;
    Ok(folder)
}

fn unpack(shell: &Shell, package: &Published, packed: &Path, folder: &Path) -> Result<()> {
    let file = packed.join(format!("{}.crate", package.folder_name()));
    let size = file.metadata().with_context(|| format!("cargo packed no {}", file.display()))?.len();
    // Sets new dates with `--touch`: cargo packs all files with the same date, so changed files would count as built.
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
