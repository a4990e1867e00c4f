//! What is in the package, and where.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use xtask::shell::Shell;

/// Where packages lie.
pub(super) const FOLDER: &str = "target/relay-package";
const SOURCES: &str = "relay/packaging";

/// Files of the repository, and where they go.
const FILES: [(&str, &str); 11] = [
    ("relay/packaging/rakwire-relay.service", "usr/lib/systemd/system/rakwire-relay.service"),
    ("relay/packaging/rakwire-relay.socket", "usr/lib/systemd/system/rakwire-relay.socket"),
    ("relay/packaging/relay.toml", "etc/rakwire-relay/relay.toml"),
    ("relay/packaging/grafana.json", "usr/share/doc/rakwire-relay/grafana.json"),
    ("relay/packaging/alerts.yml", "usr/share/doc/rakwire-relay/alerts.yml"),
    ("relay/packaging/proxies/nginx.conf", "usr/share/doc/rakwire-relay/examples/nginx.conf"),
    ("relay/packaging/proxies/haproxy.cfg", "usr/share/doc/rakwire-relay/examples/haproxy.cfg"),
    ("relay/packaging/proxies/haproxy-relays.cfg", "usr/share/doc/rakwire-relay/examples/haproxy-relays.cfg"),
    ("relay/packaging/proxies/Caddyfile", "usr/share/doc/rakwire-relay/examples/Caddyfile"),
    ("docs/relay.md", "usr/share/doc/rakwire-relay/relay.md"),
    ("LICENSE-MIT", "usr/share/doc/rakwire-relay/copyright"),
];

/// What the program itself writes: its arguments, and where the output goes.
const GENERATED: [(&[&str], &str); 4] = [
    (&["man"], "usr/share/man/man1/rakwire-relay.1"),
    (&["completions", "bash"], "usr/share/bash-completion/completions/rakwire-relay"),
    (&["completions", "zsh"], "usr/share/zsh/vendor-completions/_rakwire-relay"),
    (&["completions", "fish"], "usr/share/fish/vendor_completions.d/rakwire-relay.fish"),
];

/// The programs that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Builds the package of a relay that has been built, in a folder of the repository.
pub(super) fn build(shell: &Shell, folder: &str, relay: &Path) -> Result<PathBuf> {
    let tree = shell.path(folder).join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let program = tree.join("usr/bin/rakwire-relay");
    copy(relay, &program, 0o755)?;
    shell.cmd("strip", [text(&program)?]).run()?;
    for (from, to) in FILES {
        copy(&shell.path(from), &tree.join(to), 0o644)?;
    }
    for (arguments, to) in GENERATED {
        let output = shell.cmd(text(relay)?, arguments.iter().copied()).output()?;
        if !output.status.success() || output.stdout.is_empty() {
            bail!("`rakwire-relay {}` printed nothing to pack", arguments.join(" "));
        }
        write(&tree.join(to), &output.stdout, 0o644)?;
    }
    shell.cmd("gzip", ["-9n", text(&tree.join("usr/share/man/man1/rakwire-relay.1"))?]).run()?;
    control(shell, &tree, &program)?;
    pack(shell, folder, &tree)
}

/// The part that dpkg reads.
fn control(shell: &Shell, tree: &Path, program: &Path) -> Result<()> {
    let template = shell.read(&format!("{SOURCES}/debian/control"))?;
    let size = fs::metadata(program)?.len().div_ceil(1024).to_string();
    let values = [
        ("@VERSION@", version(shell)?),
        ("@ARCHITECTURE@", architecture(shell)?),
        ("@DEPENDS@", depends(&fs::read(program)?)?),
        ("@MAINTAINER@", maintainer(shell)?),
        ("@SIZE@", size),
    ];
    let filled = values.iter().fold(template, |text, (name, value)| text.replace(name, value));
    if filled.lines().any(|line| line.ends_with('@')) {
        bail!("a value of the control file is not filled in:\n{filled}");
    }
    write(&tree.join("DEBIAN/control"), &filled, 0o644)?;
    write(&tree.join("DEBIAN/conffiles"), "/etc/rakwire-relay/relay.toml\n", 0o644)?;
    for name in SCRIPTS {
        copy(&shell.path(&format!("{SOURCES}/debian/{name}")), &tree.join("DEBIAN").join(name), 0o755)?;
    }
    Ok(())
}

fn pack(shell: &Shell, folder: &str, tree: &Path) -> Result<PathBuf> {
    let name = format!("rakwire-relay_{}_{}.deb", version(shell)?, architecture(shell)?);
    let package = shell.path(folder).join(name);
    // Everything belongs to root; quick to make rather than small.
    let args = ["--root-owner-group", "-Zgzip", "-z6", "--build", text(tree)?, text(&package)?];
    shell.cmd("dpkg-deb", args).run()?;
    Ok(package)
}

fn version(shell: &Shell) -> Result<String> {
    let package = workspace_package(shell)?;
    let version = package.get("version").and_then(toml::Value::as_str);
    version.map(str::to_owned).context("Cargo.toml has no version of the workspace")
}

fn maintainer(shell: &Shell) -> Result<String> {
    let package = workspace_package(shell)?;
    let author = package.get("authors").and_then(|authors| authors.get(0)?.as_str());
    author.map(str::to_owned).context("Cargo.toml has no authors of the workspace")
}

/// What all packages of the workspace have in common.
fn workspace_package(shell: &Shell) -> Result<toml::Table> {
    let manifest: toml::Table = shell.read("Cargo.toml")?.parse().context("Cargo.toml cannot be read")?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package")?.as_table());
    package.cloned().context("Cargo.toml has no package of the workspace")
}

fn architecture(shell: &Shell) -> Result<String> {
    let output = shell.cmd("dpkg", ["--print-architecture"]).output()?;
    Ok(output.stdout.trim().to_owned())
}

/// The packages that the program needs: the C library in the newest version of which it uses something, the authorities
/// that ACME trusts, and what the scripts run.
fn depends(program: &[u8]) -> Result<String> {
    let (major, minor) = newest_glibc(program).context("the program names no version of the C library")?;
    Ok(format!("libc6 (>= {major}.{minor}), libgcc-s1, ca-certificates, passwd, procps"))
}

fn newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let places = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let versions = places.filter_map(|(place, _)| {
        let rest = program.get(place + MARK.len()..)?;
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        let mut numbers = std::str::from_utf8(rest.get(..end)?).ok()?.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("{} cannot be read", from.display()))?;
    write(to, bytes, mode)
}

fn write(to: &Path, bytes: impl AsRef<[u8]>, mode: u32) -> Result<()> {
    let folder = to.parent().context("a file of the package lies in no folder")?;
    fs::create_dir_all(folder)?;
    fs::write(to, bytes).with_context(|| format!("{} cannot be written", to.display()))?;
    fs::set_permissions(to, PermissionsExt::from_mode(mode))?;
    // The mask of this process does not count.
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the path of this repository is not valid UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_depends_on_what_its_scripts_and_acme_need() {
        let depends = depends(b"\0GLIBC_2.34\0").unwrap();
        assert!(depends.starts_with("libc6 (>= 2.34), "), "{depends}");
        assert!(depends.contains("ca-certificates"), "{depends}");
        let script = include_str!("../../../../relay/packaging/debian/postinst");
        // From the package passwd; adduser is a package of its own.
        assert!(depends.contains("passwd") && script.contains("useradd") && !script.contains("adduser"));
    }

    /// A relay that ends while a name does not resolve has to be started again for as long as it takes.
    #[test]
    fn the_unit_never_gives_up() {
        let unit = include_str!("../../../../relay/packaging/rakwire-relay.service");
        let (of_unit, of_service) = unit.split_once("[Service]").unwrap();
        assert!(of_unit.lines().any(|line| line == "StartLimitIntervalSec=0"));
        assert!(of_service.lines().any(|line| line == "Restart=on-failure"));
        assert!(!of_service.contains("RestartPreventExitStatus"));
    }

    /// Its memory has keys, tokens and what players send.
    #[test]
    fn the_unit_leaves_no_core_dump() {
        let unit = include_str!("../../../../relay/packaging/rakwire-relay.service");
        let (_, of_service) = unit.split_once("[Service]").unwrap();
        assert!(of_service.lines().any(|line| line == "LimitCORE=0"));
    }

    #[test]
    fn the_newest_version_of_the_c_library_counts() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(program), Some((2, 34)));
        assert_eq!(newest_glibc(b"no library"), None);
    }
}
