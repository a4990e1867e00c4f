//! The files of a release for those without Rust: the npm package and the one that makes projects with it, the Debian package of the
//! relay, and an archive with the tool and the relay, which need no library of the system. All lie in one folder, with their checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::checks::Workspace;
use crate::relay_package;
use xtask::artifacts;
use xtask::service::Service;
use xtask::setup::Need;
use xtask::shell::Shell;

/// Where the files lie.
pub(super) const FOLDER: &str = "target/release-files";
/// Where the Debian package is made.
const DEBIAN_TREE: &str = "target/release-debian";
/// The folders of the npm packages: that of the product, and `create-rakwire`.
const NPM: [&str; 2] = ["wasm", "web/create"];
const CHECKSUMS: &str = "SHA256SUMS";
/// What an archive of programs has besides them.
const BESIDES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"];
/// What a project with the npm package runs.
const HEAR: &str = include_str!("hear.mjs");
/// What a project of `create-rakwire` has, besides its manifest.
const PROJECT: [&str; 4] = ["index.html", "tsconfig.json", "src/main.ts", "src/net.ts"];
/// The WebSocket that such a project gives to Node 20.
const WEB_SOCKET: &str = "wasm/node_modules/ws";
/// How long each step of the trial may take.
const LIMIT: Duration = Duration::from_secs(120);

/// What they are made with.
pub(super) const NEEDS: [Need; 4] = [Need::Node, Need::NpmPackage, Need::StaticTarget, Need::MuslCompiler];

/// The stage of `cargo xtask nightly`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    make(shell, &Workspace::read(shell)?.version)
}

/// Makes all files, and tries them out.
pub(super) fn make(shell: &Shell, version: &str) -> Result<()> {
    let folder = shell.path(FOLDER);
    fs::create_dir_all(&folder)?;
    remove_earlier(&folder)?;
    for package in NPM {
        shell.cmd_in(package, "npm", ["pack", "--silent", "--pack-destination", text(&folder)?]).run()?;
    }
    let debian = relay_package::build(shell, DEBIAN_TREE, &artifacts::fast_programs(shell)?.relay)?;
    fs::copy(&debian, folder.join(debian.file_name().context("the Debian package has no name")?))?;
    let name = archive(shell, &folder, version)?;
    let mut made = listing(&folder)?;
    made.retain(|name| folder.join(name).is_file());
    let sums = shell.cmd_in(FOLDER, "sha256sum", made.iter().map(String::as_str)).output()?;
    fs::write(folder.join(CHECKSUMS), sums.stdout)?;
    try_out(shell, &folder, &name, version)?;
    shell.print(format_args!("{FOLDER}: {} and {CHECKSUMS}", made.join(", ")));
    Ok(())
}

/// Removes what an earlier call made, and no other files beside it.
fn remove_earlier(folder: &Path) -> Result<()> {
    for name in listing(folder)? {
        let is_ours = ["rakwire-", "create-rakwire-"].iter().any(|prefix| name.starts_with(prefix));
        let is_made = name == CHECKSUMS || is_ours && name.contains('.');
        if is_made && folder.join(&name).is_file() {
            fs::remove_file(folder.join(name))?;
        }
    }
    Ok(())
}

/// Packs the programs, and returns the archive's name without its ending, which is the folder in it.
fn archive(shell: &Shell, folder: &Path, version: &str) -> Result<String> {
    let name = format!("rakwire-{version}-{}-linux", std::env::consts::ARCH);
    let tree = folder.join(&name);
    // A call that was interrupted has left its folder.
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fs::create_dir(&tree)?;
    for program in artifacts::static_programs(shell)? {
        let packed = tree.join(program.file_name().context("a program has no name")?);
        fs::copy(&program, &packed)?;
        shell.cmd("strip", [text(&packed)?]).run()?;
        is_static(shell, &packed)?;
    }
    for file in BESIDES {
        fs::copy(shell.path(file), tree.join(file))?;
    }
    // The same files make the same archive, on every machine and at every time.
    let same =
        ["--mode=u=rwX,go=rX", "--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--mtime=@0"];
    let archive = format!("{name}.tar.gz");
    let pack = same.into_iter().chain(["--create", "--auto-compress", "--file", &archive, &name]);
    shell.cmd_in(FOLDER, "tar", pack).run()?;
    fs::remove_dir_all(&tree)?;
    Ok(name)
}

/// Fails for a program that asks for an interpreter, which loads the libraries of the system.
fn is_static(shell: &Shell, program: &Path) -> Result<()> {
    let headers = shell.cmd("readelf", ["--wide", "--program-headers", text(program)?]).output()?;
    if !headers.status.success() || headers.stdout.contains("INTERP") {
        bail!("{} needs libraries of the system:\n{}", program.display(), headers.stdout);
    }
    Ok(())
}

/// The names in a folder, in their order.
fn listing(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = entries.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Goes from the files to a message that comes back, in a folder outside of the repository: checksums, archive, a server,
/// the relay, and a project in Node that installs the npm package. Another project is made as the guide says.
fn try_out(shell: &Shell, folder: &Path, name: &str, version: &str) -> Result<()> {
    let trial = Trial::new()?;
    let script = format!(
        "find '{folder}' -maxdepth 1 -type f -exec cp '{{}}' . ';' && sha256sum --quiet --check {CHECKSUMS} && tar -xzf {name}.tar.gz --strip-components=1 \
         && npm install --no-audit --no-fund --silent ./rakwire-{version}.tgz '{web_socket}'",
        folder = text(folder)?,
        web_socket = text(&shell.path(WEB_SOCKET))?
    );
    let create = format!(
        "npx --yes --package ./create-rakwire-{version}.tgz create-rakwire my-game --package rakwire-{version}.tgz"
    );
    fs::write(trial.0.join("package.json"), "{ \"private\": true }\n")?;
    fs::write(trial.0.join("hear.mjs"), HEAR)?;
    let done = shell.cmd("sh", ["-euc", &script]).limit(LIMIT).with(|command| {
        command.current_dir(&trial.0);
    });
    done.run()?;
    let created = shell.cmd("sh", ["-euc", &create]).limit(LIMIT).with(|command| {
        command.current_dir(&trial.0);
    });
    created.run()?;
    is_project(&trial.0.join("my-game"), version)?;
    let said = shell.cmd(text(&trial.0.join("rakwire"))?, ["--version"]).output()?;
    if !said.stdout.contains(version) {
        bail!("the program `rakwire` of {version} says that it is {:?}", said.stdout);
    }
    let mut server =
        Service::start(shell, "server", &trial.0.join("rakwire"), &["echo", "--listen", "127.0.0.1:0"])?;
    let target = format!("game={}", server.address);
    let arguments = ["--listen", "127.0.0.1:0", "--target", &target];
    let mut relay = Service::start(shell, "relay", &trial.0.join("rakwire-relay"), &arguments)?;
    let address = format!("{}/ws", relay.address.replacen("http", "ws", 1));
    let heard = shell.cmd("node", ["hear.mjs", &address]).limit(LIMIT).with(|command| {
        command.current_dir(&trial.0);
    });
    let heard = heard.output()?;
    server.check()?;
    relay.check()?;
    if heard.stdout.trim() != "echo of 4 bytes" {
        bail!("a player with the files of the release heard {:?}", heard.stdout);
    }
    Ok(())
}

/// Fails for a folder that is no project with the packed npm package.
fn is_project(folder: &Path, version: &str) -> Result<()> {
    for file in PROJECT {
        if !folder.join(file).is_file() {
            bail!("a project of `create-rakwire` is without {file}");
        }
    }
    let manifest = fs::read_to_string(folder.join("package.json"))?;
    if !manifest.contains(&format!("rakwire-{version}.tgz")) {
        bail!("a project of `create-rakwire` has another rakwire than that of the release:\n{manifest}");
    }
    Ok(())
}

/// A folder that is gone at the end.
struct Trial(PathBuf);

impl Trial {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("rakwire-release-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // What stays in the folder of temporary files harms nothing.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of a release is not valid UTF-8")
}
