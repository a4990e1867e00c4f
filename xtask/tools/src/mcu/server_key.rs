//! The key of a server for secure connections, made as operators make it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use xtask::shell::Shell;

/// A key file, which is removed again, and the public key in it.
pub(crate) struct ServerKey {
    file: PathBuf,
    pub(crate) public: String,
}

impl ServerKey {
    /// Runs `rakwire keygen`.
    pub(crate) fn generate(shell: &Shell, rakwire: &Path) -> Result<Self> {
        let file = std::env::temp_dir().join(format!("rakwire-key-{}", std::process::id()));
        // One that an ended process of the same number left.
        let _ = fs::remove_file(&file);
        let mut key = Self { file, public: String::new() };
        let rakwire = rakwire.to_str().context("the path of this repository is not valid UTF-8")?;
        let output = shell.cmd(rakwire, ["keygen", key.file()?]).output()?;
        match output.stdout.lines().next() {
            Some(public) if output.status.success() => public.clone_into(&mut key.public),
            _ => bail!("rakwire keygen printed no key"),
        }
        Ok(key)
    }

    /// Where the key is.
    pub(crate) fn file(&self) -> Result<&str> {
        self.file.to_str().context("the folder for temporary files has a name that is not valid UTF-8")
    }
}

impl Drop for ServerKey {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_file(&self.file);
    }
}
