//! The key of a server for secure connections, created in the same way as by operators.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use xtask::files;
use xtask::shell::Shell;

/// A key file, which is removed at the end, and its public key.
pub(crate) struct ServerKey {
    file: PathBuf,
    pub(crate) public: String,
}

impl ServerKey {
    /// Runs `rakwire keygen`.
    pub(crate) fn generate(shell: &Shell, rakwire: &Path) -> Result<Self> {
        let file = std::env::temp_dir().join(format!("rakwire-key-{}", std::process::id()));
        // A process with the same id may have left one.
        let _ = fs::remove_file(&file);
        let mut key = Self { file, public: String::new() };
        let output = shell.cmd(files::text(rakwire)?, ["keygen", key.file()?]).output()?;
        match output.stdout.lines().next() {
            Some(public) if output.status.success() => public.clone_into(&mut key.public),
            _ => bail!("rakwire keygen printed no key"),
        }
        Ok(key)
    }

    /// Returns the path of the key file.
    pub(crate) fn file(&self) -> Result<&str> {
        files::text(&self.file)
    }
}

impl Drop for ServerKey {
    fn drop(&mut self) {
        // The file may never have been created.
        let _ = fs::remove_file(&self.file);
    }
}
