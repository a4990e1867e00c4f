//! The network cable of an emulated machine, which can be pulled.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The cable of one machine, reached through QEMU's monitor.
pub(crate) struct Cable {
    monitor: PathBuf,
    stream: Option<UnixStream>,
}

impl Cable {
    /// A cable for a machine that is started with [`option`](Self::option).
    pub(crate) fn new() -> Self {
        let monitor = std::env::temp_dir().join(format!("rakwire-monitor-{}", std::process::id()));
        Self { monitor, stream: None }
    }

    /// What QEMU's `-monitor` gets.
    pub(crate) fn option(&self) -> String {
        format!("unix:{},server=on,wait=off", self.monitor.display())
    }

    pub(crate) fn pull(&mut self) -> Result<()> {
        self.say("set_link cable off\n")
    }

    pub(crate) fn plug(&mut self) -> Result<()> {
        self.say("set_link cable on\n")
    }

    fn say(&mut self, command: &str) -> Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                none.insert(UnixStream::connect(&self.monitor).context("QEMU's monitor cannot be reached")?)
            }
        };
        stream.write_all(command.as_bytes()).context("QEMU's monitor does not listen")
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        // QEMU removes it, unless it was ended.
        let _ = fs::remove_file(&self.monitor);
    }
}
