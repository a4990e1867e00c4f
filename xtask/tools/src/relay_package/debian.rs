//! The package on a bare Debian with systemd, following the guide for operators.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::contents::FOLDER;
use super::guide;
use xtask::shell::Shell;

const SCRIPT: &str = include_str!("debian.sh");
/// The download of Debian, the boot, and the guide, which alone may take ten minutes.
const LIMIT: Duration = Duration::from_secs(1_800);

/// Follows the guide on a Debian with nothing else installed.
pub(super) fn check(shell: &Shell, package: &Path) -> Result<()> {
    let root = shell.path(FOLDER).join("debian");
    let [config, steps, socket] =
        ["toml", "steps.sh", "socket.sh"].map(|extension| root.with_extension(extension));
    std::fs::write(&config, guide::config_with_files(shell)?)?;
    std::fs::write(&steps, guide::commands(shell)?)?;
    std::fs::write(&socket, guide::socket_commands(shell)?)?;
    let paths = [package, &root, &config, &steps, &socket].map(|path| path.display().to_string());
    let line = ["-c", SCRIPT, "sh"].into_iter().chain(paths.iter().map(String::as_str));
    shell.cmd("sh", line).limit(LIMIT).run()
}
