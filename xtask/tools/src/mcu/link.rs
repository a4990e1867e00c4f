//! The network link of an emulated machine, which can go down.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, Result};

use xtask::mcu::NETWORK;

/// The link of one machine, controlled through QEMU's monitor.
pub(crate) struct NetworkLink {
    monitor: PathBuf,
    stream: Option<UnixStream>,
}

impl NetworkLink {
    /// Creates a link for a machine that is started with [`option`](Self::option).
    pub(crate) fn new() -> Self {
        let monitor = std::env::temp_dir().join(format!("rakwire-monitor-{}", std::process::id()));
        Self { monitor, stream: None }
    }

    /// Returns the value of QEMU's `-monitor`.
    pub(crate) fn option(&self) -> String {
        format!("unix:{},server=on,wait=off", self.monitor.display())
    }

    pub(crate) fn take_down(&mut self) -> Result<()> {
        self.tell(&format!("set_link {NETWORK} off\n"))
    }

    pub(crate) fn bring_up(&mut self) -> Result<()> {
        self.tell(&format!("set_link {NETWORK} on\n"))
    }

    fn tell(&mut self, command: &str) -> Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                none.insert(UnixStream::connect(&self.monitor).context("QEMU's monitor cannot be reached")?)
            }
        };
        stream.write_all(command.as_bytes()).context("QEMU's monitor cannot be written to")
    }
}

impl Drop for NetworkLink {
    fn drop(&mut self) {
        // QEMU removes it, unless it was killed.
        let _ = fs::remove_file(&self.monitor);
    }
}
