//! Installs the browsers for tests.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::done::Done;
use super::system;
use crate::shell::Shell;

/// A browser.
pub(super) struct Browser {
    /// The variable that passes its path to all children; a user may set it to choose another browser.
    variable: &'static str,
    /// Possible names of its program.
    names: &'static [&'static str],
    /// The package of the distribution.
    package: &'static str,
}

pub(super) const CHROMIUM: Browser = Browser {
    variable: "CHROMIUM",
    names: &["chromium", "google-chrome", "google-chrome-stable", "chromium-browser"],
    package: "chromium",
};
pub(super) const FIREFOX: Browser =
    Browser { variable: "FIREFOX", names: &["firefox-esr", "firefox"], package: "firefox-esr" };

impl Browser {
    /// Finds the browser, or installs it with the system's package manager.
    pub(super) fn install(&self, shell: &Shell) -> Result<Done> {
        let variable = self.variable;
        if let Some(named) = shell.variable(variable) {
            let named = PathBuf::from(named);
            if !named.is_file() {
                bail!("{variable} is set to {}, which does not exist", named.display());
            }
            return Ok(Done::Present(format!("{variable} names {}", named.display())));
        }
        if let Some(found) = self.find(shell) {
            shell.set(variable, &found);
            return Ok(Done::Present(format!("{} is there", found.display())));
        }
        system::install(shell, self.package)?;
        let found = self.find(shell);
        let found = found
            .with_context(|| format!("the package {} is installed, but has no program", self.package))?;
        shell.set(variable, &found);
        Ok(Done::Installed(found.display().to_string()))
    }

    pub(super) fn by_hand(&self) -> String {
        format!("`apt-get install {}`, or set {} to its path", self.package, self.variable)
    }

    fn find(&self, shell: &Shell) -> Option<PathBuf> {
        self.names.iter().find_map(|name| shell.find_program(name))
    }
}
