//! Installs packages with the system's package manager.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use nix::unistd::Uid;

use crate::process::Cmd;
use crate::shell::Shell;

/// The result of a set-up step.
pub enum Done {
    /// The need was already met; the text describes it.
    Present(String),
    /// The need was installed or built; the text describes it.
    Installed(String),
}

/// True once this run has updated the package lists.
static UPDATED: AtomicBool = AtomicBool::new(false);

/// Finds programs by their names and other files by their paths, or installs their packages without leaving a service
/// running.
pub(super) fn install_all(shell: &Shell, wanted: &[(&str, &str)]) -> Result<Done> {
    // The sbin folders are not on every user's path. Joining an absolute path returns it unchanged.
    let is_there =
        |name: &str| shell.find_program(name).is_some() || Path::new("/usr/sbin").join(name).exists();
    let missing: Vec<_> = wanted.iter().filter(|(name, _)| !is_there(name)).collect();
    for (name, package) in &missing {
        install(shell, package)?;
        let service = Path::new("/usr/lib/systemd/system").join(format!("{name}.service"));
        if Path::new("/run/systemd/system").is_dir() && service.is_file() {
            as_root(shell, "systemctl", ["disable", "--now", name]).run()?;
        }
    }
    if let Some((name, package)) = wanted.iter().find(|(name, _)| !is_there(name)) {
        bail!("{package} is installed, but there is no {name}");
    }
    let packages =
        |of: &[&(&str, &str)]| of.iter().map(|(_, package)| *package).collect::<Vec<_>>().join(" ");
    Ok(match missing.is_empty() {
        true => Done::Present(format!("{} is present", packages(&wanted.iter().collect::<Vec<_>>()))),
        false => Done::Installed(packages(&missing)),
    })
}

/// Finds a browser by its possible names, or installs it. `variable` passes its path to all child processes, and lets a
/// user choose another browser.
pub(super) fn browser(shell: &Shell, variable: &'static str, names: &[&str], package: &str) -> Result<Done> {
    if let Some(named) = shell.variable(variable).map(PathBuf::from) {
        if !named.is_file() {
            bail!("{variable} is set to {}, which does not exist", named.display());
        }
        return Ok(Done::Present(format!("{variable} names {}", named.display())));
    }
    let find = || names.iter().find_map(|name| shell.find_program(name));
    let there = find();
    if there.is_none() {
        install(shell, package)?;
    }
    let found = find().with_context(|| format!("{package} is installed, but has no program"))?;
    shell.set(variable, &found);
    let text = found.display().to_string();
    Ok(if there.is_some() { Done::Present(format!("{text} is present")) } else { Done::Installed(text) })
}

/// Installs a package of the distribution.
pub(super) fn install(shell: &Shell, package: &str) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").is_file() {
        bail!(
            "{package} is missing, and there is no apt-get: install it, or the package of your system that has it"
        );
    }
    // Wait for other runs of the package manager.
    let wait = ["-o", "DPkg::Lock::Timeout=600"];
    if !UPDATED.load(Ordering::SeqCst) {
        // Repairs packages of an interrupted run, which block apt-get. If this fails, apt-get reports the reason.
        let _ = as_root(shell, "dpkg", ["--configure", "-a"]).run();
        apt_get(shell, wait.into_iter().chain(["update"]))?;
        UPDATED.store(true, Ordering::SeqCst);
    }
    apt_get(shell, wait.into_iter().chain(["install", "-y", "--no-install-recommends", package]))
}

fn apt_get<'a>(shell: &Shell, args: impl IntoIterator<Item = &'a str>) -> Result<()> {
    as_root(shell, "apt-get", args).env("DEBIAN_FRONTEND", "noninteractive").run()
}

fn as_root<'a>(shell: &Shell, program: &'a str, args: impl IntoIterator<Item = &'a str>) -> Cmd {
    if Uid::effective().is_root() {
        shell.cmd(program, args)
    } else {
        shell.cmd("sudo", ["-n", program].into_iter().chain(args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_programs_and_files_are_not_installed_again() {
        let shell = Shell::new().unwrap();
        let done = install_all(&shell, &[("sh", "dash"), ("/bin/sh", "dash")]).unwrap();
        assert!(matches!(done, Done::Present(what) if what == "dash dash is present"));
        shell.set("A_BROWSER", "/no/such/browser");
        let error = browser(&shell, "A_BROWSER", &["sh"], "dash").map(drop).unwrap_err();
        assert_eq!(error.to_string(), "A_BROWSER is set to /no/such/browser, which does not exist");
        let found = browser(&shell, "OTHER_BROWSER", &["no-such-browser", "sh"], "dash").unwrap();
        assert!(matches!(found, Done::Present(what) if what.ends_with("/sh is present")));
        assert!(shell.variable("OTHER_BROWSER").is_some());
    }
}
