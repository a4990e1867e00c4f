//! The files of a release, in one folder with checksums: the npm package, the npm package that creates projects, the
//! Debian package of the relay, an archive with the tool and the relay as static programs, the libraries for other
//! languages and engines, and the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::checks::Workspace;
use crate::relay_package;
use xtask::artifacts;
use xtask::files::{self, text};
use xtask::service::Service;
use xtask::setup::Need;
use xtask::shell::Shell;

/// The folder of the files.
pub(super) const FOLDER: &str = "target/release-files";
/// The build folder of the Debian package.
const DEBIAN_TREE: &str = "target/release-debian";
/// The folders of the npm packages: the product, and `create-rakwire`.
const NPM: [&str; 2] = ["wasm", "web/create"];
const CHECKSUMS: &str = "SHA256SUMS";
/// The time limit of each step of the trial.
const LIMIT: Duration = Duration::from_secs(120);

/// The needs of the files.
pub(super) const NEEDS: [Need; 5] =
    [Need::Node, Need::NpmPackage, Need::StaticTarget, Need::MuslCompiler, Need::Cmake];

/// The stage of `cargo xtask nightly`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    make(shell, &Workspace::read(shell)?.version)
}

/// Creates all files, and tests them.
pub(super) fn make(shell: &Shell, version: &str) -> Result<()> {
    let folder = shell.path(FOLDER);
    files::empty_folder(&folder)?;
    for package in NPM {
        shell.cmd_in(package, "npm", ["pack", "--silent", "--pack-destination", text(&folder)?]).run()?;
    }
    let debian = relay_package::build(shell, DEBIAN_TREE, &artifacts::fast_programs(shell)?.relay)?;
    fs::copy(&debian, folder.join(debian.file_name().context("the Debian package has no name")?))?;
    let name = archive(shell, &folder, version)?;
    shell.cmd("xtask/release/doors", [text(&folder)?]).run()?;
    let made = files::names(&folder)?;
    let sums = shell.cmd_in(FOLDER, "sha256sum", made.iter().map(String::as_str)).output()?;
    fs::write(folder.join(CHECKSUMS), sums.stdout)?;
    try_out(shell, &folder, &name, version)?;
    shell.print(format_args!("{FOLDER}: {} and {CHECKSUMS}", made.join(", ")));
    Ok(())
}

/// Packs the programs. Returns the archive's name without its extension, which is also its top folder.
fn archive(shell: &Shell, folder: &Path, version: &str) -> Result<String> {
    let name = format!("rakwire-{version}-{}-linux", std::env::consts::ARCH);
    let tree = folder.join(&name);
    files::empty_folder(&tree)?;
    for program in artifacts::static_programs(shell)? {
        let packed = tree.join(program.file_name().context("a program has no name")?);
        fs::copy(&program, &packed)?;
        shell.cmd("strip", [text(&packed)?]).run()?;
        is_static(shell, &packed)?;
    }
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
        fs::copy(shell.path(file), tree.join(file))?;
    }
    shell.cmd("xtask/release/archive", [text(&tree)?]).run()?;
    Ok(name)
}

/// Checks that a program requests no interpreter, which would load system libraries.
fn is_static(shell: &Shell, program: &Path) -> Result<()> {
    let headers = shell.cmd("readelf", ["--wide", "--program-headers", text(program)?]).output()?;
    if !headers.status.success() || headers.stdout.contains("INTERP") {
        bail!("{} needs system libraries:\n{}", program.display(), headers.stdout);
    }
    Ok(())
}

/// Tries the files outside of the repository: checks checksums, unpacks the archive, starts a server and the relay, and
/// sends a message from a Node project with the npm package, and with `ws`, which Node 20 needs. Creates another project
/// as in the guide.
fn try_out(shell: &Shell, folder: &Path, name: &str, version: &str) -> Result<()> {
    let trial = Trial::new()?;
    let script = format!(
        "find '{folder}' -maxdepth 1 -type f -exec cp '{{}}' . ';' && sha256sum --quiet --check {CHECKSUMS} && tar -xzf {name}.tar.gz --strip-components=1 \
         && npm install --no-audit --no-fund --silent ./rakwire-{version}.tgz '{web_socket}'",
        folder = text(folder)?,
        web_socket = text(&shell.path("wasm/node_modules/ws"))?
    );
    let create = format!(
        "npx --yes --package ./create-rakwire-{version}.tgz create-rakwire my-game --package rakwire-{version}.tgz"
    );
    fs::write(trial.0.join("package.json"), "{ \"private\": true }\n")?;
    fs::write(trial.0.join("hear.mjs"), include_str!("hear.mjs"))?;
    for script in [script, create] {
        shell.cmd("sh", ["-euc", &script]).limit(LIMIT).folder(&trial.0).run()?;
    }
    let manifest = fs::read_to_string(trial.0.join("my-game/package.json"))?;
    if !manifest.contains(&format!("rakwire-{version}.tgz")) {
        bail!("a project of `create-rakwire` does not use the rakwire of the release:\n{manifest}");
    }
    let said = shell.cmd(text(&trial.0.join("rakwire"))?, ["--version"]).output()?;
    if !said.stdout.contains(version) {
        bail!("the program `rakwire` of {version} prints the version {:?}", said.stdout);
    }
    let mut server =
        Service::start(shell, "server", &trial.0.join("rakwire"), &["echo", "--listen", "127.0.0.1:0"])?;
    let target = format!("game={}", server.address);
    let arguments = ["--listen", "127.0.0.1:0", "--target", &target];
    let mut relay = Service::start(shell, "relay", &trial.0.join("rakwire-relay"), &arguments)?;
    let address = format!("{}/ws", relay.address.replacen("http", "ws", 1));
    let received = shell.cmd("node", ["hear.mjs", &address]).limit(LIMIT).folder(&trial.0).output()?;
    server.check()?;
    relay.check()?;
    if received.stdout.trim() != "echo of 4 bytes" {
        bail!("a player with the files of the release received {:?}", received.stdout);
    }
    Ok(())
}

/// A temporary folder that is removed on drop.
struct Trial(PathBuf);

impl Trial {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("rakwire-release-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // A leftover temporary folder is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}
